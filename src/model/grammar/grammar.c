/* Grammars of a model. The mask of a state is found by walking through the tokens in the order of their bytes: a common prefix
 * of two tokens is walked once, and all tokens with a prefix that the grammar refuses are skipped.
 */
#include "model/grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "model/grammar/schema.h"
#include "model/model.h"

/* ---- the order of tokens ------------------------------------------------------------------------------------------------- */

typedef struct token_text {
    const char *bytes;
    size_t count;
    int32_t id;
} token_text;

static int compare_texts(const void *first, const void *second)
{
    const token_text *a = first, *b = second;
    const int order = memcmp(a->bytes, b->bytes, min_size(a->count, b->count));
    if (order != 0)
        return order;
    return a->count != b->count ? (a->count > b->count) - (a->count < b->count) : (a->id > b->id) - (a->id < b->id);
}

static int32_t shared_bytes(const token_text *a, const token_text *b)
{
    size_t shared = 0;
    while (shared < a->count && shared < b->count && a->bytes[shared] == b->bytes[shared])
        shared++;
    return (int32_t)shared;
}

/* Lists the tokens that are text: not special, not ending a text, not empty. */
static int32_t list_texts(const tokenizer *t, token_text *texts)
{
    int32_t count = 0;
    for (int32_t id = 0; id < tokenizer_size(t); id++) {
        token_text *text = &texts[count];
        text->id = id;
        if (!tokenizer_is_special(t, id) && !tokenizer_is_end(t, id) &&
            tokenizer_piece(t, id, &text->bytes, &text->count) == WW_OK && text->count > 0)
            count++;
    }
    return count;
}

ww_status token_order_make(const tokenizer *t, token_order **out)
{
    const size_t size = (size_t)tokenizer_size(t);
    token_text *texts = memory_alloc((size + 1) * sizeof *texts);
    token_order *order = memory_alloc_zeroed(1, sizeof *order);
    if (order) {
        order->ids = memory_alloc((size + 1) * sizeof *order->ids);
        order->shared = memory_alloc((size + 1) * sizeof *order->shared);
    }
    if (!texts || !order || !order->ids || !order->shared) {
        memory_free(texts);
        token_order_free(order);
        return memory_failed("order of tokens", (size + 1) * (sizeof *texts + 2 * sizeof *order->ids));
    }
    order->count = list_texts(t, texts);
    qsort(texts, (size_t)order->count, sizeof *texts, compare_texts);
    for (int32_t i = 0; i < order->count; i++) {
        order->ids[i] = texts[i].id;
        order->shared[i] = i ? shared_bytes(&texts[i - 1], &texts[i]) : 0;
        order->longest = max_i32(order->longest, (int32_t)texts[i].count);
    }
    memory_free(texts);
    *out = order;
    return WW_OK;
}

void token_order_free(token_order *order)
{
    if (!order)
        return;
    memory_free(order->ids);
    memory_free(order->shared);
    memory_free(order);
}

/* ---- masks --------------------------------------------------------------------------------------------------------------- */

/* Walks on by the bytes of a token, starting at byte `from`. `read` gets how many were accepted, up to the first refused
 * one. */
static ww_status walk(ww_grammar *g, int32_t token, int32_t from, int32_t *read, bool *alive)
{
    const char *bytes = NULL;
    size_t count = 0;
    ww_status status = tokenizer_piece(g->tokenizer, token, &bytes, &count);
    int32_t at = from;
    while (status == WW_OK && at < (int32_t)count && (at == from || g->path[at] != STATE_DEAD)) {
        status = matcher_step(&g->matcher, g->path[at], (uint8_t)bytes[at], &g->path[at + 1]);
        at++;
    }
    *read = at;
    *alive = g->path[at] != STATE_DEAD;
    return status;
}

static void set_bit(uint64_t *bits, int32_t token)
{
    bits[token / 64] |= UINT64_C(1) << token % 64;
}

static ww_status fill_mask(ww_grammar *g, uint64_t *bits, bool *goes_on)
{
    const token_order *order = g->order;
    ww_status status = WW_OK;
    int32_t dead = INT32_MAX; /* length of the refused prefix */
    g->path[0] = g->state;
    for (int32_t i = 0; status == WW_OK && i < order->count; i++) {
        int32_t read;
        bool alive = false;
        if (order->shared[i] >= dead)
            continue;
        status = walk(g, order->ids[i], order->shared[i], &read, &alive);
        dead = alive ? INT32_MAX : read;
        if (status == WW_OK && alive) {
            set_bit(bits, order->ids[i]);
            *goes_on = true;
        }
    }
    for (int32_t id = 0; g->matcher.states[g->state].ends && id < tokenizer_size(g->tokenizer); id++)
        if (tokenizer_is_end(g->tokenizer, id))
            set_bit(bits, id);
    return status;
}

static ww_status make_mask(ww_grammar *g)
{
    const size_t words = ((size_t)tokenizer_size(g->tokenizer) + 63) / 64;
    bool goes_on = false;
    uint64_t *bits = memory_alloc_zeroed(words, sizeof *bits);
    if (!bits)
        return memory_failed("grammar", words * sizeof *bits);
    const ww_status status = fill_mask(g, bits, &goes_on);
    if (status != WW_OK) {
        memory_free(bits);
        return status;
    }
    grammar_state *state = &g->matcher.states[g->state];
    state->mask = bits;
    state->goes_on = goes_on;
    g->matcher.masks++;
    return WW_OK;
}

ww_status grammar_mask(ww_grammar *g, const uint64_t **bits, bool *over)
{
    ww_status status = WW_OK;
    if (g->ended)
        return ww_fail(WW_OUT_OF_RANGE, "the text of the grammar has ended; make another grammar for another text");
    if (!g->matcher.states[g->state].mask) {
        status = matcher_trim(&g->matcher, &g->state);
        if (status == WW_OK)
            status = make_mask(g);
    }
    if (status != WW_OK)
        return status;
    const grammar_state *state = &g->matcher.states[g->state];
    if (!state->goes_on && !state->ends)
        return ww_fail(WW_NOT_FOUND, "no token of the model can follow by the grammar: its vocabulary lacks the characters");
    *bits = state->mask;
    *over = !state->goes_on;
    return WW_OK;
}

ww_status grammar_prepare(ww_grammar *g, int32_t token)
{
    int32_t read;
    bool alive = false;
    const bool text = !tokenizer_is_special(g->tokenizer, token) && !tokenizer_is_end(g->tokenizer, token);
    ww_status status = WW_OK;
    g->path[0] = g->state;
    if (g->ended)
        status = ww_fail(WW_OUT_OF_RANGE, "the text of the grammar has ended");
    else if (text)
        status = walk(g, token, 0, &read, &alive);
    if (status == WW_OK && text
            ? !alive || read == 0
            : status == WW_OK && !(tokenizer_is_end(g->tokenizer, token) && g->matcher.states[g->state].ends))
        status = ww_fail(WW_INVALID_ARGUMENT, "token %d cannot follow by the grammar", (int)token);
    if (status == WW_OK) {
        g->next = text ? g->path[read] : g->state;
        g->next_ended = !text;
    }
    return status;
}

void grammar_commit(ww_grammar *g)
{
    g->state = g->next;
    g->ended = g->next_ended;
}

/* ---- calls --------------------------------------------------------------------------------------------------------------- */

/* The first grammar of a model makes the order of its tokens. */
static ww_status take_order(ww_model *model, const token_order **order)
{
    ww_status status = WW_OK;
    pthread_mutex_lock(&model->lock);
    if (!model->token_order)
        status = token_order_make(model->tokenizer, &model->token_order);
    *order = model->token_order;
    pthread_mutex_unlock(&model->lock);
    return status;
}

static ww_status make_program(ww_grammar_kind kind, const char *text, size_t bytes, grammar_program *program)
{
    text_buffer gbnf = {0};
    if (kind == WW_GRAMMAR_GBNF)
        return gbnf_parse(text, bytes, program);
    ww_status status = schema_to_gbnf(text, bytes, &gbnf);
    if (status == WW_OK)
        status = gbnf_parse(gbnf.text, gbnf.bytes, program);
    text_buffer_free(&gbnf);
    return status;
}

ww_status ww_grammar_create(ww_model *model, ww_grammar_kind kind, const char *text, size_t bytes, ww_grammar **grammar)
{
    FLOAT_GUARD();
    const char *const call = "ww_grammar_create";
    ww_status status = model_check(model, call);
    if (status != WW_OK)
        return status;
    if (!text || !grammar)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, text ? "grammar" : "text");
    if (kind != WW_GRAMMAR_GBNF && kind != WW_GRAMMAR_JSON_SCHEMA)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: kind is %d; it must be WW_GRAMMAR_GBNF or WW_GRAMMAR_JSON_SCHEMA", call,
                       (int)kind);
    if (!model->tokenizer)
        return ww_fail(WW_UNSUPPORTED, "%s: the model has no tokenizer, so its tokens have no text", call);
    ww_grammar *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("grammar", sizeof *made);
    made->model = model;
    made->tokenizer = model->tokenizer;
    model_retain(model);
    status = make_program(kind, text, bytes, &made->program);
    if (status == WW_OK)
        status = take_order(model, &made->order);
    if (status == WW_OK && !(made->path = memory_alloc_zeroed((size_t)made->order->longest + 1, sizeof *made->path)))
        status = memory_failed("grammar", ((size_t)made->order->longest + 1) * sizeof *made->path);
    if (status == WW_OK)
        status = matcher_begin(&made->matcher, &made->program);
    made->state = made->matcher.start;
    if (status == WW_OK)
        *grammar = made;
    else
        ww_grammar_destroy(made);
    return status;
}

void ww_grammar_destroy(ww_grammar *grammar)
{
    if (!grammar || !process_is_ours(grammar->model->opened_in))
        return;
    matcher_free(&grammar->matcher);
    grammar_program_free(&grammar->program);
    memory_free(grammar->path);
    model_release(grammar->model);
    memory_free(grammar);
}

ww_status ww_grammar_accept(ww_grammar *grammar, int32_t token)
{
    FLOAT_GUARD();
    if (!grammar)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_grammar_accept: grammar is NULL");
    ww_status status = model_check(grammar->model, "ww_grammar_accept");
    if (status == WW_OK && (token < 0 || token >= tokenizer_size(grammar->tokenizer)))
        status = ww_fail(WW_OUT_OF_RANGE, "ww_grammar_accept: token is %d; the model has %d tokens", (int)token,
                         (int)tokenizer_size(grammar->tokenizer));
    if (status == WW_OK)
        status = grammar_prepare(grammar, token);
    if (status == WW_OK)
        grammar_commit(grammar);
    return status;
}
