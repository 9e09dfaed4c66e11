/* One vector from those of a text's tokens: the mean, the first or the last; then the layers after the pooling, if any.
 * Embeddings are normalized on the host; a model that reranks has a head, whose output is the score.
 *
 * Pooling by mean adds a text's rows in the order in which reductions add. Texts of different lengths are padded with rows of
 * zeros, which add nothing: a sum does not depend on the longest text of its pass.
 */
#include <math.h>

#include <warpwave/tensor_rows.h>
#include <warpwave/vectors.h>

#include "base/memory.h"
#include "model/body/body.h"
#include "model/passes.h"

#define SKIPPED UINT32_MAX

int64_t pooled_size(const ww_model *model)
{
    return model->weights.head.labels > 0 ? 1 : model->sizes.vector;
}

/* Which rows become a text's vector. For reranking, an encoder takes the first token and a decoder the last. */
static ww_pooling pooling_of(const ww_model *model)
{
    if (model->sizes.pooling == WW_POOLING_MEAN || model->sizes.pooling == WW_POOLING_CLS)
        return model->sizes.pooling;
    if (model->sizes.ranks_mean)
        return WW_POOLING_MEAN;
    return model->architecture->kind == WW_MODEL_ENCODER && model->sizes.pooling != WW_POOLING_LAST ? WW_POOLING_CLS
                                                                                                    : WW_POOLING_LAST;
}

/* Lists the rows of x to pool for each text: one, or all of them padded with SKIPPED. */
static int64_t list_rows(const text_pass *p)
{
    const ww_model *model = p->job->model;
    const ww_pooling pooling = pooling_of(model);
    const int32_t unknown = model->architecture->lookup && model->tokenizer ? tokenizer_unknown(model->tokenizer) : -1;
    const size_t each = pooling == WW_POOLING_MEAN ? p->longest : 1;
    uint32_t row = 0;
    for (size_t i = 0; i < p->texts; i++) {
        const uint32_t length = (uint32_t)p->lengths[i], first = pooling == WW_POOLING_LAST ? row + length - 1 : row;
        for (size_t t = 0; t < each; t++)
            p->rows[i * each + t] = t < length && (unknown < 0 || p->ids[first + t] != unknown) ? first + (uint32_t)t : SKIPPED;
        row += length;
    }
    return (int64_t)each;
}

/* Gathers the rows to pool, after the body's last norm, if it has one. */
static ww_status gather(text_pass *p, int64_t rows_count, ww_tensor *out)
{
    ww_model *model = p->job->model;
    const ww_tensor x = rows_of(&model->work.pass.x, (int64_t)p->tokens, model->sizes.width);
    const norm *last = &model->weights.output_norm;
    ww_tensor rows = {0}, gathered = {0};
    ww_status status = ww_tensor_from_host(model->device, WW_U32, 1, &rows_count, p->rows, &rows);
    if (status == WW_OK)
        status = ww_tensor_index_select(&x, &rows, 0, last->weight.storage ? &gathered : out);
    if (status == WW_OK && last->weight.storage)
        status = has_decoder_body(model->architecture)
                     ? ww_tensor_rms_norm(&gathered, &last->weight, model->sizes.eps, out)
                     : ww_tensor_layer_norm(&gathered, &last->weight, NULL, model->sizes.eps, out);
    ww_tensor_release(&gathered);
    ww_tensor_release(&rows);
    return status;
}

/* Sums the listed rows of each text, [texts, width]. */
static ww_status pool_rows(text_pass *p, ww_tensor *pooled)
{
    const int64_t each = list_rows(p), shape[3] = {(int64_t)p->texts, each, p->job->model->sizes.width};
    const int32_t along = 1;
    ww_tensor gathered = {0};
    ww_status status = gather(p, shape[0] * each, &gathered);
    if (status == WW_OK)
        status = ww_tensor_reshape(&gathered, 3, shape, &gathered);
    if (status == WW_OK)
        status = ww_tensor_reduce(WW_REDUCE_SUM, &gathered, &along, 1, pooled);
    ww_tensor_release(&gathered);
    return status;
}

/* ---- embeddings ---------------------------------------------------------------------------------------------------------- */

/* Divides by the count and normalizes to length 1. Padding may turn a sum of -0 into +0, so -0 always becomes +0. */
static ww_status norm_vectors(const text_pass *p, float *vectors)
{
    const model_sizes *s = &p->job->model->sizes;
    for (size_t i = 0; i < p->texts; i++) {
        float *v = vectors + i * (size_t)s->vector;
        const float count = s->pooling == WW_POOLING_MEAN ? (float)p->lengths[i] : 1.0f;
        for (int32_t d = 0; d < s->vector; d++)
            v[d] = v[d] / count + 0.0f;
        float squared;
        const bool fine = ww_score(WW_DOT, v, v, s->vector, &squared) == WW_OK && isfinite(squared);
        if (!fine)
            return ww_fail(WW_OUT_OF_RANGE,
                           "the activations of text %zu are too large for the model; float activations may help",
                           p->job->done + p->first + i);
        const float length = sqrtf(squared);
        for (int32_t d = 0; d < s->vector && length > 0.0f; d++)
            v[d] /= length;
    }
    return WW_OK;
}

/* Runs the layers of a sentence encoder after its pooling, if there are any. */
static ww_status run_dense(const ww_model *model, ww_tensor *pooled)
{
    ww_status status = WW_OK;
    for (int i = 0; i < DENSE_LAYERS && status == WW_OK; i++) {
        const linear *dense = &model->weights.dense[i];
        ww_tensor out = {0};
        if (!dense->plain.storage)
            continue;
        status = body_linear(model, &(linear_step){.linear = dense, .x = pooled, .out = &out});
        ww_tensor_release(pooled);
        *pooled = out;
    }
    return status;
}

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

/* Runs the head on pooled rows; the result is [texts, labels]. */
static ww_status run_head(const ww_model *model, const ww_tensor *pooled, ww_tensor *out)
{
    const rank_head *head = &model->weights.head;
    ww_tensor inner = {0};
    if (!head->dense.plain.storage)
        return body_linear(model, &(linear_step){.linear = &head->output, .x = pooled, .out = out});
    ww_status status = body_linear(model, &(linear_step){.linear = &head->dense, .x = pooled, .out = &inner});
    if (status == WW_OK)
        status = ww_tensor_unary(model->architecture->head_activation, &inner, &inner);
    if (status == WW_OK && head->norm.weight.storage)
        status = ww_tensor_layer_norm(&inner, &head->norm.weight, head->norm.bias.storage ? &head->norm.bias : NULL,
                                      model->sizes.eps, &inner);
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &head->output, .x = &inner, .out = out});
    ww_tensor_release(&inner);
    return status;
}

/* Sums become means. */
static ww_status divide_sums(const text_pass *p, ww_tensor *pooled)
{
    const int64_t shape[2] = {(int64_t)p->texts, 1};
    ww_tensor counts = {0};
    float *lengths = memory_alloc(p->texts * sizeof *lengths);
    for (size_t i = 0; lengths && i < p->texts; i++)
        lengths[i] = (float)p->lengths[i];
    ww_status status = lengths ? ww_tensor_from_host(p->job->model->device, WW_F32, 2, shape, lengths, &counts)
                               : memory_failed("lengths of texts", p->texts * sizeof *lengths);
    if (status == WW_OK)
        status = ww_tensor_binary(WW_DIV, pooled, &counts, pooled);
    ww_tensor_release(&counts);
    memory_free(lengths);
    return status;
}

/* With one label that is the score; with two, yes and no, it is their difference. */
static ww_status score_texts(const text_pass *p, ww_tensor *pooled, float *scores)
{
    const int64_t labels = p->job->model->weights.head.labels;
    ww_tensor out = {0};
    float *said = memory_alloc(p->texts * (size_t)labels * sizeof *said);
    ww_status status = said ? WW_OK : memory_failed("scores", p->texts * sizeof *said);
    if (status == WW_OK && p->job->model->sizes.ranks_mean)
        status = divide_sums(p, pooled);
    if (status == WW_OK)
        status = run_head(p->job->model, pooled, &out);
    if (status == WW_OK)
        status = ww_tensor_to_host(&out, said);
    for (size_t i = 0; i < p->texts && status == WW_OK; i++) {
        scores[i] = labels == 1 ? said[i] : said[2 * i] - said[2 * i + 1];
        if (!isfinite(scores[i]))
            status =
                ww_fail(WW_OUT_OF_RANGE, "the activations of text %zu are too large for the model; float activations may help",
                        p->job->done + p->first + i);
    }
    ww_tensor_release(&out);
    memory_free(said);
    return status;
}

ww_status pool_pass(text_pass *p, float *results)
{
    ww_tensor pooled = {0};
    ww_status status = pool_rows(p, &pooled);
    if (status == WW_OK && p->job->model->weights.head.labels > 0) {
        status = score_texts(p, &pooled, results);
    } else if (status == WW_OK) {
        status = run_dense(p->job->model, &pooled);
        if (status == WW_OK)
            status = ww_tensor_to_host(&pooled, results);
        if (status == WW_OK)
            status = norm_vectors(p, results);
    }
    ww_tensor_release(&pooled);
    return status;
}
