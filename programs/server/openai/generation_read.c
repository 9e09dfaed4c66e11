/* Reading requests for texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/openai/responses.h"

void generation_plan_free(void *plan)
{
    generation_plan *p = plan;
    if (!p)
        return;
    for (size_t i = 0; i < p->stop_count; i++)
        memory_free(p->stops[i]);
    for (size_t i = 0; i < CHOICES_MAX; i++)
        ww_grammar_destroy(p->grammars[i]);
    memory_free(p->prompt);
    memory_free(p->bias_tokens);
    memory_free(p->biases);
    memory_free(p->echo);
    memory_free(p);
}

/* ---- how to choose tokens, and when to end ------------------------------------------------------------------------------- */

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

static bool read_penalties(request *r, const char *body, ww_sampling *s)
{
    if (!request_read_number(r, body, "frequency_penalty", &s->frequency_penalty) ||
        !request_read_number(r, body, "presence_penalty", &s->presence_penalty) ||
        !request_read_number(r, body, "repetition_penalty", &s->repetition_penalty))
        return false;
    if (s->frequency_penalty < -2 || s->frequency_penalty > 2)
        return request_fail(r, 400, "frequency_penalty: is %g; it must be -2 to 2", s->frequency_penalty);
    if (s->presence_penalty < -2 || s->presence_penalty > 2)
        return request_fail(r, 400, "presence_penalty: is %g; it must be -2 to 2", s->presence_penalty);
    return s->repetition_penalty > 0 && s->repetition_penalty <= 2
               ? true
               : request_fail(r, 400, "repetition_penalty: is %g; it must be above 0 and at most 2", s->repetition_penalty);
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
        !request_read_number(r, body, "temperature", &s->temperature) || !request_read_number(r, body, "top_p", &s->top_p) ||
        !read_penalties(r, body, s))
        return false;
    s->seed = (uint64_t)seed;
    if (s->temperature < 0 || s->temperature > 2)
        return request_fail(r, 400, "temperature: is %g; it must be 0 to 2", s->temperature);
    return s->top_p > 0 && s->top_p <= 1 ? true
                                         : request_fail(r, 400, "top_p: is %g; it must be above 0 and at most 1", s->top_p);
}

/* Reads {"50256": -100}: tokens, and what is added to their logits. */
static bool read_biases(request *r, const served_model *m, const char *body)
{
    enum { BIASES_MAX = 4096 };
    generation_plan *p = r->plan;
    const char *given = json_given(body, "logit_bias");
    int64_t count = 0;
    if (given && json_type_of(given) != JSON_OBJECT)
        return request_fail(r, 400, "logit_bias: an object of tokens and numbers is needed");
    for (const char *key = given ? json_first(given) : NULL; key; key = json_next(key))
        count++;
    if (count > BIASES_MAX)
        return request_fail(r, 400, "logit_bias: %lld tokens; the maximum is %d", (long long)count, BIASES_MAX);
    p->bias_tokens = memory_alloc((size_t)(count + 1) * sizeof *p->bias_tokens);
    p->biases = memory_alloc((size_t)(count + 1) * sizeof *p->biases);
    if (!p->bias_tokens || !p->biases)
        return request_fail_status(r, memory_failed("biases", (size_t)count * sizeof *p->biases));
    p->sampling.bias_tokens = p->bias_tokens;
    p->sampling.biases = p->biases;
    for (const char *key = given ? json_first(given) : NULL; key; key = json_next(key)) {
        const char *value = json_member(key);
        const json_number bias = json_type_of(value) == JSON_NUMBER ? json_number_of(value) : (json_number){.real = NAN};
        const double number = bias.is_integer ? (double)bias.integer : bias.real;
        const size_t digits = strspn(key + 1, "0123456789");
        const int64_t token = digits > 0 && digits < 10 ? strtoll(key + 1, NULL, 10) : INT64_MAX;
        if (key + digits + 2 != json_end(key) || token >= m->info.vocabulary)
            return request_fail(r, 400, "logit_bias: %.*s is not a token from 0 to %lld", (int)(json_end(key) - key), key,
                                (long long)m->info.vocabulary - 1);
        if (!(number >= -100 && number <= 100))
            return request_fail(r, 400, "logit_bias: the bias of %.*s must be -100 to 100", (int)(json_end(key) - key), key);
        p->bias_tokens[p->sampling.bias_count] = (int32_t)token;
        p->biases[p->sampling.bias_count++] = (float)number;
    }
    return true;
}

/* Reads the number of choices, and whether to report log probabilities: true and top_logprobs in a conversation, a number in a
 * completion. */
static bool read_choices(request *r, const char *body, generation_plan *p)
{
    const char *logprobs = json_given(body, "logprobs");
    int64_t choices = 1, top = 0;
    if (!request_read_integer(r, body, "n", 1, &choices))
        return false;
    if (choices > CHOICES_MAX)
        return request_fail(r, 400, "n: is %lld; the maximum is %d", (long long)choices, CHOICES_MAX);
    p->choices = (size_t)choices;
    if (p->chat) {
        if (!request_read_bool(r, body, "logprobs", &p->logprobs) || !request_read_integer(r, body, "top_logprobs", 0, &top))
            return false;
        if (top > 0 && !p->logprobs)
            return request_fail(r, 400, "top_logprobs: needs logprobs");
    } else if (logprobs) {
        p->logprobs = true;
        if (!request_read_integer(r, body, "logprobs", 0, &top))
            return false;
    }
    p->top_logprobs = (int32_t)(top < TOP_LOGPROBS_MAX ? top : TOP_LOGPROBS_MAX);
    return top <= TOP_LOGPROBS_MAX ? true
                                   : request_fail(r, 400, "%s: is %lld; the maximum is %d",
                                                  p->chat ? "top_logprobs" : "logprobs", (long long)top, TOP_LOGPROBS_MAX);
}

/* Is this the value of a parameter that changes nothing: 0, false, an empty text, list or object? */
static bool is_neutral(const char *value)
{
    switch (json_type_of(value)) {
    case JSON_NUMBER: {
        const json_number number = json_number_of(value);
        return number.is_integer ? number.integer == 0 : number.real == 0;
    }
    case JSON_TEXT:
        return json_text_is(value, "", 0);
    case JSON_LIST:
    case JSON_OBJECT:
        return !json_first(value);
    default:
        return json_type_of(value) == JSON_FALSE;
    }
}

/* Refuses parameters of OpenAI's API that would change the text and that are not supported. */
static bool refuse_others(request *r, const char *body)
{
    if (json_given(body, "reasoning_effort"))
        return request_fail(r, 400,
                            "reasoning_effort: is not supported; leave it out, and the model decides how long it thinks");
    static const char *const names[] = {"echo", "suffix", "functions"};
    int64_t best_of = 1, choices = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = json_given(body, names[i]);
        if (value && !is_neutral(value))
            return request_fail(r, 400, "%s: is not supported", names[i]);
    }
    if (!request_read_integer(r, body, "best_of", 0, &best_of) || !request_read_integer(r, body, "n", 1, &choices))
        return false;
    return best_of <= choices ? true : request_fail(r, 400, "best_of: is not supported; n makes several choices");
}

static generation_plan *read_common(request *r, const char *body, bool chat)
{
    generation_plan *p = request_plan_create(r, sizeof *p, generation_plan_free);
    if (!p)
        return NULL;
    p->chat = chat;
    p->tokens_max = chat ? INT64_MAX : 16;
    const char *options = json_given(body, "stream_options");
    const bool read = refuse_others(r, body) && read_sampling(r, body, p) && read_stops(r, body, p) &&
                      read_choices(r, body, p) && request_read_bool(r, body, "stream", &p->stream) &&
                      (!options || request_read_bool(r, options, "include_usage", &p->usage)) &&
                      request_read_integer(r, body, "max_tokens", 0, &p->tokens_max) &&
                      request_read_integer(r, body, "max_completion_tokens", 0, &p->tokens_max);
    return read ? p : NULL;
}

static bool text_is(const char *value, const char *text)
{
    return value && json_type_of(value) == JSON_TEXT && json_text_is(value, text, strlen(text));
}

/* Makes a grammar for each choice. */
static bool make_grammars(request *r, const served_model *m, ww_grammar_kind kind, const char *text, size_t bytes)
{
    generation_plan *p = r->plan;
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < p->choices; i++)
        status = ww_grammar_create(m->model, kind, text, bytes, &p->grammars[i]);
    if (status == WW_UNSUPPORTED) /* an unknown keyword or type is the client's mistake */
        return request_fail(r, 400, "%s", ww_error_message());
    return status == WW_OK ? true : request_fail_status(r, status);
}

/* Reads what the text must match: `response_format`, or `grammar`, a text in GBNF. A schema may also be a member of the format
 * itself, as in llama.cpp's API. */
static bool read_grammar(request *r, const served_model *m, const char *body)
{
    static const char object[] = "{\"type\":\"object\"}";
    const char *format = json_given(body, "response_format"), *given = json_given(body, "grammar"), *schema = object;
    const bool is_object = format && json_type_of(format) == JSON_OBJECT;
    const char *type = is_object ? json_given(format, "type") : NULL, *direct = is_object ? json_given(format, "schema") : NULL;
    if (format && given)
        return request_fail(r, 400, "grammar: cannot be given together with response_format");
    if (given) {
        char *text = request_copy_text(r, given, "grammar");
        const bool made = text && make_grammars(r, m, WW_GRAMMAR_GBNF, text, strlen(text));
        memory_free(text);
        return made;
    }
    if (!format || text_is(type, "text"))
        return true;
    if (text_is(type, "json_schema")) {
        const char *named = json_given(format, "json_schema");
        schema = named && json_type_of(named) == JSON_OBJECT ? json_given(named, "schema") : direct;
        if (!schema)
            return request_fail(r, 400, "response_format.json_schema.schema: a JSON schema is needed");
    } else if (!text_is(type, "json_object")) {
        return request_fail(r, 400, "response_format.type: text, json_object or json_schema is needed");
    } else if (direct) {
        schema = direct;
    }
    return make_grammars(r, m, WW_GRAMMAR_JSON_SCHEMA, schema, (size_t)(json_end(schema) - schema));
}

/* ---- prompts ------------------------------------------------------------------------------------------------------------- */

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
    const served_model *m = body ? model_of_request(r, body, TASK_GENERATE) : NULL;
    if (!m || !read_common(r, body, false) || !read_biases(r, m, body) || !read_grammar(r, m, body))
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

char *message_text(request *r, const char *content)
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

static bool read_chat(request *r, const char *body)
{
    const served_model *m = body ? model_of_request(r, body, TASK_GENERATE) : NULL;
    if (!m || !read_common(r, body, true) || !read_biases(r, m, body) || !read_grammar(r, m, body) || !tools_read(r, m, body))
        return false;
    const char *list = json_given(body, "messages");
    if (!list || json_type_of(list) != JSON_LIST || !json_first(list))
        return request_fail(r, 400, "messages: a list of messages is needed");
    return tools_tokenize(r, m, body) && check_prompt(r, m);
}

bool prepare_chat(request *r)
{
    const char *body = request_body(r);
    return body && read_chat(r, body);
}

bool prepare_response(request *r)
{
    const char *body = request_body(r);
    out chat = {0}, echo = {0};
    const bool read = body && responses_translate(r, body, &chat, &echo) && read_chat(r, chat.bytes);
    out_free(&chat);
    if (read)
        ((generation_plan *)r->plan)->echo = echo.bytes;
    else
        out_free(&echo);
    return read;
}
