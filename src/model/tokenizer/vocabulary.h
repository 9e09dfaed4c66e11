/* The pieces of a tokenizer: their bytes, kinds and scores by id, and ids by bytes. */
#ifndef WW_MODEL_TOKENIZER_VOCABULARY_H
#define WW_MODEL_TOKENIZER_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/gguf.h>

#include "base/tables/hash.h"
#include "model/tokenizer/special.h"

/* As model files number them. */
typedef enum token_kind {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
} token_kind;

typedef struct vocabulary {
    int32_t count;
    char *memory;         /* the pieces point into it */
    ww_gguf_span *pieces; /* as the file writes them */
    unsigned char *kinds; /* of token_kind */
    float *scores;        /* NULL: there are none */
    const hash_key *key;
    int32_t *slots;     /* ids by hash, open addressing; -1 is free */
    uint32_t slot_mask; /* a power of two minus one */
    size_t longest;     /* bytes of the longest piece */
    special_tree special;
} vocabulary;

/* The source of a vocabulary. vocabulary_make() keeps no pointers to it. */
typedef struct vocabulary_source {
    const ww_gguf_span *pieces;
    const int64_t *kinds; /* NULL: all normal */
    const double *scores; /* NULL: none */
    int64_t count;
    bool spaces; /* U+2581 in user-defined pieces becomes a space, as in the texts that are searched for them */
} vocabulary_source;

/* Makes a vocabulary; if a piece occurs twice, the first is found. Refuses unknown kinds and scores that are NaN. `name` is the
 * file's, for messages. vocabulary_free() frees it, even after a failure. */
ww_status vocabulary_make(vocabulary *v, const vocabulary_source *source, const char *name);
void vocabulary_free(vocabulary *v);

/* The id of a piece, or -1. */
int32_t vocabulary_find(const vocabulary *v, const char *text, size_t bytes);

/* The same if the hash by v->key is known. */
int32_t vocabulary_find_hashed(const vocabulary *v, const char *text, size_t bytes, uint64_t hash);

#endif
