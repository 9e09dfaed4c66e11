/* Conversations to the variables of a chat template. */
#include "model/chat.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"

static ww_status check_messages(const chat_message *messages, size_t count)
{
    if (count == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "a conversation without messages");
    for (size_t i = 0; i < count; i++) {
        const chat_message *m = &messages[i];
        if (!m->role || !m->text)
            return ww_fail(WW_INVALID_ARGUMENT, "message %zu has no %s", i, m->role ? "text" : "role");
        if (!utf8_check(m->text, strlen(m->text)) || !utf8_check(m->role, strlen(m->role)))
            return ww_fail(WW_INVALID_ARGUMENT, "message %zu is not UTF-8", i);
    }
    return WW_OK;
}

/* Appends a JSON string. */
static ww_status put_text(text_buffer *json, const char *text)
{
    ww_status status = text_buffer_add_text(json, "\"");
    while (status == WW_OK && *text) {
        char escape[8];
        const size_t plain =
            strcspn(text, "\"\\\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0E\x0F\x10\x11\x12\x13\x14\x15\x16\x17\x18"
                          "\x19\x1A\x1B\x1C\x1D\x1E\x1F");
        status = text_buffer_add(json, text, plain);
        text += plain;
        if (status == WW_OK && *text) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text++);
            status = text_buffer_add_text(json, escape);
        }
    }
    return status == WW_OK ? text_buffer_add_text(json, "\"") : status;
}

static ww_status put_messages(text_buffer *json, const chat_message *messages, size_t count)
{
    ww_status status = text_buffer_add_text(json, "{\"messages\":[");
    for (size_t i = 0; status == WW_OK && i < count; i++) {
        status = text_buffer_add_text(json, i > 0 ? ",{\"role\":" : "{\"role\":");
        if (status == WW_OK)
            status = put_text(json, messages[i].role);
        if (status == WW_OK)
            status = text_buffer_add_text(json, ",\"content\":");
        if (status == WW_OK)
            status = put_text(json, messages[i].text);
        if (status == WW_OK)
            status = text_buffer_add_text(json, "}");
    }
    if (status == WW_OK)
        status = text_buffer_add_text(json, "]}");
    return status == WW_OK ? text_buffer_end(json) : status;
}

ww_status chat_render(const chat_format *format, const chat_message *messages, size_t count, bool add_generation,
                      text_buffer *out)
{
    text_buffer json = {0};
    ww_status status = check_messages(messages, count);
    if (status == WW_OK)
        status = put_messages(&json, messages, count);
    if (status == WW_OK) {
        const template_input input = {
            .json = json.text, .bos = format->bos, .eos = format->eos, .add_generation = add_generation};
        status = template_render(format->program, &input, out, format->quotes);
    }
    text_buffer_free(&json);
    return status;
}
