/* The screen for many queries: products of codes by tiles of 128 rows x 128 queries, then the test against the limit in
 * registers.
 *
 * A block keeps its queries and walks over tiles of rows. Codes pass through shared memory in stages of 64 bytes of each row,
 * with several loading while one is multiplied (matrix_i8.h). Short queries stay there; long ones are loaded with the rows. A
 * tile's numbers (scales, residuals, norms) and masks come with its first stage. No score is written: a row that the limit does
 * not exclude is appended to its query's list; in a sample, the best of 32 rows is.
 *
 * When a query's list is full, its limit is closed: the query is searched again with a better threshold or in another way.
 */
#include "kernels/screen/screen_limits.h"
#include "kernels/simt/matrix_i8.h"

enum {
    TILE_ROWS = SCREEN_TILE_WORDS * 64,
    TILE_QUERIES = SCREEN_TILE_QUERIES,
    SLAB = TILE_ROWS * 16, /* words of the rows of a stage, and of its queries */
    SLOTS = 4,             /* tiles with numbers in memory: the current one, and one per stage ahead */
    NUMBERS = 3,           /* scale, residual, norm */
    TILE_BUCKETS = TILE_ROWS / SCREEN_BUCKET_ROWS,
    BRAKE_TILES = 16 /* after this many a block checks which lists are full */
};

/* The block's shared memory. */
typedef struct batch_shared {
    uint32_t *rows;    /* SCREEN_STAGES slabs */
    uint32_t *queries; /* as many */
    float *numbers;    /* SLOTS x NUMBERS x TILE_ROWS */
    uint64_t *bits;    /* SLOTS x 4: two words of the live mask, two of the search's mask */
    f32x4 *limits;     /* TILE_QUERIES: scale, a, b, h; for a sample, h is the offset of the products times the scale */
    uint64_t *best;    /* TILE_BUCKETS x TILE_QUERIES, for a sample */
} batch_shared;

/* Which tile, and which part of it, to load next. */
typedef struct batch_feed {
    uint32_t number; /* index of the tile in the order of this block */
    uint32_t stage, slot;
    int32_t chunk;
    segment_place place;      /* where the last word was */
    const uint32_t *codes[2]; /* this thread's piece of each of the tile's two words */
} batch_feed;

DEVICE bool batch_resident(const screen_scan_args *args)
{
    return args->rows.chunks <= SCREEN_STAGES;
}

/* Word `w` of tile `number`; past the end, the last word. */
DEVICE uint32_t batch_word(bool sample, const screen_scan_args *args, uint32_t number, uint32_t w)
{
    const uint32_t word = (sample ? number * args->sample_stride : number) * SCREEN_TILE_WORDS + w;
    return word < args->rows.word_count ? word : args->rows.word_count - 1;
}

/* A thread copies the same 16 bytes of each word's slab. */
DEVICE void batch_find(bool sample, const screen_scan_args *args, batch_feed *feed, const batch_shared *at)
{
    const uint32_t thread = thread_index();
    UNROLL
    for (uint32_t w = 0; w < 2; w++) {
        const uint32_t word = batch_word(sample, args, feed->number, w);
        if (!segment_place_has(&feed->place, word))
            feed->place = segment_place_of(&args->rows, word);
        const kernel_segment *segment = feed->place.segment;
        const uint32_t within = word - feed->place.word_begin;
        feed->codes[w] =
            IN_GLOBAL(const uint32_t, segment->codes) + (size_t)within * (size_t)args->rows.chunks * SCREEN_SLAB + thread * 4;
        if (thread < 32 * NUMBERS && thread % 32 / 16 == w) {
            const float *from = thread < 32 ? segment->scales : thread < 64 ? segment->residuals : segment->norms;
            copy_16((uint32_t *)AT_RANGE(at->numbers, (feed->slot * NUMBERS + thread / 32) * TILE_ROWS + thread % 32 * 4, 4),
                    (const uint32_t *)IN_GLOBAL(const float, from) + (size_t)within * 64 + thread % 16 * 4);
        } else if (thread == 32 * NUMBERS + w) {
            copy_8(AT_RANGE(at->bits, feed->slot * 4 + w, 1), IN_GLOBAL(const uint64_t, segment->live) + within);
        } else if (thread == 32 * NUMBERS + 2 + w) {
            const uint32_t mask_word = segment->first_row / 64 + within;
            if (args->rows.mask && mask_word < args->rows.mask_words)
                copy_8(AT_RANGE(at->bits, feed->slot * 4 + 2 + w, 1), IN_GLOBAL(const uint64_t, args->rows.mask) + mask_word);
            else
                AT(at->bits, feed->slot * 4 + 2 + w) = args->rows.mask ? 0 : UINT64_MAX;
        }
    }
}

/* Chunk `chunk` of the block's queries into slab `slab`. */
DEVICE void batch_fetch_queries(const screen_scan_args *args, const batch_shared *at, int32_t chunk, uint32_t slab)
{
    const uint32_t thread = thread_index();
    UNROLL
    for (uint32_t w = 0; w < 2; w++) {
        const size_t word = block_index_y() * (size_t)(TILE_QUERIES / 64) + w;
        copy_16(AT_RANGE(at->queries, slab * SLAB + w * SCREEN_SLAB + thread * 4, 4),
                args->queries.codes + (word * (size_t)args->rows.chunks + (size_t)chunk) * SCREEN_SLAB + thread * 4);
    }
}

/* Starts to load the next stage, if there is one, and commits. All threads call it. */
DEVICE void batch_fetch(bool sample, const screen_scan_args *args, batch_feed *feed, const batch_shared *at)
{
    if (feed->number < args->tile_end) {
        const uint32_t thread = thread_index();
        if (feed->chunk == 0)
            batch_find(sample, args, feed, at);
        UNROLL
        for (uint32_t w = 0; w < 2; w++)
            copy_16(AT_RANGE(at->rows, feed->stage * SLAB + w * SCREEN_SLAB + thread * 4, 4),
                    feed->codes[w] + (size_t)feed->chunk * SCREEN_SLAB);
        if (!batch_resident(args))
            batch_fetch_queries(args, at, feed->chunk, feed->stage);
        if (++feed->chunk == args->rows.chunks) {
            feed->chunk = 0;
            feed->number += block_count();
            feed->slot = (feed->slot + 1) % SLOTS;
        }
    }
    feed->stage = (feed->stage + 1) % SCREEN_STAGES;
    copies_commit();
}

/* ---- after the product --------------------------------------------------------------------------------------------------- */

/* What a lane needs to test its 64 sums: where its rows and queries start in the tile, and their numbers. */
typedef struct batch_lane {
    uint32_t first_row, first_query;
    const float *numbers; /* shared: of this tile */
    f32x4 limits[MATRIX_LANE_COLUMNS];
    float g;
} batch_lane;

DEVICE screen_vector batch_row(const batch_lane *mine, uint32_t r)
{
    const uint32_t row = mine->first_row + matrix_row(r);
    screen_vector numbers;
    numbers.scale = AT(mine->numbers, row);
    numbers.residual = AT(mine->numbers, TILE_ROWS + row);
    numbers.norm = AT(mine->numbers, 2 * TILE_ROWS + row);
    return numbers;
}

/* Whether the limit of query c keeps the row. The test of screen_discards(), with fewer roundings. */
DEVICE bool batch_keeps(const batch_lane *mine, uint32_t c, screen_vector row, float square, int32_t product)
{
    const f32x4 limit = mine->limits[c];
    const float rest = fma_f32(limit.y, row.residual, fma_f32(limit.z, row.norm, square));
    return !(fma_f32((float)product * row.scale, limit.x, rest) < limit.w);
}

/* Sums are tested one row or four rows at a time. Kept ones are recorded only if the wave may have any (MATRIX_ANY), which is
 * rare. */
#if defined(MATRIX_FOUR_ROWS)
/* Four adjacent rows are discarded together if their largest sum is, with numbers that bound those of all four. Each row would
 * then also be discarded by its own numbers, because every step of the test is monotonic and rounds the same way. */
typedef float batch_four __attribute__((ext_vector_type(4)));

DEVICE batch_four batch_numbers(const batch_lane *mine, uint32_t which, uint32_t r)
{
    return *(const batch_four *)AT_RANGE(mine->numbers, which * TILE_ROWS + mine->first_row + matrix_row(r), 4);
}

DEVICE float batch_largest(batch_four of)
{
    return __builtin_fmaxf(__builtin_fmaxf(of.x, of.y), __builtin_fmaxf(of.z, of.w));
}

/* The largest of query c's sums with four rows, at least 0. Times the largest scale it is at least each sum times its own
 * scale. */
DEVICE float batch_largest_sum(const int32_t *sums, uint32_t c)
{
    int32_t largest = 0;
    UNROLL
    for (uint32_t r = 0; r < 4; r++)
        largest = sums[r * MATRIX_LANE_COLUMNS + c] > largest ? sums[r * MATRIX_LANE_COLUMNS + c] : largest;
    return (float)largest;
}

/* A bit for each of the lane's sums that is kept. */
DEVICE uint64_t batch_kept(const batch_lane *mine, const int32_t *sums)
{
    uint64_t kept = 0;
    UNROLL
    for (uint32_t r = 0; r < MATRIX_LANE_ROWS; r += 4) {
        const batch_four norm = batch_numbers(mine, 2, r);
        const float scale = batch_largest(batch_numbers(mine, 0, r)), residual = batch_largest(batch_numbers(mine, 1, r));
        const float highest = batch_largest(norm), lowest = -batch_largest(-norm), square = mine->g * lowest * lowest;
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
            const f32x4 limit = mine->limits[c];
            const float rest = fma_f32(limit.y, residual, fma_f32(limit.z, limit.z > 0.0f ? highest : lowest, square));
            const float product = batch_largest_sum(sums + r * MATRIX_LANE_COLUMNS, c);
            if (!MATRIX_ANY(!(fma_f32(product * scale, limit.x, rest) < limit.w)))
                continue;
            UNROLL
            for (uint32_t i = r * MATRIX_LANE_COLUMNS + c; i < (r + 4) * MATRIX_LANE_COLUMNS; i += MATRIX_LANE_COLUMNS) {
                const screen_vector row = batch_row(mine, i / MATRIX_LANE_COLUMNS);
                kept |= (uint64_t)batch_keeps(mine, c, row, mine->g * row.norm * row.norm, sums[i]) << i;
            }
        }
    }
    return kept;
}
#else
/* A bit for each of the lane's sums that is kept. */
DEVICE uint64_t batch_kept(const batch_lane *mine, const int32_t *sums)
{
    uint64_t kept = 0;
    UNROLL
    for (uint32_t r = 0; r < MATRIX_LANE_ROWS; r++) {
        const screen_vector row = batch_row(mine, r);
        const float square = mine->g * row.norm * row.norm;
        bool keeps[MATRIX_LANE_COLUMNS], any = false;
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
            keeps[c] = batch_keeps(mine, c, row, square, sums[r * MATRIX_LANE_COLUMNS + c]);
            any = any || keeps[c];
        }
        if (MATRIX_ANY(any))
            UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++)
            kept |= (uint64_t)keeps[c] << (r * MATRIX_LANE_COLUMNS + c);
    }
    return kept;
}
#endif

/* Appends kept rows one by one: they are rare. */
DEVICE void batch_append(const screen_scan_args *args, const batch_lane *mine, const uint64_t *bits, uint32_t tile,
                         uint64_t kept)
{
    for (; kept != 0; kept &= kept - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(kept);
        const uint32_t row = mine->first_row + matrix_row(i / MATRIX_LANE_COLUMNS), w = row / 64;
        const uint32_t query = block_index_y() * TILE_QUERIES + mine->first_query + matrix_column(i % MATRIX_LANE_COLUMNS);
        const uint64_t admitted = AT(bits, w) & AT(bits, 2 + w);
        const uint32_t word = tile * SCREEN_TILE_WORDS + w;
        if ((admitted >> row % 64 & 1) == 0 || word >= args->rows.word_count || query >= args->queries.count)
            continue;
        const uint32_t at = atomic_add_u32(&args->queries.counts[query], 1);
        if (at < args->capacity)
            args->lists[(size_t)query * args->capacity + at] = (uint64_t)word * 64 + row % 64;
    }
}

/* Replaces the tile's scales and residuals by estimates, and by the worst ones for rows that are not admitted. All threads call
 * it. */
DEVICE void batch_guess(const screen_scan_args *args, float *numbers, const uint64_t *bits)
{
    const uint32_t row = thread_index(), w = row / 64;
    if (row < TILE_ROWS) {
        screen_vector given;
        given.scale = AT(numbers, row);
        given.residual = 0.0f;
        given.norm = AT(numbers, 2 * TILE_ROWS + row);
        const screen_guess guess = screen_guess_of(args->rows.metric, given);
        const bool admitted = ((AT(bits, w) & AT(bits, 2 + w)) >> row % 64 & 1) != 0;
        AT(numbers, row) = guess.factor;
        AT(numbers, TILE_ROWS + row) = admitted ? guess.more : canon_bits_float(0xff800000u);
    }
    barrier();
}

/* The keys of the best of the lane's rows in one half of the wave's tile, for each query. */
DEVICE void batch_half(const batch_lane *mine, uint32_t tile, const uint32_t half, const int32_t *sums, canon_key *keys)
{
    const uint32_t none = UINT32_MAX;
    float best[MATRIX_LANE_COLUMNS];
    uint32_t rows[MATRIX_LANE_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
        best[c] = canon_bits_float(0xff800000u);
        rows[c] = none;
    }
    UNROLL
    for (uint32_t r = half * (MATRIX_LANE_ROWS / 2); r < (half + 1) * (MATRIX_LANE_ROWS / 2); r++) {
        const uint32_t row = mine->first_row + matrix_row(r);
        const float factor = AT(mine->numbers, row), more = AT(mine->numbers, TILE_ROWS + row);
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
            const float product = fma_f32((float)sums[r * MATRIX_LANE_COLUMNS + c], mine->limits[c].x, mine->limits[c].w);
            const float estimate = fma_f32(product, factor, more);
            const bool better = estimate > best[c];
            best[c] = better ? estimate : best[c];
            rows[c] = better ? row : rows[c];
        }
    }
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++)
        keys[c] = rows[c] == none ? CANON_KEY_WORST : canon_make_key(CANON_DOT, best[c], tile * TILE_ROWS + rows[c]);
}

/* Updates the best keys of the buckets with the lane's sums. */
DEVICE void batch_name(const batch_lane *mine, uint32_t tile, uint64_t *best, const int32_t *sums)
{
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        canon_key keys[MATRIX_LANE_COLUMNS];
        batch_half(mine, tile, half, sums, keys);
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++)
            atomic_min_u64(&AT(best, (mine->first_row / 32 + half) * TILE_QUERIES + mine->first_query + matrix_column(c)),
                           keys[c]);
    }
}

/* Writes the tile's buckets and empties them. All threads call it. */
DEVICE void batch_name_all(const screen_scan_args *args, uint32_t number, uint64_t *best)
{
    barrier();
    for (uint32_t i = thread_index(); i < TILE_BUCKETS * TILE_QUERIES; i += block_size()) {
        const uint32_t query = block_index_y() * TILE_QUERIES + i % TILE_QUERIES;
        if (query < args->queries.count)
            args->samples[((size_t)query * args->sample_tiles + number) * TILE_BUCKETS + i / TILE_QUERIES] = AT(best, i);
        AT(best, i) = CANON_KEY_WORST;
    }
    barrier();
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------ */

DEVICE void batch_begin(bool sample, const screen_scan_args *args, const batch_shared *at)
{
    const uint32_t thread = thread_index();
    if (thread < TILE_QUERIES) {
        const uint32_t query = block_index_y() * TILE_QUERIES + thread;
        const screen_limit limit =
            sample ? screen_estimate_of(&args->queries, query) : screen_limit_of_codes(&args->rows, &args->queries, query);
        AT(at->limits, thread) = make_f32x4(limit.scale, limit.a, limit.b, limit.h);
    }
    for (uint32_t i = thread; sample && i < TILE_BUCKETS * TILE_QUERIES; i += block_size())
        AT(at->best, i) = CANON_KEY_WORST;
    if (batch_resident(args))
        for (int32_t chunk = 0; chunk < args->rows.chunks; chunk++)
            batch_fetch_queries(args, at, chunk, (uint32_t)chunk);
}

/* Closes the limits of queries whose lists are full. */
DEVICE void batch_brake(const screen_scan_args *args, const batch_shared *at)
{
    const uint32_t query = block_index_y() * TILE_QUERIES + thread_index();
    if (thread_index() < TILE_QUERIES && query < args->queries.count &&
        atomic_load_u32(&args->queries.counts[query]) > args->capacity)
        AT(at->limits, thread_index()).w = canon_bits_float(0x7f800000u);
}

/* The sums of one tile, for the lane. */
DEVICE void batch_tile(bool sample, const screen_scan_args *args, const batch_shared *at, batch_feed *feed, uint32_t *stage,
                       const batch_lane *mine, int32_t *sums)
{
    UNROLL
    for (uint32_t i = 0; i < MATRIX_SUMS; i++)
        sums[i] = 0;
    UNROLL_BY(1)
    for (int32_t chunk = 0; chunk < args->rows.chunks; chunk++) {
        copies_wait(SCREEN_STAGES - 2);
        barrier();
        batch_fetch(sample, args, feed, at);
        const uint32_t slab = batch_resident(args) ? (uint32_t)chunk : *stage;
        matrix_multiply(at->rows + *stage * SLAB, mine->first_row, at->queries + slab * SLAB, mine->first_query, sums);
        *stage = (*stage + 1) % SCREEN_STAGES;
    }
}

DEVICE void screen_batch(const bool sample, const screen_scan_args *args, const batch_shared *at)
{
    batch_feed feed;
    feed.number = args->tile_begin + block_index();
    feed.stage = feed.slot = 0;
    feed.chunk = 0;
    feed.place = segment_place_none(&args->rows);
    batch_begin(sample, args, at);
    UNROLL
    for (uint32_t i = 0; i < SCREEN_STAGES - 1; i++)
        batch_fetch(sample, args, &feed, at);

    const uint32_t side_by_side = TILE_QUERIES / MATRIX_COLUMNS; /* waves */
    batch_lane mine;
    mine.first_row = wave_index() / side_by_side * MATRIX_ROWS;
    mine.first_query = wave_index() % side_by_side * MATRIX_COLUMNS;
    mine.g = args->rows.metric == CANON_L2 ? -0.5f * (1.0f - 2.0f * screen_slack(args->rows.chunks * CANON_LANES)) : 0.0f;
    uint32_t stage = 0, slot = 0, tiles = 0;
    for (uint32_t number = args->tile_begin + block_index(); number < args->tile_end; number += block_count()) {
        int32_t sums[MATRIX_SUMS];
        batch_tile(sample, args, at, &feed, &stage, &mine, sums);
        const uint32_t tile = sample ? number * args->sample_stride : number;
        const uint64_t *bits = at->bits + slot * 4;
        mine.numbers = at->numbers + slot * (NUMBERS * TILE_ROWS);
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++)
            mine.limits[c] = AT(at->limits, mine.first_query + matrix_column(c));
        if (sample) {
            batch_guess(args, at->numbers + slot * (NUMBERS * TILE_ROWS), bits);
            batch_name(&mine, tile, at->best, sums);
            batch_name_all(args, number, at->best);
        } else {
            const uint64_t kept = batch_kept(&mine, sums);
            if (kept != 0)
                batch_append(args, &mine, bits, tile, kept);
            if (++tiles % BRAKE_TILES == 0)
                batch_brake(args, at);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#define SCREEN_BATCH(name, sample)                                                                                             \
    KERNEL_MATRIX(name, screen_scan_args, SCREEN_THREADS)                                                                      \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, stages);                                                                                      \
        SHARED(f32x4, limits, TILE_QUERIES);                                                                                   \
        SHARED(f32x4, numbers, SLOTS *NUMBERS *TILE_ROWS / 4);                                                                 \
        SHARED(uint64_t, bits, SLOTS * 4);                                                                                     \
        SHARED(uint64_t, best, (sample) ? TILE_BUCKETS *TILE_QUERIES : 1);                                                     \
        const batch_shared at = {stages, stages + SCREEN_STAGES * SLAB, (float *)numbers, bits, limits, best};                 \
        screen_batch(sample, &args, &at);                                                                                      \
    }

SCREEN_BATCH(screen_batch_sample, true)
SCREEN_BATCH(screen_batch_keep, false)
