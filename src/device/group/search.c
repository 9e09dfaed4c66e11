/* Searches on all members at once: each searches its own segments, on a thread of the group. Then the members' keys are merged,
 * query by query. Rows have the collection's numbers everywhere, so ties are decided as on one device, and no number has to be
 * translated. */
#include <math.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "device/group/group.h"
#include "device/results.h"

enum {
    MESSAGE_BYTES = 768,
    ROUND_BYTES = 256 << 20, /* of the members' results; more queries take several rounds */
    QUERIES_TOGETHER = 64,   /* queries that a thread merges together */
    KEYS_FOR_THREADS = 1 << 16
};

/* The work of one member. */
typedef struct part {
    struct run *run;
    int32_t member;
    segment *segments;
    int64_t segment_count;
    int64_t rows_count;
    int64_t *rows; /* results of this member */
    float *scores;
    uint8_t *marks;
    key_list *found; /* of a range search */
    search_stats stats;
    atomic_int_least64_t done; /* queries done */
    ww_status status;
    char message[MESSAGE_BYTES];
    vendor_failure failure;
} part;

/* A running search. */
typedef struct run {
    group_device *group;
    const search_job *job;
    const range_job *range; /* NULL: not a range search */
    const list_job *lists;  /* NULL: not a search of lists */
    part *parts;            /* one for each member with rows */
    int32_t part_count;
    bool watched;      /* the caller has a progress callback or a token, which only its thread sees */
    segment *segments; /* the segments of all parts */
    int64_t rows_all;
    int64_t first_query, query_count; /* the queries of this round */
    atomic_bool cancelled;
    atomic_bool lost_memory; /* there was not enough memory for the lists of a range search */
} run;

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

static void run_destroy(run *r)
{
    for (int32_t p = 0; r->parts && p < r->part_count; p++) {
        part *one = &r->parts[p];
        for (int64_t q = 0; one->found && r->range && one->found != r->range->found && q < r->job->query_count; q++)
            key_list_free(&one->found[q]);
        if (r->range && one->found != r->range->found)
            memory_free(one->found);
        memory_free(one->rows);
        memory_free(one->scores);
        memory_free(one->marks);
    }
    memory_free(r->parts);
    memory_free(r->segments);
}

int32_t group_searcher(const group_device *group, int32_t member)
{
    int32_t first = 0;
    while (group->members[first].device != group->members[member].device)
        first++;
    return group->base.tuning.group_apart ? member : first;
}

/* Sorts the segments by member. Fails if a segment is on a dropped member, because its rows would be missing from the
 * answer. */
static ww_status make_parts(run *r)
{
    const search_job *job = r->job;
    int64_t filled = 0;
    r->parts = memory_alloc_zeroed((size_t)r->group->count, sizeof *r->parts);
    r->segments = memory_alloc((size_t)job->segment_count * sizeof *r->segments);
    if (!r->parts || !r->segments)
        return memory_failed("a search by a group", (size_t)job->segment_count * sizeof *r->segments);
    for (int32_t m = 0; m < r->group->count; m++) {
        part *one = &r->parts[r->part_count];
        one->run = r;
        one->member = m;
        one->segments = r->segments + filled;
        for (int64_t s = 0; s < job->segment_count; s++)
            if (job->segments[s].count > 0 && group_searcher(r->group, job->segments[s].member) == m) {
                r->segments[filled++] = job->segments[s];
                one->rows_count += job->segments[s].count;
            }
        one->segment_count = r->segments + filled - one->segments;
        const ww_status status = one->segment_count > 0 ? member_check(r->group, m) : WW_OK;
        if (status != WW_OK)
            return status;
        r->rows_all += one->rows_count;
        r->part_count += one->segment_count > 0;
    }
    return WW_OK;
}

static ww_status take_memory(run *r, int64_t queries)
{
    const size_t places = (size_t)queries * (size_t)r->job->k;
    bool all = true;
    for (int32_t p = 0; p < r->part_count; p++) {
        part *one = &r->parts[p];
        one->marks = memory_alloc((size_t)queries);
        all = all && one->marks;
        if (r->range) {
            one->found = p == 0 ? r->range->found : memory_alloc_zeroed((size_t)queries, sizeof *one->found);
            all = all && one->found;
        } else {
            one->rows = memory_alloc(places * sizeof *one->rows);
            one->scores = memory_alloc(places * sizeof *one->scores);
            all = all && one->rows && one->scores;
        }
    }
    return all ? WW_OK
               : memory_failed("the results of a group's members",
                               (size_t)r->part_count * places * (sizeof *r->parts->rows + sizeof *r->parts->scores));
}

/* ---- progress ------------------------------------------------------------------------------------------------------------ */

/* Runs on a member's thread: the callback is only called on the caller's thread. */
static int note_progress(int64_t done, int64_t total, void *user)
{
    (void)total;
    part *one = user;
    atomic_store(&one->done, done);
    return atomic_load(&one->run->cancelled);
}

/* Weighted by rows, because a member with few rows ends sooner. */
static bool watch(void *context, int64_t items_done)
{
    (void)items_done;
    run *r = context;
    double done = 0;
    for (int32_t p = 0; p < r->part_count; p++)
        done += (double)atomic_load(&r->parts[p].done) * (double)r->parts[p].rows_count;
    const int64_t queries = min_i64((int64_t)(done / (double)r->rows_all), r->query_count);
    if (progress_tell(r->job->progress, r->job->progress_user, r->first_query + queries, r->job->query_count))
        atomic_store(&r->cancelled, true);
    return atomic_load(&r->cancelled);
}

static ww_status tell(const run *r, int64_t done)
{
    return progress_tell(r->job->progress, r->job->progress_user, done, r->job->query_count)
               ? ww_fail(WW_CANCELLED, "the search was cancelled")
               : WW_OK;
}

/* ---- a round ------------------------------------------------------------------------------------------------------------- */

static search_job job_of(part *one)
{
    const run *r = one->run;
    search_job job = *r->job;
    job.segments = one->segments;
    job.segment_count = one->segment_count;
    job.queries = r->job->queries + r->first_query * r->job->query_stride;
    job.query_count = r->query_count;
    job.rows = one->rows;
    job.scores = one->scores;
    job.stats = &one->stats;
    job.marks = one->marks;
    if (r->watched) {
        job.progress = note_progress;
        job.progress_user = one;
    }
    return job;
}

/* Does a member's part of the run: `search` is its job, `found` receives the lists of a range search. */
static ww_status member_search(const run *r, int32_t member, const search_job *search, key_list *found)
{
    ww_device *device = r->group->members[member].device;
    ww_status status = WW_OK;
    if (r->range) {
        const range_job range = {.search = *search, .bound = r->range->bound, .limit = r->range->limit, .found = found};
        status = device->backend->rows_range(device, &range);
    } else if (r->lists) {
        list_job lists = group_lists_of(r->lists, member);
        lists.search = *search;
        lists.starts += r->first_query;
        status = device->backend->rows_search_lists(device, &lists);
    } else {
        status = device->backend->rows_search(device, search);
    }
    return member_failed(r->group, member, status);
}

static void search_part(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    run *r = context;
    part *one = &r->parts[item];
    const search_job job = job_of(one);
    memset(one->marks, 0, (size_t)r->query_count);
    const double begin = clock_seconds();
    one->status = member_search(r, one->member, &job, one->found);
    if (one->status == WW_OK && !r->lists) /* a search of lists does not show how fast all rows are read */
        group_learn(r->group, one->member, (double)one->rows_count * (double)r->query_count * canon_padded(r->job->dim),
                    clock_seconds() - begin);
    if (one->status != WW_OK)
        text_copy(one->message, sizeof one->message, ww_error_message());
    one->failure = vendor_failure_noted();
}

/* Returns the first failure in the order of members, with its message on this thread. Ignores members that were cancelled
 * because of another failure. */
static ww_status status_of(const run *r)
{
    const part *worst = NULL;
    for (int32_t p = 0; p < r->part_count; p++) {
        const part *one = &r->parts[p];
        if (one->status != WW_OK && (!worst || worst->status == WW_CANCELLED))
            worst = one;
    }
    if (!worst)
        return WW_OK;
    if (worst->status == WW_CANCELLED)
        return ww_fail(WW_CANCELLED, "the search was cancelled");
    vendor_failure_note(&worst->failure);
    return ww_fail(worst->status, "%s", worst->message);
}

static ww_status search_parts(run *r)
{
    for (int32_t p = 0; p < r->part_count; p++) {
        r->parts[p].status = WW_CANCELLED;
        atomic_store(&r->parts[p].done, 0);
    }
    (void)pool_run(r->group->searchers, r->part_count, search_part, r->watched ? watch : NULL, r);
    return status_of(r);
}

/* ---- merging ------------------------------------------------------------------------------------------------------------- */

/* Merges the sorted results of all members to the k best. Each result takes as many comparisons as members: there are few of
 * both. */
static void merge_query(const run *r, int64_t query)
{
    const int32_t k = r->job->k, metric = r->job->metric;
    int32_t at[MEMBERS_MAX] = {0};
    canon_key heads[MEMBERS_MAX] = {CANON_KEY_WORST};
    const int64_t first = query * k;
    int64_t *rows = r->job->rows + (r->first_query + query) * k;
    float *scores = r->job->scores + (r->first_query + query) * k;
    for (int32_t p = 0; p < r->part_count; p++) {
        const part *one = &r->parts[p];
        heads[p] =
            one->rows[first] >= 0 ? canon_make_key(metric, one->scores[first], (uint32_t)one->rows[first]) : CANON_KEY_WORST;
    }
    int32_t found = 0;
    for (; found < k; found++) {
        int32_t best = 0;
        for (int32_t p = 1; p < r->part_count; p++)
            best = heads[p] < heads[best] ? p : best;
        if (heads[best] == CANON_KEY_WORST)
            break;
        const part *one = &r->parts[best];
        rows[found] = one->rows[first + at[best]];
        scores[found] = one->scores[first + at[best]];
        const int64_t next = first + ++at[best];
        heads[best] = at[best] < k && one->rows[next] >= 0
                          ? canon_make_key(metric, one->scores[next], (uint32_t)one->rows[next])
                          : CANON_KEY_WORST;
    }
    results_pad(metric, k - found, rows + found, scores + found);
}

/* The first member writes directly to the caller's lists. */
static void merge_lists(run *r, int64_t query)
{
    key_list *all = &r->range->found[query];
    for (int32_t p = 1; p < r->part_count; p++) {
        if (!key_list_add_all(all, r->range->limit, &r->parts[p].found[query]))
            atomic_store(&r->lost_memory, true);
        key_list_free(&r->parts[p].found[query]);
    }
    key_list_finish(all, r->range->limit);
}

static void merge_some(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    run *r = context;
    const int64_t end = min_i64((item + 1) * QUERIES_TOGETHER, r->query_count);
    for (int64_t q = item * QUERIES_TOGETHER; q < end; q++) {
        if (r->range)
            merge_lists(r, q);
        else
            merge_query(r, q);
    }
}

static ww_status merge(run *r)
{
    const int64_t items = divide_up_i64(r->query_count, QUERIES_TOGETHER);
    if (!r->range && r->query_count * r->job->k * r->part_count < KEYS_FOR_THREADS)
        pool_run_here(items, merge_some, r);
    else
        (void)pool_run(r->group->searchers, items, merge_some, NULL, r);
    return atomic_load(&r->lost_memory) ? memory_failed("the results of a range search by a group", 0) : WW_OK;
}

/* Each row is counted by the member that has it; a query that several members marked is counted once. */
static void add_stats(const run *r)
{
    search_stats *stats = r->job->stats;
    for (int64_t q = 0; stats && q < r->query_count; q++) {
        uint32_t marks = 0;
        for (int32_t p = 0; p < r->part_count; p++)
            marks |= r->parts[p].marks[q];
        stats->fallback_queries += (marks & MARK_FALLBACK) != 0;
        stats->repeated_queries += (marks & MARK_REPEATED) != 0;
    }
    for (int32_t p = 0; stats && p < r->part_count; p++) {
        search_stats *one = &r->parts[p].stats;
        stats->rows_screened += one->rows_screened;
        stats->rows_kept += one->rows_kept;
        stats->rows_scored += one->rows_scored;
        /* The k-th result of all members is at least as good as the k-th of one, so a member's proof also holds for the merged
         * results. */
        stats->certificate = fminf(stats->certificate, one->certificate);
        *one = (search_stats){.certificate = INFINITY};
    }
}

/* ---- the whole search ---------------------------------------------------------------------------------------------------- */

static ww_status run_rounds(run *r)
{
    const search_job *job = r->job;
    const int64_t each = r->part_count * (int64_t)job->k * (int64_t)(sizeof *job->rows + sizeof *job->scores);
    const int64_t round = r->range ? job->query_count : min_i64(job->query_count, max_i64(ROUND_BYTES / each, 1));
    ww_status status = take_memory(r, round);
    for (int32_t p = 0; p < r->part_count; p++)
        r->parts[p].stats.certificate = INFINITY;
    for (; status == WW_OK && r->first_query < job->query_count; r->first_query += round) {
        r->query_count = min_i64(round, job->query_count - r->first_query);
        status = tell(r, r->first_query);
        if (status == WW_OK)
            status = search_parts(r);
        if (status == WW_OK)
            status = merge(r);
        if (status == WW_OK)
            add_stats(r);
    }
    return status == WW_OK ? tell(r, job->query_count) : status;
}

/* If one member has all rows, it searches alone, on the calling thread. */
static ww_status run_on_one_member(const run *r)
{
    const part *one = &r->parts[0];
    search_job search = *r->job;
    search.segments = one->segments;
    search.segment_count = one->segment_count;
    return member_search(r, one->member, &search, r->range ? r->range->found : NULL);
}

static ww_status group_run(run *r)
{
    ww_status status = make_parts(r);
    if (status == WW_OK && r->part_count == 1)
        status = run_on_one_member(r);
    else if (status == WW_OK && r->part_count > 1)
        status = run_rounds(r);
    run_destroy(r);
    return status;
}

ww_status group_rows_search(ww_device *device, const search_job *job)
{
    run r = {.group = group_of(device), .job = job, .watched = job->progress || cancel_given()};
    return group_run(&r);
}

ww_status group_rows_range(ww_device *device, const range_job *job)
{
    run r = {.group = group_of(device), .job = &job->search, .range = job, .watched = job->search.progress || cancel_given()};
    return group_run(&r);
}

ww_status group_rows_search_lists(ww_device *device, const list_job *job)
{
    run r = {.group = group_of(device), .job = &job->search, .lists = job, .watched = job->search.progress || cancel_given()};
    return group_run(&r);
}
