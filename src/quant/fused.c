/* Products together with neighbouring operations of a model: a norm or a gate before them, an addition after them. If the
 * device can, it does all of them at once, otherwise separate calls do, with the same bits.
 */
#include <warpwave/tensor_rows.h>

#include "quant/matrix.h"
#include "tensor/tensor.h"

/* ---- as options of ww_quant_multiply() ----------------------------------------------------------------------------------- */

static const char call[] = "ww_quant_multiply";

static ww_status check_norm(const ww_quant *matrix, const ww_tensor *x, const ww_tensor *weight)
{
    ww_status status = check_tensor(call, "norm_weight", weight);
    if (status == WW_OK)
        status = check_same_device(call, x, weight);
    if (status == WW_OK)
        status = check_same_type(call, x, weight);
    if (status == WW_OK && (weight->layout.rank != 1 || weight->layout.shape[0] != matrix->cols))
        status = ww_fail(WW_DIMENSION_MISMATCH, "%s: norm_weight has shape %s; it must be [%lld], the matrix's columns", call,
                         SHAPE_TEXT(&weight->layout), (long long)matrix->cols);
    return status;
}

static ww_status check_up(const ww_tensor *x, const ww_tensor *up)
{
    ww_status status = check_tensor(call, "up", up);
    if (status == WW_OK)
        status = check_same_device(call, x, up);
    if (status == WW_OK)
        status = check_same_type(call, x, up);
    return status == WW_OK ? check_same_shape(call, x, up) : status;
}

/* Checks that `sum` has the result's shape, or is NULL. */
static ww_status check_sum(const ww_quant *matrix, const ww_tensor *x, const ww_tensor *out)
{
    if (!out->storage)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: out is empty; with accumulate it must hold what results are added to", call);
    ww_status status = check_tensor(call, "out", out);
    if (status == WW_OK)
        status = check_same_device(call, x, out);
    if (status == WW_OK)
        status = check_same_type(call, x, out);
    if (status != WW_OK)
        return status;
    ww_layout wanted = x->layout;
    bool same = out->layout.rank == wanted.rank;
    wanted.shape[wanted.rank - 1] = matrix->rows;
    for (int32_t d = 0; same && d < wanted.rank; d++)
        same = out->layout.shape[d] == wanted.shape[d];
    return same ? check_writable(call, "out", out)
                : ww_fail(WW_DIMENSION_MISMATCH, "%s: out has shape %s; with accumulate it must be %s", call,
                          SHAPE_TEXT(&out->layout), SHAPE_TEXT(&wanted));
}

static ww_status check_beside(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *asked, const ww_tensor *out)
{
    if (!matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: matrix is NULL", call);
    if (asked->experts || asked->expert_ids)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: norm_weight, up and accumulate are not for experts", call);
    if (asked->norm_weight && asked->up)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: both norm_weight and up are given; one of them must be NULL", call);
    ww_status status = check_out(call, out);
    if (status == WW_OK)
        status = check_tensor(call, "x", x);
    if (status != WW_OK)
        return status;
    const int32_t rank = x->layout.rank;
    if (x->storage->dtype != WW_F32)
        return ww_fail(WW_UNSUPPORTED, "%s: x is %s; with norm_weight, up or accumulate it must be f32", call,
                       ww_dtype_name(x->storage->dtype));
    if (rank < 1 || x->layout.shape[rank - 1] != matrix->cols)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: x has shape %s; its last dimension must be the matrix's %lld columns", call,
                       SHAPE_TEXT(&x->layout), (long long)matrix->cols);
    if (asked->norm_weight)
        status = check_norm(matrix, x, asked->norm_weight);
    if (status == WW_OK && asked->up)
        status = check_up(x, asked->up);
    return status == WW_OK && asked->accumulate ? check_sum(matrix, x, out) : status;
}

/* Returns true if the elements of each row are adjacent, as devices need them. */
static bool has_rows(const ww_tensor *x)
{
    return x->layout.rank == 2 && x->layout.strides[1] == 1 && x->layout.shape[0] > 0 &&
           x->layout.strides[0] >= x->layout.shape[1];
}

static bool can_be_fused(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *asked, const ww_tensor *out)
{
    const ww_tensor *up = asked->up;
    if (!asked->queued || asked->activations != WW_ACTIVATIONS_CODED || asked->math == WW_MATH_FAST || matrix->rows == 0)
        return false;
    if (x->storage->device != matrix->memory->device || !has_rows(x) || (up && up->layout.strides[0] != x->layout.strides[0]) ||
        (up && !has_rows(up)) || (asked->norm_weight && !layout_is_dense(&asked->norm_weight->layout)))
        return false;
    return !asked->accumulate ||
           (layout_is_dense(&out->layout) && out->storage != x->storage && (!up || out->storage != up->storage) &&
            (!asked->norm_weight || out->storage != asked->norm_weight->storage));
}

static float *first_float(const ww_tensor *x)
{
    return x ? (float *)x->storage->data.data + x->layout.offset : NULL;
}

/* Makes one job of the product and its neighbours; `out` is dense. */
static quant_product_job fused_job(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *asked, const buffer *y)
{
    return (quant_product_job){.type = (int32_t)matrix->type,
                               .weights = &matrix->memory->blocks,
                               .weights_offset = matrix->offset,
                               .rows = matrix->rows,
                               .cols = matrix->cols,
                               .x = &x->storage->data,
                               .x_offset = (size_t)x->layout.offset * sizeof(float),
                               .x_type = WW_QUANT_F32,
                               .columns = x->layout.shape[0],
                               .y = y,
                               .fusion = {.input = asked->norm_weight ? INPUT_NORM
                                                   : asked->up        ? INPUT_GATED
                                                                      : INPUT_PLAIN,
                                          .weight = first_float(asked->norm_weight),
                                          .eps = asked->norm_eps,
                                          .up = first_float(asked->up),
                                          .x_stride = x->layout.strides[0],
                                          .adds = asked->accumulate != 0}};
}

/* Sets `*done` to false if the device cannot do all of it at once. */
static ww_status try_fused(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *asked, ww_tensor *out,
                           bool *done)
{
    ww_device *device = matrix->memory->device;
    const quant_backend *table = device->backend->quants;
    const int64_t shape[2] = {x->layout.shape[0], matrix->rows};
    buffer y = {.bytes = (size_t)(shape[0] * shape[1]) * sizeof(float)};
    const quant_product_job job = fused_job(matrix, x, asked, &y);
    result r = {.operation = call, .out = out, .inputs = {x, asked->up ? asked->up : asked->norm_weight}};
    *done = table->fuses && table->fuses(device, &job);
    if (!*done)
        return WW_OK;
    if (asked->accumulate) {
        y.data = first_float(out);
        return table->product(device, &job);
    }
    ww_status status = result_begin(&r, device, WW_F32, 2, shape);
    y.data = status == WW_OK ? first_float(&r.at) : NULL;
    if (status == WW_OK)
        status = table->product(device, &job);
    return result_end(&r, status);
}

ww_status quant_multiply_fused(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *asked, ww_tensor *out)
{
    ww_quant_product plain = *asked;
    ww_tensor made = {0}, product = {0};
    bool done = false;
    ww_status status = check_beside(matrix, x, asked, out);
    if (status == WW_OK && can_be_fused(matrix, x, asked, out))
        status = try_fused(matrix, x, asked, out, &done);
    if (status != WW_OK || done)
        return status;
    plain.norm_weight = plain.up = NULL;
    plain.accumulate = 0;
    if (asked->norm_weight)
        status = ww_tensor_rms_norm(x, asked->norm_weight, asked->norm_eps, &made);
    if (asked->up)
        status = ww_tensor_unary(WW_SILU, x, &made);
    if (status == WW_OK && asked->up)
        status = ww_tensor_binary(WW_MUL, &made, asked->up, &made);
    if (status == WW_OK)
        status = ww_quant_multiply(matrix, made.storage ? &made : x, &plain, asked->accumulate ? &product : out);
    if (status == WW_OK && asked->accumulate)
        status = ww_tensor_binary(WW_ADD, out, &product, out);
    ww_tensor_release(&product);
    ww_tensor_release(&made);
    return status;
}
