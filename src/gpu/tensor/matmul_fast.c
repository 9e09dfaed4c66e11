/* Matrix products and convolutions in fast mode on AMD's matrix units, and f16 products on chips with instructions for two
 * products (v_dot2). Products come here if the vendor's BLAS is missing or refuses. This file chooses the kernel
 * (kernels/matmul/matmul_fast.h) and copies what it cannot read in place. For a convolution, what the outputs see is written to
 * memory in pieces (kernels/matmul/conv_im2col.h) and multiplied.
 */
#include "device/matmul_job.h"

#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum {
    SLAB_BYTES = 64,         /* bytes along k that pass through shared memory at a time */
    OFFSETS_MAX = INT32_MAX, /* bytes from a tile's first element to its last, of a slab */
    PACKED_ALIGNMENT = 16,
    IM2COL_BYTES = 32 << 20, /* bytes of im2col at a time: the caches of AMD's larger chips hold them */
};

bool gpu_has_matrix_units(const gpu_device *device, int32_t type)
{
    return type == TYPE_F32 ? device->capabilities.matrix_f32
                            : (type == TYPE_F16 || type == TYPE_BF16) && device->capabilities.matrix_f16;
}

static int64_t slab_steps(int32_t type)
{
    return SLAB_BYTES / type_size(type);
}

/* k, padded to whole slabs. */
static int64_t padded_k(const matmul_job *job)
{
    return divide_up_i64(job->k, slab_steps(job->type)) * slab_steps(job->type);
}

static bool has_fast_products(const gpu_device *device, int32_t type)
{
    return type == TYPE_F16 ? device->capabilities.fast_f16 : gpu_has_matrix_units(device, type);
}

/* If k is less than a slab, padding would make the matrices many times larger. */
bool gpu_matmul_can_be_fast(const gpu_device *device, const matmul_job *job)
{
    return job->fast && !job->window && job->m > 0 && job->n > 0 && job->k >= slab_steps(job->type) &&
           has_fast_products(device, job->type);
}

/* ---- sides --------------------------------------------------------------------------------------------------------------- */

/* A matrix as the product sees it: lines, which are rows of a or columns of b, along k. Strides are in elements. */
typedef struct product_side {
    const void *data;
    int64_t lines, line_stride, k_stride;
    const int64_t *batch; /* strides */
} product_side;

/* Returns true if all matrices start at multiples of `elements`. */
static bool begins_aligned(const matmul_job *job, const product_side *side, int64_t elements)
{
    bool all = (uintptr_t)side->data % (uintptr_t)(elements * type_size(job->type)) == 0;
    for (int32_t i = 0; i < job->batch_rank; i++)
        all &= job->batch[i] <= 1 || side->batch[i] % elements == 0;
    return all;
}

/* Returns true if the matrix can be read in place; `across` says whether across k. */
static bool can_read_in_place(const matmul_job *job, const product_side *side, bool *across)
{
    const int64_t bytes = type_size(job->type), piece = 16 / bytes, steps = slab_steps(job->type);
    const int64_t line_max = OFFSETS_MAX / (MATMUL_FAST_SIDE * bytes), k_max = OFFSETS_MAX / (2 * steps * bytes);
    const bool along = side->k_stride == 1 && (side->lines == 1 || side->line_stride % piece == 0) &&
                       side->line_stride <= line_max && begins_aligned(job, side, piece);
    *across = !along && side->line_stride == 1 && side->lines % 4 == 0 && side->k_stride % 4 == 0 && side->k_stride <= k_max &&
              begins_aligned(job, side, 4);
    return job->k % steps == 0 && (along || *across);
}

/* Returns true if the whole batch uses one matrix. */
static bool is_shared(const matmul_job *job, const product_side *side)
{
    bool all = true;
    for (int32_t i = 0; i < job->batch_rank; i++)
        all &= job->batch[i] <= 1 || side->batch[i] == 0;
    return all;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

/* A copy of a side that is contiguous along k, with k padded. */
typedef struct packed_side {
    bool needed, across; /* `across` is for sides that are read in place */
    matmul_args args;    /* of the copy */
    buffer memory;
} packed_side;

static packed_side packed_of(const matmul_job *job, const product_side *side)
{
    packed_side packed = {0};
    packed.needed = !can_read_in_place(job, side, &packed.across);
    if (!packed.needed)
        return packed;
    const int64_t padded = padded_k(job);
    packed.across = false;
    packed.args = (matmul_args){.a = side->data,
                                .a_layout = side->line_stride < side->k_stride ? MATMUL_ACROSS_K : MATMUL_ALONG_K,
                                .m = (int32_t)side->lines,
                                .n = (int32_t)padded,
                                .k = (int32_t)job->k,
                                .a_row = side->line_stride,
                                .a_column = side->k_stride,
                                .c_row = padded,
                                .batches = 1,
                                .type = job->type};
    if (is_shared(job, side))
        return packed;
    packed.args.batch_rank = job->batch_rank;
    int64_t matrices = 1;
    for (int32_t i = job->batch_rank - 1; i >= 0; i--) {
        packed.args.batch[i] = job->batch[i];
        packed.args.a_batch[i] = side->batch[i];
        packed.args.c_batch[i] = matrices * side->lines * padded;
        matrices *= job->batch[i];
    }
    packed.args.batches = matrices;
    return packed;
}

static ww_status alloc_packed(ww_device *base, const matmul_job *job, packed_side *packed)
{
    const int64_t elements = packed->args.batches * packed->args.m * packed->args.n;
    if (!packed->needed)
        return WW_OK;
    const ww_status status = tensors_gpu.alloc(base, (size_t)elements * (size_t)type_size(job->type), &packed->memory);
    packed->args.c = packed->memory.data;
    return status;
}

static ww_status launch_packing(gpu_stream *stream, const matmul_job *job, const packed_side *packed)
{
    const int64_t pieces = packed->args.m * (int64_t)(packed->args.n / (PACKED_ALIGNMENT / type_size(job->type)));
    const gpu_grid grid =
        grid_of_2(divide_up_i64(pieces, MATMUL_THREADS), min_i64(packed->args.batches, gpu_blocks_y_max(stream->device)));
    if (!packed->needed)
        return WW_OK;
    return launch_matmul_pack(stream, grid, MATMUL_THREADS, 0, &packed->args);
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

/* Returns true if a lane can write its four neighbouring results at once. */
static bool results_in_fours(const matmul_job *job, int32_t type)
{
    bool all = (uintptr_t)job->c % (uintptr_t)(4 * type_size(type)) == 0 && (job->m == 1 || job->c_row % 4 == 0);
    for (int32_t i = 0; i < job->batch_rank; i++)
        all &= job->batch[i] <= 1 || job->c_batch[i] % 4 == 0;
    return all;
}

static ww_status launch_product(gpu_stream *stream, int32_t type, matmul_args *args)
{
    const int64_t down = divide_up_i64(args->m, MATMUL_FAST_SIDE), across = divide_up_i64(args->n, MATMUL_FAST_SIDE);
    const gpu_grid grid = grid_of_2(down * across, min_i64(args->batches, gpu_blocks_y_max(stream->device)));
    args->blocks_down = (int32_t)down;
    return type == TYPE_F16    ? launch_matmul_fast_f16(stream, grid, MATMUL_THREADS, 0, args)
           : type == TYPE_BF16 ? launch_matmul_fast_bf16(stream, grid, MATMUL_THREADS, 0, args)
                               : launch_matmul_fast_f32(stream, grid, MATMUL_THREADS, 0, args);
}

/* Makes the product read the copies. */
static void take_packed(const packed_side *a, const packed_side *b, matmul_args *args)
{
    args->a_layout = a->across ? MATMUL_ACROSS_K : MATMUL_ALONG_K;
    args->b_layout = b->across ? MATMUL_ACROSS_K : MATMUL_ALONG_K;
    if (a->needed) {
        args->a = a->args.c;
        args->a_row = args->k = a->args.n;
        for (int32_t i = 0; i < args->batch_rank; i++)
            args->a_batch[i] = a->args.c_batch[i];
    }
    if (b->needed) {
        args->b = b->args.c;
        args->b_column = args->k = b->args.n;
        for (int32_t i = 0; i < args->batch_rank; i++)
            args->b_batch[i] = b->args.c_batch[i];
    }
}

static ww_status launch_all(gpu_stream *stream, const matmul_job *job, const packed_side *a, const packed_side *b,
                            matmul_args *args)
{
    ww_status status = launch_packing(stream, job, a);
    if (status == WW_OK)
        status = launch_packing(stream, job, b);
    return status == WW_OK ? launch_product(stream, job->type, args) : status;
}

ww_status gpu_matmul_fast(ww_device *base, const matmul_job *job, matmul_args *args)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    packed_side a = packed_of(job, &(product_side){job->a, job->m, job->a_row, job->a_column, job->a_batch});
    packed_side b = packed_of(job, &(product_side){job->b, job->n, job->b_column, job->b_row, job->b_batch});
    ww_status status = alloc_packed(base, job, &a);
    if (status == WW_OK)
        status = alloc_packed(base, job, &b);
    take_packed(&a, &b, args);
    args->c_quads = results_in_fours(job, job->type);
    if (status == WW_OK)
        status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK)
        status = gpu_tensors_leave(device, previous, launch_all(stream, job, &a, &b, args));
    tensors_gpu.release(base, &b.memory);
    tensors_gpu.release(base, &a.memory);
    return status;
}

ww_status gpu_matmul_fast_launch(gpu_stream *stream, const matmul_job *job)
{
    matmul_args args = gpu_matmul_args(job);
    args.type = TYPE_F32;
    args.a_layout = args.b_layout = MATMUL_ALONG_K;
    args.c_quads = results_in_fours(job, TYPE_F32);
    return launch_product(stream, job->type, &args);
}

/* ---- convolutions -------------------------------------------------------------------------------------------------------- */

bool gpu_conv_by_im2col(const gpu_device *device, const matmul_job *job)
{
    const matmul_window *w = job->window;
    return job->fast && w && gpu_has_matrix_units(device, job->type) && job->k >= slab_steps(job->type) && job->m > 0 &&
           job->n > 0 && job->batch_rank < MATMUL_BATCH_RANK && w->out_x_stride == 1 &&
           (w->outs_y == 1 || w->out_y_stride == w->outs_x);
}

/* Some outputs of some images. */
typedef struct conv_piece {
    int64_t first_image, images, first_output, outputs;
} conv_piece;

/* Returns the largest piece that fits, from this image and output on. */
static conv_piece piece_from(const gpu_device *device, const matmul_job *job, int64_t image, int64_t output)
{
    const int64_t tuned = device->base.tuning.im2col_bytes, all = tuned > 0 ? tuned : IM2COL_BYTES;
    const int64_t outputs = job->window->outs_y * job->window->outs_x, images = job->n / outputs;
    const int64_t line_bytes = padded_k(job) * type_size(job->type) * matmul_batch_count(job);
    const int64_t room = max_i64(all / line_bytes / MATMUL_FAST_SIDE * MATMUL_FAST_SIDE, MATMUL_FAST_SIDE);
    if (room < outputs)
        return (conv_piece){image, 1, output, min_i64(room, outputs - output)};
    return (conv_piece){image, min_i64(room / outputs, images - image), 0, outputs};
}

/* The product of a piece, with b = `seen`: images are the last dimension of the batch. */
static matmul_job product_of(const matmul_job *job, const conv_piece *piece, int64_t padded, const void *seen)
{
    matmul_job p = *job;
    const int32_t last = p.batch_rank++;
    const int64_t at = piece->first_image * job->window->out_image_stride + piece->first_output;
    p.window = NULL;
    p.n = piece->outputs;
    p.k = padded;
    p.b = seen;
    p.b_row = 1;
    p.b_column = padded;
    p.c = (char *)job->c + at * type_size(job->type);
    p.batch[last] = piece->images;
    p.a_batch[last] = 0;
    p.c_batch[last] = job->window->out_image_stride;
    int64_t matrices = 1;
    for (int32_t i = last; i >= 0; i--) {
        p.b_batch[i] = matrices * piece->outputs * padded;
        matrices *= p.batch[i];
    }
    return p;
}

static ww_status launch_im2col(gpu_stream *stream, const matmul_job *job, const conv_piece *piece, const matmul_job *product)
{
    const int64_t bytes = type_size(job->type), pieces = piece->outputs * (product->k / (PACKED_ALIGNMENT / bytes));
    const int32_t last = job->batch_rank;
    matmul_args args = gpu_matmul_args(job);
    args.b = (const char *)job->b + piece->first_image * job->window->image_stride * bytes;
    args.c = (void *)product->b;
    args.c_row = product->k;
    args.m = (int32_t)product->k;
    args.n = (int32_t)piece->outputs;
    args.blocks_down = (int32_t)piece->first_output;
    args.batch_rank = product->batch_rank;
    args.batches = matmul_batch_count(product);
    args.batch[last] = piece->images;
    args.b_batch[last] = job->window->image_stride;
    for (int32_t i = 0; i <= last; i++)
        args.c_batch[i] = product->b_batch[i];
    const gpu_grid grid =
        grid_of_2(divide_up_i64(pieces, MATMUL_THREADS), min_i64(args.batches, gpu_blocks_y_max(stream->device)));
    return launch_conv_im2col(stream, grid, MATMUL_THREADS, 0, &args);
}

static ww_status launch_piece(gpu_stream *stream, const matmul_job *job, const conv_piece *piece, const packed_side *weights,
                              const void *seen)
{
    const matmul_job product = product_of(job, piece, padded_k(job), seen);
    const packed_side as_it_lies = {0};
    matmul_args args = gpu_matmul_args(&product);
    take_packed(weights, &as_it_lies, &args);
    args.c_quads = results_in_fours(&product, job->type);
    const ww_status status = launch_im2col(stream, job, piece, &product);
    return status == WW_OK ? launch_product(stream, job->type, &args) : status;
}

/* Queues the weights, and then im2col and the product for each piece. */
static ww_status launch_pieces(gpu_stream *stream, const matmul_job *job, const packed_side *weights, const void *seen)
{
    const int64_t outputs = job->window->outs_y * job->window->outs_x, images = job->n / outputs;
    int64_t image = 0, output = 0;
    ww_status status = launch_packing(stream, job, weights);
    while (status == WW_OK && image < images) {
        const conv_piece piece = piece_from(stream->device, job, image, output);
        status = launch_piece(stream, job, &piece, weights, seen);
        output = piece.first_output + piece.outputs;
        if (output == outputs) {
            output = 0;
            image += piece.images;
        }
    }
    return status;
}

ww_status gpu_conv_im2col(ww_device *base, const matmul_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    buffer seen = {0};
    const conv_piece first = piece_from(device, job, 0, 0); /* the largest */
    const int64_t elements = first.images * first.outputs * padded_k(job) * matmul_batch_count(job);
    packed_side weights = packed_of(job, &(product_side){job->a, job->m, job->a_row, job->a_column, job->a_batch});
    ww_status status = alloc_packed(base, job, &weights);
    if (status == WW_OK)
        status = tensors_gpu.alloc(base, (size_t)elements * (size_t)type_size(job->type), &seen);
    if (status == WW_OK)
        status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK)
        status = gpu_tensors_leave(device, previous, launch_pieces(stream, job, &weights, seen.data));
    tensors_gpu.release(base, &seen);
    tensors_gpu.release(base, &weights.memory);
    return status;
}
