/* `warpwave model chat`: a conversation, line by line, on a terminal or through pipes.
 *
 * The model's template renders the whole conversation for each answer; the session is fed only the new tokens. Ctrl-C ends an
 * answer but not the program; the part that was generated stays in the conversation.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/strings/text_buffer.h"
#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/model/model.h"
#include "warpwave/terminal.h"
#include "warpwave/text/lines.h"

enum { FEED_TOGETHER = 512 }; /* tokens between two checks for ctrl-C */

typedef struct chat {
    const model_call *call;
    ww_session *session;
    ww_chat_message *messages; /* we own the texts */
    size_t count, capacity;
    size_t first; /* system messages, which /reset keeps */
    text_buffer answer;
    bool no_memory, terminal;
} chat;

/* ---- the conversation ------------------------------------------------------------------------------------------------------
 */

static ww_status add_message(chat *c, const char *role, const char *text, size_t bytes)
{
    if (c->count == c->capacity) {
        const size_t capacity = 2 * c->capacity + 8;
        ww_chat_message *moved = memory_resize(c->messages, capacity * sizeof *moved);
        if (!moved)
            return memory_failed("messages", capacity * sizeof *moved);
        c->messages = moved;
        c->capacity = capacity;
    }
    char *copy = memory_copy_text(text, bytes);
    if (!copy)
        return memory_failed("messages", bytes + 1);
    c->messages[c->count++] = (ww_chat_message){role, copy};
    return WW_OK;
}

/* Forgets all messages but the first `count`. */
static void keep_messages(chat *c, size_t count)
{
    while (c->count > count)
        memory_free((char *)(uintptr_t)c->messages[--c->count].text);
}

/* Feeds the tokens in pieces and checks for ctrl-C between them. */
static ww_status feed(const chat *c, const int32_t *ids, size_t count)
{
    ww_status status = WW_OK;
    for (size_t at = 0; at < count && status == WW_OK; at += FEED_TOGETHER) {
        status = interrupt_check();
        if (status == WW_OK)
            status = ww_session_feed(c->session, ids + at, min_size(FEED_TOGETHER, count - at));
    }
    return status;
}

/* Brings the session up to date with the conversation; `fed` gets the number of new tokens. */
static ww_status feed_conversation(const chat *c, size_t *fed)
{
    size_t count = 0, same = 0;
    ww_status status = ww_model_chat_tokens(c->call->model, c->messages, c->count, WW_TOKENS_PLAIN, NULL, 0, &count);
    if (status != WW_OK)
        return status;
    int32_t *ids = memory_alloc((count + 1) * sizeof *ids), there = -1;
    if (!ids)
        return memory_failed("tokens", (count + 1) * sizeof *ids);
    status = ww_model_chat_tokens(c->call->model, c->messages, c->count, WW_TOKENS_PLAIN, ids, count, &count);
    const size_t same_max = count > 0 ? min_size(ww_session_length(c->session), count - 1) : 0;
    while (status == WW_OK && same < same_max && ww_session_tokens(c->session, same, &there, 1) == WW_OK && there == ids[same])
        same++;
    if (status == WW_OK && count > (size_t)c->call->info.context)
        status = ww_fail(WW_OUT_OF_RANGE, "the conversation has %zu tokens, the context %lld; /reset begins a new one", count,
                         (long long)c->call->info.context);
    if (status == WW_OK)
        status = ww_session_truncate(c->session, same);
    if (status == WW_OK)
        status = feed(c, ids + same, count - same);
    memory_free(ids);
    *fed = count - same;
    return status;
}

/* ---- an answer -------------------------------------------------------------------------------------------------------------
 */

static int take_text(const char *text, size_t bytes, void *user)
{
    chat *c = user;
    model_print_text(text, bytes);
    c->no_memory = text_buffer_add(&c->answer, text, bytes) != WW_OK;
    return c->no_memory || interrupted();
}

/* `seconds`: start of reading, start of writing, end. */
static void report(const chat *c, size_t fed, size_t made, const double seconds[3])
{
    if (!terminal_notes())
        return;
    fprintf(stderr, "[%zu tokens read, %.1f tokens/s; %zu written, %.1f tokens/s; %zu of %lld]\n", fed,
            (double)fed / (seconds[1] - seconds[0] + 1e-9), made, (double)made / (seconds[2] - seconds[1] + 1e-9),
            ww_session_length(c->session), (long long)c->call->info.context);
}

/* Generates the model's answer and adds it to the conversation. */
static ww_status answer(chat *c)
{
    const model_settings *s = &c->call->settings;
    ww_sampling sampling = model_sampling(s);
    ww_generation generation = ww_generation_default();
    ww_generation_end end = WW_GENERATION_EOS;
    double seconds[3] = {seconds_now(), 0.0, 0.0};
    size_t fed = 0;
    c->answer.bytes = 0;
    generation.tokens = s->tokens < 0 ? INT32_MAX : s->tokens;
    generation.sampling = &sampling;
    generation.text = take_text;
    generation.user = c;
    ww_status status = feed_conversation(c, &fed);
    seconds[1] = seconds_now();
    const size_t before = ww_session_length(c->session);
    if (status == WW_OK)
        status = model_open_grammar(c->call, &sampling.grammar);
    if (status == WW_OK)
        status = ww_session_generate(c->session, &generation, &end);
    seconds[2] = seconds_now();
    ww_grammar_destroy(sampling.grammar);
    if (status == WW_OK && c->no_memory)
        status = memory_failed("an answer", c->answer.bytes);
    if (status != WW_OK)
        return status;
    putchar('\n');
    (void)fflush(stdout);
    report(c, fed, ww_session_length(c->session) - before, seconds);
    if (end == WW_GENERATION_CONTEXT && terminal_notes())
        fputs("[the context is full; /reset begins a new conversation]\n", stderr);
    return add_message(c, "assistant", c->answer.text ? c->answer.text : "", c->answer.bytes);
}

/* ---- lines -----------------------------------------------------------------------------------------------------------------
 */

static const char HELP[] = "/reset   forget the conversation\n"
                           "/help    show this\n"
                           "/quit    end; so does Ctrl-D\n"
                           "A line that ends with a backslash continues on the next. Ctrl-C ends an answer.\n";

/* Runs the line if it is a command, and returns true then. Sets `quit` for the last one. */
static bool obey(chat *c, const char *line, bool *quit)
{
    *quit = strcmp(line, "/quit") == 0;
    if (strcmp(line, "/reset") == 0) {
        keep_messages(c, c->first);
    } else if (strcmp(line, "/help") == 0) {
        fputs(HELP, stderr);
    } else if (line[0] == '/' && !*quit && !strpbrk(line, " \n")) {
        print_plain(stderr, line);
        fputs(" is not a command; the commands are /reset, /help and /quit\n", stderr);
    } else {
        return *quit;
    }
    return true;
}

/* Reads the user's message: one line, or several that a backslash joins. Empty after ctrl-C. */
static ww_status read_said(const chat *c, line_reader *lines, text_buffer *said, bool *end)
{
    bool more = true;
    ww_status status = WW_OK;
    said->bytes = 0;
    while (more && status == WW_OK && !*end) {
        if (c->terminal) {
            fputs(said->bytes ? "... " : "> ", stdout);
            (void)fflush(stdout);
        }
        status = c->terminal && !interrupts_wait_for_line() ? interrupt_check() : lines_next(lines, end);
        if (status != WW_OK && interrupted()) {
            clearerr(stdin);
            interrupts_forget();
            if (c->terminal)
                putchar('\n');
            said->bytes = 0;
            return text_buffer_end(said);
        }
        more = status == WW_OK && !*end && lines->length > 0 && lines->text[lines->length - 1] == '\\';
        if (status == WW_OK && !*end)
            status = text_buffer_add(said, lines->text, lines->length - (more ? 1 : 0));
        if (status == WW_OK && more)
            status = text_buffer_add(said, "\n", 1);
    }
    return status == WW_OK ? text_buffer_end(said) : status;
}

/* Adds the user's message and the answer. On a terminal a failure is printed, and the conversation stays as it was. */
static ww_status say(chat *c, const text_buffer *said)
{
    const size_t before = c->count;
    ww_status status = add_message(c, "user", said->text, said->bytes);
    if (status == WW_OK)
        status = answer(c);
    const bool stopped = status == WW_CANCELLED && interrupted();
    interrupts_forget();
    if (status == WW_OK)
        return WW_OK;
    keep_messages(c, before);
    if (!stopped && !c->terminal)
        return status;
    fputc('[', stderr);
    print_plain(stderr, stopped ? "stopped before the answer began" : ww_error_message());
    fputs("]\n", stderr);
    return WW_OK;
}

static ww_status talk(chat *c, line_reader *lines)
{
    text_buffer said = {0};
    bool end = false, quit = false;
    ww_status status = WW_OK;
    if (c->terminal && terminal_notes())
        fputs("Say something; /help shows what else you can do.\n", stderr);
    while (status == WW_OK && !end && !quit) {
        status = read_said(c, lines, &said, &end);
        if (status == WW_OK && said.bytes > 0 && !obey(c, said.text, &quit))
            status = say(c, &said);
    }
    if (c->terminal && end)
        putchar('\n');
    text_buffer_free(&said);
    return status;
}

static ww_status check_settings(const model_settings *s)
{
    const char *path = s->grammar ? s->grammar : s->json_schema;
    const char *wrong = s->grammar && s->json_schema ? "only one of --grammar and --json-schema can be given"
                        : path && strcmp(path, "-") == 0
                            ? "the grammar cannot be standard input, where the conversation comes from"
                            : NULL;
    return wrong ? command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "%s", wrong)) : WW_OK;
}

/* Fails with the reason why the model has no usable chat template. */
static ww_status fail_chat(const ww_model *model)
{
    const ww_chat_message message = {"user", "a"};
    size_t count;
    return ww_model_chat_tokens(model, &message, 1, 0, NULL, 0, &count);
}

ww_status model_chat_run(model_call *call)
{
    chat c = {.call = call, .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    line_reader lines = {0};
    ww_status status = check_settings(&call->settings);
    if (status == WW_OK)
        status = model_call_open(call);
    if (status == WW_OK)
        status = ww_session_create(call->model, &c.session); /* refuses a model that does not generate text */
    if (status == WW_OK && !call->info.has_chat)
        status = fail_chat(call->model);
    if (status == WW_OK && call->settings.system)
        status = add_message(&c, "system", call->settings.system, strlen(call->settings.system));
    c.first = c.count;
    if (status == WW_OK)
        status = lines_open(&lines, "-");
    if (status == WW_OK) {
        interrupts_catch_each();
        status = talk(&c, &lines);
    }
    lines_close(&lines);
    keep_messages(&c, 0);
    memory_free(c.messages);
    text_buffer_free(&c.answer);
    ww_session_destroy(c.session);
    return status;
}
