/* The text of a generation: stops, events and answers. */
#include <string.h>

#include "base/memory.h"
#include "base/message.h"
#include "server/openai/responses.h"

/* ---- the text ------------------------------------------------------------------------------------------------------------ */

/* Looks for a stop in the unsent text; the text ends before it. */
static bool find_stop(generation *g)
{
    for (size_t i = 0; i < g->answer->plan->stop_count; i++) {
        const char *stop = g->answer->plan->stops[i];
        const char *at = g->text.bytes ? memmem(g->text.bytes + g->sent, g->text.length - g->sent, stop, strlen(stop)) : NULL;
        if (at) {
            g->text.length = (size_t)(at - g->text.bytes);
            g->text.bytes[g->text.length] = '\0';
            return true;
        }
    }
    return false;
}

/* The length of the text that may be sent. Text that could begin a stop or a call is held back. */
static size_t sendable(const generation *g)
{
    const char *text = g->text.bytes;
    const size_t begin = tools_begin(g), length = begin > g->sent ? begin : g->sent;
    size_t held = tools_held(g);
    for (size_t i = 0; i < g->answer->plan->stop_count; i++) {
        const char *stop = g->answer->plan->stops[i];
        const size_t begun_max = strlen(stop) - 1 < length - g->sent ? strlen(stop) - 1 : length - g->sent;
        for (size_t begun = begun_max; begun > held; begun--)
            if (memcmp(text + length - begun, stop, begun) == 0)
                held = begun;
    }
    return length - held;
}

ww_status generation_add(generation *g, int32_t token)
{
    const ww_tokenizer *t = ww_model_tokenizer(g->answer->model->model);
    const char *bytes = NULL;
    size_t count = 0;
    if (ww_tokenizer_is_special(t, token))
        return WW_OK;
    ww_status status = ww_tokenizer_piece(t, token, &bytes, &count);
    if (status == WW_OK)
        status = text_stream_add(&g->pieces, bytes, count);
    if (status == WW_OK) {
        out_bytes(&g->text, g->pieces.text, g->pieces.bytes);
        g->pieces.bytes = 0;
        status = g->text.failed ? memory_failed("a text", g->text.length) : WW_OK;
    }
    if (status == WW_OK && find_stop(g)) {
        g->finish = "stop";
        g->pieces.begun_bytes = 0; /* text after a stop is not sent */
    }
    return status;
}

/* Ends the text: an incomplete character becomes U+FFFD. */
static void finish_text(generation *g)
{
    text_stream_finish(&g->pieces);
    if (g->pieces.bytes > 0)
        out_bytes(&g->text, g->pieces.text, g->pieces.bytes);
    g->pieces.bytes = 0;
}

/* ---- events -------------------------------------------------------------------------------------------------------------- */

static void put_head(out *o, const generation_answer *a, const char *object)
{
    out_format(o, "{\"id\":\"%s-%llu\",\"object\":\"%s\",\"created\":%lld,\"model\":", a->plan->chat ? "chatcmpl" : "cmpl",
               (unsigned long long)a->number, object, (long long)a->created);
    out_quoted(o, a->model->name, strlen(a->model->name));
}

/* Writes the end of a choice. A text with calls ends because of them. */
static void put_finish(out *o, generation *g, const char *finish, bool calls)
{
    logprobs_put(o, g);
    if (finish)
        out_format(o, ",\"finish_reason\":\"%s\"}", calls && strcmp(finish, "stop") == 0 ? "tool_calls" : finish);
    else
        out_text(o, ",\"finish_reason\":null}");
}

static void put_usage(out *o, const generation_answer *a)
{
    int64_t generated = 0;
    for (size_t i = 0; i < CHOICES_MAX; i++)
        generated += a->ended[i] ? a->ended[i]->generated : 0;
    out_format(o, ",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%lld,\"total_tokens\":%lld}", a->plan->prompt_count,
               (long long)generated, (long long)a->plan->prompt_count + generated);
}

/* Writes new text of a conversation; the first event has the role. */
static size_t put_delta(out *o, const generation *g, size_t end, bool last)
{
    size_t calls = 0;
    bool begun = false;
    out_text(o, "\"delta\":{");
    if (!g->told) {
        out_text(o, "\"role\":\"assistant\"");
        begun = true;
    }
    if (end > g->sent) {
        out_text(o, begun ? ",\"content\":" : "\"content\":");
        out_quoted(o, g->text.bytes + g->sent, end - g->sent);
        begun = true;
    }
    if (last && g->answer->plan->tools) {
        out list = {0};
        calls = tools_put_calls(&list, g, true);
        if (calls > 0) {
            out_text(o, begun ? ",\"tool_calls\":" : "\"tool_calls\":");
            out_bytes(o, list.bytes, list.length);
        }
        o->failed = o->failed || list.failed;
        out_free(&list);
    }
    out_text(o, "}");
    return calls;
}

/* Writes one event with a piece of the text. */
static void put_event(out *o, generation *g, size_t end, const char *finish)
{
    const bool chat = g->answer->plan->chat;
    size_t calls = 0;
    out_text(o, "data: ");
    put_head(o, g->answer, chat ? "chat.completion.chunk" : "text_completion");
    out_format(o, ",\"choices\":[{\"index\":%zu,", g->number);
    if (chat) {
        calls = put_delta(o, g, end, finish != NULL);
    } else {
        out_text(o, "\"text\":");
        out_quoted(o, g->text.bytes ? g->text.bytes + g->sent : "", end - g->sent);
    }
    put_finish(o, g, finish, calls > 0);
    out_text(o, "]}\n\n");
    g->told = true;
    g->sent = end;
}

void generation_tell(generation *g)
{
    const size_t end = g->finish ? tools_begin(g) : sendable(g);
    out event = {0};
    if (!g->answer->stream || end <= g->sent)
        return;
    if (g->answer->plan->echo) {
        responses_tell(g, end);
        return;
    }
    put_event(&event, g, end, NULL);
    stream_write(g->answer->stream, &event);
    out_free(&event);
}

void generation_ping(generation *g)
{
    out comment = {0};
    if (!g->answer->stream)
        return;
    out_text(&comment, ": the prompt is being read\n\n");
    stream_write(g->answer->stream, &comment);
    out_free(&comment);
}

/* Ends one choice of a stream. */
static void end_choice(generation *g)
{
    out event = {0};
    if (g->answer->plan->echo) {
        responses_end(g);
        return;
    }
    generation_tell(g);
    put_event(&event, g, g->sent, g->finish);
    stream_write(g->answer->stream, &event);
    out_free(&event);
}

static void end_stream(const generation_answer *a)
{
    out event = {0};
    if (a->plan->echo)
        return;
    if (a->plan->usage) {
        out_text(&event, "data: ");
        put_head(&event, a, a->plan->chat ? "chat.completion.chunk" : "text_completion");
        out_text(&event, ",\"choices\":[]");
        put_usage(&event, a);
        out_text(&event, "}\n\n");
    }
    out_text(&event, "data: [DONE]\n\n");
    stream_write(a->stream, &event);
    out_free(&event);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

/* {"role": "assistant", "content": ..., "tool_calls": ...}. Returns how many calls there are. */
static size_t put_message(out *o, const generation *g)
{
    const size_t end = tools_begin(g);
    out list = {0};
    const size_t calls = g->answer->plan->tools ? tools_put_calls(&list, g, false) : 0;
    out_text(o, "\"message\":{\"role\":\"assistant\",\"content\":");
    if (calls > 0 && end == 0)
        out_text(o, "null");
    else
        out_quoted(o, g->text.bytes ? g->text.bytes : "", end);
    if (calls > 0) {
        out_text(o, ",\"tool_calls\":");
        out_bytes(o, list.bytes, list.length);
    }
    out_text(o, "}");
    o->failed = o->failed || list.failed;
    out_free(&list);
    return calls;
}

static void put_answer(const generation_answer *a)
{
    out *o = &a->request->answer;
    a->request->status = 200;
    if (a->plan->echo) {
        responses_put(o, a->ended[0]);
        return;
    }
    put_head(o, a, a->plan->chat ? "chat.completion" : "text_completion");
    out_text(o, ",\"choices\":[");
    for (size_t i = 0; i < a->plan->choices && a->ended[i]; i++) {
        generation *g = a->ended[i];
        size_t calls = 0;
        out_format(o, "%s{\"index\":%zu,", i > 0 ? "," : "", i);
        if (a->plan->chat) {
            calls = put_message(o, g);
        } else {
            out_text(o, "\"text\":");
            out_quoted(o, g->text.bytes ? g->text.bytes : "", g->text.length);
        }
        put_finish(o, g, g->finish, calls > 0);
    }
    out_text(o, "]");
    put_usage(o, a);
    out_text(o, "}");
}

void generation_fail(generation *g, ww_status status)
{
    generation_answer *a = g->answer;
    char message[1024];
    if (a->failed)
        return;
    a->failed = true;
    text_without_calls(message, sizeof message, ww_error_message());
    if (a->request) {
        request_fail_status(a->request, status);
    } else if (a->plan->echo) {
        responses_fail(a, message);
    } else {
        out event = {0};
        out_text(&event, "data: {\"error\":{\"message\":");
        out_quoted(&event, message, strlen(message));
        out_text(&event, ",\"type\":\"server_error\"}}\n\n");
        stream_write(a->stream, &event);
        out_free(&event);
    }
}

/* Answers once all choices have ended. */
static void answer_end(generation_answer *a)
{
    if (!a->failed && a->stream)
        end_stream(a);
    else if (!a->failed)
        put_answer(a);
    if (a->stream) {
        stream_end(a->stream);
        stream_release(a->stream);
    } else {
        request_done(a->request);
    }
    for (size_t i = 0; i < CHOICES_MAX && a->ended[i]; i++) {
        text_stream_free(&a->ended[i]->pieces);
        out_free(&a->ended[i]->text);
        logprobs_free(&a->ended[i]->logprobs);
        memory_free(a->ended[i]);
    }
    generation_plan_free(a->plan);
    memory_free(a);
}

void generation_end(generation *g)
{
    generation_answer *a = g->answer;
    finish_text(g);
    g->finish = g->finish ? g->finish : "stop";
    if (!a->failed && a->stream)
        end_choice(g);
    ww_session_destroy(g->session);
    g->session = NULL;
    a->ended[g->number] = g;
    a->ended_count++;
    if (a->ended_count == a->begun)
        answer_end(a);
}
