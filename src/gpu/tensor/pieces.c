/* Divides jobs that need more blocks than one launch may have.
 *
 * CUDA allows 2^31-1 blocks along x; HIP allows fewer than 2^32 threads, which is 4,194,303 blocks of 1024. The counts of a job
 * give an upper bound on its blocks for any kernel: one block per row, one per result and chunk, and so on. A job is divided
 * along its outermost dimension, where results do not depend on each other, so the bits stay the same. A job that fits costs
 * one comparison.
 */
#include "gpu/tensor/pieces.h"

#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"
#include "kernels/elementwise/index.h"
#include "kernels/elementwise/random.h"
#include "kernels/reduce/row_arguments.h"

enum {
    CUT_UNIT = 4096,    /* cuts are multiples of this many elements, so that alignment is kept */
    REDUCE_PARTS = 1024 /* blocks per result, at most (gpu/tensor/reduce.c) */
};

static int64_t blocks_max(ww_device *base)
{
    return gpu_blocks_max(gpu_of(base));
}

static void *moved(const void *data, int64_t elements, int32_t type)
{
    return data == NULL ? NULL : (char *)(uintptr_t)data + elements * type_size(type);
}

/* Where to cut a dimension of `extent` in two. */
static int64_t half_of(int64_t extent)
{
    const int64_t half = extent / 2;
    return half > CUT_UNIT ? half / CUT_UNIT * CUT_UNIT : half;
}

/* ---- element by element ---------------------------------------------------------------------------------------------------
 */

/* Returns the job for `extent` elements from `first` on along the outermost dimension. A dimension of one is dropped. */
static elementwise_job elements_from(const elementwise_job *job, int64_t first, int64_t extent)
{
    elementwise_job piece = *job;
    tensor_operand *operands[1 + ELEMENTWISE_INPUTS] = {&piece.out};
    for (int32_t i = 0; i < job->inputs; i++)
        operands[1 + i] = &piece.in[i];
    piece.count = job->count / job->shape[0] * extent;
    piece.shape[0] = extent;
    piece.rank = extent == 1 ? job->rank - 1 : job->rank;
    for (int32_t d = 0; extent == 1 && d < piece.rank; d++)
        piece.shape[d] = job->shape[d + 1];
    for (int32_t o = 0; o <= job->inputs; o++) {
        operands[o]->data = moved(operands[o]->data, first * operands[o]->strides[0], operands[o]->type);
        for (int32_t d = 0; extent == 1 && d < piece.rank; d++)
            operands[o]->strides[d] = operands[o]->strides[d + 1];
    }
    return piece;
}

/* Calls `work` with pieces of at most `count_max` elements, in order. `before` is the number of elements before a piece. */
typedef ww_status (*piece_work)(ww_device *base, const elementwise_job *piece, int64_t before, void *context);

static ww_status each_piece(ww_device *base, const elementwise_job *job, int64_t count_max, piece_work work, void *context)
{
    elementwise_job pieces[65]; /* halves that are still to do; each level of halving leaves one */
    int64_t before = 0;
    int32_t waiting = 0;
    ww_status status = WW_OK;
    pieces[waiting++] = *job;
    while (waiting > 0 && status == WW_OK) {
        const elementwise_job piece = pieces[--waiting];
        if (piece.count <= count_max || piece.rank == 0) {
            status = work(base, &piece, before, context);
            before += piece.count;
            continue;
        }
        const int64_t half = half_of(piece.shape[0]);
        pieces[waiting++] = elements_from(&piece, half, piece.shape[0] - half);
        pieces[waiting++] = elements_from(&piece, 0, half);
    }
    return status;
}

static int64_t elements_max(ww_device *base)
{
    int64_t count_max = 0;
    return __builtin_mul_overflow(blocks_max(base), (int64_t)ELEMENTWISE_TILE, &count_max) ? INT64_MAX : count_max;
}

static ww_status elementwise_piece(ww_device *base, const elementwise_job *piece, int64_t before, void *context)
{
    (void)before;
    (void)context;
    return gpu_elementwise(base, piece);
}

ww_status pieces_elementwise(ww_device *base, const elementwise_job *job)
{
    const int64_t count_max = elements_max(base);
    return job->count <= count_max ? gpu_elementwise(base, job) : each_piece(base, job, count_max, elementwise_piece, NULL);
}

typedef struct ids_check {
    int64_t extent;
    int64_t *bad, *value;
} ids_check;

static ww_status check_piece(ww_device *base, const elementwise_job *piece, int64_t before, void *context)
{
    const ids_check *check = context;
    if (*check->bad >= 0)
        return WW_OK; /* the caller wants the first one */
    const ww_status status = gpu_check_ids(base, piece, check->extent, check->bad, check->value);
    if (*check->bad >= 0)
        *check->bad += before;
    return status;
}

ww_status pieces_check_ids(ww_device *base, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value)
{
    const int64_t count_max = elements_max(base);
    ids_check check = {extent, bad, value};
    *bad = -1;
    return ids->count <= count_max ? gpu_check_ids(base, ids, extent, bad, value)
                                   : each_piece(base, ids, count_max, check_piece, &check);
}

/* All ids were checked before; this checks only the first one again. */
static ww_status gather_piece(ww_device *base, const elementwise_job *piece, int64_t before, void *context)
{
    (void)before;
    const elementwise_job *ids = context;
    elementwise_job one = *ids;
    int64_t bad = -1, value = 0;
    one.rank = 0;
    one.count = 1;
    return gpu_gather(base, piece, &one, &bad, &value);
}

ww_status pieces_gather(ww_device *base, const elementwise_job *job, const elementwise_job *ids, int64_t *bad, int64_t *value)
{
    const int64_t count_max = elements_max(base);
    if (job->count <= count_max && ids->count <= count_max)
        return gpu_gather(base, job, ids, bad, value);
    const ww_status status = pieces_check_ids(base, ids, job->ib, bad, value);
    return status == WW_OK && *bad < 0 ? each_piece(base, job, count_max, gather_piece, (void *)(uintptr_t)ids) : status;
}

static ww_status scatter_piece(ww_device *base, const elementwise_job *piece, int64_t before, void *context)
{
    (void)before;
    scatter_job some = *(const scatter_job *)context;
    some.lines = *piece;
    return gpu_scatter(base, &some);
}

ww_status pieces_scatter(ww_device *base, const scatter_job *job)
{
    int64_t lines_max = 0; /* lines, a thread each; few lines have several threads, but never more than many have (index.c) */
    if (__builtin_mul_overflow(blocks_max(base), (int64_t)SCATTER_THREADS, &lines_max))
        lines_max = INT64_MAX;
    return job->lines.count <= lines_max ? gpu_scatter(base, job)
                                         : each_piece(base, &job->lines, lines_max, scatter_piece, (void *)(uintptr_t)job);
}

/* A thread makes two or four numbers from a block of the sequence. */
ww_status pieces_random(ww_device *base, const random_job *job)
{
    const int64_t each = job->type == TYPE_F64 ? 2 : 4;
    int64_t count_max = 0;
    if (__builtin_mul_overflow(blocks_max(base), (int64_t)RANDOM_THREADS * each, &count_max))
        count_max = INT64_MAX;
    ww_status status = WW_OK;
    for (int64_t done = 0; done < job->count && status == WW_OK; done += count_max) {
        random_job some = *job;
        some.to = moved(job->to, done, job->type);
        some.count = min_i64(count_max, job->count - done);
        some.first_block = job->first_block + (uint64_t)(done / each);
        status = gpu_random(base, &some);
        if (count_max > job->count - done)
            break; /* `done` could overflow */
    }
    return status;
}

/* ---- rows and reductions --------------------------------------------------------------------------------------------------
 */

ww_status pieces_rows(ww_device *base, const rows_job *job)
{
    const int64_t rows_max = blocks_max(base);
    ww_status status = WW_OK;
    for (int64_t done = 0; done < job->rows && status == WW_OK; done += rows_max) {
        rows_job some = *job;
        some.rows = min_i64(rows_max, job->rows - done);
        some.x = moved(job->x, done * job->n, job->type);
        some.out = moved(job->out, done * job->n, job->type);
        status = gpu_rows(base, &some);
    }
    return status;
}

ww_status pieces_sort(ww_device *base, const sort_job *job)
{
    int64_t padded = 1;
    while (padded < job->n)
        padded *= 2;
    /* One block per row, or one thread per element of the padded rows. A row that is too long by itself is not divided. */
    const int64_t blocks = blocks_max(base), by_threads = blocks / (padded / SORT_THREADS + 1);
    const int64_t rows_max = by_threads > 0 ? by_threads : 1;
    ww_status status = WW_OK;
    for (int64_t done = 0; done < job->rows && status == WW_OK; done += rows_max) {
        sort_job some = *job;
        some.rows = min_i64(rows_max, job->rows - done);
        some.x = moved(job->x, done * job->n, job->type);
        some.values = moved(job->values, done * job->k, job->type);
        some.indices = job->indices != NULL ? job->indices + done * job->k : NULL;
        status = gpu_sort(base, &some);
    }
    return status;
}

/* Returns the job for the rows from `first` on along the outermost dimension of the cosines and sines. */
static rope_job rope_from(const rope_job *job, int64_t first, int64_t extent)
{
    rope_job piece = *job;
    const int64_t inner = job->rows / job->cosines.shape[0];
    piece.rows = inner * extent;
    piece.cosines.shape[0] = piece.sines.shape[0] = extent;
    piece.x = moved(job->x, first * inner * 2 * job->half, job->type);
    piece.out = moved(job->out, first * inner * 2 * job->half, job->type);
    piece.cosine = moved(job->cosine, first * job->cosines.strides[0], job->type);
    piece.sine = moved(job->sine, first * job->sines.strides[0], job->type);
    return piece;
}

/* One thread per pair. */
ww_status pieces_rope(ww_device *base, const rope_job *job)
{
    const int64_t rows_max = max_i64(blocks_max(base) / (job->half / ROW_THREADS + 1), 1);
    if (job->rows <= rows_max || job->cosines.rank == 0 || job->cosines.shape[0] < 2)
        return gpu_rope(base, job);
    const int64_t extent = job->cosines.shape[0], at_once = max_i64(rows_max / (job->rows / extent), 1);
    ww_status status = WW_OK;
    for (int64_t done = 0; done < extent && status == WW_OK; done += at_once) {
        const rope_job some = rope_from(job, done, min_i64(at_once, extent - done));
        status = gpu_rope(base, &some);
    }
    return status;
}

/* Returns the job for the results from `first` on along the outermost dimension that is kept. */
static reduce_job reduce_from(const reduce_job *job, int64_t first, int64_t extent)
{
    reduce_job piece = *job;
    const int64_t inner = job->outs / job->kept.shape[0];
    piece.outs = inner * extent;
    piece.x = moved(job->x, first * job->kept.strides[0], job->type);
    piece.out = moved(job->out, first * inner, job->out_type);
    piece.kept.shape[0] = extent;
    if (extent > 1)
        return piece;
    piece.kept.rank--;
    for (int32_t d = 0; d < piece.kept.rank; d++) {
        piece.kept.shape[d] = job->kept.shape[d + 1];
        piece.kept.strides[d] = job->kept.strides[d + 1];
    }
    return piece;
}

/* At most one block per result and chunk, or per result and part. Inner dimensions are divided in turn. */
ww_status pieces_reduce(ww_device *base, const reduce_job *job)
{
    const int64_t chunks = (job->n + REDUCE_CHUNK - 1) / REDUCE_CHUNK;
    const int64_t outs_max = max_i64(blocks_max(base) / min_i64(chunks, REDUCE_PARTS), 1);
    reduce_job pieces[65]; /* as in each_piece() */
    int32_t waiting = 0;
    ww_status status = WW_OK;
    if (job->outs <= outs_max)
        return gpu_reduce(base, job);
    pieces[waiting++] = *job;
    while (waiting > 0 && status == WW_OK) {
        const reduce_job piece = pieces[--waiting];
        if (piece.outs <= outs_max || piece.kept.rank == 0) {
            status = gpu_reduce(base, &piece);
            continue;
        }
        const int64_t half = half_of(piece.kept.shape[0]);
        pieces[waiting++] = reduce_from(&piece, half, piece.kept.shape[0] - half);
        pieces[waiting++] = reduce_from(&piece, 0, half);
    }
    return status;
}

/* ---- products -------------------------------------------------------------------------------------------------------------
 */

enum { TILE_SIDE = 64 }; /* side of the smallest tile; one block per tile */

/* Multiplies some rows of a and c, or some columns of b and c. */
static ww_status multiply_some(ww_device *base, const matmul_job *job, bool rows, int64_t first, int64_t count)
{
    matmul_job some = *job;
    const int64_t c_first = rows ? first * job->c_row : first;
    some.m = rows ? count : job->m;
    some.n = rows ? job->n : count;
    some.a = rows ? moved(job->a, first * job->a_row, job->type) : job->a;
    some.b = rows ? job->b : moved(job->b, first * job->b_column, job->type);
    some.c = (char *)job->c + c_first * (job->type == TYPE_I8 ? (int64_t)sizeof(int32_t) : type_size(job->type));
    some.c_elements -= c_first;
    return gpu_matmul(base, &some);
}

/* Computes some rows of outputs of one image at a time; several images at once fit. */
static ww_status convolve_rows(ww_device *base, const matmul_job *job, int64_t columns_max)
{
    const matmul_window *w = job->window;
    const int64_t at_once = max_i64(columns_max / w->outs_x, 1);
    ww_status status = WW_OK;
    if (job->n <= columns_max || job->n > w->outs_y * w->outs_x)
        return gpu_matmul(base, job);
    for (int64_t done = 0; done < w->outs_y && status == WW_OK; done += at_once) {
        matmul_window window = *w;
        matmul_job some = *job;
        window.first_y += done * w->step_y;
        window.outs_y = min_i64(at_once, w->outs_y - done);
        some.window = &window;
        some.n = window.outs_y * w->outs_x;
        some.c = moved(job->c, done * w->out_y_stride, job->type);
        some.c_elements -= done * w->out_y_stride;
        status = gpu_matmul(base, &some);
    }
    return status;
}

/* Convolves some images at a time; an image that is too large is divided by rows. */
static ww_status convolve(ww_device *base, const matmul_job *job, int64_t columns_max)
{
    const int64_t outs = job->window->outs_y * job->window->outs_x, images = job->n / outs;
    ww_status status = WW_OK;
    if (job->n <= columns_max)
        return gpu_matmul(base, job);
    if (images > 1) {
        const int64_t at_once = max_i64(columns_max / outs, 1);
        for (int64_t done = 0; done < images && status == WW_OK; done += at_once) {
            matmul_job some = *job;
            some.b = moved(job->b, done * job->window->image_stride, job->type);
            some.c = moved(job->c, done * job->window->out_image_stride, job->type);
            some.c_elements -= done * job->window->out_image_stride;
            some.n = min_i64(at_once, images - done) * outs;
            status = convolve_rows(base, &some, columns_max);
        }
        return status;
    }
    return convolve_rows(base, job, columns_max);
}

ww_status pieces_matmul(ww_device *base, const matmul_job *job)
{
    const int64_t down = (job->m + TILE_SIDE - 1) / TILE_SIDE, across = (job->n + TILE_SIDE - 1) / TILE_SIDE;
    const int64_t blocks = blocks_max(base);
    if (down <= blocks / across)
        return gpu_matmul(base, job);
    if (job->window != NULL)
        return convolve(base, job, max_i64(blocks / down, 1) * TILE_SIDE);
    const bool rows = down > across;
    const int64_t extent = rows ? job->m : job->n;
    const int64_t at_once = max_i64(blocks / (rows ? across : down), 1) * TILE_SIDE;
    ww_status status = WW_OK;
    for (int64_t done = 0; done < extent && status == WW_OK; done += at_once)
        status = multiply_some(base, job, rows, done, min_i64(at_once, extent - done));
    return status;
}
