/* A product with its neighbours as one job of a device. Inline, for the library of models has no other way to it than the
 * device's own table.
 */
#ifndef WW_QUANT_FUSED_H
#define WW_QUANT_FUSED_H

#include "quant/matrix.h"
#include "tensor/tensor.h"

/* A queued product of f32 rows, and what belongs to it, on one device: checked by the caller. `x` and `up` may be columns of
 * longer rows, alike; `out` is dense. */
typedef struct quant_fused_product {
    const ww_quant *matrix;
    const ww_tensor *x;
    const ww_tensor *norm_weight; /* or NULL; x behind an rms norm is multiplied, */
    double eps;
    const ww_tensor *up; /* or NULL; silu(x) * up is */
    bool adds;           /* results are added to what is in out */
} quant_fused_product;

static inline float *first_float(const ww_tensor *x)
{
    return x ? (float *)x->storage->data.data + x->layout.offset : NULL;
}

/* Does it all in one, with the bits of calls one after the other; `*done` is false where the device does not. */
static inline ww_status quant_multiply_fused(const quant_fused_product *p, const ww_tensor *out, bool *done)
{
    const ww_quant *matrix = p->matrix;
    ww_device *device = matrix->memory->device;
    const quant_backend *table = device->backend->quants;
    const buffer results = {.data = first_float(out), .bytes = (size_t)(p->x->layout.shape[0] * matrix->rows) * sizeof(float)};
    const quant_product_job job = {.type = (int32_t)matrix->type,
                                   .weights = &matrix->memory->blocks,
                                   .weights_offset = matrix->offset,
                                   .rows = matrix->rows,
                                   .cols = matrix->cols,
                                   .x = &p->x->storage->data,
                                   .x_offset = (size_t)p->x->layout.offset * sizeof(float),
                                   .x_type = WW_QUANT_F32,
                                   .columns = p->x->layout.shape[0],
                                   .y = &results,
                                   .fusion = {.input = p->norm_weight ? INPUT_NORM
                                                       : p->up        ? INPUT_GATED
                                                                      : INPUT_PLAIN,
                                              .weight = first_float(p->norm_weight),
                                              .eps = p->eps,
                                              .up = first_float(p->up),
                                              .x_stride = p->x->layout.strides[0],
                                              .adds = p->adds}};
    *done = table->fuses && table->fuses(device, &job);
    return *done ? table->product(device, &job) : WW_OK;
}

#endif
