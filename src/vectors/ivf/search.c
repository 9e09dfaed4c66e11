/* Searching some lists only.
 *
 * The centroids are searched for all their scores, which gives each query the order of its lists. The first nprobe of them, or
 * as many as a wanted recall needs (calibrate.c), are read, and more while they hold fewer rows than the query must find. Which
 * rows are read depends on nothing else, so results are the same bits on every device, for every batch and number of threads.
 * How they are read:
 *
 *   rows_search_lists   by the backend itself, where it has a way
 *   with masks          else: a search of all rows for each query, with a mask of the rows in its lists
 *   exact search        with all lists, and where a mask admits no more rows than nprobe lists have
 */
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "device/results.h"
#include "vectors/ivf/ivf.h"

enum {
    ROUND_KEYS = 1 << 22, /* scores of queries and centroids at hand: 32 MiB */
};

typedef struct probing {
    const ww_collection *collection;
    const ivf *index;
    const search_job *job;
    ivf_rule rule;
    int64_t wanted;    /* hits that each query must have */
    int64_t *admitted; /* rows of each list that count, -1: not counted yet; NULL: all do */
    row_list *lists;   /* as the backend takes them */
    key_list *order;   /* the lists of each query of the round, nearest first */
    int64_t *starts;   /* of each query of the round in `numbers` */
    uint32_t *numbers; /* lists to read */
    int64_t numbers_count, numbers_room;
    uint64_t *mask; /* for a query, where masks stand in; all 0 between queries */
    int64_t round_queries;
} probing;

/* ---- which rows count -------------------------------------------------------------------------------------------------------
 */

static bool is_admitted(const probing *p, int64_t row)
{
    const search_job *job = p->job;
    if (job->mask && (row >= job->mask_rows || !(job->mask[row / 64] >> row % 64 & 1)))
        return false;
    return store_is_live(&p->collection->store, row);
}

static int64_t rows_admitted(probing *p, int64_t list)
{
    const ivf_list *rows = &p->index->lists[list];
    if (!p->admitted)
        return rows->count;
    if (p->admitted[list] < 0) {
        int64_t count = 0;
        for (int64_t i = 0; i < rows->count; i++)
            count += is_admitted(p, rows->rows[i]);
        p->admitted[list] = count;
    }
    return p->admitted[list];
}

/* Live rows that the job's mask admits. */
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

/* ---- memory -----------------------------------------------------------------------------------------------------------------
 */

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
    for (int64_t i = 0; i < index->nlist; i++) {
        p->lists[i] = (row_list){index->lists[i].rows, index->lists[i].count, index->lists[i].codes};
        if (p->admitted)
            p->admitted[i] = -1;
    }
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

static ww_status put_number(probing *p, uint32_t list)
{
    if (p->numbers_count == p->numbers_room) {
        const int64_t room = max_i64(2 * p->numbers_room, 256);
        uint32_t *numbers = memory_resize(p->numbers, (size_t)room * sizeof *numbers);
        if (!numbers)
            return memory_failed("the lists that a search reads", (size_t)room * sizeof *numbers);
        p->numbers = numbers;
        p->numbers_room = room;
    }
    p->numbers[p->numbers_count++] = list;
    return WW_OK;
}

/* ---- a round of queries -----------------------------------------------------------------------------------------------------
 */

ww_status ivf_order_lists(const ivf *index, const search_job *asked, key_list *order)
{
    ww_device *device = index->store.device;
    range_job job = {.bound = index->metric == CANON_L2 ? INFINITY : -INFINITY, .limit = index->nlist, .found = order};
    job.search = *asked;
    job.search.type = ROW_F32;
    job.search.segments = index->store.segments;
    job.search.segment_count = store_segments_used(&index->store);
    job.search.mask = NULL;
    job.search.screen = true;
    job.search.stats = NULL;
    job.search.marks = NULL;
    job.search.progress = NULL;
    return device->backend->rows_range(device, &job);
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

/* How many of a query's lists are read. */
static int64_t lists_to_read(probing *p, const key_list *order)
{
    int64_t lists = 0, rows = 0;
    while (lists < order->count && (rows < p->wanted || rule_reads(p, order, lists)))
        rows += rows_admitted(p, canon_key_row(order->keys[lists++]));
    return lists;
}

static ww_status choose_lists(probing *p, const search_job *round)
{
    ww_status status = WW_OK;
    search_stats *stats = p->job->stats;
    const int64_t row_bytes = p->job->screen ? canon_padded(p->job->dim) + 16 /* scale, residual, norm, number */
                                             : canon_padded(p->job->dim) * (int64_t)row_type_bytes(p->job->type) + 8;
    p->numbers_count = 0;
    p->starts[0] = 0;
    for (int64_t q = 0; status == WW_OK && q < round->query_count; q++) {
        const int64_t lists = lists_to_read(p, &p->order[q]);
        for (int64_t i = 0; status == WW_OK && i < lists; i++) {
            const uint32_t list = canon_key_row(p->order[q].keys[i]);
            status = put_number(p, list);
            if (stats)
                stats->list_rows_read += p->lists[list].count;
            if (stats)
                stats->list_bytes_read += p->lists[list].count * row_bytes;
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
            else if (is_admitted(p, row))
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
        set_mask(p, q, true);
        status = device->backend->rows_search(p->collection->device, &one);
        set_mask(p, q, false);
    }
    return status;
}

static proof_list list_of_key(const ivf *index, canon_key key)
{
    return (proof_list){canon_key_row(key), canon_key_score(index->metric, key)};
}

static double better_bound(const ivf *index, double a, double b)
{
    return index->metric == CANON_L2 ? fmax(a, b) : fmin(a, b);
}

/* The hits of query q that are better than everything in the lists that were not read. */
static int64_t count_proven(const probing *p, const search_job *round, int64_t q)
{
    const ivf *index = p->index;
    const key_list *order = &p->order[q];
    const proof_query query = proof_query_of(index, round->queries + q * round->query_stride);
    const float *scores = round->scores + q * round->k;
    const int64_t *rows = round->rows + q * round->k;
    int64_t hits = 0;
    while (hits < round->k && rows[hits] >= 0)
        hits++;
    /* Lists whose own bound excludes them from all hits need no other; when the first hit is not proven, none is. */
    int64_t proven = hits;
    for (int64_t i = p->starts[q + 1] - p->starts[q]; proven > 0 && i < order->count; i++) {
        const proof_list list = list_of_key(index, order->keys[i]);
        double bound = proof_bound(index, &query, list.list, list.score);
        if (!proof_holds(index->metric, scores[proven - 1], bound))
            bound = better_bound(index, bound,
                                 proof_plane_bound(index, &query, list_of_key(index, order->keys[0]), list, scores[hits - 1]));
        while (proven > 0 && !proof_holds(index->metric, scores[proven - 1], bound))
            proven--;
    }
    return proven;
}

static ww_status search_round(probing *p, const search_job *round, int64_t *proven)
{
    const backend *api = p->collection->device->backend;
    ww_status status = ivf_order_lists(p->index, round, p->order);
    if (status == WW_OK)
        status = choose_lists(p, round);
    const list_job job = {.search = *round,
                          .lists = p->lists,
                          .numbers = p->numbers,
                          .starts = p->starts,
                          .all_count = !p->admitted,
                          .held = p->index->held};
    if (status == WW_OK)
        status = !p->mask ? api->rows_search_lists(p->collection->device, &job) : read_with_masks(p, round);
    for (int64_t q = 0; status == WW_OK && proven && q < round->query_count; q++)
        proven[q] = count_proven(p, round, q);
    forget_order(p);
    return status;
}

/* ---- the whole search -------------------------------------------------------------------------------------------------------
 */

static ww_status told(const search_job *job, int64_t done)
{
    if (!progress_tell(job->progress, job->progress_user, done, job->query_count))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "the search was cancelled by its progress callback");
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

/* The exact search: every hit is proven. */
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

ww_status ivf_search(const ww_collection *c, const search_job *job, ivf_rule rule, int64_t *proven)
{
    const ivf *index = c->index;
    const int64_t admitted = count_admitted(c, job);
    const bool few = job->mask && (double)admitted * (double)index->nlist <= (double)rule.nprobe * (double)index->rows;
    if ((rule.factor == 0.0 && rule.nprobe >= index->nlist) || few)
        return search_exactly(c, job, proven);
    probing p = {.collection = c,
                 .index = index,
                 .job = job,
                 .rule = rule,
                 .wanted = min_i64(job->k, admitted),
                 .round_queries = min_i64(max_i64(ROUND_KEYS / index->nlist, 1), job->query_count)};
    return search_rounds(&p, proven);
}
