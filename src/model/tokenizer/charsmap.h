/* SentencePiece's precompiled map of characters, as model files keep it (tokenizer.ggml.precompiled_charsmap): sequences of
 * characters and what they become, in the main NFKC with white space made alike.
 *
 * The bytes are: a length of 32 bits, as many bytes of a double array (a tree of the sequences, 32 bits a node), and behind it
 * the replacements, each ended by a NUL; a leaf of the tree is a place in these. Numbers are little-endian.
 */
#ifndef WW_MODEL_TOKENIZER_CHARSMAP_H
#define WW_MODEL_TOKENIZER_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

typedef struct charsmap {
    uint32_t *units; /* of the double array */
    size_t unit_count;
    char *texts;
    size_t text_bytes; /* the last one is a NUL */
} charsmap;

/* Copies the map from the bytes of a file. Refuses what is none, by `name`, which is the file's. None at all is a map that
 * changes nothing. charsmap_free() frees it, also after a failure. */
ww_status charsmap_make(charsmap *map, const unsigned char *bytes, size_t count, const char *name);
void charsmap_free(charsmap *map);

/* The longest sequence that a text begins with: its bytes, and what it becomes; 0 if there is none. */
size_t charsmap_find(const charsmap *map, const char *text, size_t bytes, const char **replacement);

#endif
