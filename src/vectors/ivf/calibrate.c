/* Recall on request: which lists a query must read to find h of its k nearest rows, learnt from queries whose nearest rows are
 * known.
 *
 * For each such query the exact search finds the true neighbours, and the order of the query's lists tells how many lists must
 * be read to find h of them. Two kinds of rules are learnt for every h, and the kind that reads fewer lists is kept: on average
 * over all h, or for the recall that the caller names. Within one kind, a rule for a larger h never reads fewer lists:
 *
 *   nprobe   the nearest lists, the same number for every query
 *   factor   the lists whose centroid is at most this many times as far away as the nearest one: few if a query is near a
 *            centroid, more if it is between several. Not for dot, where scores are not distances
 *
 * A rule satisfies all n queries except the m worst. m is the largest number for which a rule that fails for 1% of all queries
 * would fail for m or fewer of n with a probability of at most 5%: 0 for 299 queries, 4 for 1000.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arithmetic/row_types.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/ivf/ivf.h"

enum {
    QUERIES_MIN = 299, /* 0.99^299 < 0.05 */
    QUERIES_DEFAULT = 1000,
    QUERIES_MAX = 1 << 20,
    K_DEFAULT = 10,
    ROUND_KEYS = 1 << 22, /* scores of queries and centroids that are kept at a time */
};

STRUCT_INIT(ww_calibrate_config, {0})

/* The lists that a query must read to find its neighbours, nearest first. */
typedef struct need {
    int64_t nprobe;
    double factor;
} need;

typedef struct calibration {
    ww_collection *collection;
    ivf *index;
    ww_calibrate_config config; /* with all defaults filled in */
    float *drawn;               /* queries that were drawn from the rows, or NULL */
    int64_t *numbers;           /* numbers of the drawn rows */
    int64_t *truth;             /* k + 1 rows for each query of a round */
    float *scores;
    uint32_t *lists;           /* of each row of the collection */
    key_list *order;           /* the lists of each query of a round */
    uint32_t *places;          /* position of each list in the order of a query */
    need *needs;               /* of each query for each h: query_count x k */
    double *factors, *nprobes; /* of all queries for one h */
    float *ratios;             /* of the first QUERIES_MIN queries: how much farther away each list is than the nearest */
    ivf_rule *rules;           /* k of each kind; at the end the first k are the ones to use */
    int64_t round_queries;
} calibration;

/* How many of k neighbours a recall asks for. */
static int32_t hits_of(float recall, int32_t k)
{
    const int32_t hits = (int32_t)ceil((double)recall * k - 1e-6); /* the float 0.95f differs slightly from 0.95 */
    return max_i32(min_i32(hits, k), 1);
}

ivf_rule ivf_rule_of(const ivf *index, const ww_query *query)
{
    if (query->nprobe > 0)
        return (ivf_rule){.nprobe = query->nprobe};
    if (query->recall >= 1.0f)
        return (ivf_rule){.nprobe = index->nlist};
    return index->calibration.rules[hits_of(query->recall, index->calibration.k) - 1];
}

/* ---- checks and memory --------------------------------------------------------------------------------------------------- */

static ww_status check_config(const ww_collection *c, ww_calibrate_config *config)
{
    static const char function[] = "ww_collection_calibrate";
    const int64_t rows = c->store.rows_live;
    const int32_t dim = c->dim;
    if (config->query_count == 0)
        config->query_count = config->queries || rows >= QUERIES_DEFAULT ? QUERIES_DEFAULT : QUERIES_MIN;
    if (config->query_count < QUERIES_MIN || config->query_count > QUERIES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: query_count is %lld; it must be %d to %d", function,
                       (long long)config->query_count, QUERIES_MIN, QUERIES_MAX);
    if (!config->queries && config->query_count > rows)
        return ww_fail(WW_OUT_OF_RANGE, "%s: %lld queries cannot be drawn from %lld rows; give queries", function,
                       (long long)config->query_count, (long long)rows);
    if (config->query_stride == 0)
        config->query_stride = dim;
    if (config->query_stride < dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_stride is %lld; it must be at least dim, %d", function,
                       (long long)config->query_stride, dim);
    if (config->k == 0)
        config->k = K_DEFAULT;
    if (config->k < 1 || config->k > CALIBRATION_K_MAX || config->k >= rows)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; it must be 1 to %lld", function, config->k,
                       (long long)min_i64(CALIBRATION_K_MAX, rows - 1));
    if (!(config->recall >= 0.0f && config->recall <= 1.0f))
        return ww_fail(WW_OUT_OF_RANGE, "%s: recall is %g; it must be 0 to 1", function, (double)config->recall);
    return WW_OK;
}

static ww_status check_queries(const ww_collection *c, const ww_calibrate_config *config)
{
    char fault[VECTOR_FAULT_BYTES];
    for (int64_t q = 0; config->queries && q < config->query_count; q++) {
        const float *query = config->queries + q * config->query_stride;
        if (!vector_is_finite(query, c->dim))
            return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': query %lld: %s", c->name, (long long)q,
                           vector_fault(query, c->dim, fault));
    }
    return WW_OK;
}

static ww_status take_memory(calibration *m)
{
    const ww_calibrate_config *config = &m->config;
    const ww_collection *c = m->collection;
    const size_t queries = (size_t)config->query_count, k = (size_t)config->k, rows = (size_t)c->store.rows_count;
    const size_t round = (size_t)m->round_queries, nlist = (size_t)m->index->nlist, dim = (size_t)c->dim;
    const size_t drawn = config->queries ? 0 : queries;
    m->drawn = memory_alloc(drawn * dim * sizeof *m->drawn);
    m->numbers = memory_alloc((drawn + (size_t)c->store.rows_live) * sizeof *m->numbers);
    m->truth = memory_alloc(round * (k + 1) * sizeof *m->truth);
    m->scores = memory_alloc(round * (k + 1) * sizeof *m->scores);
    m->lists = memory_alloc(rows * sizeof *m->lists);
    m->order = memory_alloc_zeroed(round, sizeof *m->order);
    m->places = memory_alloc(nlist * sizeof *m->places);
    m->needs = memory_alloc(queries * k * sizeof *m->needs);
    m->factors = memory_alloc(2 * queries * sizeof *m->factors);
    m->ratios = memory_alloc(QUERIES_MIN * nlist * sizeof *m->ratios);
    m->rules = memory_alloc(2 * k * sizeof *m->rules);
    if (!m->drawn || !m->numbers || !m->truth || !m->scores || !m->lists || !m->order || !m->places || !m->needs ||
        !m->factors || !m->ratios || !m->rules)
        return memory_failed("calibrating an index", rows * sizeof *m->lists + queries * k * sizeof *m->needs);
    m->nprobes = m->factors + queries;
    return WW_OK;
}

static void forget_order(const calibration *m)
{
    for (int64_t q = 0; m->order && q < m->round_queries; q++) {
        key_list_free(&m->order[q]);
        m->order[q] = (key_list){0};
    }
}

static void free_memory(calibration *m)
{
    forget_order(m);
    memory_free(m->rules);
    memory_free(m->ratios);
    memory_free(m->factors);
    memory_free(m->needs);
    memory_free(m->places);
    memory_free(m->order);
    memory_free(m->lists);
    memory_free(m->scores);
    memory_free(m->truth);
    memory_free(m->numbers);
    memory_free(m->drawn);
}

/* ---- queries ------------------------------------------------------------------------------------------------------------- */

static ww_status draw_queries(calibration *m)
{
    const ww_collection *c = m->collection;
    int64_t *live = m->numbers + (m->config.queries ? 0 : m->config.query_count), count = 0;
    if (m->config.queries)
        return WW_OK;
    for (int64_t row = store_next(&c->store, -1); row >= 0; row = store_next(&c->store, row))
        live[count++] = row;
    ivf_choose(m->config.seed, live, count, m->config.query_count, m->numbers);
    return ivf_read_rows(c, m->numbers, m->config.query_count, m->drawn);
}

static void find_lists(const calibration *m)
{
    for (int64_t l = 0; l < m->index->nlist; l++)
        for (int64_t i = 0; i < m->index->lists[l].count; i++)
            m->lists[m->index->lists[l].rows[i]] = (uint32_t)l;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Finds what query `q` of the round, number `number` of all queries, needs. */
static void measure_query(const calibration *m, int64_t q, int64_t number)
{
    const int32_t k = m->config.k;
    const key_list *order = &m->order[q];
    const int64_t *truth = m->truth + q * (k + 1);
    uint32_t wanted[CALIBRATION_K_MAX];
    int32_t found = 0;
    for (int64_t i = 0; i < order->count; i++)
        m->places[canon_key_row(order->keys[i])] = (uint32_t)i;
    for (int32_t i = 0; i <= k && found < k; i++)
        if (truth[i] >= 0 && (m->config.queries || truth[i] != m->numbers[number]))
            wanted[found++] = m->places[m->lists[truth[i]]];
    qsort(wanted, (size_t)found, sizeof *wanted, by_number);
    const double nearest = ivf_distance(m->index, order->keys[0]);
    for (int64_t i = 0; number < QUERIES_MIN && i < order->count; i++)
        m->ratios[number * m->index->nlist + i] = (float)(ivf_distance(m->index, order->keys[i]) / nearest);
    for (int32_t h = 0; h < k; h++) {
        /* With fewer rows than k, reading all lists finds them. */
        const int64_t last = found > 0 ? wanted[min_i32(h, found - 1)] : 0;
        const double distance = ivf_distance(m->index, order->keys[last]);
        const double factor = m->index->metric == CANON_DOT ? INFINITY
                              : last == 0                   ? 1.0
                              : nearest > 0.0               ? distance / nearest * (1.0 + 0x1p-40)
                                                            : INFINITY;
        m->needs[number * k + h] = (need){last + 1, factor};
    }
}

static ww_status measure_round(calibration *m, int64_t first)
{
    const ww_collection *c = m->collection;
    const float *queries = m->config.queries ? m->config.queries : m->drawn;
    const int64_t stride = m->config.queries ? m->config.query_stride : c->dim;
    search_job job = {.metric = (int32_t)c->metric,
                      .dim = c->dim,
                      .type = (int32_t)c->type,
                      .segments = c->store.segments,
                      .segment_count = store_segments_used(&c->store),
                      .queries = queries + first * stride,
                      .query_count = min_i64(m->round_queries, m->config.query_count - first),
                      .query_stride = stride,
                      .k = m->config.k + 1,
                      .rows = m->truth,
                      .scores = m->scores,
                      .screen = c->store.screen};
    ww_status status = c->device->backend->rows_search(c->device, &job);
    if (status == WW_OK)
        status = ivf_order_lists(m->index, &job, ivf_all_lists(m->index), m->order);
    for (int64_t q = 0; status == WW_OK && q < job.query_count; q++)
        measure_query(m, q, first + q);
    forget_order(m);
    return status;
}

/* ---- rules --------------------------------------------------------------------------------------------------------------- */

/* Returns how many of n queries may fail. */
static int64_t failures_allowed(int64_t n)
{
    double term = 1.0; /* term of the binomial distribution for 0 failures, then for 1, and so on */
    for (int64_t i = 0; i < n; i++)
        term *= 0.99;
    double sum = term;
    int64_t allowed = 0;
    while (sum <= 0.05 && term > 0.0) {
        term *= (double)(n - allowed) / (double)(allowed + 1) * (0.01 / 0.99);
        sum += term;
        allowed++;
    }
    return max_i64(allowed - 1, 0);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the mean number of lists that the queries of `ratios` read with a factor. A query exactly at a centroid has ratios
 * that are NaN and reads all lists. */
static double lists_by_factor(const calibration *m, double factor)
{
    const int64_t nlist = m->index->nlist;
    int64_t lists = 0;
    for (int64_t q = 0; q < QUERIES_MIN; q++)
        for (int64_t i = 0; i < nlist && !((double)m->ratios[q * nlist + i] > factor); i++)
            lists++;
    return (double)lists / QUERIES_MIN;
}

/* Learns the rules of both kinds for h neighbours. Returns the number of lists that the factor reads, infinity if there is
 * none. */
static double learn_rules(const calibration *m, int32_t h, ivf_rule *by_nprobe, ivf_rule *by_factor)
{
    const int64_t n = m->config.query_count, worst = n - 1 - failures_allowed(n);
    const int32_t k = m->config.k;
    for (int64_t q = 0; q < n; q++) {
        m->nprobes[q] = (double)m->needs[q * k + h].nprobe;
        m->factors[q] = m->needs[q * k + h].factor;
    }
    qsort(m->nprobes, (size_t)n, sizeof *m->nprobes, by_value);
    qsort(m->factors, (size_t)n, sizeof *m->factors, by_value);
    const double factor = m->factors[worst], lists = isinf(factor) ? INFINITY : lists_by_factor(m, factor);
    *by_nprobe = (ivf_rule){.nprobe = (int64_t)m->nprobes[worst]};
    if (!isinf(lists))
        *by_factor = (ivf_rule){.nprobe = (int64_t)ceil(lists), .factor = factor};
    return lists;
}

static void choose_rules(const calibration *m)
{
    const int32_t k = m->config.k;
    const int32_t named = m->config.recall > 0.0f ? hits_of(m->config.recall, k) : 0;
    ivf_rule *by_factor = m->rules + k;
    double nprobes = 0.0, lists = 0.0, all_lists = 0.0;
    for (int32_t h = 0; h < k; h++) {
        const double read = learn_rules(m, h, &m->rules[h], &by_factor[h]);
        all_lists += read;
        if (named == 0 || named == h + 1) {
            lists += read;
            nprobes += (double)m->rules[h].nprobe;
        }
    }
    if (lists < nprobes && !isinf(all_lists)) /* there is a factor for every h */
        memcpy(m->rules, by_factor, (size_t)k * sizeof *by_factor);
}

static ww_status calibrate(calibration *m)
{
    ivf_progress progress = {.told = m->config.progress, .user = m->config.progress_user, .total = m->config.query_count};
    m->round_queries = min_i64(max_i64(ROUND_KEYS / m->index->nlist, 1), m->config.query_count);
    ww_status status = take_memory(m);
    if (status == WW_OK)
        status = draw_queries(m);
    if (status == WW_OK)
        find_lists(m);
    for (int64_t first = 0; status == WW_OK && first < m->config.query_count; first += m->round_queries) {
        status = ivf_progress_add(&progress, first > 0 ? m->round_queries : 0);
        if (status == WW_OK)
            status = measure_round(m, first);
    }
    if (status == WW_OK)
        choose_rules(m);
    return status;
}

ww_status ivf_calibrate(ww_collection *c, const ww_calibrate_config *config, ivf_calibration *learnt)
{
    calibration m = {.collection = c, .index = c->index, .config = *config};
    ww_status status = check_config(c, &m.config);
    if (status == WW_OK)
        status = check_queries(c, &m.config);
    if (status == WW_OK)
        status = calibrate(&m);
    if (status == WW_OK) {
        *learnt = (ivf_calibration){.k = m.config.k,
                                    .queries = m.config.query_count,
                                    .time = (int64_t)time(NULL),
                                    .rows_added = m.index->rows_added,
                                    .rows_live = c->store.rows_live,
                                    .rules = m.rules};
        m.rules = NULL;
    }
    free_memory(&m);
    return status;
}

ww_status memory_calibrate(ww_collection *c, const ww_calibrate_config *config)
{
    ivf_calibration learnt = {0};
    collection_lock_write(c);
    const ww_status status = c->index ? ivf_calibrate(c, config, &learnt) : ivf_not_found(c, "ww_collection_calibrate");
    if (status == WW_OK && c->index) {
        memory_free(c->index->calibration.rules);
        c->index->calibration = learnt;
    }
    collection_unlock(c);
    return status;
}

ww_status ww_collection_calibrate(ww_collection *collection, const ww_calibrate_config *config)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_calibrate";
    ww_calibrate_config checked = {0};
    ww_status status = collection_check(collection, function);
    if (status == WW_OK && config)
        status = struct_read(&checked, sizeof checked, config, function, "ww_calibrate_config");
    return status == WW_OK ? collection->operations->calibrate(collection, &checked) : status;
}
