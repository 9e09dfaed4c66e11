/* Activations for gemv (gemv.h): the codes of eight blocks, interleaved word by word.
 */
#ifndef WW_CPU_QUANT_GEMV_ACTIVATIONS_H
#define WW_CPU_QUANT_GEMV_ACTIVATIONS_H

#include "cpu/quant/quant_set.h"
#include "cpu/quant/unpack.h"

/* Activations of eight blocks. `sums` are the sums of the codes of each sub-block, times minus the offset if there is one. */
typedef struct gemv_small {
    int32_t codes[8][8];
    int32_t sums[8];
    float d[8];
} gemv_small;

typedef struct gemv_large {
    _Alignas(64) int32_t codes[64][8];
    int32_t sums[16][8];
    float d[8];
} gemv_large;

/* A set whose gemv of blocks of 32 needs unsigned codes, and has no cheaper way, defines this as 128 before. */
#ifndef GEMV_SIGNED_OFFSET
#define GEMV_SIGNED_OFFSET 0
#endif

/* Returns what is added to the codes of weights to make them unsigned. */
DOT_FUNCTION int32_t codes_offset(int32_t type)
{
    return codes_signed(type) && block_elements(type) == BLOCK32_ELEMENTS ? GEMV_SIGNED_OFFSET : dot_offset(type);
}

DOT_FUNCTION int32_t sums_factor(int32_t type)
{
    return codes_offset(type) ? -codes_offset(type) : 1;
}

DOT_FUNCTION void gemv_prepare_small(int32_t type, const char *group, gemv_small *to)
{
    dot_lanes sums = {0};
    for (int32_t i = 0; i < 8; i++) {
        const dot_lanes codes = group_codes(BLOCK_Q8_1, group, 0, i);
        memcpy(to->codes[i], &codes, sizeof codes);
        sums = dot_unsigned(sums, (dot_lanes){0} + 0x01010101, codes);
    }
    sums *= sums_factor(type);
    const dot_floats d = group_factor(BLOCK_Q8_1, group);
    memcpy(to->sums, &sums, sizeof sums);
    memcpy(to->d, &d, sizeof d);
}

DOT_FUNCTION void gemv_prepare_large(int32_t type, const char *group, gemv_large *to)
{
    enum { FIRST_SUMS = 65 }; /* words of a block of q8_k before its sums; a word has two sums */
    memcpy(to->d, group, sizeof to->d);
    memcpy(to->codes, group + sizeof to->d, sizeof to->codes);
    for (int32_t p = 0; p < 8; p++) {
        const dot_lanes both = (dot_lanes)group_word(BLOCK_Q8_K, group, FIRST_SUMS + p);
        const dot_lanes first = (both << 16 >> 16) * sums_factor(type), second = (both >> 16) * sums_factor(type);
        const dot_lanes sum = first + second;
        if (sub_blocks(type) == 16) {
            memcpy(to->sums[2 * p], &first, sizeof first);
            memcpy(to->sums[2 * p + 1], &second, sizeof second);
        } else {
            memcpy(to->sums[p], &sum, sizeof sum);
        }
    }
}

DOT_FUNCTION void gemv_prepare_all(int32_t type, const char *coded, int64_t blocks, char *to)
{
    const int32_t kind = dot_activations(type), bytes = block_bytes(kind);
    const int64_t to_bytes = kind == BLOCK_Q8_1 ? sizeof(gemv_small) : sizeof(gemv_large);
    for (int64_t b = 0; b < blocks; b += BLOCK_GROUP, to += to_bytes) {
        _Alignas(32) char group[GROUP_BYTES_MAX];
        if (blocks - b >= BLOCK_GROUP)
            group_interleave(kind, coded + b * bytes, group);
        else
            group_of_rest(kind, coded + b * bytes, blocks - b, group);
        if (kind == BLOCK_Q8_1)
            gemv_prepare_small(type, group, (gemv_small *)(void *)to);
        else
            gemv_prepare_large(type, group, (gemv_large *)(void *)to);
    }
}

#endif
