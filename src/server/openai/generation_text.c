/* The text of a generation: stops, events and answers. */
#include <string.h>

#include "base/memory.h"
#include "base/message.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "server/openai/generation.h"

/* ---- the text --------------------------------------------------------------------------------------------------------------
 */

/* Looks for a stop in what was not sent; the text ends before it. */
static bool find_stop(generation *g)
{
    for (size_t i = 0; i < g->plan->stop_count; i++) {
        const char *stop = g->plan->stops[i];
        const char *at = g->text.bytes ? memmem(g->text.bytes + g->sent, g->text.length - g->sent, stop, strlen(stop)) : NULL;
        if (at) {
            g->text.length = (size_t)(at - g->text.bytes);
            g->text.bytes[g->text.length] = '\0';
            return true;
        }
    }
    return false;
}

/* How much may be sent: what could be the beginning of a stop is held back. */
static size_t sendable(const generation *g)
{
    const char *text = g->text.bytes;
    const size_t length = g->text.length;
    size_t held = 0;
    for (size_t i = 0; i < g->plan->stop_count; i++) {
        const char *stop = g->plan->stops[i];
        const size_t most = strlen(stop) - 1 < length - g->sent ? strlen(stop) - 1 : length - g->sent;
        for (size_t begun = most; begun > held; begun--)
            if (memcmp(text + length - begun, stop, begun) == 0)
                held = begun;
    }
    return length - held;
}

ww_status generation_add(generation *g, int32_t token)
{
    const tokenizer *t = g->model->model->tokenizer;
    const char *bytes = NULL;
    size_t count = 0;
    if (tokenizer_is_special(t, token))
        return WW_OK;
    ww_status status = tokenizer_piece(t, token, &bytes, &count);
    if (status == WW_OK)
        status = text_stream_add(&g->pieces, bytes, count);
    if (status == WW_OK) {
        out_bytes(&g->text, g->pieces.text, g->pieces.bytes);
        g->pieces.bytes = 0;
        status = g->text.failed ? memory_failed("a text", g->text.length) : WW_OK;
    }
    if (status == WW_OK && find_stop(g)) {
        g->finish = "stop";
        g->pieces.begun_bytes = 0; /* what follows a stop is not told */
    }
    return status;
}

/* The end of the text: a character that was begun becomes U+FFFD. */
static void finish_text(generation *g)
{
    text_stream_finish(&g->pieces);
    if (g->pieces.bytes > 0)
        out_bytes(&g->text, g->pieces.text, g->pieces.bytes);
    g->pieces.bytes = 0;
}

/* ---- events ----------------------------------------------------------------------------------------------------------------
 */

static void put_head(out *o, const generation *g, const char *object)
{
    out_format(o, "{\"id\":\"%s-%llu\",\"object\":\"%s\",\"created\":%lld,\"model\":", g->plan->chat ? "chatcmpl" : "cmpl",
               (unsigned long long)g->number, object, (long long)g->created);
    out_quoted(o, g->model->name, strlen(g->model->name));
}

static void put_finish(out *o, const char *finish)
{
    if (finish)
        out_format(o, ",\"logprobs\":null,\"finish_reason\":\"%s\"}", finish);
    else
        out_text(o, ",\"logprobs\":null,\"finish_reason\":null}");
}

static void put_usage(out *o, const generation *g)
{
    out_format(o, ",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%lld,\"total_tokens\":%lld}", g->plan->prompt_count,
               (long long)g->generated, (long long)g->plan->prompt_count + g->generated);
}

/* One event with a piece of the text; the first of a conversation says who speaks. */
static void put_event(out *o, const generation *g, size_t end, const char *finish)
{
    const char *piece = g->text.bytes ? g->text.bytes + g->sent : "";
    out_text(o, "data: ");
    put_head(o, g, g->plan->chat ? "chat.completion.chunk" : "text_completion");
    out_text(o, ",\"choices\":[{\"index\":0,");
    if (g->plan->chat) {
        out_format(o, "\"delta\":{%s", g->sent == 0 && !finish ? "\"role\":\"assistant\"," : "");
        if (finish && end == g->sent)
            out_text(o, "}");
        else {
            out_text(o, "\"content\":");
            out_quoted(o, piece, end - g->sent);
            out_text(o, "}");
        }
    } else {
        out_text(o, "\"text\":");
        out_quoted(o, piece, end - g->sent);
    }
    put_finish(o, finish);
    out_text(o, "]}\n\n");
}

void generation_tell(generation *g)
{
    const size_t end = g->finish ? g->text.length : sendable(g);
    out event = {0};
    if (!g->stream || end == g->sent)
        return;
    put_event(&event, g, end, NULL);
    g->sent = end;
    stream_write(g->stream, &event);
    out_free(&event);
}

static void end_stream(generation *g)
{
    out event = {0};
    generation_tell(g);
    put_event(&event, g, g->sent, g->finish);
    if (g->plan->usage) {
        out_text(&event, "data: ");
        put_head(&event, g, g->plan->chat ? "chat.completion.chunk" : "text_completion");
        out_text(&event, ",\"choices\":[]");
        put_usage(&event, g);
        out_text(&event, "}\n\n");
    }
    out_text(&event, "data: [DONE]\n\n");
    stream_write(g->stream, &event);
    out_free(&event);
}

/* ---- answers ---------------------------------------------------------------------------------------------------------------
 */

static void put_answer(generation *g)
{
    out *o = &g->request->answer;
    g->request->status = 200;
    put_head(o, g, g->plan->chat ? "chat.completion" : "text_completion");
    out_text(o, ",\"choices\":[{\"index\":0,");
    out_text(o, g->plan->chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"text\":");
    out_quoted(o, g->text.bytes ? g->text.bytes : "", g->text.length);
    out_text(o, g->plan->chat ? "}" : "");
    put_finish(o, g->finish);
    out_text(o, "]");
    put_usage(o, g);
    out_text(o, "}");
}

void generation_fail(generation *g, ww_status status)
{
    char message[1024];
    text_without_calls(message, sizeof message, ww_error_message());
    g->status = status;
    g->finish = "stop";
    if (g->request) {
        request_fail_status(g->request, status);
    } else {
        out event = {0};
        out_text(&event, "data: {\"error\":{\"message\":");
        out_quoted(&event, message, strlen(message));
        out_text(&event, ",\"type\":\"server_error\"}}\n\n");
        stream_write(g->stream, &event);
        out_free(&event);
    }
}

void generation_end(generation *g)
{
    finish_text(g);
    if (g->status == WW_OK && g->stream)
        end_stream(g);
    else if (g->status == WW_OK)
        put_answer(g);
    if (g->stream) {
        stream_end(g->stream);
        stream_release(g->stream);
    } else {
        request_done(g->request);
    }
    ww_session_destroy(g->session);
    text_stream_free(&g->pieces);
    out_free(&g->text);
    generation_plan_free(g->plan);
    memory_free(g);
}
