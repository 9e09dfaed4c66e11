/* Sorting rows, on pairs of a key and a number, whose order is the wanted one and has no equals.
 *
 * A row of up to 4096 elements of up to 32 bits is sorted by one block, eight bits of the keys at a time from the lowest on:
 * each time elements go behind those with smaller digits, and those with the same one that came before, which lanes of a wave
 * find out by asking each other bit by bit. Where only the first few of such a row are wanted these are looked for by halving.
 *
 * All others merge sequences that go up and down in turns (Batcher's bitonic sort), padded to a power of two with the largest
 * pair: comparisons of elements less than a tile apart happen in shared memory, many steps a launch; the rest a launch each.
 */
#include "kernels/elementwise/elements.h"

#include "kernels/reduce/row_arguments.h"

/* ---- a row by a block ---------------------------------------------------------------------------------------------------- */

/* Smaller keys come first: the same order as that of sort_key_f64 and sort_key_i64, in 32 bits. */
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

/* The same in 16 bits, of types that have no more: what 32 bits have of them, without what is the same in all. */
DEVICE uint32_t sort_key_16(uint64_t bits, int32_t type)
{
    if (type != TYPE_F16 && type != TYPE_BF16)
        return type == TYPE_F8E4M3 ? sort_key_32(bits, type) >> 16 : (uint32_t)(bits_to_i64(bits, type) + 0x8000) & 0xffffu;
    const uint32_t plain = bits == 0x8000u ? 0 : (uint32_t)bits, infinity = type == TYPE_F16 ? 0x7c00u : 0x7f80u;
    const uint32_t ordered = plain >> 15 ? plain ^ 0xffffu : plain | 0x8000u;
    return (plain & 0x7fffu) > infinity ? 0xfffeu : ordered;
}

/* The key of element i of a row, of 16 or 32 bits. */
DEVICE uint32_t sort_key_at(const sort_args *args, const char *x, uint32_t i)
{
    const uint64_t bits = bits_at(x, i, type_bytes(args->type));
    if (type_bytes(args->type) <= 2)
        return sort_key_16(bits, args->type) ^ (args->descending ? 0xffffu : 0u);
    return sort_key_32(bits, args->type) ^ (args->descending ? UINT32_MAX : 0u);
}

/* Element `place` of a row comes at `rank`. */
DEVICE void sort_put(const sort_args *args, int64_t row, uint32_t rank, uint32_t place)
{
    const int32_t bytes = type_bytes(args->type);
    const int64_t at = row * args->k + rank;
    if (args->values)
        bits_put(args->values, at, bytes, bits_at(args->x, row * args->n + place, bytes));
    if (args->indices)
        args->indices[at] = place;
}

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    SORT_WAVES_MAX = SORT_ROW_THREADS / 32,
    OWN = SORT_ROW_MAX / SORT_ROW_THREADS
};

/* Elements of a row while they are sorted. Those of a wave come one after the other: `each` times as many as it has lanes. */
typedef struct sort_shared {
    uint32_t *keys;
    uint16_t *places;
    uint32_t *counts; /* by wave and digit: how many; and then where the first goes */
} sort_shared;

/* The lanes of the wave that have the same digit. */
DEVICE uint64_t lanes_alike(uint32_t digit)
{
    uint64_t alike = wave_ballot(true);
    UNROLL for (uint32_t bit = 0; bit < DIGIT_BITS; bit++)
    {
        const bool set = (digit >> bit & 1) != 0;
        const uint64_t those = wave_ballot(set);
        alike &= set ? those : ~those;
    }
    return alike;
}

/* How many elements of the wave with its digit come before each, in the upper half of `places`; and the wave's counts. */
DEVICE void rank_own(const uint32_t *keys, uint32_t each, uint32_t shift, const sort_shared *shared, uint32_t *places)
{
    const uint64_t below = ((uint64_t)1 << lane()) - 1;
    UNROLL for (uint32_t j = 0; j < OWN; j++) if (j < each)
    {
        const uint32_t digit = keys[j] >> shift & (DIGITS - 1);
        const uint64_t alike = lanes_alike(digit);
        const uint32_t at = wave_index() * DIGITS + digit, before = AT(shared->counts, at);
        places[j] |= (before + (uint32_t)__builtin_popcountll(alike & below)) << 16;
        wave_barrier();
        if ((alike & below) == 0)
            AT(shared->counts, at) = before + (uint32_t)__builtin_popcountll(alike);
        wave_barrier();
    }
}

/* Makes of the counts where the first element of each wave and digit goes. A thread has a digit, or none. */
DEVICE void place_digits(const sort_shared *shared, uint32_t *sums)
{
    const uint32_t digit = thread_index();
    uint32_t mine = 0;
    for (uint32_t w = 0; w < waves_per_block() && digit < DIGITS; w++)
        mine += AT(shared->counts, w * DIGITS + digit);
    uint32_t up_to = mine;
    for (uint32_t apart = 1; apart < wave_size(); apart *= 2) {
        const uint32_t other = wave_shuffle_u32(up_to, lane() >= apart ? lane() - apart : lane());
        up_to += lane() >= apart ? other : 0;
    }
    if (lane() == wave_size() - 1)
        AT(sums, wave_index()) = up_to;
    barrier();
    uint32_t first = up_to - mine;
    for (uint32_t w = 0; w < wave_index(); w++)
        first += AT(sums, w);
    for (uint32_t w = 0; w < waves_per_block() && digit < DIGITS; w++) {
        const uint32_t count = AT(shared->counts, w * DIGITS + digit);
        AT(shared->counts, w * DIGITS + digit) = first;
        first += count;
    }
    barrier();
}

KERNEL_RESIDENT(tensor_sort_row, sort_args, SORT_ROW_THREADS, 2)
{
    SHARED(uint32_t, all_keys, SORT_ROW_MAX);
    SHARED(uint16_t, all_places, SORT_ROW_MAX);
    SHARED(uint32_t, counts, SORT_WAVES_MAX *DIGITS);
    SHARED(uint32_t, sums, SORT_WAVES_MAX);
    const sort_shared shared = {all_keys, all_places, counts};
    const uint32_t thread = thread_index(), n = (uint32_t)args.n, each = (n + SORT_ROW_THREADS - 1) / SORT_ROW_THREADS;
    const uint32_t first = wave_index() * each * wave_size() + lane();
    const uint32_t bits = type_bytes(args.type) <= 2 ? 16 : 32;
    const int64_t row = block_index();
    const char *x = (const char *)args.x + row * args.n * type_bytes(args.type);
    UNROLL_BY(4) for (uint32_t i = thread; i < each * SORT_ROW_THREADS; i += SORT_ROW_THREADS)
    {
        AT(all_keys, i) = i < n ? sort_key_at(&args, x, i) : UINT32_MAX; /* behind all that are there */
        AT(all_places, i) = (uint16_t)i;
    }
    UNROLL_BY(1) for (uint32_t shift = 0; shift < bits; shift += DIGIT_BITS)
    {
        uint32_t keys[OWN], places[OWN];
        for (uint32_t i = thread; i < SORT_WAVES_MAX * DIGITS; i += SORT_ROW_THREADS)
            AT(counts, i) = 0;
        barrier();
        UNROLL for (uint32_t j = 0; j < OWN; j++) if (j < each)
        {
            keys[j] = AT(all_keys, first + j * wave_size());
            places[j] = AT(all_places, first + j * wave_size());
        }
        rank_own(keys, each, shift, &shared, places);
        barrier();
        place_digits(&shared, sums);
        UNROLL for (uint32_t j = 0; j < OWN; j++) if (j < each)
        {
            const uint32_t digit = keys[j] >> shift & (DIGITS - 1);
            const uint32_t at = AT(counts, wave_index() * DIGITS + digit) + (places[j] >> 16);
            AT(all_keys, at) = keys[j];
            AT(all_places, at) = (uint16_t)places[j];
        }
        barrier();
    }
    for (uint32_t i = thread; i < (uint32_t)args.k; i += SORT_ROW_THREADS)
        sort_put(&args, row, i, AT(all_places, i));
}

/* ---- the first few of a row by a block ----------------------------------------------------------------------------------- */

enum { TOP_OWN = SORT_ROW_MAX / TOP_THREADS };

/* How many of the block's threads' `mine` there are together. */
DEVICE uint32_t top_sum(uint32_t mine, uint32_t *counts)
{
    for (uint32_t mask = wave_size() / 2; mask > 0; mask /= 2)
        mine += wave_shuffle_xor_u32(mine, mask);
    barrier();
    if (lane() == 0)
        AT(counts, wave_index()) = mine;
    barrier();
    uint32_t sum = 0;
    for (uint32_t w = 0; w < waves_per_block(); w++)
        sum += AT(counts, w);
    return sum;
}

/* A key that at least k of the row's are not above, and fewer than k are below; or, if `all`, that just k are not above. What
 * is not there has the largest key; if that is one of the first k, the row has others of it. */
DEVICE uint32_t top_key(const uint32_t *keys, int32_t bits, uint32_t k, uint32_t *counts, bool *all)
{
    uint32_t below = 0;
    *all = false;
    UNROLL_BY(1) for (int32_t bit = bits - 1; bit >= 0 && !*all; bit--)
    {
        const uint32_t tried = below | ((1u << bit) - 1u);
        uint32_t mine = 0;
        UNROLL for (int32_t j = 0; j < TOP_OWN; j++) mine += keys[j] <= tried;
        const uint32_t count = top_sum(mine, counts);
        *all = count == k;
        below = *all ? tried : count < k ? below | 1u << bit : below;
    }
    return below;
}

/* The place up to which elements of the last key are among the first k. */
DEVICE uint32_t top_place(const uint32_t *keys, uint32_t last, uint32_t k, uint32_t *counts)
{
    uint32_t before = 0, place = 0;
    UNROLL for (int32_t j = 0; j < TOP_OWN; j++) before += keys[j] < last;
    const uint32_t wanted = k - top_sum(before, counts);
    UNROLL_BY(1) for (uint32_t bit = SORT_ROW_MAX / 2; bit > 0; bit /= 2)
    {
        uint32_t mine = 0;
        UNROLL for (uint32_t j = 0; j < TOP_OWN; j++) mine += keys[j] == last && thread_index() + j * TOP_THREADS < place + bit;
        if (top_sum(mine, counts) < wanted)
            place += bit;
    }
    return place;
}

/* Thread t has the elements t, t + TOP_THREADS, ... */
KERNEL(tensor_top_row, sort_args, TOP_THREADS)
{
    SHARED(uint32_t, counts, TOP_THREADS);
    SHARED(uint64_t, taken, TOP_MAX);
    SHARED(uint32_t, length, 1);
    const int64_t row = block_index();
    const uint32_t thread = thread_index(), n = (uint32_t)args.n, k = (uint32_t)args.k;
    const char *x = (const char *)args.x + row * args.n * type_bytes(args.type);
    uint32_t keys[TOP_OWN];
    UNROLL for (uint32_t j = 0; j < TOP_OWN; j++)
    {
        keys[j] = UINT32_MAX;
        if (thread + j * TOP_THREADS < n)
            keys[j] = sort_key_at(&args, x, thread + j * TOP_THREADS);
    }
    if (thread == 0)
        AT(length, 0) = 0;
    bool all;
    const uint32_t last = top_key(keys, type_bytes(args.type) <= 2 ? 16 : 32, k, counts, &all);
    const uint32_t places = all ? n : top_place(keys, last, k, counts);
    UNROLL for (uint32_t j = 0; j < TOP_OWN; j++)
    {
        const uint32_t place = thread + j * TOP_THREADS;
        if (place < n && (keys[j] < last || (keys[j] == last && place <= places)))
            AT(taken, atomic_add_u32(length, 1)) = (uint64_t)keys[j] << 32 | place;
    }
    barrier();
    if (thread >= k)
        return;
    uint32_t rank = 0;
    const uint64_t mine = AT(taken, thread);
    UNROLL_BY(1) for (uint32_t i = 0; i < k; i++) rank += AT(taken, i) < mine;
    sort_put(&args, row, rank, (uint32_t)mine);
}

/* ---- any row ------------------------------------------------------------------------------------------------------------- */

KERNEL(tensor_sort_keys, sort_args, SORT_THREADS)
{
    const int64_t at = (int64_t)block_index() * SORT_THREADS + thread_index();
    const int64_t row = at / args.padded;
    const int64_t i = at - row * args.padded;
    if (row >= args.rows)
        return;
    uint64_t key = UINT64_MAX;
    if (i < args.n) {
        const uint64_t bits = bits_at(args.x, row * args.n + i, type_bytes(args.type));
        const bool small_float =
            args.type == TYPE_F32 || args.type == TYPE_F16 || args.type == TYPE_BF16 || args.type == TYPE_F8E4M3;
        key = small_float             ? sort_key_f64((double)bits_to_f32(bits, args.type))
              : args.type == TYPE_F64 ? sort_key_f64(bits_to_f64(bits, args.type))
                                      : sort_key_i64(bits_to_i64(bits, args.type));
        key ^= args.descending ? UINT64_MAX : 0;
    }
    args.keys[at] = key;
    args.places[at] = (uint32_t)i;
}

DEVICE bool comes_after(uint64_t key, uint32_t place, uint64_t other_key, uint32_t other_place)
{
    return key > other_key || (key == other_key && place > other_place);
}

/* The steps of merging sequences of first_size to last_size elements that compare within a tile. */
KERNEL(tensor_sort_tile, sort_args, SORT_THREADS)
{
    SHARED(uint64_t, keys, SORT_TILE);
    SHARED(uint32_t, places, SORT_TILE);
    const int32_t tile = args.padded < SORT_TILE ? (int32_t)args.padded : SORT_TILE;
    const int64_t first = (int64_t)block_index() * tile;
    const int64_t row_first = first & (args.padded - 1); /* the tile's place in its row: all are powers of two */
    for (int32_t i = (int32_t)thread_index(); i < tile; i += SORT_THREADS) {
        AT(keys, i) = args.keys[first + i];
        AT(places, i) = args.places[first + i];
    }
    barrier();
    UNROLL_BY(1) for (int64_t size = args.first_size; size <= args.last_size; size *= 2)
    {
        UNROLL_BY(1) for (int32_t apart = size / 2 < tile / 2 ? (int32_t)(size / 2) : tile / 2; apart > 0; apart /= 2)
        {
            UNROLL_BY(1) for (int32_t pair = (int32_t)thread_index(); pair < tile / 2; pair += SORT_THREADS)
            {
                const int32_t low = 2 * pair - (pair & (apart - 1));
                const int32_t high = low + apart;
                const bool up = ((row_first + low) & size) == 0;
                const uint64_t low_key = AT(keys, low);
                const uint64_t high_key = AT(keys, high);
                const uint32_t low_place = AT(places, low);
                const uint32_t high_place = AT(places, high);
                if (comes_after(low_key, low_place, high_key, high_place) == up) {
                    AT(keys, low) = high_key;
                    AT(places, low) = high_place;
                    AT(keys, high) = low_key;
                    AT(places, high) = low_place;
                }
            }
            barrier();
        }
    }
    for (int32_t i = (int32_t)thread_index(); i < tile; i += SORT_THREADS) {
        args.keys[first + i] = AT(keys, i);
        args.places[first + i] = AT(places, i);
    }
}

/* One step of merging sequences of last_size, of elements further apart than a tile is wide. */
KERNEL(tensor_sort_step, sort_args, SORT_THREADS)
{
    const int64_t pair = (int64_t)block_index() * SORT_THREADS + thread_index();
    const int64_t low = 2 * pair - (pair & (args.apart - 1));
    const int64_t high = low + args.apart;
    if (high >= args.rows * args.padded)
        return;
    const bool up = (low & (args.padded - 1) & args.last_size) == 0;
    const uint64_t low_key = args.keys[low];
    const uint64_t high_key = args.keys[high];
    const uint32_t low_place = args.places[low];
    const uint32_t high_place = args.places[high];
    if (comes_after(low_key, low_place, high_key, high_place) == up) {
        args.keys[low] = high_key;
        args.places[low] = high_place;
        args.keys[high] = low_key;
        args.places[high] = low_place;
    }
}

KERNEL(tensor_sort_put, sort_args, SORT_THREADS)
{
    const int64_t at = (int64_t)block_index() * SORT_THREADS + thread_index();
    const int64_t row = at / args.k;
    if (row < args.rows)
        sort_put(&args, row, (uint32_t)(at - row * args.k), args.places[row * args.padded + (at - row * args.k)]);
}
