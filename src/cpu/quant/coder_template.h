/* Coding and decoding for one instruction set: the functions of arithmetic/blocks over many blocks, compiled for the
 instruction set of the including file. Their results do not depend on the set. The including file supplies group_decode() for
 eight interleaved blocks first: from cpu/quant/decode.h, or its own.
 */
#ifndef WW_CPU_QUANT_CODER_TEMPLATE_H
#define WW_CPU_QUANT_CODER_TEMPLATE_H

#include "cpu/quant/activations.h"
#include "cpu/quant/lanes16.h"
#include "cpu/quant/layout.h"
#include "cpu/quant/quant_set.h"

#include "arithmetic/blocks/decode.h"
#include "arithmetic/blocks/encode.h"
#include "arithmetic/blocks/encode_k.h" /* written with the vectors of lanes16.h */
#include "arithmetic/blocks/pack_k.h"

/* ---- K blocks: 16 sub-blocks at a time, which are one block or two ------------------------------------------------------- */

typedef struct sub_blocks_coded {
    uint8_t codes[2 * KBLOCK_ELEMENTS];
    lanes_bytes scales, mins;
    float d[LANES], dmin[LANES], error[LANES];
} sub_blocks_coded;

/* One function for all formats: its loops take much longer than choosing the format, and it takes long to compile. */
static __attribute__((noinline)) void sub_blocks_code(const float *from, int32_t type, sub_blocks_coded *out)
{
    const search_limits limits = search_limits_of(type);
    const int32_t length = limits.length;
    lanes x[LANES_REGISTERS * 32], inverse[LANES_REGISTERS], min[LANES_REGISTERS];
    lanes_bytes codes[32];
    search_found found;
    for (int32_t p = 0; p < LANES_REGISTERS; p++)
        lanes_transpose(x + p * length, from + p * REGISTER_LANES * length, length);
    if (limits.lowest < 0.0f)
        search_without_min(x, &limits, &found);
    else
        search_with_min(x, &limits, &found);
    for (int32_t p = 0; p < LANES_REGISTERS; p++) {
        inverse[p] = search_inverse(found.scale[p] * found.d[p]);
        min[p] = found.min[p] * found.dmin[p];
    }
    for (int32_t l = 0; l < length; l++) {
        lanes code[LANES_REGISTERS];
        for (int32_t p = 0; p < LANES_REGISTERS; p++)
            code[p] =
                search_code(x[p * length + l], min[p], inverse[p], limits.lowest, limits.highest) - lanes_all(limits.lowest);
        codes[l] = lanes_to_bytes(code);
    }
    for (int32_t l = 0; l < length; l += LANES)
        bytes_transpose(out->codes + l, length, codes + l);
    for (int32_t p = 0; p < LANES_REGISTERS; p++)
        found.scale[p] += lanes_all(type == BLOCK_Q3_K ? 32.0f : 0.0f);
    out->scales = lanes_to_bytes(found.scale);
    out->mins = lanes_to_bytes(found.min);
    memcpy(out->d, found.d, sizeof out->d);
    memcpy(out->dmin, found.dmin, sizeof out->dmin);
    memcpy(out->error, found.error, sizeof out->error);
}

/* Encodes `count` blocks. Returns the index of the first that cannot be encoded, or count. */
#define ENCODE_LARGE(name, type)                                                                                               \
    static int64_t encode_many_##name(const float *from, void *to, int64_t count)                                              \
    {                                                                                                                          \
        enum { TOGETHER = (type) == BLOCK_Q4_K || (type) == BLOCK_Q5_K ? 2 : 1 };                                              \
        int64_t refused = count;                                                                                               \
        for (int64_t i = 0; i < count; i += TOGETHER) {                                                                        \
            float padded[2 * KBLOCK_ELEMENTS];                                                                                 \
            const float *x = from + i * KBLOCK_ELEMENTS;                                                                       \
            if (i + TOGETHER > count) {                                                                                        \
                memcpy(padded, x, KBLOCK_ELEMENTS * sizeof *x);                                                                \
                memset(padded + KBLOCK_ELEMENTS, 0, KBLOCK_ELEMENTS * sizeof *x);                                              \
                x = padded;                                                                                                    \
            }                                                                                                                  \
            sub_blocks_coded coded;                                                                                            \
            sub_blocks_code(x, type, &coded);                                                                                  \
            for (int64_t k = 0; k < TOGETHER && i + k < count; k++) {                                                          \
                const int64_t first = k * (LANES / TOGETHER);                                                                  \
                const block_fields fields = {coded.codes + k * KBLOCK_ELEMENTS, (const uint8_t *)&coded.scales + first,        \
                                             (const uint8_t *)&coded.mins + first, block_f16_from_f32(coded.d[first]),         \
                                             block_f16_from_f32(coded.dmin[first])};                                           \
                pack_##name(&fields, (block_##name *)to + i + k, 0, 1);                                                        \
                if (block_largest(x + k * KBLOCK_ELEMENTS, KBLOCK_ELEMENTS) >= SEARCH_TOO_LARGE ||                             \
                    !(coded.error[first] < __builtin_inff()) || block_f16_bad(fields.d) || block_f16_bad(fields.dmin))         \
                    refused = i + k < refused ? i + k : refused;                                                               \
            }                                                                                                                  \
        }                                                                                                                      \
        return refused;                                                                                                        \
    }
ENCODE_LARGE(q2_k, BLOCK_Q2_K)
ENCODE_LARGE(q3_k, BLOCK_Q3_K)
ENCODE_LARGE(q4_k, BLOCK_Q4_K)
ENCODE_LARGE(q5_k, BLOCK_Q5_K)
ENCODE_LARGE(q6_k, BLOCK_Q6_K)
#undef ENCODE_LARGE

/* ---- the others ---------------------------------------------------------------------------------------------------------- */

#define ENCODE_BLOCKS(name, elements)                                                                                          \
    static int64_t encode_many_##name(const float *from, void *to, int64_t count)                                              \
    {                                                                                                                          \
        int64_t refused = count;                                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                                    \
            if (encode_##name(from + i * (elements), (block_##name *)to + i) && i < refused)                                   \
                refused = i;                                                                                                   \
        return refused;                                                                                                        \
    }
ENCODE_BLOCKS(q4_0, BLOCK32_ELEMENTS)
ENCODE_BLOCKS(q4_1, BLOCK32_ELEMENTS)
ENCODE_BLOCKS(q5_0, BLOCK32_ELEMENTS)
ENCODE_BLOCKS(q5_1, BLOCK32_ELEMENTS)
ENCODE_BLOCKS(iq4_nl, BLOCK32_ELEMENTS)
ENCODE_BLOCKS(mxfp4, BLOCK32_ELEMENTS)
ENCODE_BLOCKS(iq4_xs, KBLOCK_ELEMENTS)
#undef ENCODE_BLOCKS

static int64_t encode_many_f32(const float *from, void *to, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *from);
    return count;
}

static int64_t encode_many_f16(const float *from, void *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((uint16_t *)to)[i] = (uint16_t)block_f16_from_f32(from[i]);
    return count;
}

static int64_t encode_many_bf16(const float *from, void *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((uint16_t *)to)[i] = (uint16_t)block_bf16_from_f32(from[i]);
    return count;
}

/* Decodes rows in the layout of this backend: groups, then the blocks after the last whole group. */
#define DECODE_BLOCKS(name, type, size, ...)                                                                                   \
    static void arrange_##name(void *row, int64_t count)                                                                       \
    {                                                                                                                          \
        row_arrange(type, row, count);                                                                                         \
    }                                                                                                                          \
    static void restore_##name(const void *row, void *blocks, int64_t count)                                                   \
    {                                                                                                                          \
        row_restore(type, row, blocks, count);                                                                                 \
    }                                                                                                                          \
    static void decode_many_##name(const void *row, float *to, int64_t count)                                                  \
    {                                                                                                                          \
        const block_##name *from = row;                                                                                        \
        int64_t i = 0;                                                                                                         \
        for (; i + BLOCK_GROUP <= count; i += BLOCK_GROUP)                                                                     \
            group_decode(type, (const char *)(from + i), to + i * block_elements(type));                                       \
        for (; i < count; i++)                                                                                                 \
            decode_##name(from + i, to + i * block_elements(type));                                                            \
    }
BLOCK_FORMATS(DECODE_BLOCKS)
#undef DECODE_BLOCKS

/* Plain types are stored as they are. */
#define PLAIN_ROWS(name, bytes)                                                                                                \
    static void arrange_##name(void *row, int64_t count)                                                                       \
    {                                                                                                                          \
        (void)row;                                                                                                             \
        (void)count;                                                                                                           \
    }                                                                                                                          \
    static void restore_##name(const void *row, void *blocks, int64_t count)                                                   \
    {                                                                                                                          \
        memcpy(blocks, row, (size_t)count *(bytes));                                                                           \
    }
PLAIN_ROWS(f32, 4)
PLAIN_ROWS(f16, 2)
PLAIN_ROWS(bf16, 2)
#undef PLAIN_ROWS

static void decode_many_f32(const void *from, float *to, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void decode_many_f16(const void *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = block_f32_from_f16(((const uint16_t *)from)[i]);
}

static void decode_many_bf16(const void *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = block_f32_from_bf16(((const uint16_t *)from)[i]);
}

#define QUANT_CODER(name, type, size, ...) [type] = {encode_many_##name, arrange_##name, restore_##name, decode_many_##name},
/* The table of a set, to initialise an array of quant_coder. */
#define QUANT_CODERS                                                                                                           \
    {QUANT_CODER(f32, BLOCK_F32, plain) QUANT_CODER(f16, BLOCK_F16, plain) QUANT_CODER(bf16, BLOCK_BF16, plain)                \
         BLOCK_FORMATS(QUANT_CODER)}

#endif
