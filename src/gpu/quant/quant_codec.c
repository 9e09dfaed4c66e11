/* Codes and decodes quantized matrices on a GPU. Floats pass through a workspace, some rows at a time, and a kernel codes or
 * decodes them, so only the requested data crosses the bus. Tensors are coded and decoded in device memory.
 */
#include "gpu/quant/quant.h"

#include "arithmetic/blocks/codebook.h"
#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum {
    WORKSPACE_FLOATS = 0,
    WORKSPACE_NUMBERS = 1, /* row ids, or the number of the first refused block */
    BATCH_BYTES = 32 << 20,
    SUB_BLOCKS_MAX = 16 /* sub-blocks of a code block; one thread codes each */
};

/* Rows whose floats fill the workspace; a kernel counts their threads in 32 bits. */
static int64_t rows_at_once(int64_t rows, int64_t cols)
{
    return min_i64(BATCH_BYTES / (cols * (int64_t)sizeof(float)) + 1, rows);
}

static gpu_grid threads_grid(int64_t threads)
{
    return grid_of((threads + QUANT_THREADS - 1) / QUANT_THREADS);
}

static ww_status encode_launch(gpu_stream *stream, const quant_encode_args *args)
{
    const int32_t type = args->type;
    const int64_t count = (int64_t)args->count;
    if (block_elements(type) < KBLOCK_ELEMENTS || type == BLOCK_Q8_K || type == BLOCK_IQ4_XS)
        return launch_quant_encode_block32(stream, threads_grid(count), QUANT_THREADS, 0, args);
    const int64_t sub_blocks = type == BLOCK_Q4_K || type == BLOCK_Q5_K ? 8 : 16;
    return launch_quant_encode_kblock(stream, threads_grid(count * sub_blocks), QUANT_THREADS, 0, args);
}

static ww_status encode_batches(gpu_stream *stream, const quant_encode_job *job, uint64_t *refused)
{
    const int64_t row_blocks = job->cols / block_length(job->type);
    const size_t row_bytes = (size_t)job->cols * sizeof(float);
    const int64_t batch_rows = rows_at_once(job->rows, job->cols);
    void *floats = NULL;
    ww_status status = gpu_workspace(stream, WORKSPACE_FLOATS, (size_t)batch_rows * row_bytes, &floats);
    if (status == WW_OK)
        status = gpu_fill(stream, refused, UINT32_MAX, sizeof *refused / sizeof(uint32_t));
    for (int64_t done = 0; status == WW_OK && done < job->rows; done += batch_rows) {
        const int64_t now = min_i64(batch_rows, job->rows - done);
        const size_t blocks_before = (size_t)(done * row_blocks);
        const quant_encode_args args = {.from = floats,
                                        .to = (uint8_t *)job->to->data + job->to_offset +
                                              blocks_before * (size_t)block_bytes(job->type),
                                        .count = (uint64_t)(now * row_blocks),
                                        .first_block = blocks_before,
                                        .refused = refused,
                                        .type = job->type};
        status = gpu_copy_in_pieces(
            stream, floats,
            (host_pieces){job->from + done * job->from_stride, row_bytes, (size_t)job->from_stride * sizeof(float), now});
        if (status == WW_OK)
            status = encode_launch(stream, &args);
    }
    return status;
}

static ww_status gpu_encode(ww_device *base, const quant_encode_job *job)
{
    *job->refused = -1;
    if (job->rows == 0)
        return WW_OK;
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(device, &stream);
    if (status != WW_OK)
        return status;
    void *flag = NULL;
    uint64_t refused = UINT64_MAX;
    status = gpu_workspace(stream, WORKSPACE_NUMBERS, sizeof refused, &flag);
    if (status == WW_OK)
        status = encode_batches(stream, job, flag);
    if (status == WW_OK)
        status = gpu_copy_out(stream, &refused, flag, sizeof refused);
    if (status == WW_OK && refused != UINT64_MAX)
        *job->refused = (int64_t)refused;
    return gpu_stream_return(stream, status);
}

/* Device memory for decoded rows before they are copied to the host, and for the ids of the rows. */
typedef struct decode_memory {
    float *floats;
    uint64_t *ids; /* NULL: all rows in order */
} decode_memory;

static ww_status decode_batch(gpu_stream *stream, const quant_decode_job *job, int64_t done, int64_t now, decode_memory memory)
{
    float *floats = memory.floats;
    uint64_t *ids = memory.ids;
    const int64_t units = (job->cols + QUANT_UNIT - 1) / QUANT_UNIT;
    const size_t row_bytes = (size_t)(job->cols / block_length(job->type) * block_bytes(job->type));
    const uint8_t *from = (const uint8_t *)job->from->data + job->from_offset;
    const quant_decode_args args = {.from = ids ? from : from + (size_t)done * row_bytes,
                                    .to = floats,
                                    .ids = ids,
                                    .rows = UINT64_MAX, /* ids were checked */
                                    .count = (uint64_t)now,
                                    .cols = (uint64_t)job->cols,
                                    .units_per_row = (uint64_t)units,
                                    .row_bytes = row_bytes,
                                    .type = job->type,
                                    .block_elements = block_elements(job->type),
                                    .block_bytes = block_bytes(job->type),
                                    .to_type = BLOCK_F32,
                                    .id_bytes = sizeof *ids};
    ww_status status = WW_OK;
    if (ids)
        status = gpu_copy_in(stream, ids, job->ids + done, (size_t)now * sizeof *ids);
    if (status == WW_OK)
        status = launch_quant_decode(stream, threads_grid(now * units), QUANT_THREADS, 0, &args);
    if (status == WW_OK)
        status = gpu_copy_out(stream, job->to + done * job->cols, floats, (size_t)(now * job->cols) * sizeof(float));
    return status;
}

static ww_status gpu_decode(ww_device *base, const quant_decode_job *job)
{
    if (job->count == 0)
        return WW_OK;
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    ww_status status = gpu_stream_borrow(device, &stream);
    if (status != WW_OK)
        return status;
    const int64_t batch_rows = rows_at_once(job->count, job->cols);
    void *floats = NULL, *ids = NULL;
    status = gpu_workspace(stream, WORKSPACE_FLOATS, (size_t)(batch_rows * job->cols) * sizeof(float), &floats);
    if (status == WW_OK && job->ids)
        status = gpu_workspace(stream, WORKSPACE_NUMBERS, (size_t)batch_rows * sizeof(uint64_t), &ids);
    for (int64_t done = 0; status == WW_OK && done < job->count; done += batch_rows)
        status = decode_batch(stream, job, done, min_i64(batch_rows, job->count - done), (decode_memory){floats, ids});
    return gpu_stream_return(stream, status);
}

/* ---- from and to tensors, on their stream ---------------------------------------------------------------------------------
 */

/* Threads of one launch, at most. */
static int64_t threads_max(const gpu_stream *stream)
{
    return gpu_blocks_max(stream->device) * QUANT_THREADS;
}

static ww_status encode_on_stream(gpu_stream *stream, const quant_encode_job *job, uint64_t *refused)
{
    const int64_t elements = block_length(job->type), blocks = job->rows * (job->cols / elements);
    const int64_t batch = threads_max(stream) / SUB_BLOCKS_MAX;
    ww_status status = gpu_fill(stream, refused, UINT32_MAX, sizeof *refused / sizeof(uint32_t));
    for (int64_t done = 0; status == WW_OK && done < blocks; done += batch) {
        const quant_encode_args args = {.from = job->from + done * elements,
                                        .to = (uint8_t *)job->to->data + job->to_offset + done * block_bytes(job->type),
                                        .count = (uint64_t)min_i64(batch, blocks - done),
                                        .first_block = (uint64_t)done,
                                        .refused = refused,
                                        .type = job->type};
        status = encode_launch(stream, &args);
    }
    return status;
}

static ww_status gpu_encode_tensor(ww_device *base, const quant_encode_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    void *flag = NULL;
    uint64_t refused = UINT64_MAX;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_workspace(stream, TENSORS_WORKSPACE_REFUSED, sizeof refused, &flag);
    if (status == WW_OK)
        status = encode_on_stream(stream, job, flag);
    if (status == WW_OK)
        status = gpu_copy_out(stream, &refused, flag, sizeof refused);
    *job->refused = refused == UINT64_MAX ? -1 : (int64_t)refused;
    if (status != WW_OK)
        gpu_settle(stream);
    return gpu_tensors_leave(device, previous, status);
}

static ww_status decode_on_stream(gpu_stream *stream, const quant_decode_tensor_job *job)
{
    const int64_t units = (job->cols + QUANT_UNIT - 1) / QUANT_UNIT, batch = max_i64(threads_max(stream) / units, 1);
    const int64_t to_bytes = job->cols * block_bytes(job->to_type);
    const size_t row_bytes = (size_t)(job->cols / block_length(job->type) * block_bytes(job->type));
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < job->count; done += batch) {
        const int64_t now = min_i64(batch, job->count - done), skipped = job->ids ? 0 : done;
        const quant_decode_args args = {.from =
                                            (const uint8_t *)job->from->data + job->from_offset + (size_t)skipped * row_bytes,
                                        .to = (char *)job->to + done * to_bytes,
                                        .ids = job->ids ? (const char *)job->ids + done * job->id_bytes : NULL,
                                        .rows = (uint64_t)(job->rows - skipped),
                                        .count = (uint64_t)now,
                                        .cols = (uint64_t)job->cols,
                                        .units_per_row = (uint64_t)units,
                                        .row_bytes = row_bytes,
                                        .type = job->type,
                                        .block_elements = block_elements(job->type),
                                        .block_bytes = block_bytes(job->type),
                                        .to_type = job->to_type,
                                        .id_bytes = job->id_bytes};
        status = launch_quant_decode(stream, threads_grid(now * units), QUANT_THREADS, 0, &args);
    }
    return status;
}

static ww_status gpu_decode_tensor(ww_device *base, const quant_decode_tensor_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = decode_on_stream(stream, job);
    return gpu_tensors_leave(device, previous, status);
}

const quant_backend gpu_quants = {.queues = true,
                                  .encode = gpu_encode,
                                  .decode = gpu_decode,
                                  .encode_tensor = gpu_encode_tensor,
                                  .decode_tensor = gpu_decode_tensor,
                                  .product = gpu_quant_product,
                                  .takes = gpu_quant_takes,
                                  .fuses = gpu_quant_fuses};
