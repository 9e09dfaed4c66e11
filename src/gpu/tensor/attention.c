/* Attention on a GPU: which kernel, in which pieces.
 *
 * Tokens that follow each other in a sequence use tiles, others use chunks. Partial results of a query's chunks are in a
 * workspace until they are merged. Long contexts make it large, so tokens are divided into pieces, limited by parts_bytes_max,
 * the number of counters, and the blocks of a launch. The pieces do not depend on the contents of device memory, so a recorded
 * step has the same ones at each replay.
 */
#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"
#include "kernels/reduce/row_arguments.h"

enum { BLOCKS_MAX = 1 << 20 };
static const int64_t parts_bytes_max = 256 << 20;

static attention_store_args store_args(const attention_store_job *job)
{
    const attention_batch *batch = &job->batch;
    return (attention_store_args){.q = job->q,
                                  .k = job->k,
                                  .v = job->v,
                                  .cosines = job->cosines,
                                  .sines = job->sines,
                                  .sequences = batch->sequences,
                                  .positions = batch->positions,
                                  .pages = batch->pages,
                                  .q_stride = job->q_stride,
                                  .k_stride = job->k_stride,
                                  .v_stride = job->v_stride,
                                  .pages_stride = batch->pages_stride,
                                  .rope_positions = job->rope_positions,
                                  .tokens = batch->tokens,
                                  .layer = batch->layer,
                                  .heads = job->heads,
                                  .rope = job->rope,
                                  .half = job->half};
}

ww_status gpu_attention_store(ww_device *base, const attention_store_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    const attention_batch *batch = &job->batch;
    const attention_store_args args = store_args(job);
    const bool q8_0 = batch->layer.type == ATTENTION_Q8_0;
    const int64_t pieces =
        (int64_t)2 * batch->layer.kv_heads * (batch->layer.head_size / (q8_0 ? ATTENTION_BLOCK : ATTENTION_LANES));
    const int64_t items =
        batch->tokens * (pieces + (job->rope != ATTENTION_ROPE_NONE && job->q ? (int64_t)job->heads * job->half : 0));
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    const int64_t blocks_max = min_i64(gpu_blocks_max(device), BLOCKS_MAX);
    const gpu_grid grid = grid_early(grid_of(min_i64(divide_up_i64(items, ATTENTION_THREADS), blocks_max)));
    status = q8_0 ? launch_attention_store_q8_0(stream, grid, ATTENTION_THREADS, 0, &args)
                  : launch_attention_store(stream, grid, ATTENTION_THREADS, 0, &args);
    return gpu_tensors_leave(device, previous, status);
}

/* Thread blocks that share the query heads of a head of keys. */
static int64_t passes_of(const attention_args *args)
{
    return divide_up_i64(args->group, args->each);
}

/* Query heads per thread block. A block with one head takes the least time, but every block reads the keys and values again. So
 * blocks get more heads while there are more blocks than compute units. */
static int32_t heads_of_a_block(const gpu_device *device, const attention_args *args, int64_t tokens)
{
    int32_t each = 1;
    while (each < ATTENTION_PASS && each < args->group &&
           tokens * args->chunks * args->layer.kv_heads * divide_up_i64(args->group, each) > device->base.info.compute_units)
        each *= 2;
    return each;
}

static ww_status launch_chunks(gpu_stream *stream, const attention_args *args)
{
    const gpu_grid grid = grid_early(grid_of_2((int64_t)args->chunks * args->layer.kv_heads * passes_of(args), args->tokens));
    const size_t bytes = (size_t)attention_chunk_floats(args->layer.head_size, args->each) * sizeof(float);
    if (args->layer.type == ATTENTION_F16)
        return launch_attention_chunk_f16(stream, grid, ATTENTION_THREADS, bytes, args);
    if (args->layer.type == ATTENTION_F32)
        return launch_attention_chunk_f32(stream, grid, ATTENTION_THREADS, bytes, args);
    return launch_attention_chunk_q8_0(stream, grid, ATTENTION_THREADS, bytes, args);
}

static ww_status launch_tiles(gpu_stream *stream, const attention_args *args)
{
    const int64_t tiles = divide_up_i64(args->tokens * args->group, ATTENTION_ROWS);
    const gpu_grid grid = grid_of_2(tiles * args->chunks, args->layer.kv_heads);
    const size_t bytes = (size_t)attention_tile_floats(args->layer.head_size) * sizeof(float);
    ww_status status;
    if (args->layer.type == ATTENTION_F16)
        status = launch_attention_tile_f16(stream, grid, ATTENTION_THREADS, bytes, args);
    else if (args->layer.type == ATTENTION_F32)
        status = launch_attention_tile_f32(stream, grid, ATTENTION_THREADS, bytes, args);
    else
        status = launch_attention_tile_q8_0(stream, grid, ATTENTION_THREADS, bytes, args);
    if (status != WW_OK || args->chunks == 1)
        return status;
    const int64_t elements = args->tokens * args->heads * args->layer.head_size;
    const int64_t blocks_max = min_i64(gpu_blocks_max(stream->device), BLOCKS_MAX);
    return launch_attention_merge(stream, grid_of(min_i64(divide_up_i64(elements, ATTENTION_THREADS), blocks_max)),
                                  ATTENTION_THREADS, 0, args);
}

/* Tokens of one launch. */
static int64_t piece_of(const gpu_device *device, const attention_args *args, bool tiles, int64_t part_bytes)
{
    int64_t piece = args->chunks > 1 ? parts_bytes_max / (part_bytes * args->chunks * args->heads) : INT32_MAX;
    if (tiles)
        piece = min_i64(piece, gpu_blocks_of(device, ATTENTION_THREADS) / args->chunks * ATTENTION_ROWS / args->group);
    else
        piece = min_i64(piece, min_i64(REDUCE_READY / (args->layer.kv_heads * passes_of(args)), gpu_blocks_y_max(device)));
    return max_i64(piece, 1);
}

static ww_status run_pieces(gpu_stream *stream, attention_args *args, int64_t tokens, bool tiles)
{
    gpu_device *device = stream->device;
    const int64_t part_bytes = (ATTENTION_PART_SUMS + args->layer.head_size) * (int64_t)sizeof(float);
    const int64_t piece = min_i64(piece_of(device, args, tiles, part_bytes), tokens);
    void *parts = NULL;
    ww_status status = gpu_tensors_ready(device, &args->ready);
    if (status == WW_OK && args->chunks > 1)
        status = gpu_workspace(stream, TENSORS_WORKSPACE_ATTENTION, (size_t)(piece * args->heads * args->chunks * part_bytes),
                               &parts);
    args->parts = parts;
    for (args->first_token = 0; args->first_token < tokens && status == WW_OK; args->first_token += piece) {
        args->tokens = min_i64(piece, tokens - args->first_token);
        status = tiles ? launch_tiles(stream, args) : launch_chunks(stream, args);
    }
    return status;
}

ww_status gpu_attention(ww_device *base, const attention_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    const attention_batch *batch = &job->batch;
    attention_args args = {.q = job->q,
                           .out = job->out,
                           .sequences = batch->sequences,
                           .positions = batch->positions,
                           .lengths = batch->lengths,
                           .pages = batch->pages,
                           .q_stride = job->q_stride,
                           .pages_stride = batch->pages_stride,
                           .layer = batch->layer,
                           .mask = job->mask,
                           .scale = job->scale,
                           .cap = job->cap,
                           .sinks = job->sinks,
                           .slopes = job->slopes,
                           .heads = job->heads,
                           .group = job->heads / batch->layer.kv_heads,
                           .chunks = (int32_t)divide_up_i64(max_i32(job->keys_max, 1), ATTENTION_CHUNK),
                           .keys_max = job->keys_max};
    const bool tiles = job->runs && batch->tokens > 1;
    ww_status status = job->store && tiles ? gpu_attention_store(base, job->store) : WW_OK;
    if (job->store && !tiles)
        args.store = store_args(job->store);
    args.each = heads_of_a_block(device, &args, batch->tokens);
    if (status == WW_OK)
        status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK)
        status = gpu_tensors_leave(device, previous, run_pieces(stream, &args, batch->tokens, tiles));
    return status;
}
