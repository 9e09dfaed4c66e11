/* Sorting rows by merging sequences that go up and down in turns (Batcher's bitonic sort), on pairs of a key and a number,
 * whose order is the wanted one and has no equals. Rows are padded to a power of two with the largest pair. Comparisons of
 * elements less than a tile apart happen in shared memory, many steps a launch; the others a launch each.
 */
#include "kernels/elements.h"

#include "kernels/row_arguments.h"

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
