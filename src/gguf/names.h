/* The names of keys or tensors that a writer of a GGUF file has already used. */
#ifndef WW_GGUF_NAMES_H
#define WW_GGUF_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* All zero: none. */
typedef struct gguf_names {
    char *bytes; /* the names, each with its NUL */
    size_t size, room;
    int64_t *places; /* where each name starts, in sorted runs */
    int64_t count, place_room;
} gguf_names;

bool gguf_names_have(const gguf_names *names, const char *name);
/* Adds a name, or refuses one that exists. A failure changes nothing. */
ww_status gguf_names_take(gguf_names *names, const char *name);
void gguf_names_give_back(gguf_names *names);

#endif
