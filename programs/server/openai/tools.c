/* Tools: the model's template gets them, and calls are read from the generated text, in the form <tool_call>{"name": ...,
 * "arguments": {...}}</tool_call>. If a call is required, its tag goes at the end of the prompt, and a grammar made of the
 * tools' schemas constrains the rest. */
#include <string.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/strings/text_buffer.h"
#include "server/openai/generation.h"

static const char OPEN[] = "<tool_call>", CLOSE[] = "</tool_call>";

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static bool text_is(const char *value, const char *text)
{
    return value && json_type_of(value) == JSON_TEXT && json_text_is(value, text, strlen(text));
}

/* The function of a tool, {"type": "function", "function": {...}}; NULL if it has another form. */
static const char *function_of(const char *tool)
{
    const char *function = json_type_of(tool) == JSON_OBJECT && text_is(json_given(tool, "type"), "function")
                               ? json_given(tool, "function")
                               : NULL;
    const char *name = function && json_type_of(function) == JSON_OBJECT ? json_given(function, "name") : NULL;
    return name && json_type_of(name) == JSON_TEXT ? function : NULL;
}

static void put_value(out *o, const char *value)
{
    out_bytes(o, value, (size_t)(json_end(value) - value));
}

/* Writes the schema of a call to any of the tools, or only to the named one (a JSON string; NULL: any). Returns how many
 * match. */
static size_t put_schema(out *o, const char *tools, const char *wanted)
{
    size_t count = 0;
    out_text(o, "{\"anyOf\":[");
    for (const char *at = json_first(tools); at; at = json_next(at)) {
        const char *function = function_of(at), *name = json_given(function, "name");
        const char *parameters = json_given(function, "parameters");
        const size_t bytes = (size_t)(json_end(name) - name);
        if (wanted && ((size_t)(json_end(wanted) - wanted) != bytes || memcmp(wanted, name, bytes) != 0))
            continue;
        out_text(o, count++ > 0 ? ",{\"type\":\"object\",\"properties\":{\"name\":{\"const\":"
                                : "{\"type\":\"object\",\"properties\":{\"name\":{\"const\":");
        put_value(o, name);
        out_text(o, "},\"arguments\":");
        put_value(o, parameters ? parameters : "{\"type\":\"object\"}");
        out_text(o, "},\"required\":[\"name\",\"arguments\"],\"additionalProperties\":false}");
    }
    out_text(o, "]}");
    return count;
}

static bool force_call(request *r, const served_model *m, const char *tools, const char *wanted)
{
    generation_plan *p = r->plan;
    out schema = {0};
    if (p->grammars[0]) {
        request_fail(r, 400, "tool_choice: a call cannot be required together with response_format or grammar");
        return false;
    }
    ww_status status = WW_OK;
    if (put_schema(&schema, tools, wanted) == 0) {
        out_free(&schema);
        return request_fail(r, 400, "tool_choice: there is no tool with this name");
    }
    if (schema.failed)
        status = memory_failed("a schema", schema.length);
    for (size_t i = 0; status == WW_OK && i < p->choices; i++)
        status = ww_grammar_create(m->model, WW_GRAMMAR_JSON_SCHEMA, schema.bytes, schema.length, &p->grammars[i]);
    out_free(&schema);
    p->tool_forced = true;
    return status == WW_OK ? true : request_fail_status(r, status);
}

bool tools_read(request *r, const served_model *m, const char *body)
{
    generation_plan *p = r->plan;
    const char *tools = json_given(body, "tools"), *choice = json_given(body, "tool_choice");
    size_t count = 0;
    if (!tools || (json_type_of(tools) == JSON_LIST && !json_first(tools)))
        return choice && !text_is(choice, "none") && !text_is(choice, "auto")
                   ? request_fail(r, 400, "tool_choice: there are no tools")
                   : true;
    if (json_type_of(tools) != JSON_LIST)
        return request_fail(r, 400, "tools: a list is needed");
    for (const char *at = json_first(tools); at; at = json_next(at), count++)
        if (!function_of(at))
            return request_fail(r, 400, "tools[%zu]: {\"type\": \"function\", \"function\": {\"name\": ...}} is needed", count);
    if (text_is(choice, "none"))
        return true;
    const char *template = ww_model_chat_template(m->model);
    if (!template || !strstr(template, "tools") || !strstr(template, OPEN))
        return request_fail(r, 400, "tools: the chat template of this model does not define tools with %s", OPEN);
    p->tools = true;
    if (!choice || text_is(choice, "auto"))
        return true;
    if (text_is(choice, "required"))
        return force_call(r, m, tools, NULL);
    const char *function = json_type_of(choice) == JSON_OBJECT ? function_of(choice) : NULL;
    return function ? force_call(r, m, tools, json_given(function, "name"))
                    : request_fail(r, 400, "tool_choice: none, auto, required or a function is needed");
}

/* ---- the conversation ---------------------------------------------------------------------------------------------------- */

/* Writes the calls of an earlier answer. Their arguments are JSON in a string in the API, and objects for templates. */
static bool put_earlier_calls(request *r, out *o, const char *calls)
{
    out_text(o, ",\"tool_calls\":[");
    for (const char *at = json_type_of(calls) == JSON_LIST ? json_first(calls) : NULL; at; at = json_next(at)) {
        const char *function = function_of(at);
        json_fault fault;
        if (!function)
            return request_fail(r, 400, "messages.tool_calls: {\"type\": \"function\", \"function\": {...}} is needed");
        char *arguments = request_copy_text(r, json_given(function, "arguments"), "messages.tool_calls.function.arguments");
        if (!arguments)
            return false;
        out_text(o, at != json_first(calls) ? ",{\"type\":\"function\",\"function\":{\"name\":"
                                            : "{\"type\":\"function\",\"function\":{\"name\":");
        put_value(o, json_given(function, "name"));
        out_text(o, ",\"arguments\":");
        if (json_check(arguments, strlen(arguments), &fault))
            put_value(o, json_root(arguments));
        else
            out_quoted(o, arguments, strlen(arguments));
        out_text(o, "}}");
        memory_free(arguments);
    }
    out_text(o, "]");
    return true;
}

/* Writes a message with its content as one text. */
static bool put_message(request *r, out *o, const char *message)
{
    const char *role = json_type_of(message) == JSON_OBJECT ? json_given(message, "role") : NULL;
    const char *content = role ? json_given(message, "content") : NULL,
               *calls = role ? json_given(message, "tool_calls") : NULL;
    bool known = false;
    for (const char *const *name = (const char *const[]){"system", "developer", "user", "assistant", "tool", NULL}; *name;
         name++)
        known = known || text_is(role, *name);
    if (!known)
        return request_fail(r, 400, "messages.role: system, developer, user, assistant or tool is needed");
    if (!content && !calls)
        return request_fail(r, 400, "messages.content: a text is needed");
    out_text(o, "{\"role\":");
    put_value(o, text_is(role, "developer") ? "\"system\"" : role);
    out_text(o, ",\"content\":");
    if (content) {
        char *text = message_text(r, content);
        if (!text)
            return false;
        out_quoted(o, text, strlen(text));
        memory_free(text);
    } else {
        out_text(o, "\"\"");
    }
    if (calls && !put_earlier_calls(r, o, calls))
        return false;
    out_text(o, "}");
    return true;
}

bool tools_tokenize(request *r, const served_model *m, const char *body)
{
    generation_plan *p = r->plan;
    const char *messages = json_given(body, "messages"), *tools = json_given(body, "tools");
    out json = {0};
    bool written = true;
    out_text(&json, "{\"messages\":[");
    for (const char *at = json_first(messages); written && at; at = json_next(at)) {
        out_text(&json, at != json_first(messages) ? "," : "");
        written = put_message(r, &json, at);
    }
    out_text(&json, "]");
    if (p->tools) {
        out_text(&json, ",\"tools\":");
        put_value(&json, tools);
    }
    out_text(&json, "}");
    const char *behind = p->tool_forced ? "<tool_call>\n" : "";
    size_t capacity = json.length + 256; /* mostly enough, so that the template runs once */
    ww_status status = json.failed ? memory_failed("a conversation", json.length) : written ? WW_OUT_OF_RANGE : WW_OK;
    for (int i = 0; i < 2 && status == WW_OUT_OF_RANGE; i++, capacity = p->prompt_count) {
        memory_free(p->prompt);
        p->prompt = memory_alloc(capacity * sizeof *p->prompt);
        status = p->prompt ? ww_model_chat_json_tokens(m->model, json.bytes, behind, p->prompt, capacity, &p->prompt_count)
                           : memory_failed("tokens", capacity * sizeof *p->prompt);
    }
    out_free(&json);
    return !written ? false : status == WW_OK ? true : request_fail_status(r, status);
}

/* ---- calls in texts ------------------------------------------------------------------------------------------------------ */

size_t tools_begin(const generation *g)
{
    const generation_plan *p = g->answer->plan;
    const char *at = p->tools && g->text.bytes ? memmem(g->text.bytes, g->text.length, OPEN, sizeof OPEN - 1) : NULL;
    return p->tool_forced ? 0 : at ? (size_t)(at - g->text.bytes) : g->text.length;
}

size_t tools_held(const generation *g)
{
    const size_t left = tools_begin(g) > g->sent ? tools_begin(g) - g->sent : 0;
    for (size_t held = left < sizeof OPEN - 2 ? left : sizeof OPEN - 2; g->answer->plan->tools && held > 0; held--)
        if (memcmp(g->text.bytes + g->sent + left - held, OPEN, held) == 0)
            return held;
    return 0;
}

/* The index of a call in its list; `indexed`: written with the call, as events need it. */
typedef struct call_place {
    size_t number;
    bool indexed;
} call_place;

/* Writes a call from its JSON in the text; false if that is not a call. */
static bool put_call(out *o, const generation *g, text_span json, call_place at)
{
    const size_t bytes = json.to - json.from;
    if (bytes == 0)
        return false;
    char *text = memory_copy_text(g->text.bytes + json.from, bytes);
    json_fault fault;
    bool written = false;
    if (text && json_check(text, bytes, &fault)) {
        const char *root = json_root(text), *name = json_given(root, "name"), *arguments = json_given(root, "arguments");
        written = name && json_type_of(name) == JSON_TEXT && arguments && json_type_of(arguments) == JSON_OBJECT;
        if (written) {
            out_text(o, at.number > 0 ? ",{" : "[{");
            if (at.indexed)
                out_format(o, "\"index\":%zu,", at.number);
            out_format(o, "\"id\":\"call_%llu_%zu_%zu\",\"type\":\"function\",\"function\":{\"name\":",
                       (unsigned long long)g->answer->number, g->number, at.number);
            put_value(o, name);
            out_text(o, ",\"arguments\":");
            out_quoted(o, arguments, (size_t)(json_end(arguments) - arguments));
            out_text(o, "}}");
        }
    }
    o->failed = o->failed || !text;
    memory_free(text);
    return written;
}

size_t tools_put_calls(out *o, const generation *g, bool indexed)
{
    const char *const text = g->text.bytes ? g->text.bytes : "", *const end = text + g->text.length, *at = text;
    size_t count = 0;
    if (g->answer->plan->tool_forced)
        count += put_call(o, g, (text_span){0, g->text.length}, (call_place){0, indexed});
    while (!g->answer->plan->tool_forced && (at = memmem(at, (size_t)(end - at), OPEN, sizeof OPEN - 1))) {
        at += sizeof OPEN - 1;
        const char *close = memmem(at, (size_t)(end - at), CLOSE, sizeof CLOSE - 1);
        const char *stop = close ? close : end;
        const text_span json = {(size_t)(at - text), (size_t)(stop - text)};
        count += put_call(o, g, json, (call_place){count, indexed});
        at = stop;
    }
    out_text(o, count > 0 ? "]" : "");
    return count;
}
