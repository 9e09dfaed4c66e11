/* Sort keys of elements: smaller keys come first. */
#ifndef WW_KERNELS_REDUCE_SORT_ELEMENTS_H
#define WW_KERNELS_REDUCE_SORT_ELEMENTS_H

#include "kernels/elementwise/elements.h"

#include "kernels/reduce/row_arguments.h"

/* The same order as sort_key_f64 and sort_key_i64, in 32 bits. */
DEVICE uint32_t sort_key_32(uint64_t bits, int32_t type)
{
    if (type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16 || type == TYPE_F8E4M3) {
        const float x = bits_to_f32(bits, type);
        const uint32_t plain = canon_float_bits(x + 0.0f);
        const uint32_t ordered = plain >> 31 ? ~plain : plain | 0x80000000u;
        return x == x ? ordered : 0xfffffffeu;
    }
    return type == TYPE_U32 ? (uint32_t)bits : (uint32_t)bits_to_i64(bits, type) ^ 0x80000000u;
}

/* The same in 16 bits, for types of up to 16 bits: the 32-bit key without the bits that are equal in all keys. */
DEVICE uint32_t sort_key_16(uint64_t bits, int32_t type)
{
    if (type != TYPE_F16 && type != TYPE_BF16)
        return type == TYPE_F8E4M3 ? sort_key_32(bits, type) >> 16 : (uint32_t)(bits_to_i64(bits, type) + 0x8000) & 0xffffu;
    const uint32_t plain = bits == 0x8000u ? 0 : (uint32_t)bits, infinity = type == TYPE_F16 ? 0x7c00u : 0x7f80u;
    const uint32_t ordered = plain >> 15 ? plain ^ 0xffffu : plain | 0x8000u;
    return (plain & 0x7fffu) > infinity ? 0xfffeu : ordered;
}

/* The key of an element, with 16 or 32 bits. */
DEVICE uint32_t sort_key_of(const sort_args *args, uint32_t bits)
{
    if (type_bytes(args->type) <= 2)
        return sort_key_16(bits, args->type) ^ (args->descending ? 0xffffu : 0u);
    return sort_key_32(bits, args->type) ^ (args->descending ? UINT32_MAX : 0u);
}

/* Whether rows of `length` elements can be loaded or stored by quads. */
DEVICE bool has_quads(const void *data, int64_t length, int32_t bytes)
{
    return bytes == 4 && length % 4 == 0 && (uint64_t)data % 16 == 0;
}

#endif
