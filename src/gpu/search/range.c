/* Range search on a GPU. If the rows have codes, the screen runs first, with the bound as its threshold; queries for which it
 * kept too many rows get a full scan. Entries arrive in any order and are sorted here.
 */
#include "gpu/search/range.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/status.h"
#include "gpu/search/choice/search_choice.h"
#include "gpu/search/rows.h"

enum { ENTRIES_ROOM = 4 << 20 }; /* 64 MiB of them */

/* Entries that are copied together with the counts: for a batch, plus for each of its queries. */
enum { FIRST_ENTRIES = 1024, FIRST_ENTRIES_QUERY = 16 };

/* Lists that a thread sorts per item of work, and the number of hits from which several threads sort. */
enum { FINISHED_TOGETHER = 16, FINISHED_BY_THREADS = 4096 };

/* Every cosine is above this, with any rounding. */
#define COSINE_ALL (-4.0f)

/* ---- answers --------------------------------------------------------------------------------------------------------------
 */

/* Enough for all pairs of a query and a row, if they are few. */
int64_t range_room(const range *r, int64_t queries)
{
    const int64_t tuned = r->device->base.tuning.range_entries;
    return tuned > 0 ? tuned : min_i64(ENTRIES_ROOM, (int64_t)r->rows.word_count * SEARCH_WORD_ROWS * queries);
}

/* Bytes of the length, thresholds, counts and kept rows, rounded up to whole entries. */
static size_t head_bytes(const range_answer *answer)
{
    const size_t bytes = (1 + (size_t)answer->slots) * sizeof(uint64_t) + 2 * (size_t)answer->queries * sizeof(uint32_t);
    return (bytes + sizeof(range_entry) - 1) / sizeof(range_entry) * sizeof(range_entry);
}

ww_status range_answer_begin(range_answer *answer, const range *r, range_answer_size size)
{
    void *memory = NULL;
    *answer = (range_answer){.queries = size.queries, .slots = size.slots};
    const size_t head = head_bytes(answer);
    const ww_status status = gpu_workspace(r->stream, size.workspace, head + (size_t)size.room * sizeof(range_entry), &memory);
    if (status != WW_OK)
        return status;
    answer->thresholds_used = (uint64_t *)memory + 1;
    uint32_t *const counts = (uint32_t *)(answer->thresholds_used + size.slots);
    answer->list = (range_list){.last = r->last,
                                .length = memory,
                                .counts = counts,
                                .kept = counts + size.queries,
                                .entries = (range_entry *)(void *)((char *)memory + head),
                                .room = (uint64_t)size.room};
    return gpu_fill(r->stream, memory, 0, head / sizeof(uint32_t));
}

ww_status range_answer_end(range_answer *answer, const range *r)
{
    const size_t head = head_bytes(answer);
    answer->first = min_i64(FIRST_ENTRIES + FIRST_ENTRIES_QUERY * answer->queries, (int64_t)answer->list.room);
    const size_t bytes = head + (size_t)answer->first * sizeof(range_entry);
    answer->host = memory_alloc(bytes);
    if (answer->host == NULL)
        return memory_failed("the results of a range search", bytes);
    ww_status status = gpu_copy_out(r->stream, answer->host, answer->list.length, bytes);
    if (status != WW_OK)
        return status;
    memcpy(&answer->length, answer->host, sizeof answer->length);
    answer->thresholds = (const uint64_t *)answer->host + 1;
    answer->counts = (const uint32_t *)(answer->thresholds + answer->slots);
    answer->kept = answer->counts + answer->queries;
    answer->entries = (const range_entry *)(const void *)((const char *)answer->host + head);
    if (answer->length <= (uint64_t)answer->first || answer->length > answer->list.room)
        return WW_OK;
    const size_t more = (size_t)(answer->length - (uint64_t)answer->first) * sizeof(range_entry);
    answer->more = memory_alloc(more);
    if (answer->more == NULL)
        return memory_failed("the results of a range search", more);
    return gpu_copy_out(r->stream, answer->more, answer->list.entries + answer->first, more);
}

/* Each list is resized once, to the size that the counts say. */
ww_status range_answer_take(const range_answer *answer, const range *r, const range_queries *queries)
{
    const int64_t limit = r->job->limit;
    for (int64_t i = 0; i < queries->count; i++) {
        key_list *list = range_found(r, queries, i);
        list->total += answer->counts[i];
        if (!key_list_reserve(list, min_i64(list->count + answer->counts[i], limit)))
            return memory_failed("the results of a range search", (size_t)limit * sizeof *list->keys);
    }
    for (uint64_t i = 0; i < answer->length; i++) {
        const bool first = i < (uint64_t)answer->first;
        const range_entry *entry = first ? &answer->entries[i] : &answer->more[i - (uint64_t)answer->first];
        key_list *list = range_found(r, queries, (int64_t)entry->query);
        if (!key_list_add(list, limit, entry->key))
            return memory_failed("the results of a range search", (size_t)(list->count + 1) * sizeof entry->key);
    }
    return WW_OK;
}

void range_answer_free(range_answer *answer)
{
    memory_free(answer->host);
    memory_free(answer->more);
    answer->host = NULL;
    answer->more = NULL;
}

/* ---- all queries ----------------------------------------------------------------------------------------------------------
 */

/* Scores every row for the queries that the screen did not answer. */
static ww_status scan_left(range *r, const int64_t *left, int64_t count)
{
    const search_job *job = &r->job->search;
    const size_t bytes = (size_t)count * (size_t)job->dim * sizeof(float);
    float *queries = memory_alloc(bytes);
    if (queries == NULL)
        return memory_failed("queries of a range search", bytes);
    ww_status status = gpu_search_gather(r->stream, job, left, count, queries);
    const range_queries some = {.queries = queries, .stride = job->dim, .count = count, .numbers = left};
    const int64_t fallback = count - r->stats.repeated_queries; /* the others are repeated */
    r->stats.fallback_queries += fallback;
    gpu_search_mark_queries(job, left, fallback, MARK_FALLBACK);
    gpu_search_mark_queries(job, left + fallback, count - fallback, MARK_REPEATED);
    if (status == WW_OK)
        status = range_full_scan(r, &some);
    memory_free(queries);
    return status;
}

static ww_status search_all(range *r)
{
    const search_job *job = &r->job->search;
    const range_queries all = range_all(job);
    const search_choice choice = search_choose(r->device, &r->search, range_list_capacity(r), true);
    if (!r->bounded || !choice.screen)
        return range_full_scan(r, &all);
    const size_t bytes = 2 * (size_t)job->query_count * sizeof(int64_t);
    int64_t *left = memory_alloc(bytes), left_count = 0;
    if (left == NULL)
        return memory_failed("the queries of a range search", bytes);
    r->failed = left + job->query_count;
    ww_status status = range_screened(r, &choice.plan, left, &left_count);
    for (int64_t i = 0; i < r->stats.repeated_queries; i++)
        left[left_count++] = r->failed[i];
    if (status == WW_OK && left_count > 0)
        status = scan_left(r, left, left_count);
    memory_free(left);
    return status;
}

static bool is_bounded(const range_job *job)
{
    if (job->search.metric == CANON_L2)
        return job->bound < INFINITY;
    return job->bound > (job->search.metric == CANON_COSINE ? COSINE_ALL : -INFINITY);
}

static void finish_list(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const range_job *job = context;
    const int64_t end = min_i64((item + 1) * FINISHED_TOGETHER, job->search.query_count);
    for (int64_t i = item * FINISHED_TOGETHER; i < end; i++)
        key_list_finish(&job->found[i], job->limit);
}

/* Sorts the lists. Uses all threads if there are many hits, because then sorting takes longer than waking them. */
static void finish_lists(gpu_device *device, const range_job *job)
{
    const int64_t items = (job->search.query_count + FINISHED_TOGETHER - 1) / FINISHED_TOGETHER;
    int64_t hits = 0;
    for (int64_t i = 0; i < job->search.query_count; i++)
        hits += job->found[i].count;
    range_job context = *job;
    if (hits >= FINISHED_BY_THREADS && device->threads)
        (void)pool_run(device->threads, items, finish_list, NULL, &context);
    else
        pool_run_here(items, finish_list, &context);
}

ww_status gpu_rows_range(ww_device *device, const range_job *job)
{
    range r = {.device = gpu_of(device),
               .job = job,
               .search = job->search,
               .last = canon_make_key(job->search.metric, job->bound, UINT32_MAX),
               .bounded = is_bounded(job),
               .stats = {.certificate = INFINITY}};
    r.search.k = 1; /* screened searches size their lists by k */
    ww_status status = segment_table_make(&job->search, false, &r.table, &r.rows);
    if (status == WW_OK && r.rows.word_count > 0) {
        status = gpu_stream_borrow(r.device, &r.stream);
        if (status == WW_OK)
            status = gpu_stream_return(r.stream, search_all(&r));
    }
    memory_free(r.table.segments);
    if (status == WW_OK)
        finish_lists(r.device, job);
    if (status == WW_OK)
        status = gpu_search_report(&job->search, job->search.query_count);
    /* Only what the bound itself discarded has a certificate. */
    r.stats.certificate = r.stats.rows_screened > r.stats.rows_kept ? fminf(r.stats.certificate, 0.0f) : INFINITY;
    if (status == WW_OK)
        search_stats_add(job->search.stats, &r.stats);
    return status;
}
