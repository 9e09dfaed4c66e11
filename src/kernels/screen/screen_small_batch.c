/* The screen for a few queries (1, 4 or 8): one pass over the codes, for one query with all that follows.
 *
 * Bound by memory: every code is read once. Four lanes share a row, 16 bytes of it each at a time, and four such rows, eight
 * apart, with the loads of all four in flight: so 32 lanes read 512 bytes in one piece. Then their sums are folded so that each
 * lane ends with one of the four rows whole, and loads that row's numbers. What the limit does not exclude is appended to the
 * query's list, by one atomic addition a wave.
 *
 * For one query launches would take as long as the work. So a block scores what it has kept when it has looked at its rows, and
 * the last block to be ready makes the threshold of the sample, or the result of the list.
 *
 * Nothing depends on the wave size: a wave takes as many rows of a word as it has lanes, and 32 lanes make a bucket.
 */
#define ROW_TYPE(rows) ROW_F32 /* only one query has its rows scored here, and only of f32 */
#include "kernels/screen/screen_exact.h"
#include "kernels/simt/last_block.h"

enum {
    SMALL_LANES = 4,                 /* that share rows */
    SMALL_ROWS = SMALL_LANES,        /* that they share, ... */
    SMALL_APART = 32 / SMALL_LANES,  /* ... and how far from one another */
    SMALL_SUMS_MAX = SMALL_ROWS * 8, /* rows x queries */
    SMALL_KEPT = 1024                /* rows of one query that a block can keep: many times its share of a list */
};

/* One chunk of each of the four rows, as one lane sees it. */
typedef struct small_piece {
    u32x4 row[SMALL_ROWS];
} small_piece;

/* The first of the four rows that this lane shares, and the one that it ends with, among the wave's. */
DEVICE uint32_t small_first(void)
{
    return (lane() & ~31u) + (lane() & 31u) / SMALL_LANES;
}

DEVICE uint32_t small_own(void)
{
    return small_first() + (lane() & 3u) * SMALL_APART;
}

/* `codes` is the first chunk of the word, `first` the first of the four rows in it. */
DEVICE small_piece small_load(const uint32_t *codes, uint32_t first, int32_t chunk)
{
    small_piece piece;
    UNROLL
    for (uint32_t r = 0; r < SMALL_ROWS; r++)
        piece.row[r] =
            load_u32x4_streaming(codes + (size_t)chunk * SCREEN_SLAB + screen_piece(first + r * SMALL_APART, lane() & 3u));
    return piece;
}

/* Adds a chunk of the four rows times the same chunk of each query. */
DEVICE void small_multiply(const int32_t queries, const uint32_t *query_codes, size_t words, int32_t chunk,
                           const small_piece *piece, int32_t *sums)
{
    UNROLL
    for (int32_t q = 0; q < queries; q++) {
        const u32x4 query = load_u32x4_readonly(query_codes + q * words + chunk * 16);
        UNROLL
        for (int32_t r = 0; r < SMALL_ROWS; r++)
            sums[q * SMALL_ROWS + r] = dot16_i8(query, piece->row[r], sums[q * SMALL_ROWS + r]);
    }
}

/* Of four lanes' shares of four rows' sums to one row's sum a lane. */
DEVICE int32_t small_fold(const int32_t *sums)
{
    const uint32_t first = (lane() & 1) ? 0xffffffffu : 0, second = (lane() & 2) ? 0xffffffffu : 0;
    const uint32_t s0 = (uint32_t)sums[0], s1 = (uint32_t)sums[1], s2 = (uint32_t)sums[2], s3 = (uint32_t)sums[3];
    const uint32_t low = ((s0 & ~first) | (s1 & first)) + wave_shuffle_xor_u32((s1 & ~first) | (s0 & first), 1);
    const uint32_t high = ((s2 & ~first) | (s3 & first)) + wave_shuffle_xor_u32((s3 & ~first) | (s2 & first), 1);
    return (int32_t)(((low & ~second) | (high & second)) + wave_shuffle_xor_u32((high & ~second) | (low & second), 2));
}

/* The products of all queries with the lane's row; the wave's rows begin with row `first` of the word at `codes`. */
DEVICE void small_products(const int32_t queries, const screen_scan_args *args, const uint32_t *codes, uint32_t first,
                           int32_t *products)
{
    const int32_t chunks = args->rows.chunks;
    const uint32_t mine = first + small_first();
    const size_t words = (size_t)chunks * 16;
    const uint32_t *query_codes = args->queries.codes + (lane() & 3u) * 4;
    int32_t sums[SMALL_SUMS_MAX];
    UNROLL
    for (int32_t i = 0; i < queries * SMALL_ROWS; i++)
        sums[i] = 0;
    int32_t chunk = 0;
#if !defined(SIMT_DOT4_IS_LONG) /* where it is, two at a time would take more registers than there are */
    UNROLL_BY(1)
    for (; chunk + 2 <= chunks; chunk += 2) {
        const small_piece even = small_load(codes, mine, chunk), odd = small_load(codes, mine, chunk + 1);
        small_multiply(queries, query_codes, words, chunk, &even, sums);
        small_multiply(queries, query_codes, words, chunk + 1, &odd, sums);
    }
#endif
    UNROLL_BY(1)
    for (; chunk < chunks; chunk++) {
        const small_piece last = small_load(codes, mine, chunk);
        small_multiply(queries, query_codes, words, chunk, &last, sums);
    }
    UNROLL
    for (int32_t q = 0; q < queries; q++)
        products[q] = small_fold(sums + q * SMALL_ROWS);
}

/* A lane's row: its numbers, its position, and whether it counts. */
typedef struct small_row {
    screen_vector numbers;
    uint32_t position;
    bool admitted;
} small_row;

/* What a block keeps for one query: positions, in shared memory. */
typedef struct small_kept {
    uint32_t *positions; /* SMALL_KEPT */
    uint32_t *count;     /* of all, whether or not there was room */
} small_kept;

/* Appends the rows that query q keeps, of a whole wave: to the list, or those of one query to the block's own. */
DEVICE void small_append(const int32_t queries, const screen_scan_args *args, const small_kept *own, uint32_t q, bool kept,
                         uint32_t position)
{
    const uint64_t ballot = wave_ballot(kept);
    if (ballot == 0)
        return;
    uint32_t first = 0;
    if (lane() == 0)
        first = atomic_add_u32(queries == 1 ? own->count : &args->queries.counts[q], (uint32_t)__builtin_popcountll(ballot));
    const uint32_t at = wave_shuffle_u32(first, 0) + (uint32_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1));
    if (queries == 1 && kept && at < SMALL_KEPT)
        AT(own->positions, at) = position;
    if (queries != 1 && kept && at < args->capacity)
        args->lists[(size_t)q * args->capacity + at] = position;
}

/* Leaves the best of 32 rows for query q: bucket `bucket`, and on a wave of 64 the next one, too. `position` is the lane's. */
DEVICE void small_name(const screen_scan_args *args, uint32_t q, uint32_t bucket, float estimate, uint32_t position)
{
    const float worst = canon_bits_float(0xff800000u);
    float best = __builtin_fmaxf(worst, screen_labelled(estimate, small_own() % SCREEN_BUCKET_ROWS));
    UNROLL
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        best = __builtin_fmaxf(best, wave_shuffle_xor_f32(best, mask));
    if (lane() % SCREEN_BUCKET_ROWS == 0 && q < args->queries.count)
        args->samples[q * args->sample_tiles * 4 + bucket + lane() / SCREEN_BUCKET_ROWS] =
            best > worst ? canon_make_key(CANON_DOT, best, position + screen_label(best)) : CANON_KEY_WORST;
}

/* As many rows of a word as the wave has lanes, from `first` on; `number` counts the words of a sample. */
DEVICE void small_rows(const int32_t queries, const bool sample, const screen_scan_args *args, const small_kept *own,
                       const screen_limit *limits, const segment_place *place, uint32_t word, uint32_t first, uint32_t number)
{
    const size_t row = (size_t)(word - place->word_begin) * 64 + first;
    small_row mine;
    mine.numbers.scale = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->scales)[row + small_own()];
    mine.numbers.norm = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->norms)[row + small_own()];
    mine.numbers.residual =
        sample ? 0.0f : IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->residuals)[row + small_own()];
    mine.position = word * 64 + first + small_own();
    mine.admitted =
        (segment_admitted_uniform(&args->rows, place->segment, word - place->word_begin) >> (first + small_own()) & 1) != 0;
    int32_t products[8];
    small_products(queries, args,
                   IN_GLOBAL(const uint32_t, IN_CONSTANT(kernel_segment, place->segment)->codes) +
                       (size_t)(word - place->word_begin) * (size_t)args->rows.chunks * SCREEN_SLAB,
                   first, products);
    UNROLL
    for (int32_t q = 0; q < queries; q++) {
        const screen_limit limit = AT(limits, q);
        if (sample) {
            const screen_guess guess = screen_guess_of(args->rows.metric, mine.numbers);
            const float estimate = fma_f32(fma_f32((float)products[q], limit.scale, limit.h), guess.factor, guess.more);
            small_name(args, (uint32_t)q, number * 2 + first / SCREEN_BUCKET_ROWS,
                       mine.admitted ? estimate : canon_bits_float(0xff800000u), mine.position);
        } else {
            const float value = screen_value(limit, mine.numbers, (float)products[q]);
            small_append(queries, args, own, (uint32_t)q, mine.admitted && !(value < limit.h), mine.position);
        }
    }
}

DEVICE void screen_small_batch(const int32_t queries, const bool sample, const screen_scan_args *args, const small_kept *own)
{
    SHARED(screen_limit, limits, SCREEN_SMALL_BATCH_MAX);
    if (thread_index() < (uint32_t)queries)
        AT(limits, thread_index()) = sample ? screen_estimate_of(&args->queries, thread_index())
                                            : screen_limit_of_codes(&args->rows, &args->queries, thread_index());
    barrier();
    const uint32_t pieces = 64 / wave_size(); /* of a word */
    const uint32_t count = (sample ? args->sample_tiles * SCREEN_TILE_WORDS : args->rows.word_count) * pieces;
    segment_place place = segment_place_none(&args->rows);
    for (uint32_t piece = block_index() * waves_per_block() + wave_index(); piece < count;
         piece += block_count() * waves_per_block()) {
        const uint32_t number = (args->backward ? count - 1 - piece : piece) / pieces;
        const uint32_t word =
            sample ? number / SCREEN_TILE_WORDS * args->sample_stride * SCREEN_TILE_WORDS + number % SCREEN_TILE_WORDS : number;
        if (!segment_place_has(&place, word))
            place = segment_place_of(&args->rows, word);
        small_rows(queries, sample, args, own, limits, &place, word, piece % pieces * wave_size(), number);
    }
}

/* Scores what the block has kept and appends the keys to the list. Where there was no room for all the list counts as full. By
 * all threads. */
DEVICE void small_score(const screen_scan_args *args, const small_kept *own, uint32_t *begin)
{
    barrier();
    const uint32_t kept = AT(own->count, 0), count = kept < SMALL_KEPT ? kept : SMALL_KEPT;
    if (thread_index() == 0 && kept > 0)
        AT(begin, 0) = atomic_add_u32(&args->queries.counts[0], kept > SMALL_KEPT ? args->capacity + 1 : kept);
    barrier();
    for (uint32_t first = 0; first < count; first += SCREEN_SCORE_GROUPS) {
        const uint32_t i = first + group_index();
        const bool active = i < count && AT(begin, 0) + i < args->capacity;
        const canon_key key = exact_key(active, &args->rows, &args->queries, 0, active ? AT(own->positions, i) : 0);
        if (active && group_lane() == 0)
            atomic_store_u64(&args->lists[AT(begin, 0) + i], key);
    }
}

KERNEL(screen_small_batch_1_sample, screen_scan_args, SCREEN_THREADS)
{
    EXACT_SHARED(at);
    SHARED(uint32_t, ticket, 1);
    const small_kept none = {NULL, NULL};
    screen_small_batch(1, true, &args, &none);
    if (block_is_last(&args.queries.blocks_ready[0], block_count(), ticket))
        exact_pick(&args.rows, &args.queries, 0, args.samples, args.sample_tiles * 4, args.k, &at);
}

KERNEL_RESIDENT(screen_small_batch_1_keep, screen_scan_args, SCREEN_THREADS, 3)
{
    EXACT_SHARED(at);
    SHARED(uint32_t, ticket, 1);
    SHARED(uint32_t, positions, SMALL_KEPT);
    SHARED(uint32_t, count, 1);
    const small_kept own = {positions, count};
    if (thread_index() == 0)
        AT(count, 0) = 0;
    barrier();
    screen_small_batch(1, false, &args, &own);
    small_score(&args, &own, ticket);
    if (!block_is_last(&args.queries.blocks_ready[1], block_count(), ticket))
        return;
    const uint32_t kept = atomic_load_u32(&args.queries.counts[0]);
    exact_finish(0, args.lists, kept < args.capacity ? kept : args.capacity, args.k, args.best, &at);
    if (thread_index() == 0) {
        store_host_u64(&args.best[args.k], args.queries.thresholds[0]);
        store_host_u64(&args.best[args.k + 1], SCREEN_ANSWERED | kept);
    }
}

#define SCREEN_SMALL_BATCH(name, queries, sample)                                                                              \
    KERNEL(name, screen_scan_args, SCREEN_THREADS)                                                                             \
    {                                                                                                                          \
        const small_kept none = {NULL, NULL};                                                                                  \
        screen_small_batch(queries, sample, &args, &none);                                                                     \
    }

SCREEN_SMALL_BATCH(screen_small_batch_4_sample, 4, true)
SCREEN_SMALL_BATCH(screen_small_batch_4_keep, 4, false)
SCREEN_SMALL_BATCH(screen_small_batch_8_sample, 8, true)
SCREEN_SMALL_BATCH(screen_small_batch_8_keep, 8, false)
