/* Generating for all clients of a model together: each run of the queue is one pass over the weights, in which every session
 * gets a piece of its prompt or its next token. */
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "server/openai/generation.h"

enum { PIECE_TOKENS = 256 }; /* of a prompt in one pass, so that others do not wait long for their tokens */

/* Takes a request in. A stream begins now; another request is answered at the end. */
static void admit(served_model *m, request *r)
{
    generation *g = memory_alloc_zeroed(1, sizeof *g);
    ww_session *session = NULL;
    const ww_status status = g ? ww_session_create(m->model, &session) : memory_failed("a generation", sizeof *g);
    generation_plan *p = r->plan;
    stream *s = status == WW_OK && p->stream ? stream_create(r->connection) : NULL;
    if (status != WW_OK || (p->stream && !s)) {
        request_fail_status(r, status != WW_OK ? status : memory_failed("a stream", 1));
        request_done(r);
        ww_session_destroy(session);
        memory_free(g);
        return;
    }
    *g = (generation){.model = m, .plan = p, .request = r, .number = r->number, .session = session};
    g->created = (int64_t)time(NULL);
    r->plan = NULL;
    r->plan_free = NULL;
    g->next = m->generations;
    m->generations = g;
    atomic_fetch_add(&m->queue.server->metrics.tokens_read, (long long)p->prompt_count);
    if (p->tokens_max == 0)
        g->finish = "length";
    if (s) {
        g->stream = r->stream = s;
        g->request = NULL;
        r->status = 200;
        request_done(r); /* from here on the request belongs to the HTTP library */
    }
}

static bool is_left(const generation *g)
{
    return g->stream ? stream_is_left(g->stream) : atomic_load(&g->request->gone);
}

/* What a session gets in this pass. */
static size_t next_tokens(const generation *g, const int32_t **ids)
{
    const size_t left = g->plan->prompt_count - g->fed;
    *ids = left > 0 ? g->plan->prompt + g->fed : &g->token;
    return left > PIECE_TOKENS ? PIECE_TOKENS : left > 0 ? left : 1;
}

/* Behind a pass: chooses the next token, and tells its text. */
static void advance(generation *g, size_t fed)
{
    const ww_model_info *info = &g->model->info;
    if (g->fed < g->plan->prompt_count)
        g->fed += fed;
    if (g->fed < g->plan->prompt_count)
        return;
    ww_status status = ww_session_sample(g->session, &g->plan->sampling, &g->token);
    if (status == WW_OK && ww_model_token_ends(g->model->model, g->token)) {
        g->finish = "stop";
        return;
    }
    if (status == WW_OK && g->plan->sampling.grammar)
        status = ww_grammar_accept(g->plan->sampling.grammar, g->token);
    if (status == WW_OK)
        status = generation_add(g, g->token);
    if (status != WW_OK) {
        generation_fail(g, status);
        return;
    }
    g->generated++;
    atomic_fetch_add(&g->model->queue.server->metrics.tokens_written, 1);
    if (!g->finish && (g->generated >= g->plan->tokens_max || ww_session_length(g->session) + 1 >= (size_t)info->context))
        g->finish = "length";
    generation_tell(g);
}

/* One pass for all sessions. If it fails, each is tried alone, so that only those fail that cannot go on. */
static void pass(served_model *m, size_t count)
{
    ww_session **sessions = memory_alloc((count + 1) * sizeof *sessions);
    const int32_t **ids = memory_alloc((count + 1) * sizeof *ids);
    size_t *counts = memory_alloc((count + 1) * sizeof *counts), i = 0;
    const bool memory = sessions && ids && counts;
    for (const generation *g = m->generations; memory && g; g = g->next, i++) {
        sessions[i] = g->session;
        counts[i] = next_tokens(g, &ids[i]);
    }
    const ww_status status =
        memory ? ww_sessions_feed(sessions, ids, counts, count) : memory_failed("sessions", count * sizeof *sessions);
    for (generation *g = m->generations; g; g = g->next) {
        const int32_t *own = NULL;
        const size_t tokens = next_tokens(g, &own);
        const ww_status alone = status == WW_OK || !memory ? status : ww_session_feed(g->session, own, tokens);
        if (alone == WW_OK)
            advance(g, tokens);
        else
            generation_fail(g, alone);
    }
    memory_free(sessions);
    memory_free(ids);
    memory_free(counts);
}

/* Ends those that are done, and those whose clients have left. Returns how many go on. */
static size_t sweep(served_model *m)
{
    size_t count = 0;
    for (generation **at = &m->generations; *at;) {
        generation *g = *at;
        if (!g->finish && is_left(g))
            generation_fail(g, ww_fail(WW_CANCELLED, "the client has gone, or the deadline is over"));
        if (g->finish) {
            *at = g->next;
            generation_end(g);
            continue;
        }
        count++;
        at = &g->next;
    }
    return count;
}

bool generations_run(queue *q, request *taken)
{
    served_model *m = q->owner;
    for (request *r = taken, *next; r; r = next) {
        next = r->next;
        admit(m, r);
    }
    const size_t count = sweep(m);
    if (count > 0)
        pass(m, count);
    return sweep(m) > 0;
}

void generations_free(served_model *m)
{
    while (m->generations) {
        generation *g = m->generations;
        m->generations = g->next;
        generation_end(g);
    }
}
