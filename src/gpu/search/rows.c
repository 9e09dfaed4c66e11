/* Rows on a GPU: written through staging memory or from device memory, packed, read back, and copied between segments.
 *
 * Host rows arrive in pieces: a kernel packs one while the next is on the bus. Only reading back needs the packed order
 * (kernels/search/packed_layout.h) here.
 */
#include "gpu/search/rows.h"

#include <string.h>

#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "base/integers.h"
#include "base/memory.h"
#include "gpu/launch.h"
#include "gpu/search/planes/planes.h"
#include "kernels/search/packed_layout.h"

enum {
    WORKSPACE_STAGED = 0,      /* rows before packing, or row numbers */
    WORKSPACE_REFUSED = 1,     /* the first refused row */
    WORKSPACE_WIDE = 2,        /* rows of another type as f32, for their codes */
    STAGED_BYTES = 32 << 20,   /* large enough to hide a launch, small compared with a collection that takes long */
    GATHER_ROWS_MAX = 1 << 20, /* rows whose numbers are uploaded at a time */
};

static gpu_grid rows_grid(int64_t count)
{
    return grid_of((count + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK);
}

/* Rows of one launch, at most. */
static int64_t launch_rows_max(const gpu_stream *stream)
{
    return gpu_blocks_max(stream->device) * ROWS_PER_BLOCK;
}

/* Makes the codes of rows for the screen. `packed` is where row 0 of the segment is, or would be, as f32. */
static ww_status code_rows(gpu_stream *stream, row_range rows, const float *packed)
{
    const segment *part = rows.segment;
    if (part->codes.data == NULL)
        return WW_OK;
    gpu_planes_outdate(stream->device, part->codes.data, rows.first);
    const screen_code_args args = {.rows = packed,
                                   .codes = part->codes.data,
                                   .scales = part->scales.data,
                                   .residuals = part->residuals.data,
                                   .first = (uint32_t)rows.first,
                                   .count = (uint32_t)rows.count,
                                   .chunks = packed_chunks(rows.dim)};
    return launch_screen_code(stream, rows_grid(rows.count), SCREEN_THREADS, 0, &args);
}

/* The source of rows for a segment: host rows, which are staged, or dense rows in device memory. */
typedef struct rows_source {
    const char *rows;
    int64_t row_stride; /* elements */
    int64_t first;      /* the first row's number in the segment */
    bool on_device;
} rows_source;

/* Returns in `brought` where a kernel can read the rows: staged, unless they are on the device. Queued. */
static ww_status bring(gpu_stream *stream, const rows_source *from, row_range now, void *staged, const void **brought)
{
    const size_t element_bytes = row_type_bytes(now.segment->type);
    const char *rows = from->rows + (size_t)((now.first - from->first) * from->row_stride) * element_bytes;
    *brought = from->on_device ? rows : staged;
    if (from->on_device)
        return WW_OK;
    return gpu_copy_in_pieces(
        stream, staged,
        (host_pieces){rows, (size_t)now.dim * element_bytes, (size_t)from->row_stride * element_bytes, now.count});
}

/* Allocates `bytes` of staging memory for host rows; device rows need none. */
static ww_status take_staged(gpu_stream *stream, const rows_source *from, size_t bytes, void **staged)
{
    *staged = NULL;
    return from->on_device ? WW_OK : gpu_workspace(stream, WORKSPACE_STAGED, bytes, staged);
}

/* Queues all of rows_write() except for reading the refused row, which is not known when this returns. Rows of another type are
 * converted to f32 only to make their codes. */
static ww_status write_pieces(gpu_stream *stream, row_range to, const rows_source *from, uint64_t *refused)
{
    const segment *part = to.segment;
    const bool f32 = part->type == ROW_F32, bytes = row_type_is_bytes(part->type);
    const size_t row_bytes = (size_t)to.dim * row_type_bytes(part->type);
    const size_t wide_bytes = f32 || !part->codes.data ? 0 : (size_t)canon_padded(to.dim) * sizeof(float);
    const size_t piece_bytes = wide_bytes > row_bytes ? wide_bytes : row_bytes; /* of a row, at most 256 KiB */
    const bool together = from->on_device && wide_bytes == 0;
    const int64_t rows_max = together ? to.count : min_i64((int64_t)(STAGED_BYTES / piece_bytes), to.count);
    const int64_t staged_rows = min_i64(rows_max, launch_rows_max(stream));
    void *staged, *wide = NULL;
    ww_status status = take_staged(stream, from, (size_t)staged_rows * row_bytes, &staged);
    if (status == WW_OK && wide_bytes > 0)
        status = gpu_workspace(stream, WORKSPACE_WIDE, (size_t)staged_rows * wide_bytes, &wide);
    if (status == WW_OK)
        status = gpu_fill(stream, refused, UINT32_MAX, sizeof *refused / sizeof(uint32_t));
    for (int64_t done = 0; status == WW_OK && done < to.count; done += staged_rows) {
        const row_range now = {part, to.first + done, min_i64(staged_rows, to.count - done), to.dim};
        const void *brought = NULL;
        status = bring(stream, from, now, staged, &brought);
        const rows_pack_args args = {.from = brought,
                                     .to = part->rows.data,
                                     .norms = part->norms.data,
                                     .scales = bytes ? part->scales.data : NULL,
                                     .residuals = bytes ? part->residuals.data : NULL,
                                     .wide = wide,
                                     .refused = refused,
                                     .number = (uint64_t)done,
                                     .first = (uint32_t)now.first,
                                     .count = (uint32_t)now.count,
                                     .dim = to.dim,
                                     .type = part->type};
        if (status == WW_OK)
            status = launch_rows_pack(stream, rows_grid(now.count), ROWS_THREADS, 0, &args);
        if (status == WW_OK)
            status = code_rows(stream, now,
                               f32 ? part->rows.data : (const float *)((uintptr_t)wide - (uintptr_t)now.first * wide_bytes));
    }
    return status;
}

/* Reads the number of the first refused row, after everything that the stream has queued. Waits. */
static ww_status read_refused(gpu_stream *stream, const uint64_t *flag, int64_t *refused)
{
    uint64_t first = UINT64_MAX;
    const ww_status status = gpu_copy_out(stream, &first, flag, sizeof first);
    if (status == WW_OK && first != UINT64_MAX)
        *refused = (int64_t)first;
    return status;
}

static ww_status write_rows(ww_device *device, row_range to, const rows_source *from, int64_t *refused)
{
    *refused = -1;
    if (to.count == 0)
        return WW_OK;
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(gpu_of(device), &stream);
    if (status != WW_OK)
        return status;
    void *flag = NULL;
    status = gpu_workspace(stream, WORKSPACE_REFUSED, sizeof(uint64_t), &flag);
    if (status == WW_OK)
        status = write_pieces(stream, to, from, flag);
    if (status == WW_OK)
        status = read_refused(stream, flag, refused);
    return gpu_stream_return(stream, status);
}

ww_status gpu_rows_write(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused)
{
    return write_rows(device, to, &(rows_source){.rows = rows, .row_stride = row_stride, .first = to.first}, refused);
}

ww_status gpu_rows_write_here(ww_device *device, row_range to, const void *rows, int64_t *refused)
{
    return write_rows(device, to, &(rows_source){.rows = rows, .row_stride = to.dim, .first = to.first, .on_device = true},
                      refused);
}

/* Checks rows with the packing kernel, because the norm that it computes is the one that must be finite. The packed rows are
 * not used. */
static ww_status check_rows(gpu_stream *stream, row_range rows, const float *from, uint64_t *refused)
{
    const size_t packed_bytes = (size_t)canon_padded(rows.dim) * sizeof(float);
    const int64_t together = min_i64(min_i64((int64_t)(STAGED_BYTES / packed_bytes), rows.count), launch_rows_max(stream));
    void *packed = NULL;
    ww_status status = gpu_workspace(stream, WORKSPACE_WIDE, (size_t)together * (packed_bytes + sizeof(float)), &packed);
    if (status == WW_OK)
        status = gpu_fill(stream, refused, UINT32_MAX, sizeof *refused / sizeof(uint32_t));
    for (int64_t done = 0; status == WW_OK && done < rows.count; done += together) {
        const rows_pack_args args = {.from = from + done * rows.dim,
                                     .to = packed,
                                     .norms = (float *)(void *)((char *)packed + (size_t)together * packed_bytes),
                                     .refused = refused,
                                     .number = (uint64_t)done,
                                     .count = (uint32_t)min_i64(together, rows.count - done),
                                     .dim = rows.dim};
        status = launch_rows_pack(stream, rows_grid(args.count), ROWS_THREADS, 0, &args);
    }
    return status;
}

ww_status gpu_rows_check_here(ww_device *device, const float *rows, int64_t count, int32_t dim, int64_t *refused)
{
    *refused = -1;
    if (count <= 0)
        return WW_OK;
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(gpu_of(device), &stream);
    if (status != WW_OK)
        return status;
    void *flag = NULL;
    status = gpu_workspace(stream, WORKSPACE_REFUSED, sizeof(uint64_t), &flag);
    if (status == WW_OK)
        status = check_rows(stream, (row_range){.count = count, .dim = dim}, rows, flag);
    if (status == WW_OK)
        status = read_refused(stream, flag, refused);
    return gpu_stream_return(stream, status);
}

/* Returns the offset of a group of four elements, in elements from the start of the word of 64 rows that holds row `row`. */
static size_t group_at(int32_t type, int32_t chunks, int64_t row, int32_t chunk, int32_t group)
{
    if (!row_type_is_bytes(type))
        return (size_t)row * (size_t)(chunks * CANON_LANES) + (size_t)packed_at(chunks, chunk, group);
    return 4 * ((size_t)chunk * SCREEN_SLAB + screen_piece((uint32_t)row, (uint32_t)group / 4) + (size_t)(group % 4));
}

/* Unpacks row `row` of a word of 64 rows of another type than f32. */
static void unpack_typed(const segment *part, const char *word, int64_t row, int32_t dim, char *out)
{
    static const int32_t offsets[4] = {0, 32, 16, 48};
    const int32_t chunks = packed_chunks(dim);
    const size_t bytes = row_type_bytes(part->type);
    for (int32_t i = 0; i < chunks * CANON_LANES; i++) {
        const int32_t chunk = i / CANON_LANES, group = i / 4 % PACKED_GROUPS;
        const int32_t element = chunk * CANON_LANES + packed_first(group) + offsets[i % 4];
        const char *from = word + (group_at(part->type, chunks, row, chunk, group) + (size_t)(i % 4)) * bytes;
        if (element < dim)
            memcpy(out + (size_t)element * bytes, from, bytes);
        if (element < dim && part->type == ROW_U8)
            out[element] = (char)((uint8_t)out[element] ^ 0x80);
    }
}

/* Unpacks an f32 row. */
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

/* Reads rows in host memory in place, which also works after the device is lost. */
static void read_on_host(row_range from, char *out)
{
    const segment *part = from.segment;
    const size_t element_bytes = row_type_bytes(part->type), row_bytes = (size_t)canon_padded(from.dim) * element_bytes;
    for (int64_t r = 0; r < from.count; r++) {
        const int64_t row = from.first + r, word = row / SEARCH_WORD_ROWS * SEARCH_WORD_ROWS;
        char *to = out + (size_t)r * (size_t)from.dim * element_bytes;
        if (part->type == ROW_F32)
            unpack_row((const float *)part->rows.data + row * canon_padded(from.dim), from.dim, (float *)(void *)to);
        else
            unpack_typed(part, (const char *)part->rows.data + (size_t)word * row_bytes, row - word, from.dim, to);
    }
}

/* Reads rows of another type in whole words of 64, because a byte row is not contiguous. */
static ww_status read_typed(gpu_stream *stream, row_range from, char *out)
{
    const segment *part = from.segment;
    const size_t word_bytes = (size_t)canon_padded(from.dim) * row_type_bytes(part->type) * SEARCH_WORD_ROWS;
    const int64_t first_word = from.first / SEARCH_WORD_ROWS, end = from.first + from.count;
    const int64_t words = divide_up_i64(end, SEARCH_WORD_ROWS) - first_word;
    const int64_t staged = min_i64((int64_t)(STAGED_BYTES / word_bytes) + 1, words);
    char *packed = memory_alloc((size_t)staged * word_bytes);
    if (packed == NULL)
        return memory_failed("rows to read", (size_t)staged * word_bytes);
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < words; done += staged) {
        const int64_t begin = first_word + done, now = min_i64(staged, words - done);
        status =
            gpu_copy_out(stream, packed, (const char *)part->rows.data + (size_t)begin * word_bytes, (size_t)now * word_bytes);
        const int64_t last = min_i64(end, (begin + now) * SEARCH_WORD_ROWS);
        for (int64_t r = max_i64(from.first, begin * SEARCH_WORD_ROWS); status == WW_OK && r < last; r++)
            unpack_typed(part, packed + (size_t)(r / SEARCH_WORD_ROWS - begin) * word_bytes, r % SEARCH_WORD_ROWS, from.dim,
                         out + (size_t)(r - from.first) * (size_t)from.dim * row_type_bytes(part->type));
    }
    memory_free(packed);
    return status;
}

static ww_status read_f32(gpu_stream *stream, row_range from, float *out)
{
    const size_t row_bytes = (size_t)canon_padded(from.dim) * sizeof(float);
    const int64_t staged_rows = min_i64((int64_t)(STAGED_BYTES / row_bytes) + 1, from.count);
    float *packed = memory_alloc((size_t)staged_rows * row_bytes);
    if (packed == NULL)
        return memory_failed("rows to read", (size_t)staged_rows * row_bytes);
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < from.count; done += staged_rows) {
        const int64_t now = min_i64(staged_rows, from.count - done);
        const char *rows = (const char *)from.segment->rows.data + (size_t)(from.first + done) * row_bytes;
        status = gpu_copy_out(stream, packed, rows, (size_t)now * row_bytes);
        for (int64_t r = 0; status == WW_OK && r < now; r++)
            unpack_row(packed + r * canon_padded(from.dim), from.dim, out + (done + r) * from.dim);
    }
    memory_free(packed);
    return status;
}

ww_status gpu_rows_read(ww_device *device, row_range from, void *out)
{
    gpu_stream *stream;
    if (from.segment->rows_on_host) {
        read_on_host(from, out);
        return WW_OK;
    }
    ww_status status = gpu_stream_borrow(gpu_of(device), &stream);
    if (status == WW_OK)
        status = gpu_stream_return(stream,
                                   from.segment->type == ROW_F32 ? read_f32(stream, from, out) : read_typed(stream, from, out));
    return status;
}

ww_status gpu_rows_read_here(ww_device *device, const row_choice *from, float *to)
{
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(gpu_of(device), &stream);
    if (status != WW_OK)
        return status;
    const int64_t staged = min_i64(min_i64(from->count, GATHER_ROWS_MAX), launch_rows_max(stream));
    void *numbers = NULL;
    status = gpu_workspace(stream, WORKSPACE_STAGED, (size_t)staged * sizeof *from->numbers, &numbers);
    for (int64_t done = 0; status == WW_OK && done < from->count; done += staged) {
        const int64_t count = min_i64(staged, from->count - done);
        const rows_unpack_args args = {.from = from->segment->rows.data,
                                       .sources = numbers,
                                       .to = to + done * from->dim,
                                       .count = (uint32_t)count,
                                       .dim = from->dim,
                                       .type = from->segment->type};
        status = gpu_copy_in(stream, numbers, from->numbers + done, (size_t)count * sizeof *from->numbers);
        if (status == WW_OK)
            status = launch_rows_unpack(stream, rows_grid(count), ROWS_THREADS, 0, &args);
    }
    return gpu_stream_return(stream, status);
}

/* Copies codes, scales and residuals of the rows in `numbers`, which is on the device. */
static ww_status gather_codes(gpu_stream *stream, row_range rows, const segment *from, const int64_t *numbers)
{
    const segment *to = rows.segment;
    if (to->codes.data == NULL || from->codes.data == NULL)
        return WW_OK;
    gpu_planes_outdate(stream->device, to->codes.data, rows.first);
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

static ww_status gather_rows(gpu_stream *stream, row_range to, const segment *from, const int64_t *numbers)
{
    const segment *part = to.segment;
    const bool scaled = row_type_is_bytes(from->type) && from->scales.data;
    const rows_gather_args args = {.from_rows = from->rows.data,
                                   .from_norms = from->norms.data,
                                   .from_scales = from->scales.data,
                                   .from_residuals = from->residuals.data,
                                   .to_rows = part->rows.data,
                                   .to_norms = part->norms.data,
                                   .to_scales = scaled ? part->scales.data : NULL,
                                   .to_residuals = scaled ? part->residuals.data : NULL,
                                   .sources = numbers,
                                   .first = (uint32_t)to.first,
                                   .count = (uint32_t)to.count,
                                   .chunks = packed_chunks(to.dim),
                                   .type = from->type};
    return launch_rows_gather(stream, rows_grid(to.count), ROWS_THREADS, 0, &args);
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
        status = gpu_copy_in(stream, numbers, sources + done, (size_t)now.count * sizeof *sources);
        if (status == WW_OK)
            status = gather_rows(stream, now, from, numbers);
        if (status == WW_OK)
            status = gather_codes(stream, now, from, numbers);
    }
    return gpu_stream_return(stream, status);
}
