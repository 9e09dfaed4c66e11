/* Finding a child of a node in a tree of bytes. Children are consecutive and sorted by their byte. */
#ifndef WW_MODEL_TOKENIZER_BYTE_CHILDREN_H
#define WW_MODEL_TOKENIZER_BYTE_CHILDREN_H

#include <stdint.h>

/* The child of [from, to) whose byte is `byte`, or -1. `bytes` has the byte of every node. */
static inline int32_t child_with_byte(const unsigned char *bytes, int32_t from, int32_t to, unsigned char byte)
{
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (bytes[middle] == byte)
            return middle;
        if (bytes[middle] < byte)
            from = middle + 1;
        else
            to = middle;
    }
    return -1;
}

#endif
