/* A session in a file: its tokens, logits and pages, and the fingerprint of its model.
 *
 * Little-endian, in this order: session_header, tokens (i32), logits (f32, if it has them), pages, and the fingerprint of all
 * of that. Pages have the same layout on every device, so they are copied unchanged, and a session continues elsewhere with the
 * same bits.
 */
#include <string.h>

#include "base/files/output.h"
#include "base/files/source.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "model/fingerprint.h"
#include "model/session/session.h"

static const char MAGIC[8] = "WWSESS1\n";

typedef struct session_header {
    char magic[8];
    char model[40]; /* ww_model_info.fingerprint */
    int32_t activations;
    int32_t cache; /* ww_attention_type */
    int64_t vocabulary;
    int64_t length; /* tokens */
    int64_t has_logits;
    int64_t page_bytes;
} session_header;
_Static_assert(sizeof(session_header) == 88, "the file's header has no padding");

static session_header header_of(const ww_model *model)
{
    session_header h = {.activations = (int32_t)model->activations,
                        .cache = (int32_t)model->pool.type,
                        .vocabulary = model->sizes.vocabulary,
                        .page_bytes = model->pool.bytes};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    memcpy(h.model, model->info.fingerprint, sizeof h.model);
    return h;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    output file;
    fingerprint sum;
} writer;

static ww_status put(writer *w, const void *from, size_t bytes)
{
    fingerprint_add(&w->sum, from, bytes);
    return output_write(&w->file, from, bytes);
}

static ww_status write_session(writer *w, const ww_session *session, void *buffer)
{
    const ww_model *model = session->model;
    session_header h = header_of(model);
    h.length = (int64_t)session->length;
    h.has_logits = session->has_logits;
    ww_status status = put(w, &h, sizeof h);
    if (status == WW_OK)
        status = put(w, session->tokens, session->length * sizeof *session->tokens);
    if (status == WW_OK && session->has_logits)
        status = put(w, session->logits, (size_t)h.vocabulary * sizeof *session->logits);
    for (size_t i = 0; i < session->page_count && status == WW_OK; i++) {
        status = ww_tensor_to_host(&session->pages[i]->memory, buffer);
        if (status == WW_OK)
            status = put(w, buffer, (size_t)h.page_bytes);
    }
    const fingerprint sum = w->sum;
    if (status == WW_OK)
        status = output_write(&w->file, &sum, sizeof sum);
    return status == WW_OK ? output_finish(&w->file) : status;
}

ww_status ww_session_save(ww_session *session, const char *path)
{
    FLOAT_GUARD();
    ww_status status = session_check(session, "ww_session_save");
    if (status == WW_OK && !path)
        status = ww_fail(WW_INVALID_ARGUMENT, "ww_session_save: path is NULL");
    if (status != WW_OK)
        return status;
    const size_t bytes = (size_t)session->model->pool.bytes;
    void *buffer = memory_alloc(bytes);
    if (!buffer)
        return memory_failed("page of a cache", bytes);
    writer w = {.sum = fingerprint_begin()};
    status = output_open(&w.file, path);
    if (status == WW_OK) {
        pthread_mutex_lock(&session->model->lock);
        status = write_session(&w, session, buffer);
        pthread_mutex_unlock(&session->model->lock);
    }
    output_discard(&w.file);
    memory_free(buffer);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    file_source file;
    int64_t at;
    fingerprint sum;
} reader;

static ww_status get(reader *r, void *to, size_t bytes)
{
    const ww_status status = source_read(&r->file, r->at, to, bytes);
    if (status == WW_OK)
        fingerprint_add(&r->sum, to, bytes);
    r->at += (int64_t)bytes;
    return status;
}

/* Is it a session of this model, opened with the same options, and is the file as long as its header says? */
static ww_status check_header(const reader *r, const ww_model *model, const session_header *h)
{
    const session_header ours = header_of(model);
    if (memcmp(h->magic, ours.magic, sizeof h->magic) != 0)
        return source_refuse(&r->file, WW_CORRUPT_FILE, 0, "this is not a session of a model");
    if (memcmp(h->model, ours.model, sizeof h->model) != 0)
        return source_refuse(&r->file, WW_INVALID_ARGUMENT, 8,
                             "the session is of another model; its fingerprint is %.32s, that of "
                             "this model %.32s",
                             h->model, ours.model);
    if (h->activations != ours.activations || h->cache != ours.cache)
        return source_refuse(&r->file, WW_INVALID_ARGUMENT, 48,
                             "the session's model was opened with other activations or another type of cache");
    if (h->vocabulary != ours.vocabulary || h->page_bytes != ours.page_bytes || h->has_logits < 0 || h->has_logits > 1 ||
        h->length < 0)
        return source_refuse(&r->file, WW_CORRUPT_FILE, 56, "the sizes are not those of the model");
    if (h->length > model->context)
        return source_refuse(&r->file, WW_OUT_OF_RANGE, 64, "the session has %lld tokens; the model was opened for %lld",
                             (long long)h->length, (long long)model->context);
    const int64_t pages = (h->length + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
    const int64_t bytes = (int64_t)(sizeof *h + sizeof(fingerprint)) + 4 * h->length + (h->has_logits ? 4 * h->vocabulary : 0) +
                          pages * h->page_bytes;
    if (r->file.size != bytes)
        return source_refuse(&r->file, WW_CORRUPT_FILE, r->file.size, "the file has %lld bytes; %lld tokens take %lld",
                             (long long)r->file.size, (long long)h->length, (long long)bytes);
    return WW_OK;
}

static ww_status read_pages(reader *r, ww_session *session, void *buffer)
{
    const size_t bytes = (size_t)session->model->pool.bytes;
    ww_status status = WW_OK;
    for (size_t i = 0; i < session->page_count && status == WW_OK; i++) {
        status = get(r, buffer, bytes);
        if (status == WW_OK)
            status = ww_tensor_write(&session->pages[i]->memory, buffer);
    }
    return status;
}

/* The lock is held. */
static ww_status read_session(reader *r, ww_session *session, void *buffer)
{
    const int64_t vocabulary = session->model->sizes.vocabulary;
    session_header h;
    fingerprint sum;
    ww_status status = get(r, &h, sizeof h);
    if (status == WW_OK)
        status = check_header(r, session->model, &h);
    if (status == WW_OK)
        status = session_reserve(session, (size_t)h.length);
    if (status == WW_OK)
        status = get(r, session->tokens, (size_t)h.length * sizeof *session->tokens);
    if (status == WW_OK && h.has_logits)
        status = get(r, session->logits, (size_t)vocabulary * sizeof *session->logits);
    if (status == WW_OK)
        status = read_pages(r, session, buffer);
    const fingerprint made = r->sum;
    if (status == WW_OK)
        status = get(r, &sum, sizeof sum);
    if (status == WW_OK && (sum.a != made.a || sum.b != made.b))
        status =
            source_refuse(&r->file, WW_CORRUPT_FILE, r->at - (int64_t)sizeof sum, "the bytes are not those that were saved");
    for (int64_t i = 0; i < (status == WW_OK ? h.length : 0); i++)
        if (session->tokens[i] < 0 || session->tokens[i] >= vocabulary)
            return source_refuse(&r->file, WW_CORRUPT_FILE, (int64_t)sizeof h + 4 * i, "%d is not a token",
                                 (int)session->tokens[i]);
    if (status == WW_OK) {
        session->length = (size_t)h.length;
        session->has_logits = h.has_logits != 0;
    }
    return status;
}

ww_status ww_session_load(ww_model *model, const char *path, ww_session **session)
{
    FLOAT_GUARD();
    ww_session *made = NULL;
    reader r = {.sum = fingerprint_begin()};
    if (!path || !session)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_session_load: %s is NULL", path ? "session" : "path");
    ww_status status = ww_session_create(model, &made);
    if (status != WW_OK)
        return status;
    void *buffer = memory_alloc((size_t)model->pool.bytes);
    if (!buffer)
        status = memory_failed("page of a cache", (size_t)model->pool.bytes);
    if (status == WW_OK)
        status = source_open(&r.file, path);
    if (status == WW_OK) {
        pthread_mutex_lock(&model->lock);
        status = read_session(&r, made, buffer);
        pthread_mutex_unlock(&model->lock);
        source_close(&r.file);
    }
    memory_free(buffer);
    if (status == WW_OK)
        *session = made;
    else
        ww_session_destroy(made);
    return status;
}
