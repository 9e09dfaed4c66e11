/* A number that identifies a model file: other files, and the same model with other weights, have another one. */
#ifndef WW_MODEL_FINGERPRINT_H
#define WW_MODEL_FINGERPRINT_H

#include <stddef.h>

#include <warpwave/gguf.h>

/* 128 bits that tell files apart. They are not secure: two files with one fingerprint can be made on purpose. */
typedef struct fingerprint {
    uint64_t a, b;
} fingerprint;

fingerprint fingerprint_begin(void);
void fingerprint_add(fingerprint *f, const void *bytes, size_t count);

/* Computed from all metadata, the names, types and shapes of all tensors, and samples of their data; hexadecimal with a NUL.
 * Blocks on the disk. */
enum { FINGERPRINT_TEXT = 33 };
ww_status fingerprint_of(const ww_gguf *gguf, char text[FINGERPRINT_TEXT]);

#endif
