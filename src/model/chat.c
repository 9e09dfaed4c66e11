/* Conversations in the manner of seven families. What differs within one is taken from the template by looking for texts in it.
 */
#include "model/chat.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

/* ---- which family ---------------------------------------------------------------------------------------------------------
 */

/* Marks that a template of the family has, and one that it must not have. */
static const struct {
    const char *name;
    const char *marks[2];
    const char *without;
} FAMILIES[] = {
    [CHAT_CHATML] = {.name = "chatml", .marks = {"<|im_start|>", "<|im_end|>"}},
    [CHAT_LLAMA2] = {.name = "llama2", .marks = {"[INST]", "<<SYS>>"}},
    [CHAT_LLAMA3] = {.name = "llama3", .marks = {"<|start_header_id|>", "<|eot_id|>"}},
    [CHAT_MISTRAL] = {.name = "mistral", .marks = {"[INST]", "[/INST]"}, .without = "[SYSTEM_PROMPT]"},
    [CHAT_GEMMA] = {.name = "gemma", .marks = {"<start_of_turn>", "<end_of_turn>"}},
    [CHAT_PHI3] = {.name = "phi3", .marks = {"<|user|>", "<|end|>"}, .without = "<|im_"},
    [CHAT_ZEPHYR] = {.name = "zephyr", .marks = {"<|user|>", "eos_token"}, .without = "<|im_"},
};
enum { FAMILY_COUNT = sizeof FAMILIES / sizeof FAMILIES[0] };

static ww_status refuse(const char *what)
{
    char known[128] = "";
    for (int i = 0; i < FAMILY_COUNT; i++) {
        text_append(known, sizeof known, i > 0 ? ", " : "");
        text_append(known, sizeof known, FAMILIES[i].name);
    }
    return ww_fail(WW_UNSUPPORTED, "%s; known are %s", what, known);
}

ww_status chat_find(const char *template_text, chat_family *family)
{
    for (int i = 0; i < FAMILY_COUNT; i++) {
        if (!strstr(template_text, FAMILIES[i].marks[0]) || !strstr(template_text, FAMILIES[i].marks[1]))
            continue;
        if (FAMILIES[i].without && strstr(template_text, FAMILIES[i].without))
            continue;
        *family = (chat_family)i;
        return WW_OK;
    }
    return refuse("the model's chat template (tokenizer.chat_template) is of no known family");
}

ww_status chat_find_name(const char *name, chat_family *family)
{
    char what[96];
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (strcmp(FAMILIES[i].name, name) == 0) {
            *family = (chat_family)i;
            return WW_OK;
        }
    text_copy(what, sizeof what, "there is no chat template '");
    text_append(what, sizeof what - 2, name);
    text_append(what, sizeof what, "'");
    return refuse(what);
}

const char *chat_name(chat_family family)
{
    return FAMILIES[family].name;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------
 */

typedef struct conversation {
    const chat_format *format;
    const chat_message *messages;
    size_t count;
    bool add_generation;
    text_buffer *out;
} conversation;

static bool is_role(const chat_message *message, const char *role)
{
    return strcmp(message->role, role) == 0;
}

static bool template_has(const conversation *c, const char *mark)
{
    return strstr(c->format->template_text, mark) != NULL;
}

void chat_quotes_free(chat_quotes *quotes)
{
    memory_free(quotes->spans);
    *quotes = (chat_quotes){0};
}

/* Appends a part of a message's text, and notes where it is. */
static ww_status put_quote(const conversation *c, const char *text, size_t bytes)
{
    chat_quotes *q = c->format->quotes;
    const size_t from = c->out->bytes;
    if (q && q->count == q->capacity) {
        const size_t capacity = 2 * q->capacity + 4;
        text_span *larger = memory_resize(q->spans, capacity * sizeof *larger);
        if (!larger)
            return memory_failed("conversation", capacity * sizeof *larger);
        q->spans = larger;
        q->capacity = capacity;
    }
    const ww_status status = text_buffer_add(c->out, text, bytes);
    if (status == WW_OK && q)
        q->spans[q->count++] = (text_span){from, c->out->bytes};
    return status;
}

/* Appends texts up to a NULL. */
static ww_status put(const conversation *c, const char *const *texts)
{
    ww_status status = WW_OK;
    for (; status == WW_OK && *texts; texts++)
        status = text_buffer_add_text(c->out, *texts);
    return status;
}
#define PUT(...) put(c, (const char *const[]){__VA_ARGS__, NULL})

/* Appends a message's text between two of the template's. */
static ww_status put_message(const conversation *c, const char *before, const char *text, const char *behind)
{
    ww_status status = PUT(before);
    if (status == WW_OK && text) /* check_messages() has refused NULL */
        status = put_quote(c, text, strlen(text));
    return status == WW_OK ? PUT(behind) : status;
}

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Appends a text without white space at its ends. */
static ww_status put_trimmed(const conversation *c, const char *text)
{
    size_t bytes = strlen(text);
    while (bytes > 0 && is_blank(text[0])) {
        text++;
        bytes--;
    }
    while (bytes > 0 && is_blank(text[bytes - 1]))
        bytes--;
    return put_quote(c, text, bytes);
}

/* The first message, if that is the system's. */
static const char *system_text(const conversation *c)
{
    return c->count > 0 && is_role(&c->messages[0], "system") ? c->messages[0].text : NULL;
}

/* User and assistant must take turns, the user first, behind at most one message of the system. */
static ww_status check_turns(const conversation *c)
{
    const size_t first = system_text(c) != NULL;
    for (size_t i = first; i < c->count; i++)
        if (!is_role(&c->messages[i], (i - first) % 2 == 0 ? "user" : "assistant"))
            return ww_fail(WW_INVALID_ARGUMENT, "message %zu is the %s's; in the chat template '%s' it must be the %s's", i,
                           c->messages[i].role, chat_name(c->format->family), (i - first) % 2 == 0 ? "user" : "assistant");
    return WW_OK;
}

/* ---- families -------------------------------------------------------------------------------------------------------------
 */

/* Appends what the template says for the system where the conversation does not: a text between two marks without a quote or a
 * brace, which would end it. The line's end in it may be written as two characters. */
static ww_status put_default_system(const conversation *c)
{
    static const char begin[] = "<|im_start|>system";
    for (const char *at = strstr(c->format->template_text, begin); at; at = strstr(at + 1, begin)) {
        const char *text = at + strlen(begin);
        text += *text == '\n' ? 1 : strncmp(text, "\\n", 2) == 0 ? 2 : 0;
        const size_t bytes = strcspn(text, "'\"{}<");
        if (bytes == 0 || strncmp(text + bytes, "<|im_end|>", 10) != 0)
            continue;
        ww_status status = text_buffer_add_text(c->out, "<|im_start|>system\n");
        if (status == WW_OK)
            status = text_buffer_add(c->out, text, bytes);
        return status == WW_OK ? text_buffer_add_text(c->out, "<|im_end|>\n") : status;
    }
    return WW_OK;
}

static ww_status render_chatml(const conversation *c)
{
    ww_status status = template_has(c, "bos_token") ? PUT(c->format->bos) : WW_OK;
    if (status == WW_OK && !system_text(c))
        status = put_default_system(c);
    for (size_t i = 0; status == WW_OK && i < c->count; i++) {
        status = PUT("<|im_start|>", c->messages[i].role);
        if (status == WW_OK)
            status = put_message(c, "\n", c->messages[i].text, "<|im_end|>\n");
    }
    return status == WW_OK && c->add_generation ? PUT("<|im_start|>assistant\n") : status;
}

static ww_status render_llama2(const conversation *c)
{
    const char *system = system_text(c);
    ww_status status = check_turns(c);
    for (size_t i = system != NULL; status == WW_OK && i < c->count; i++) {
        const bool user = is_role(&c->messages[i], "user");
        status = user ? PUT(c->format->bos, "[INST] ") : PUT(" ");
        if (status == WW_OK && user && system && i == 1)
            status = put_message(c, "<<SYS>>\n", system, "\n<</SYS>>\n\n");
        if (status == WW_OK)
            status = put_trimmed(c, c->messages[i].text);
        if (status == WW_OK)
            status = user ? PUT(" [/INST]") : PUT(" ", c->format->eos);
    }
    return status;
}

static ww_status put_header(const conversation *c, const char *role)
{
    return PUT("<|start_header_id|>", role, "<|end_header_id|>\n\n");
}

static ww_status render_llama3(const conversation *c)
{
    /* Later models are told dates in any case. Theirs is the template's own, not today's: the same words give the same text. */
    const bool dated = template_has(c, "Cutting Knowledge Date");
    const char *system = system_text(c);
    ww_status status = PUT(c->format->bos);
    if (status == WW_OK && dated) {
        status = put_header(c, "system");
        if (status == WW_OK)
            status = PUT("Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
        if (status == WW_OK)
            status = put_trimmed(c, system ? system : "");
        if (status == WW_OK)
            status = PUT("<|eot_id|>");
    }
    for (size_t i = dated && system; status == WW_OK && i < c->count; i++) {
        status = put_header(c, c->messages[i].role);
        if (status == WW_OK)
            status = put_trimmed(c, c->messages[i].text);
        if (status == WW_OK)
            status = PUT("<|eot_id|>");
    }
    return status == WW_OK && c->add_generation ? put_header(c, "assistant") : status;
}

static ww_status render_mistral(const conversation *c)
{
    /* Versions differ in spaces, and in whether there is a system. */
    const bool usual = c->format->template_text[0] == '\0';
    const char *open = usual || template_has(c, "[INST] ") ? "[INST] " : "[INST]";
    const char *close = usual || template_has(c, " [/INST]") ? " [/INST]" : "[/INST]";
    const bool before = template_has(c, "' ' + message") || template_has(c, "\" \" + message");
    const bool behind = template_has(c, "eos_token + ' '");
    const char *system = system_text(c);
    ww_status status = check_turns(c);
    if (status == WW_OK && system && !usual && !template_has(c, "system"))
        return ww_fail(WW_UNSUPPORTED, "the model's chat template has no system message");
    if (status == WW_OK)
        status = PUT(c->format->bos);
    for (size_t i = system != NULL; status == WW_OK && i < c->count; i++) {
        const chat_message *m = &c->messages[i];
        const bool user = is_role(m, "user"), with_system = user && i + 1 == c->count && system;
        if (with_system)
            status = put_message(c, open, system, "\n\n");
        if (status == WW_OK && user)
            status = put_message(c, with_system ? "" : open, m->text, close);
        else if (status == WW_OK)
            status = put_message(c, before ? " " : "", m->text, c->format->eos);
        if (status == WW_OK && !user && behind)
            status = PUT(" ");
    }
    return status;
}

static ww_status render_gemma(const conversation *c)
{
    const char *system = system_text(c);
    ww_status status = check_turns(c);
    if (status == WW_OK && system && template_has(c, "System role not supported"))
        return ww_fail(WW_UNSUPPORTED, "the model's chat template has no system message");
    if (status == WW_OK)
        status = PUT(c->format->bos);
    for (size_t i = system != NULL; status == WW_OK && i < c->count; i++) {
        const bool user = is_role(&c->messages[i], "user");
        status = PUT("<start_of_turn>", user ? "user" : "model", "\n");
        if (status == WW_OK && system && i == 1)
            status = put_message(c, "", system, "\n\n");
        if (status == WW_OK)
            status = put_trimmed(c, c->messages[i].text);
        if (status == WW_OK)
            status = PUT("<end_of_turn>\n");
    }
    return status == WW_OK && c->add_generation ? PUT("<start_of_turn>model\n") : status;
}

/* phi3 and zephyr: a role between bars; what ends a turn differs. */
static ww_status render_bars(const conversation *c, const char *end)
{
    ww_status status = template_has(c, "bos_token") ? PUT(c->format->bos) : WW_OK;
    for (size_t i = 0; status == WW_OK && i < c->count; i++) {
        status = PUT("<|", c->messages[i].role);
        if (status == WW_OK)
            status = put_message(c, "|>\n", c->messages[i].text, end);
        if (status == WW_OK)
            status = PUT("\n");
    }
    return status == WW_OK && c->add_generation ? PUT("<|assistant|>\n") : status;
}

static ww_status render(const conversation *c)
{
    switch (c->format->family) {
    case CHAT_CHATML:
        return render_chatml(c);
    case CHAT_LLAMA2:
        return render_llama2(c);
    case CHAT_LLAMA3:
        return render_llama3(c);
    case CHAT_MISTRAL:
        return render_mistral(c);
    case CHAT_GEMMA:
        return render_gemma(c);
    case CHAT_PHI3:
        return render_bars(c, "<|end|>");
    case CHAT_ZEPHYR:
        return render_bars(c, c->format->eos);
    }
    return ww_fail(WW_INTERNAL, "chat template %d", (int)c->format->family);
}

static ww_status check_messages(const chat_message *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const chat_message *m = &messages[i];
        if (!m->role || !m->text)
            return ww_fail(WW_INVALID_ARGUMENT, "message %zu has no %s", i, m->role ? "text" : "role");
        if (!is_role(m, "system") && !is_role(m, "user") && !is_role(m, "assistant"))
            return ww_fail(WW_INVALID_ARGUMENT, "message %zu: the role '%.40s' is not known; known are system, user, assistant",
                           i, m->role);
        if (i > 0 && is_role(m, "system"))
            return ww_fail(WW_INVALID_ARGUMENT, "message %zu is the system's; only the first may be", i);
        if (!utf8_check(m->text, strlen(m->text)))
            return ww_fail(WW_INVALID_ARGUMENT, "message %zu is no UTF-8", i);
    }
    return WW_OK;
}

ww_status chat_render(const chat_format *format, const chat_message *messages, size_t count, bool add_generation,
                      text_buffer *out)
{
    const conversation c = {
        .format = format, .messages = messages, .count = count, .add_generation = add_generation, .out = out};
    const size_t before = out->bytes;
    ww_status status =
        count > 0 ? check_messages(messages, count) : ww_fail(WW_INVALID_ARGUMENT, "a conversation without messages");
    if (status == WW_OK)
        status = render(&c);
    if (status != WW_OK)
        out->bytes = before;
    if (status != WW_OK && format->quotes)
        format->quotes->count = 0;
    return status;
}
