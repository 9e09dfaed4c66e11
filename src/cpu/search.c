/* Search on the CPU: every worker scores blocks of rows against blocks of queries and keeps its own k best for each query;
 * at the end they are merged.
 *
 * One query is bound by memory: rows are read once, in order, by all cores. Many queries are bound by arithmetic: a block of
 * rows stays in the cache while a block of queries passes by. Both are the same loops with other numbers. All memory is taken
 * before the first row is read.
 *
 * Euclidean distances to many queries are screened: |q|^2 + |x|^2 - 2 q.x costs half of the canonical sum, and a rigorous
 * bound of its error says which rows cannot enter. The few others get their canonical sums, so the bits are the same.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "cpu/cpu.h"
#include "cpu/topk.h"
#include "kernels/canon.h"

enum {
    QUERY_GROUP = 24,               /* queries whose sums are made, then sifted: 6 KiB of sums stay in the first level */
    ROWS_CACHED_BYTES = 128 << 10,  /* rows scored while all queries of a pass go by, and ... */
    QUERIES_CACHED_BYTES = 1 << 19, /* ... these queries: together they stay in a second-level cache of 1 MiB */
    HEAPS_BYTES = 64 << 20,         /* results of one round; more queries than that take several rounds */
    CHUNK_BYTES = 1 << 20,          /* rows of one item: long enough to read in one stream, short enough to cancel */
    ITEMS_PER_WORKER = 8,           /* wanted, so that the last worker to finish is not long alone */
    HERE_PRODUCTS = 1 << 19,        /* a search of fewer products is done before a worker has woken */
    SCREEN_QUERIES = 3,             /* fewer are bound by memory, and gain nothing from less arithmetic */
    SCREEN_RATIO = 32,              /* rows looked at for one kept, at least: scoring one alone costs several in a block */
};

/* How screening went in a worker's present item. On a cache line of its own. */
typedef struct screening {
    _Alignas(CACHE_LINE_BYTES) int64_t looked_at;
    int64_t kept;
} screening;

typedef struct scan {
    const search_job *job;
    const instruction_set *isa;
    int32_t padded;
    int32_t workers;
    int64_t words;       /* of 64 rows, over all segments */
    int64_t chunk_words; /* of an item */
    int64_t chunks;
    int32_t block_queries; /* of an item */
    int32_t block_rows;    /* scored at once */
    int32_t round_queries; /* for which there is memory */

    /* of this round */
    int64_t first_query;
    int32_t query_count;
    float *queries; /* padded */
    float *query_norms;
    canon_key *heaps;      /* workers x query_count x k */
    float *limits;         /* workers x query_count, for isa->sift; meaningful once the heap is full */
    float *sums;           /* workers x QUERY_GROUP x SUMS_ROWS_MAX */
    screening *screenings; /* workers */
    int64_t items;
} scan;

static int64_t at_least_one(int64_t value)
{
    return value > 1 ? value : 1;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static canon_key *heap_of(const scan *s, int32_t worker, int32_t query)
{
    return s->heaps + ((int64_t)worker * s->query_count + query) * s->job->k;
}

/* ---- one block of rows ----------------------------------------------------------------------------------------------------
 */

/* Offers the rows in `candidates` to a query's heap. Workers see rows in increasing order, so a score that only equals the
 * worst in the heap has lost: sift leaves it out. */
static void offer(const scan *s, int32_t worker, int32_t query, const float *sums, const float *norms, uint32_t first_row,
                  uint64_t candidates)
{
    const int32_t metric = s->job->metric, k = s->job->k;
    canon_key *heap = heap_of(s, worker, query);
    bool changed = false;
    for (; candidates != 0; candidates &= candidates - 1) {
        const int32_t r = __builtin_ctzll(candidates);
        const float score = canon_score(metric, sums[r], s->query_norms[query], norms[r]);
        const canon_key key = canon_make_key(metric, score, first_row + (uint32_t)r);
        if (key < topk_worst(heap)) {
            topk_replace_worst(heap, k, key);
            changed = true;
        }
    }
    if (changed && topk_worst(heap) != CANON_KEY_WORST)
        s->limits[(int64_t)worker * s->query_count + query] = sift_limit(metric, canon_key_score(metric, topk_worst(heap)));
}

/* Screening pays while it turns nearly all rows away. While the heaps still fill, while the limits are loose, and among near
 * duplicates it does not; then the rest of the item is scored outright. */
static bool screening_pays(const scan *s, int32_t worker, int32_t query, int32_t queries)
{
    const screening *seen = &s->screenings[worker];
    return s->job->metric == CANON_L2 && queries >= SCREEN_QUERIES && seen->kept * SCREEN_RATIO <= seen->looked_at &&
           topk_worst(heap_of(s, worker, query)) != CANON_KEY_WORST;
}

/* The rows among `admitted` that may enter the query's results, with their canonical sums in `sums`; these hold the sums of
 * all rows before, or if `screened` their dot products. */
static uint64_t candidates_of(const scan *s, int32_t worker, int32_t query, bool screened, const float *rows,
                              const float *norms, int32_t count, uint64_t admitted, float *sums)
{
    const float limit = s->limits[(int64_t)worker * s->query_count + query], query_norm = s->query_norms[query];
    if (topk_worst(heap_of(s, worker, query)) == CANON_KEY_WORST)
        return admitted;
    if (!screened)
        return admitted & s->isa->sift(s->job->metric, sums, count, limit, query_norm, norms);
    const uint64_t candidates = admitted & s->isa->screen(sums, count, limit, query_norm, norms, screen_slack(s->padded));
    for (uint64_t left = candidates; left != 0; left &= left - 1) {
        const int32_t r = __builtin_ctzll(left);
        sums[r] = s->isa->squares(s->queries + (int64_t)query * s->padded, rows + (int64_t)r * s->padded, s->padded);
    }
    s->screenings[worker].kept += __builtin_popcountll(candidates);
    return candidates;
}

/* Scores `count` <= 64 rows from `row` of the segment, of which bit r of `admitted` admits row r, for queries begin..end. */
static void scan_rows(const scan *s, int32_t worker, const segment *seg, int64_t row, int32_t count, uint64_t admitted,
                      int32_t begin, int32_t end)
{
    const float *rows = (const float *)seg->rows.data + row * s->padded;
    const float *norms = (const float *)seg->norms.data + row;
    float *sums = s->sums + (int64_t)worker * QUERY_GROUP * SUMS_ROWS_MAX;
    for (int32_t group = begin; group < end; group += QUERY_GROUP) {
        const int32_t queries = (int32_t)smaller(QUERY_GROUP, end - group);
        const bool screened = screening_pays(s, worker, group, queries);
        s->isa->sums(screened ? CANON_DOT : s->job->metric, s->queries + (int64_t)group * s->padded, queries, rows, count,
                     s->padded, sums);
        s->screenings[worker].looked_at += screened ? queries * count : 0;
        for (int32_t q = 0; q < queries; q++) {
            float *query_sums = sums + q * SUMS_ROWS_MAX;
            const uint64_t candidates = candidates_of(s, worker, group + q, screened, rows, norms, count, admitted, query_sums);
            if (candidates != 0)
                offer(s, worker, group + q, query_sums, norms, (uint32_t)(seg->first_row + row), candidates);
        }
    }
}

/* Which of the 64 rows of this word of the segment are live and admitted. */
static uint64_t admitted_rows(const search_job *job, const segment *seg, int64_t word)
{
    uint64_t admitted = ((const uint64_t *)seg->live.data)[word];
    if (job->mask && admitted != 0) {
        const int64_t first = seg->first_row + word * 64;
        const int64_t covered = job->mask_rows - first;
        if (covered <= 0)
            return 0;
        admitted &= job->mask[first / 64];
        if (covered < 64)
            admitted &= (UINT64_C(1) << covered) - 1;
    }
    return admitted;
}

/* Scores the admitted rows of one word. Where most are admitted it does not pay to leave out the others. */
static void scan_word(const scan *s, int32_t worker, const segment *seg, int64_t word, int32_t begin, int32_t end)
{
    uint64_t admitted = admitted_rows(s->job, seg, word);
    const bool dense = __builtin_popcountll(admitted) >= SUMS_ROWS_MAX / 2;
    while (admitted != 0) {
        const int32_t first = __builtin_ctzll(admitted);
        const uint64_t rest = admitted >> first;
        int32_t run = 64 - __builtin_clzll(rest);
        if (!dense && ~rest != 0)
            run = (int32_t)smaller(run, __builtin_ctzll(~rest));
        run = (int32_t)smaller(run, s->block_rows);
        const uint64_t bits = rest & (UINT64_MAX >> (64 - run));
        scan_rows(s, worker, seg, word * 64 + first, run, bits, begin, end);
        admitted &= ~(bits << first);
    }
}

/* The segment that holds a word of 64 rows, by bisection: segments stand in order of their first rows. */
static int64_t segment_of(const search_job *job, int64_t word)
{
    int64_t low = 0, high = job->segment_count - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (job->segments[middle].first_row <= word * 64)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void scan_item(void *context, int64_t item, int32_t worker)
{
    const scan *s = context;
    const search_job *job = s->job;
    const int32_t begin = (int32_t)(item / s->chunks) * s->block_queries;
    const int32_t end = (int32_t)smaller(begin + s->block_queries, s->query_count);
    int64_t word = item % s->chunks * s->chunk_words;
    s->screenings[worker] = (screening){0};
    const int64_t word_end = smaller(word + s->chunk_words, s->words);
    for (int64_t i = segment_of(job, word); i < job->segment_count && word < word_end; i++) {
        const segment *seg = &job->segments[i];
        const int64_t first = seg->first_row / 64;
        const int64_t last = smaller(first + (seg->count + 63) / 64, word_end);
        for (word = word > first ? word : first; word < last; word++)
            scan_word(s, worker, seg, word - first, begin, end);
    }
}

/* ---- a round of queries ---------------------------------------------------------------------------------------------------
 */

static void pack_queries(void *context, int64_t item, int32_t worker)
{
    (void)item;
    (void)worker;
    const scan *s = context;
    for (int32_t q = 0; q < s->query_count; q++) {
        const float *query = s->job->queries + (s->first_query + q) * s->job->query_stride;
        s->query_norms[q] = sqrtf(s->isa->store(s->queries + (int64_t)q * s->padded, query, s->job->dim));
    }
    for (int32_t w = 0; w < s->workers; w++)
        topk_clear(heap_of(s, w, 0), s->query_count * s->job->k);
}

/* Merges the workers' results of one query, and writes them where the caller wants them. */
static void write_results(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const scan *s = context;
    const search_job *job = s->job;
    canon_key *best = heap_of(s, 0, (int32_t)item);
    for (int32_t w = 1; w < s->workers; w++)
        topk_merge(best, heap_of(s, w, (int32_t)item), job->k);
    topk_sort(best, job->k);
    const int64_t to = (s->first_query + item) * job->k;
    for (int32_t i = 0; i < job->k; i++) {
        const bool none = best[i] == CANON_KEY_WORST;
        job->rows[to + i] = none ? -1 : (int64_t)canon_key_row(best[i]);
        job->scores[to + i] = none ? (job->metric == CANON_L2 ? INFINITY : -INFINITY) : canon_key_score(job->metric, best[i]);
    }
}

/* Tells the caller how many queries are done; true to stop. Scanning a round counts by its items. */
static bool report(const scan *s, int64_t done)
{
    return s->job->progress && s->job->progress(done, s->job->query_count, s->job->progress_user) != 0;
}

static bool watch_scan(void *context, int64_t items_done)
{
    const scan *s = context;
    return report(s, s->first_query + items_done * s->query_count / at_least_one(s->items));
}

static bool search_round(scan *s, pool *threads, bool here)
{
    pool_run_here(1, pack_queries, s);
    s->items = s->chunks * ((s->query_count + s->block_queries - 1) / s->block_queries);
    if (here) {
        pool_run_here(s->items, scan_item, s);
        pool_run_here(s->query_count, write_results, s);
        return true;
    }
    if (!pool_run(threads, s->items, scan_item, s->job->progress ? watch_scan : NULL, s))
        return false;
    pool_run(threads, s->query_count, write_results, NULL, s);
    return true;
}

/* ---- the whole search -----------------------------------------------------------------------------------------------------
 */

/* Decides how the work is cut: rounds by memory, blocks of queries by cache, chunks of rows by the number of workers. */
static void scan_plan(scan *s)
{
    const search_job *job = s->job;
    const int64_t row_bytes = (int64_t)s->padded * (int64_t)sizeof(float);
    const int64_t heap_bytes = (int64_t)s->workers * job->k * (int64_t)sizeof(canon_key) + row_bytes;
    s->round_queries = (int32_t)smaller(job->query_count, at_least_one(HEAPS_BYTES / heap_bytes));

    const int64_t wanted = (int64_t)s->workers * ITEMS_PER_WORKER;
    s->chunk_words = at_least_one(smaller(CHUNK_BYTES / (64 * row_bytes), s->words / wanted));
    s->chunks = (s->words + s->chunk_words - 1) / s->chunk_words;
    int64_t block = smaller(s->round_queries, at_least_one(QUERIES_CACHED_BYTES / row_bytes));
    if (s->chunks > 0 && s->chunks < wanted && !(s->workers == 1))
        block = smaller(block, at_least_one(s->round_queries * s->chunks / wanted));
    s->block_queries = (int32_t)at_least_one(block);
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
    const size_t screenings = workers * sizeof(screening);
    const size_t bytes = packed + sums + screenings + heaps + limits + queries * sizeof(float);
    char *memory = memory_take_aligned(bytes);
    if (!memory)
        return memory_failed("search on cpu", bytes);
    *block = memory; /* the parts in order of the alignment they want */
    s->queries = (float *)memory;
    s->sums = (float *)(memory + packed);
    s->screenings = (screening *)(memory + packed + sums);
    s->heaps = (canon_key *)(memory + packed + sums + screenings);
    s->limits = (float *)(memory + packed + sums + screenings + heaps);
    s->query_norms = (float *)(memory + packed + sums + screenings + heaps + limits);
    return WW_OK;
}

ww_status cpu_rows_search(ww_device *device, const search_job *job)
{
    cpu_device *cpu = (cpu_device *)device;
    scan s = {.job = job, .isa = cpu->isa, .padded = canon_padded(job->dim)};
    int64_t rows = 0;
    if (job->segment_count > 0)
        rows = job->segments[job->segment_count - 1].first_row + job->segments[job->segment_count - 1].count;
    const bool here = (double)rows * (double)job->query_count * s.padded < HERE_PRODUCTS;
    s.words = (rows + 63) / 64;
    s.workers = here ? 1 : pool_threads(cpu->pool);
    scan_plan(&s);

    void *memory = NULL;
    ww_status status = scan_take_memory(&s, &memory);
    while (status == WW_OK && s.first_query < job->query_count) {
        s.query_count = (int32_t)smaller(s.round_queries, job->query_count - s.first_query);
        if (report(&s, s.first_query) || !search_round(&s, cpu->pool, here))
            status = ww_fail(WW_CANCELLED, "the search was cancelled by its progress callback");
        s.first_query += s.query_count;
    }
    if (status == WW_OK && report(&s, job->query_count))
        status = ww_fail(WW_CANCELLED, "the search was cancelled by its progress callback");
    memory_give(memory);
    return status;
}
