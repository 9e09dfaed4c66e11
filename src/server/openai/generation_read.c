/* Reading requests for texts. */
#include <string.h>
#include <sys/random.h>

#include "base/json_value.h"
#include "base/memory.h"
#include "server/openai/generation.h"

enum { MESSAGES_MAX = 1024 };

void generation_plan_free(void *plan)
{
    generation_plan *p = plan;
    if (!p)
        return;
    for (size_t i = 0; i < p->stop_count; i++)
        memory_free(p->stops[i]);
    ww_grammar_destroy(p->sampling.grammar);
    memory_free(p->prompt);
    memory_free(p);
}

/* ---- how to choose tokens, and when to end ---------------------------------------------------------------------------------
 */

static bool add_stop(request *r, const char *value, generation_plan *p)
{
    if (p->stop_count == STOPS_MAX)
        return request_fail(r, 400, "stop: more than %d", STOPS_MAX);
    char *text = request_copy_text(r, value, "stop");
    if (!text)
        return false;
    p->stops[p->stop_count++] = text;
    return text[0] != '\0' ? true : request_fail(r, 400, "stop: a text is empty");
}

static bool read_stops(request *r, const char *body, generation_plan *p)
{
    const char *stop = json_given(body, "stop");
    if (!stop)
        return true;
    if (json_type_of(stop) != JSON_LIST)
        return add_stop(r, stop, p);
    for (const char *at = json_first(stop); at; at = json_next(at))
        if (!add_stop(r, at, p))
            return false;
    return true;
}

static bool read_sampling(request *r, const char *body, generation_plan *p)
{
    ww_sampling *s = &p->sampling;
    int64_t seed = 0;
    *s = ww_sampling_default();
    s->temperature = 1;
    if (!json_given(body, "seed"))
        (void)!getrandom(&seed, sizeof seed, 0); /* any seed will do */
    if (!request_read_integer(r, body, "seed", INT64_MIN, &seed) ||
        !request_read_number(r, body, "temperature", &s->temperature) || !request_read_number(r, body, "top_p", &s->top_p))
        return false;
    s->seed = (uint64_t)seed;
    if (s->temperature < 0 || s->temperature > 2)
        return request_fail(r, 400, "temperature: is %g; 0 to 2 are possible", s->temperature);
    return s->top_p > 0 && s->top_p <= 1 ? true
                                         : request_fail(r, 400, "top_p: is %g; above 0 and up to 1 is possible", s->top_p);
}

/* What is not supported, but where it asks for nothing. */
static bool refuse_others(request *r, const char *body)
{
    const char *n = json_given(body, "n"), *logprobs = json_given(body, "logprobs"), *tools = json_given(body, "tools");
    if (n && (json_type_of(n) != JSON_NUMBER || json_number_of(n).integer != 1))
        return request_fail(r, 501, "n: only 1 is supported");
    if (logprobs && json_type_of(logprobs) != JSON_FALSE)
        return request_fail(r, 501, "logprobs: are not supported");
    if (tools && json_type_of(tools) == JSON_LIST && json_first(tools))
        return request_fail(r, 501, "tools: are not supported");
    return true;
}

static generation_plan *read_common(request *r, const char *body, bool chat)
{
    generation_plan *p = memory_alloc_zeroed(1, sizeof *p);
    if (!p) {
        request_fail_status(r, memory_failed("a request", sizeof *p));
        return NULL;
    }
    r->plan = p;
    r->plan_free = generation_plan_free;
    p->chat = chat;
    p->tokens_max = chat ? INT64_MAX : 16;
    const char *options = json_given(body, "stream_options");
    const bool read = read_sampling(r, body, p) && read_stops(r, body, p) && refuse_others(r, body) &&
                      request_read_bool(r, body, "stream", &p->stream) &&
                      (!options || request_read_bool(r, options, "include_usage", &p->usage)) &&
                      request_read_integer(r, body, "max_tokens", 0, &p->tokens_max) &&
                      request_read_integer(r, body, "max_completion_tokens", 0, &p->tokens_max);
    return read ? p : NULL;
}

static bool text_is(const char *value, const char *text)
{
    return value && json_type_of(value) == JSON_TEXT && json_text_is(value, text, strlen(text));
}

/* What the text must be: `response_format`, or `grammar`, a text in GBNF. */
static bool read_grammar(request *r, const served_model *m, const char *body)
{
    static const char object[] = "{\"type\":\"object\"}";
    generation_plan *p = r->plan;
    const char *format = json_given(body, "response_format"), *given = json_given(body, "grammar"), *schema = object;
    const char *type = format && json_type_of(format) == JSON_OBJECT ? json_given(format, "type") : NULL;
    if (format && given)
        return request_fail(r, 400, "grammar: cannot be given beside response_format");
    if (given) {
        char *text = request_copy_text(r, given, "grammar");
        const ww_status status =
            text ? ww_grammar_create(m->model, WW_GRAMMAR_GBNF, text, strlen(text), &p->sampling.grammar) : WW_OK;
        memory_free(text);
        return status == WW_OK ? text != NULL : request_fail_status(r, status);
    }
    if (!format || text_is(type, "text"))
        return true;
    if (text_is(type, "json_schema")) {
        const char *named = json_given(format, "json_schema");
        schema = named && json_type_of(named) == JSON_OBJECT ? json_given(named, "schema") : NULL;
        if (!schema)
            return request_fail(r, 400, "response_format.json_schema.schema: a JSON schema is needed");
    } else if (!text_is(type, "json_object")) {
        return request_fail(r, 400, "response_format.type: text, json_object or json_schema is needed");
    }
    const size_t bytes = (size_t)(json_end(schema) - schema);
    const ww_status status = ww_grammar_create(m->model, WW_GRAMMAR_JSON_SCHEMA, schema, bytes, &p->sampling.grammar);
    return status == WW_OK ? true : request_fail_status(r, status);
}

/* ---- prompts ---------------------------------------------------------------------------------------------------------------
 */

static bool tokenize(request *r, const served_model *m, const char *text)
{
    generation_plan *p = r->plan;
    size_t count = 0;
    ww_status status = ww_model_tokenize(m->model, text, strlen(text), WW_TOKENS_PLAIN, NULL, 0, &count);
    p->prompt = status == WW_OK ? memory_alloc((count + 1) * sizeof *p->prompt) : NULL;
    if (status == WW_OK && !p->prompt)
        status = memory_failed("tokens", count * sizeof *p->prompt);
    if (status == WW_OK)
        status = ww_model_tokenize(m->model, text, strlen(text), WW_TOKENS_PLAIN, p->prompt, count, &p->prompt_count);
    return status == WW_OK ? true : request_fail_status(r, status);
}

static bool check_prompt(request *r, const served_model *m)
{
    generation_plan *p = r->plan;
    const int64_t room = m->info.context - (int64_t)p->prompt_count;
    if (p->prompt_count == 0)
        return request_fail(r, 400, "the prompt has no tokens");
    if (room < 1)
        return request_fail(r, 400, "the prompt has %zu tokens; this model's context has %lld", p->prompt_count,
                            (long long)m->info.context);
    p->tokens_max = p->tokens_max < room ? p->tokens_max : room;
    return true;
}

static bool read_tokens(request *r, const served_model *m, const char *list)
{
    generation_plan *p = r->plan;
    p->prompt = memory_alloc((size_t)(json_end(list) - list) * sizeof *p->prompt);
    if (!p->prompt)
        return request_fail_status(r, memory_failed("tokens", (size_t)(json_end(list) - list) * sizeof *p->prompt));
    for (const char *at = json_first(list); at; at = json_next(at)) {
        const json_number number = json_type_of(at) == JSON_NUMBER ? json_number_of(at) : (json_number){0};
        if (!number.is_integer || number.integer < 0 || number.integer >= m->info.vocabulary)
            return request_fail(r, 400, "prompt: one text, or a list of tokens from 0 to %lld, is needed",
                                (long long)m->info.vocabulary - 1);
        p->prompt[p->prompt_count++] = (int32_t)number.integer;
    }
    return true;
}

bool prepare_completion(request *r)
{
    const char *body = request_body(r);
    const served_model *m = body ? model_of_request(r, body, WW_MODEL_DECODER) : NULL;
    if (!m || !read_common(r, body, false) || !read_grammar(r, m, body))
        return false;
    const char *prompt = json_given(body, "prompt");
    const char *first = prompt && json_type_of(prompt) == JSON_LIST ? json_first(prompt) : NULL;
    if (first && json_type_of(first) == JSON_NUMBER)
        return read_tokens(r, m, prompt) && check_prompt(r, m);
    if (first && !json_next(first))
        prompt = first; /* a list of one */
    char *text = request_copy_text(r, prompt, "prompt");
    const bool read = text && tokenize(r, m, text) && check_prompt(r, m);
    memory_free(text);
    return read;
}

/* The text of a message: a text, or a list of {"type": "text", "text": ...}. */
static char *message_text(request *r, const char *content)
{
    out joined = {0};
    if (!content || json_type_of(content) != JSON_LIST)
        return request_copy_text(r, content, "messages.content");
    for (const char *at = json_first(content); at; at = json_next(at)) {
        char *part = request_copy_text(r, json_given(at, "text"), "messages.content.text");
        if (!part) {
            out_free(&joined);
            return NULL;
        }
        out_text(&joined, part);
        memory_free(part);
    }
    if (!joined.bytes || joined.failed) {
        out_free(&joined);
        request_fail(r, 400, "messages.content: a text is needed");
        return NULL;
    }
    return joined.bytes;
}

static bool read_message(request *r, const char *value, size_t number, ww_chat_message *message)
{
    static const char *const ROLES[][2] = {
        {"system", "system"}, {"developer", "system"}, {"user", "user"}, {"assistant", "assistant"}};
    const char *role = json_type_of(value) == JSON_OBJECT ? json_given(value, "role") : NULL;
    for (size_t i = 0; role && json_type_of(role) == JSON_TEXT && i < sizeof ROLES / sizeof *ROLES; i++)
        if (json_text_is(role, ROLES[i][0], strlen(ROLES[i][0])))
            message->role = ROLES[i][1];
    if (!message->role)
        return request_fail(r, 400, "messages[%zu].role: system, developer, user or assistant is needed", number);
    message->text = message_text(r, json_given(value, "content"));
    return message->text != NULL;
}

/* The conversation as the model's template writes it. Names of special tokens in messages are text: nobody ends a turn by what
 * he says. */
static bool tokenize_chat(request *r, const served_model *m, const ww_chat_message *messages, size_t count)
{
    generation_plan *p = r->plan;
    size_t tokens = 0;
    ww_status status = ww_model_chat_tokens(m->model, messages, count, WW_TOKENS_PLAIN, NULL, 0, &tokens);
    p->prompt = status == WW_OK ? memory_alloc((tokens + 1) * sizeof *p->prompt) : NULL;
    if (status == WW_OK && !p->prompt)
        status = memory_failed("tokens", tokens * sizeof *p->prompt);
    if (status == WW_OK)
        status = ww_model_chat_tokens(m->model, messages, count, WW_TOKENS_PLAIN, p->prompt, tokens, &p->prompt_count);
    return status == WW_OK ? true : request_fail_status(r, status);
}

bool prepare_chat(request *r)
{
    const char *body = request_body(r);
    const served_model *m = body ? model_of_request(r, body, WW_MODEL_DECODER) : NULL;
    if (!m || !read_common(r, body, true) || !read_grammar(r, m, body))
        return false;
    const char *list = json_given(body, "messages");
    const char *first = list && json_type_of(list) == JSON_LIST ? json_first(list) : NULL;
    if (!first)
        return request_fail(r, 400, "messages: a list of messages is needed");
    ww_chat_message *messages = memory_alloc_zeroed(MESSAGES_MAX, sizeof *messages);
    size_t count = 0;
    bool read = messages ? true : request_fail_status(r, memory_failed("messages", MESSAGES_MAX * sizeof *messages));
    for (const char *at = first; read && at; at = json_next(at), count++)
        read = count < MESSAGES_MAX ? read_message(r, at, count, &messages[count])
                                    : request_fail(r, 400, "messages: more than %d", MESSAGES_MAX);
    read = read && tokenize_chat(r, m, messages, count) && check_prompt(r, m);
    for (size_t i = 0; messages && i < MESSAGES_MAX; i++)
        memory_free((void *)(uintptr_t)messages[i].text);
    memory_free(messages);
    return read;
}
