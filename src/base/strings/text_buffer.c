/* Growing lists of bytes and characters. */
#include "base/strings/text_buffer.h"

#include <string.h>

#include "base/array.h"
#include "base/memory.h"

/* Makes room for `bytes` more. */
static ww_status grow(text_buffer *buffer, size_t bytes)
{
    return array_reserve(&buffer->text, &buffer->capacity, (int64_t)(buffer->bytes + bytes), 1, "text");
}

ww_status text_buffer_add(text_buffer *buffer, const char *text, size_t bytes)
{
    const ww_status status = grow(buffer, bytes);
    if (status == WW_OK && bytes > 0) {
        memcpy(buffer->text + buffer->bytes, text, bytes);
        buffer->bytes += bytes;
    }
    return status;
}

ww_status text_buffer_add_text(text_buffer *buffer, const char *text)
{
    return text_buffer_add(buffer, text, strlen(text));
}

ww_status text_buffer_end(text_buffer *buffer)
{
    const ww_status status = grow(buffer, 1);
    if (status == WW_OK)
        buffer->text[buffer->bytes] = '\0';
    return status;
}

void text_buffer_free(text_buffer *buffer)
{
    memory_free(buffer->text);
    *buffer = (text_buffer){0};
}

ww_status characters_reserve(characters *list, size_t count)
{
    return array_reserve(&list->values, &list->capacity, (int64_t)count, sizeof *list->values, "characters of a text");
}

ww_status characters_add(characters *list, uint32_t character)
{
    const ww_status status = characters_reserve(list, list->count + 1);
    if (status == WW_OK)
        list->values[list->count++] = character;
    return status;
}

void characters_free(characters *list)
{
    memory_free(list->values);
    *list = (characters){0};
}
