/* A session: the tokens of a text, their keys and values in pages, and the logits after the last one. */
#ifndef WW_MODEL_SESSION_H
#define WW_MODEL_SESSION_H

#include "model/model.h"

struct ww_session {
    ww_model *model; /* retained */
    int32_t *tokens;
    size_t length, token_capacity;
    page **pages; /* of the tokens */
    size_t page_count, page_capacity;
    float *logits, *next_logits; /* one per token of the vocabulary; next_logits while a feed runs */
    bool has_logits;
    atomic_bool running, cancelled;
};

/* WW_OK, or a refusal of NULL and of another process's session. */
ww_status session_check(const ww_session *session, const char *call);

/* Refuses a grammar of another model. */
ww_status session_check_grammar(const ww_session *session, const ww_grammar *grammar, const char *call);

/* A session can be cancelled between these two calls. */
void session_begin(ww_session *session);
void session_end(ww_session *session);

/* Makes room for `length` tokens: host memory, and pages; pages that will be written are not shared. The caller holds the lock.
 * On failure the session keeps what it had. */
ww_status session_reserve(ww_session *session, size_t length);

/* ww_session_feed() within a call that has already begun the session. */
ww_status session_feed_begun(ww_session *session, const int32_t *ids, size_t count);

/* Drops the pages that `length` tokens do not need. The caller holds the lock. */
void session_drop_pages(ww_session *session, size_t length);

#endif
