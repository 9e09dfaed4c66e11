/* Sorting rows by merging sequences that go up and down in turns (Batcher's bitonic sort), on pairs of a key and a number,
 * whose order is the wanted one and has no equals. Rows are padded to a power of two with the largest pair.
 *
 * A row of up to 4096 elements of up to 32 bits is sorted by one block: a thread has eight neighbours in registers, key and
 * number in 64 bits, and compares them with each other, with those of its wave, and the far ones through shared memory. For all
 * others comparisons of elements less than a tile apart happen in shared memory, many steps a launch; the rest a launch each.
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

DEVICE void put_in_order(uint64_t *a, uint64_t *b, bool up)
{
    const uint64_t low = *a < *b ? *a : *b;
    const uint64_t high = *a < *b ? *b : *a;
    *a = up ? low : high;
    *b = up ? high : low;
}

/* The last steps of a merge: elements four, two and one apart. */
DEVICE void merge_own(uint64_t *own, bool up)
{
    UNROLL for (int32_t apart = OWN / 2; apart > 0; apart /= 2)
    {
        UNROLL for (int32_t j = 0; j < OWN; j++)
        {
            if ((j & apart) == 0)
                put_in_order(&own[j], &own[j + apart], up);
        }
    }
}

DEVICE void sort_own(uint64_t *own, bool up)
{
    UNROLL for (int32_t j = 0; j < OWN; j += 2) put_in_order(&own[j], &own[j + 1], (j & 2) == 0);
    UNROLL for (int32_t j = 0; j < OWN; j += 4)
    {
        put_in_order(&own[j], &own[j + 2], (j & 4) == 0);
        put_in_order(&own[j + 1], &own[j + 3], (j & 4) == 0);
        put_in_order(&own[j], &own[j + 1], (j & 4) == 0);
        put_in_order(&own[j + 2], &own[j + 3], (j & 4) == 0);
    }
    merge_own(own, up);
}

/* A step with the thread `apart` threads away: of each two the smaller stays, or the larger. */
DEVICE void merge_with(uint64_t *own, uint32_t apart, bool smaller, uint64_t *shared)
{
    const uint32_t thread = thread_index(), threads = block_size();
    const bool near = apart <= 16; /* in waves of any size */
    if (!near) {
        barrier();
        UNROLL for (uint32_t j = 0; j < OWN; j++) AT(shared, j * threads + thread) = own[j];
        barrier();
    }
    UNROLL for (uint32_t j = 0; j < OWN; j++)
    {
        uint64_t other;
        if (near)
            other = wave_shuffle_xor_u64(own[j], apart);
        else
            other = AT(shared, j * threads + (thread ^ apart));
        own[j] = (other < own[j]) == smaller ? other : own[j];
    }
}

KERNEL(tensor_sort_row, sort_args, SORT_ROW_THREADS)
{
    SHARED(uint64_t, shared, SORT_ROW_MAX);
    const uint32_t first = thread_index() * OWN;
    const int64_t row = block_index();
    const int32_t bytes = type_bytes(args.type);
    const char *x = (const char *)args.x + row * args.n * bytes;
    uint64_t own[OWN];
    UNROLL for (uint32_t j = 0; j < OWN; j++)
    {
        own[j] = UINT64_MAX;
        if (first + j < (uint32_t)args.n) {
            const uint32_t key = sort_key_32(bits_at(x, first + j, bytes), args.type) ^ (args.descending ? UINT32_MAX : 0u);
            own[j] = (uint64_t)key << 32 | (first + j);
        }
    }
    sort_own(own, (first & OWN) == 0);
    UNROLL_BY(1) for (uint32_t size = 2 * OWN; size <= (uint32_t)args.padded; size *= 2)
    {
        const bool up = (first & size) == 0;
        UNROLL_BY(1)
        for (uint32_t apart = size / 2; apart >= OWN; apart /= 2)
            merge_with(own, apart / OWN, ((first & apart) == 0) == up, shared);
        merge_own(own, up);
    }
    UNROLL for (uint32_t j = 0; j < OWN; j++)
    {
        const uint32_t place = (uint32_t)own[j];
        const int64_t at = row * args.k + first + j;
        if (first + j < (uint32_t)args.k && args.values)
            bits_put(args.values, at, bytes, bits_at(x, place, bytes));
        if (first + j < (uint32_t)args.k && args.indices)
            args.indices[at] = place;
    }
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
    const int32_t bytes = type_bytes(args.type);
    if (row >= args.rows)
        return;
    const uint32_t place = args.places[row * args.padded + (at - row * args.k)];
    if (args.values)
        bits_put(args.values, at, bytes, bits_at(args.x, row * args.n + place, bytes));
    if (args.indices)
        args.indices[at] = place;
}
