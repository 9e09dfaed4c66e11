/* A mixture of experts instead of the feed-forward network.
 *
 *     the router gives each expert a logit; the largest of them, equal ones in their order, are used
 *     y = sum over these of softmax(their logits) * down_e(act(gate_e(x)) * up_e(x))
 *
 * A row is a token with one of its experts, in the order of the logits, and rows are summed in that order. So the rest of the
 * batch and its experts do not change a bit. Only the device knows which expert a row has.
 */
#include <warpwave/tensor_rows.h>

#include "model/body/body.h"

/* A tensor of tokens x used rows, of `cols` elements each. */
static ww_tensor expert_rows(const pass *p, const ww_tensor *x, int64_t cols)
{
    return rows_of(x, p->tokens * p->model->sizes.experts_used, cols);
}

/* The same as [tokens, used, cols]. */
static ww_tensor expert_cube(const pass *p, const ww_tensor *x, int64_t cols)
{
    const int64_t shape[3] = {p->tokens, p->model->sizes.experts_used, cols};
    return (ww_tensor){.storage = x->storage, .layout = ww_layout_contiguous(3, shape)};
}

static ww_tensor chosen_ids(const pass *p)
{
    const int64_t count = p->tokens * p->model->sizes.experts_used;
    return (ww_tensor){.storage = p->model->work.pass.chosen_ids.storage, .layout = ww_layout_contiguous(1, &count)};
}

/* Chooses the experts and computes their shares. */
static ww_status route(const pass *p, const layer_weights *l, const ww_tensor *x)
{
    const ww_model *model = p->model;
    const pass_tensors *t = &model->work.pass;
    const int64_t used = model->sizes.experts_used;
    ww_tensor logits = rows_of(&t->routed, p->tokens, model->sizes.experts), chosen = rows_of(&t->chosen, p->tokens, used);
    ww_tensor shares = rows_of(&t->shares, p->tokens, used), ids = rows_of(&t->chosen_ids, p->tokens, used);
    ww_status status = body_linear(model, &(linear_step){.linear = &l->router, .x = x, .out = &logits});
    if (status == WW_OK)
        status = ww_tensor_top_k(&logits, used, true, &chosen, &ids);
    return status == WW_OK ? ww_tensor_softmax(&chosen, 1, &shares) : status;
}

/* Multiplies each row with its expert's matrix, and adds the bias. */
static ww_status multiply(const pass *p, const expert_linear *l, const ww_tensor *x, ww_tensor *out)
{
    const int64_t rows = out->layout.shape[1];
    const ww_tensor ids = chosen_ids(p);
    ww_quant_product how = ww_quant_product_default();
    how.queued = 1;
    how.activations = p->model->activations;
    how.expert_rows = rows;
    how.expert_ids = &ids;
    ww_status status = ww_quant_multiply(l->matrices, x, &how, out);
    if (status != WW_OK || !l->biases)
        return status;
    ww_tensor biases = expert_rows(p, &p->model->work.pass.beside, rows);
    status = body_rows(l->biases, &ids, &biases);
    return status == WW_OK ? body_add(out, &biases) : status;
}

/* gate = min(gate, 7) sigmoid(1.702 min(gate, 7)) (up + 1), up between -7 and 7 first. */
static ww_status gate_clamped(const pass *p, ww_tensor *gate, ww_tensor *up)
{
    const weights *w = &p->model->weights;
    ww_tensor sigmoid = expert_rows(p, &p->model->work.pass.beside, gate->layout.shape[1]);
    ww_status status = ww_tensor_binary(WW_MINIMUM, gate, &w->limits[0], gate);
    if (status == WW_OK)
        status = ww_tensor_binary(WW_MINIMUM, up, &w->limits[0], up);
    if (status == WW_OK)
        status = ww_tensor_binary(WW_MAXIMUM, up, &w->limits[1], up);
    if (status == WW_OK)
        status = ww_tensor_affine(gate, 1.702, 0.0, &sigmoid);
    if (status == WW_OK)
        status = ww_tensor_unary(WW_SIGMOID, &sigmoid, &sigmoid);
    if (status == WW_OK)
        status = ww_tensor_binary(WW_MUL, gate, &sigmoid, gate);
    if (status == WW_OK)
        status = ww_tensor_affine(up, 1.0, 1.0, up);
    return status == WW_OK ? ww_tensor_binary(WW_MUL, gate, up, gate) : status;
}

static ww_status gate_plain(const pass *p, ww_tensor *gate, const ww_tensor *up)
{
    const ww_status status = ww_tensor_unary(p->model->architecture->activation, gate, gate);
    return status == WW_OK ? ww_tensor_binary(WW_MUL, gate, up, gate) : status;
}

/* Sums the weighted rows of each token. */
static ww_status add_experts(const pass *p, ww_tensor *y)
{
    const pass_tensors *t = &p->model->work.pass;
    const int32_t dimension = 1;
    ww_tensor rows = expert_cube(p, &t->spread, p->model->sizes.width);
    const ww_tensor shares = expert_cube(p, &t->shares, 1);
    const ww_status status = ww_tensor_binary(WW_MUL, &rows, &shares, &rows);
    return status == WW_OK ? ww_tensor_reduce(WW_REDUCE_SUM, &rows, &dimension, 1, y) : status;
}

ww_status body_experts(const pass *p, const feed_forward *f)
{
    const ww_model *model = p->model;
    const model_sizes *s = &model->sizes;
    const pass_tensors *t = &model->work.pass;
    const layer_weights *l = f->layer;
    ww_tensor normed = rows_of(&t->normed, p->tokens, s->width), spread = expert_rows(p, &t->spread, s->width);
    ww_tensor gate = expert_rows(p, &t->gate, s->expert_hidden), up = expert_rows(p, &t->up, s->expert_hidden);
    ww_tensor repeated = expert_cube(p, &normed, s->width);
    const ww_tensor places = expert_cube(p, &t->spread, s->width);
    repeated.layout.strides[0] = s->width;
    repeated.layout.strides[1] = 0;
    ww_status status = ww_tensor_rms_norm(f->x, &f->norm->weight, s->eps, &normed);
    if (status == WW_OK)
        status = route(p, l, &normed);
    if (status == WW_OK)
        status = ww_tensor_copy_strided(&repeated, &places);
    if (status == WW_OK)
        status = multiply(p, &l->gates, &spread, &gate);
    if (status == WW_OK)
        status = multiply(p, &l->ups, &spread, &up);
    if (status == WW_OK)
        status = model->architecture->clamped ? gate_clamped(p, &gate, &up) : gate_plain(p, &gate, &up);
    if (status == WW_OK)
        status = multiply(p, &l->downs, &gate, &spread);
    return status == WW_OK ? add_experts(p, f->y) : status;
}
