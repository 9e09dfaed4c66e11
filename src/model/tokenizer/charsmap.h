/* SentencePiece's precompiled map of characters, as stored in model files (tokenizer.ggml.precompiled_charsmap): sequences of
 * characters and their replacements, mainly NFKC with uniform white space.
 *
 * The bytes are: a 32-bit length, that many bytes of a double array (a tree of the sequences, 32 bits per node), and then the
 * replacements, each NUL-terminated; a leaf of the tree is an offset into these. Numbers are little-endian.
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

/* Copies the map from the bytes of a file, whose `name` is for messages. Refuses invalid bytes. An empty map changes nothing.
 * charsmap_free() frees it, even after a failure. */
ww_status charsmap_make(charsmap *map, const unsigned char *bytes, size_t count, const char *name);
void charsmap_free(charsmap *map);

/* Finds the longest sequence that the text begins with and its replacement. Returns the bytes of the sequence; 0 if there is
 * none. */
size_t charsmap_find(const charsmap *map, const char *text, size_t bytes, const char **replacement);

#endif
