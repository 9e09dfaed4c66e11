/* Passes of many short texts over a body.
 *
 * On a device an extra text of a few tokens makes the rows of a pass a multiple of TOKENS_EVEN: texts of a pass do not see each
 * other, and the result of the extra text is ignored.
 */
#include "model/passes.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "model/body/body.h"

enum {
    TOKENS_HOST = 1024,    /* per pass, if no text is longer: fits in a CPU's caches */
    TOKENS_DEVICE = 8192,  /* keeps a GPU busy */
    PADDED_MAX = 4,        /* padded rows per token */
    TEXTS_TOGETHER = 4096, /* tokenized together, before they are computed */
    TOKENS_EVEN = 32,      /* on a device: makes whole tiles, so that no extra launch is needed for a rest */
};

/* ---- which texts go together --------------------------------------------------------------------------------------------- */

static size_t rows_of_pass(const text_pass *p)
{
    return p->tokens + p->padding;
}

static size_t sequences_of_pass(const text_pass *p)
{
    return p->texts + (p->padding > 0);
}

static void choose_texts(text_pass *p, size_t tokens_max)
{
    const text_job *job = p->job;
    const bool even = tokens_max > TOKENS_HOST && job->model->context >= TOKENS_EVEN;
    p->texts = p->tokens = p->longest = 0;
    for (size_t i = p->first; i < job->count; i++) {
        const size_t longest = job->counts[i] > p->longest ? job->counts[i] : p->longest;
        const bool fits = p->tokens + job->counts[i] <= tokens_max && longest * (p->texts + 1) <= PADDED_MAX * tokens_max;
        if (p->texts > 0 && !fits)
            break;
        p->longest = longest;
        p->tokens += job->counts[i];
        p->texts++;
    }
    p->padding = even ? (TOKENS_EVEN - p->tokens % TOKENS_EVEN) % TOKENS_EVEN : 0;
    p->pages_stride = has_pages(job->model->architecture) ? (size_t)divide_up_i64((int64_t)p->longest, PAGE_POSITIONS) : 0;
}

/* ---- a pass -------------------------------------------------------------------------------------------------------------- */

static void free_lists(text_pass *p)
{
    for (size_t i = 0; i < p->page_count; i++)
        page_drop(&p->job->model->pool, p->pages[i]);
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
            status = page_take_dirty(&p->job->model->pool, &p->pages[p->page_count]);
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
    p->addresses = memory_alloc((slots + 1) * sizeof *p->addresses); /* there may be none */
    p->rows = memory_alloc_zeroed(p->texts * p->longest + rows, sizeof *p->rows);
    p->types = p->rows ? p->rows + p->texts * p->longest : NULL;
    p->pages = memory_alloc((slots + 1) * sizeof(page *));
    if (!p->ids || !p->addresses || !p->rows || !p->pages)
        return memory_failed("batch of texts", p->texts * p->longest * sizeof *p->rows);
    memcpy(p->ids, p->job->ids + p->first_token, p->tokens * sizeof *p->ids); /* padding tokens are 0 */
    ww_status status = WW_OK;
    size_t at = 0;
    for (size_t i = 0; i < p->texts && status == WW_OK; i++) {
        const size_t count = p->job->counts[p->first + i];
        status = list_sequence(p, i, at, count);
        for (size_t t = p->job->firsts ? p->job->firsts[p->first + i] : count; t < count; t++)
            p->types[at + t] = 1;
        at += count;
    }
    return status == WW_OK && p->padding > 0 ? list_sequence(p, p->texts, at, p->padding) : status;
}

static ww_status upload_lists(text_pass *p)
{
    workspace *w = &p->job->model->work;
    const int64_t rows = (int64_t)rows_of_pass(p), sequences = (int64_t)sequences_of_pass(p);
    ww_status status = upload_write(w, &w->ids, WW_U32, p->ids, rows);
    if (status == WW_OK)
        status = upload_write(w, &w->positions, WW_I32, p->positions, rows);
    if (status == WW_OK) /* learned positions are looked up by unsigned ids */
        status = upload_write(w, &w->rows, WW_U32, p->positions, rows);
    if (status == WW_OK)
        status = upload_write(w, &w->sequences, WW_I32, p->numbers, rows);
    if (status == WW_OK && p->job->firsts)
        status = upload_write(w, &w->types, WW_U32, p->types, rows);
    if (status == WW_OK)
        status = upload_write(w, &w->lengths, WW_I32, p->lengths, sequences);
    if (status == WW_OK && p->pages_stride > 0)
        status = upload_write(w, &w->pages, WW_I64, p->addresses, sequences * (int64_t)p->pages_stride);
    return status;
}

static ww_status run_pass(text_pass *p)
{
    ww_model *model = p->job->model;
    const pass batch = {.model = model,
                        .tokens = (int64_t)rows_of_pass(p),
                        .sequences = (int64_t)sequences_of_pass(p),
                        .pages_stride = (int64_t)p->pages_stride,
                        .keys_max = max_i32((int32_t)p->longest, (int32_t)p->padding),
                        .has_types = p->job->firsts != NULL};
    ww_status status = make_lists(p);
    if (status == WW_OK)
        status = workspace_reserve(model, batch.tokens);
    if (status == WW_OK)
        status = workspace_rope(model, batch.keys_max);
    if (status == WW_OK)
        status = upload_lists(p);
    if (status == WW_OK)
        status = has_decoder_body(model->architecture) ? decoder_run(&batch) : encoder_run(&batch);
    if (status == WW_OK)
        status = pool_pass(p, p->job->results + p->first * (size_t)pooled_size(model));
    free_lists(p);
    return status;
}

ww_status passes_run(const text_job *job)
{
    text_pass p = {.job = job};
    ww_status status = WW_OK;
    const size_t tokens_max = strcmp(job->model->info.device, "cpu") == 0 ? TOKENS_HOST : TOKENS_DEVICE;
    while (status == WW_OK && p.first < job->count) {
        choose_texts(&p, tokens_max);
        pthread_mutex_lock(&job->model->lock);
        status = run_pass(&p);
        pthread_mutex_unlock(&job->model->lock);
        p.first += p.texts;
        p.first_token += p.tokens;
        if (status == WW_OK &&
            progress_tell(job->progress, job->progress_user, (int64_t)(job->done + p.first), (int64_t)job->total))
            status =
                ww_fail(WW_CANCELLED, "%s was cancelled after %zu of %zu texts", job->doing, job->done + p.first, job->total);
    }
    return status;
}

/* Runs batches of texts: the next is tokenized while one is computed. */
static ww_status run_batches(text_job *job, text_batch batches[2], size_t count)
{
    float *const results = job->results;
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
        job->cut += now->cut;
        next->first = first + now->count;
        next->count = min_size(TEXTS_TOGETHER, count - next->first);
        if (next->count > 0)
            text_batch_start(&ahead, next);
        job->ids = now->tokens.ids;
        job->counts = now->counts;
        job->firsts = now->firsts;
        job->count = now->count;
        job->done = first;
        job->results = results + first * (size_t)pooled_size(job->model);
        status = passes_run(job);
    }
    return status;
}

ww_status passes_run_texts(text_job *job, const text_batch *batch)
{
    const size_t together = min_size(job->total, TEXTS_TOGETHER);
    size_t *counts = memory_alloc(4 * together * sizeof *counts);
    if (!counts)
        return memory_failed("lengths of texts", 4 * together * sizeof *counts);
    text_batch batches[2] = {*batch, *batch};
    for (size_t i = 0; i < 2; i++) {
        batches[i].counts = counts + 2 * i * together;
        batches[i].firsts = pair_has_types(batch->pair) ? batches[i].counts + together : NULL;
    }
    const ww_status status = run_batches(job, batches, job->total);
    for (int i = 0; i < 2; i++)
        token_list_free(&batches[i].tokens);
    memory_free(counts);
    if (status == WW_OK)
        atomic_fetch_add(&job->model->texts_cut, (long long)job->cut);
    return status;
}
