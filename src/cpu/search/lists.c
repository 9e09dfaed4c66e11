/* Search of some lists of rows on the CPU: what an index reads.
 *
 * A list has its rows' codes one behind the other. Up to 64 of them are screened at a time as any other rows are (screen.c),
 * and what is kept is scored where it lies in the segments. Whether a row is live and admitted is looked up for kept rows only.
 * Until a query has k scores its rows are scored without a screen, and so are all rows of lists without codes.
 *
 * With many queries a query is one thread's. With few, threads share a query: each takes one block in as many as there are
 * threads, so that all begin with the nearest lists, and they tell each other their thresholds.
 *
 * Rows do not come in order here, so keys are compared as a whole: a row with an equal score and a smaller number enters.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "cpu/search/search_state.h"
#include "device/certificate.h"
#include "device/results.h"

enum {
    QUERIES_PER_WORKER = 2, /* fewer are shared by the workers */
    HERE_LIST_ROWS = 2048,  /* fewer rows are read before a worker has woken */
};

#define NO_LIST_THRESHOLD UINT32_MAX

/* A block of a list, and what a worker knows of its query. */
typedef struct list_worker {
    int8_t *codes; /* UNIT_ROWS x padded: of a block that is no whole strips, filled up with zeros */
    float values[3][UNIT_ROWS];
    const void *rows[UNIT_ROWS]; /* where kept rows lie, */
    float norms[UNIT_ROWS];      /* and their norms */
    const uint32_t *numbers;     /* of the block's rows */
    int32_t products[UNIT_ROWS];
    screen_limits limits; /* of query 0 of a group of which there is no other */
    uint32_t threshold;   /* that they are of */
    float *query;         /* padded */
    int8_t *query_codes;
    screen_vector vector;
    float query_norm;
    int32_t offset; /* of u8 rows: what products are short by */
    int64_t screened, kept, scored;
} list_worker;

typedef struct list_scan {
    const list_job *lists;
    const search_job *job;
    const instruction_set *isa;
    const screen_products *products; /* NULL: no screen */
    int32_t padded;
    int32_t shares; /* of a query */
    list_worker *workers;
    canon_key *heaps;             /* k for each query and share */
    _Atomic uint32_t *thresholds; /* for each query: the best k-th score of any share, as the upper half of a key */
} list_scan;

/* ---- a block of rows --------------------------------------------------------------------------------------------------------
 */

static const segment *segment_of_row(const search_job *job, int64_t row)
{
    int64_t low = 0, high = job->segment_count - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (job->segments[middle].first_row <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return &job->segments[low];
}

void cpu_codes_copy(const segment *from, int64_t row, int32_t dim, const row_codes *to, int64_t at)
{
    const int64_t padded = canon_padded(dim);
    const buffer *codes = row_type_is_bytes(from->type) ? &from->rows : &from->codes;
    memcpy(to->codes + at * padded, (const int8_t *)codes->data + row * padded, (size_t)padded);
    to->scales[at] = ((const float *)from->scales.data)[row];
    to->residuals[at] = ((const float *)from->residuals.data)[row];
    to->norms[at] = ((const float *)from->norms.data)[row];
}

/* Finds out where the rows in `rows` (bit r for row r of the block) lie. Returns those that are live and admitted. */
static uint64_t find_rows(const list_scan *s, list_worker *w, uint64_t rows)
{
    uint64_t found = 0;
    for (uint64_t left = rows; left != 0; left &= left - 1) {
        const int32_t r = __builtin_ctzll(left);
        const segment *seg = segment_of_row(s->job, w->numbers[r]);
        const int64_t at = (int64_t)w->numbers[r] - seg->first_row;
        if (!s->lists->all_count && !(admitted_rows(s->job, seg, at / 64) >> at % 64 & 1))
            continue;
        w->rows[r] = (const char *)seg->rows.data + at * s->padded * (int64_t)row_type_bytes(seg->type);
        w->norms[r] = ((const float *)seg->norms.data)[at];
        __builtin_prefetch(w->rows[r]);
        found |= UINT64_C(1) << r;
    }
    return found;
}

/* ---- what is kept -----------------------------------------------------------------------------------------------------------
 */

static void learn(const list_scan *s, list_worker *w, int64_t query, canon_key worst)
{
    const uint32_t mine = (uint32_t)(worst >> 32);
    uint32_t shared = atomic_load_explicit(&s->thresholds[query], memory_order_relaxed);
    while (mine < shared && !atomic_compare_exchange_weak_explicit(&s->thresholds[query], &shared, mine, memory_order_relaxed,
                                                                   memory_order_relaxed))
        continue;
    const uint32_t best = mine < shared ? mine : shared;
    if (s->products && best < w->threshold) {
        screen_limits_set(&w->limits, 0, s->job, w->vector, best);
        w->threshold = best;
    }
}

static float sum_of(const list_scan *s, const list_worker *w, const void *row)
{
    const bool l2 = s->job->metric == CANON_L2;
    if (s->job->type != ROW_F32)
        return s->isa->pair_typed(
            &(typed_pair){.type = s->job->type, .l2 = l2, .padded = s->padded, .query = w->query, .row = row});
    return l2 ? s->isa->squares(w->query, row, s->padded) : s->isa->dot(w->query, row, s->padded);
}

static void score(const list_scan *s, list_worker *w, int64_t query, canon_key *heap, uint64_t rows)
{
    const int32_t metric = s->job->metric, k = s->job->k;
    bool changed = false;
    for (uint64_t left = rows; left != 0; left &= left - 1) {
        const int32_t r = __builtin_ctzll(left);
        const float value = canon_score(metric, sum_of(s, w, w->rows[r]), w->query_norm, w->norms[r]);
        const canon_key key = canon_make_key(metric, value, w->numbers[r]);
        if (key < topk_worst(heap)) {
            topk_replace_worst(heap, k, key);
            changed = true;
        }
    }
    w->scored += __builtin_popcountll(rows);
    if (changed && topk_worst(heap) != CANON_KEY_WORST)
        learn(s, w, query, topk_worst(heap));
}

/* A block that ends within a strip, as whole strips: behind the last row the test sees copies of it. */
static void fill_block(const list_scan *s, list_worker *w, const int8_t **codes, screen_rows *block, int32_t count, int32_t end)
{
    const float *const from[] = {block->scales, block->residuals, block->norms};
    memcpy(w->codes, *codes, (size_t)count * (size_t)s->padded);
    for (int32_t v = 0; v < 3; v++)
        for (int32_t r = 0; r < end; r++)
            w->values[v][r] = from[v][r < count ? r : count - 1];
    *codes = w->codes;
    *block = (screen_rows){w->values[0], w->values[1], w->values[2]};
}

/* Which of `count` rows of a list from `first` on the screen keeps. */
static uint64_t screen_block(const list_scan *s, list_worker *w, const row_codes *list, int64_t first, int32_t count)
{
    const int32_t end = (count + SCREEN_STRIP - 1) / SCREEN_STRIP * SCREEN_STRIP;
    const int8_t *codes = list->codes + first * s->padded;
    screen_rows block = {list->scales + first, list->residuals + first, list->norms + first};
    if (end > count)
        fill_block(s, w, &codes, &block, count, end);
    s->products->one(w->query_codes, codes, end, s->padded, w->products);
    for (int32_t r = 0; w->offset != 0 && r < end; r++)
        w->products[r] += w->offset;
    const uint64_t rows = s->isa->filter_one(w->products, &block, end, &w->limits, 0) & UINT64_MAX >> (UNIT_ROWS - count);
    w->screened += count;
    w->kept += __builtin_popcountll(rows);
    return rows;
}

/* ---- a query ----------------------------------------------------------------------------------------------------------------
 */

static void take_query(const list_scan *s, list_worker *w, int64_t query)
{
    const float *from = s->job->queries + query * s->job->query_stride;
    w->query_norm = sqrtf(s->isa->store(w->query, from, s->job->dim));
    w->threshold = NO_LIST_THRESHOLD;
    w->offset = 0;
    if (!s->products)
        return;
    w->vector = s->isa->encode(w->query, s->padded, w->query_codes);
    w->vector.norm = w->query_norm;
    for (int32_t i = 0; row_type_offset(s->job->type) != 0 && i < s->padded; i++)
        w->offset += w->query_codes[i];
    w->offset *= row_type_offset(s->job->type);
}

/* One share of a query: every `shares`-th block of its lists. */
static void search_item(void *context, int64_t item, int32_t worker)
{
    const list_scan *s = context;
    list_worker *w = &s->workers[worker];
    const int64_t query = item / s->shares, share = item % s->shares;
    canon_key *heap = s->heaps + item * s->job->k;
    int64_t block = 0;
    topk_clear(heap, s->job->k);
    take_query(s, w, query);
    if (s->products && s->products->begin)
        s->products->begin();
    for (int64_t i = s->lists->starts[query]; i < s->lists->starts[query + 1]; i++) {
        const row_list *list = &s->lists->lists[s->lists->numbers[i]];
        for (int64_t first = 0; first < list->count; first += UNIT_ROWS, block++) {
            if (block % s->shares != share)
                continue;
            const int32_t count = (int32_t)min_i64(UNIT_ROWS, list->count - first);
            uint64_t rows = UINT64_MAX >> (UNIT_ROWS - count);
            w->numbers = list->rows + first;
            learn(s, w, query, topk_worst(heap));
            if (s->products && list->codes.codes && w->threshold != NO_LIST_THRESHOLD)
                rows = screen_block(s, w, &list->codes, first, count);
            score(s, w, query, heap, find_rows(s, w, rows));
        }
    }
    if (s->products && s->products->end)
        s->products->end();
}

/* ---- the whole search -------------------------------------------------------------------------------------------------------
 */

static ww_status take_memory(list_scan *s, int32_t workers, void **memory)
{
    const size_t queries = (size_t)s->job->query_count, k = (size_t)s->job->k, padded = (size_t)s->padded;
    const size_t all = round_up_size((size_t)workers * sizeof *s->workers, CACHE_LINE_BYTES);
    const size_t heaps = round_up_size(queries * (size_t)s->shares * k * sizeof *s->heaps, CACHE_LINE_BYTES);
    const size_t one = padded * sizeof(float) + padded + UNIT_ROWS * padded; /* a multiple of a cache line: padded is of 64 */
    const size_t bytes = all + heaps + (size_t)workers * one + queries * sizeof *s->thresholds;
    char *block = memory_alloc_aligned(bytes);
    if (!block)
        return memory_failed("a search of lists on cpu", bytes);
    *memory = block;
    s->workers = (list_worker *)(void *)block;
    memset(s->workers, 0, all);
    s->heaps = (canon_key *)(void *)(block + all);
    block += all + heaps;
    for (int32_t i = 0; i < workers; i++, block += one) {
        s->workers[i].query = (float *)(void *)block;
        s->workers[i].query_codes = (int8_t *)block + padded * sizeof(float);
        s->workers[i].codes = s->workers[i].query_codes + padded;
        memset(s->workers[i].codes, 0, UNIT_ROWS * padded);
    }
    s->thresholds = (_Atomic uint32_t *)(void *)block;
    for (size_t q = 0; q < queries; q++)
        atomic_init(&s->thresholds[q], NO_LIST_THRESHOLD);
    return WW_OK;
}

/* Merges the shares of a query and writes its results. False if they prove a defect of the screen. */
static bool write_query(const list_scan *s, int64_t query)
{
    const search_job *job = s->job;
    canon_key *best = s->heaps + query * s->shares * job->k;
    for (int32_t i = 1; i < s->shares; i++)
        topk_merge(best, best + (int64_t)i * job->k, job->k);
    topk_sort(best, job->k);
    results_from_keys(job->metric, job->k, best, job->rows + query * job->k, job->scores + query * job->k);
    const uint32_t threshold = atomic_load_explicit(&s->thresholds[query], memory_order_relaxed);
    if (!s->products || threshold == NO_LIST_THRESHOLD)
        return true;
    const canon_key least = (canon_key)threshold << 32 | UINT32_MAX;
    if (certificate_fails(least, best[job->k - 1]))
        return false;
    if (job->stats)
        job->stats->certificate = fminf(job->stats->certificate, certificate_margin(job->metric, least, best[job->k - 1]));
    return true;
}

static void add_counts(const list_scan *s, int32_t workers)
{
    search_stats *stats = s->job->stats;
    for (int32_t i = 0; stats && i < workers; i++) {
        stats->rows_screened += s->workers[i].screened;
        stats->rows_kept += s->workers[i].kept;
        stats->rows_scored += s->workers[i].scored;
    }
}

static int64_t rows_to_read(const list_job *job)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < job->starts[job->search.query_count]; i++)
        rows += job->lists[job->numbers[i]].count;
    return rows;
}

static ww_status search_lists(cpu_device *cpu, const list_job *job, bool screened)
{
    list_scan s = {.lists = job, .job = &job->search, .isa = cpu->isa, .padded = canon_padded(job->search.dim), .shares = 1};
    const bool here = rows_to_read(job) < HERE_LIST_ROWS;
    const int32_t workers = here ? 1 : pool_threads(cpu->pool);
    s.products = screened ? screen_products_choose(cpu->isa) : NULL;
    if (job->search.query_count < (int64_t)workers * QUERIES_PER_WORKER)
        s.shares = workers;
    void *memory = NULL;
    ww_status status = take_memory(&s, workers, &memory);
    if (status != WW_OK)
        return status;
    const int64_t items = job->search.query_count * s.shares;
    if (here)
        pool_run_here(items, search_item, &s);
    else
        (void)pool_run(cpu->pool, items, search_item, NULL, &s);
    add_counts(&s, workers);
    for (int64_t q = 0; status == WW_OK && q < job->search.query_count; q++) {
        if (write_query(&s, q))
            continue;
        list_job again = *job; /* a query whose results prove a defect is searched without a screen */
        again.search.queries += q * job->search.query_stride;
        again.search.query_count = 1;
        again.search.rows += q * job->search.k;
        again.search.scores += q * job->search.k;
        again.starts += q;
        if (job->search.stats)
            job->search.stats->repeated_queries++;
        status = search_lists(cpu, &again, false);
    }
    memory_free(memory);
    return status;
}

ww_status cpu_rows_search_lists(ww_device *device, const list_job *job)
{
    return search_lists((cpu_device *)device, job, job->search.screen && device->tuning.screen != TUNING_NEVER);
}
