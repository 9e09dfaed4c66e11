/* Rows on a GPU: written through staging memory and packed there, read back one by one, gathered from segment to segment; and
 * by which of the two ways they are searched.
 *
 * Rows arrive as the host has them, in pieces: while one is packed by a kernel the next is on the bus. The packed order
 * (kernels/search/packed_layout.h) is known here only for reading back.
 */
#include "gpu/search/rows.h"

#include <time.h>

#include "base/integers.h"
#include "base/memory.h"
#include "gpu/launch.h"
#include "gpu/search/choice/search_choice.h"
#include "gpu/search/screen.h"
#include "gpu/search/search.h"
#include "kernels/search/packed_layout.h"

enum {
    WORKSPACE_STAGED = 0,      /* rows as they came, or row numbers */
    WORKSPACE_REFUSED = 1,     /* one number */
    STAGED_BYTES = 32 << 20,   /* large enough to hide a launch, small beside any collection that would notice */
    GATHER_ROWS_MAX = 1 << 20, /* whose numbers are uploaded at a time */
};

static gpu_grid rows_grid(int64_t count)
{
    return grid_of((count + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK);
}

/* How many rows one launch takes. */
static int64_t launch_rows_max(const gpu_stream *stream)
{
    return gpu_blocks_max(stream->device) * ROWS_PER_BLOCK;
}

/* Codes of rows that were packed into their place, for the screen. */
static ww_status code_rows(gpu_stream *stream, row_range rows)
{
    const segment *part = rows.segment;
    if (part->codes.data == NULL)
        return WW_OK;
    const screen_code_args args = {.rows = part->rows.data,
                                   .codes = part->codes.data,
                                   .scales = part->scales.data,
                                   .residuals = part->residuals.data,
                                   .first = (uint32_t)rows.first,
                                   .count = (uint32_t)rows.count,
                                   .chunks = packed_chunks(rows.dim)};
    return launch_screen_code(stream, rows_grid(rows.count), SCREEN_THREADS, 0, &args);
}

/* Everything of rows_write but the refusal: that is still on its way when this returns. */
static ww_status write_staged(gpu_stream *stream, row_range to, const float *rows, int64_t row_stride, uint64_t *refused)
{
    const size_t row_bytes = (size_t)to.dim * sizeof(float);
    /* A row has 256 KiB at most. */
    const int64_t staged_rows = min_i64(min_i64((int64_t)(STAGED_BYTES / row_bytes), to.count), launch_rows_max(stream));
    const size_t padded = (size_t)canon_padded(to.dim);
    void *staged;
    ww_status status = gpu_workspace(stream, WORKSPACE_STAGED, (size_t)staged_rows * row_bytes, &staged);
    if (status == WW_OK)
        status = gpu_fill(stream, refused, UINT32_MAX, sizeof *refused / sizeof(uint32_t));
    for (int64_t done = 0; status == WW_OK && done < to.count; done += staged_rows) {
        const row_range now = {to.segment, to.first + done, min_i64(staged_rows, to.count - done), to.dim};
        const rows_pack_args args = {.from = staged,
                                     .to = (float *)to.segment->rows.data + (size_t)now.first * padded,
                                     .norms = (float *)to.segment->norms.data + now.first,
                                     .refused = refused,
                                     .number = (uint64_t)done,
                                     .count = (uint32_t)now.count,
                                     .dim = to.dim};
        status = gpu_copy_in_pieces(
            stream, staged, (host_pieces){rows + done * row_stride, row_bytes, (size_t)row_stride * sizeof(float), now.count});
        if (status == WW_OK)
            status = launch_rows_pack(stream, rows_grid(now.count), ROWS_THREADS, 0, &args);
        if (status == WW_OK)
            status = code_rows(stream, now);
    }
    return status;
}

ww_status gpu_rows_write(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused)
{
    *refused = -1;
    if (to.count == 0)
        return WW_OK;
    gpu_device *gpu = gpu_of(device);
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(gpu, &stream);
    if (status != WW_OK)
        return status;
    void *flag = NULL;
    uint64_t first_refused = UINT64_MAX;
    status = gpu_workspace(stream, WORKSPACE_REFUSED, sizeof first_refused, &flag);
    if (status == WW_OK)
        status = write_staged(stream, to, rows, row_stride, flag);
    if (status == WW_OK)
        status = gpu_copy_out(stream, &first_refused, flag, sizeof first_refused);
    if (status == WW_OK && first_refused != UINT64_MAX)
        *refused = (int64_t)first_refused;
    return gpu_stream_return(stream, status);
}

/* Puts a packed row back in order. */
static void unpack_row(const float *packed, int32_t dim, float *out)
{
    static const int32_t offsets[4] = {0, 32, 16, 48};
    const int32_t chunks = packed_chunks(dim);
    for (int32_t chunk = 0; chunk < chunks; chunk++)
        for (int32_t group = 0; group < PACKED_GROUPS; group++)
            for (int32_t i = 0; i < 4; i++) {
                const int32_t element = chunk * CANON_LANES + packed_first(group) + offsets[i];
                if (element < dim)
                    out[element] = packed[packed_at(chunks, chunk, group) + i];
            }
}

ww_status gpu_rows_read(ww_device *device, row_range from, void *out)
{
    gpu_device *gpu = gpu_of(device);
    const size_t row_bytes = (size_t)canon_padded(from.dim) * sizeof(float);
    const int64_t staged_rows = min_i64((int64_t)(STAGED_BYTES / row_bytes) + 1, from.count);
    float *packed = memory_alloc((size_t)staged_rows * row_bytes);
    if (packed == NULL)
        return memory_failed("rows to read", (size_t)staged_rows * row_bytes);
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(gpu, &stream);
    if (status != WW_OK) {
        memory_free(packed);
        return status;
    }
    for (int64_t done = 0; status == WW_OK && done < from.count; done += staged_rows) {
        const int64_t now = min_i64(staged_rows, from.count - done);
        const char *rows = (const char *)from.segment->rows.data + (size_t)(from.first + done) * row_bytes;
        status = gpu_copy_out(stream, packed, rows, (size_t)now * row_bytes);
        for (int64_t r = 0; status == WW_OK && r < now; r++)
            unpack_row(packed + r * canon_padded(from.dim), from.dim, (float *)out + (done + r) * from.dim);
    }
    memory_free(packed);
    return gpu_stream_return(stream, status);
}

/* Codes, scales and residuals go with their rows; `numbers` is on the device. */
static ww_status gather_codes(gpu_stream *stream, row_range rows, const segment *from, const int64_t *numbers)
{
    const segment *to = rows.segment;
    if (to->codes.data == NULL || from->codes.data == NULL)
        return WW_OK;
    const screen_gather_args args = {.from_codes = from->codes.data,
                                     .from_scales = from->scales.data,
                                     .from_residuals = from->residuals.data,
                                     .to_codes = to->codes.data,
                                     .to_scales = to->scales.data,
                                     .to_residuals = to->residuals.data,
                                     .sources = numbers,
                                     .first = (uint32_t)rows.first,
                                     .count = (uint32_t)rows.count,
                                     .chunks = packed_chunks(rows.dim)};
    return launch_screen_gather(stream, rows_grid(rows.count), SCREEN_THREADS, 0, &args);
}

ww_status gpu_rows_gather(ww_device *device, row_range to, const segment *from, const int64_t *sources)
{
    if (to.count == 0)
        return WW_OK;
    gpu_device *gpu = gpu_of(device);
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(gpu, &stream);
    if (status != WW_OK)
        return status;
    const int64_t staged = min_i64(min_i64(to.count, GATHER_ROWS_MAX), launch_rows_max(stream));
    void *numbers = NULL;
    status = gpu_workspace(stream, WORKSPACE_STAGED, (size_t)staged * sizeof *sources, &numbers);
    for (int64_t done = 0; status == WW_OK && done < to.count; done += staged) {
        const row_range now = {to.segment, to.first + done, min_i64(staged, to.count - done), to.dim};
        const rows_gather_args args = {.from_rows = from->rows.data,
                                       .from_norms = from->norms.data,
                                       .to_rows =
                                           (float *)to.segment->rows.data + (size_t)now.first * (size_t)canon_padded(to.dim),
                                       .to_norms = (float *)to.segment->norms.data + now.first,
                                       .sources = numbers,
                                       .count = (uint32_t)now.count,
                                       .chunks = packed_chunks(to.dim)};
        status = gpu_copy_in(stream, numbers, sources + done, (size_t)now.count * sizeof *sources);
        if (status == WW_OK)
            status = launch_rows_gather(stream, rows_grid(now.count), ROWS_THREADS, 0, &args);
        if (status == WW_OK)
            status = gather_codes(stream, now, from, numbers);
    }
    return gpu_stream_return(stream, status);
}

static double microseconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

ww_status gpu_rows_search(ww_device *device, const search_job *job)
{
    const double begin = microseconds();
    const search_choice choice = search_choose(gpu_of(device), job, false);
    const ww_status status = choice.screen ? gpu_screen_search(device, job) : gpu_search_plainly(device, job);
    if (status == WW_OK && !job->progress)
        search_chosen(gpu_of(device), &choice, microseconds() - begin);
    return status;
}
