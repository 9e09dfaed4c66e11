/* Checking JSON text without building anything from it.
 *
 * One pass over the bytes and a bit for each open bracket: memory does not grow with the text. What it accepts is RFC 8259 with
 * three decisions where that leaves room: numbers may be of any size (1e400 is a number), a repeated key is allowed, and \u
 * escapes that are half of a surrogate pair are refused, since no UTF-8 text can have them.
 */
#ifndef WW_BASE_JSON_H
#define WW_BASE_JSON_H

#include <stddef.h>

enum {
    JSON_DEPTH_MAX = 1000, /* open brackets; SQLite's own limit is the same */
    JSON_BYTES_MAX = 1 << 28
};

typedef struct json_fault {
    const char *what;    /* "a string that does not end", ready for a message */
    size_t line, column; /* from 1, in bytes */
} json_fault;

/* Is `text`, of `length` bytes, one JSON value? If not, `fault` says what is wrong and where. */
_Bool json_check(const char *text, size_t length, json_fault *fault);

#endif
