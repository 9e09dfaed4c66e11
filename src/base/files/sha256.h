/* SHA-256 (FIPS 180-4), to check files and keys, and HMAC over it (RFC 2104). */
#ifndef WW_BASE_FILES_SHA256_H
#define WW_BASE_FILES_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_TEXT = 65 /* hexadecimal digits and a NUL */ };

typedef struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} sha256;

void sha256_begin(sha256 *s);
void sha256_add(sha256 *s, const void *from, size_t bytes);

/* Writes the digest, the second one in lower-case hexadecimal; `s` cannot be used afterwards. */
void sha256_digest(sha256 *s, unsigned char digest[SHA256_BYTES]);
void sha256_end(sha256 *s, char text[SHA256_TEXT]);

void sha256_hmac(const void *key, size_t key_bytes, const void *text, size_t bytes, unsigned char digest[SHA256_BYTES]);

#endif
