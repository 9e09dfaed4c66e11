/* Collects pieces of tokens, which may end within a character, for a callback, which gets only whole characters. */
#ifndef WW_BASE_STRINGS_TEXT_STREAM_H
#define WW_BASE_STRINGS_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/model.h>

typedef struct text_stream {
    char *text; /* whole characters that the callback has not got yet */
    size_t bytes;
    int64_t capacity;
    char begun[4]; /* the beginning of a character */
    size_t begun_bytes;
} text_stream;

/* Appends bytes, and leaves room for one more. Bytes that are not part of a character become U+FFFD. */
ww_status text_stream_add(text_stream *s, const char *bytes, size_t count);

/* Ends the text: an incomplete character becomes U+FFFD. There is always room for that. */
void text_stream_finish(text_stream *s);

void text_stream_free(text_stream *s);

#endif
