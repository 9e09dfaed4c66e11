/* Growing lists of bytes and characters, for converting text to tokens and back. Both start zeroed. */
#ifndef WW_BASE_STRINGS_TEXT_BUFFER_H
#define WW_BASE_STRINGS_TEXT_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef struct text_buffer {
    char *text; /* not NUL-terminated until text_buffer_end() */
    size_t bytes;
    int64_t capacity;
} text_buffer;

/* Append bytes, or a NUL-terminated text. On failure the buffer is unchanged. */
ww_status text_buffer_add(text_buffer *buffer, const char *text, size_t bytes);
ww_status text_buffer_add_text(text_buffer *buffer, const char *text);

/* Puts a NUL after the bytes, which is not counted. */
ww_status text_buffer_end(text_buffer *buffer);

void text_buffer_free(text_buffer *buffer);

/* Bytes from..to) of a text. */
typedef struct text_span {
    size_t from, to;
} text_span;

typedef struct characters { /* Unicode code points */
    uint32_t *values;
    size_t count;
    int64_t capacity;
} characters;

ww_status characters_reserve(characters *list, size_t count); /* room for `count` in all */
ww_status characters_add(characters *list, uint32_t character);
void characters_free(characters *list);

#endif
