/* Embedding texts: passes of many short texts over the encoder, pooled on the device, normed on the host.
 *
 * Pooling by mean adds a text's rows in the order in which reductions add. Rows of texts of different lengths are brought into
 * one shape with zeros behind them, which add nothing: a sum is the same whatever the longest text of its pass is.
 *
 * On a device an extra text of a few tokens makes the rows of a pass a multiple of TOKENS_EVEN: texts of a pass do not see each
 * other, and the vector of the extra text is ignored.
 */
#include <math.h>
#include <string.h>

#include <warpwave/tensor_rows.h>
#include <warpwave/vectors.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "model/body/body.h"
#include "model/text_batch.h"

enum {
    TOKENS_HOST = 1024,    /* of a pass, if texts are not longer: what stays in a CPU's caches */
    TOKENS_DEVICE = 8192,  /* what keeps a GPU busy */
    PADDED_MAX = 4,        /* rows with padding, for each token */
    TEXTS_TOGETHER = 4096, /* that are tokenized before they are embedded */
    TOKENS_EVEN = 32,      /* on a device: what makes rows of any width whole tiles, so that no launch is left for a rest */
};
#define SKIPPED UINT32_MAX

/* Texts of one call: all tokens, and how many each has. */
typedef struct embedding {
    ww_model *model;
    const int32_t *ids;
    const size_t *counts;
    size_t count;
    float *vectors;
    ww_progress progress;
    void *progress_user;
    size_t done, total; /* texts, for progress */
} embedding;

/* Texts first.. of an embedding, and what a pass of them needs in memory of the host. */
typedef struct text_pass {
    const embedding *e;
    size_t first, texts, tokens, longest;
    size_t first_token;
    size_t padding; /* tokens of the text that nobody asked for; it is the last */
    int32_t *ids, *positions, *numbers, *lengths;
    int64_t *addresses;
    uint32_t *rows;
    page **pages;
    size_t page_count, pages_stride;
} text_pass;

/* ---- which texts go together ------------------------------------------------------------------------------------------------
 */

static size_t rows_of_pass(const text_pass *p)
{
    return p->tokens + p->padding;
}

static size_t sequences_of_pass(const text_pass *p)
{
    return p->texts + (p->padding > 0);
}

static void choose_texts(text_pass *p, size_t most)
{
    const embedding *e = p->e;
    const bool even = most > TOKENS_HOST && e->model->context >= TOKENS_EVEN;
    p->texts = p->tokens = p->longest = 0;
    for (size_t i = p->first; i < e->count; i++) {
        const size_t longest = e->counts[i] > p->longest ? e->counts[i] : p->longest;
        const bool fits = p->tokens + e->counts[i] <= most && longest * (p->texts + 1) <= PADDED_MAX * most;
        if (p->texts > 0 && !fits)
            break;
        p->longest = longest;
        p->tokens += e->counts[i];
        p->texts++;
    }
    p->padding = even ? (TOKENS_EVEN - p->tokens % TOKENS_EVEN) % TOKENS_EVEN : 0;
    p->pages_stride = (size_t)divide_up_i64((int64_t)p->longest, PAGE_POSITIONS);
}

/* ---- a pass -----------------------------------------------------------------------------------------------------------------
 */

static void free_lists(text_pass *p)
{
    for (size_t i = 0; i < p->page_count; i++)
        page_drop(&p->e->model->pool, p->pages[i]);
    memory_free(p->ids);
    memory_free(p->addresses);
    memory_free(p->rows);
    memory_free(p->pages);
}

/* Positions and pages of sequence `number`, whose tokens begin at `at`. */
static ww_status list_sequence(text_pass *p, size_t number, size_t at, size_t count)
{
    const size_t pages = (size_t)divide_up_i64((int64_t)count, PAGE_POSITIONS);
    ww_status status = WW_OK;
    for (size_t t = 0; t < count; t++) {
        p->positions[at + t] = (int32_t)t;
        p->numbers[at + t] = (int32_t)number;
    }
    p->lengths[number] = (int32_t)count;
    for (size_t c = 0; c < p->pages_stride && status == WW_OK; c++) {
        if (c < pages)
            status = page_take_dirty(&p->e->model->pool, &p->pages[p->page_count]);
        if (status == WW_OK && c < pages)
            p->page_count++;
        if (status == WW_OK)
            p->addresses[number * p->pages_stride + c] = (int64_t)p->pages[p->page_count - 1]->address;
    }
    return status;
}

static ww_status make_lists(text_pass *p)
{
    const size_t rows = rows_of_pass(p), sequences = sequences_of_pass(p), slots = sequences * p->pages_stride;
    p->page_count = 0;
    p->ids = memory_alloc_zeroed(3 * rows + sequences, sizeof *p->ids);
    p->positions = p->ids ? p->ids + rows : NULL;
    p->numbers = p->ids ? p->positions + rows : NULL;
    p->lengths = p->ids ? p->numbers + rows : NULL;
    p->addresses = memory_alloc(slots * sizeof *p->addresses);
    p->rows = memory_alloc((p->texts * p->longest + p->tokens) * sizeof *p->rows);
    p->pages = memory_alloc(slots * sizeof(page *));
    if (!p->ids || !p->addresses || !p->rows || !p->pages)
        return memory_failed("batch of texts", p->texts * p->longest * sizeof *p->rows);
    memcpy(p->ids, p->e->ids + p->first_token, p->tokens * sizeof *p->ids); /* those of the padding are 0 */
    ww_status status = WW_OK;
    size_t at = 0;
    for (size_t i = 0; i < p->texts && status == WW_OK; i++) {
        status = list_sequence(p, i, at, p->e->counts[p->first + i]);
        at += p->e->counts[p->first + i];
    }
    return status == WW_OK && p->padding > 0 ? list_sequence(p, p->texts, at, p->padding) : status;
}

static ww_status upload_lists(text_pass *p)
{
    workspace *w = &p->e->model->work;
    const int64_t rows = (int64_t)rows_of_pass(p), sequences = (int64_t)sequences_of_pass(p);
    ww_status status = upload_write(w, &w->ids, WW_U32, p->ids, rows);
    if (status == WW_OK)
        status = upload_write(w, &w->positions, WW_I32, p->positions, rows);
    if (status == WW_OK) /* learned positions are looked up by unsigned ids */
        status = upload_write(w, &w->rows, WW_U32, p->positions, rows);
    if (status == WW_OK)
        status = upload_write(w, &w->sequences, WW_I32, p->numbers, rows);
    if (status == WW_OK)
        status = upload_write(w, &w->lengths, WW_I32, p->lengths, sequences);
    if (status == WW_OK)
        status = upload_write(w, &w->pages, WW_I64, p->addresses, sequences * (int64_t)p->pages_stride);
    return status;
}

/* The rows of x that pooling wants, for each text: one, or all of them with SKIPPED behind. */
static int64_t list_rows(const text_pass *p)
{
    const bool mean = p->e->model->sizes.pooling == WW_POOLING_MEAN;
    const size_t each = mean ? p->longest : 1;
    uint32_t row = 0;
    for (size_t i = 0; i < p->texts; i++) {
        for (size_t t = 0; t < each; t++)
            p->rows[i * each + t] = t < (size_t)p->lengths[i] ? row + (uint32_t)t : SKIPPED;
        row += (uint32_t)p->lengths[i];
    }
    return (int64_t)each;
}

static ww_status pool_rows(text_pass *p, float *to)
{
    ww_model *model = p->e->model;
    const int64_t width = model->sizes.width, each = list_rows(p), shape[3] = {(int64_t)p->texts, each, width};
    const int32_t along = 1;
    const ww_tensor x = rows_of(&model->work.pass.x, (int64_t)p->tokens, width);
    ww_tensor rows = {0}, gathered = {0}, pooled = {0};
    ww_status status = ww_tensor_from_host(model->device, WW_U32, 1, &(int64_t){shape[0] * each}, p->rows, &rows);
    if (status == WW_OK)
        status = ww_tensor_index_select(&x, &rows, 0, &gathered);
    if (status == WW_OK)
        status = ww_tensor_reshape(&gathered, 3, shape, &gathered);
    if (status == WW_OK)
        status = ww_tensor_reduce(WW_REDUCE_SUM, &gathered, &along, 1, &pooled);
    if (status == WW_OK)
        status = ww_tensor_to_host(&pooled, to);
    ww_tensor_release(&pooled);
    ww_tensor_release(&gathered);
    ww_tensor_release(&rows);
    return status;
}

/* Mean and length 1. A sum that is -0 may be +0 with padding: it is made so. */
static ww_status norm_vectors(const text_pass *p, float *vectors)
{
    const model_sizes *s = &p->e->model->sizes;
    for (size_t i = 0; i < p->texts; i++) {
        float *v = vectors + i * (size_t)s->width;
        const float count = s->pooling == WW_POOLING_MEAN ? (float)p->lengths[i] : 1.0f;
        for (int32_t d = 0; d < s->width; d++)
            v[d] = v[d] / count + 0.0f;
        float squared;
        const bool fine = ww_score(WW_DOT, v, v, s->width, &squared) == WW_OK && isfinite(squared);
        if (!fine)
            return ww_fail(WW_OUT_OF_RANGE,
                           "the activations of text %zu are too large for the model; float activations may help",
                           p->e->done + p->first + i);
        const float length = sqrtf(squared);
        for (int32_t d = 0; d < s->width && length > 0.0f; d++)
            v[d] /= length;
    }
    return WW_OK;
}

static ww_status run_pass(text_pass *p)
{
    ww_model *model = p->e->model;
    const pass batch = {.model = model,
                        .tokens = (int64_t)rows_of_pass(p),
                        .sequences = (int64_t)sequences_of_pass(p),
                        .pages_stride = (int64_t)p->pages_stride,
                        .keys_most = max_i32((int32_t)p->longest, (int32_t)p->padding)};
    float *vectors = p->e->vectors + p->first * (size_t)model->sizes.width;
    ww_status status = make_lists(p);
    if (status == WW_OK)
        status = workspace_reserve(model, batch.tokens);
    if (status == WW_OK)
        status = workspace_rope(model, batch.keys_most);
    if (status == WW_OK)
        status = upload_lists(p);
    if (status == WW_OK)
        status = encoder_run(&batch);
    if (status == WW_OK)
        status = pool_rows(p, vectors);
    if (status == WW_OK)
        status = norm_vectors(p, vectors);
    free_lists(p);
    return status;
}

static ww_status embed_all(const embedding *e)
{
    text_pass p = {.e = e};
    ww_status status = WW_OK;
    const size_t most = strcmp(e->model->info.device, "cpu") == 0 ? TOKENS_HOST : TOKENS_DEVICE;
    while (status == WW_OK && p.first < e->count) {
        choose_texts(&p, most);
        pthread_mutex_lock(&e->model->lock);
        status = run_pass(&p);
        pthread_mutex_unlock(&e->model->lock);
        p.first += p.texts;
        p.first_token += p.tokens;
        if (status == WW_OK && progress_tell(e->progress, e->progress_user, (int64_t)(e->done + p.first), (int64_t)e->total))
            status = ww_fail(WW_CANCELLED, "embedding was cancelled after %zu of %zu texts", e->done + p.first, e->total);
    }
    return status;
}

/* ---- the calls --------------------------------------------------------------------------------------------------------------
 */

static ww_status check_encoder(const ww_model *model, const char *call)
{
    const ww_status status = model_check(model, call);
    if (status == WW_OK && model->architecture->kind != WW_MODEL_ENCODER)
        return ww_fail(WW_UNSUPPORTED, "%s: a model of architecture %s continues texts, and does not embed them", call,
                       model->architecture->name);
    return status;
}

ww_status ww_model_embed_tokens(ww_model *model, const int32_t *ids, const size_t *counts, size_t count, float *vectors)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_embed_tokens";
    const ww_status status = check_encoder(model, call);
    if (status != WW_OK || count == 0)
        return status;
    if (!ids || !counts || !vectors)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, !ids ? "ids" : counts ? "vectors" : "counts");
    size_t tokens = 0;
    for (size_t i = 0; i < count; i++) {
        if (counts[i] == 0 || counts[i] > (size_t)model->context)
            return ww_fail(WW_OUT_OF_RANGE, "%s: text %zu has %zu tokens; 1 to %lld are possible", call, i, counts[i],
                           (long long)model->context);
        for (size_t t = 0; t < counts[i]; t++, tokens++)
            if (ids[tokens] < 0 || ids[tokens] >= model->sizes.vocabulary)
                return ww_fail(WW_OUT_OF_RANGE, "%s: id %d of text %zu is no token; the vocabulary has %lld", call,
                               (int)ids[tokens], i, (long long)model->sizes.vocabulary);
    }
    return embed_all(
        &(embedding){.model = model, .ids = ids, .counts = counts, .count = count, .vectors = vectors, .total = count});
}

/* Batches of texts: the next is tokenized while one is embedded. */
static ww_status embed_batches(embedding *e, text_batch batches[2], size_t count)
{
    float *const vectors = e->vectors;
    text_batch_thread ahead = {0};
    ww_status status = WW_OK;
    batches[0].count = min_size(TEXTS_TOGETHER, count);
    text_batch_start(&ahead, &batches[0]);
    for (size_t first = 0, turn = 0; first < count; first += TEXTS_TOGETHER, turn = 1 - turn) {
        text_batch *now = &batches[turn], *next = &batches[1 - turn];
        text_batch_join(&ahead);
        if (status == WW_OK)
            status = text_batch_status(now);
        if (status != WW_OK)
            return status;
        next->first = first + now->count;
        next->count = min_size(TEXTS_TOGETHER, count - next->first);
        if (next->count > 0)
            text_batch_start(&ahead, next);
        e->ids = now->tokens.ids;
        e->counts = now->counts;
        e->count = now->count;
        e->done = first;
        e->vectors = vectors + first * (size_t)e->model->sizes.width;
        status = embed_all(e);
    }
    return status;
}

ww_status ww_model_embed(ww_model *model, const char *const *all, const size_t *bytes, size_t count, float *vectors,
                         ww_progress progress, void *user)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_embed";
    ww_status status = check_encoder(model, call);
    if (status == WW_OK && !model->tokenizer)
        status = ww_fail(WW_UNSUPPORTED, "%s: the model has no tokenizer", call);
    if (status != WW_OK || count == 0)
        return status;
    if (!all || !vectors)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, all ? "vectors" : "texts");
    for (size_t i = 0; i < count; i++)
        if (!all[i] && !(bytes && bytes[i] == 0))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: text %zu is NULL", call, i);
    const size_t together = min_size(count, TEXTS_TOGETHER);
    size_t *counts = memory_alloc(2 * together * sizeof *counts);
    if (!counts)
        return memory_failed("lengths of texts", 2 * together * sizeof *counts);
    const text_batch batch = {.model = model, .texts = all, .bytes = bytes, .counts = counts};
    text_batch batches[2] = {batch, batch};
    batches[1].counts = counts + together;
    embedding e = {.model = model, .vectors = vectors, .progress = progress, .progress_user = user, .total = count};
    status = embed_batches(&e, batches, count);
    for (int i = 0; i < 2; i++)
        token_list_free(&batches[i].tokens);
    memory_free(counts);
    return status;
}
