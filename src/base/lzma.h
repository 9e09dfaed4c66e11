/* LZMA, the compression inside .xz files: bits coded by how probable they were so far, repetitions by where they stood before.
 *
 * Only what unpack.c needs: the content is decoded in pieces ("chunks") into one block of memory that has room for all of it,
 * so that no window is kept. Nothing that is read is believed.
 */
#ifndef WW_BASE_LZMA_H
#define WW_BASE_LZMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lzma_decoder lzma_decoder;

/* Bytes of memory a decoder needs; it is whatever memory of that size, made ready by lzma_begin(). */
size_t lzma_decoder_bytes(void);

/* Nothing is decoded yet: the content goes to `content`, which has room for `capacity` bytes. */
void lzma_begin(lzma_decoder *decoder, uint8_t *content, size_t capacity);

/* Forgets the probabilities. The second takes new properties as well (a byte that says which bits look at what); false if there
 * are none such. Before the first chunk there must have been properties. */
void lzma_reset(lzma_decoder *decoder);
bool lzma_set_properties(lzma_decoder *decoder, uint8_t properties);

/* Decodes a chunk that is `packed_bytes` long into the next `bytes` of the content; or copies them, where they are not packed.
 * False if it is not such a chunk, or there is no room. */
bool lzma_decode(lzma_decoder *decoder, const uint8_t *packed, size_t packed_bytes, size_t bytes);
bool lzma_copy(lzma_decoder *decoder, const uint8_t *plain, size_t bytes);

#endif
