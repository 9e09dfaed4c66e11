/* Answers of /v1/responses: a message with the text, if there is one, and then the calls. */
#include "server/openai/responses.h"

#include <string.h>

#include "base/json/json_value.h"

/* Why the text ended before its end; NULL: it did not. */
static const char *cut_by(const generation *g)
{
    return g->finish && strcmp(g->finish, "length") == 0 ? "max_output_tokens" : NULL;
}

/* ---- items --------------------------------------------------------------------------------------------------------------- */

static void put_part(out *o, const char *text, size_t length)
{
    out_text(o, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
    out_quoted(o, text, length);
    out_text(o, "}");
}

/* Writes the message with the first bytes of the text; `begun`: without any, because it only begins. */
static void put_message(out *o, const generation *g, size_t length, bool begun)
{
    out_format(o, "{\"type\":\"message\",\"id\":\"msg_%llu\",\"role\":\"assistant\",\"status\":\"%s\",\"content\":[",
               (unsigned long long)g->answer->number,
               begun       ? "in_progress"
               : cut_by(g) ? "incomplete"
                           : "completed");
    if (!begun)
        put_part(o, length > 0 ? g->text.bytes : "", length);
    out_text(o, "]}");
}

/* Writes one of the calls that tools_put_calls() has written; `begun`: without its arguments. */
static void put_call(out *o, const generation *g, const char *call, size_t number, bool begun)
{
    const char *function = json_find(call, "function", 8), *id = json_find(call, "id", 2);
    const char *name = json_find(function, "name", 4), *arguments = json_find(function, "arguments", 9);
    out_format(o, "{\"type\":\"function_call\",\"id\":\"fc_%llu_%zu\",\"status\":\"%s\",\"call_id\":",
               (unsigned long long)g->answer->number, number, begun ? "in_progress" : "completed");
    out_bytes(o, id, (size_t)(json_end(id) - id));
    out_text(o, ",\"name\":");
    out_bytes(o, name, (size_t)(json_end(name) - name));
    out_text(o, ",\"arguments\":");
    out_bytes(o, begun ? "\"\"" : arguments, begun ? 2 : (size_t)(json_end(arguments) - arguments));
    out_text(o, "}");
}

/* The calls of the text as a JSON list, "" if there are none. */
static size_t find_calls(const generation *g, out *calls)
{
    return g->answer->plan->tools ? tools_put_calls(calls, g, false) : 0;
}

/* Is there a message, or only calls? */
static bool has_message(const generation *g, size_t calls)
{
    return calls == 0 || g->told || tools_begin(g) > 0;
}

static void put_items(out *o, const generation *g)
{
    out calls = {0};
    const size_t count = find_calls(g, &calls);
    size_t number = has_message(g, count) ? 1 : 0;
    if (number > 0)
        put_message(o, g, tools_begin(g), false);
    for (const char *at = count > 0 ? json_first(calls.bytes) : NULL; at; at = json_next(at), number++) {
        out_text(o, number > 0 ? "," : "");
        put_call(o, g, at, number, false);
    }
    o->failed = o->failed || calls.failed;
    out_free(&calls);
}

/* ---- the answer ---------------------------------------------------------------------------------------------------------- */

/* Writes the response; without a generation it only begins. */
static void put_response(out *o, const generation_answer *a, const generation *g, const char *failure)
{
    const char *cut = g ? cut_by(g) : NULL;
    out_format(o, "{\"id\":\"resp_%llu\",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\",\"model\":",
               (unsigned long long)a->number, (long long)a->created,
               failure ? "failed"
               : cut   ? "incomplete"
               : g     ? "completed"
                       : "in_progress");
    out_quoted(o, a->model->name, strlen(a->model->name));
    out_text(o, ",\"error\":");
    if (failure) {
        out_text(o, "{\"code\":\"server_error\",\"message\":");
        out_quoted(o, failure, strlen(failure));
        out_text(o, "}");
    } else {
        out_text(o, "null");
    }
    out_text(o, cut ? ",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}" : ",\"incomplete_details\":null");
    out_text(o, ",\"output\":[");
    if (g)
        put_items(o, g);
    out_text(o, "]");
    out_text(o, a->plan->echo);
    if (g)
        out_format(o,
                   ",\"usage\":{\"input_tokens\":%zu,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":%lld,"
                   "\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":%lld}}",
                   a->plan->prompt_count, (long long)g->generated, (long long)a->plan->prompt_count + g->generated);
    else
        out_text(o, ",\"usage\":null}");
}

void responses_put(out *o, const generation *g)
{
    put_response(o, g->answer, g, NULL);
}

/* ---- events -------------------------------------------------------------------------------------------------------------- */

static void event_begin(out *o, generation_answer *a, const char *type)
{
    out_format(o, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%lld", type, type, (long long)a->events++);
}

static void event_end(out *o)
{
    out_text(o, "}\n\n");
}

static void put_response_event(out *o, generation_answer *a, const generation *g, const char *type)
{
    event_begin(o, a, type);
    out_text(o, ",\"response\":");
    put_response(o, a, g, NULL);
    event_end(o);
}

/* Begins an event of the message, which is the first item. */
static void message_event_begin(out *o, generation *g, const char *type)
{
    event_begin(o, g->answer, type);
    out_format(o, ",\"item_id\":\"msg_%llu\",\"output_index\":0,\"content_index\":0", (unsigned long long)g->answer->number);
}

static void begin_response(out *o, generation_answer *a)
{
    if (a->events > 0)
        return;
    put_response_event(o, a, NULL, "response.created");
    put_response_event(o, a, NULL, "response.in_progress");
}

static void begin_message(out *o, generation *g)
{
    if (g->told)
        return;
    event_begin(o, g->answer, "response.output_item.added");
    out_text(o, ",\"output_index\":0,\"item\":");
    put_message(o, g, 0, true);
    event_end(o);
    message_event_begin(o, g, "response.content_part.added");
    out_text(o, ",\"part\":");
    put_part(o, "", 0);
    event_end(o);
    g->told = true;
}

static void put_delta(out *o, generation *g, size_t end)
{
    if (end <= g->sent)
        return;
    begin_message(o, g);
    message_event_begin(o, g, "response.output_text.delta");
    out_text(o, ",\"logprobs\":[],\"delta\":");
    out_quoted(o, g->text.bytes + g->sent, end - g->sent);
    event_end(o);
    g->sent = end;
}

void responses_tell(generation *g, size_t end)
{
    out events = {0};
    begin_response(&events, g->answer);
    put_delta(&events, g, end);
    stream_write(g->answer->stream, &events);
    out_free(&events);
}

static void end_message(out *o, generation *g, size_t end)
{
    const char *text = end > 0 ? g->text.bytes : "";
    message_event_begin(o, g, "response.output_text.done");
    out_text(o, ",\"logprobs\":[],\"text\":");
    out_quoted(o, text, end);
    event_end(o);
    message_event_begin(o, g, "response.content_part.done");
    out_text(o, ",\"part\":");
    put_part(o, text, end);
    event_end(o);
    event_begin(o, g->answer, "response.output_item.done");
    out_text(o, ",\"output_index\":0,\"item\":");
    put_message(o, g, end, false);
    event_end(o);
}

static void put_call_events(out *o, generation *g, const char *call, size_t number)
{
    const char *arguments = json_find(json_find(call, "function", 8), "arguments", 9);
    static const char *const TYPES[] = {"response.output_item.added", "response.function_call_arguments.delta",
                                        "response.function_call_arguments.done", "response.output_item.done"};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        event_begin(o, g->answer, TYPES[i]);
        out_format(o, ",\"output_index\":%zu", number);
        if (i == 0 || i == 3) {
            out_text(o, ",\"item\":");
            put_call(o, g, call, number, i == 0);
        } else {
            out_format(o, ",\"item_id\":\"fc_%llu_%zu\",\"%s\":", (unsigned long long)g->answer->number, number,
                       i == 1 ? "delta" : "arguments");
            out_bytes(o, arguments, (size_t)(json_end(arguments) - arguments));
        }
        event_end(o);
    }
}

void responses_end(generation *g)
{
    out events = {0}, calls = {0};
    const size_t count = find_calls(g, &calls), end = tools_begin(g);
    size_t number = has_message(g, count) ? 1 : 0;
    begin_response(&events, g->answer);
    if (number > 0) {
        put_delta(&events, g, end);
        begin_message(&events, g);
        end_message(&events, g, end);
    }
    for (const char *at = count > 0 ? json_first(calls.bytes) : NULL; at; at = json_next(at), number++)
        put_call_events(&events, g, at, number);
    put_response_event(&events, g->answer, g, cut_by(g) ? "response.incomplete" : "response.completed");
    stream_write(g->answer->stream, &events);
    out_free(&events);
    out_free(&calls);
}

void responses_fail(generation_answer *a, const char *message)
{
    out events = {0};
    begin_response(&events, a);
    event_begin(&events, a, "response.failed");
    out_text(&events, ",\"response\":");
    put_response(&events, a, NULL, message);
    event_end(&events);
    stream_write(a->stream, &events);
    out_free(&events);
}
