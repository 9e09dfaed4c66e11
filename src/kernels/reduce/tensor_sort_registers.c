/* Sorts rows of up to 128 elements of up to 32 bits in registers, for AMD chips that compute f64 as fast as f32.
 *
 * A lane has eight pairs of a key and a place. Each pair is a positive f64 with the same order, so one instruction gives the
 * smaller of two. Up to sixteen lanes share a row and merge sequences that double in length (Batcher's bitonic sort, with the
 * second sequence reversed, so that all are ascending). Eighteen steps out of 28 compare pairs of one lane. In the others both
 * lanes compute the minimum; the upper lane, which keeps the larger, has the signs of its pairs flipped. Lanes exchange pairs
 * by DPP. Shared memory keeps the elements in their original order; the sorted places are then used to look them up.
 */
#include "kernels/reduce/sort_elements.h"

enum {
    OWN = SORT_REGISTERS_OWN, /* pairs of a lane */
    QUADS = OWN / 4,
    PLACE_BITS = 12, /* bits of a pair that hold the index in the row */
    BLOCK = SORT_REGISTERS_THREADS * OWN,
};

/* ---- pairs --------------------------------------------------------------------------------------------------------------- */

/* Never NaN or denormal: the bits above the key and the place are the exponent of 2. */
DEVICE double pair_of(uint32_t key, uint32_t place)
{
    const uint32_t high = 0x40000000u | key >> (32 - PLACE_BITS), low = key << PLACE_BITS | place;
    return canon_bits_double((uint64_t)high << 32 | low);
}

DEVICE uint32_t pair_place(double pair)
{
    return (uint32_t)canon_double_bits(pair) & (SORT_REGISTERS_ROW - 1);
}

/* Swaps two pairs if needed, so the smaller comes first. */
DEVICE void order(double *pairs, uint32_t first, uint32_t second)
{
    const double x = pairs[first], y = pairs[second];
    pairs[first] = min_f64(x, y);
    pairs[second] = max_f64(x, y);
}

/* Sorts the eight pairs of one lane with nineteen comparisons. */
DEVICE void sort_own(double *pairs)
{
    order(pairs, 0, 2), order(pairs, 1, 3), order(pairs, 4, 6), order(pairs, 5, 7);
    order(pairs, 0, 4), order(pairs, 1, 5), order(pairs, 2, 6), order(pairs, 3, 7);
    order(pairs, 0, 1), order(pairs, 2, 3), order(pairs, 4, 5), order(pairs, 6, 7);
    order(pairs, 2, 4), order(pairs, 3, 5);
    order(pairs, 1, 4), order(pairs, 3, 6);
    order(pairs, 1, 2), order(pairs, 3, 4), order(pairs, 5, 6);
}

/* Sorts the pairs of one lane that ascend and then descend, or the reverse. */
DEVICE void merge_own(double *pairs)
{
    UNROLL for (uint32_t apart = OWN / 2; apart > 0; apart /= 2)
    {
        UNROLL for (uint32_t i = 0; i < OWN; i++)
        {
            if ((i & apart) == 0)
                order(pairs, i, i + apart);
        }
    }
}

DEVICE void turn_signs(double *pairs, uint32_t sign)
{
    UNROLL for (uint32_t i = 0; i < OWN; i++) pairs[i] = canon_bits_double(canon_double_bits(pairs[i]) ^ (uint64_t)sign << 32);
}

/* The sign bit in lanes whose index has bit `bit`, else 0. */
DEVICE uint32_t sign_of(uint32_t bit)
{
    return lane() << (31 - bit) & 0x80000000u;
}

/* Compares the pairs of a lane with those of lane() ^ mask, in reverse order if `backwards`, and keeps the smaller. Where signs
 * are flipped these are the larger. */
#define COMPARE(pairs, mask, backwards)                                                                                        \
    do {                                                                                                                       \
        double others[OWN];                                                                                                    \
        UNROLL for (uint32_t i = 0; i < OWN; i++) others[i] =                                                                  \
            canon_bits_double(wave_shuffle_xor_u64(canon_double_bits((pairs)[(backwards) ? OWN - 1 - i : i]), mask));          \
        UNROLL for (uint32_t i = 0; i < OWN; i++)(pairs)[i] = min_negated_f64((pairs)[i], others[i]);                          \
    } while (0)

/* Merges to sequences of 16, 32, 64 and 128 pairs, up to the length of rows. */
DEVICE void sort_pairs(uint32_t padded, double *pairs)
{
    const uint32_t one = sign_of(0), two = sign_of(1), four = sign_of(2), eight = sign_of(3);
    sort_own(pairs);
    if (padded >= 2 * OWN) {
        turn_signs(pairs, one);
        COMPARE(pairs, 1, true);
        turn_signs(pairs, one);
        merge_own(pairs);
    }
    if (padded >= 4 * OWN) {
        turn_signs(pairs, two);
        COMPARE(pairs, 3, true);
        turn_signs(pairs, two ^ one);
        COMPARE(pairs, 1, false);
        turn_signs(pairs, one);
        merge_own(pairs);
    }
    if (padded >= 8 * OWN) {
        turn_signs(pairs, four);
        COMPARE(pairs, 7, true);
        turn_signs(pairs, four ^ two);
        COMPARE(pairs, 2, false);
        turn_signs(pairs, two ^ one);
        COMPARE(pairs, 1, false);
        turn_signs(pairs, one);
        merge_own(pairs);
    }
    if (padded >= 16 * OWN) {
        turn_signs(pairs, eight);
        COMPARE(pairs, 15, true);
        turn_signs(pairs, eight ^ four);
        COMPARE(pairs, 4, false);
        turn_signs(pairs, four ^ two);
        COMPARE(pairs, 2, false);
        turn_signs(pairs, two ^ one);
        COMPARE(pairs, 1, false);
        turn_signs(pairs, one);
        merge_own(pairs);
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* A lane's place. It loads and stores the quads `quad` and `quad` + `apart` of its row. */
typedef struct short_row {
    int64_t block_row; /* the block's first row */
    uint32_t number;   /* index of the row in the block */
    uint32_t first;    /* its first element, in shared memory */
    uint32_t quad;
    uint32_t apart; /* half of the row's quads */
    bool there;
} short_row;

DEVICE short_row short_row_of(const sort_args *args)
{
    const uint32_t bits = 31 - (uint32_t)__builtin_clz((uint32_t)args->padded), lanes = (uint32_t)args->padded / OWN;
    short_row at;
    at.block_row = (int64_t)block_index() * (BLOCK >> bits);
    at.number = thread_index() * OWN >> bits;
    at.first = at.number << bits;
    at.quad = thread_index() & (lanes - 1);
    at.apart = lanes;
    at.there = at.block_row + at.number < args->rows;
    return at;
}

/* The address of the block's rows of `length` elements, if `data` is not NULL. */
DEVICE void *block_begin(void *data, const short_row *at, int64_t length, int32_t bytes)
{
    return data ? (char *)data + at->block_row * length * bytes : NULL;
}

DEVICE void short_bring(const sort_args *args, const short_row *at, uint32_t *elements, double *pairs)
{
    const int32_t bytes = type_bytes(args->type);
    const bool quads = has_quads(args->x, args->n, bytes);
    const uint32_t n = at->there ? (uint32_t)args->n : 0, begin = at->number * (uint32_t)args->n;
    const char *x = (const char *)args->x + at->block_row * args->n * bytes;
    UNROLL for (uint32_t i = 0; i < QUADS; i++)
    {
        const uint32_t index = 4 * (at->quad + i * at->apart);
        quad_bits quad = {{0, 0, 0, 0}};
        if (quads && index < n)
            quad = quad_load(x, begin + index, 4);
        UNROLL for (uint32_t j = 0; j < 4; j++)
        {
            if (!quads && index + j < n)
                quad.word[j] = (uint32_t)bits_at(x, begin + index + j, bytes);
            pairs[4 * i + j] = pair_of(index + j < n ? sort_key_of(args, quad.word[j]) : UINT32_MAX, index + j);
        }
        const u32x4 words = {quad.word[0], quad.word[1], quad.word[2], quad.word[3]};
        *(u32x4 *)AT_RANGE(elements, at->first + index, 4) = words;
    }
}

/* The places of four pairs, packed in a word. */
DEVICE uint32_t pair_places(const double *pairs)
{
    return pair_place(pairs[0]) | pair_place(pairs[1]) << 8 | pair_place(pairs[2]) << 16 | pair_place(pairs[3]) << 24;
}

/* Writes quad `quad` of the first k elements of the row; `places` has its four places. */
DEVICE void short_write(const sort_args *args, const short_row *at, uint32_t quad, uint32_t places, const uint32_t *elements)
{
    const int32_t bytes = type_bytes(args->type);
    const bool quads = has_quads(args->values, args->k, bytes) && has_quads(args->indices, args->k, 4);
    const uint32_t rank = 4 * quad;
    const uint32_t to = at->number * (uint32_t)args->k + rank;
    void *to_values = block_begin(args->values, at, args->k, bytes);
    uint32_t *to_indices = (uint32_t *)block_begin(args->indices, at, args->k, 4);
    quad_bits indices, values;
    UNROLL for (uint32_t j = 0; j < 4; j++)
    {
        indices.word[j] = places >> 8 * j & 0xffu;
        values.word[j] = AT(elements, at->first + indices.word[j]);
    }
    if (!at->there || rank >= (uint32_t)args->k)
        return;
    if (quads && to_values)
        quad_store(to_values, to, 4, values);
    if (quads && to_indices)
        quad_store(to_indices, to, 4, indices);
    UNROLL for (uint32_t j = 0; j < 4; j++)
    {
        if (quads || rank + j >= (uint32_t)args->k)
            continue;
        if (to_values)
            bits_put(to_values, to + j, bytes, values.word[j]);
        if (to_indices)
            to_indices[to + j] = indices.word[j];
    }
}

KERNEL(tensor_sort_registers, sort_args, SORT_REGISTERS_THREADS)
{
    SHARED(u32x4, elements, BLOCK / 4);
    SHARED(uint32_t, sorted, BLOCK / 4); /* places, four in a word */
    const short_row at = short_row_of(&args);
    double pairs[OWN];
    short_bring(&args, &at, (uint32_t *)elements, pairs);
    sort_pairs((uint32_t)args.padded, pairs);
    UNROLL for (uint32_t i = 0; i < QUADS; i++) AT(sorted, thread_index() * QUADS + i) = pair_places(pairs + 4 * i);
    wave_barrier(); /* a row belongs to one wave */
    UNROLL for (uint32_t i = 0; i < QUADS; i++)
    {
        const uint32_t quad = at.quad + i * at.apart;
        short_write(&args, &at, quad, AT(sorted, at.first / 4 + quad), (const uint32_t *)elements);
    }
}
