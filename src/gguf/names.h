/* The names that a writer of a GGUF file has taken, of keys and of tensors. */
#ifndef WW_GGUF_NAMES_H
#define WW_GGUF_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Zeroed: none. */
typedef struct gguf_names {
    char *bytes; /* the names, each with its NUL */
    size_t size, room;
    int64_t *places; /* where each begins, in sorted runs */
    int64_t count, place_room;
} gguf_names;

bool gguf_names_have(const gguf_names *names, const char *name);
/* Takes one that is not there. A failure changes nothing. */
ww_status gguf_names_take(gguf_names *names, const char *name);
void gguf_names_give_back(gguf_names *names);

#endif
