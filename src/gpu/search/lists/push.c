/* Stores the lists of an index in device memory: the codes of their rows, list by list, for the screen.
 *
 * A list is contiguous. A list that outgrows its place moves to a larger one, in a new part of memory. When more than half of
 * all memory is abandoned, all lists are laid out again. A kernel copies codes from the segments, so a new layout needs nothing
 * from the old memory, which is freed first.
 */
#include <string.h>

#include "arithmetic/row_types.h"
#include "base/integers.h"
#include "base/memory.h"
#include "gpu/launch.h"
#include "gpu/memory.h"
#include "gpu/search/lists/held.h"
#include "gpu/search/lists/lists.h"
#include "kernels/search/packed_layout.h"

enum {
    PAGE_ROWS = 64,
    PAGES_MAX = 1 << 14, /* pages that one launch fills: 4 MiB of numbers */
    GROWTH = 4,          /* a list that outgrew its place gets a quarter more room than it needs */
};

enum { WORKSPACE_SEGMENTS, WORKSPACE_PAGES, WORKSPACE_NUMBERS };

typedef struct push {
    gpu_device *device;
    gpu_stream *stream;
    const list_push *job;
    device_lists *to;
    kernel_rows rows;
    screen_list_page *pages; /* host: PAGES_MAX */
    uint32_t *numbers;       /* host: PAGE_ROWS for each page */
    int64_t page_count;
} push;

static size_t entry_bytes(const list_push *job)
{
    return (size_t)canon_padded(job->dim) + 3 * sizeof(float) + sizeof(uint32_t);
}

/* ---- places -----------------------------------------------------------------------------------------------------------------
 */

/* Frees all device memory of the lists. The device is entered, and nothing uses the lists. */
static void free_parts(gpu_device *device, device_lists *lists)
{
    for (int64_t i = 0; i < lists->part_count; i++)
        gpu_memory_free(device, &lists->parts[i]);
    lists->part_count = 0;
    lists->entries = lists->entries_lost = 0;
    for (int64_t i = 0; i < lists->count; i++)
        lists->room[i] = 0;
}

/* Makes host memory for all lists of the job, and for one more part. */
static ww_status grow_tables(const push *p)
{
    device_lists *to = p->to;
    const size_t count = (size_t)max_i64(p->job->count, to->count);
    kernel_list *lists = memory_resize(to->lists, count * sizeof *lists);
    to->lists = lists ? lists : to->lists;
    int64_t *room = lists ? memory_resize(to->room, count * sizeof *room) : NULL;
    to->room = room ? room : to->room;
    buffer *parts = room ? memory_resize(to->parts, (size_t)(to->part_count + 1) * sizeof *parts) : NULL;
    to->parts = parts ? parts : to->parts;
    if (!parts)
        return memory_failed("lists of an index on a device", count * sizeof *lists);
    for (int64_t i = to->count; i < p->job->count; i++) {
        to->lists[i] = (kernel_list){0};
        to->room[i] = 0;
    }
    to->count = p->job->count;
    return WW_OK;
}

/* Counts the entries of lists that need a larger place; `lost` gets the entries of their old places. */
static int64_t entries_wanted(const push *p, bool growing, int64_t *lost)
{
    int64_t wanted = 0;
    *lost = 0;
    for (int64_t i = 0; i < p->job->count; i++) {
        const int64_t count = p->job->lists[i].count;
        if (count <= p->to->room[i])
            continue;
        wanted += round_up_i64(count + (growing ? count / GROWTH : 0), PAGE_ROWS);
        *lost += p->to->room[i];
    }
    return wanted;
}

/* Assigns places in a new part with `entries` entries to the lists that entries_wanted() counted. */
static void place_lists(const push *p, void *memory, int64_t entries, bool growing)
{
    const size_t code_words = (size_t)canon_padded(p->job->dim) / sizeof(uint32_t);
    uint32_t *codes = memory;
    float *floats = (float *)(codes + (size_t)entries * code_words);
    int64_t at = 0;
    for (int64_t i = 0; i < p->job->count; i++) {
        const int64_t count = p->job->lists[i].count;
        if (count <= p->to->room[i])
            continue;
        p->to->lists[i] = (kernel_list){.codes = codes + (size_t)at * code_words,
                                        .scales = floats + at,
                                        .residuals = floats + entries + at,
                                        .norms = floats + 2 * entries + at,
                                        .numbers = (uint32_t *)(floats + 3 * entries) + at};
        p->to->room[i] = round_up_i64(count + (growing ? count / GROWTH : 0), PAGE_ROWS);
        p->job->held[i] = 0;
        at += p->to->room[i];
    }
}

static ww_status make_room(const push *p)
{
    device_lists *to = p->to;
    int64_t lost = 0, wanted = entries_wanted(p, true, &lost);
    const bool anew = 2 * (to->entries_lost + lost) > to->entries + wanted || to->entries == 0;
    if (anew) {
        free_parts(p->device, to);
        wanted = entries_wanted(p, false, &lost);
    }
    const size_t bytes = (size_t)wanted * entry_bytes(p->job);
    if (wanted == 0)
        return WW_OK;
    buffer *part = &to->parts[to->part_count];
    ww_status status = gpu_memory_alloc(p->device, bytes, part);
    if (status != WW_OK)
        return status;
    to->part_count++;
    to->entries += wanted;
    to->entries_lost += lost;
    place_lists(p, part->data, wanted, !anew);
    return gpu_fill(p->stream, part->data, 0, bytes / sizeof(uint32_t));
}

/* ---- contents ---------------------------------------------------------------------------------------------------------------
 */

static ww_status flush_pages(push *p)
{
    void *pages = NULL, *numbers = NULL;
    if (p->page_count == 0)
        return WW_OK;
    const size_t page_bytes = (size_t)p->page_count * sizeof *p->pages;
    const size_t number_bytes = (size_t)p->page_count * PAGE_ROWS * sizeof *p->numbers;
    ww_status status = gpu_workspace(p->stream, WORKSPACE_PAGES, PAGES_MAX * sizeof *p->pages, &pages);
    if (status == WW_OK)
        status = gpu_workspace(p->stream, WORKSPACE_NUMBERS, number_bytes, &numbers);
    if (status == WW_OK)
        status = gpu_copy_in(p->stream, pages, p->pages, page_bytes);
    if (status == WW_OK)
        status = gpu_copy_in(p->stream, numbers, p->numbers, number_bytes);
    const screen_lists_gather_args args = {.rows = p->rows, .lists = p->to->table.data, .pages = pages, .numbers = numbers};
    if (status == WW_OK)
        status = launch_screen_lists_gather(p->stream, grid_of(p->page_count), SCREEN_THREADS, 0, &args);
    p->page_count = 0;
    return status;
}

static ww_status fill_list(push *p, int64_t l)
{
    const row_list *list = &p->job->lists[l];
    ww_status status = WW_OK;
    for (int64_t first = p->job->held[l]; status == WW_OK && first < list->count;) {
        const int64_t end = min_i64(list->count, (first / PAGE_ROWS + 1) * PAGE_ROWS), n = p->page_count++;
        p->pages[n] = (screen_list_page){(uint32_t)l, (uint32_t)first, (uint32_t)(end - first)};
        memset(p->numbers + n * PAGE_ROWS, 0, PAGE_ROWS * sizeof *p->numbers);
        memcpy(p->numbers + n * PAGE_ROWS, list->rows + first, (size_t)(end - first) * sizeof *p->numbers);
        first = end;
        if (p->page_count == PAGES_MAX)
            status = flush_pages(p);
    }
    return status;
}

static ww_status send_table(const push *p)
{
    device_lists *to = p->to;
    const size_t bytes = (size_t)to->count * sizeof *to->lists;
    for (int64_t i = 0; i < to->count; i++)
        to->lists[i].count = (uint32_t)p->job->lists[i].count;
    ww_status status = WW_OK;
    if (to->table.bytes < bytes) {
        gpu_memory_free(p->device, &to->table);
        status = gpu_memory_alloc(p->device, bytes + bytes / GROWTH, &to->table);
    }
    return status == WW_OK ? gpu_copy_in(p->stream, to->table.data, to->lists, bytes) : status;
}

static ww_status push_lists(push *p, const segment_table *table)
{
    void *segments = NULL;
    ww_status status = gpu_workspace(p->stream, WORKSPACE_SEGMENTS, table->bytes, &segments);
    if (status == WW_OK)
        status = gpu_copy_in(p->stream, segments, table->segments, table->bytes);
    p->rows.segments = segments;
    if (status == WW_OK)
        status = make_room(p);
    if (status == WW_OK)
        status = send_table(p);
    for (int64_t l = 0; status == WW_OK && l < p->job->count; l++)
        status = fill_list(p, l);
    return status == WW_OK ? flush_pages(p) : status;
}

/* ---- the calls --------------------------------------------------------------------------------------------------------------
 */

static ww_status take_memory(push *p)
{
    p->pages = memory_alloc(PAGES_MAX * sizeof *p->pages);
    p->numbers = memory_alloc((size_t)PAGES_MAX * PAGE_ROWS * sizeof *p->numbers);
    if (!p->to)
        p->to = memory_alloc_zeroed(1, sizeof *p->to);
    if (p->pages && p->numbers && p->to)
        return grow_tables(p);
    return memory_failed("lists of an index on a device", (size_t)PAGES_MAX * PAGE_ROWS * sizeof *p->numbers);
}

ww_status gpu_lists_push(ww_device *device, const list_push *job, device_lists **lists)
{
    push p = {.device = gpu_of(device), .job = job, .to = *lists};
    segment_table table = {0};
    const search_job rows = {
        .dim = job->dim, .type = job->type, .segments = job->segments, .segment_count = job->segment_count};
    ww_status status = take_memory(&p);
    if (status == WW_OK)
        status = segment_table_make(&rows, true, &table, &p.rows);
    if (status == WW_OK)
        status = gpu_stream_borrow(p.device, &p.stream);
    if (status == WW_OK)
        status = gpu_stream_return(p.stream, push_lists(&p, &table));
    for (int64_t i = 0; i < job->count; i++)
        job->held[i] = status == WW_OK ? job->lists[i].count : 0;
    if (status != WW_OK) {
        gpu_lists_destroy(device, p.to);
        p.to = NULL;
    }
    *lists = p.to;
    memory_free(table.segments);
    memory_free(p.numbers);
    memory_free(p.pages);
    return status;
}

void gpu_lists_destroy(ww_device *device, device_lists *lists)
{
    if (!lists)
        return;
    for (int64_t i = 0; i < lists->part_count; i++)
        device->backend->buffer_destroy(device, &lists->parts[i]);
    device->backend->buffer_destroy(device, &lists->table);
    memory_free(lists->parts);
    memory_free(lists->room);
    memory_free(lists->lists);
    memory_free(lists);
}

int64_t gpu_lists_bytes(const device_lists *lists)
{
    int64_t bytes = (int64_t)lists->table.bytes;
    for (int64_t i = 0; i < lists->part_count; i++)
        bytes += (int64_t)lists->parts[i].bytes;
    return bytes;
}
