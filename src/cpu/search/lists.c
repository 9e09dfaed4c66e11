/* Searches some lists of rows on the CPU, for an index.
 *
 * A list has its rows' codes in list order (list_codes.c). Gathering them from the segments makes one query over lists of short
 * rows three to five times slower (bench/results/index-copy.csv), so it is done only if there is not enough memory for the
 * copy. Up to 64 rows are screened at a time like any other rows (screen.c), and kept rows are scored in place. Only kept rows
 * are checked for being live and admitted. Until a query has k scores, its rows are scored without a screen.
 *
 * With few queries, threads share a query: with n threads each takes every n-th block, so that all start with the nearest
 * lists, and they share their thresholds. With many queries, a thread takes a set of queries: first it reads each query's
 * nearest list, which gives a threshold, and then all other lists, one by one, for all queries of the set that need them, so
 * that codes come from memory once for the set.
 *
 * Rows are not read in order here, so whole keys are compared: a row with an equal score and a smaller number is a better
 * result.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "cpu/search/search_state.h"
#include "device/certificate.h"
#include "device/results.h"

enum {
    QUERIES_PER_WORKER = 2, /* with fewer queries, workers share each query */
    HERE_LIST_ROWS = 2048,  /* fewer rows are read in less time than a worker needs to wake */
    SET_QUERIES_MAX = 256,
    SET_BYTES = 512 << 10, /* maximum for a set's queries, so that they stay in the second-level cache ... */
    SETS_PER_WORKER = 2,   /* ... except that every worker should have this many sets */
};

#define NO_LIST_THRESHOLD UINT32_MAX

/* A worker's state for one query. */
typedef struct list_query {
    int64_t number;
    canon_key *heap;
    screen_limits limits; /* of query 0 of a group without other queries */
    uint32_t threshold;   /* the threshold that `limits` are made from */
    float *query;         /* padded */
    int8_t *codes;
    screen_vector vector;
    float norm;
    int32_t offset; /* for u8 rows: what products with codes lack */
} list_query;

/* A block of a list, and the queries that a worker is handling. */
typedef struct list_worker {
    int8_t *codes;               /* codes of the block, UNIT_ROWS x padded */
    float values[3][UNIT_ROWS];  /* scales, residuals and norms of its rows */
    const void *rows[UNIT_ROWS]; /* the addresses of kept rows */
    float norms[UNIT_ROWS];      /* the norms of kept rows */
    const uint32_t *numbers;     /* of the block's rows */
    const int8_t *block_codes;   /* for whole strips */
    screen_rows block;
    int32_t count, end; /* rows of the block; the same rounded up to whole strips */
    int32_t products[UNIT_ROWS];
    list_query *queries; /* queries of a set */
    uint64_t *pairs;     /* pairs of lists and queries of a set, the list in the upper half */
    int64_t screened, kept, scored;
} list_worker;

typedef struct list_scan {
    const list_job *lists;
    const search_job *job;
    const instruction_set *isa;
    const screen_products *products; /* NULL: no screen */
    int32_t padded;
    int32_t shares; /* workers that share a query */
    int64_t set;    /* queries that a worker takes together; 1 if they are shared */
    int64_t pairs;  /* maximum for a set */
    list_worker *workers;
    canon_key *heaps;             /* k for each query and share */
    _Atomic uint32_t *thresholds; /* for each query: the best k-th score of any share, as the upper half of a key */
} list_scan;

/* ---- a block of rows ----------------------------------------------------------------------------------------------------- */

const segment *segment_of_row(const segment *segments, int64_t count, int64_t row)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (segments[middle].first_row <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return &segments[low];
}

/* Finds where the rows in `rows` (bit r for row r of the block) are stored. Returns those that are live and admitted. */
static uint64_t find_rows(const list_scan *s, list_worker *w, uint64_t rows)
{
    uint64_t found = 0;
    for (uint64_t left = rows; left != 0; left &= left - 1) {
        const int32_t r = __builtin_ctzll(left);
        const segment *seg = segment_of_row(s->job->segments, s->job->segment_count, w->numbers[r]);
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

/* ---- kept rows ----------------------------------------------------------------------------------------------------------- */

static void learn(const list_scan *s, list_query *q)
{
    const uint32_t mine = (uint32_t)(topk_worst(q->heap) >> 32);
    _Atomic uint32_t *known = &s->thresholds[q->number];
    uint32_t shared = atomic_load_explicit(known, memory_order_relaxed);
    while (mine < shared &&
           !atomic_compare_exchange_weak_explicit(known, &shared, mine, memory_order_relaxed, memory_order_relaxed))
        continue;
    const uint32_t best = mine < shared ? mine : shared;
    if (s->products && best < q->threshold) {
        screen_limits_set(&q->limits, 0, s->job, q->vector, best);
        q->threshold = best;
    }
}

static float sum_of(const list_scan *s, const list_query *q, const void *row)
{
    const bool l2 = s->job->metric == CANON_L2;
    if (s->job->type != ROW_F32)
        return s->isa->pair_typed(
            &(typed_pair){.type = s->job->type, .l2 = l2, .padded = s->padded, .query = q->query, .row = row});
    return l2 ? s->isa->squares(q->query, row, s->padded) : s->isa->dot(q->query, row, s->padded);
}

static void score(const list_scan *s, list_worker *w, list_query *q, uint64_t rows)
{
    const int32_t metric = s->job->metric, k = s->job->k;
    bool changed = false;
    for (uint64_t left = rows; left != 0; left &= left - 1) {
        const int32_t r = __builtin_ctzll(left);
        const float value = canon_score(metric, sum_of(s, q, w->rows[r]), q->norm, w->norms[r]);
        const canon_key key = canon_make_key(metric, value, w->numbers[r]);
        if (key < topk_worst(q->heap)) {
            topk_replace_worst(q->heap, k, key);
            changed = true;
        }
    }
    w->scored += __builtin_popcountll(rows);
    if (changed && topk_worst(q->heap) != CANON_KEY_WORST)
        learn(s, q);
}

/* Gathers what the screen reads of the block. Rows are in ascending order, so their segments are, too. */
static void gather_block(const list_scan *s, list_worker *w)
{
    const int64_t padded = s->padded;
    const segment *seg = segment_of_row(s->job->segments, s->job->segment_count, w->numbers[0]),
                  *last = s->job->segments + s->job->segment_count - 1;
    const int8_t *sources[UNIT_ROWS];
    for (int32_t r = 0; r < w->count; r++) {
        while (seg < last && seg[1].first_row <= w->numbers[r])
            seg++;
        const int64_t at = (int64_t)w->numbers[r] - seg->first_row;
        const buffer *codes = row_type_is_bytes(seg->type) ? &seg->rows : &seg->codes;
        sources[r] = (const int8_t *)codes->data + at * padded;
        for (int64_t i = 0; i < padded; i += CACHE_LINE_BYTES)
            __builtin_prefetch(sources[r] + i);
        w->values[0][r] = ((const float *)seg->scales.data)[at];
        w->values[1][r] = ((const float *)seg->residuals.data)[at];
        w->values[2][r] = ((const float *)seg->norms.data)[at];
    }
    for (int32_t r = 0; r < w->count; r++)
        memcpy(w->codes + r * padded, sources[r], (size_t)padded);
}

/* The same from the list's own codes, for a block that ends inside a strip. */
static void copy_block(const list_scan *s, list_worker *w, const list_codes *from, int64_t first)
{
    const float *const values[] = {from->scales, from->residuals, from->norms};
    memcpy(w->codes, from->codes + first * s->padded, (size_t)w->count * (size_t)s->padded);
    for (int32_t v = 0; v < 3; v++)
        memcpy(w->values[v], values[v] + first, (size_t)w->count * sizeof *w->values[v]);
}

/* Selects the rows of list `number` from `first` on. */
static void take_block(const list_scan *s, list_worker *w, uint32_t number, int64_t first)
{
    const row_list *list = &s->lists->lists[number];
    const cpu_lists *held = (const cpu_lists *)s->lists->held;
    w->count = (int32_t)min_i64(UNIT_ROWS, list->count - first);
    w->end = (w->count + SCREEN_STRIP - 1) / SCREEN_STRIP * SCREEN_STRIP;
    w->numbers = list->rows + first;
    if (!s->products)
        return;
    w->block_codes = w->codes;
    w->block = (screen_rows){w->values[0], w->values[1], w->values[2]};
    if (held && w->count == w->end) {
        const list_codes *codes = &held->lists[number];
        w->block_codes = codes->codes + first * s->padded;
        w->block = (screen_rows){codes->scales + first, codes->residuals + first, codes->norms + first};
        return;
    }
    if (held)
        copy_block(s, w, &held->lists[number], first);
    else
        gather_block(s, w);
    for (int32_t v = 0; v < 3; v++) /* past the last row the test reads copies of it */
        for (int32_t r = w->count; r < w->end; r++)
            w->values[v][r] = w->values[v][w->count - 1];
}

/* Finds the rows of the block that the screen keeps. */
static uint64_t screen_block(const list_scan *s, list_worker *w, const list_query *q)
{
    s->products->one(q->codes, w->block_codes, w->end, s->padded, w->products);
    for (int32_t r = 0; q->offset != 0 && r < w->end; r++)
        w->products[r] += q->offset;
    const uint64_t rows =
        s->isa->filter_one(w->products, &w->block, w->end, &q->limits, 0) & UINT64_MAX >> (UNIT_ROWS - w->count);
    w->screened += w->count;
    w->kept += __builtin_popcountll(rows);
    return rows;
}

static void read_block(const list_scan *s, list_worker *w, list_query *q)
{
    uint64_t rows = UINT64_MAX >> (UNIT_ROWS - w->count);
    learn(s, q);
    if (s->products && q->threshold != NO_LIST_THRESHOLD)
        rows = screen_block(s, w, q);
    if (rows != 0)
        score(s, w, q, find_rows(s, w, rows));
}

/* ---- a query, and a set of them ------------------------------------------------------------------------------------------ */

static void take_query(const list_scan *s, list_query *q, int64_t number, canon_key *heap)
{
    q->number = number;
    q->heap = heap;
    topk_clear(heap, s->job->k);
    q->norm = sqrtf(s->isa->store(q->query, s->job->queries + number * s->job->query_stride, s->job->dim));
    q->threshold = NO_LIST_THRESHOLD;
    q->offset = 0;
    if (!s->products)
        return;
    q->vector = s->isa->encode(q->query, s->padded, q->codes);
    q->vector.norm = q->norm;
    for (int32_t i = 0; row_type_offset(s->job->type) != 0 && i < s->padded; i++)
        q->offset += q->codes[i];
    q->offset *= row_type_offset(s->job->type);
}

/* One share of a query: every `shares`-th block of its lists. */
static void search_share(const list_scan *s, list_worker *w, int64_t query, int64_t share)
{
    const list_job *job = s->lists;
    int64_t block = 0;
    take_query(s, w->queries, query, s->heaps + (query * s->shares + share) * s->job->k);
    for (int64_t i = job->starts[query]; i < job->starts[query + 1]; i++) {
        const row_list *list = &job->lists[job->numbers[i]];
        for (int64_t first = 0; first < list->count; first += UNIT_ROWS, block++) {
            if (block % s->shares != share)
                continue;
            take_block(s, w, job->numbers[i], first);
            read_block(s, w, w->queries);
        }
    }
}

/* Reads a list for all pairs of the set that contain it. */
static void read_pairs(const list_scan *s, list_worker *w, const uint64_t *pairs, int64_t count)
{
    const row_list *list = &s->lists->lists[pairs[0] >> 32];
    for (int64_t first = 0; first < list->count; first += UNIT_ROWS) {
        take_block(s, w, (uint32_t)(pairs[0] >> 32), first);
        for (int64_t i = 0; i < count; i++)
            read_block(s, w, &w->queries[(uint32_t)pairs[i]]);
    }
}

/* Searches queries first .. end - 1. */
static void search_set(const list_scan *s, list_worker *w, int64_t first, int64_t end)
{
    const list_job *job = s->lists;
    int64_t count = 0;
    for (int64_t n = first; n < end; n++) {
        const int64_t begin = job->starts[n];
        take_query(s, &w->queries[n - first], n, s->heaps + n * s->job->k);
        for (int64_t i = begin; i < job->starts[n + 1]; i++) {
            const uint64_t pair = (uint64_t)job->numbers[i] << 32 | (uint64_t)(n - first);
            if (i == begin)
                read_pairs(s, w, &pair, 1);
            else
                w->pairs[count++] = pair;
        }
    }
    keys_sort(w->pairs, count);
    for (int64_t i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count && w->pairs[i + same] >> 32 == w->pairs[i] >> 32;)
            same++;
        read_pairs(s, w, w->pairs + i, same);
    }
}

static void search_item(void *context, int64_t item, int32_t worker)
{
    const list_scan *s = context;
    list_worker *w = &s->workers[worker];
    if (s->products && s->products->begin)
        s->products->begin();
    if (s->shares > 1)
        search_share(s, w, item / s->shares, item % s->shares);
    else
        search_set(s, w, item * s->set, min_i64((item + 1) * s->set, s->job->query_count));
    if (s->products && s->products->end)
        s->products->end();
}

/* ---- the whole search ---------------------------------------------------------------------------------------------------- */

/* Chooses how many queries are a set, and how many pairs it can have. */
static void choose_sets(list_scan *s, int32_t workers)
{
    const int64_t queries = s->job->query_count, bytes = (int64_t)sizeof(list_query) + 5 * (int64_t)s->padded;
    const int64_t fair = divide_up_i64(queries, (int64_t)workers * SETS_PER_WORKER);
    s->set = s->shares > 1 ? 1 : max_i64(min_i64(min_i64(SET_QUERIES_MAX, SET_BYTES / bytes), fair), 1);
    s->pairs = 0;
    for (int64_t first = 0; s->shares == 1 && first < queries; first += s->set)
        s->pairs = max_i64(s->pairs, s->lists->starts[min_i64(first + s->set, queries)] - s->lists->starts[first]);
}

/* Takes `bytes` from a block and aligns what follows. */
static void *cut(char **block, size_t bytes)
{
    char *const begin = *block;
    *block += round_up_size(bytes, CACHE_LINE_BYTES);
    return begin;
}

static void give_worker(const list_scan *s, list_worker *w, char **block)
{
    const size_t padded = (size_t)s->padded, set = (size_t)s->set;
    w->queries = cut(block, set * sizeof *w->queries);
    w->pairs = cut(block, (size_t)s->pairs * sizeof *w->pairs);
    w->codes = cut(block, UNIT_ROWS * padded);
    memset(w->codes, 0, UNIT_ROWS * padded);
    float *queries = cut(block, set * padded * sizeof *queries);
    int8_t *codes = cut(block, set * padded);
    for (size_t i = 0; i < set; i++) {
        w->queries[i].query = queries + i * padded;
        w->queries[i].codes = codes + i * padded;
    }
}

static ww_status take_memory(list_scan *s, int32_t workers, void **memory)
{
    const size_t queries = (size_t)s->job->query_count, k = (size_t)s->job->k, padded = (size_t)s->padded;
    const size_t all = (size_t)workers * sizeof *s->workers, heaps = queries * (size_t)s->shares * k * sizeof *s->heaps;
    const size_t set = (size_t)s->set * (sizeof(list_query) + padded * (sizeof(float) + 1));
    const size_t one = set + (size_t)s->pairs * sizeof(uint64_t) + UNIT_ROWS * padded + 5 * (size_t)CACHE_LINE_BYTES;
    const size_t bytes = all + heaps + (size_t)workers * one + queries * sizeof *s->thresholds + 3 * (size_t)CACHE_LINE_BYTES;
    char *block = memory_alloc_aligned(bytes);
    if (!block)
        return memory_failed("a search of lists on cpu", bytes);
    *memory = block;
    s->workers = cut(&block, all);
    memset(s->workers, 0, all);
    s->heaps = cut(&block, heaps);
    for (int32_t i = 0; i < workers; i++)
        give_worker(s, &s->workers[i], &block);
    s->thresholds = cut(&block, queries * sizeof *s->thresholds);
    for (size_t q = 0; q < queries; q++)
        atomic_init(&s->thresholds[q], NO_LIST_THRESHOLD);
    return WW_OK;
}

/* Merges the shares of a query and writes its results. Returns false if they prove a defect of the screen. */
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
    const canon_key worst = (canon_key)threshold << 32 | UINT32_MAX;
    if (certificate_fails(worst, best[job->k - 1]))
        return false;
    if (job->stats)
        job->stats->certificate = fminf(job->stats->certificate, certificate_margin(job->metric, worst, best[job->k - 1]));
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
    choose_sets(&s, workers);
    void *memory = NULL;
    ww_status status = take_memory(&s, workers, &memory);
    if (status != WW_OK)
        return status;
    const int64_t items = s.shares > 1 ? job->search.query_count * s.shares : divide_up_i64(job->search.query_count, s.set);
    if (here)
        pool_run_here(items, search_item, &s);
    else if (!pool_run(cpu->pool, items, search_item, cancel_given() ? cancel_watch : NULL, &s))
        status = ww_fail(WW_CANCELLED, "the search was cancelled");
    add_counts(&s, workers);
    for (int64_t q = 0; status == WW_OK && q < job->search.query_count; q++) {
        if (write_query(&s, q))
            continue;
        list_job again = *job; /* a query whose results prove a defect is searched again without a screen */
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
