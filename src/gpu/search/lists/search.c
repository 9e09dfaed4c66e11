/* Searches some lists of an index on a GPU, in screened rounds (screen_round.h) whose kernels read lists instead of segments.
 *
 * Input: for each query, the numbers of the lists to read, nearest first (vectors/ivf/search.c chose them). The codes of the
 * lists are on the device, list by list (push.c). A round takes as many queries as have room for their kept rows:
 *
 *   1. pairs     (query, list), grouped by list: count_pairs() counts them for each list, put_pairs() writes them in the
 *                order of the lists. Only lists that are read are visited, so a query's time does not depend on the others.
 *   2. items     up to four pairs of one list, and some words (64 rows) of it: put_items(). An item is what a thread
 *                block takes; its four queries share the codes that are read. Long lists have several items, so that
 *                blocks end together.
 *   3. send      items and pairs of the sample and of all rows in one block, one copy: send_work()
 *   4. run       screen_round_run(): codes of the sample, thresholds, codes of all rows, exact scores of those that are kept
 *   5. settle    results, or a reason to search again
 *
 * The sample of a query is the first words of its nearest lists: these are its likely neighbours, so the threshold is close to
 * the result. The work exists twice in each round, [0] for all rows and [1] for the sample; with known thresholds only [0].
 *
 * A query whose list of kept rows was full is searched again with the best known threshold and room for all its rows; if its
 * results prove a defect of the screen, without a threshold. No query needs a third attempt.
 */
#include "gpu/search/lists/lists.h"

#include <math.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "device/certificate.h"
#include "gpu/search/lists/held.h"
#include "gpu/search/screen_round.h"
#include "gpu/search/search_common.h"

enum {
    WORD_ROWS = 64,
    WORD_BUCKETS = WORD_ROWS / SCREEN_BUCKET_ROWS,
    TILE_BUCKETS = SCREEN_TILE_WORDS * WORD_BUCKETS, /* the plan counts the sample in tiles */
    SAMPLE_BUCKETS = 64,                             /* of a query's sample, at least */
    SAMPLE_FACTOR = 4,                               /* buckets of the sample for each result */
    CAPACITY_MIN = 4096,                             /* kept rows of a query, at least */
    CAPACITY_FACTOR = 8,                             /* kept rows for each result */
    ROUND_MAX = 16384,                               /* queries at a time */
    ITEM_WORDS_MIN = 4,                              /* so that each wave of a block has work */
    ITEM_WORDS_MAX = 64,
    ITEMS_RESIDENT = 4, /* items per resident block, if there are enough words */
};

static const int64_t kept_bytes_max = (int64_t)512 << 20;

typedef struct lists_search {
    gpu_device *device;
    gpu_stream *stream;
    const list_job *job;
    kernel_rows rows;
    int64_t units_resident;
    uint32_t *counts; /* host, for each list: pairs, or where the next one goes; 0 for lists that are not in `used` */
    uint32_t *used;   /* host: lists that have pairs */
    int64_t used_count;
    canon_key *results; /* host: a round's keys, thresholds and counts */
    char *block;        /* host: a round's items and pairs */
    size_t block_bytes, results_bytes;
    int64_t *left; /* queries to search again, with their thresholds */
    canon_key *left_thresholds;
    int64_t left_count;
    search_stats stats;
} lists_search;

/* Queries of a round: the job's from `first` on, or those of `numbers`. */
typedef struct list_round {
    const int64_t *numbers;
    int64_t first, count;
    const canon_key *thresholds;
    screen_plan plan;
    int64_t sample_words; /* words of a list, at most */
} list_round;

static int64_t query_of(const list_round *r, int64_t i)
{
    return r->numbers ? r->numbers[i] : r->first + i;
}

static int64_t words_of(const row_list *list)
{
    return divide_up_i64(list->count, WORD_ROWS);
}

static int64_t buckets_wanted(const lists_search *s)
{
    return max_i64(SAMPLE_BUCKETS, (int64_t)SAMPLE_FACTOR * s->job->search.k);
}

/* ---- what is read -----------------------------------------------------------------------------------------------------------
 */

/* Returns how many of a query's lists are in its sample, and sets the number of buckets. */
static int64_t sample_lists(const lists_search *s, const list_round *r, int64_t query, int64_t *buckets)
{
    const list_job *job = s->job;
    const int64_t lists = job->starts[query + 1] - job->starts[query];
    int64_t count = 0;
    *buckets = 0;
    while (count < lists && *buckets < buckets_wanted(s))
        *buckets += WORD_BUCKETS * min_i64(words_of(&job->lists[job->numbers[job->starts[query] + count++]]), r->sample_words);
    return count;
}

/* The work of a round for the sample or for all rows, in host memory. */
typedef struct work_part {
    screen_list_item *items;
    screen_list_pair *pairs;
    int64_t item_count, pair_count;
} work_part;

static int64_t part_words(const lists_search *s, const list_round *r, bool sample, uint32_t list)
{
    const int64_t words = words_of(&s->job->lists[list]);
    return sample ? min_i64(words, r->sample_words) : words;
}

/* Sorts the used lists, so that neighbours in memory are read one after the other. For many queries. */
static void order_used(lists_search *s)
{
    s->used_count = 0;
    for (int64_t l = 0; l < s->job->held->count; l++)
        if (s->counts[l] > 0)
            s->used[s->used_count++] = (uint32_t)l;
}

/* Counts the pairs of each list and collects the lists that have some. Returns the words of all items. */
static int64_t count_pairs(lists_search *s, const list_round *r, bool sample, work_part *part)
{
    const list_job *job = s->job;
    int64_t words = 0;
    for (int64_t u = 0; u < s->used_count; u++)
        s->counts[s->used[u]] = 0;
    s->used_count = part->pair_count = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t query = query_of(r, i);
        int64_t buckets, lists = job->starts[query + 1] - job->starts[query];
        if (sample)
            lists = sample_lists(s, r, query, &buckets);
        for (int64_t p = 0; p < lists; p++) {
            const uint32_t list = job->numbers[job->starts[query] + p];
            if (s->counts[list]++ == 0)
                s->used[s->used_count++] = list;
        }
        part->pair_count += lists;
    }
    if (part->pair_count >= job->held->count)
        order_used(s);
    for (int64_t u = 0; u < s->used_count; u++) {
        const int64_t groups = divide_up_i64(s->counts[s->used[u]], SCREEN_LIST_QUERIES);
        words += groups * part_words(s, r, sample, s->used[u]);
    }
    return words;
}

/* Writes the pairs in the order of `used`. Afterwards `counts` holds the end of each list's pairs. */
static void put_pairs(const lists_search *s, const list_round *r, bool sample, work_part *part)
{
    const list_job *job = s->job;
    uint32_t at = 0;
    for (int64_t u = 0; u < s->used_count; u++) {
        const uint32_t count = s->counts[s->used[u]];
        s->counts[s->used[u]] = at;
        at += count;
    }
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t query = query_of(r, i);
        int64_t buckets, lists = job->starts[query + 1] - job->starts[query];
        uint32_t bucket = 0;
        if (sample)
            lists = sample_lists(s, r, query, &buckets);
        for (int64_t p = 0; p < lists; p++) {
            const uint32_t list = job->numbers[job->starts[query] + p];
            part->pairs[s->counts[list]++] = (screen_list_pair){(uint32_t)i, bucket};
            bucket += (uint32_t)(WORD_BUCKETS * part_words(s, r, sample, list));
        }
    }
}

/* Writes the items: up to four pairs of a list and `each` words. */
static void put_items(const lists_search *s, const list_round *r, bool sample, int64_t each, work_part *part)
{
    uint32_t first = 0;
    part->item_count = 0;
    for (int64_t u = 0; u < s->used_count; u++) {
        const uint32_t list = s->used[u], end = s->counts[list];
        const int64_t words = part_words(s, r, sample, list);
        for (; first < end; first += (uint32_t)min_i64(SCREEN_LIST_QUERIES, end - first))
            for (int64_t w = 0; w < words; w += each)
                part->items[part->item_count++] =
                    (screen_list_item){.list = list,
                                       .first_word = (uint32_t)w,
                                       .words = (uint32_t)min_i64(each, words - w),
                                       .first_pair = first,
                                       .pairs = (uint32_t)min_i64(SCREEN_LIST_QUERIES, end - first)};
    }
}

static int64_t item_words(const lists_search *s, int64_t words)
{
    return max_i64(min_i64(words / (ITEMS_RESIDENT * s->units_resident), ITEM_WORDS_MAX), ITEM_WORDS_MIN);
}

static ww_status grow_block(lists_search *s, size_t bytes)
{
    if (bytes <= s->block_bytes)
        return WW_OK;
    memory_free(s->block);
    s->block_bytes = 0;
    s->block = memory_alloc(bytes);
    if (!s->block)
        return memory_failed("the lists of a search", bytes);
    s->block_bytes = bytes;
    return WW_OK;
}

/* Makes the items and pairs of a round, for all rows and for the sample if there is one, and queues their copy to the
 * device. */
static ww_status send_work(lists_search *s, const list_round *r, screen_list_work *work)
{
    const int32_t parts = r->thresholds ? 1 : 2;
    work_part part[2] = {{0}};
    int64_t each[2] = {0}, items = 0, pairs = 0;
    void *device_block = NULL;
    for (int32_t i = 0; i < parts; i++) {
        each[i] = item_words(s, count_pairs(s, r, i == 1, &part[i]));
        for (int64_t u = 0; u < s->used_count; u++) /* a long list has several items */
            items += divide_up_i64(s->counts[s->used[u]], SCREEN_LIST_QUERIES) *
                     divide_up_i64(part_words(s, r, i == 1, s->used[u]), each[i]);
        pairs += part[i].pair_count;
    }
    const size_t bytes = (size_t)items * sizeof *part->items + (size_t)pairs * sizeof *part->pairs;
    if (pairs == 0)
        return WW_OK;
    ww_status status = grow_block(s, bytes);
    if (status == WW_OK)
        status = gpu_workspace(s->stream, WORKSPACE_ITEMS, bytes, &device_block);
    if (status != WW_OK)
        return status;
    char *base = device_block;
    part[0].pairs = (screen_list_pair *)(void *)s->block;
    part[0].items = (screen_list_item *)(void *)(part[0].pairs + pairs);
    part[1].pairs = part[0].pairs + part[0].pair_count;
    for (int32_t i = 0; i < parts; i++) {
        (void)count_pairs(s, r, i == 1, &part[i]);
        put_pairs(s, r, i == 1, &part[i]);
        put_items(s, r, i == 1, each[i], &part[i]);
        part[1].items = i == 0 ? part[0].items + part[0].item_count : part[1].items;
        work->items[i] = (const screen_list_item *)(const void *)(base + ((char *)part[i].items - s->block));
        work->pairs[i] = (const screen_list_pair *)(const void *)(base + ((char *)part[i].pairs - s->block));
        work->item_count[i] = (uint32_t)part[i].item_count;
    }
    return gpu_copy_in(s->stream, device_block, s->block, bytes);
}

/* ---- a round ----------------------------------------------------------------------------------------------------------------
 */

/* Writes the results of a round. Puts queries without valid results aside. */
static void settle(lists_search *s, const list_round *r, uint32_t slots)
{
    const search_job *job = &s->job->search;
    const canon_key *thresholds = s->results + r->count * job->k;
    const uint32_t *counts = (const uint32_t *)(thresholds + slots);
    for (int64_t i = 0; i < r->count; i++) {
        const int64_t query = query_of(r, i);
        const canon_key *best = s->results + i * job->k, last = best[job->k - 1];
        const bool full = counts[i] > (uint32_t)r->plan.capacity, fails = !full && certificate_fails(thresholds[i], last);
        s->stats.rows_kept += counts[i];
        s->stats.rows_scored += min_i64(counts[i], r->plan.capacity) + (r->thresholds ? 0 : job->k);
        for (int64_t p = s->job->starts[query]; p < s->job->starts[query + 1]; p++)
            s->stats.rows_screened += s->job->lists[s->job->numbers[p]].count;
        s->stats.fallback_queries += full;
        s->stats.repeated_queries += fails;
        if (full || fails) {
            s->left[s->left_count] = query;
            s->left_thresholds[s->left_count++] = fails ? CANON_KEY_WORST : last < thresholds[i] ? last : thresholds[i];
            gpu_search_mark_queries(job, &query, 1, full ? MARK_FALLBACK : MARK_REPEATED);
            continue;
        }
        s->stats.certificate = fminf(s->stats.certificate, certificate_margin(job->metric, thresholds[i], last));
        gpu_search_write(job, query, best);
    }
}

static ww_status grow_results(lists_search *s, size_t bytes)
{
    if (bytes <= s->results_bytes)
        return WW_OK;
    memory_free(s->results);
    s->results_bytes = 0;
    s->results = memory_alloc(bytes);
    if (!s->results)
        return memory_failed("the results of a search", bytes);
    s->results_bytes = bytes;
    return WW_OK;
}

/* Searches for the round's `queries`, which are `stride` floats apart. */
static ww_status run_round(lists_search *s, list_round *r, const float *queries, int64_t stride)
{
    int64_t buckets_max = 0, buckets = 0;
    for (int64_t i = 0; !r->thresholds && i < r->count; i++) {
        (void)sample_lists(s, r, query_of(r, i), &buckets);
        buckets_max = max_i64(buckets_max, buckets);
    }
    r->plan.sample_tiles = (uint32_t)divide_up_i64(buckets_max, TILE_BUCKETS);
    screen_list_work work = {.lists = s->job->held->table.data, .all_count = s->job->all_count};
    screen_round round = {
        .work = &work, .device = s->device, .stream = s->stream, .job = &s->job->search, .plan = &r->plan, .rows = s->rows};
    const screen_input input = {.queries = queries, .stride = stride, .count = r->count, .thresholds = r->thresholds};
    ww_status status = send_work(s, r, &work);
    if (status == WW_OK)
        status = screen_round_begin(&round, r->count);
    if (status == WW_OK)
        status = grow_results(s, round.results_bytes);
    if (status == WW_OK)
        status = screen_round_run(&round, &input, s->results);
    if (status == WW_OK)
        settle(s, r, round.queries.slots);
    return status;
}

/* ---- all queries ------------------------------------------------------------------------------------------------------------
 */

static int64_t rows_of(const list_job *job, int64_t query)
{
    int64_t rows = 0;
    for (int64_t p = job->starts[query]; p < job->starts[query + 1]; p++)
        rows += job->lists[job->numbers[p]].count;
    return rows;
}

static int64_t round_of(int64_t capacity)
{
    return max_i64(min_i64(ROUND_MAX, kept_bytes_max / (capacity * (int64_t)sizeof(uint64_t))), 1);
}

static ww_status run_rounds(lists_search *s)
{
    const search_job *job = &s->job->search;
    const int32_t tuned = s->device->base.tuning.screen_list_capacity;
    const int64_t capacity = tuned > 0 ? tuned : max_i64(CAPACITY_MIN, (int64_t)CAPACITY_FACTOR * job->k);
    const int64_t each = round_of(capacity);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < job->query_count; first += each) {
        list_round r = {.first = first, .count = min_i64(each, job->query_count - first)};
        r.plan.capacity = (int32_t)capacity;
        r.sample_words = buckets_wanted(s) / WORD_BUCKETS;
        status = run_round(s, &r, job->queries + first * job->query_stride, job->query_stride);
    }
    return status;
}

/* Searches again with room for all rows of a query's lists. A query that is still not answered shows a defect. */
static ww_status search_again(lists_search *s, float *queries)
{
    const search_job *job = &s->job->search;
    const int64_t count = s->left_count;
    int64_t capacity = 1;
    for (int64_t i = 0; i < count; i++)
        capacity = max_i64(capacity, rows_of(s->job, s->left[i]));
    const int64_t each = round_of(capacity);
    ww_status status = gpu_search_gather(s->stream, job, s->left, count, queries);
    for (int64_t first = 0; status == WW_OK && first < count; first += each) {
        list_round r = {
            .numbers = s->left + first, .count = min_i64(each, count - first), .thresholds = s->left_thresholds + first};
        r.plan.capacity = (int32_t)min_i64(capacity, INT32_MAX / 2);
        s->left_count = first; /* new leftovers would overwrite those that were read */
        status = run_round(s, &r, queries + first * job->dim, job->dim);
        if (status == WW_OK && s->left_count > first)
            status = ww_fail(WW_INTERNAL, "a search of lists has no answer even with room for all rows");
    }
    return status;
}

static ww_status search_borrowed(lists_search *s, const segment_table *table)
{
    const search_job *job = &s->job->search;
    void *segments = NULL;
    ww_status status = gpu_workspace(s->stream, WORKSPACE_TABLE, table->bytes, &segments);
    if (status == WW_OK)
        status = gpu_copy_in(s->stream, segments, table->segments, table->bytes);
    s->rows.segments = segments;
    if (status == WW_OK)
        status = gpu_search_mask(s->stream, WORKSPACE_MASK, job, &s->rows.mask, &s->rows.mask_words);
    if (status == WW_OK)
        status = gpu_search_resident(s->device, GPU_KERNEL_screen_lists_keep, &s->units_resident);
    if (status == WW_OK)
        status = run_rounds(s);
    if (status != WW_OK || s->left_count == 0)
        return status;
    const size_t bytes = (size_t)s->left_count * (size_t)job->dim * sizeof(float);
    float *queries = memory_alloc(bytes);
    if (!queries)
        return memory_failed("queries to search again", bytes);
    status = search_again(s, queries);
    memory_free(queries);
    return status;
}

static ww_status take_memory(lists_search *s)
{
    const list_job *job = s->job;
    const size_t queries = (size_t)job->search.query_count, nlist = (size_t)job->held->count;
    const size_t used = (size_t)min_i64(job->held->count, job->starts[queries]);
    const size_t bytes = queries * (sizeof *s->left + sizeof *s->left_thresholds) + used * sizeof *s->used;
    s->left = memory_alloc(bytes);
    s->counts = memory_alloc_zeroed(nlist, sizeof *s->counts);
    if (!s->left || !s->counts)
        return memory_failed("the queries of a search", bytes + nlist * sizeof *s->counts);
    s->left_thresholds = (canon_key *)(s->left + queries);
    s->used = (uint32_t *)(s->left_thresholds + queries);
    return WW_OK;
}

ww_status gpu_rows_search_lists(ww_device *device, const list_job *job)
{
    lists_search s = {.device = gpu_of(device), .job = job, .stats = {.certificate = INFINITY}};
    segment_table table = {0};
    ww_status status = take_memory(&s);
    if (status == WW_OK)
        status = segment_table_make(&job->search, true, &table, &s.rows);
    if (status == WW_OK)
        status = gpu_stream_borrow(s.device, &s.stream);
    if (status == WW_OK)
        status = gpu_stream_return(s.stream, search_borrowed(&s, &table));
    if (status == WW_OK)
        search_stats_add(job->search.stats, &s.stats);
    memory_free(table.segments);
    memory_free(s.block);
    memory_free(s.results);
    memory_free(s.counts);
    memory_free(s.left);
    return status;
}
