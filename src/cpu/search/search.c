/* Search on the CPU: every worker scores blocks of rows for blocks of queries and keeps its own k best for each query; at the
 * end they are merged. How a word of 64 rows is scored:
 *
 *   scan.c         every row: in a collection without codes, below SCREEN_ROWS rows, and until a query has a threshold
 *   screen.c       by codes, then exactly for rows that the threshold does not exclude: one query at a time, or groups of a
 *                  batch
 *   screen_lead.c  before that, by the first 64 codes, if rows are long and that excludes enough
 *
 * A single query is bound by memory: all cores read the rows once, in order. Many queries are bound by arithmetic: a block of
 * rows stays in the cache while it is scored for a block of queries. Both are the same loops with other numbers. All memory is
 * allocated before the first row is read.
 */
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "cpu/search/range.h"
#include "device/results.h"

enum {
    ROWS_CACHED_BYTES = 128 << 10,  /* rows that are scored for all queries of a block ... */
    QUERIES_CACHED_BYTES = 1 << 19, /* ... and these queries: together they stay in a second-level cache of 1 MiB */
    HEAPS_BYTES = 64 << 20,         /* results of one round; more queries take several rounds */
    ITEM_BYTES = 1 << 20,     /* rows of one item: long enough to be read as one stream, short enough for a quick cancel */
    ITEMS_PER_WORKER = 8,     /* minimum, so that the last worker does not run long after the others */
    HERE_PRODUCTS = 1 << 19,  /* a search of fewer products ends before a worker would have woken */
    SCREEN_ROWS = 128,        /* for fewer rows, encoding a query takes too long */
    SCREEN_SMALL_BATCH = 4,   /* from this many queries on, blocks are whole groups */
    SAMPLE_ROWS = 512,        /* sampled rows for any k, ... */
    SAMPLE_ROWS_FOR_ONE = 16, /* ... plus this many for each of the k results, ... */
    SAMPLE_PART = 16,         /* ... but at most this fraction of all rows */
};

static void scan_item(void *context, int64_t item, int32_t worker)
{
    const scan *s = context;
    const search_job *job = s->job;
    const int32_t begin = (int32_t)(item / s->row_items) * s->block_queries;
    const int32_t end = (int32_t)min_i64(begin + s->block_queries, s->query_count);
    int64_t word = item % s->row_items * s->item_words;
    const int64_t word_end = min_i64(word + s->item_words, s->words);
    s->counts[worker].looked_at = s->counts[worker].likely = 0;
    if (s->screen)
        screen_begin_item(s, worker, begin, end);
    for (int64_t number = segment_of_word(s, word); word < word_end; number++) {
        const segment *seg = &job->segments[number];
        const int64_t first = s->first_words[number];
        const int64_t last = min_i64(first + divide_up_i64(seg->count, 64), word_end);
        for (; word < last; word++) {
            if (s->screen)
                screen_word(s, worker, seg, word - first, begin, end);
            else
                scan_word(s, worker, seg, word - first, begin, end);
        }
    }
    if (s->screen)
        screen_end_item(s);
}

/* ---- a round of queries -------------------------------------------------------------------------------------------------- */

/* Packs the queries of a group. */
static void pack_queries(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const scan *s = context;
    const int32_t begin = (int32_t)item * GROUP, end = (int32_t)min_i64(begin + GROUP, s->query_count);
    for (int32_t q = begin; q < end; q++) {
        const float *query = s->job->queries + (s->first_query + q) * s->job->query_stride;
        s->query_norms[q] = sqrtf(s->isa->store(s->queries + (int64_t)q * s->padded, query, s->job->dim));
    }
    for (int32_t w = 0; w < s->workers; w++)
        topk_clear(heap_of(s, w, begin), (end - begin) * s->job->k);
    if (s->screen)
        screen_code_group(s, (int32_t)item);
    if (s->range)
        set_range_limits(s, begin, end);
}

/* Scores one word of the sample. The words are as far apart as possible, so that sorted rows give a good sample, too. */
static void sample_item(void *context, int64_t item, int32_t worker)
{
    const scan *s = context;
    const int32_t begin = (int32_t)(item / s->sample_words) * s->block_queries;
    const int32_t end = (int32_t)min_i64(begin + s->block_queries, s->query_count);
    const int64_t word = item % s->sample_words * s->words / s->sample_words;
    const int64_t number = segment_of_word(s, word);
    scan_word(s, worker, &s->job->segments[number], word - s->first_words[number], begin, end);
}

/* The k-th best of the whole sample becomes the threshold; then the results start empty again. */
static void end_sample(void *context, int64_t item, int32_t worker)
{
    const scan *s = context;
    const int32_t query = (int32_t)item, k = s->job->k;
    canon_key *best = heap_of(s, 0, query);
    for (int32_t w = 1; w < s->workers; w++)
        topk_merge(best, heap_of(s, w, query), k);
    if (topk_worst(best) != CANON_KEY_WORST)
        screen_learn(s, worker, query, topk_worst(best));
    for (int32_t w = 0; w < s->workers; w++)
        topk_clear(heap_of(s, w, query), k);
}

/* Merges the workers' results of one query, and writes them to the caller's memory. */
static void write_results(void *context, int64_t item, int32_t worker)
{
    const scan *s = context;
    const search_job *job = s->job;
    if (s->range) {
        if (s->screen)
            screen_prove(s, worker, (int32_t)item, s->range->last);
        range_finish(s, worker, (int32_t)item);
        return;
    }
    canon_key *best = heap_of(s, 0, (int32_t)item);
    for (int32_t w = 1; w < s->workers; w++)
        topk_merge(best, heap_of(s, w, (int32_t)item), job->k);
    topk_sort(best, job->k);
    if (s->screen)
        screen_prove(s, worker, (int32_t)item, best[job->k - 1]);
    const int64_t to = (s->first_query + item) * job->k;
    results_from_keys(job->metric, job->k, best, job->rows + to, job->scores + to);
}

/* Reports to the caller how many queries are done. Returns true to stop. While a round is scanned, its items are counted. */
static bool report(const scan *s, int64_t done)
{
    return progress_tell(s->job->progress, s->job->progress_user, done, s->job->query_count);
}

static bool watch_scan(void *context, int64_t items_done)
{
    const scan *s = context;
    return report(s, s->first_query + items_done * s->query_count / at_least_one(s->items));
}

/* Returns false if the call was cancelled. */
static bool run(const scan *s, pool *threads, int64_t items, pool_work work)
{
    if (threads)
        return pool_run(threads, items, work, cancel_given() ? cancel_watch : NULL, (void *)s);
    pool_run_here(items, work, (void *)s);
    return true;
}

/* Searches all queries of a round, with `threads` or, if that is NULL, on this thread. Returns false if the caller stopped it,
 * by its progress function or its token. */
static bool search_round(scan *s, pool *threads)
{
    const int64_t blocks = (s->query_count + s->block_queries - 1) / s->block_queries;
    pool *const for_queries = s->query_count > GROUP ? threads : NULL;
    if (!run(s, for_queries, (s->query_count + GROUP - 1) / GROUP, pack_queries))
        return false;
    if (s->sample_words > 0 &&
        (!run(s, threads, s->sample_words * blocks, sample_item) || !run(s, for_queries, s->query_count, end_sample)))
        return false;
    s->items = s->row_items * blocks;
    if (!threads)
        pool_run_here(s->items, scan_item, s);
    else if (!pool_run(threads, s->items, scan_item, s->job->progress || cancel_given() ? watch_scan : NULL, s))
        return false;
    if (!run(s, threads, s->query_count, write_results))
        return false;
    if (s->screen)
        screen_end_round(s);
    return true;
}

/* ---- the whole search ---------------------------------------------------------------------------------------------------- */

/* Decides how the work is divided: rounds by memory, blocks of queries by cache, items of rows by the number of workers. With a
 * screen, the codes must fit in the cache, and blocks are whole groups. */
static void scan_plan(scan *s, bool screened)
{
    const search_job *job = s->job;
    const int64_t row_bytes = (int64_t)s->padded * (int64_t)sizeof(float);
    const int64_t stored_bytes = (int64_t)s->padded * (int64_t)row_type_bytes(job->type);
    const int64_t passing_bytes = screened ? s->padded : row_bytes;
    const int64_t heap_bytes =
        (int64_t)s->workers * job->k * (int64_t)sizeof(canon_key) + row_bytes + (screened ? screen_query_bytes(s) : 0);
    s->round_queries = (int32_t)min_i64(job->query_count, at_least_one(HEAPS_BYTES / heap_bytes));

    const int64_t wanted = (int64_t)s->workers * ITEMS_PER_WORKER;
    s->item_words = at_least_one(min_i64(ITEM_BYTES / (64 * stored_bytes), s->words / wanted));
    s->row_items = (s->words + s->item_words - 1) / s->item_words;
    int64_t block = min_i64(s->round_queries, at_least_one(QUERIES_CACHED_BYTES / passing_bytes));
    if (s->row_items > 0 && s->row_items < wanted && !(s->workers == 1))
        block = min_i64(block, at_least_one(s->round_queries * s->row_items / wanted));
    s->block_queries = (int32_t)at_least_one(block);
    if (screened && s->block_queries >= SCREEN_SMALL_BATCH)
        s->block_queries = (s->block_queries + GROUP - 1) / GROUP * GROUP;
    else if (screened && s->block_queries > 2 && s->round_queries > GROUP)
        s->block_queries = 2; /* so that no block has queries of two groups */
    const int64_t sample = SAMPLE_ROWS + (int64_t)SAMPLE_ROWS_FOR_ONE * job->k;
    if (screened && !s->range && sample / 64 <= s->words / SAMPLE_PART)
        s->sample_words = sample / 64;
    s->block_rows = SUMS_ROWS_MAX;
    while (s->block_rows > 2 && s->block_rows * row_bytes > ROWS_CACHED_BYTES)
        s->block_rows /= 2;
}

static ww_status scan_take_memory(scan *s, void **block)
{
    const size_t queries = (size_t)s->round_queries, workers = (size_t)s->workers;
    const size_t heaps = workers * queries * (size_t)s->job->k * sizeof(canon_key);
    const size_t packed = queries * (size_t)s->padded * sizeof(float);
    const size_t sums = workers * QUERY_GROUP * SUMS_ROWS_MAX * sizeof(float);
    const size_t limits = workers * queries * sizeof(float);
    const size_t counts = workers * sizeof(scan_counts);
    const bool typed = s->job->type != ROW_F32 && s->job->query_count > 1;
    const size_t wide = typed ? workers * (size_t)s->block_rows * (size_t)s->padded * sizeof(float) : 0;
    const size_t firsts = (size_t)s->job->segment_count * sizeof *s->first_words;
    const size_t bytes = packed + sums + wide + heaps + firsts + counts + limits + queries * sizeof(float);
    char *memory = memory_alloc_aligned(bytes);
    if (!memory)
        return memory_failed("search on cpu", bytes);
    *block = memory; /* the parts, in the order of their alignment */
    s->queries = (float *)memory;
    s->sums = (float *)(memory + packed);
    memory += packed + sums;
    s->wide = typed ? (float *)memory : NULL;
    memory += wide;
    s->heaps = (canon_key *)memory;
    s->first_words = (int64_t *)(void *)(memory + heaps);
    memory += firsts;
    s->counts = (scan_counts *)(void *)(memory + heaps);
    s->limits = (float *)(memory + heaps + counts);
    s->query_norms = (float *)(memory + heaps + counts + limits);
    for (int64_t i = 0, words = 0; i < s->job->segment_count; i++) {
        s->first_words[i] = words;
        words += divide_up_i64(s->job->segments[i].count, 64);
    }
    memset(s->counts, 0, counts);
    for (int32_t w = 0; w < s->workers; w++)
        s->counts[w].certificate = INFINITY;
    return WW_OK;
}

static void add_counts(const scan *s, search_stats *stats)
{
    for (int32_t w = 0; stats && w < s->workers; w++) {
        stats->rows_screened += s->counts[w].screened;
        stats->rows_kept += s->counts[w].kept;
        stats->rows_scored += s->counts[w].scored;
    }
}

static int64_t rows_of(const search_job *job)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < job->segment_count; i++)
        rows += job->segments[i].count;
    return rows;
}

static int64_t words_of(const search_job *job)
{
    int64_t words = 0;
    for (int64_t i = 0; i < job->segment_count; i++)
        words += divide_up_i64(job->segments[i].count, 64);
    return words;
}

/* Numbers of queries in the job. */
typedef struct query_numbers {
    int64_t *numbers;
    int64_t count;
} query_numbers;

/* Adds the queries of the round whose results prove a defect. That only happens if there is a bug. */
static ww_status list_failed(const scan *s, query_numbers *failed)
{
    for (int32_t q = 0; q < s->query_count; q++) {
        if (!screen_failed(s, q))
            continue;
        const size_t bytes = (size_t)(failed->count + 1) * sizeof *failed->numbers;
        int64_t *more = memory_resize(failed->numbers, bytes);
        if (!more)
            return memory_failed("queries to search again on cpu", bytes);
        failed->numbers = more;
        failed->numbers[failed->count++] = s->first_query + q;
    }
    return WW_OK;
}

/* Searches round by round. `s` has its plan and its memory. */
static ww_status search_rounds(scan *s, pool *threads, query_numbers *failed)
{
    const search_job *job = s->job;
    ww_status status = WW_OK;
    while (status == WW_OK && s->first_query < job->query_count) {
        s->query_count = (int32_t)min_i64(s->round_queries, job->query_count - s->first_query);
        if (report(s, s->first_query) || !search_round(s, threads))
            status = ww_fail(WW_CANCELLED, "the search was cancelled");
        else if (s->range)
            status = range_check(s);
        if (status == WW_OK)
            status = list_failed(s, failed);
        s->first_query += s->query_count;
    }
    if (status == WW_OK && report(s, job->query_count))
        status = ww_fail(WW_CANCELLED, "the search was cancelled");
    return status;
}

/* Returns true if high planes are faster. If the cache holds all codes, the products are the limit, not the bytes
 * (bench/results/planes-arm.csv). */
static bool planes_are_faster(const cpu_device *cpu, const scan *s)
{
    const tuning_choice tuned = cpu->base.tuning.planes;
    return tuned == TUNING_AUTO ? s->words * 64 * s->padded > cpu->cache_bytes : tuned == TUNING_ALWAYS;
}

/* Searches for the k best or, with `range`, for all within it; then k is 0. Queries whose results prove a defect are added to
 * `failed`; without a screen there are none. */
static ww_status search_by(ww_device *device, const search_job *job, range_scan *range, query_numbers *failed)
{
    cpu_device *cpu = (cpu_device *)device;
    scan s = {.job = job, .isa = cpu->isa, .range = range, .padded = canon_padded(job->dim)};
    s.words = words_of(job);
    s.planes = planes_are_faster(cpu, &s);
    const int64_t rows = rows_of(job);
    const bool here = (double)rows * (double)job->query_count * s.padded < HERE_PRODUCTS;
    s.workers = here ? 1 : pool_threads(cpu->pool);
    const bool screened =
        job->screen && device->tuning.screen != TUNING_NEVER && rows >= SCREEN_ROWS && (!range || range->bounded);
    scan_plan(&s, screened);

    void *memory = NULL;
    ww_status status = scan_take_memory(&s, &memory);
    if (status == WW_OK && screened)
        status = screen_create(&s);
    if (status == WW_OK && range)
        status = range_create(range, &s);
    if (status == WW_OK)
        status = search_rounds(&s, here ? NULL : cpu->pool, failed);
    if (status == WW_OK)
        add_counts(&s, job->stats);
    if (range)
        range_destroy(range, &s);
    screen_destroy(&s);
    memory_free(memory);
    return status;
}

/* Returns the job for searching one of the queries again without a screen. Progress continues from where it was. */
static search_job plain_job(const search_job *job, int64_t query, search_stats *stats)
{
    search_job plain = *job;
    plain.queries = job->queries + query * job->query_stride;
    plain.query_count = 1;
    plain.screen = false;
    plain.stats = stats;
    plain.marks = NULL;
    plain.progress = NULL;
    return plain;
}

static void tell_scored(search_stats *stats, const search_stats *more)
{
    if (stats)
        stats->rows_scored += more->rows_scored;
}

ww_status cpu_rows_search(ww_device *device, const search_job *job)
{
    query_numbers failed = {0};
    search_stats more = {0};
    ww_status status = search_by(device, job, NULL, &failed);
    for (int64_t i = 0; status == WW_OK && i < failed.count; i++) {
        search_job plain = plain_job(job, failed.numbers[i], &more);
        plain.rows = job->rows + failed.numbers[i] * job->k;
        plain.scores = job->scores + failed.numbers[i] * job->k;
        status = search_by(device, &plain, NULL, NULL);
    }
    tell_scored(job->stats, &more);
    memory_free(failed.numbers);
    return status;
}

ww_status cpu_rows_range(ww_device *device, const range_job *job)
{
    query_numbers failed = {0};
    search_stats more = {0};
    search_job search = job->search;
    search.k = 0;
    range_scan made = range_of(job);
    ww_status status = search_by(device, &search, &made, &failed);
    for (int64_t i = 0; status == WW_OK && i < failed.count; i++) {
        range_job plain = *job;
        plain.search = plain_job(&search, failed.numbers[i], &more);
        plain.found = job->found + failed.numbers[i];
        key_list_free(plain.found);
        made = range_of(&plain);
        status = search_by(device, &plain.search, &made, NULL);
    }
    tell_scored(search.stats, &more);
    memory_free(failed.numbers);
    return status;
}
