/* GGUF files with one fault each, and the expected message for each. */
#ifndef TESTS_WRONG_GGUF_H
#define TESTS_WRONG_GGUF_H

#include "support/data/bytes.h"
#include <warpwave/status.h>

typedef struct wrong_gguf {
    const char *name;
    void (*make)(test_bytes *b);
    ww_status status;
    const char *reason; /* is in the message */
} wrong_gguf;

extern const wrong_gguf wrong_ggufs[]; /* ends with a NULL name */

#endif
