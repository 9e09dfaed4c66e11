/* Checking JSON text without building anything from it.
 *
 * It makes one pass over the bytes and has one bit for each open bracket, so memory does not grow with the text. It accepts RFC
 * 8259. Where that leaves a choice: numbers may have any size (1e400 is a number), a key may be repeated, and a \u escape for
 * half of a surrogate pair is refused, because UTF-8 cannot encode it.
 */
#ifndef WW_BASE_JSON_H
#define WW_BASE_JSON_H

#include <stddef.h>

enum {
    JSON_DEPTH_MAX = 1000, /* open brackets; SQLite has the same limit */
    JSON_BYTES_MAX = 1 << 28
};

typedef struct json_fault {
    const char *what;    /* "a string that does not end", for messages */
    size_t line, column; /* counted from 1, in bytes */
} json_fault;

/* Returns true if `text`, of `length` bytes, is one JSON value. Otherwise `fault` says what is wrong and where. */
_Bool json_check(const char *text, size_t length, json_fault *fault);

#endif
