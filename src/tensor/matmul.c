/* Matrix products: checks and simplifies the operands. */
#include <string.h>

#include "base/float_guard.h"
#include "tensor/products.h"

#include "base/integers.h"

ww_status check_product_types(const char *operation, named_tensor a, named_tensor b, uint32_t integers)
{
    ww_status status = check_tensor(operation, a.name, a.tensor);
    if (status == WW_OK)
        status = check_tensor(operation, b.name, b.tensor);
    if (status == WW_OK)
        status = check_same_type(operation, a.tensor, b.tensor);
    if (status == WW_OK)
        status = check_same_device(operation, a.tensor, b.tensor);
    if (status != WW_OK)
        return status;
    const ww_dtype dtype = a.tensor->storage->dtype;
    const bool is_float = dtype == WW_F32 || dtype == WW_F64 || dtype == WW_F16 || dtype == WW_BF16;
    const bool is_integer = dtype == WW_I8 || dtype == WW_U8 || dtype == WW_U32;
    const bool has = is_float || (is_integer && (integers >> (uint32_t)dtype & 1) != 0);
    return has ? WW_OK : refuse_type(operation, dtype);
}

/* Returns the stride of a tensor along dimension d of `rank`, with dimensions counted from the right; 0 if it is repeated. */
static int64_t batch_stride(const ww_layout *layout, int32_t rank, int32_t d)
{
    const int32_t own = d - (rank - layout->rank);
    return own < 0 || layout->shape[own] == 1 ? 0 : layout->strides[own];
}

static int64_t batch_size(const ww_layout *layout, int32_t rank, int32_t d)
{
    const int32_t own = d - (rank - layout->rank);
    return own < 0 ? 1 : layout->shape[own];
}

/* Computes the dense shape of the product, or fails with the reason why there is none. */
static ww_status product_shape(const ww_layout *a, const ww_layout *b, ww_layout *out)
{
    const int32_t rank = max_i32(a->rank, b->rank);
    int64_t shape[WW_RANK_MAX];
    bool fits = a->rank >= 2 && b->rank >= 2;
    for (int32_t d = 0; d < rank - 2 && fits; d++) {
        const int64_t x = batch_size(a, rank, d), y = batch_size(b, rank, d);
        fits = x == y || x == 1 || y == 1;
        shape[d] = x == 1 ? y : x;
    }
    if (!fits || a->shape[a->rank - 1] != b->shape[b->rank - 2])
        return ww_fail(WW_DIMENSION_MISMATCH,
                       "matmul: the shapes are %s and %s; they must be [..., m, k] and [..., k, n], with leading dimensions "
                       "that are equal or 1",
                       SHAPE_TEXT(a), SHAPE_TEXT(b));
    shape[rank - 2] = a->shape[a->rank - 2];
    shape[rank - 1] = b->shape[b->rank - 1];
    *out = ww_layout_contiguous(rank, shape);
    if (ww_layout_elements(out) < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "matmul: the shapes %s and %s give a result that is too large", SHAPE_TEXT(a),
                       SHAPE_TEXT(b));
    return WW_OK;
}

/* Merges contiguous dimensions of the batch. If all matrices of a batch use the same b, the batch of a becomes one taller
 * matrix. */
static void set_batch(matmul_job *job, const ww_layout *a, const ww_layout *b, const ww_layout *out)
{
    for (int32_t d = 0; d < out->rank - 2; d++) {
        const int64_t size = out->shape[d],
                      along[3] = {batch_stride(a, out->rank, d), batch_stride(b, out->rank, d), out->strides[d]};
        if (size == 1)
            continue;
        const int32_t last = job->batch_rank - 1;
        if (last >= 0 && job->a_batch[last] == along[0] * size && job->b_batch[last] == along[1] * size &&
            job->c_batch[last] == along[2] * size)
            job->batch[last] *= size;
        else
            job->batch[job->batch_rank++] = size;
        job->a_batch[job->batch_rank - 1] = along[0];
        job->b_batch[job->batch_rank - 1] = along[1];
        job->c_batch[job->batch_rank - 1] = along[2];
    }
    if (job->batch_rank == 1 && job->b_batch[0] == 0 && job->a_batch[0] == job->m * job->a_row) {
        job->m *= job->batch[0];
        job->batch_rank = 0;
    }
}

ww_status run_product(ww_device *device, const matmul_job *job)
{
    if (job->m == 0 || job->n == 0 || matmul_batch_count(job) == 0)
        return WW_OK;
    return tensors_of(device)->matmul(device, job);
}

ww_status ww_tensor_matmul(const ww_tensor *a, const ww_tensor *b, ww_math math, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_layout made;
    ww_status status = check_out("matmul", out);
    if (status == WW_OK)
        status = check_product_types("matmul", (named_tensor){"a", a}, (named_tensor){"b", b}, 1u << WW_I8);
    if (status == WW_OK)
        status = check_math("matmul", math);
    if (status == WW_OK)
        status = product_shape(&a->layout, &b->layout, &made);
    if (status != WW_OK)
        return status;
    const ww_dtype dtype = a->storage->dtype;
    ww_device *device = a->storage->device;
    result r = {.operation = "matmul", .out = out, .inputs = {a, b}};
    status = result_begin(&r, device, dtype == WW_I8 ? WW_I32 : dtype, made.rank, made.shape);
    if (status != WW_OK)
        return status;
    const int32_t ra = a->layout.rank, rb = b->layout.rank;
    matmul_job job = {.type = (int32_t)dtype,
                      .fast = math == WW_MATH_FAST,
                      .m = a->layout.shape[ra - 2],
                      .n = b->layout.shape[rb - 1],
                      .k = a->layout.shape[ra - 1],
                      .a = operand_of(a).data,
                      .b = operand_of(b).data,
                      .c = operand_of(&r.at).data,
                      .a_row = a->layout.strides[ra - 2],
                      .a_column = a->layout.strides[ra - 1],
                      .b_row = b->layout.strides[rb - 2],
                      .b_column = b->layout.strides[rb - 1],
                      .c_row = b->layout.shape[rb - 1],
                      .c_elements = count_of(&made)};
    set_batch(&job, &a->layout, &b->layout, &made);
    if (job.k > 0)
        status = run_product(device, &job);
    else
        status = result_zero(&r);
    return result_end(&r, status);
}

/* ---- shared with convolutions -------------------------------------------------------------------------------------------- */

ww_status check_math(const char *operation, ww_math math)
{
    if (math == WW_MATH_CANONICAL || math == WW_MATH_FAST)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "%s: %d is not a ww_math", operation, (int)math);
}
