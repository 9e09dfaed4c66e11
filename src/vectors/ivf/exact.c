/* The exact search of a few queries with an index: it reads the nearest lists first, then every other list that the bounds of
 * proof.c cannot exclude by the k-th score found so far. So its results have the same bits as a search of all rows.
 *
 * It considers only lists whose centroid is within reach of that score; a search of the centroids finds them. If clusters are
 * not separated, few lists are excluded. Then all rows are searched as without an index, and the next searches do not try.
 * Devices other than CPUs read a few hundred megabytes of codes faster than they could choose lists.
 */
#include <math.h>

#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

enum {
    ROWS_MIN = 8192,            /* rows of a collection: fewer rows are read faster without an index */
    DEVICE_BYTES_MIN = 1 << 30, /* minimum bytes of codes if the device is not a CPU */
    QUERIES_MAX = 4,            /* with more queries, matrix products share the reading of rows */
    FIRST_ROWS = 1024,          /* rows to read for a first k-th score ... */
    FIRST_FACTOR = 8,           /* ... and at least this many for each of the k results */
    FIRST_AHEAD = 8,            /* nearest lists to find besides those that have this many rows on average */
    WORTH_PART = 2,             /* try only if at most half of the rows remain to be read */
    PAUSE_MAX = 255,            /* maximum number of searches in a row that do not try */
};

typedef struct exact_search {
    const ww_collection *collection;
    const ivf *index;
    const search_job *job;
    row_list *lists;             /* set for the lists to read */
    key_list order[QUERIES_MAX]; /* lists of each query, nearest first: first some, later all within reach */
    uint32_t *numbers;           /* lists to read; has room for all lists of all queries */
    int64_t starts[QUERIES_MAX + 1];
    int64_t read[QUERIES_MAX]; /* lists that each query reads first */
    int64_t *rows;             /* results of the second reading */
    float *scores;
} exact_search;

/* Returns true if this search should try the index. */
static bool is_due(ivf_exact_state *state)
{
    const int32_t wait = atomic_load_explicit(&state->wait, memory_order_relaxed);
    if (wait > 0)
        atomic_store_explicit(&state->wait, wait - 1, memory_order_relaxed);
    return wait <= 0;
}

static void remember(ivf_exact_state *state, bool helped)
{
    const int32_t pause = atomic_load_explicit(&state->pause, memory_order_relaxed);
    const int32_t next = helped ? 0 : (int32_t)min_i64(pause * 2 + 1, PAUSE_MAX);
    atomic_store_explicit(&state->pause, next, memory_order_relaxed);
    atomic_store_explicit(&state->wait, next, memory_order_relaxed);
}

static bool is_large_enough(const ww_collection *c)
{
    const ww_device *device = c->device;
    if (device->tuning.exact_lists != TUNING_AUTO)
        return device->tuning.exact_lists == TUNING_ALWAYS && c->store.rows_live > 0;
    return device->backend->on_host ? c->store.screen && c->store.rows_live >= ROWS_MIN
                                    : c->store.rows_live >= DEVICE_BYTES_MIN / canon_padded(c->dim);
}

bool ivf_exact_wants_lists(const ww_collection *c, int64_t query_count)
{
    return c->index && query_count <= QUERIES_MAX && is_large_enough(c) &&
           atomic_load_explicit(&c->index->exact.wait, memory_order_relaxed) <= 0;
}

bool ivf_exact_pays(const ww_collection *c, const search_job *job)
{
    return c->index && job->query_count <= QUERIES_MAX && is_large_enough(c) && ivf_reads_lists(c) && !job->mask &&
           !job->progress && !job->queries_on_device && is_due(&c->index->exact);
}

static ww_status take_memory(exact_search *s)
{
    const size_t nlist = (size_t)s->index->nlist, queries = (size_t)s->job->query_count, k = (size_t)s->job->k;
    const size_t bytes =
        nlist * sizeof *s->lists + queries * (k * (sizeof *s->rows + sizeof *s->scores)) + queries * nlist * sizeof *s->numbers;
    s->lists = memory_alloc(bytes);
    if (!s->lists)
        return memory_failed("an exact search by an index", bytes);
    s->rows = (int64_t *)(s->lists + nlist);
    s->scores = (float *)(s->rows + queries * k);
    s->numbers = (uint32_t *)(s->scores + queries * k);
    return WW_OK;
}

/* Adds a list to read as number `at`. Returns its number of rows. */
static int64_t put_list(const exact_search *s, int64_t at, uint32_t list)
{
    const ivf_list *from = &s->index->lists[list];
    s->lists[list] = (row_list){from->rows, from->count};
    s->numbers[at] = list;
    return from->count;
}

static ww_status read_lists(const exact_search *s, int64_t *rows, float *scores)
{
    const row_store *store = &s->collection->store;
    list_job job = {.search = *s->job,
                    .lists = s->lists,
                    .numbers = s->numbers,
                    .starts = s->starts,
                    .all_count = store->rows_live == store->rows_count,
                    .held = s->index->stale ? NULL : s->index->held};
    job.search.rows = rows;
    job.search.scores = scores;
    return s->collection->device->backend->rows_search_lists(s->collection->device, &job);
}

/* Finds the nearest lists of each query. */
static ww_status choose_first(exact_search *s)
{
    const ivf *index = s->index;
    const int64_t wanted = max_i64(FIRST_ROWS, (int64_t)FIRST_FACTOR * s->job->k);
    const int64_t known = (int64_t)((double)wanted / (double)index->rows * (double)index->nlist) + FIRST_AHEAD;
    int64_t count = 0;
    const ww_status status =
        ivf_order_nearest(index, s->job, known <= min_i64(index->nlist / 2, SEARCH_K_MAX) ? known : index->nlist, s->order);
    s->starts[0] = 0;
    for (int64_t q = 0; status == WW_OK && q < s->job->query_count; q++) {
        int64_t rows = 0;
        for (int64_t i = 0; i < s->order[q].count && rows < wanted; i++)
            rows += put_list(s, count++, canon_key_row(s->order[q].keys[i]));
        s->starts[q + 1] = count;
        s->read[q] = count - s->starts[q];
    }
    return status;
}

/* Adds the lists of query q that are within reach of its last hit. */
static ww_status find_reached(exact_search *s, const proof_query *query, const proof_extremes *extremes, int64_t q)
{
    const search_job *job = s->job;
    const float reach = proof_reach(s->index, query, extremes, job->scores[(q + 1) * job->k - 1]);
    if (s->order[q].count == s->index->nlist)
        return WW_OK;
    search_job one = *job;
    one.queries += q * job->query_stride;
    one.query_count = 1;
    key_list_free(&s->order[q]);
    s->order[q] = (key_list){0};
    return ivf_order_lists(s->index, &one, reach, &s->order[q]);
}

static bool is_excluded(const ivf *index, const proof_query *query, const key_list *order, int64_t i, float last)
{
    const proof_list near = {canon_key_row(order->keys[0]), canon_key_score(index->metric, order->keys[0])};
    const proof_list list = {canon_key_row(order->keys[i]), canon_key_score(index->metric, order->keys[i])};
    return proof_holds(index->metric, last, proof_bound(index, query, list.list, list.score)) ||
           proof_holds(index->metric, last, proof_plane_bound(index, query, near, list, last));
}

/* Finds the other lists that may have a row as good as the last hit; sets `rows` to their number of rows. A query with fewer
 * than k hits would need all lists, which is too many. */
static ww_status choose_rest(exact_search *s, const proof_extremes *extremes, int64_t *rows)
{
    const search_job *job = s->job;
    const int64_t rows_max = s->index->rows / WORTH_PART * job->query_count;
    int64_t count = 0;
    *rows = 0;
    for (int64_t q = 0; q < job->query_count && *rows <= rows_max; q++) {
        const proof_query query = proof_query_of(s->index, job->queries + q * job->query_stride);
        const int64_t last = (q + 1) * job->k - 1;
        const ww_status status = job->rows[last] >= 0 ? find_reached(s, &query, extremes, q) : WW_OK;
        if (status != WW_OK)
            return status;
        s->starts[q] = count;
        if (job->rows[last] < 0)
            *rows = rows_max + 1;
        for (int64_t i = s->read[q]; i < s->order[q].count && *rows <= rows_max; i++)
            if (!is_excluded(s->index, &query, &s->order[q], i, job->scores[last])) {
                *rows += put_list(s, count, canon_key_row(s->order[q].keys[i]));
                count++;
            }
    }
    s->starts[job->query_count] = count;
    return WW_OK;
}

static canon_key key_at(const search_job *job, const int64_t *rows, const float *scores, int64_t i)
{
    return rows[i] < 0 ? CANON_KEY_WORST : canon_make_key(job->metric, scores[i], (uint32_t)rows[i]);
}

/* Writes the k best of both readings of query q to the job's results. No row is in both. */
static void merge(exact_search *s, int64_t q)
{
    const search_job *job = s->job;
    const int64_t k = job->k;
    int64_t *rows = job->rows + q * k, *more_rows = s->rows + q * k;
    float *scores = job->scores + q * k, *more_scores = s->scores + q * k;
    int64_t a = 0, b = 0;
    while (a + b < k) /* counts how many of each are among the best */
        if (key_at(job, rows, scores, a) <= key_at(job, more_rows, more_scores, b))
            a++;
        else
            b++;
    for (int64_t to = k - 1; b > 0; to--) { /* from the end, so that nothing is overwritten before it is moved */
        const bool old = a > 0 && key_at(job, rows, scores, a - 1) > key_at(job, more_rows, more_scores, b - 1);
        rows[to] = old ? rows[--a] : more_rows[--b];
        scores[to] = old ? scores[a] : more_scores[b];
    }
}

static ww_status search_twice(exact_search *s, const proof_extremes *extremes, bool *done)
{
    int64_t rest = 0;
    ww_status status = choose_first(s);
    if (status == WW_OK)
        status = read_lists(s, s->job->rows, s->job->scores);
    if (status == WW_OK)
        status = choose_rest(s, extremes, &rest);
    *done = status == WW_OK && rest <= s->index->rows / WORTH_PART * s->job->query_count;
    if (!*done || rest == 0)
        return status;
    status = read_lists(s, s->rows, s->scores);
    for (int64_t q = 0; status == WW_OK && q < s->job->query_count; q++)
        merge(s, q);
    return status;
}

ww_status ivf_search_exactly(const ww_collection *c, const search_job *job, bool *done)
{
    search_stats none = {.certificate = INFINITY}, stats = none;
    search_job asked = *job;
    exact_search s = {.collection = c, .index = c->index, .job = &asked};
    *done = false;
    asked.stats = &stats;
    const proof_extremes extremes = proof_extremes_of(c->index);
    ww_status status = take_memory(&s);
    if (status == WW_OK)
        status = search_twice(&s, &extremes, done);
    if (status == WW_OK)
        remember(&c->index->exact, *done);
    if (status == WW_OK && *done && job->stats) {
        job->stats->rows_screened += stats.rows_screened;
        job->stats->rows_kept += stats.rows_kept;
        job->stats->rows_scored += stats.rows_scored;
        job->stats->repeated_queries += stats.repeated_queries;
        job->stats->certificate = fminf(job->stats->certificate, stats.certificate);
    }
    for (int64_t q = 0; q < job->query_count; q++)
        key_list_free(&s.order[q]);
    memory_free(s.lists);
    return status;
}
