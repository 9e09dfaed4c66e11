/* Text that grows: how answers are written. What cannot be written because there is no memory is remembered, so that a caller
 * asks once, at the end. */
#ifndef WW_SERVER_OUT_H
#define WW_SERVER_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct out {
    char *bytes; /* memory_free() */
    size_t length, capacity;
    bool failed; /* there was no memory for something */
} out;

void out_bytes(out *o, const char *bytes, size_t count);
void out_text(out *o, const char *text);
__attribute__((format(printf, 2, 3))) void out_format(out *o, const char *format, ...);

/* A text of JSON with its quotes. What is no UTF-8 becomes U+FFFD. */
void out_quoted(out *o, const char *text, size_t length);

/* Numbers that read back as the same bits; those that are not finite are null. */
void out_float(out *o, float value);
void out_double(out *o, double value);
void out_floats(out *o, const float *values, int64_t count); /* [1,2,3] */

void out_free(out *o);

#endif
