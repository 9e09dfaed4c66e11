/* The nearest neighbours of rows: searches of the collection with its own rows, many at a time. */
#include "arithmetic/math/f32.h"
#include "base/integers.h"
#include "base/memory.h"
#include "map/map.h"

/* Larger score differences are clamped to this, so that their sums stay finite. */
#define GAP_MAX 0x1p100f

typedef struct search {
    map_job *job;
    neighbours *found;
    row_vectors vectors;
    ww_results *hits; /* for these vectors */
    const map_start *start;
} search;

static ww_status take_memory(const map_job *job, int64_t count, neighbours *found)
{
    *found = (neighbours){.k = (int32_t)max_i64(1, min_i64(job->neighbours, job->count - 1))};
    const size_t places = (size_t)count * (size_t)found->k;
    found->numbers = memory_alloc(places * sizeof *found->numbers);
    found->gaps = memory_alloc_zeroed(places, sizeof *found->gaps);
    if (!found->numbers || !found->gaps)
        return memory_failed("the neighbours of rows", places * (sizeof *found->numbers + sizeof *found->gaps));
    for (size_t i = 0; i < places; i++)
        found->numbers[i] = NO_ROW;
    return WW_OK;
}

void neighbours_free(neighbours *found)
{
    memory_free(found->gaps);
    memory_free(found->numbers);
}

static int tell(int64_t done, int64_t total, void *user)
{
    (void)total;
    return map_report_progress(user, done) != WW_OK;
}

/* Takes the hits of a query, without the row itself and rows that were added during the call. Computes where the row starts. */
static void take_hits(void *context, int64_t query, int32_t worker)
{
    (void)worker;
    search *s = context;
    const int32_t k = s->found->k;
    const uint32_t self = s->vectors.numbers[query];
    const int64_t count = ww_results_count(s->hits, query), at = s->vectors.places[query] * k;
    const int64_t *handles = ww_results_handles(s->hits, query);
    const float *scores = ww_results_scores(s->hits, query);
    float nearest = 0.0f;
    int32_t taken = 0;
    for (int64_t i = 0; i < count && taken < k; i++) {
        const uint32_t number = rows_find(s->job, handles[i]);
        if (number == NO_ROW || number == self)
            continue;
        if (taken == 0)
            nearest = scores[i];
        const float gap = canon_abs_f32(scores[i] - nearest);
        s->found->numbers[at + taken] = number;
        s->found->gaps[at + taken++] = gap < GAP_MAX ? gap : GAP_MAX;
    }
    if (s->start)
        start_put(s->job, s->start, self, s->vectors.values + query * s->job->collection->dim);
}

static ww_status search_some(search *s)
{
    map_job *job = s->job;
    ww_query query = ww_query_default();
    query.queries = s->vectors.values;
    query.query_count = s->vectors.count;
    query.dim = job->collection->dim;
    query.k = s->found->k + 1; /* the row finds itself, too */
    query.nprobe = job->config->nprobe;
    query.progress = tell;
    query.progress_user = job;
    const ww_status status = ww_collection_query(job->collection, &query, &s->hits);
    if (status == WW_OK)
        map_run(job, s->vectors.count, take_hits, s);
    ww_results_destroy(s->hits);
    s->hits = NULL;
    return status;
}

ww_status neighbours_find(map_job *job, map_list list, const map_start *start, neighbours *found)
{
    search s = {.job = job, .found = found, .start = start};
    ww_status status = take_memory(job, list.count, found);
    if (status == WW_OK)
        status = vectors_create(job, &s.vectors);
    for (int64_t first = 0; status == WW_OK && first < list.count; first += s.vectors.capacity) {
        status = map_report_progress(job, 0);
        if (status == WW_OK)
            status = vectors_read(job, list, first, &s.vectors);
        if (status == WW_OK && s.vectors.count > 0)
            status = search_some(&s);
        job->done += min_i64(s.vectors.capacity, list.count - first);
    }
    vectors_free(&s.vectors);
    return status;
}
