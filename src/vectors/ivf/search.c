/* Searches only some lists.
 *
 *   ivf_search()       the whole call: reads everything exactly if that is what the rule asks for (reads_all()), else rounds
 *   search_rounds()    rounds of as many queries as have room for their ordered lists
 *   search_round()     one round: order, choose, read, prove
 *     order            a search of the centroids gives the nearest `known` lists of each query: a few more than it will read
 *     choose_lists()   each query takes lists from the front while the rule says so, and on until they have `wanted` rows;
 *                      if the ordered ones do not suffice, all are ordered (order_more())
 *     read             rows_search_lists() by the backend, or where it cannot read lists read_with_masks(): a search of all
 *                      rows per query, with a mask of the rows in its lists
 *     prove            ivf_count_proven() (proven.c): how many hits are better than everything in unread lists
 *
 * A rule (calibrate.c) is a number of lists, or a factor: lists whose centroid is at most this many times as far away as the
 * nearest one. Nothing but the rule and the numbers of admitted rows decides which rows are read, so results have the same bits
 * on every device, for every batch size and number of threads.
 */
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/array.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "device/results.h"
#include "vectors/ivf/ivf.h"

enum {
    ROUND_KEYS = 1 << 22, /* lists of queries that are ordered at a time: 32 MiB of keys */
    LISTS_AHEAD = 8,      /* lists to order besides those that will be read ... */
    LISTS_AHEAD_PART = 4, /* ... and additionally 1/4 of those */
};

typedef struct probing {
    const ww_collection *collection;
    const ivf *index;
    const search_job *job;
    ivf_rule rule;
    int64_t wanted;    /* hits that each query should have */
    int64_t *admitted; /* admitted rows of each list, -1: not counted yet; NULL: all rows are admitted */
    row_list *lists;   /* in the backend's format; set for lists that will be read */
    key_list *order;   /* the ordered lists of each query of the round, nearest first: at least `known` */
    int64_t known;
    proof_extremes extremes;
    int64_t *starts;   /* where the lists of each query of the round start in `numbers` */
    uint32_t *numbers; /* the lists to read */
    int64_t numbers_count, numbers_room;
    uint64_t *mask; /* for one query, if masks are used; all 0 between queries */
    int64_t round_queries;
} probing;

/* ---- admitted rows
   --------------------------------------------------------------------------------------------------------- */

static bool is_admitted(const ww_collection *c, const search_job *job, int64_t row)
{
    if (job->mask && (row >= job->mask_rows || !(job->mask[row / 64] >> row % 64 & 1)))
        return false;
    return store_is_live(&c->store, row);
}

static int64_t count_list(const ww_collection *c, const search_job *job, const ivf_list *list)
{
    int64_t count = 0;
    for (int64_t i = 0; i < list->count; i++)
        count += is_admitted(c, job, list->rows[i]);
    return count;
}

static int64_t rows_admitted(probing *p, int64_t list)
{
    const ivf_list *rows = &p->index->lists[list];
    if (!p->admitted)
        return rows->count;
    if (p->admitted[list] < 0)
        p->admitted[list] = count_list(p->collection, p->job, rows);
    return p->admitted[list];
}

/* Counts the live rows that the job's mask admits. */
static int64_t count_admitted(const ww_collection *c, const search_job *job)
{
    const row_store *store = &c->store;
    int64_t count = 0;
    if (!job->mask)
        return store->rows_live;
    for (int64_t s = 0; s < store->segment_count; s++) {
        const segment *part = &store->segments[s];
        for (int64_t w = 0; w * 64 < part->count; w++) {
            const int64_t first = part->first_row + w * 64, covered = job->mask_rows - first;
            uint64_t word = covered > 0 ? store->shelves[s].live[w] & job->mask[first / 64] : 0;
            if (covered > 0 && covered < 64)
                word &= (UINT64_C(1) << covered) - 1;
            count += __builtin_popcountll(word);
        }
    }
    return count;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static ww_status take_memory(probing *p)
{
    const ivf *index = p->index;
    const row_store *store = &p->collection->store;
    const bool all = !p->job->mask && store->rows_live == store->rows_count;
    const bool masks = !ivf_reads_lists(p->collection);
    const size_t nlist = (size_t)index->nlist, queries = (size_t)p->round_queries;
    const size_t words = masks ? (size_t)divide_up_i64(store->rows_count, 64) : 0;
    p->order = memory_alloc_zeroed(queries, sizeof *p->order);
    p->starts = memory_alloc((queries + 1) * sizeof *p->starts);
    p->lists = memory_alloc(nlist * sizeof *p->lists);
    p->admitted = all ? NULL : memory_alloc(nlist * sizeof *p->admitted);
    p->mask = masks ? memory_alloc_zeroed(words, sizeof *p->mask) : NULL;
    if (!p->order || !p->starts || !p->lists || (!all && !p->admitted) || (masks && !p->mask))
        return memory_failed("a search by an index", (nlist + queries) * sizeof *p->order + words * sizeof *p->mask);
    for (int64_t i = 0; p->admitted && i < index->nlist; i++)
        p->admitted[i] = -1;
    return WW_OK;
}

static void forget_order(const probing *p)
{
    for (int64_t q = 0; p->order && q < p->round_queries; q++) {
        key_list_free(&p->order[q]);
        p->order[q] = (key_list){0};
    }
}

static void free_memory(probing *p)
{
    forget_order(p);
    memory_free(p->mask);
    memory_free(p->admitted);
    memory_free(p->numbers);
    memory_free(p->lists);
    memory_free(p->starts);
    memory_free(p->order);
}

/* Adds a list to read. */
static ww_status put_number(probing *p, uint32_t list)
{
    const ww_status grown =
        array_reserve(&p->numbers, &p->numbers_room, p->numbers_count + 1, sizeof *p->numbers, "the lists that a search reads");
    if (grown != WW_OK)
        return grown;
    const ivf_list *from = &p->index->lists[list];
    p->lists[list] = (row_list){from->rows, from->count};
    p->numbers[p->numbers_count++] = list;
    return WW_OK;
}

/* ---- a round of queries -------------------------------------------------------------------------------------------------- */

/* Returns a job that searches the centroids for the same queries. */
static search_job centroid_job(const ivf *index, const search_job *asked)
{
    search_job job = *asked;
    job.type = ROW_F32;
    job.segments = index->store.segments;
    job.segment_count = store_segments_used(&index->store);
    job.mask = NULL;
    job.screen = true;
    job.stats = NULL;
    job.marks = NULL;
    job.progress = NULL;
    return job;
}

float ivf_all_lists(const ivf *index)
{
    return index->metric == CANON_L2 ? INFINITY : -INFINITY;
}

ww_status ivf_order_lists(const ivf *index, const search_job *asked, float bound, key_list *order)
{
    ww_device *device = index->store.device;
    const range_job job = {.search = centroid_job(index, asked), .bound = bound, .limit = index->nlist, .found = order};
    return device->backend->rows_range(device, &job);
}

ww_status ivf_order_nearest(const ivf *index, const search_job *asked, int64_t known, key_list *order)
{
    ww_device *device = index->store.device;
    const size_t count = (size_t)(asked->query_count * known);
    if (known >= index->nlist)
        return ivf_order_lists(index, asked, ivf_all_lists(index), order);
    search_job job = centroid_job(index, asked);
    job.k = (int32_t)known;
    job.rows = memory_alloc(count * (sizeof *job.rows + sizeof *job.scores));
    if (!job.rows)
        return memory_failed("the nearest lists of queries", count * (sizeof *job.rows + sizeof *job.scores));
    job.scores = (float *)(job.rows + count);
    ww_status status = device->backend->rows_search(device, &job);
    for (int64_t q = 0; status == WW_OK && q < asked->query_count; q++) {
        order[q].keys = memory_alloc((size_t)known * sizeof *order[q].keys);
        if (!order[q].keys)
            status = memory_failed("the nearest lists of queries", (size_t)known * sizeof *order[q].keys);
        for (int64_t i = q * known; order[q].keys && i < (q + 1) * known; i++)
            order[q].keys[order[q].count++] = canon_make_key(index->metric, job.scores[i], (uint32_t)job.rows[i]);
    }
    memory_free(job.rows);
    return status;
}

/* Orders all lists of query q whose centroid's score is at least as good as `bound`. */
static ww_status order_more(const probing *p, const search_job *round, int64_t q, float bound)
{
    if (p->order[q].count == p->index->nlist)
        return WW_OK;
    search_job one = *round;
    one.queries += q * round->query_stride;
    one.query_count = 1;
    key_list_free(&p->order[q]);
    p->order[q] = (key_list){0};
    return ivf_order_lists(p->index, &one, bound, &p->order[q]);
}

double ivf_distance(const ivf *index, canon_key key)
{
    const double score = (double)canon_key_score(index->metric, key);
    return index->metric == CANON_L2 ? score : 1.0 - score;
}

static bool rule_reads(const probing *p, const key_list *order, int64_t number)
{
    if (!(p->rule.factor > 0.0))
        return number < p->rule.nprobe;
    return ivf_distance(p->index, order->keys[number]) <= p->rule.factor * ivf_distance(p->index, order->keys[0]);
}

/* Returns the number of lists that a query reads; if that is all ordered lists, it may need more. */
static int64_t lists_to_read(probing *p, const key_list *order)
{
    int64_t lists = 0, rows = 0;
    while (lists < order->count && (rows < p->wanted || rule_reads(p, order, lists)))
        rows += rows_admitted(p, canon_key_row(order->keys[lists++]));
    return lists;
}

/* Returns the bytes that are read per row. */
static int64_t row_bytes(const search_job *job)
{
    return job->screen ? canon_padded(job->dim) + 16 /* scale, residual, norm, number */
                       : canon_padded(job->dim) * (int64_t)row_type_bytes(job->type) + 8;
}

static ww_status choose_lists(probing *p, const search_job *round)
{
    ww_status status = WW_OK;
    search_stats *stats = p->job->stats;
    p->numbers_count = 0;
    p->starts[0] = 0;
    for (int64_t q = 0; status == WW_OK && q < round->query_count; q++) {
        int64_t lists = lists_to_read(p, &p->order[q]);
        if (lists == p->order[q].count) {
            status = order_more(p, round, q, ivf_all_lists(p->index));
            lists = lists_to_read(p, &p->order[q]);
        }
        for (int64_t i = 0; status == WW_OK && i < lists; i++) {
            const uint32_t list = canon_key_row(p->order[q].keys[i]);
            status = put_number(p, list);
            if (stats)
                stats->list_rows_read += p->index->lists[list].count;
            if (stats && !p->mask)
                stats->list_bytes_read += p->index->lists[list].count * row_bytes(p->job);
        }
        p->starts[q + 1] = p->numbers_count;
    }
    if (stats)
        stats->lists_read += p->numbers_count;
    return status;
}

static void set_mask(const probing *p, int64_t q, bool to)
{
    for (int64_t i = p->starts[q]; i < p->starts[q + 1]; i++) {
        const row_list *list = &p->lists[p->numbers[i]];
        for (int64_t r = 0; r < list->count; r++) {
            const int64_t row = list->rows[r];
            if (!to)
                p->mask[row / 64] = 0;
            else if (is_admitted(p->collection, p->job, row))
                p->mask[row / 64] |= UINT64_C(1) << row % 64;
        }
    }
}

static ww_status read_with_masks(const probing *p, const search_job *round)
{
    const ww_device *device = p->collection->device;
    ww_status status = WW_OK;
    for (int64_t q = 0; status == WW_OK && q < round->query_count; q++) {
        search_job one = *round;
        one.queries += q * round->query_stride;
        one.query_count = 1;
        one.rows += q * round->k;
        one.scores += q * round->k;
        one.mask = p->mask;
        one.mask_rows = p->collection->store.rows_count;
        if (one.stats)
            one.stats->list_bytes_read += one.mask_rows * row_bytes(&one); /* a search with a mask reads all rows */
        set_mask(p, q, true);
        status = device->backend->rows_search(p->collection->device, &one);
        set_mask(p, q, false);
    }
    return status;
}

static ww_status search_round(probing *p, const search_job *round, int64_t *proven)
{
    const backend *api = p->collection->device->backend;
    ww_status status = ivf_order_nearest(p->index, round, p->known, p->order);
    if (status == WW_OK)
        status = choose_lists(p, round);
    const list_job job = {.search = *round,
                          .lists = p->lists,
                          .numbers = p->numbers,
                          .starts = p->starts,
                          .all_count = !p->admitted,
                          .held = p->index->stale ? NULL : p->index->held};
    if (status == WW_OK)
        status = !p->mask ? api->rows_search_lists(p->collection->device, &job) : read_with_masks(p, round);
    if (status == WW_OK && proven)
        status = ivf_count_proven(&(ivf_proofs){p->index, round, p->order, p->starts, &p->extremes}, proven);
    forget_order(p);
    return status;
}

/* ---- the whole search ---------------------------------------------------------------------------------------------------- */

static ww_status told(const search_job *job, int64_t done)
{
    if (!progress_tell(job->progress, job->progress_user, done, job->query_count))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "the search was cancelled");
}

static ww_status search_rounds(probing *p, int64_t *proven)
{
    const search_job *job = p->job;
    ww_status status = take_memory(p);
    for (int64_t first = 0; status == WW_OK && first < job->query_count; first += p->round_queries) {
        search_job round = *job;
        round.queries += first * job->query_stride;
        round.query_count = min_i64(p->round_queries, job->query_count - first);
        round.rows += first * job->k;
        round.scores += first * job->k;
        round.progress = NULL;
        status = told(job, first);
        if (status == WW_OK)
            status = search_round(p, &round, proven ? proven + first : NULL);
    }
    if (status == WW_OK)
        status = told(job, job->query_count);
    free_memory(p);
    return status;
}

/* Searches exactly: every hit is proven. */
static ww_status search_exactly(const ww_collection *c, const search_job *job, int64_t *proven)
{
    const ww_status status = c->device->backend->rows_search(c->device, job);
    for (int64_t q = 0; status == WW_OK && proven && q < job->query_count; q++) {
        proven[q] = 0;
        while (proven[q] < job->k && job->rows[q * job->k + proven[q]] >= 0)
            proven[q]++;
    }
    return status;
}

/* Returns how many lists of each query to order before any is read; all of them if that is not more work. */
static int64_t lists_known(const ivf *index, ivf_rule rule)
{
    const int64_t nprobe = min_i64(rule.nprobe, index->nlist), expected = rule.factor > 0.0 ? 2 * nprobe : nprobe;
    const int64_t known = expected + expected / LISTS_AHEAD_PART + LISTS_AHEAD;
    return known < index->nlist / 2 && known <= SEARCH_K_MAX ? known : index->nlist;
}

/* Returns true if a query with this rule reads all rows anyway, because its mask admits few of them. */
static bool reads_all(const ivf *index, ivf_rule rule, bool masked, int64_t admitted)
{
    const bool few = masked && (double)admitted * (double)index->nlist <= (double)rule.nprobe * (double)index->rows;
    return (rule.factor == 0.0 && rule.nprobe >= index->nlist) || few;
}

ww_status ivf_search(const ww_collection *c, const search_job *job, ivf_rule rule, int64_t *proven)
{
    const ivf *index = c->index;
    const int64_t admitted = count_admitted(c, job);
    if (reads_all(index, rule, job->mask != NULL, admitted))
        return search_exactly(c, job, proven);
    probing p = {.collection = c,
                 .index = index,
                 .job = job,
                 .rule = rule,
                 .wanted = min_i64(job->k, admitted),
                 .known = lists_known(index, rule)};
    p.round_queries = min_i64(max_i64(ROUND_KEYS / p.known, 1), job->query_count);
    if (proven)
        p.extremes = proof_extremes_of(c->index);
    return search_rounds(&p, proven);
}
