/* Sorts rows. Each element becomes a pair of a key and its index in the row, so no two pairs are equal.
 *
 * Rows of up to 4096 elements of up to 32 bits: one block sorts a row by radix sort, four bits of the keys at a time from the
 * lowest up. Each pass is stable. A block sorts several short rows together. If only the first few elements of a row are
 * needed, a block finds the last of them by bisection.
 *
 * All other rows: bitonic sort (Batcher), padded to a power of two with the largest pair. Steps that compare elements less than
 * a tile apart run in shared memory, many per launch; every other step is a launch.
 */
#include "kernels/reduce/sort_elements.h"

/* ---- a row by a block ---------------------------------------------------------------------------------------------------- */

DEVICE uint32_t sort_key_at(const sort_args *args, const char *x, uint32_t i)
{
    return sort_key_of(args, (uint32_t)bits_at(x, i, type_bytes(args->type)));
}

/* Writes element `place` of a row to position `rank`. */
DEVICE void sort_put(const sort_args *args, int64_t row, uint32_t rank, uint32_t place)
{
    const int32_t bytes = type_bytes(args->type);
    const int64_t at = row * args->k + rank;
    if (args->values)
        bits_put(args->values, at, bytes, bits_at(args->x, row * args->n + place, bytes));
    if (args->indices)
        args->indices[at] = place;
}

/* Elements are sorted as words: sixteen bits of the key and the element's place, which gives access to the rest. A thread has
 * `own` consecutive words and counts their digits in its own column, without conflicts. A prefix sum over all columns, digit by
 * digit, gives the number of words before them: those with smaller digits, and those with the same digit in earlier threads.
 * Words and columns use the same shared memory in turn.
 *
 * A thread's sixteen words are 64 bytes apart from those of the next, so they would use the same banks. `spread` makes threads
 * that are served together start with different quads. */
enum {
    DIGIT_BITS = 4,
    DIGITS = 1 << DIGIT_BITS,
    PLACE_BITS = 16, /* SORT_ROW_MAX places need only twelve; the bits above are 0 in the pass that sorts by row */
    HALF_KEY_BITS = 16,
};

typedef struct sort_shared {
    uint32_t threads, own; /* constants */
    uint32_t row_bits;  /* lower bits of a place: the index in its row. The upper bits are the row in the block, below DIGITS */
    uint32_t *words;    /* or the counts by digit and thread: DIGITS per thread */
    uint32_t *elements; /* of the row, in their original order */
} sort_shared;

DEVICE uint32_t spread(uint32_t word)
{
    return word ^ (word >> 3 & 12u);
}

/* Quad i of the sixteen words from `first` on, a multiple of sixteen, in the order of spread(). */
DEVICE uint32_t *quad_of(const sort_shared *shared, uint32_t first, uint32_t i)
{
    return AT_RANGE(shared->words, spread(first + 4 * i), 4);
}

DEVICE void words_load(const sort_shared *shared, uint32_t *words)
{
    UNROLL for (uint32_t i = 0; i < shared->own / 4; i++)
    {
        const u32x4 quad = load_u32x4(quad_of(shared, thread_index() * shared->own, i));
        words[4 * i] = quad.x;
        words[4 * i + 1] = quad.y;
        words[4 * i + 2] = quad.z;
        words[4 * i + 3] = quad.w;
    }
}

DEVICE void words_put(uint32_t *to, const uint32_t *words)
{
    const u32x4 quad = {words[0], words[1], words[2], words[3]};
    *(u32x4 *)to = quad;
}

/* Index of this thread's count of a digit. For the sum, a thread takes the DIGITS consecutive counts of counts_quad(), which
 * belong to several threads. */
DEVICE uint32_t count_at(const sort_shared *shared, uint32_t digit)
{
    return digit * shared->threads + spread(thread_index());
}

DEVICE uint32_t *counts_quad(const sort_shared *shared, uint32_t i)
{
    const uint32_t first = thread_index() * DIGITS + 4 * i, column = first % shared->threads;
    return AT_RANGE(shared->words, first - column + spread(column), 4);
}

/* Replaces each count by the number of words before those that it counts (an exclusive prefix sum). The total of a wave
 * replaces its last lane's counts. */
DEVICE void counts_sum(const sort_shared *shared)
{
    uint32_t counts[DIGITS], sum = 0, before = 0;
    UNROLL for (uint32_t i = 0; i < DIGITS / 4; i++)
    {
        const u32x4 quad = load_u32x4(counts_quad(shared, i));
        counts[4 * i] = quad.x;
        counts[4 * i + 1] = quad.y;
        counts[4 * i + 2] = quad.z;
        counts[4 * i + 3] = quad.w;
    }
    UNROLL for (uint32_t d = 0; d < DIGITS; d++) sum += counts[d];
    before = wave_sum_up_to_u32(sum) - sum;
    if (shared->threads > wave_size()) {
        if (lane() == wave_size() - 1)
            AT(shared->words, DIGITS * thread_index()) = before + sum;
        barrier_shared();
        for (uint32_t w = 0; w < wave_index(); w++)
            before += AT(shared->words, DIGITS * ((w + 1) * wave_size() - 1));
        barrier_shared();
    }
    UNROLL for (uint32_t d = 0; d < DIGITS; d++)
    {
        const uint32_t count = counts[d];
        counts[d] = before;
        before += count;
    }
    UNROLL for (uint32_t i = 0; i < DIGITS / 4; i++) words_put(counts_quad(shared, i), counts + 4 * i);
}

/* Sorts the threads' words into shared memory by the digit from bit `shift` on. The sort is stable. */
DEVICE void sort_digit(const sort_shared *shared, uint32_t shift, const uint32_t *words)
{
    uint32_t ranks[DIGITS];
    UNROLL for (uint32_t d = 0; d < DIGITS; d++) AT(shared->words, count_at(shared, d)) = 0;
    UNROLL for (uint32_t j = 0; j < shared->own; j++) ranks[j] =
        atomic_add_u32(AT_RANGE(shared->words, count_at(shared, words[j] >> shift & (DIGITS - 1)), 1), 1);
    barrier_shared();
    counts_sum(shared);
    barrier_shared();
    UNROLL for (uint32_t j = 0; j < shared->own; j++) ranks[j] +=
        AT(shared->words, count_at(shared, words[j] >> shift & (DIGITS - 1)));
    barrier_shared();
    UNROLL for (uint32_t j = 0; j < shared->own; j++) AT(shared->words, spread(ranks[j])) = words[j];
    barrier_shared();
}

/* The same for waves of 64 lanes, which LDS serves 32 at a time. Lanes l and l + 32 share a column: each has half of every
 * count's word, so there is half as much to clear and to sum. Counts are in bytes of words, so a prefix sum is the offset that
 * a word goes to. */
enum { HALF_BITS = 16, HALF_LANES = 32, HALF_QUADS = DIGITS / 2 / 4 };

DEVICE uint32_t *halves_column(const sort_shared *shared)
{
    uint32_t column = spread(wave_index() * HALF_LANES + lane() % HALF_LANES);
    SETTLE(column); /* computed once here, not again for each digit */
    return AT_RANGE(shared->words, column, 1);
}

/* Quad i of the consecutive words that this thread sums. */
DEVICE uint32_t *halves_quad(const sort_shared *shared, uint32_t i)
{
    const uint32_t first = thread_index() * (DIGITS / 2) + 4 * i, column = first % (shared->threads / 2);
    return AT_RANGE(shared->words, first - column + spread(column), 4);
}

/* Takes the sums of a thread's words, one per half, and returns the sums before its first word, one per half. Four threads have
 * all words of one wave and digit, and the lower halves of all four come before the upper ones. The total of a wave replaces
 * its last lane's words. */
DEVICE uint32_t halves_before(const sort_shared *shared, uint32_t sum)
{
    const uint32_t lower = (1u << HALF_BITS) - 1;
    const uint32_t other = wave_shuffle_xor_u32(sum, 1), two = sum + other, others = wave_shuffle_xor_u32(two, 2);
    const uint32_t four = two + others, all = (four & lower) + (four >> HALF_BITS);
    uint32_t before = wave_sum_up_to_u32(lane() % 4 == 0 ? all : 0);
    if (shared->threads > wave_size()) {
        if (lane() == wave_size() - 1)
            AT(shared->words, DIGITS / 2 * thread_index()) = before;
        barrier_shared();
        for (uint32_t w = 0; w < wave_index(); w++)
            before += AT(shared->words, DIGITS / 2 * ((w + 1) * wave_size() - 1));
        barrier_shared();
    }
    before -= all;
    return (before | (before + (four & lower)) << HALF_BITS) + (lane() & 1 ? other : 0) + (lane() & 2 ? others : 0);
}

DEVICE void halves_sum(const sort_shared *shared)
{
    uint32_t counts[DIGITS / 2], sum = 0;
    UNROLL for (uint32_t i = 0; i < HALF_QUADS; i++)
    {
        const u32x4 quad = load_u32x4(halves_quad(shared, i));
        counts[4 * i] = quad.x;
        counts[4 * i + 1] = quad.y;
        counts[4 * i + 2] = quad.z;
        counts[4 * i + 3] = quad.w;
    }
    UNROLL for (uint32_t d = 0; d < DIGITS / 2; d++) sum += counts[d];
    uint32_t before = halves_before(shared, sum);
    UNROLL for (uint32_t d = 0; d < DIGITS / 2; d++)
    {
        const uint32_t count = counts[d];
        counts[d] = before;
        before += count;
    }
    UNROLL for (uint32_t i = 0; i < HALF_QUADS; i++) words_put(halves_quad(shared, i), counts + 4 * i);
}

DEVICE void sort_digit_halves(const sort_shared *shared, uint32_t shift, uint32_t *column, const uint32_t *words)
{
    const uint32_t columns = shared->threads / 2, half = lane() / HALF_LANES;
    uint32_t *counts[DIGITS], *cleared = column + half * (DIGITS / 2) * columns;
    uint32_t ranks[DIGITS];
    UNROLL for (uint32_t d = 0; d < DIGITS / 2; d++) cleared[d * columns] = 0;
    wave_barrier();
    UNROLL for (uint32_t j = 0; j < shared->own; j++)
    {
        uint32_t digit = words[j] >> shift & (DIGITS - 1);
        SETTLE(digit);
        counts[j] = column + digit * columns;
        ranks[j] = atomic_add_u32(counts[j], (uint32_t)sizeof(uint32_t) << half * HALF_BITS);
    }
    barrier_shared();
    halves_sum(shared);
    barrier_shared();
    UNROLL for (uint32_t j = 0; j < shared->own; j++)
    {
        ranks[j] = (ranks[j] + *counts[j]) >> half * HALF_BITS & ((1u << HALF_BITS) - 1);
        SETTLE(ranks[j]);
    }
    barrier_shared();
    UNROLL for (uint32_t j = 0; j < shared->own; j++) *
        (uint32_t *)((char *)shared->words + (ranks[j] ^ (ranks[j] >> 3 & 12u * 4))) = words[j];
    barrier_shared();
}

/* The row of the element at a place of the block, and its index in that row. */
DEVICE int64_t row_of_place(const sort_shared *shared, uint32_t place)
{
    return (int64_t)block_index() * (shared->threads * shared->own >> shared->row_bits) + (place >> shared->row_bits);
}

DEVICE uint32_t index_of_place(const sort_shared *shared, uint32_t place)
{
    return place & ((1u << shared->row_bits) - 1);
}

/* A word: half 0 (lower) or 1 (upper) of the key of the element at `place`, and the place. Places past the end of a row sort
 * last. */
DEVICE uint32_t sort_word(const sort_args *args, const sort_shared *shared, uint32_t half, uint32_t bits, uint32_t place)
{
    const uint32_t key = index_of_place(shared, place) < (uint32_t)args->n ? sort_key_of(args, bits) : UINT32_MAX;
    return key >> half * HALF_KEY_BITS << PLACE_BITS | place;
}

/* Loads the rows and makes their words. */
DEVICE void sort_bring(const sort_args *args, const sort_shared *shared)
{
    const int32_t bytes = type_bytes(args->type);
    const bool quads = has_quads(args->x, args->n, bytes);
    UNROLL for (uint32_t i = 0; i < shared->own / 4; i++)
    {
        const uint32_t first = 4 * (thread_index() + i * shared->threads), index = index_of_place(shared, first);
        const int64_t row = row_of_place(shared, first);
        const uint32_t n = row < args->rows ? (uint32_t)args->n : 0;
        quad_bits quad = {{0, 0, 0, 0}}, words;
        if (quads && index < n)
            quad = quad_load(args->x, row * args->n + index, 4);
        UNROLL for (uint32_t j = 0; j < 4; j++)
        {
            if (!quads && index + j < n)
                quad.word[j] = (uint32_t)bits_at(args->x, row * args->n + index + j, bytes);
            words.word[j] = sort_word(args, shared, 0, quad.word[j], first + j);
        }
        words_put(AT_RANGE(shared->elements, first, 4), quad.word);
        words_put(AT_RANGE(shared->words, spread(first), 4), words.word);
    }
    barrier_shared();
}

/* Writes four elements to position `to` of the results. */
DEVICE void sort_write_quad(const sort_args *args, const sort_shared *shared, int64_t to, u32x4 words)
{
    const uint32_t places = (1u << PLACE_BITS) - 1;
    quad_bits at = {{words.x & places, words.y & places, words.z & places, words.w & places}}, values;
    UNROLL for (uint32_t j = 0; j < 4; j++)
    {
        values.word[j] = AT(shared->elements, at.word[j]);
        at.word[j] = index_of_place(shared, at.word[j]);
    }
    if (args->values)
        quad_store(args->values, to, 4, values);
    if (args->indices)
        quad_store(args->indices, to, 4, at);
}

/* Writes the first k elements of each row in the order of the words. */
DEVICE void sort_write(const sort_args *args, const sort_shared *shared)
{
    const int32_t bytes = type_bytes(args->type);
    const bool quads = has_quads(args->values, args->k, bytes) && has_quads(args->indices, args->k, 4);
    const uint32_t step = quads ? 4 : 1;
    UNROLL_BY(1)
    for (uint32_t at = step * thread_index(); at < shared->threads * shared->own; at += step * shared->threads) {
        const uint32_t rank = index_of_place(shared, at);
        const int64_t row = row_of_place(shared, at), to = row * args->k + rank;
        if (row >= args->rows || rank >= (uint32_t)args->k)
            continue;
        if (quads) {
            sort_write_quad(args, shared, to, load_u32x4(AT_RANGE(shared->words, spread(at), 4)));
            continue;
        }
        const uint32_t place = AT(shared->words, spread(at)) & ((1u << PLACE_BITS) - 1);
        if (args->values)
            bits_put(args->values, to, bytes, AT(shared->elements, place));
        if (args->indices)
            args->indices[to] = index_of_place(shared, place);
    }
}

/* Sorts digit by digit. If a block has several rows, the last pass sorts by row, which is the upper part of a place. */
DEVICE void sort_rows(const sort_args *args, const sort_shared *shared)
{
    enum { DIGITS_OF_HALF = HALF_KEY_BITS / DIGIT_BITS };
    const uint32_t digits = type_bytes(args->type) <= 2 ? DIGITS_OF_HALF : 2 * DIGITS_OF_HALF;
    const bool several = 1u << shared->row_bits < shared->threads * shared->own;
    const bool halves = wave_size() == 64;
    uint32_t *column = halves ? halves_column(shared) : NULL;
    sort_bring(args, shared);
    UNROLL_BY(1) for (uint32_t digit = 0; digit < digits + several; digit++)
    {
        uint32_t words[DIGITS];
        words_load(shared, words);
        if (digit == DIGITS_OF_HALF && digit < digits)
            UNROLL for (uint32_t j = 0; j < shared->own; j++)
            {
                const uint32_t place = words[j] & ((1u << PLACE_BITS) - 1);
                words[j] = sort_word(args, shared, 1, AT(shared->elements, place), place);
            }
        barrier_shared();
        const uint32_t shift = digit < digits ? PLACE_BITS + digit % DIGITS_OF_HALF * DIGIT_BITS : shared->row_bits;
        if (halves)
            sort_digit_halves(shared, shift, column, words);
        else
            sort_digit(shared, shift, words);
    }
    sort_write(args, shared);
}

#define SORT_ROW(name, threads, own)                                                                                           \
    KERNEL(name, sort_args, threads)                                                                                           \
    {                                                                                                                          \
        SHARED(u32x4, words, (threads) * DIGITS / 4);                                                                          \
        SHARED(u32x4, elements, (threads) * (own) / 4);                                                                        \
        const uint32_t row_bits = 31 - (uint32_t)__builtin_clz((uint32_t)args.padded);                                         \
        const sort_shared shared = {threads, own, row_bits, (uint32_t *)words, (uint32_t *)elements};                          \
        sort_rows(&args, &shared);                                                                                             \
    }

SORT_ROW(tensor_sort_row, SORT_ROW_THREADS, SORT_ROW_MAX / SORT_ROW_THREADS)
SORT_ROW(tensor_sort_row_1024, SORT_SHORT_THREADS, SORT_ROW_SHORT / SORT_SHORT_THREADS)

/* ---- the first few of a row by a block ----------------------------------------------------------------------------------- */

enum { TOP_OWN = SORT_ROW_MAX / TOP_THREADS };

/* The sum of `mine` over the block. */
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

/* Returns the k-th smallest key of the row: fewer than k keys are smaller, and at least k are smaller or equal. If *all, it is
 * any key with exactly k keys smaller or equal. Places past the end of the row have the largest key; if that is the result, the
 * row has enough elements with it. */
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

/* The last place at which an element with the key `last` is among the first k. */
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

/* The steps that compare within a tile, for merging sequences of first_size to last_size elements. */
KERNEL(tensor_sort_tile, sort_args, SORT_THREADS)
{
    SHARED(uint64_t, keys, SORT_TILE);
    SHARED(uint32_t, places, SORT_TILE);
    const int32_t tile = args.padded < SORT_TILE ? (int32_t)args.padded : SORT_TILE;
    const int64_t first = (int64_t)block_index() * tile;
    const int64_t row_first = first & (args.padded - 1); /* the tile's offset in its row; both sizes are powers of two */
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

/* One step of merging sequences of last_size elements: compares elements that are too far apart for a tile. */
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
