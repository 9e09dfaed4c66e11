/* The screen for many queries on chips with MFMA: 256 rows x 128 queries a block, rows in registers, queries in shared memory.
 *
 * A block keeps its queries and walks over rows, each wave over its own. Codes of rows go from memory straight into registers,
 * one chunk of 64 bytes ahead of the one that is multiplied; codes of short queries stay in shared memory, where no wave waits
 * for another, and those of long ones come along, two slabs of them by turns.
 *
 * Behind the product four rows at a time are tested against a query, by the largest product and the numbers that bound those of
 * all four: where that discards, each of the four is discarded by its own (every step of the test is monotonic, and rounds
 * alike). So a pair costs little more than one instruction, and what is kept is what screen_batch_keep keeps.
 */
#include "kernels/screen/screen_limits.h"
#include "kernels/simt/matrix_mfma.h"

enum {
    WIDE_ROWS = SCREEN_THREADS, /* of a block's step: a row a thread */
    WIDE_QUERIES = MFMA_COLUMNS,
    WIDE_SLAB = WIDE_QUERIES * 16, /* words: 64 bytes of each query */
    WIDE_SLABS = 3,                /* queries of so many chunks stay; of longer ones two are used */
    WIDE_COPIES = WIDE_SLAB / 4 / SCREEN_THREADS,
    BRAKE_STEPS = 8 /* after so many a block looks which lists are full */
};

/* Numbers of rows in shared memory, the wave's own: scale, residual and norm of each, then of each four the largest scale, the
 * largest residual, the largest and the smallest norm, in the order in which lanes want them. */
enum { WIDE_NUMBERS = 3, WIDE_BOUNDS = 4 };

typedef struct wide_shared {
    uint32_t *queries; /* WIDE_SLABS slabs */
    f32x4 *factors;    /* WIDE_QUERIES: scale, a, and b as what is above 0 of it and what is below */
    float *limits;     /* WIDE_QUERIES: h */
    float *numbers;    /* WIDE_NUMBERS x wave_size(), of this wave */
    f32x4 *bounds;     /* WIDE_BOUNDS x 4, of this wave */
} wide_shared;

/* Where a wave is: its rows begin at row `first` of word `word`. All of it is the same for all lanes. */
typedef struct wide_place {
    segment_place place;
    uint32_t word, first;
    const uint32_t *codes; /* of the word */
    const float *scales, *residuals, *norms;
} wide_place;

/* The same pointer, known to be one for all lanes. */
DEVICE const void *wide_uniform(const void *pointer)
{
    const uint64_t bits = (uint64_t)(uintptr_t)pointer;
    const uint32_t low = wave_uniform_u32((uint32_t)bits), high = wave_uniform_u32((uint32_t)(bits >> 32));
    return (const void *)(uintptr_t)((uint64_t)high << 32 | low);
}

DEVICE bool wide_resident(const screen_scan_args *args)
{
    return args->rows.chunks <= WIDE_SLABS;
}

/* The place of the wave's rows in step `step` of all; behind the end the last word's. */
DEVICE void wide_find(const screen_scan_args *args, uint32_t step, wide_place *at)
{
    const uint32_t row = step * WIDE_ROWS + wave_index() * wave_size();
    at->word = args->tile_begin * SCREEN_TILE_WORDS + row / 64;
    at->first = row % 64;
    const uint32_t word = at->word < args->rows.word_count ? at->word : args->rows.word_count - 1;
    if (!segment_place_has(&at->place, word))
        at->place = segment_place_of(&args->rows, word);
    const kernel_segment *segment = IN_GLOBAL(const kernel_segment, at->place.segment);
    const size_t within = word - at->place.word_begin, rows_before = within * 64 + at->first;
    at->codes = (const uint32_t *)wide_uniform(segment->codes) + within * (size_t)args->rows.chunks * SCREEN_SLAB;
    at->scales = (const float *)wide_uniform(segment->scales) + rows_before;
    at->residuals = (const float *)wide_uniform(segment->residuals) + rows_before;
    at->norms = (const float *)wide_uniform(segment->norms) + rows_before;
}

/* ---- queries ------------------------------------------------------------------------------------------------------------- */

/* A thread's part of the codes of one chunk. */
typedef struct wide_part {
    u32x4 of[WIDE_COPIES];
} wide_part;

DEVICE wide_part wide_load_queries(const screen_scan_args *args, int32_t chunk)
{
    wide_part part;
    UNROLL
    for (uint32_t i = 0; i < WIDE_COPIES; i++) {
        const size_t word = block_index_y() * (size_t)(WIDE_QUERIES / 64) + i * (SCREEN_THREADS * 4) / SCREEN_SLAB;
        part.of[i] = mfma_load_words(args->queries.codes + (word * (size_t)args->rows.chunks + (size_t)chunk) * SCREEN_SLAB,
                                     thread_index() * 4);
    }
    return part;
}

DEVICE void wide_store_queries(const wide_part *part, uint32_t *slab)
{
    UNROLL
    for (uint32_t i = 0; i < WIDE_COPIES; i++)
        mfma_store(AT_RANGE(slab, (i * SCREEN_THREADS + thread_index()) * 4, 4), part->of[i]);
}

DEVICE void wide_begin(const screen_scan_args *args, const wide_shared *at)
{
    const uint32_t thread = thread_index();
    if (thread < WIDE_QUERIES) {
        const screen_limit limit =
            screen_limit_of(&args->rows, &args->queries, block_index_y() * WIDE_QUERIES + thread, args->trust);
        AT(at->factors, thread) =
            make_f32x4(limit.scale, limit.a, limit.b > 0.0f ? limit.b : 0.0f, limit.b > 0.0f ? 0.0f : limit.b);
        AT(at->limits, thread) = limit.h;
    }
    for (int32_t chunk = 0; chunk < (wide_resident(args) ? args->rows.chunks : 1); chunk++) {
        const wide_part part = wide_load_queries(args, chunk);
        wide_store_queries(&part, at->queries + (uint32_t)chunk * WIDE_SLAB);
    }
    barrier();
}

/* Closes the limits of queries whose lists are full. */
DEVICE void wide_brake(const screen_scan_args *args, const wide_shared *at)
{
    const uint32_t query = block_index_y() * WIDE_QUERIES + thread_index();
    if (thread_index() < WIDE_QUERIES && query < args->queries.count &&
        atomic_load_u32(&args->queries.counts[query]) > args->capacity)
        AT(at->limits, thread_index()) = canon_bits_float(0x7f800000u);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

DEVICE float wide_largest(float value)
{
    value = __builtin_fmaxf(value, wave_shuffle_xor_f32(value, 1));
    return __builtin_fmaxf(value, wave_shuffle_xor_f32(value, 2));
}

DEVICE screen_vector wide_load_numbers(const wide_place *place)
{
    screen_vector numbers;
    numbers.scale = MFMA_GLOBAL(float, place->scales)[lane()];
    numbers.residual = MFMA_GLOBAL(float, place->residuals)[lane()];
    numbers.norm = MFMA_GLOBAL(float, place->norms)[lane()];
    return numbers;
}

/* Puts the wave's numbers where its lanes look for them. By a whole wave. */
DEVICE void wide_spread(const wide_shared *at, screen_vector row)
{
    const uint32_t fours = wave_size() / 16, four = lane() / 4; /* of a strip; and which */
    const float bounds[WIDE_BOUNDS] = {wide_largest(row.scale), wide_largest(row.residual), wide_largest(row.norm),
                                       -wide_largest(-row.norm)};
    AT(at->numbers, lane()) = row.scale;
    AT(at->numbers, wave_size() + lane()) = row.residual;
    AT(at->numbers, 2 * wave_size() + lane()) = row.norm;
    if (lane() % 4 == 0)
        UNROLL
    for (uint32_t i = 0; i < WIDE_BOUNDS; i++)
        ((float *)AT_RANGE(at->bounds, i * 4 + four % fours, 1))[four / fours] = bounds[i];
    wave_barrier();
}

/* ---- the test ------------------------------------------------------------------------------------------------------------ */

DEVICE mfma_strips wide_bound(const wide_shared *at, uint32_t which)
{
    return *(const mfma_strips *)AT_RANGE(at->bounds, which * 4 + lane() / 16, 1);
}

/* Which of four rows, from row `row` of the wave on, the limit does not exclude: as screen_discards() has it, with fewer
 * roundings. Bit r is row r's. */
DEVICE uint32_t wide_keeps(const wide_shared *at, float g, uint32_t row, f32x4 factor, float limit, const int32_t *sums)
{
    uint32_t kept = 0;
    UNROLL
    for (uint32_t r = 0; r < 4; r++) {
        const float scale = AT(at->numbers, row + r), residual = AT(at->numbers, wave_size() + row + r);
        const float norm = AT(at->numbers, 2 * wave_size() + row + r);
        const float rest = fma_f32(factor.y, residual, fma_f32(factor.z + factor.w, norm, g * norm * norm));
        const bool keeps = !(fma_f32((float)sums[r] * scale, factor.x, rest) < limit);
        kept |= (uint32_t)keeps << r;
    }
    return kept;
}

/* The largest of four sums, and at least 0: times the largest scale that is no less than any of the four times its own. */
DEVICE int32_t wide_largest_sum(const int32_t *sums)
{
    int32_t largest = 0;
    UNROLL
    for (uint32_t r = 0; r < 4; r++)
        largest = sums[r] > largest ? sums[r] : largest;
    SETTLE(largest); /* not two strips' at once: their sums would have to be side by side */
    return largest;
}

/* Appends what is kept of the lane's rows for sixteen c of the queries, one by one: there is seldom any. Bit 4 * s + r is row
 * r of strip s. */
DEVICE void wide_append(const screen_scan_args *args, const wide_place *place, uint32_t c, uint32_t kept)
{
    const uint32_t query = block_index_y() * WIDE_QUERIES + mfma_column(c), end = args->tile_end * SCREEN_TILE_WORDS;
    if (place->word >= end || place->word >= args->rows.word_count || query >= args->queries.count)
        return;
    const uint64_t admitted = segment_admitted(&args->rows, place->place.segment, place->word - place->place.word_begin);
    for (; kept != 0; kept &= kept - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(kept), row = place->first + mfma_row(i / 4) + i % 4;
        if ((admitted >> row & 1) == 0)
            continue;
        const uint32_t at = atomic_add_u32(&args->queries.counts[query], 1);
        if (at < args->capacity)
            args->lists[(size_t)query * args->capacity + at] = (uint64_t)place->word * 64 + row;
    }
}

/* Tests the wave's rows and lists what is kept of them. By a whole wave. */
DEVICE void wide_test(const screen_scan_args *args, const wide_shared *at, const wide_place *place, const int32_t *sums)
{
    const float g =
        args->rows.metric == CANON_L2 ? -0.5f * (1.0f - 2.0f * screen_slack(args->rows.chunks * CANON_LANES)) : 0.0f;
    const mfma_strips scale = wide_bound(at, 0), residual = wide_bound(at, 1);
    const mfma_strips most = wide_bound(at, 2), least = wide_bound(at, 3), square = g * least * least;
    UNROLL
    for (uint32_t c = 0; c < MFMA_SIXTEENS; c++) {
        const f32x4 factor = AT(at->factors, mfma_column(c));
        const float limit = AT(at->limits, mfma_column(c));
        const mfma_strips rest = mfma_fma(factor.y, residual, mfma_fma(factor.z, most, mfma_fma(factor.w, least, square)));
        mfma_strips product;
        UNROLL
        for (uint32_t s = 0; s < MFMA_STRIPS; s++)
            product[s] = (float)wide_largest_sum(sums + (s * MFMA_SIXTEENS + c) * 4);
        const mfma_strips value = mfma_fma(factor.x, product * scale, rest);
        uint32_t kept = 0;
        UNROLL
        for (uint32_t s = 0; s < MFMA_STRIPS; s++)
            if (wave_any(!(value[s] < limit)))
                kept |= wide_keeps(at, g, mfma_row(s), factor, limit, sums + (s * MFMA_SIXTEENS + c) * 4) << (4 * s);
        if (kept != 0)
            wide_append(args, place, c, kept);
    }
    wave_barrier(); /* the numbers' place is the next rows' */
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------ */

/* Where a wave is in its walk, and what it has loaded. */
typedef struct wide_walk {
    wide_place place, next;
    mfma_rows rows; /* of the chunk that comes */
    uint32_t turn;  /* which of two slabs has the queries of that chunk, where they do not stay */
} wide_walk;

/* Multiplies the chunk that was loaded while the next is: of the same rows, or the first of those that follow. By all threads.
 */
DEVICE void wide_chunk(const bool begin, const screen_scan_args *args, const wide_shared *at, int32_t chunk, wide_walk *walk,
                       int32_t *sums)
{
    const bool resident = wide_resident(args);
    const int32_t following = chunk + 1 < args->rows.chunks ? chunk + 1 : 0;
    const mfma_rows rows = walk->rows;
    wide_part part;
    if (!resident)
        part = wide_load_queries(args, following);
    walk->rows =
        mfma_load(following == 0 ? walk->next.codes : walk->place.codes + (size_t)following * SCREEN_SLAB, walk->place.first);
    mfma_multiply(begin, &rows, at->queries + (resident ? (uint32_t)chunk : walk->turn) * WIDE_SLAB, sums);
    if (!resident) {
        walk->turn ^= 1;
        wide_store_queries(&part, at->queries + walk->turn * WIDE_SLAB);
        barrier_shared();
    }
}

DEVICE void screen_mfma(const screen_scan_args *args, const wide_shared *at)
{
    const uint32_t words = (args->tile_end - args->tile_begin) * SCREEN_TILE_WORDS;
    const uint32_t steps = (words * 64 + WIDE_ROWS - 1) / WIDE_ROWS;
    uint32_t done = 0;
    wide_begin(args, at);
    wide_walk walk;
    walk.place.place = segment_place_none(&args->rows);
    wide_find(args, block_index(), &walk.place);
    walk.rows = mfma_load(walk.place.codes, walk.place.first);
    walk.turn = 0;
    for (uint32_t step = block_index(); step < steps; step += block_count()) {
        int32_t sums[MFMA_SUMS];
        walk.next = walk.place;
        wide_find(args, step + block_count() < steps ? step + block_count() : step, &walk.next);
        const screen_vector numbers = wide_load_numbers(&walk.place);
        wide_chunk(true, args, at, 0, &walk, sums);
        UNROLL_BY(1)
        for (int32_t chunk = 1; chunk < args->rows.chunks; chunk++)
            wide_chunk(false, args, at, chunk, &walk, sums);
        wide_spread(at, numbers);
        wide_test(args, at, &walk.place, sums);
        if (++done % BRAKE_STEPS == 0)
            wide_brake(args, at);
        walk.place = walk.next;
    }
}

KERNEL_MATRIX(screen_mfma_keep, screen_scan_args, SCREEN_THREADS)
{
    SHARED(u32x4, queries, WIDE_SLABS * WIDE_SLAB / 4);
    SHARED(f32x4, factors, WIDE_QUERIES);
    SHARED(float, limits, WIDE_QUERIES);
    SHARED(f32x4, numbers, WIDE_NUMBERS * SCREEN_THREADS / 4);
    SHARED(f32x4, bounds, WIDE_BOUNDS * 4 * (SCREEN_THREADS / 32));
    const wide_shared at = {(uint32_t *)queries, factors, limits, (float *)numbers + wave_index() * WIDE_NUMBERS * wave_size(),
                            bounds + wave_index() * WIDE_BOUNDS * 4};
    screen_mfma(&args, &at);
}
