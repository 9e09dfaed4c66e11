/* Scores between points of a random sample: for each point, its nearest neighbours in the sample. */
#include <stdlib.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/manhattan.h"
#include "server/qdrant/search.h"

typedef struct matrix_plan {
    point_filter filter;
    char using[128];
    int64_t sample, limit;
} matrix_plan;

static void matrix_free(void *plan)
{
    matrix_plan *p = plan;
    point_filter_free(&p->filter);
    memory_free(p);
}

bool prepare_matrix(request *r)
{
    const char *body = request_body(r);
    matrix_plan *p = body ? request_plan_create(r, sizeof *p, matrix_free) : NULL;
    if (!p)
        return false;
    *p = (matrix_plan){.sample = 10, .limit = 3};
    if (!vector_name_read(json_given(body, "using"), p->using))
        return request_fail(r, 400, "using: the name of a vector is needed");
    if (!request_read_integer(r, body, "sample", 2, &p->sample) || !request_read_integer(r, body, "limit", 1, &p->limit) ||
        !filter_of_request(r, body, "filter", &p->filter))
        return false;
    if (p->sample > SAMPLE_MAX)
        return request_fail(r, 400, "sample: is %lld; the maximum is %d", (long long)p->sample, SAMPLE_MAX);
    return p->limit < WW_K_MAX ? true : request_fail(r, 400, "limit: the maximum is %d", WW_K_MAX - 1);
}

/* A sample and what is nearest to each of its points. */
typedef struct matrix {
    listing list;
    const char **ids; /* of the sample, sorted */
    int64_t count;
    ww_results *vectors, *nearest;
    ww_results **lists; /* by Manhattan distance: instead of `nearest`, one of each point */
} matrix;

static void matrix_release(matrix *m)
{
    listing_free(&m->list);
    memory_free(m->ids);
    ww_results_destroy(m->vectors);
    ww_results_destroy(m->nearest);
    for (int64_t i = 0; m->lists && i < m->count; i++)
        ww_results_destroy(m->lists[i]);
    memory_free(m->lists);
}

/* The results with the nearest of a point, and its number there. */
static const ww_results *nearest_of(const matrix *m, int64_t row, int64_t *query)
{
    *query = m->lists ? 0 : row;
    return m->lists ? m->lists[row] : m->nearest;
}

static int compare_texts(const void *first, const void *second)
{
    return point_id_compare(*(const char *const *)first, *(const char *const *)second);
}

/* Chooses the points of the sample, which have the vector. */
static ww_status choose_sample(matrix *m, const entry *e, const entry *part, const matrix_plan *p)
{
    ww_filter *resolved = NULL;
    ww_status status = filter_resolve(e, &p->filter, &resolved);
    const point_filter filter = {.filter = resolved ? resolved : p->filter.filter};
    if (status == WW_OK)
        status = listing_make(&m->list, part, &filter, NULL, (list_part){0});
    ww_filter_destroy(resolved);
    if (status != WW_OK)
        return status;
    if (m->list.count > p->sample)
        listing_shuffle(&m->list);
    const int64_t count = m->list.count < p->sample ? m->list.count : p->sample;
    m->ids = memory_alloc((size_t)(count + 1) * sizeof *m->ids);
    if (!m->ids)
        return memory_failed("a sample", (size_t)count * sizeof *m->ids);
    for (; m->count < count; m->count++)
        m->ids[m->count] = m->list.rows[m->count].id;
    if (count > 1)
        qsort(m->ids, (size_t)count, sizeof *m->ids, compare_texts);
    return points_get(part, m->ids, count, WW_FETCH_IDS | WW_FETCH_VECTORS, &m->vectors);
}

/* Searches the sample for the neighbours of each of its points; the point itself is one more hit. */
static ww_status search_sample(matrix *m, const entry *part, int64_t limit)
{
    const size_t dim = (size_t)part->dim, count = (size_t)m->count;
    float *vectors = memory_alloc((count * dim + 1) * sizeof *vectors);
    ww_filter *sample = NULL;
    ww_status status = vectors ? ww_filter_create(&sample) : memory_failed("queries", count * dim * sizeof *vectors);
    if (status == WW_OK)
        status = ww_filter_add_ids(sample, m->ids, m->count);
    for (int64_t i = 0; vectors && i < m->count; i++)
        memcpy(vectors + (size_t)i * dim, ww_results_vector(m->vectors, 0, i), dim * sizeof *vectors);
    ww_query query = ww_query_default();
    query.cancel = job_cancel();
    query.queries = vectors;
    query.query_count = m->count;
    query.dim = part->dim;
    query.k = (int32_t)limit + 1;
    query.filter = sample;
    query.fetch = WW_FETCH_IDS;
    if (status == WW_OK)
        status = ww_collection_query(part->collection, &query, &m->nearest);
    ww_filter_destroy(sample);
    memory_free(vectors);
    return status;
}

/* A point of the sample and its distance from another. */
typedef struct distant {
    double distance;
    int64_t number;
} distant;

static int compare_distant(const void *first, const void *second)
{
    const distant *a = first, *b = second;
    if (a->distance != b->distance)
        return (a->distance > b->distance) - (a->distance < b->distance);
    return (a->number > b->number) - (a->number < b->number);
}

/* Lists the points of the sample that are nearest to one of them. */
static ww_status list_nearest(const matrix *m, int64_t row, int32_t dim, int64_t limit, ww_results **list)
{
    const int64_t wanted = limit + 1 < m->count ? limit + 1 : m->count;
    distant *all = memory_alloc((size_t)m->count * sizeof *all);
    ww_picked_hit *hits = memory_alloc((size_t)m->count * sizeof *hits);
    ww_status status = all && hits ? job_check() : memory_failed("a sample", (size_t)m->count * (sizeof *all + sizeof *hits));
    for (int64_t i = 0; status == WW_OK && i < m->count; i++)
        all[i] =
            (distant){manhattan_distance(ww_results_vector(m->vectors, 0, row), ww_results_vector(m->vectors, 0, i), dim), i};
    if (status == WW_OK)
        qsort(all, (size_t)m->count, sizeof *all, compare_distant);
    for (int64_t i = 0; status == WW_OK && i < wanted; i++)
        hits[i] = (ww_picked_hit){m->vectors, 0, all[i].number, (float)all[i].distance};
    if (status == WW_OK)
        status = ww_results_pick(hits, wanted, list);
    memory_free(all);
    memory_free(hits);
    return status;
}

static ww_status search_manhattan(matrix *m, const entry *part, int64_t limit)
{
    ww_status status = WW_OK;
    m->lists = memory_alloc_zeroed((size_t)m->count, sizeof *m->lists);
    if (!m->lists)
        return memory_failed("a sample", (size_t)m->count * sizeof *m->lists);
    for (int64_t i = 0; status == WW_OK && i < m->count; i++)
        status = list_nearest(m, i, part->dim, limit, &m->lists[i]);
    return status;
}

static ww_status matrix_make(matrix *m, const request *r)
{
    const matrix_plan *p = r->plan;
    const entry *part = entry_part(r->entry, p->using);
    *m = (matrix){0};
    ww_status status = part ? choose_sample(m, r->entry, part, p)
                            : ww_fail(WW_INVALID_ARGUMENT, "Wrong input: Not existing vector name error: %s", p->using);
    if (status == WW_OK && (part->sparse || part->multi))
        status =
            ww_fail(WW_UNSUPPORTED, "using: a matrix of %s is not supported", part->sparse ? "sparse vectors" : "multivectors");
    if (status == WW_OK && m->count < 2)
        m->count = 0; /* one point has no neighbour */
    if (status != WW_OK || m->count == 0)
        return status;
    return part->manhattan ? search_manhattan(m, part, p->limit) : search_sample(m, part, p->limit);
}

/* Calls `tell` for each point of the sample and each of its nearest. */
static void each_pair(request *r, const matrix *m, void (*tell)(out *o, const matrix *m, int64_t row, int64_t hit, bool first))
{
    const matrix_plan *p = r->plan;
    bool first = true;
    for (int64_t row = 0; row < m->count; row++) {
        int64_t told = 0, query = 0;
        const ww_results *nearest = nearest_of(m, row, &query);
        for (int64_t hit = 0; hit < ww_results_count(nearest, query) && told < p->limit; hit++) {
            const char *id = ww_results_id(nearest, query, hit);
            if (!id || strcmp(id, m->ids[row]) == 0)
                continue;
            tell(&r->answer, m, row, hit, first);
            first = false;
            told++;
        }
    }
}

static void tell_pair(out *o, const matrix *m, int64_t row, int64_t hit, bool first)
{
    int64_t query = 0;
    const ww_results *nearest = nearest_of(m, row, &query);
    out_text(o, first ? "{\"a\":" : ",{\"a\":");
    put_point_id(o, m->ids[row]);
    out_text(o, ",\"b\":");
    put_point_id(o, ww_results_id(nearest, query, hit));
    out_text(o, ",\"score\":");
    out_float(o, ww_results_scores(nearest, query)[hit]);
    out_text(o, "}");
}

static void tell_row(out *o, const matrix *m, int64_t row, int64_t hit, bool first)
{
    (void)m;
    (void)hit;
    out_format(o, "%s%lld", first ? "" : ",", (long long)row);
}

static void tell_column(out *o, const matrix *m, int64_t row, int64_t hit, bool first)
{
    int64_t query = 0;
    const ww_results *nearest = nearest_of(m, row, &query);
    const char *id = ww_results_id(nearest, query, hit);
    const char *const *found = bsearch(&id, m->ids, (size_t)m->count, sizeof *m->ids, compare_texts);
    out_format(o, "%s%lld", first ? "" : ",", (long long)(found ? found - m->ids : 0));
}

static void tell_score(out *o, const matrix *m, int64_t row, int64_t hit, bool first)
{
    int64_t query = 0;
    const ww_results *nearest = nearest_of(m, row, &query);
    out_text(o, first ? "" : ",");
    out_float(o, ww_results_scores(nearest, query)[hit]);
}

void run_matrix_pairs(request *r)
{
    matrix m;
    const ww_status status = matrix_make(&m, r);
    if (status != WW_OK) {
        request_fail_status(r, status);
    } else {
        request_result_begin(r);
        out_text(&r->answer, "{\"pairs\":[");
        each_pair(r, &m, tell_pair);
        out_text(&r->answer, "]}");
        request_result_end(r);
    }
    matrix_release(&m);
}

void run_matrix_offsets(request *r)
{
    matrix m;
    const ww_status status = matrix_make(&m, r);
    if (status != WW_OK) {
        request_fail_status(r, status);
        matrix_release(&m);
        return;
    }
    request_result_begin(r);
    out_text(&r->answer, "{\"offsets_row\":[");
    each_pair(r, &m, tell_row);
    out_text(&r->answer, "],\"offsets_col\":[");
    each_pair(r, &m, tell_column);
    out_text(&r->answer, "],\"scores\":[");
    each_pair(r, &m, tell_score);
    out_text(&r->answer, "],\"ids\":[");
    for (int64_t i = 0; i < m.count; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        put_point_id(&r->answer, m.ids[i]);
    }
    out_text(&r->answer, "]}");
    request_result_end(r);
    matrix_release(&m);
}
