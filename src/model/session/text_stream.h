/* Pieces of tokens, which may end within a character, on their way to a callback, which gets whole ones only. */
#ifndef WW_MODEL_TEXT_STREAM_H
#define WW_MODEL_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/model.h>

typedef struct text_stream {
    char *text; /* whole characters that were not told yet */
    size_t bytes, capacity;
    char begun[4]; /* the beginning of a character */
    size_t begun_bytes;
} text_stream;

/* Appends bytes; there is room for one more behind them. What is no part of a character becomes U+FFFD. */
ww_status text_stream_add(text_stream *s, const char *bytes, size_t count);

/* Ends the text: a character that was begun becomes U+FFFD. There is room for that. */
void text_stream_finish(text_stream *s);

void text_stream_free(text_stream *s);

#endif
