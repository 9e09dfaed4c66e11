/* The workspace of a model: it grows when a pass is larger than any before, and never shrinks. */
#include "model/body/workspace.h"

#include <string.h>

#include "arithmetic/math/f64.h"
#include "base/integers.h"
#include "base/memory.h"
#include "model/model.h"
#include "tensor/tensor.h"

enum { UPLOAD_MIN = 64, ROPE_MIN = 512 };

/* ---- tensors between operations ------------------------------------------------------------------------------------------ */

static ww_status make(const ww_model *model, ww_dtype type, int64_t elements, ww_tensor *out)
{
    return elements == 0 ? WW_OK : ww_tensor_empty(model->device, type, 1, &elements, out);
}

static void pass_free(pass_tensors *p)
{
    ww_tensor *const tensors[] = {&p->x,        &p->normed,   &p->q,          &p->k,      &p->v,     &p->q_normed,
                                  &p->k_normed, &p->attended, &p->gate,       &p->up,     &p->y,     &p->routed,
                                  &p->chosen,   &p->shares,   &p->chosen_ids, &p->spread, &p->beside};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        ww_tensor_release(tensors[i]);
}

ww_status workspace_reserve(ww_model *model, int64_t tokens)
{
    workspace *w = &model->work;
    const model_sizes *s = &model->sizes;
    const architecture *a = model->architecture;
    if (tokens <= w->tokens)
        return WW_OK;
    const int64_t queries = (int64_t)s->heads * s->head_size, keys = (int64_t)s->key_heads * s->head_size;
    const int64_t used = s->experts_used, hidden = used ? used * s->expert_hidden : s->hidden;
    pass_tensors p = {0};
    const struct {
        ww_tensor *tensor;
        int64_t width;
    } list[] = {{&p.x, s->width},
                {&p.normed, s->width},
                {&p.q, queries + 2 * keys},
                {&p.k, keys},
                {&p.v, keys},
                {&p.q_normed, a->head_norms || a->whole_norms ? queries : 0},
                {&p.k_normed, a->head_norms || a->whole_norms ? keys : 0},
                {&p.attended, queries},
                {&p.gate, a->gated ? 2 * hidden : 0},
                {&p.up, hidden},
                {&p.y, s->width},
                {&p.routed, s->experts},
                {&p.chosen, used},
                {&p.shares, used},
                {&p.spread, used * s->width},
                {&p.beside, a->experts && a->biases ? max_i64(hidden, used * s->width) : 0}};
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof list / sizeof *list; i++)
        status = make(model, WW_F32, tokens * list[i].width, list[i].tensor);
    if (status == WW_OK)
        status = make(model, WW_U32, tokens * used, &p.chosen_ids);
    if (status == WW_OK && !w->logits.storage && a->kind == WW_MODEL_DECODER)
        status = make(model, WW_F32, LOGIT_ROWS * s->vocabulary, &w->logits);
    if (status != WW_OK) {
        pass_free(&p);
        return status;
    }
    pass_free(&w->pass);
    w->pass = p;
    w->tokens = tokens;
    w->generation++;
    return WW_OK;
}

/* ---- uploads ------------------------------------------------------------------------------------------------------------- */

static void upload_free(upload *u)
{
    ww_tensor_release(&u->tensor);
    memory_free(u->host);
    *u = (upload){0};
}

ww_status upload_write(workspace *w, upload *to, ww_dtype dtype, const void *from, int64_t count)
{
    const size_t bytes = (size_t)count * ww_dtype_bytes(dtype);
    ww_status status = WW_OK;
    if (count > to->capacity) {
        upload made = {.capacity = UPLOAD_MIN};
        while (made.capacity < count)
            made.capacity *= 2;
        made.host = memory_alloc((size_t)made.capacity * ww_dtype_bytes(dtype));
        status = made.host ? ww_tensor_empty(w->device, dtype, 1, &made.capacity, &made.tensor)
                           : memory_failed("batch of a model", (size_t)made.capacity * ww_dtype_bytes(dtype));
        if (status != WW_OK) {
            upload_free(&made);
            return status;
        }
        upload_free(to);
        *to = made;
        w->generation++;
    }
    if (count <= to->used && memcmp(to->host, from, bytes) == 0)
        return WW_OK;
    const ww_tensor list = list_of(to, count);
    to->used = 0;
    status = ww_tensor_write(&list, from);
    if (status == WW_OK) {
        memcpy(to->host, from, bytes);
        to->used = count;
    }
    return status;
}

/* ---- rope ---------------------------------------------------------------------------------------------------------------- */

static void rope_free(rope_table *t)
{
    ww_tensor_release(&t->cosines);
    ww_tensor_release(&t->sines);
    t->positions = 0;
}

/* Angles are products in f64, and cosine and sine are our own functions: the same bits on every machine. */
static ww_status rope_make(const ww_model *model, bool window, int64_t positions, rope_table *out)
{
    const int64_t pairs = model->sizes.rope_size / 2, shape[2] = {positions, pairs};
    const size_t bytes = (size_t)(positions * pairs) * sizeof(float);
    rope_terms terms = {.frequencies = memory_alloc((size_t)pairs * sizeof *terms.frequencies)};
    float *values = memory_alloc(2 * bytes);
    ww_status status = terms.frequencies && values ? WW_OK : memory_failed("tables of rope", 2 * bytes);
    if (status == WW_OK) {
        rope_find(model->architecture, &model->sizes, window, model->weights.rope_factors, &terms);
        float *cosines = values, *sines = values + positions * pairs;
        for (int64_t p = 0; p < positions; p++)
            for (int64_t i = 0; i < pairs; i++) {
                const double angle = (double)p * terms.frequencies[i];
                cosines[p * pairs + i] = (float)(canon_cos_f64(angle) * terms.magnitude);
                sines[p * pairs + i] = (float)(canon_sin_f64(angle) * terms.magnitude);
            }
        status = ww_tensor_from_host(model->device, WW_F32, 2, shape, cosines, &out->cosines);
        if (status == WW_OK)
            status = ww_tensor_from_host(model->device, WW_F32, 2, shape, sines, &out->sines);
    }
    memory_free(values);
    memory_free(terms.frequencies);
    if (status == WW_OK)
        out->positions = positions;
    else
        rope_free(out);
    return status;
}

ww_status workspace_rope(ww_model *model, int64_t positions)
{
    ww_status status = WW_OK;
    for (int window = 0; window < 2 && model->architecture->rope; window++) {
        rope_table *t = &model->work.rope[window], made = {0};
        if (positions <= t->positions || (window && model->sizes.window == 0))
            continue;
        int64_t room = max_i64(ROPE_MIN, t->positions);
        while (room < positions)
            room *= 2;
        status = rope_make(model, window, room, &made);
        if (status != WW_OK)
            return status;
        rope_free(t);
        *t = made;
        model->work.generation++;
    }
    return WW_OK;
}

static void forget(const workspace *w, recorded_step *steps, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (steps[i].recording)
            tensors_of(w->device)->recording_release(w->device, steps[i].recording);
        steps[i] = (recorded_step){0};
    }
}

void workspace_forget_steps(workspace *w)
{
    forget(w, w->steps, RECORDED_STEPS);
    forget(w, w->passes, RECORDED_PASSES);
}

void workspace_free(workspace *w)
{
    workspace_forget_steps(w);
    upload *const uploads[] = {&w->ids, &w->positions, &w->sequences, &w->lengths, &w->pages, &w->rows, &w->types, &w->scales};
    pass_free(&w->pass);
    w->tokens = 0;
    ww_tensor_release(&w->logits);
    for (size_t i = 0; i < sizeof uploads / sizeof *uploads; i++)
        upload_free(uploads[i]);
    for (int i = 0; i < 2; i++)
        rope_free(&w->rope[i]);
}
