/* Sorting rows by merging sequences that go up and down in turns (Batcher's bitonic sort), on pairs of a key and a number,
 * whose order is the wanted one and has no equals. Rows are padded to a power of two with the largest pair.
 *
 * A row of up to 4096 elements of up to 32 bits is sorted by one block: a thread has eight neighbours in registers, key and
 * number in 64 bits, or in 32 of those of 16, and compares them with each other, with those of its wave, and the far ones
 * through shared memory. For all others comparisons of elements less than a tile apart happen in shared memory, many steps a
 * launch; the rest a launch each. Where only the first few of a short row are wanted these are looked for by halving, and
 * sorted.
 */
#include "kernels/elements.h"

#include "kernels/row_arguments.h"

/* ---- a row by a block ---------------------------------------------------------------------------------------------------- */

enum { OWN = SORT_ROW_OWN };

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

/* Key and number of element i of a row. */
DEVICE uint64_t sort_pair_u64(const sort_args *args, const char *x, uint32_t i)
{
    const uint32_t key = sort_key_32(bits_at(x, i, type_bytes(args->type)), args->type) ^ (args->descending ? UINT32_MAX : 0u);
    return (uint64_t)key << 32 | i;
}

DEVICE uint32_t sort_pair_u32(const sort_args *args, const char *x, uint32_t i)
{
    const uint32_t key = sort_key_16(bits_at(x, i, type_bytes(args->type)), args->type) ^ (args->descending ? 0xffffu : 0u);
    return key << 16 | i;
}

#define sort_place_u64(pair) ((uint32_t)(pair))
#define sort_place_u32(pair) ((pair) & 0xffffu)

/* put_in_order; merge_own: the last steps of a merge, elements four, two and one apart; sort_own; merge_with: a step with the
 * thread `apart` threads away: of each two the smaller stays, or the larger. */
#define SORT_ROWS(T, pair)                                                                                                     \
    DEVICE void put_in_order_##pair(T *a, T *b, bool up)                                                                       \
    {                                                                                                                          \
        const T low = *a < *b ? *a : *b;                                                                                       \
        const T high = *a < *b ? *b : *a;                                                                                      \
        *a = up ? low : high;                                                                                                  \
        *b = up ? high : low;                                                                                                  \
    }                                                                                                                          \
    DEVICE void merge_own_##pair(T *own, bool up)                                                                              \
    {                                                                                                                          \
        UNROLL for (int32_t apart = OWN / 2; apart > 0; apart /= 2)                                                            \
        {                                                                                                                      \
            UNROLL for (int32_t j = 0; j < OWN; j++)                                                                           \
            {                                                                                                                  \
                if ((j & apart) == 0)                                                                                          \
                    put_in_order_##pair(&own[j], &own[j + apart], up);                                                         \
            }                                                                                                                  \
        }                                                                                                                      \
    }                                                                                                                          \
    DEVICE void sort_own_##pair(T *own, bool up)                                                                               \
    {                                                                                                                          \
        UNROLL for (int32_t j = 0; j < OWN; j += 2) put_in_order_##pair(&own[j], &own[j + 1], (j & 2) == 0);                   \
        UNROLL for (int32_t j = 0; j < OWN; j += 4)                                                                            \
        {                                                                                                                      \
            put_in_order_##pair(&own[j], &own[j + 2], (j & 4) == 0);                                                           \
            put_in_order_##pair(&own[j + 1], &own[j + 3], (j & 4) == 0);                                                       \
            put_in_order_##pair(&own[j], &own[j + 1], (j & 4) == 0);                                                           \
            put_in_order_##pair(&own[j + 2], &own[j + 3], (j & 4) == 0);                                                       \
        }                                                                                                                      \
        merge_own_##pair(own, up);                                                                                             \
    }                                                                                                                          \
    DEVICE void merge_with_##pair(T *own, uint32_t apart, bool smaller, T *shared)                                             \
    {                                                                                                                          \
        const uint32_t thread = thread_index(), threads = block_size();                                                        \
        const bool near = apart <= 16; /* in waves of any size */                                                              \
        if (!near) {                                                                                                           \
            barrier();                                                                                                         \
            UNROLL for (uint32_t j = 0; j < OWN; j++) AT(shared, j *threads + thread) = own[j];                                \
            barrier();                                                                                                         \
        }                                                                                                                      \
        UNROLL for (uint32_t j = 0; j < OWN; j++)                                                                              \
        {                                                                                                                      \
            T other;                                                                                                           \
            if (near)                                                                                                          \
                other = wave_shuffle_xor_##pair(own[j], apart);                                                                \
            else                                                                                                               \
                other = AT(shared, j * threads + (thread ^ apart));                                                            \
            own[j] = (other < own[j]) == smaller ? other : own[j];                                                             \
        }                                                                                                                      \
    }                                                                                                                          \
    KERNEL(tensor_sort_row_##pair, sort_args, SORT_ROW_THREADS)                                                                \
    {                                                                                                                          \
        SHARED(T, shared, SORT_ROW_MAX);                                                                                       \
        const uint32_t first = thread_index() * OWN;                                                                           \
        const int64_t row = block_index();                                                                                     \
        const char *x = (const char *)args.x + row * args.n * type_bytes(args.type);                                           \
        T own[OWN];                                                                                                            \
        UNROLL for (uint32_t j = 0; j < OWN; j++)                                                                              \
        {                                                                                                                      \
            own[j] = ~(T)0;                                                                                                    \
            if (first + j < (uint32_t)args.n)                                                                                  \
                own[j] = sort_pair_##pair(&args, x, first + j);                                                                \
        }                                                                                                                      \
        sort_own_##pair(own, (first & OWN) == 0);                                                                              \
        UNROLL_BY(1) for (uint32_t size = 2 * OWN; size <= (uint32_t)args.padded; size *= 2)                                   \
        {                                                                                                                      \
            const bool up = (first & size) == 0;                                                                               \
            UNROLL_BY(1)                                                                                                       \
            for (uint32_t apart = size / 2; apart >= OWN; apart /= 2)                                                          \
                merge_with_##pair(own, apart / OWN, ((first & apart) == 0) == up, shared);                                     \
            merge_own_##pair(own, up);                                                                                         \
        }                                                                                                                      \
        UNROLL for (uint32_t j = 0; j < OWN; j++) if (first + j < (uint32_t)args.k)                                            \
            sort_put(&args, row, first + j, sort_place_##pair(own[j]));                                                        \
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

SORT_ROWS(uint64_t, u64)
SORT_ROWS(uint32_t, u32)

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
DEVICE uint32_t top_key(const uint32_t *keys, uint32_t k, uint32_t *counts, bool *all)
{
    uint32_t below = 0;
    *all = false;
    UNROLL_BY(1) for (int32_t bit = 31; bit >= 0 && !*all; bit--)
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
            keys[j] = (uint32_t)(sort_pair_u64(&args, x, thread + j * TOP_THREADS) >> 32);
    }
    if (thread == 0)
        AT(length, 0) = 0;
    bool all;
    const uint32_t last = top_key(keys, k, counts, &all);
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
