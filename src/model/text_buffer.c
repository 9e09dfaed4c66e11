/* Growing lists of bytes and characters. */
#include "model/text_buffer.h"

#include <string.h>

#include "base/memory.h"

static ww_status grow(text_buffer *buffer, size_t bytes)
{
    if (bytes <= buffer->capacity - buffer->bytes)
        return WW_OK;
    const size_t capacity = 2 * buffer->capacity > buffer->bytes + bytes ? 2 * buffer->capacity : buffer->bytes + bytes + 64;
    char *larger = memory_resize(buffer->text, capacity);
    if (!larger)
        return memory_failed("text", capacity);
    buffer->text = larger;
    buffer->capacity = capacity;
    return WW_OK;
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
    if (count <= list->capacity)
        return WW_OK;
    const size_t capacity = 2 * list->capacity > count ? 2 * list->capacity : count + 64;
    uint32_t *larger = memory_resize(list->values, capacity * sizeof *larger);
    if (!larger)
        return memory_failed("characters of a text", capacity * sizeof *larger);
    list->values = larger;
    list->capacity = capacity;
    return WW_OK;
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
