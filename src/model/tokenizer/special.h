/* Special tokens in raw text: control, unknown and user-defined pieces, which may begin at any byte.
 *
 * A tree of the tokens' bytes, last byte first, with fallbacks (Aho and Corasick): a text is read once, from its end to its
 * beginning, in time linear in its length, even if the tokens are long. In that direction the tree knows at each byte the
 * longest token that begins there.
 */
#ifndef WW_MODEL_TOKENIZER_SPECIAL_H
#define WW_MODEL_TOKENIZER_SPECIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/gguf.h>

#include "base/strings/text_buffer.h"

typedef struct special_node {
    int32_t children; /* number of the first; a node's are consecutive, sorted by byte, and end where the next node's begin */
    int32_t fallback; /* the node of the longest proper suffix of this node's bytes that is in the tree */
    int32_t any, user_defined; /* the longest token that is complete here, of any kind and user-defined; -1: none */
} special_node;

typedef struct special_tree {
    special_node *nodes;   /* by depth; one more than `count`, for the end of the last one's children */
    unsigned char *bytes;  /* of each node, the one that leads to it */
    int32_t count;         /* 0: there are no special tokens */
    int32_t children[256]; /* of the root, by byte; 0: none */
} special_tree;

/* Makes the tree of the special tokens among `count` pieces. Of equal tokens the first is found. special_free() frees it, even
 * after a failure. */
ww_status special_make(special_tree *tree, const ww_gguf_span *pieces, const unsigned char *kinds, int32_t count);
void special_free(special_tree *tree);

typedef struct special_place {
    uint32_t at;
    int32_t id;
} special_place;

/* Starts zeroed; reused for the next text. */
typedef struct special_list {
    special_place *places;
    int64_t count, capacity;
} special_list;

void special_list_free(special_list *list);

/* A text of fewer than 2^32 bytes, and its parts, ascending, in which names of special tokens are text. */
typedef struct searched_text {
    const char *text;
    size_t bytes;
    const text_span *plain;
    size_t plain_count;
} searched_text;

/* Lists the longest token at each byte of the text where one begins, last byte first. User-defined tokens are always found, the
 * others unless they begin in a plain part. */
ww_status special_find_all(const special_tree *tree, const searched_text *text, special_list *found);

#endif
