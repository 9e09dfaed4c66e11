/* A growing text in which answers are written. It remembers if it ran out of memory, so that callers check once, at the end. */
#ifndef WW_SERVER_OUT_H
#define WW_SERVER_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct out {
    char *bytes; /* memory_free() */
    size_t length, capacity;
    bool failed;    /* ran out of memory */
    int64_t points; /* that were written, for quotas */
} out;

void out_bytes(out *o, const char *bytes, size_t count);
void out_text(out *o, const char *text);
__attribute__((format(printf, 2, 3))) void out_format(out *o, const char *format, ...);

/* Writes a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD. */
void out_quoted(out *o, const char *text, size_t length);

/* Write numbers that read back as the same bits; null for those that are not finite. */
void out_float(out *o, float value);
void out_double(out *o, double value);
void out_floats(out *o, const float *values, int64_t count); /* [1,2,3] */

void out_free(out *o);

#endif
