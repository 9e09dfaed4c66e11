/* A range search that scores every row. It first tries all rows at once. If the list has no room for all entries, it continues
 * in pieces of the rows; the smallest piece always fits. Once a query has as many rows as the limit, entries worse than the
 * last of them are only counted, so later pieces copy few entries.
 */
#include "arithmetic/row_types.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "gpu/search/range.h"
#include "kernels/search/packed_layout.h"

enum {
    ENTRIES_MIN = 1 << 18,
    PIECE_SHRINKS = 8, /* factor by which a piece shrinks if its entries had no room */
    PIECE_GROWS = 4    /* factor by which it grows if they took a fourth of the room or less */
};

/* A full scan for one round of queries. */
typedef struct range_scan {
    range *range;
    search search; /* its job is the next member */
    search_job job;
    search_queries packed;
    range_queries queries;
    int64_t room;
    kernel_segment *part; /* host: the segments of a piece */
    uint64_t *cuts;       /* host: one per query; worse keys are only counted */
} range_scan;

/* Makes the table of segments for words `begin` to `end` of all segments. Returns the number of its segments. */
static uint32_t table_of_piece(const kernel_rows *rows, const kernel_segment *all, uint32_t begin, uint32_t end,
                               kernel_segment *part)
{
    const size_t row_bytes = (size_t)rows->chunks * CANON_LANES * row_type_bytes(rows->type);
    uint32_t count = 0, words = 0;
    for (uint32_t i = 0; i < rows->segment_count; i++) {
        const uint32_t first = i == 0 ? 0 : all[i - 1].word_end, last = all[i].word_end < end ? all[i].word_end : end;
        const uint32_t from = first > begin ? first : begin;
        if (from >= last)
            continue;
        const size_t skipped = (size_t)(from - first) * SEARCH_WORD_ROWS;
        words += last - from;
        part[count++] = (kernel_segment){.rows = (const float *)(const void *)((const char *)all[i].rows + skipped * row_bytes),
                                         .norms = all[i].norms + skipped,
                                         .live = all[i].live + (from - first),
                                         .first_row = all[i].first_row + (uint32_t)skipped,
                                         .word_end = words};
    }
    return count;
}

/* Uploads the table of the piece and the cuts of the queries. */
static ww_status upload(range_scan *p, uint32_t begin, uint32_t end, kernel_rows *rows, const uint64_t **cuts)
{
    const range *r = p->range;
    const size_t cuts_bytes = (size_t)p->queries.count * sizeof *p->cuts;
    void *segments = NULL, *bounds = NULL;
    *rows = p->search.rows;
    rows->segment_count = table_of_piece(&r->rows, r->table.segments, begin, end, p->part);
    rows->word_count = end - begin;
    for (int64_t i = 0; i < p->queries.count; i++)
        p->cuts[i] = key_list_cut(range_found(r, &p->queries, i), r->job->limit);
    ww_status status = gpu_workspace(r->stream, WORKSPACE_LISTS, rows->segment_count * sizeof *p->part, &segments);
    if (status == WW_OK)
        status = gpu_copy_in(r->stream, segments, p->part, rows->segment_count * sizeof *p->part);
    if (status == WW_OK)
        status = gpu_workspace(r->stream, WORKSPACE_BEST, cuts_bytes, &bounds);
    if (status == WW_OK)
        status = gpu_copy_in(r->stream, bounds, p->cuts, cuts_bytes);
    rows->segments = segments;
    *cuts = bounds;
    return status;
}

/* Scores words `begin` to `end` of all segments. */
static ww_status score_piece(range_scan *p, uint32_t begin, uint32_t end, range_answer *answer)
{
    const search_plan *plan = &p->search.plan;
    range_tile_args args = {.search = {.queries = p->packed, .stages = (uint32_t)plan->stages, .whole = plan->whole}};
    const uint64_t *cuts = NULL;
    int64_t resident = 1;
    ww_status status = upload(p, begin, end, &args.search.rows, &cuts);
    if (status == WW_OK)
        status = range_answer_begin(
            answer, p->range, (range_answer_size){.workspace = WORKSPACE_FOUND, .queries = p->queries.count, .room = p->room});
    if (status == WW_OK)
        status = search_resident(&p->search, GPU_KERNEL_range_tile, &resident);
    if (status != WW_OK)
        return status;
    const int64_t parts = search_plan_parts(plan, &(search_parts_size){.slots = p->packed.slots,
                                                                       .words = args.search.rows.word_count,
                                                                       .resident = resident,
                                                                       .lists_max = INT64_MAX});
    args.search.lists.parts = (uint32_t)parts;
    args.list = answer->list;
    args.list.cuts = cuts;
    const gpu_grid grid = grid_of_2(parts, p->packed.slots / (uint32_t)plan->slot_queries);
    status = launch_range_tile(p->range->stream, grid, plan->threads, plan->shared_bytes, &args);
    return status == WW_OK ? range_answer_end(answer, p->range) : status;
}

/* Scores all rows for a round of queries, with room for p->room entries at a time. */
static ww_status score_rows(range_scan *p)
{
    const int64_t words = p->range->rows.word_count, piece_min = max_i64(p->room / SEARCH_WORD_ROWS / p->queries.count, 1);
    int64_t piece = words;
    ww_status status = WW_OK;
    for (int64_t begin = 0; status == WW_OK && begin < words;) {
        const int64_t end = min_i64(begin + piece, words);
        range_answer answer = {0};
        status = score_piece(p, (uint32_t)begin, (uint32_t)end, &answer);
        p->range->stats.rows_scored += (end - begin) * SEARCH_WORD_ROWS * p->queries.count;
        if (status == WW_OK && answer.length > (uint64_t)p->room) {
            piece = max_i64(min_i64(piece, end - begin) / PIECE_SHRINKS, piece_min);
        } else if (status == WW_OK) {
            status = range_answer_take(&answer, p->range, &p->queries);
            begin = end;
            piece = answer.length * PIECE_GROWS > (uint64_t)p->room ? piece : piece * PIECE_GROWS;
        }
        range_answer_free(&answer);
    }
    return status;
}

/* Scores one round. If memory runs out, it drops the entries found so far and tries again with less room. */
static ww_status score_round(range_scan *p, int64_t first)
{
    const range *r = p->range;
    uint32_t *taken = NULL;
    const int64_t wanted = range_room(r, p->queries.count);
    const int64_t room_min = max_i64(min_i64(wanted, ENTRIES_MIN), p->queries.count * SEARCH_WORD_ROWS);
    ww_status status = search_prepare_queries(&p->search, first, p->queries.count, &p->packed, &taken);
    if (status != WW_OK)
        return status;
    for (p->room = max_i64(wanted, room_min);; p->room = max_i64(p->room / 4, room_min)) {
        status = score_rows(p);
        if (status != WW_OUT_OF_MEMORY || p->room == room_min)
            return status;
        for (int64_t i = 0; i < p->queries.count; i++)
            key_list_free(range_found(r, &p->queries, i));
    }
}

static ww_status score_rounds(range_scan *p, const range_queries *all)
{
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < all->count; first += p->search.plan.round_queries) {
        p->queries = (range_queries){.count = min_i64(all->count - first, p->search.plan.round_queries),
                                     .first = all->first + first,
                                     .numbers = all->numbers ? all->numbers + first : NULL};
        if (!all->numbers)
            status = gpu_search_report(&p->range->job->search, all->first + first);
        if (status == WW_OK)
            status = score_round(p, first);
    }
    return status;
}

ww_status range_full_scan(range *r, const range_queries *queries)
{
    range_scan p = {.range = r, .job = r->search};
    p.job.queries = queries->queries;
    p.job.queries_on_device = queries->on_device;
    p.job.query_stride = queries->stride;
    p.job.query_count = queries->count;
    p.search = (search){.device = r->device, .stream = r->stream, .job = &p.job, .rows = r->rows};
    p.search.plan = search_plan_make((search_size){.queries = queries->count,
                                                   .dim = p.job.dim,
                                                   .k = 1,
                                                   .watched = p.job.progress != NULL || cancel_given(),
                                                   .shared_bytes = r->device->base.info.shared_bytes_per_block,
                                                   .tile = true});
    const size_t part_bytes = r->rows.segment_count * sizeof *p.part;
    const size_t cuts_bytes = (size_t)p.search.plan.round_queries * sizeof *p.cuts;
    p.part = memory_alloc(part_bytes);
    p.cuts = memory_alloc(cuts_bytes);
    ww_status status = WW_OK;
    if (p.part == NULL || p.cuts == NULL)
        status = memory_failed("a range search", part_bytes + cuts_bytes);
    if (status == WW_OK)
        status = gpu_search_mask(r->stream, WORKSPACE_MASK, &p.job, &p.search.rows.mask, &p.search.rows.mask_words);
    if (status == WW_OK)
        status = score_rounds(&p, queries);
    memory_free(p.part);
    memory_free(p.cuts);
    return status;
}
