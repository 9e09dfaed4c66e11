/* `warpwave model logits` and `generate`: feed a prompt to a decoder. */
#include <stdio.h>
#include <string.h>

#include "base/files/output.h"
#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/file_uses.h"
#include "warpwave/json.h"
#include "warpwave/model/model.h"
#include "warpwave/terminal.h"
#include "warpwave/text/lines.h"

/* Tokens of a text; the caller frees `ids` with memory_free(). */
typedef struct tokens {
    int32_t *ids;
    size_t count;
} tokens;

static ww_status tokenize(const model_call *call, const char *text, uint32_t flags, tokens *out)
{
    size_t count = 0;
    ww_status status = ww_model_tokenize(call->model, text, strlen(text), flags, NULL, 0, &count);
    if (status != WW_OK)
        return status;
    out->ids = memory_alloc((count + 1) * sizeof *out->ids);
    if (!out->ids)
        return memory_failed("tokens", (count + 1) * sizeof *out->ids);
    status = ww_model_tokenize(call->model, text, strlen(text), flags, out->ids, count, &out->count);
    if (status == WW_OK && out->count == 0)
        status = command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--prompt has no tokens"));
    return status;
}

/* Tokenizes the prompt in the model's chat template. --plain applies to the messages, not to the template. */
static ww_status tokenize_chat(const model_call *call, tokens *out)
{
    const model_settings *s = &call->settings;
    const ww_chat_message messages[2] = {{"system", s->system}, {"user", s->prompt}};
    const ww_chat_message *first = s->system ? messages : messages + 1;
    const size_t count = s->system ? 2 : 1;
    const uint32_t flags = s->plain ? WW_TOKENS_PLAIN : 0;
    size_t room = 0;
    ww_status status = ww_model_chat_tokens(call->model, first, count, flags, NULL, 0, &room);
    if (status != WW_OK)
        return status;
    out->ids = memory_alloc((room + 1) * sizeof *out->ids);
    if (!out->ids)
        return memory_failed("tokens", (room + 1) * sizeof *out->ids);
    return ww_model_chat_tokens(call->model, first, count, flags, out->ids, room, &out->count);
}

/* Opens the model and feeds it the prompt. */
static ww_status feed_prompt(model_call *call, ww_session **session, tokens *prompt)
{
    const model_settings *s = &call->settings;
    ww_status status = model_call_open(call);
    if (status == WW_OK)
        status = ww_session_create(call->model, session);
    if (status == WW_OK)
        status = s->chat ? tokenize_chat(call, prompt) : tokenize(call, s->prompt, s->plain ? WW_TOKENS_PLAIN : 0, prompt);
    if (status == WW_OK)
        status = interrupt_check();
    return status == WW_OK ? ww_session_feed(*session, prompt->ids, prompt->count) : status;
}

/* ---- logits ----------------------------------------------------------------------------------------------------------------
 */

enum { NPY_HEADER_BYTES = 128 };

/* Writes floats as a .npy of rank 1. */
static ww_status write_list(const char *path, const float *values, int64_t count)
{
    char header[NPY_HEADER_BYTES];
    output file;
    const uint16_t length = NPY_HEADER_BYTES - 10;
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    memcpy(header + 8, &length, sizeof length);
    const int used =
        snprintf(header + 10, length, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld,), }", (long long)count);
    header[10 + used] = ' ';
    header[NPY_HEADER_BYTES - 1] = '\n';
    ww_status status = output_open(&file, output_path(path));
    if (status == WW_OK)
        status = output_write(&file, header, sizeof header);
    if (status == WW_OK)
        status = output_write(&file, values, (size_t)count * sizeof *values);
    if (status == WW_OK)
        status = output_finish(&file);
    output_discard(&file);
    return status;
}

static int64_t first_largest(const float *values, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        best = values[i] > values[best] ? i : best;
    return best;
}

ww_status model_logits_run(model_call *call)
{
    const model_settings *s = &call->settings;
    const file_use uses[] = {{.what = "MODEL", .path = call->path}, {.what = "--out", .path = s->out, .output = true}};
    ww_session *session = NULL;
    tokens prompt = {0};
    float *logits = NULL;
    FILE *report = NULL;
    ww_status status = file_uses_check(uses, 2);
    if (status == WW_OK)
        status = model_report_to(s, &report);
    if (status == WW_OK)
        status = feed_prompt(call, &session, &prompt);
    const int64_t count = call->info.vocabulary;
    if (status == WW_OK && !(logits = memory_alloc((size_t)count * sizeof *logits)))
        status = memory_failed("logits", (size_t)count * sizeof *logits);
    if (status == WW_OK)
        status = ww_session_logits(session, logits);
    if (status == WW_OK)
        status = write_list(s->out, logits, count);
    if (status == WW_OK && s->json) {
        json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
        json_open(&w, NULL, '{');
        json_put_integer(&w, "tokens", (int64_t)prompt.count);
        json_put_integer(&w, "logits", count);
        json_put_integer(&w, "first", first_largest(logits, count));
        json_close(&w);
    } else if (status == WW_OK) {
        fprintf(report, "%zu token%s; the likeliest next is %lld\n", prompt.count, plural((int64_t)prompt.count),
                (long long)first_largest(logits, count));
    }
    memory_free(logits);
    memory_free(prompt.ids);
    ww_session_destroy(session);
    return status;
}

/* ---- generate --------------------------------------------------------------------------------------------------------------
 */

enum { TOKENS_USUAL = 128 };

/* Keeps the generated text for the report with --json. */
typedef struct told {
    bool json;
    char *text;
    size_t bytes, room;
    bool lost; /* memory ran out */
} told;

void model_print_text(const char *text, size_t bytes)
{
    while (bytes > 0) {
        size_t plain = 0;
        while (plain < bytes && text[plain] != '\n' && text[plain] != '\t')
            plain++;
        print_plain_bytes(stdout, text, plain);
        if (plain < bytes)
            putchar(text[plain++]);
        text += plain;
        bytes -= plain;
    }
    (void)fflush(stdout);
}

static int take_text(const char *text, size_t bytes, void *user)
{
    told *t = user;
    if (!t->json) {
        model_print_text(text, bytes);
        return interrupted();
    }
    if (t->bytes + bytes > t->room) {
        char *moved = memory_resize(t->text, 2 * (t->bytes + bytes));
        if (!moved) {
            t->lost = true;
            return 1;
        }
        t->text = moved;
        t->room = 2 * (t->bytes + bytes);
    }
    memcpy(t->text + t->bytes, text, bytes);
    t->bytes += bytes;
    return interrupted();
}

static void print_json(const told *t, const ww_session *session, size_t prompt, ww_generation_end end)
{
    static const char *const ends[] = {"length", "eos", "context", "stopped"};
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_bytes(&w, "text", t->text ? t->text : "", t->bytes);
    json_open(&w, "ids", '[');
    for (size_t i = prompt; i < ww_session_length(session); i++) {
        int32_t id = 0;
        if (ww_session_tokens(session, i, &id, 1) == WW_OK)
            json_put_integer(&w, NULL, id);
    }
    json_close(&w);
    json_put_integer(&w, "prompt_tokens", (int64_t)prompt);
    json_put_text(&w, "end", ends[end]);
    json_close(&w);
}

ww_status model_open_grammar(const model_call *call, ww_grammar **grammar)
{
    const model_settings *s = &call->settings;
    const char *path = s->grammar ? s->grammar : s->json_schema;
    const ww_grammar_kind kind = s->grammar ? WW_GRAMMAR_GBNF : WW_GRAMMAR_JSON_SCHEMA;
    char *text = NULL;
    if (!path)
        return WW_OK;
    ww_status status = strcmp(path, "-") == 0 ? standard_input_read(&text) : whole_file_read(path, &text);
    if (status == WW_OK)
        status = ww_grammar_create(call->model, kind, text, strlen(text), grammar);
    memory_free(text);
    return status;
}

static ww_status check_settings(const model_call *call)
{
    const model_settings *s = &call->settings;
    const char *path = s->grammar ? s->grammar : s->json_schema;
    const char *wrong = s->system && !s->chat          ? "--system is for --chat"
                        : s->chat_template && !s->chat ? "--chat-template is for --chat"
                        : s->grammar && s->json_schema ? "only one of --grammar and --json-schema can be given"
                        : path && s->ignore_eos ? "--ignore-eos cannot be used with a grammar, which says where the text ends"
                        : path && strcmp(path, "-") == 0 && call->input
                            ? "only one of --prompt and the grammar can be standard input"
                            : NULL;
    return wrong ? command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "%s", wrong)) : WW_OK;
}

ww_sampling model_sampling(const model_settings *s)
{
    ww_sampling sampling = ww_sampling_default();
    sampling.temperature = s->temperature;
    sampling.top_k = (int32_t)s->top_k;
    sampling.top_p = s->top_p;
    sampling.min_p = s->min_p;
    sampling.repetition_penalty = s->repetition_penalty;
    sampling.frequency_penalty = s->frequency_penalty;
    sampling.presence_penalty = s->presence_penalty;
    sampling.repetition_window = (int32_t)s->repetition_window;
    sampling.seed = (uint64_t)s->seed;
    return sampling;
}

ww_status model_generate_run(model_call *call)
{
    const model_settings *s = &call->settings;
    ww_sampling sampling = model_sampling(s);
    ww_generation generation = ww_generation_default();
    ww_generation_end end = WW_GENERATION_LENGTH;
    ww_session *session = NULL;
    tokens prompt = {0};
    told t = {.json = s->json};
    generation.tokens = s->tokens < 0 ? TOKENS_USUAL : s->tokens;
    generation.sampling = &sampling;
    generation.text = take_text;
    generation.user = &t;
    generation.ignore_eos = s->ignore_eos;
    ww_status status = check_settings(call);
    if (status == WW_OK)
        status = feed_prompt(call, &session, &prompt);
    if (status == WW_OK)
        status = model_open_grammar(call, &sampling.grammar);
    if (status == WW_OK)
        status = ww_session_generate(session, &generation, &end);
    if (status == WW_OK && t.lost)
        status = memory_failed("generated text", 2 * t.room);
    if (status == WW_OK)
        status = interrupt_check();
    if (status == WW_OK && s->json)
        print_json(&t, session, prompt.count, end);
    else if (status == WW_OK)
        putchar('\n');
    memory_free(t.text);
    memory_free(prompt.ids);
    ww_grammar_destroy(sampling.grammar);
    ww_session_destroy(session);
    return status;
}
