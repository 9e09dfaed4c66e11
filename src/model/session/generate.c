/* Generating: choose a token, feed it, pass its text to the callback. */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/strings/text_stream.h"
#include "base/structs.h"
#include "model/session/sampling.h"
#include "model/session/session.h"

STRUCT_INIT(ww_generation, {.tokens = 128})

typedef struct generator {
    ww_session *session;
    ww_generation asked;
    ww_sampling sampling;
    text_stream stream;
} generator;

/* Passes the complete characters to the callback. Returns true if it wants to stop. */
static bool tell(generator *g)
{
    const size_t bytes = g->stream.bytes;
    g->stream.bytes = 0;
    if (bytes > 0)
        g->stream.text[bytes] = '\0'; /* text_stream_add() leaves room for it */
    return bytes > 0 && text_tell(g->asked.text, g->asked.user, g->stream.text, bytes);
}

static ww_status add_text(generator *g, int32_t token)
{
    const tokenizer *t = g->session->model->tokenizer;
    const char *bytes;
    size_t count;
    if (!g->asked.text || tokenizer_is_special(t, token))
        return WW_OK;
    const ww_status status = tokenizer_piece(t, token, &bytes, &count);
    return status == WW_OK ? text_stream_add(&g->stream, bytes, count) : status;
}

/* Chooses a token. `over`: the text ends, by this token or because the grammar allows nothing more. */
static ww_status choose(generator *g, int32_t *token, bool *over)
{
    const ww_session *session = g->session;
    const tokenizer *t = session->model->tokenizer;
    sampled_text text = {session->logits, session->model->sizes.vocabulary, session->tokens, session->length, NULL};
    ww_grammar *grammar = g->sampling.grammar;
    ww_status status = grammar ? grammar_mask(grammar, &text.allowed, over) : WW_OK;
    if (status != WW_OK || *over)
        return status;
    status = sampling_choose(&g->sampling, &text, token);
    *over = status == WW_OK && t && !g->asked.ignore_eos && tokenizer_is_end(t, *token);
    return status == WW_OK && grammar && !*over ? grammar_prepare(grammar, *token) : status;
}

static ww_status feed_chosen(generator *g, int32_t token)
{
    const ww_status status = session_feed_begun(g->session, &token, 1);
    if (status != WW_OK)
        return status;
    if (g->sampling.grammar)
        grammar_commit(g->sampling.grammar);
    return add_text(g, token);
}

static ww_status generate(generator *g, ww_generation_end *end)
{
    const ww_session *session = g->session;
    ww_status status = WW_OK;
    *end = WW_GENERATION_LENGTH;
    for (int64_t n = 0; status == WW_OK && n < g->asked.tokens; n++) {
        int32_t token = 0;
        bool over = false;
        if (session->length >= (size_t)session->model->context) {
            *end = WW_GENERATION_CONTEXT;
            break;
        }
        status = choose(g, &token, &over);
        if (over) {
            *end = WW_GENERATION_EOS;
            break;
        }
        if (status == WW_OK)
            status = feed_chosen(g, token);
        if (status == WW_OK && tell(g)) {
            *end = WW_GENERATION_STOPPED;
            return WW_OK;
        }
    }
    text_stream_finish(&g->stream);
    if (status == WW_OK && tell(g))
        *end = WW_GENERATION_STOPPED;
    return status;
}

/* Checks the arguments. */
static ww_status check_asked(const generator *g, const char *call)
{
    const ww_session *session = g->session;
    if (g->asked.tokens < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: tokens is %lld; it must be 0 or more", call, (long long)g->asked.tokens);
    if (!session->has_logits)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the session has no logits; feed it tokens first", call);
    if (g->asked.text && !session->model->tokenizer)
        return ww_fail(WW_UNSUPPORTED, "%s: the model has no tokenizer, so there is no text for the callback", call);
    if (g->sampling.grammar && g->asked.ignore_eos)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: ignore_eos cannot be used with a grammar, which says where the text ends",
                       call);
    return g->sampling.grammar ? session_check_grammar(session, g->sampling.grammar, call) : WW_OK;
}

ww_status ww_session_generate(ww_session *session, const ww_generation *generation, ww_generation_end *end)
{
    FLOAT_GUARD();
    const char *const call = "ww_session_generate";
    generator g = {.session = session, .asked = ww_generation_default()};
    ww_generation_end ended = WW_GENERATION_LENGTH;
    ww_status status = session_check(session, call);
    if (status == WW_OK && generation)
        status = struct_read(&g.asked, sizeof g.asked, generation, call, "ww_generation");
    if (status == WW_OK)
        status = sampling_read(g.asked.sampling, call, &g.sampling);
    if (status == WW_OK)
        status = check_asked(&g, call);
    if (status != WW_OK)
        return status;
    session_begin(session);
    status = generate(&g, &ended);
    session_end(session);
    text_stream_free(&g.stream);
    if (status == WW_OK && end)
        *end = ended;
    return status;
}
