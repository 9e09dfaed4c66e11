/* Generating for all clients of a model together: each run of the queue is one pass over the weights, in which every session
 * gets a piece of its prompt or its next token. */
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "server/openai/generation.h"

enum { PIECE_TOKENS = 256 }; /* of a prompt in one pass, so that others do not wait long for their tokens */

/* Creates a choice of an answer, in the model's list of running ones. */
static generation *generation_create(generation_answer *a, ww_session *session, size_t fed)
{
    generation *g = memory_alloc_zeroed(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (generation){.answer = a, .number = a->begun, .session = session, .fed = fed};
    a->begun++;
    g->next = a->model->generations;
    a->model->generations = g;
    if (a->plan->tokens_max == 0)
        g->finish = "length";
    return g;
}

/* Starts a request. A stream begins now; other requests are answered at the end. */
static void admit(served_model *m, request *r)
{
    generation_answer *a = memory_alloc_zeroed(1, sizeof *a);
    generation_plan *p = r->plan;
    ww_session *session = NULL;
    ww_status status = a ? ww_session_create(m->model, &session) : memory_failed("a generation", sizeof *a);
    stream *s = status == WW_OK && p->stream ? stream_create(r->connection) : NULL;
    if (status == WW_OK && p->stream && !s)
        status = memory_failed("a stream", 1);
    if (status == WW_OK) {
        *a = (generation_answer){.model = m, .plan = p, .request = r, .number = r->number, .created = (int64_t)time(NULL)};
        status = generation_create(a, session, 0) ? WW_OK : memory_failed("a generation", sizeof(generation));
    }
    if (status != WW_OK) {
        request_fail_status(r, status);
        request_done(r);
        if (s) {
            stream_leave(s);
            stream_release(s);
            stream_release(s);
        }
        ww_session_destroy(session);
        memory_free(a);
        return;
    }
    r->plan = NULL;
    r->plan_free = NULL;
    atomic_fetch_add(&m->queue.server->metrics.tokens_read, (long long)p->prompt_count);
    if (s) {
        a->stream = r->stream = s;
        a->request = NULL;
        r->status = 200;
        request_done(r); /* from here on the request belongs to the HTTP library */
    }
}

static bool is_left(const generation_answer *a)
{
    return a->stream ? stream_is_left(a->stream) : atomic_load(&a->request->gone);
}

/* The tokens that a session gets in this pass. */
static size_t next_tokens(const generation *g, const int32_t **ids)
{
    const generation_plan *p = g->answer->plan;
    const size_t left = p->prompt_count - g->fed;
    *ids = left > 0 ? p->prompt + g->fed : &g->token;
    return left > PIECE_TOKENS ? PIECE_TOKENS : left > 0 ? left : 1;
}

static ww_status sample(generation *g)
{
    const generation_plan *p = g->answer->plan;
    ww_sampling sampling = p->sampling;
    sampling.seed += g->number;
    sampling.repetition_window = (int32_t)g->generated; /* penalties are for what was generated, not for the prompt */
    sampling.grammar = p->grammars[g->number];
    return ww_session_sample(g->session, &sampling, &g->token);
}

/* If this fails, choose() does it again on the thread whose message the client gets. */
static void sample_item(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    generation *g = ((generation **)context)[item];
    g->sampled = sample(g) == WW_OK;
}

/* Chooses the next token and sends its text. */
static void choose(generation *g)
{
    const generation_plan *p = g->answer->plan;
    const served_model *m = g->answer->model;
    ww_grammar *grammar = p->grammars[g->number];
    ww_status status = g->sampled ? WW_OK : sample(g);
    g->sampled = false;
    if (status == WW_OK && ww_model_token_ends(m->model, g->token)) {
        g->finish = "stop";
        return;
    }
    if (status == WW_OK && grammar)
        status = ww_grammar_accept(grammar, g->token);
    if (status == WW_OK && p->logprobs)
        status = logprobs_add(g, g->token);
    if (status == WW_OK)
        status = generation_add(g, g->token);
    if (status != WW_OK) {
        generation_fail(g, status);
        return;
    }
    g->generated++;
    atomic_fetch_add(&m->queue.server->metrics.tokens_written, 1);
    if (!g->finish && (g->generated >= p->tokens_max || ww_session_length(g->session) + 1 >= (size_t)m->info.context))
        g->finish = "length";
    generation_tell(g);
}

/* Forks the other choices at the end of the prompt. */
static ww_status branch(generation *g)
{
    generation_answer *a = g->answer;
    while (a->begun < a->plan->choices) {
        ww_session *fork = NULL;
        const ww_status status = ww_session_fork(g->session, &fork);
        generation *made = status == WW_OK ? generation_create(a, fork, a->plan->prompt_count) : NULL;
        if (!made) {
            ww_session_destroy(fork);
            return status != WW_OK ? status : memory_failed("a generation", sizeof *made);
        }
        choose(made);
    }
    return WW_OK;
}

/* After a pass. */
static void advance(generation *g, size_t fed)
{
    const generation_plan *p = g->answer->plan;
    const bool reading = g->fed < p->prompt_count;
    g->fed += reading ? fed : 0;
    if (g->fed < p->prompt_count) {
        generation_ping(g);
        return;
    }
    const ww_status status = reading ? branch(g) : WW_OK;
    if (status == WW_OK)
        choose(g);
    else
        generation_fail(g, status);
}

/* After a pass. Sampling for several sessions takes longer than the pass, so threads share it. */
static void sample_all(served_model *m, size_t count)
{
    generation **ready = count > 1 ? memory_alloc(count * sizeof *ready) : NULL;
    int64_t ready_count = 0;
    for (generation *g = m->generations; ready && g; g = g->next) {
        const int32_t *ids = NULL;
        const size_t left = g->answer->plan->prompt_count - g->fed;
        if (left == 0 || left == next_tokens(g, &ids))
            ready[ready_count++] = g;
    }
    if (ready_count > 1)
        pool_run(m->queue.server->samplers, ready_count, sample_item, NULL, ready);
    memory_free(ready);
}

/* One pass for all sessions. If it fails, each session is tried alone, so that only those that cannot continue fail. */
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
    if (status == WW_OK)
        sample_all(m, count);
    for (generation *g = m->generations; g; g = g->next) { /* new choices are inserted before this one */
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

/* Ends generations that are done and those whose clients have left. Returns how many continue. */
static size_t sweep(served_model *m)
{
    size_t count = 0;
    for (generation **at = &m->generations; *at;) {
        generation *g = *at;
        if (!g->finish && !g->answer->failed && is_left(g->answer))
            generation_fail(g, ww_fail(WW_CANCELLED, "the client has left, or the deadline has passed"));
        if (g->finish || g->answer->failed) {
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
    for (request *r = reranks_run(m, taken), *next; r; r = next) {
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
