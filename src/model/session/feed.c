/* Feeding tokens to sessions: one or many, in passes of at most PASS_TOKENS tokens over the layers.
 *
 * New data is put beside what a session has, pages after its last token and logits in a second buffer, and becomes the
 * session's when all passes are done. So a failure leaves every session unchanged.
 */
#include <math.h>
#include <string.h>

#include "arithmetic/math/f64.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "model/body/body.h"
#include "model/session/session.h"

typedef struct feed {
    ww_model *model;
    ww_session *const *sessions;
    const int32_t *const *ids;
    const size_t *counts;
    size_t count;

    /* The batch of a pass, in host memory. */
    int64_t tokens, sequences, pages_stride;
    int32_t *batch_ids, *positions, *numbers, *lengths;
    int64_t *pages;
    float *scales;         /* of queries, if the model has any */
    uint32_t *last_rows;   /* rows of a pass with the last token of a session */
    size_t *last_sessions; /* the sessions of these rows */
    int64_t lasts;
    int32_t keys_max;
    float *logits;
} feed;

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

static ww_status check_session(const feed *f, size_t i, const char *call)
{
    const ww_session *session = f->sessions[i];
    ww_status status = session_check(session, call);
    if (status != WW_OK)
        return status;
    const ww_model *model = session->model;
    if (model != f->sessions[0]->model)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: session %zu is of another model than session 0", call, i);
    for (size_t j = 0; j < i; j++)
        if (f->sessions[j] == session)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: sessions %zu and %zu are the same", call, j, i);
    if (f->counts[i] > 0 && !f->ids[i])
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the ids of session %zu are NULL", call, i);
    if (f->counts[i] > (size_t)model->context - session->length)
        return ww_fail(WW_OUT_OF_RANGE,
                       "%s: the context is full: the session has %zu tokens, and %zu more do not fit into %lld", call,
                       session->length, f->counts[i], (long long)model->context);
    for (size_t t = 0; t < f->counts[i]; t++)
        if (f->ids[i][t] < 0 || f->ids[i][t] >= model->sizes.vocabulary)
            return ww_fail(WW_OUT_OF_RANGE, "%s: id %d is not a token; the vocabulary has %lld", call, (int)f->ids[i][t],
                           (long long)model->sizes.vocabulary);
    return WW_OK;
}

static bool any_cancelled(const void *who)
{
    const feed *f = who;
    for (size_t i = 0; i < f->count; i++)
        if (atomic_load_explicit(&f->sessions[i]->cancelled, memory_order_relaxed))
            return true;
    return false;
}

/* ---- passes -------------------------------------------------------------------------------------------------------------- */

/* Where the next pass begins: token `at` of session `session`. */
typedef struct feed_place {
    size_t session, at;
} feed_place;

static size_t pages_of(size_t tokens)
{
    return (size_t)divide_up_i64((int64_t)tokens, PAGE_POSITIONS);
}

/* Adds up to `room` tokens of the session at `place` to the batch, and advances the place. */
static void add_tokens(feed *f, feed_place *place, int64_t room)
{
    const ww_session *session = f->sessions[place->session];
    const size_t taken = min_size(f->counts[place->session] - place->at, (size_t)room);
    const int32_t number = (int32_t)f->sequences;
    for (size_t t = 0; t < taken; t++) {
        f->batch_ids[f->tokens + (int64_t)t] = f->ids[place->session][place->at + t];
        f->positions[f->tokens + (int64_t)t] = (int32_t)(session->length + place->at + t);
        f->numbers[f->tokens + (int64_t)t] = number;
    }
    const size_t length = session->length + place->at + taken;
    for (size_t p = 0; p < (size_t)f->pages_stride; p++)
        f->pages[number * f->pages_stride + (int64_t)p] = (int64_t)session->pages[p < session->page_count ? p : 0]->address;
    f->lengths[number] = (int32_t)length;
    /* Whole pages, so that all steps that end in the same page have the same bound. */
    f->keys_max = max_i32(f->keys_max, (int32_t)pages_of(length) * PAGE_POSITIONS);
    f->tokens += (int64_t)taken;
    f->sequences++;
    place->at += taken;
    if (place->at == f->counts[place->session]) {
        f->last_rows[f->lasts] = (uint32_t)(f->tokens - 1);
        f->last_sessions[f->lasts++] = place->session;
        *place = (feed_place){place->session + 1, 0};
    }
}

/* Fills the batch of a pass, starting at `place`. */
static void gather_pass(feed *f, feed_place *place)
{
    f->tokens = f->sequences = f->lasts = 0;
    f->keys_max = 0;
    f->pages_stride = 1;
    int64_t tokens = 0;
    for (size_t i = place->session; i < f->count && tokens < PASS_TOKENS; i++) {
        const size_t begin = i == place->session ? place->at : 0, left = f->counts[i] - begin;
        const size_t taken = min_size(left, (size_t)(PASS_TOKENS - tokens));
        const int64_t pages = (int64_t)pages_of(f->sessions[i]->length + begin + taken);
        while (f->pages_stride < pages)
            f->pages_stride *= 2;
        tokens += (int64_t)taken;
    }
    while (f->tokens < PASS_TOKENS && place->session < f->count) {
        if (f->counts[place->session] == 0)
            *place = (feed_place){place->session + 1, 0};
        else
            add_tokens(f, place, PASS_TOKENS - f->tokens);
    }
}

/* Computes the scales of queries, which grow with each further length of the original context. */
static void find_scales(const feed *f)
{
    const model_sizes *s = &f->model->sizes;
    for (int64_t t = 0; t < f->tokens; t++) {
        const int64_t times = f->positions[t] / s->rope_original_context;
        f->scales[t] = (float)(1.0 + s->temperature * canon_log_f64(1.0 + (double)times));
    }
}

static ww_status upload_pass(const feed *f)
{
    workspace *w = &f->model->work;
    const bool scaled = f->model->sizes.temperature != 0.0;
    if (scaled)
        find_scales(f);
    ww_status status = upload_write(w, &w->ids, WW_U32, f->batch_ids, f->tokens);
    if (status == WW_OK)
        status = upload_write(w, &w->positions, WW_I32, f->positions, f->tokens);
    if (status == WW_OK)
        status = upload_write(w, &w->sequences, WW_I32, f->numbers, f->tokens);
    if (status == WW_OK)
        status = upload_write(w, &w->lengths, WW_I32, f->lengths, f->sequences);
    if (status == WW_OK)
        status = upload_write(w, &w->pages, WW_I64, f->pages, f->sequences * f->pages_stride);
    if (status == WW_OK && scaled)
        status = upload_write(w, &w->scales, WW_F32, f->scales, f->tokens);
    return status;
}

/* Without branches, so that the compiler vectorizes it. */
static bool are_finite(const float *x, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return bad == 0;
}

static ww_status check_finite(const ww_session *session)
{
    int64_t t = 0;
    if (are_finite(session->next_logits, session->model->sizes.vocabulary))
        return WW_OK;
    while (isfinite(session->next_logits[t]))
        t++;
    return ww_fail(WW_OUT_OF_RANGE,
                   "the activations of this text are too large for the model: logit %lld is not finite; float activations may "
                   "help",
                   (long long)t);
}

/* Runs a step, or takes the logits of a finished pass, for the sessions from `first` of those that end in it. */
static ww_status take_logits(feed *f, const pass *p, int64_t first, bool step)
{
    const int64_t vocabulary = f->model->sizes.vocabulary, count = min_i64(LOGIT_ROWS, f->lasts - first);
    /* With one session, its logits are copied directly. */
    float *to = count == 1 ? f->sessions[f->last_sessions[first]]->next_logits : f->logits;
    ww_status status = step ? decoder_step(p, to) : decoder_logits(p, f->last_rows + first, count, to);
    for (int64_t i = 0; i < count && status == WW_OK; i++) {
        const ww_session *session = f->sessions[f->last_sessions[first + i]];
        if (count > 1)
            memcpy(session->next_logits, f->logits + i * vocabulary, (size_t)vocabulary * sizeof(float));
        status = check_finite(session);
    }
    return status;
}

static ww_status run_pass(feed *f, const pass *p)
{
    ww_status status = upload_pass(f);
    if (status == WW_OK && decoder_is_step(p))
        return take_logits(f, p, 0, true);
    if (status == WW_OK)
        status = decoder_pass(p);
    for (int64_t first = 0; first < f->lasts && status == WW_OK; first += LOGIT_ROWS)
        status = take_logits(f, p, first, false);
    return status;
}

static ww_status run_passes(feed *f)
{
    feed_place place = {0};
    ww_status status = WW_OK;
    while (status == WW_OK && place.session < f->count) {
        gather_pass(f, &place);
        if (f->tokens == 0)
            break;
        const pass p = {.model = f->model,
                        .tokens = f->tokens,
                        .sequences = f->sequences,
                        .pages_stride = f->pages_stride,
                        .keys_max = f->keys_max,
                        .cancelled = any_cancelled,
                        .who = f};
        status = run_pass(f, &p);
    }
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

static void free_batch(feed *f)
{
    memory_free(f->batch_ids);
    memory_free(f->pages);
    memory_free(f->last_sessions);
    memory_free(f->logits);
}

/* Memory for the batch of the largest pass. */
static ww_status make_batch(feed *f, size_t tokens, size_t longest)
{
    const size_t tokens_max = min_size(tokens, PASS_TOKENS), sequences = min_size(f->count, tokens_max);
    size_t stride = 1;
    while (stride < pages_of(longest))
        stride *= 2;
    const size_t rows = min_size(sequences, LOGIT_ROWS), logits = rows > 1 ? rows * (size_t)f->model->sizes.vocabulary : 0;
    f->batch_ids = memory_alloc_zeroed(5 * tokens_max + sequences, sizeof(int32_t));
    f->pages = memory_alloc_zeroed(sequences * stride, sizeof *f->pages);
    f->last_sessions = memory_alloc_zeroed(sequences, sizeof *f->last_sessions);
    f->logits = memory_alloc(logits * sizeof *f->logits);
    if (!f->batch_ids || !f->pages || !f->last_sessions || !f->logits)
        return memory_failed("batch of sessions", 6 * tokens_max * sizeof(int32_t) + sequences * stride * sizeof(int64_t));
    f->positions = f->batch_ids + tokens_max;
    f->numbers = f->positions + tokens_max;
    f->lengths = f->numbers + tokens_max;
    f->last_rows = (uint32_t *)(f->lengths + sequences);
    f->scales = (float *)(void *)(f->last_rows + tokens_max);
    return WW_OK;
}

/* The lock is held. */
static ww_status run_feed(feed *f)
{
    size_t tokens = 0, longest = 0;
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < f->count; i++) {
        const size_t length = f->sessions[i]->length + f->counts[i];
        tokens += f->counts[i];
        longest = length > longest ? length : longest;
        status = session_reserve(f->sessions[i], length);
    }
    if (status == WW_OK && tokens > 0) {
        status = make_batch(f, tokens, longest);
        if (status == WW_OK)
            status = workspace_reserve(f->model, (int64_t)min_size(tokens, PASS_TOKENS));
        if (status == WW_OK)
            status = workspace_rope(f->model, (int64_t)longest);
        if (status == WW_OK)
            status = run_passes(f);
    }
    for (size_t i = 0; i < f->count; i++) {
        ww_session *session = f->sessions[i];
        if (status != WW_OK || f->counts[i] == 0) {
            session_drop_pages(session, session->length);
            continue;
        }
        memcpy(session->tokens + session->length, f->ids[i], f->counts[i] * sizeof *session->tokens);
        session->length += f->counts[i];
        float *const old = session->logits;
        session->logits = session->next_logits;
        session->next_logits = old;
        session->has_logits = true;
    }
    free_batch(f);
    return status;
}

/* The sessions have been begun. */
static ww_status feed_all(feed *f, const char *call)
{
    for (size_t i = 0; i < f->count; i++) {
        const ww_status status = check_session(f, i, call);
        if (status != WW_OK)
            return status;
    }
    f->model = f->sessions[0]->model;
    pthread_mutex_lock(&f->model->lock);
    const ww_status status = run_feed(f);
    pthread_mutex_unlock(&f->model->lock);
    return status;
}

ww_status session_feed_begun(ww_session *session, const int32_t *ids, size_t count)
{
    feed f = {.sessions = &session, .ids = &ids, .counts = &count, .count = 1};
    return feed_all(&f, "ww_session_generate");
}

ww_status ww_sessions_feed(ww_session *const *sessions, const int32_t *const *ids, const size_t *counts, size_t count)
{
    FLOAT_GUARD();
    feed f = {.sessions = sessions, .ids = ids, .counts = counts, .count = count};
    if (count == 0)
        return WW_OK;
    if (!sessions || !ids || !counts)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_sessions_feed: %s is NULL", !sessions ? "sessions" : ids ? "counts" : "ids");
    for (size_t i = 0; i < count; i++)
        if (sessions[i])
            session_begin(sessions[i]);
    const ww_status status = feed_all(&f, "ww_sessions_feed");
    for (size_t i = 0; i < count; i++)
        if (sessions[i])
            session_end(sessions[i]);
    return status;
}

ww_status ww_session_feed(ww_session *session, const int32_t *ids, size_t count)
{
    FLOAT_GUARD();
    feed f = {.sessions = &session, .ids = &ids, .counts = &count, .count = 1};
    if (!session)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_session_feed: session is NULL");
    session_begin(session);
    const ww_status status = feed_all(&f, "ww_session_feed");
    session_end(session);
    return status;
}
