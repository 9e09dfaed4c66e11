/* Sessions: creating, forking, reading them. Feeding is in feed.c, saving and loading in file.c. */
#include "model/session/session.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "model/session/sampling.h"

enum { TOKENS_MIN = 256, PAGES_MIN = 8 };

ww_status session_check(const ww_session *session, const char *call)
{
    if (!session)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: session is NULL", call);
    return model_check(session->model, call);
}

void session_begin(ww_session *session)
{
    atomic_store(&session->cancelled, false);
    atomic_store(&session->running, true);
}

void session_end(ww_session *session)
{
    atomic_store(&session->running, false);
}

ww_status ww_session_create(ww_model *model, ww_session **session)
{
    FLOAT_GUARD();
    const ww_status status = model_check(model, "ww_session_create");
    if (status != WW_OK)
        return status;
    if (!session)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_session_create: session is NULL");
    if (model->architecture->kind != WW_MODEL_DECODER)
        return ww_fail(WW_UNSUPPORTED, "ww_session_create: a model of architecture %s embeds texts, and does not continue them",
                       model->architecture->name);
    ww_session *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("session", sizeof *made);
    made->model = model;
    model_retain(model);
    *session = made;
    return WW_OK;
}

void ww_session_destroy(ww_session *session)
{
    if (!session || !process_is_ours(session->model->opened_in))
        return;
    pthread_mutex_lock(&session->model->lock);
    session_drop_pages(session, 0);
    pthread_mutex_unlock(&session->model->lock);
    model_release(session->model);
    memory_free(session->tokens);
    memory_free(session->pages);
    memory_free(session->logits);
    memory_free(session->next_logits);
    memory_free(session);
}

void ww_session_cancel(ww_session *session)
{
    if (session && atomic_load(&session->running))
        atomic_store(&session->cancelled, true);
}

/* ---- room ---------------------------------------------------------------------------------------------------------------- */

static ww_status reserve_host(ww_session *session, size_t length, size_t pages)
{
    const size_t logit_bytes = (size_t)session->model->sizes.vocabulary * sizeof(float);
    if (length > session->token_capacity) {
        size_t capacity = session->token_capacity ? session->token_capacity : TOKENS_MIN;
        while (capacity < length)
            capacity *= 2;
        int32_t *tokens = memory_resize(session->tokens, capacity * sizeof *tokens);
        if (!tokens)
            return memory_failed("tokens of a session", capacity * sizeof *tokens);
        session->tokens = tokens;
        session->token_capacity = capacity;
    }
    if (pages > session->page_capacity) {
        size_t capacity = session->page_capacity ? session->page_capacity : PAGES_MIN;
        while (capacity < pages)
            capacity *= 2;
        page **list = memory_resize(session->pages, capacity * sizeof(page *));
        if (!list)
            return memory_failed("pages of a session", capacity * sizeof(page *));
        session->pages = list;
        session->page_capacity = capacity;
    }
    if (!session->logits)
        session->logits = memory_alloc(logit_bytes);
    if (!session->next_logits)
        session->next_logits = memory_alloc(logit_bytes);
    return session->logits && session->next_logits ? WW_OK : memory_failed("logits", logit_bytes);
}

ww_status session_reserve(ww_session *session, size_t length)
{
    page_pool *pool = &session->model->pool;
    const size_t pages = (size_t)divide_up_i64((int64_t)length, PAGE_POSITIONS), written = session->length / PAGE_POSITIONS;
    ww_status status = reserve_host(session, length, pages);
    if (status == WW_OK && length > session->length && written < session->page_count && session->pages[written]->users > 1)
        status = page_copy(pool, session->pages[written], &session->pages[written]);
    while (status == WW_OK && session->page_count < pages) {
        status = page_take(pool, &session->pages[session->page_count]);
        if (status == WW_OK)
            session->page_count++;
    }
    if (status != WW_OK)
        session_drop_pages(session, session->length);
    return status;
}

void session_drop_pages(ww_session *session, size_t length)
{
    const size_t pages = (size_t)divide_up_i64((int64_t)length, PAGE_POSITIONS);
    while (session->page_count > pages)
        page_drop(&session->model->pool, session->pages[--session->page_count]);
}

/* ---- looking ------------------------------------------------------------------------------------------------------------- */

size_t ww_session_length(const ww_session *session)
{
    return session ? session->length : 0;
}

ww_status ww_session_tokens(const ww_session *session, size_t first, int32_t *ids, size_t capacity)
{
    FLOAT_GUARD();
    const ww_status status = session_check(session, "ww_session_tokens");
    if (status != WW_OK)
        return status;
    if (!ids && capacity > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_session_tokens: ids is NULL");
    if (first > session->length)
        return ww_fail(WW_OUT_OF_RANGE, "ww_session_tokens: first is %zu; the session has %zu tokens", first, session->length);
    if (min_size(capacity, session->length - first) > 0)
        memcpy(ids, session->tokens + first, min_size(capacity, session->length - first) * sizeof *ids);
    return WW_OK;
}

static ww_status check_logits(const ww_session *session, const char *call)
{
    const ww_status status = session_check(session, call);
    if (status == WW_OK && !session->has_logits)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the session has no logits; feed it tokens first", call);
    return status;
}

ww_status ww_session_logits(const ww_session *session, float *logits)
{
    FLOAT_GUARD();
    const ww_status status = check_logits(session, "ww_session_logits");
    if (status != WW_OK)
        return status;
    if (!logits)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_session_logits: logits is NULL");
    memcpy(logits, session->logits, (size_t)session->model->sizes.vocabulary * sizeof *logits);
    return WW_OK;
}

ww_status session_check_grammar(const ww_session *session, const ww_grammar *grammar, const char *call)
{
    return grammar->model == session->model
               ? WW_OK
               : ww_fail(WW_INVALID_ARGUMENT, "%s: the grammar was made for another model; make one for this", call);
}

ww_status ww_session_sample(const ww_session *session, const ww_sampling *sampling, int32_t *token)
{
    FLOAT_GUARD();
    ww_sampling checked;
    ww_status status = check_logits(session, "ww_session_sample");
    if (status == WW_OK && !token)
        status = ww_fail(WW_INVALID_ARGUMENT, "ww_session_sample: token is NULL");
    if (status == WW_OK)
        status = sampling_read(sampling, "ww_session_sample", &checked);
    if (status != WW_OK)
        return status;
    sampled_text text = {session->logits, session->model->sizes.vocabulary, session->tokens, session->length, NULL};
    if (checked.grammar) {
        bool over = false;
        status = session_check_grammar(session, checked.grammar, "ww_session_sample");
        if (status == WW_OK)
            status = grammar_mask(checked.grammar, &text.allowed, &over);
        if (status == WW_OK && over && !tokenizer_has_end(session->model->tokenizer))
            status = ww_fail(WW_NOT_FOUND, "ww_session_sample: the text is complete, and the model has no token that ends it");
    }
    return status == WW_OK ? sampling_choose(&checked, &text, token) : status;
}

ww_status ww_session_truncate(ww_session *session, size_t length)
{
    FLOAT_GUARD();
    const ww_status status = session_check(session, "ww_session_truncate");
    if (status != WW_OK)
        return status;
    if (length > session->length)
        return ww_fail(WW_OUT_OF_RANGE, "ww_session_truncate: length is %zu; the session has %zu tokens", length,
                       session->length);
    if (length == session->length)
        return WW_OK;
    pthread_mutex_lock(&session->model->lock);
    session_drop_pages(session, length);
    pthread_mutex_unlock(&session->model->lock);
    session->length = length;
    session->has_logits = false;
    return WW_OK;
}

ww_status ww_session_fork(ww_session *session, ww_session **fork)
{
    FLOAT_GUARD();
    ww_session *made = NULL;
    ww_status status = session_check(session, "ww_session_fork");
    if (status == WW_OK && !fork)
        status = ww_fail(WW_INVALID_ARGUMENT, "ww_session_fork: fork is NULL");
    if (status == WW_OK)
        status = ww_session_create(session->model, &made);
    if (status == WW_OK)
        status = reserve_host(made, session->length, session->page_count);
    if (status != WW_OK) {
        ww_session_destroy(made);
        return status;
    }
    pthread_mutex_lock(&session->model->lock);
    for (size_t i = 0; i < session->page_count; i++) {
        made->pages[i] = session->pages[i];
        made->pages[i]->users++;
    }
    pthread_mutex_unlock(&session->model->lock);
    made->page_count = session->page_count;
    made->length = session->length;
    if (made->length > 0)
        memcpy(made->tokens, session->tokens, session->length * sizeof *made->tokens);
    made->has_logits = session->has_logits;
    if (made->has_logits)
        memcpy(made->logits, session->logits, (size_t)session->model->sizes.vocabulary * sizeof *made->logits);
    *fork = made;
    return WW_OK;
}
