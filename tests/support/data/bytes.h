/* A growing byte buffer, and functions that append parts of a GGUF file, valid or not: for tests of the reader. */
#ifndef TESTS_BYTES_H
#define TESTS_BYTES_H

#include <stddef.h>
#include <stdint.h>

typedef struct test_bytes {
    unsigned char data[1 << 16];
    size_t size;
} test_bytes;

void put_bytes(test_bytes *b, const void *from, size_t size);
void put_u8(test_bytes *b, unsigned value);
void put_u16(test_bytes *b, unsigned value);
void put_u32(test_bytes *b, uint32_t value);
void put_u64(test_bytes *b, uint64_t value);
void put_text(test_bytes *b, const char *text); /* with its length before it */

/* Magic, version and the two counts. */
void put_start(test_bytes *b, uint32_t version, uint64_t tensors, uint64_t keys);
/* A key and the number of its kind; the value is to follow. */
void put_key(test_bytes *b, const char *key, uint32_t kind);
void put_key_u32(test_bytes *b, const char *key, uint32_t value);
void put_key_u16(test_bytes *b, const char *key, unsigned value);
/* The description of a tensor of two dimensions, or of any. */
void put_tensor(test_bytes *b, const char *name, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset);
void put_tensor_of(test_bytes *b, const char *name, uint32_t rank, const uint64_t *shape, uint32_t type, uint64_t offset);
/* Zeros up to a multiple. */
void put_padding(test_bytes *b, size_t alignment);
void put_zeros(test_bytes *b, size_t count);

#endif
