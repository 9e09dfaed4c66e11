/* Pieces of GGUF files. */
#include "support/data/bytes.h"

#include <string.h>

#include "support/check.h"

void put_bytes(test_bytes *b, const void *from, size_t size)
{
    assert_true(size <= sizeof b->data - b->size);
    memcpy(b->data + b->size, from, size);
    b->size += size;
}

void put_u8(test_bytes *b, unsigned value)
{
    const uint8_t byte = (uint8_t)value;
    put_bytes(b, &byte, sizeof byte);
}

void put_u16(test_bytes *b, unsigned value)
{
    const uint16_t two = (uint16_t)value;
    put_bytes(b, &two, sizeof two);
}

void put_u32(test_bytes *b, uint32_t value)
{
    put_bytes(b, &value, sizeof value);
}

void put_u64(test_bytes *b, uint64_t value)
{
    put_bytes(b, &value, sizeof value);
}

void put_text(test_bytes *b, const char *text)
{
    put_u64(b, strlen(text));
    put_bytes(b, text, strlen(text));
}

void put_start(test_bytes *b, uint32_t version, uint64_t tensors, uint64_t keys)
{
    put_bytes(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, tensors);
    put_u64(b, keys);
}

void put_key(test_bytes *b, const char *key, uint32_t kind)
{
    put_text(b, key);
    put_u32(b, kind);
}

void put_key_u32(test_bytes *b, const char *key, uint32_t value)
{
    put_key(b, key, WW_GGUF_U32);
    put_u32(b, value);
}

void put_key_u16(test_bytes *b, const char *key, unsigned value)
{
    put_key(b, key, WW_GGUF_U16);
    put_u16(b, value);
}

void put_tensor_of(test_bytes *b, const char *name, uint32_t rank, const uint64_t *shape, uint32_t type, uint64_t offset)
{
    put_text(b, name);
    put_u32(b, rank);
    for (uint32_t i = 0; i < rank; i++)
        put_u64(b, shape[i]);
    put_u32(b, type);
    put_u64(b, offset);
}

void put_tensor(test_bytes *b, const char *name, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset)
{
    const uint64_t shape[2] = {cols, rows};
    put_tensor_of(b, name, 2, shape, type, offset);
}

void put_padding(test_bytes *b, size_t alignment)
{
    while (b->size % alignment != 0)
        put_u8(b, 0);
}

void put_zeros(test_bytes *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_u8(b, 0);
}
