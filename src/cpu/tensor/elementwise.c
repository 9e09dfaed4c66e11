/* Element-wise operations on the CPU. Which way when:
 *
 *   transposed copy  a copy whose source is dense along another dimension than its result goes in tiles (transpose.c)
 *   unary_direct     a unary operation on dense floats, if the set has a loop with results of the same type (AVX-512)
 *   in place         dense operands of types that are kinds (f32, f64, i64): the loops read and write them where they are
 *   in blocks        all others: 1024 elements of each operand are gathered and widened to their kind; the results are narrowed
 *                    and scattered
 */
#include "base/integers.h"
#include "cpu/tensor/strided_iterator.h"
#include "cpu/tensor/tensor.h"

#include <string.h>

enum {
    RANGE_ELEMENTS = 64 * LOOP_BLOCK, /* elements per range of a thread: 256 KiB of f32, about 20 us of memory time */
};

typedef struct elementwise_work {
    const elementwise_job *job;
    const element_loops *loops;
} elementwise_work;

static bool is_dense(const elementwise_job *job, const tensor_operand *operand)
{
    int64_t stride = 1;
    for (int32_t d = job->rank - 1; d >= 0; d--) {
        if (operand->strides[d] != stride)
            return false;
        stride *= job->shape[d];
    }
    return true;
}

/* ---- gathering and scattering bits --------------------------------------------------------------------------------------- */

/* Gathers elements [first, first + count) of an operand to `to`, dense. */
static void gather_bits(const elementwise_job *job, const tensor_operand *operand, int64_t first, int64_t count, void *to)
{
    const int32_t bytes = type_size(operand->type);
    if (job->rank == 0) {
        memcpy(to, operand->data, (size_t)bytes);
        return;
    }
    iterator it = iterator_at(job, first);
    for (int64_t done = 0, span; done < count; done += span) {
        span = iterator_span(job, &it, count - done);
        copy_strided(bytes, (strided_to){(char *)to + done * bytes, 1},
                     (strided_from){(const char *)operand->data + iterator_offset(job, operand, &it) * bytes,
                                    operand->strides[job->rank - 1]},
                     span);
        iterator_advance(job, &it, span);
    }
}

/* The reverse: scatters `count` dense elements to their places. */
static void scatter_bits(const elementwise_job *job, const tensor_operand *operand, int64_t first, int64_t count,
                         const void *from)
{
    const int32_t bytes = type_size(operand->type);
    if (job->rank == 0) {
        memcpy(operand->data, from, (size_t)bytes);
        return;
    }
    iterator it = iterator_at(job, first);
    for (int64_t done = 0, span; done < count; done += span) {
        span = iterator_span(job, &it, count - done);
        copy_strided(
            bytes,
            (strided_to){(char *)operand->data + iterator_offset(job, operand, &it) * bytes, operand->strides[job->rank - 1]},
            (strided_from){(const char *)from + done * bytes, 1}, span);
        iterator_advance(job, &it, span);
    }
}

/* ---- operands in blocks -------------------------------------------------------------------------------------------------- */

/* Memory for a block of one operand, in its type and in its kind. */
typedef struct block {
    uint8_t bits[LOOP_BLOCK * 8] __attribute__((aligned(64)));
    uint8_t widened[LOOP_BLOCK * 8] __attribute__((aligned(64)));
} block;

/* Returns elements [first, first + count) of an operand, dense: in place, or gathered. */
static const void *operand_bits(const elementwise_job *job, const tensor_operand *operand, int64_t first, int64_t count,
                                block *space)
{
    if (is_dense(job, operand))
        return (const char *)operand->data + first * type_size(operand->type);
    gather_bits(job, operand, first, count, space->bits);
    return space->bits;
}

/* Returns the same, widened to their kind. */
static const void *operand_widened(const elementwise_work *w, const tensor_operand *operand, int64_t first, int64_t count,
                                   block *space)
{
    const void *bits = operand_bits(w->job, operand, first, count, space);
    const int32_t type = operand->type;
    if (type == TYPE_F32 || type == TYPE_F64 || type == TYPE_I64)
        return bits;
    if (type_kind(type) == KIND_F32)
        w->loops->widen_f32(type, (float *)space->widened, bits, count);
    else
        w->loops->widen_i64(type, (int64_t *)space->widened, bits, count);
    return space->widened;
}

/* Returns where results are computed. Only a dense result whose type is its kind is computed in place; result_put() writes the
 * others. */
static void *result_space(const elementwise_job *job, int64_t first, block *space)
{
    const int32_t type = job->out.type;
    const bool own = type == TYPE_F32 || type == TYPE_F64 || type == TYPE_I64;
    return own && is_dense(job, &job->out) ? (char *)job->out.data + first * type_size(type) : (char *)space->widened;
}

/* `widened` has the kind of the first operand. */
static void result_put(const elementwise_work *w, const void *widened, int64_t first, int64_t count, block *space)
{
    const elementwise_job *job = w->job;
    const int32_t kind = type_kind(job->in[0].type);
    const bool dense = is_dense(job, &job->out);
    char *to = (char *)job->out.data + first * type_size(job->out.type);
    if (dense && widened == to)
        return;
    void *narrow = dense ? (void *)to : (void *)space->bits;
    if (kind == KIND_F32)
        w->loops->narrow_f32(job->out.type, narrow, widened, count);
    else if (kind == KIND_F64)
        w->loops->narrow_f64(job->out.type, narrow, widened, count);
    else
        w->loops->narrow_i64(job->out.type, narrow, widened, count);
    if (!dense)
        scatter_bits(job, &job->out, first, count, narrow);
}

/* ---- families ------------------------------------------------------------------------------------------------------------ */

/* Where a dense result is. */
static void *result_bits(const elementwise_job *job, int64_t first)
{
    return (char *)job->out.data + first * type_size(job->out.type);
}

static void unary_block(const elementwise_work *w, int64_t first, int64_t count, block *spaces)
{
    const elementwise_job *job = w->job;
    const int32_t kind = type_kind(job->in[0].type);
    if (w->loops->unary_direct && is_dense(job, &job->out) &&
        w->loops->unary_direct(job->op, job->in[0].type, result_bits(job, first),
                               operand_bits(job, &job->in[0], first, count, &spaces[0]), count))
        return;
    const void *x = operand_widened(w, &job->in[0], first, count, &spaces[0]);
    void *to = result_space(job, first, &spaces[3]);
    if (kind == KIND_F32)
        w->loops->unary_f32(job->op, to, x, count, (float)job->a, (float)job->b);
    else if (kind == KIND_F64)
        w->loops->unary_f64(job->op, to, x, count, job->a, job->b);
    else
        w->loops->unary_i64(job->op, to, x, count, job->ia, job->ib);
    result_put(w, to, first, count, &spaces[3]);
}

static void binary_block(const elementwise_work *w, int64_t first, int64_t count, block *spaces)
{
    const elementwise_job *job = w->job;
    const int32_t kind = type_kind(job->in[0].type);
    const void *x = operand_widened(w, &job->in[0], first, count, &spaces[0]);
    const void *y = operand_widened(w, &job->in[1], first, count, &spaces[1]);
    void *to = result_space(job, first, &spaces[3]);
    if (kind == KIND_F32)
        w->loops->binary_f32(job->op, to, x, y, count);
    else if (kind == KIND_F64)
        w->loops->binary_f64(job->op, to, x, y, count);
    else
        w->loops->binary_i64(job->op, to, x, y, count);
    result_put(w, to, first, count, &spaces[3]);
}

static void cmp_block(const elementwise_work *w, int64_t first, int64_t count, block *spaces)
{
    const elementwise_job *job = w->job;
    const int32_t kind = type_kind(job->in[0].type);
    const void *x = operand_widened(w, &job->in[0], first, count, &spaces[0]);
    const void *y = operand_widened(w, &job->in[1], first, count, &spaces[1]);
    uint8_t *to = is_dense(job, &job->out) ? result_bits(job, first) : spaces[3].bits;
    if (kind == KIND_F32)
        w->loops->cmp_f32(job->op, to, x, y, count);
    else if (kind == KIND_F64)
        w->loops->cmp_f64(job->op, to, x, y, count);
    else
        w->loops->cmp_i64(job->op, to, x, y, count);
    if (to == spaces[3].bits)
        scatter_bits(job, &job->out, first, count, to);
}

static void where_block(const elementwise_work *w, int64_t first, int64_t count, block *spaces)
{
    const elementwise_job *job = w->job;
    const int64_t *condition = operand_widened(w, &job->in[0], first, count, &spaces[0]);
    const void *yes = operand_bits(job, &job->in[1], first, count, &spaces[1]);
    const void *no = operand_bits(job, &job->in[2], first, count, &spaces[2]);
    void *to = is_dense(job, &job->out) ? result_bits(job, first) : spaces[3].bits;
    switch (type_size(job->out.type)) {
    case 1:
        w->loops->where_8(to, condition, yes, no, count);
        break;
    case 2:
        w->loops->where_16(to, condition, yes, no, count);
        break;
    case 4:
        w->loops->where_32(to, condition, yes, no, count);
        break;
    default:
        w->loops->where_64(to, condition, yes, no, count);
        break;
    }
    if (to == spaces[3].bits)
        scatter_bits(job, &job->out, first, count, to);
}

static void cast_block(const elementwise_work *w, int64_t first, int64_t count, block *spaces)
{
    const elementwise_job *job = w->job;
    const void *x = operand_widened(w, &job->in[0], first, count, &spaces[0]);
    result_put(w, x, first, count, &spaces[3]);
}

static void copy_block(const elementwise_work *w, int64_t first, int64_t count, block *spaces)
{
    const elementwise_job *job = w->job;
    if (is_dense(job, &job->out)) {
        const void *x = operand_bits(job, &job->in[0], first, count, &spaces[0]);
        memcpy(result_bits(job, first), x, (size_t)(count * type_size(job->out.type)));
    } else {
        scatter_bits(job, &job->out, first, count, operand_bits(job, &job->in[0], first, count, &spaces[0]));
    }
}

static void set_block(const elementwise_work *w, int64_t first, int64_t count, block *spaces)
{
    const elementwise_job *job = w->job;
    copy_strided(type_size(job->out.type), (strided_to){spaces[0].bits, 1}, (strided_from){&job->ia, 0}, count);
    scatter_bits(job, &job->out, first, count, spaces[0].bits);
}

typedef void (*family_block)(const elementwise_work *w, int64_t first, int64_t count, block *spaces);

static const family_block families[] = {
    [ELEMENTWISE_UNARY] = unary_block, [ELEMENTWISE_BINARY] = binary_block, [ELEMENTWISE_CMP] = cmp_block,
    [ELEMENTWISE_WHERE] = where_block, [ELEMENTWISE_CAST] = cast_block,     [ELEMENTWISE_COPY] = copy_block,
    [ELEMENTWISE_SET] = set_block,
};

static void elementwise_range(void *context, int64_t begin, int64_t end)
{
    const elementwise_work *w = context;
    const family_block block_work = families[w->job->family];
    block spaces[4];
    for (int64_t first = begin; first < end; first += LOOP_BLOCK)
        block_work(w, first, min_i64(end - first, LOOP_BLOCK), spaces);
}

ww_status cpu_elementwise(ww_device *device, const elementwise_job *job)
{
    elementwise_work work = {.job = job, .loops = cpu_loops(device)};
    if (job->family == ELEMENTWISE_COPY && cpu_transpose(device, job))
        return WW_OK;
    cpu_run_ranges(device, job->count, RANGE_ELEMENTS, elementwise_range, &work);
    return WW_OK;
}
