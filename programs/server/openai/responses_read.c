/* Reading requests for responses, as requests of conversations. */
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/openai/responses.h"

static bool text_is(const char *value, const char *text)
{
    return value && json_type_of(value) == JSON_TEXT && json_text_is(value, text, strlen(text));
}

/* Writes ,"name":value if there is one. */
static void put_member(out *o, const char *name, const char *value)
{
    if (!value)
        return;
    out_format(o, ",\"%s\":", name);
    out_bytes(o, value, (size_t)(json_end(value) - value));
}

/* Refuses what would need answers to be kept, or would change the text. */
static bool refuse_others(request *r, const char *body)
{
    static const struct {
        const char *name, *neutral, *why;
    } OTHERS[] = {{"previous_response_id", "", "answers are not kept; send the whole conversation as input"},
                  {"conversation", "", "conversations are not kept; send the whole conversation as input"},
                  {"prompt", "", "prompts are not kept; send instructions and input"},
                  {"background", "false", "is not supported: the answer would have to be kept"},
                  {"reasoning", "{}", "is not supported; leave it out, and the model decides how long it thinks"},
                  {"include", "[]", "is not supported"},
                  {"top_logprobs", "0", "is not supported; /v1/chat/completions has log probabilities"},
                  {"truncation", "\"disabled\"", "only disabled is supported: nothing is cut out of a conversation"},
                  {"context_management", "", "is not supported: nothing is cut out of a conversation"}};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        const char *value = json_given(body, OTHERS[i].name);
        const size_t bytes = value ? (size_t)(json_end(value) - value) : 0;
        if (value && (bytes != strlen(OTHERS[i].neutral) || memcmp(value, OTHERS[i].neutral, bytes) != 0))
            return request_fail(r, 400, "%s: %s", OTHERS[i].name, OTHERS[i].why);
    }
    return true;
}

/* ---- the conversation ---------------------------------------------------------------------------------------------------- */

/* Calls that follow each other are one message. Returns the last of them; NULL: the request failed. */
static const char *put_calls(request *r, out *o, const char *at)
{
    out_text(o, "{\"role\":\"assistant\",\"tool_calls\":[");
    for (bool first = true;; first = false) {
        const char *name = json_given(at, "name"), *arguments = json_given(at, "arguments"), *next = json_next(at);
        if (!name || json_type_of(name) != JSON_TEXT || !arguments || json_type_of(arguments) != JSON_TEXT) {
            request_fail(r, 400, "input: a function_call needs name and arguments, which are texts");
            return NULL;
        }
        out_text(o, first ? "{\"type\":\"function\"" : ",{\"type\":\"function\"");
        put_member(o, "id", json_given(at, "call_id"));
        out_text(o, ",\"function\":{\"name\":");
        out_bytes(o, name, (size_t)(json_end(name) - name));
        put_member(o, "arguments", arguments);
        out_text(o, "}}");
        if (!next || json_type_of(next) != JSON_OBJECT || !text_is(json_given(next, "type"), "function_call"))
            break;
        at = next;
    }
    out_text(o, "]}");
    return at;
}

/* Writes the message of an item of the input. Returns the last item that it is made of; NULL: the request failed. */
static const char *put_item(request *r, out *o, const char *at)
{
    const char *type = json_type_of(at) == JSON_OBJECT ? json_given(at, "type") : NULL;
    const char *role = json_given(at, "role"), *output = json_given(at, "output");
    if (text_is(type, "function_call"))
        return put_calls(r, o, at);
    if (text_is(type, "function_call_output") && output) {
        out_text(o, "{\"role\":\"tool\"");
        put_member(o, "tool_call_id", json_given(at, "call_id"));
        put_member(o, "content", output);
        out_text(o, "}");
        return at;
    }
    if ((!type || text_is(type, "message")) && role) {
        out_text(o, "{\"role\":");
        out_bytes(o, role, (size_t)(json_end(role) - role));
        put_member(o, "content", json_given(at, "content"));
        out_text(o, "}");
        return at;
    }
    request_fail(r, 400, "input: an item is a message with role and content, a function_call or a function_call_output");
    return NULL;
}

static bool put_messages(request *r, const char *body, out *o)
{
    const char *instructions = json_given(body, "instructions"), *input = json_given(body, "input");
    out_text(o, ",\"messages\":[");
    if (instructions) {
        out_text(o, "{\"role\":\"system\"");
        put_member(o, "content", instructions);
        out_text(o, "},");
    }
    if (input && json_type_of(input) == JSON_TEXT) {
        out_text(o, "{\"role\":\"user\"");
        put_member(o, "content", input);
        out_text(o, "}]");
        return true;
    }
    if (!input || json_type_of(input) != JSON_LIST || !json_first(input))
        return request_fail(r, 400, "input: a text or a list of items is needed");
    for (const char *at = json_first(input); at; at = json_next(at)) {
        out_text(o, at == json_first(input) ? "" : ",");
        at = put_item(r, o, at);
        if (!at)
            return false;
    }
    out_text(o, "]");
    return true;
}

/* ---- tools and the form of the text -------------------------------------------------------------------------------------- */

static bool put_tools(request *r, const char *body, out *o)
{
    const char *tools = json_given(body, "tools"), *choice = json_given(body, "tool_choice");
    size_t number = 0;
    if (tools && json_type_of(tools) != JSON_LIST)
        return request_fail(r, 400, "tools: a list is needed");
    out_text(o, tools ? ",\"tools\":[" : "");
    for (const char *at = tools ? json_first(tools) : NULL; at; at = json_next(at), number++) {
        const char *name = json_type_of(at) == JSON_OBJECT ? json_given(at, "name") : NULL;
        if (!name || !text_is(json_given(at, "type"), "function"))
            return request_fail(r, 400, "tools[%zu]: only functions are supported: {\"type\": \"function\", \"name\": ...}",
                                number);
        out_text(o, number > 0 ? ",{\"type\":\"function\",\"function\":{\"name\":"
                               : "{\"type\":\"function\",\"function\":{\"name\":");
        out_bytes(o, name, (size_t)(json_end(name) - name));
        put_member(o, "description", json_given(at, "description"));
        put_member(o, "parameters", json_given(at, "parameters"));
        out_text(o, "}}");
    }
    out_text(o, tools ? "]" : "");
    if (choice && json_type_of(choice) == JSON_OBJECT && text_is(json_given(choice, "type"), "function")) {
        out_text(o, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"type\":\"function\"");
        put_member(o, "name", json_given(choice, "name"));
        out_text(o, "}}");
        return true;
    }
    put_member(o, "tool_choice", choice);
    return true;
}

static bool put_format(request *r, const char *body, out *o)
{
    const char *text = json_given(body, "text");
    const char *format = text && json_type_of(text) == JSON_OBJECT ? json_given(text, "format") : NULL;
    if (text && json_type_of(text) != JSON_OBJECT)
        return request_fail(r, 400, "text: an object is needed");
    if (format && text_is(json_given(format, "type"), "json_schema") && !json_given(format, "schema"))
        return request_fail(r, 400, "text.format.schema: a JSON schema is needed");
    put_member(o, "response_format", format); /* the schema may stand beside the type there, too */
    return true;
}

bool responses_translate(request *r, const char *body, out *chat, out *echo)
{
    static const char *const SAME[] = {
        "temperature",        "top_p",      "stream", "seed", "stop", "frequency_penalty", "presence_penalty",
        "repetition_penalty", "logit_bias", "grammar"};
    static const struct {
        const char *name, *otherwise;
    } REPEATED[] = {{"instructions", "null"},
                    {"metadata", "{}"},
                    {"max_output_tokens", "null"},
                    {"temperature", "1"},
                    {"top_p", "1"},
                    {"tools", "[]"},
                    {"tool_choice", "\"auto\""},
                    {"text", "{\"format\":{\"type\":\"text\"}}"}};
    out_text(chat, "{\"logprobs\":false");
    put_member(chat, "model", json_given(body, "model"));
    put_member(chat, "max_completion_tokens", json_given(body, "max_output_tokens"));
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++)
        put_member(chat, SAME[i], json_given(body, SAME[i]));
    if (!refuse_others(r, body) || !put_messages(r, body, chat) || !put_tools(r, body, chat) || !put_format(r, body, chat))
        return false;
    out_text(chat, "}");
    for (size_t i = 0; i < sizeof REPEATED / sizeof *REPEATED; i++) {
        const char *value = json_given(body, REPEATED[i].name);
        put_member(echo, REPEATED[i].name, value ? value : REPEATED[i].otherwise);
    }
    out_text(echo, ",\"parallel_tool_calls\":true,\"previous_response_id\":null,\"store\":false,\"truncation\":\"disabled\"");
    return chat->failed || echo->failed ? request_fail_status(r, memory_failed("a conversation", chat->length)) : true;
}
