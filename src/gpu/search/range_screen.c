/* A range search with the screen. The bound is the threshold from the start, so there is no sample: the keep kernel lists the
 * rows that the bound does not exclude, and screen_range scores them.
 *
 * A single query is searched by screen_one.h for its best few results. If fewer than those are within the bound, they are all.
 * In a batch, queries whose lists were full are searched again, once, with longer lists. A batch whose entries have no room is
 * halved.
 */
#include <string.h>

#include "base/memory.h"
#include "device/certificate.h"
#include "gpu/search/choice/search_choice.h"
#include "gpu/search/range.h"
#include "gpu/search/screen_one.h"
#include "gpu/search/search_marks.h"
#include "kernels/search/packed_layout.h"

enum {
    ONE_RESULTS = 32,       /* results that a block selects without sorting */
    RANGE_BLOCKS_MAX = 64,  /* blocks for one query */
    RANGE_BLOCKS_UNIT = 16, /* blocks for all queries, per compute unit */
    LISTS_ROWS = 32 << 20,  /* 256 MiB of lists */
    LISTS_QUERIES = 2048,   /* divided among at most this many queries: 16384 rows each */
    LONGER = 8              /* factor for the lists of queries that are searched again */
};

typedef struct range_screen {
    range *range;
    screen_plan plan;
    kernel_rows rows;
    bool uploaded; /* the table of segments */
    int64_t *left; /* numbers of queries that were not answered */
    int64_t left_count;
} range_screen;

/* The number of rows within a bound is unknown and differs between the queries of a batch. So lists are as long as memory
 * allows, and few queries have to be searched again. */
int32_t range_list_capacity(const range *r)
{
    const int64_t tuned = r->device->base.tuning.screen_list_capacity, rows = (int64_t)r->rows.word_count * SEARCH_WORD_ROWS;
    const int64_t queries = min_i64(r->search.query_count, LISTS_QUERIES);
    return (int32_t)(tuned > 0 ? tuned : min_i64(rows, LISTS_ROWS / queries));
}

/* Returns true if the threshold by which rows were discarded was not better than the bound. A better one proves a defect, and
 * the query must be searched without the screen. */
static bool is_proven(range_screen *s, int64_t number, canon_key threshold)
{
    range *r = s->range;
    if (!certificate_fails(threshold, r->last)) {
        const float margin = certificate_margin(r->search.metric, threshold, r->last);
        r->stats.certificate = fminf(r->stats.certificate, margin);
        return true;
    }
    r->failed[r->stats.repeated_queries++] = number;
    return false;
}

/* The initial threshold: the worst key with the bound's score. */
static canon_key threshold_of(const range *r)
{
    return r->last | UINT32_MAX;
}

/* ---- one query ------------------------------------------------------------------------------------------------------------
 */

/* Searches for the query's best few rows. Sets `answered` if they are all that is within the bound. */
static ww_status run_one(range_screen *s, bool *answered)
{
    range *r = s->range;
    search_job job = r->search;
    canon_key results[ONE_RESULTS + 2], threshold = threshold_of(r);
    job.k = ONE_RESULTS;
    screen_round round = {.device = r->device, .stream = r->stream, .job = &job, .plan = &s->plan, .rows = s->rows};
    const screen_input input = {.queries = job.queries, .stride = job.query_stride, .count = 1, .thresholds = &threshold};
    const ww_status status = screen_one_run(&round, &input, &r->table, results);
    if (status != WW_OK)
        return status;
    int64_t within = 0;
    while (within < ONE_RESULTS && results[within] <= r->last)
        within++;
    const int64_t kept = (int64_t)results[ONE_RESULTS + 1];
    *answered = kept <= s->plan.capacity && within < ONE_RESULTS;
    if (!*answered)
        return WW_OK;
    r->stats.rows_screened += gpu_search_rows(&job);
    r->stats.rows_kept += kept;
    r->stats.rows_scored += kept;
    if (!is_proven(s, 0, results[ONE_RESULTS]))
        return WW_OK;
    key_list *list = &r->job->found[0];
    list->total = within;
    for (int64_t i = 0; i < within; i++)
        if (!key_list_add(list, r->job->limit, results[i]))
            return memory_failed("the results of a range search", (size_t)within * sizeof *results);
    return WW_OK;
}

/* ---- batches --------------------------------------------------------------------------------------------------------------
 */

static ww_status upload_table(range_screen *s)
{
    const range *r = s->range;
    void *segments = NULL;
    if (s->uploaded)
        return WW_OK;
    ww_status status = gpu_workspace(r->stream, WORKSPACE_TABLE, r->table.bytes, &segments);
    if (status == WW_OK)
        status = gpu_copy_in(r->stream, segments, r->table.segments, r->table.bytes);
    s->rows.segments = segments;
    s->uploaded = status == WW_OK;
    return status;
}

static ww_status score_listed(const screen_round *round, const range_answer *answer)
{
    const screen_range_args args = {.rows = round->rows,
                                    .queries = round->queries,
                                    .lists = round->lists,
                                    .capacity = (uint32_t)round->plan->capacity,
                                    .list = answer->list};
    const int64_t units = max_i64(round->device->base.info.compute_units, 1);
    const int64_t blocks = min_i64(max_i64(RANGE_BLOCKS_UNIT * units / round->queries.count, 1), RANGE_BLOCKS_MAX);
    return launch_screen_range(round->stream, grid_of_2(blocks, round->queries.count), SCREEN_THREADS, 0, &args);
}

/* Takes the results of a batch. Queries whose lists were full are left. */
static ww_status settle(range_screen *s, const range_answer *answer, const range_queries *queries)
{
    range *r = s->range;
    const int64_t rows = gpu_search_rows(&r->search);
    const ww_status status = range_answer_take(answer, r, queries);
    for (int64_t i = 0; status == WW_OK && i < queries->count; i++) {
        const int64_t number = queries->numbers ? queries->numbers[i] : queries->first + i;
        const uint32_t kept = answer->kept[i];
        const bool full = kept > (uint32_t)s->plan.capacity;
        if (full)
            s->left[s->left_count++] = number;
        else if (!is_proven(s, number, answer->thresholds[i]))
            key_list_free(range_found(r, queries, i));
        r->stats.rows_kept += min_i64(kept, rows);
        r->stats.rows_scored += full ? 0 : kept;
    }
    r->stats.rows_screened += rows * queries->count;
    return status;
}

/* Searches for a batch, at most a round. Sets `room` if the list had room for its entries. */
static ww_status run_batch(range_screen *s, const range_queries *queries, bool *room)
{
    range *r = s->range;
    screen_round round = {
        .device = r->device, .stream = r->stream, .job = &r->search, .plan = &s->plan, .rows = s->rows, .only_lists = true};
    const size_t bounds_bytes = (size_t)queries->count * sizeof(canon_key);
    canon_key *bounds = memory_alloc(bounds_bytes);
    const int64_t entries = range_room(r, queries->count);
    range_answer answer = {0};
    ww_status status = WW_OK;
    if (bounds == NULL)
        status = memory_failed("the queries of a range search", bounds_bytes);
    for (int64_t i = 0; status == WW_OK && i < queries->count; i++)
        bounds[i] = threshold_of(r);
    if (status == WW_OK)
        status = screen_round_begin(&round, queries->count);
    const screen_input input = {.queries = queries->queries,
                                .on_device = queries->on_device,
                                .stride = queries->stride,
                                .count = queries->count,
                                .thresholds = bounds};
    if (status == WW_OK)
        status = range_answer_begin(
            &answer, r,
            (range_answer_size){
                .workspace = WORKSPACE_RANGE, .queries = queries->count, .slots = round.queries.slots, .room = entries});
    if (status == WW_OK) {
        round.queries.thresholds = answer.thresholds_used; /* so that one copy brings the answer and the thresholds */
        status = screen_round_list(&round, &input);
    }
    if (status == WW_OK)
        status = score_listed(&round, &answer);
    if (status == WW_OK)
        status = search_mark(r->stream, "scores of what was kept");
    if (status == WW_OK)
        status = range_answer_end(&answer, r);
    if (status == WW_OK)
        status = search_mark(r->stream, "results out");
    if (status == WW_OK)
        status = search_marks_end(r->stream);
    *room = answer.length <= (uint64_t)entries;
    if (status == WW_OK && *room)
        status = settle(s, &answer, queries);
    range_answer_free(&answer);
    memory_free(bounds);
    return status;
}

/* Searches for all queries in rounds. A batch whose entries have no room is halved; a single query without room is left. */
static ww_status run_batches(range_screen *s, const range_queries *all)
{
    ww_status status = upload_table(s);
    int64_t batch_max = s->plan.round_queries;
    for (int64_t first = 0; status == WW_OK && first < all->count;) {
        const range_queries some = {.queries = all->queries + first * all->stride,
                                    .on_device = all->on_device,
                                    .stride = all->stride,
                                    .count = min_i64(batch_max, all->count - first),
                                    .first = all->first + first,
                                    .numbers = all->numbers ? all->numbers + first : NULL};
        bool room = true;
        if (!all->numbers)
            status = gpu_search_report(&s->range->job->search, all->first + first);
        if (status == WW_OK)
            status = run_batch(s, &some, &room);
        if (status == WW_OK && !room && some.count == 1)
            s->left[s->left_count++] = all->numbers ? all->numbers[first] : all->first + first;
        if (room || some.count == 1)
            first += some.count;
        else
            batch_max = some.count / 2;
    }
    return status;
}

/* Searches again for the queries whose lists were full, with longer lists. Copies their numbers first, because `left` is filled
 * again. */
static ww_status search_again(range_screen *s)
{
    const search_job *job = &s->range->search;
    const int64_t count = s->left_count, rows = (int64_t)s->rows.word_count * SEARCH_WORD_ROWS;
    const int64_t capacity = min_i64((int64_t)s->plan.capacity * LONGER, rows);
    if (count == 0 || capacity <= s->plan.capacity)
        return WW_OK;
    const size_t bytes = (size_t)count * ((size_t)job->dim * sizeof(float) + sizeof(int64_t));
    int64_t *numbers = memory_alloc(bytes);
    if (numbers == NULL)
        return memory_failed("queries to search again", bytes);
    float *queries = (float *)(void *)(numbers + count);
    memcpy(numbers, s->left, (size_t)count * sizeof *numbers);
    ww_status status = gpu_search_gather(s->range->stream, job, numbers, count, queries);
    s->plan = search_screen_plan(s->range->device, job, count, (int32_t)capacity);
    s->left_count = 0;
    s->range->stats.fallback_queries += count;
    gpu_search_mark_queries(job, numbers, count, MARK_FALLBACK);
    const range_queries again = {.queries = queries, .stride = job->dim, .count = count, .numbers = numbers};
    if (status == WW_OK)
        status = run_batches(s, &again);
    memory_free(numbers);
    return status;
}

ww_status range_screened(range *r, const screen_plan *plan, int64_t *left, int64_t *left_count)
{
    const search_job *job = &r->search;
    range_screen s = {.range = r, .plan = *plan, .rows = r->rows, .left = left};
    bool answered = false;
    ww_status status = gpu_search_mask(r->stream, WORKSPACE_MASK, job, &s.rows.mask, &s.rows.mask_words);
    if (status == WW_OK && s.plan.one)
        status = run_one(&s, &answered);
    const range_queries all = range_all(job);
    if (status == WW_OK && !answered)
        status = run_batches(&s, &all);
    if (status == WW_OK && !answered)
        status = search_again(&s);
    *left_count = s.left_count;
    return status;
}
