/* Blocks to floats and floats to blocks (blocks.h).
 *
 * Decoding is bound by writing floats: a thread makes four of them, 16 bytes per lane, and all threads take the same branch of
 * the switch over formats. One thread encodes a block of 32, or of a format with a codebook. One thread per sub-block searches
 * a K block (blocks/encode_k.h). Sub-blocks are in shared memory, because they are read many times; so are the codes, and the
 * same threads pack them.
 */
#include "kernels/quant/quant.h"
#include "kernels/simt/simt.h"

#include "arithmetic/blocks/blocks.h"
#include "arithmetic/blocks/decode.h"
#include "arithmetic/blocks/encode.h"

/* The vector type that blocks/encode_k.h is written in, for GPUs: one sub-block per thread. The 8 or 16 sub-blocks of a block
 * are in neighbouring lanes, and both numbers divide the wave size. */
typedef float lanes;

#define LANES_REGISTERS 1

DEVICE lanes lanes_all(float value)
{
    return value;
}

DEVICE lanes lanes_select(bool where, lanes a, lanes b)
{
    return where ? a : b;
}

DEVICE lanes lanes_min(lanes a, lanes b)
{
    return a < b ? a : b;
}

DEVICE lanes lanes_max(lanes a, lanes b)
{
    return a > b ? a : b;
}

DEVICE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return fma_f32(a, b, c);
}

DEVICE lanes lanes_f16(lanes a)
{
    return block_f32_from_f16(block_f16_from_f32(a));
}

DEVICE void lanes_block_max(lanes a[LANES_REGISTERS], int32_t sub_blocks)
{
    for (int32_t mask = sub_blocks / 2; mask > 0; mask /= 2)
        a[0] = lanes_max(a[0], wave_shuffle_xor_f32(a[0], (uint32_t)mask));
}

DEVICE void lanes_block_sum(lanes a[LANES_REGISTERS], int32_t sub_blocks)
{
    for (int32_t mask = sub_blocks / 2; mask > 0; mask /= 2)
        a[0] = a[0] + wave_shuffle_xor_f32(a[0], (uint32_t)mask);
}

#include "arithmetic/blocks/encode_k.h"
#include "arithmetic/blocks/pack_k.h"

DEVICE void decode_put(int32_t type, void *to, uint64_t at, float value)
{
    if (type == BLOCK_F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] = (uint16_t)(type == BLOCK_F16 ? block_f16_from_f32(value) : block_bf16_from_f32(value));
}

KERNEL(quant_decode, quant_decode_args, QUANT_THREADS)
{
    const uint64_t unit = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    if (unit >= args.count * args.units_per_row)
        return;
    const uint64_t row = unit / args.units_per_row, first = unit % args.units_per_row * QUANT_UNIT;
    const uint64_t source = args.ids ? quant_id(args.ids, args.id_bytes, row) : row;
    const uint8_t *from = args.from + (source < args.rows ? source : 0) * args.row_bytes;
    const uint64_t end = first + QUANT_UNIT < args.cols ? first + QUANT_UNIT : args.cols;
    UNROLL_BY(1)
    for (uint64_t i = first; i < end; i++) {
        const uint32_t block = (uint32_t)i / (uint32_t)args.block_elements, at = (uint32_t)i % (uint32_t)args.block_elements;
        float value = 0.0f;
        if (source < args.rows)
            value = decode_element(args.type, from + (uint64_t)block * (uint64_t)args.block_bytes, (int32_t)at);
        decode_put(args.to_type, args.to, row * args.cols + i, value);
    }
}

DEVICE int encode_block32(int32_t type, const float *from, uint8_t *to, uint64_t block)
{
    switch (type) {
    case BLOCK_F32:
        ((float *)to)[block] = from[block];
        return 0;
    case BLOCK_F16:
        ((uint16_t *)to)[block] = (uint16_t)block_f16_from_f32(from[block]);
        return 0;
    case BLOCK_BF16:
        ((uint16_t *)to)[block] = (uint16_t)block_bf16_from_f32(from[block]);
        return 0;
    case BLOCK_Q4_0:
        return encode_q4_0(from + block * BLOCK32_ELEMENTS, (block_q4_0 *)to + block);
    case BLOCK_Q4_1:
        return encode_q4_1(from + block * BLOCK32_ELEMENTS, (block_q4_1 *)to + block);
    case BLOCK_Q5_0:
        return encode_q5_0(from + block * BLOCK32_ELEMENTS, (block_q5_0 *)to + block);
    case BLOCK_Q5_1:
        return encode_q5_1(from + block * BLOCK32_ELEMENTS, (block_q5_1 *)to + block);
    case BLOCK_Q8_0:
        return encode_q8_0(from + block * BLOCK32_ELEMENTS, (block_q8_0 *)to + block);
    case BLOCK_Q8_1:
        return encode_q8_1(from + block * BLOCK32_ELEMENTS, (block_q8_1 *)to + block);
    case BLOCK_IQ4_NL:
        return encode_iq4_nl(from + block * BLOCK32_ELEMENTS, (block_iq4_nl *)to + block);
    case BLOCK_MXFP4:
        return encode_mxfp4(from + block * BLOCK32_ELEMENTS, (block_mxfp4 *)to + block);
    case BLOCK_IQ4_XS:
        return encode_iq4_xs(from + block * KBLOCK_ELEMENTS, (block_iq4_xs *)to + block);
    default:
        return encode_q8_k(from + block * KBLOCK_ELEMENTS, (block_q8_k *)to + block);
    }
}

KERNEL_RESIDENT(quant_encode_block32, quant_encode_args, QUANT_THREADS, 4)
{
    const uint64_t block = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    if (block < args.count && encode_block32(args.type, args.from, args.to, block))
        atomic_min_u64(args.refused, args.first_block + block);
}

DEVICE void pack_block(int32_t type, const block_fields *parts, uint8_t *to, uint64_t block, int32_t first, int32_t step)
{
    switch (type) {
    case BLOCK_Q2_K:
        pack_q2_k(parts, (block_q2_k *)to + block, first, step);
        break;
    case BLOCK_Q3_K:
        pack_q3_k(parts, (block_q3_k *)to + block, first, step);
        break;
    case BLOCK_Q4_K:
        pack_q4_k(parts, (block_q4_k *)to + block, first, step);
        break;
    case BLOCK_Q5_K:
        pack_q5_k(parts, (block_q5_k *)to + block, first, step);
        break;
    default:
        pack_q6_k(parts, (block_q6_k *)to + block, first, step);
        break;
    }
}

/* Loads the sub-blocks of all threads, `length` floats each, one bank apart; zeros past the last. */
DEVICE void encode_fetch(const quant_encode_args *args, uint32_t length, float *staged)
{
    const uint64_t first = (uint64_t)block_index() * QUANT_THREADS * length, end = args->count * KBLOCK_ELEMENTS;
    UNROLL_BY(4)
    for (uint32_t i = thread_index(); i < QUANT_THREADS * length; i += QUANT_THREADS)
        AT(staged, i / length * (length + 1) + i % length) = first + i < end ? args->from[first + i] : 0.0f;
    barrier();
}

/* Threads past the last block search zeros and write nothing: shuffles need them all. */
KERNEL(quant_encode_kblock, quant_encode_args, QUANT_THREADS)
{
    SHARED(float, staged, QUANT_THREADS * 33);
    SHARED(uint8_t, codes, QUANT_THREADS * 32);
    SHARED(uint8_t, scales, QUANT_THREADS);
    SHARED(uint8_t, mins, QUANT_THREADS);
    const search_limits limits = search_limits_of(args.type);
    const uint32_t sub_blocks = (uint32_t)limits.sub_blocks, length = (uint32_t)limits.length;
    const uint32_t thread = thread_index(), sub_block = thread % sub_blocks;
    const uint64_t block = (uint64_t)block_index() * (QUANT_THREADS / sub_blocks) + thread / sub_blocks;
    const bool exists = block < args.count;
    encode_fetch(&args, length, staged);
    const float *x = AT_RANGE(staged, thread * (length + 1), length);

    search_found found;
    if (limits.lowest < 0.0f)
        search_without_min(x, &limits, &found);
    else
        search_with_min(x, &limits, &found);
    const float inverse = search_inverse(found.scale[0] * found.d[0]), min = found.min[0] * found.dmin[0];
    for (uint32_t l = 0; l < length; l++) {
        const float code = search_code(x[l], min, inverse, limits.lowest, limits.highest) - limits.lowest;
        AT(codes, thread * length + l) = (uint8_t)(int32_t)code;
    }
    AT(scales, thread) = (uint8_t)(int32_t)(found.scale[0] + (args.type == BLOCK_Q3_K ? 32.0f : 0.0f));
    AT(mins, thread) = (uint8_t)(int32_t)found.min[0];
    barrier();

    block_fields parts;
    parts.codes = AT_RANGE(codes, (thread - sub_block) * length, KBLOCK_ELEMENTS);
    parts.scales = AT_RANGE(scales, thread - sub_block, sub_blocks);
    parts.mins = AT_RANGE(mins, thread - sub_block, sub_blocks);
    parts.d = block_f16_from_f32(found.d[0]);
    parts.dmin = block_f16_from_f32(found.dmin[0]);
    if (!exists)
        return;
    pack_block(args.type, &parts, args.to, block, (int32_t)sub_block, (int32_t)sub_blocks);
    if (block_largest(x, limits.length) >= SEARCH_TOO_LARGE || !(found.error[0] < __builtin_inff()) || block_f16_bad(parts.d) ||
        block_f16_bad(parts.dmin))
        atomic_min_u64(args.refused, args.first_block + block);
}
