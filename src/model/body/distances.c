/* Attention with learned numbers for distances, as MPNet has it:
 *
 *     attended = softmax(q k^T scale + distances) v
 *
 * The attention kernels take no such numbers, so these are products of tensors, of all heads of one text. A text's bits do not
 * depend on the others of its pass.
 */
#include <warpwave/tensor_rows.h>

#include "model/body/body.h"

/* The rows of a text as [heads, rows, size], or turned as [heads, size, rows]. */
static ww_tensor heads_of(const pass *p, const ww_tensor *x, int64_t first, int64_t rows, bool turned)
{
    const model_sizes *s = &p->model->sizes;
    const int64_t stride = x->layout.strides[0], size = s->head_size;
    return (ww_tensor){.storage = x->storage,
                       .layout = {.rank = 3,
                                  .shape = {s->heads, turned ? size : rows, turned ? rows : size},
                                  .strides = {size, turned ? 1 : stride, turned ? stride : 1},
                                  .offset = x->layout.offset + first * stride}};
}

static ww_status attend(const pass *p, const attention_of_layer *a, int64_t first, int64_t rows)
{
    const ww_tensor *all = &p->model->weights.distances;
    const ww_tensor q = heads_of(p, &a->q, first, rows, false), k = heads_of(p, &a->k, first, rows, true);
    const ww_tensor v = heads_of(p, &a->v, first, rows, false);
    ww_tensor distances = *all, scores = {0}, attended = heads_of(p, &a->attended, first, rows, false);
    distances.layout.shape[1] = distances.layout.shape[2] = rows;
    ww_status status = ww_tensor_matmul(&q, &k, WW_MATH_CANONICAL, &scores);
    if (status == WW_OK)
        status = ww_tensor_affine(&scores, p->model->sizes.attention_scale, 0.0, &scores);
    if (status == WW_OK)
        status = ww_tensor_binary(WW_ADD, &scores, &distances, &scores);
    if (status == WW_OK)
        status = ww_tensor_softmax(&scores, 2, &scores);
    if (status == WW_OK)
        status = ww_tensor_matmul(&scores, &v, WW_MATH_CANONICAL, &attended);
    ww_tensor_release(&scores);
    return status;
}

ww_status body_attention_by_distance(const pass *p, const attention_of_layer *a)
{
    const int32_t *lengths = p->model->work.lengths.host;
    ww_status status = WW_OK;
    for (int64_t i = 0, first = 0; i < p->sequences && status == WW_OK; first += lengths[i], i++)
        status = attend(p, a, first, lengths[i]);
    return status;
}
