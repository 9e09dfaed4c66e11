/* The screen for many queries on chips with MFMA: 256 rows x 128 queries per block, rows in registers, queries in shared
 * memory.
 *
 * A block keeps its queries and walks over rows, each wave over its own. Codes of rows are loaded directly into registers, one
 * chunk of 64 bytes ahead of the one being multiplied. Codes of short queries stay in shared memory, and no wave waits for
 * another; those of long queries are loaded into two alternating slabs.
 *
 * After the product, each sum is compared with the smallest sum that the row needs to be kept for the query, an integer
 * (screen_product_min() of arithmetic/screen.h): three fused multiply-adds, two rows at a time, and a comparison.
 */
#include "kernels/screen/screen_limits.h"
#include "kernels/simt/matrix_mfma.h"

enum {
    WIDE_ROWS = SCREEN_THREADS, /* rows per step of a block, one per thread */
    WIDE_QUERIES = MFMA_COLUMNS,
    WIDE_SLAB = WIDE_QUERIES * 16, /* words: 64 bytes of each query */
    WIDE_SLABS = 3,                /* queries of up to this many chunks stay; longer ones use two */
    WIDE_COPIES = WIDE_SLAB / 4 / SCREEN_THREADS,
    BRAKE_STEPS = 8 /* after this many a block checks which lists are full */
};

typedef struct wide_shared {
    uint32_t *queries; /* WIDE_SLABS slabs */
    f32x4 *gates;      /* WIDE_QUERIES: three numbers of a screen_gate, the third twice, for two rows */
    uint32_t *rho;     /* the bits of the largest screen_rho() of the block's queries */
    float *measures;   /* for each row of this wave the three numbers of a screen_measure: all first, all second, all third */
} wide_shared;

/* A wave's place: its rows start at row `first` of word `word`. Equal in all lanes. */
typedef struct wide_place {
    segment_place place;
    uint32_t word, first;
    const uint32_t *codes; /* of the word */
    const float *scales, *residuals, *norms;
} wide_place;

DEVICE bool wide_resident(const screen_scan_args *args)
{
    return args->rows.chunks <= WIDE_SLABS;
}

/* The place of the wave's rows in step `step`; past the end, that of the last word. */
DEVICE void wide_find(const screen_scan_args *args, uint32_t step, wide_place *at)
{
    const uint32_t row = step * WIDE_ROWS + wave_index() * wave_size();
    at->word = args->tile_begin * SCREEN_TILE_WORDS + row / 64;
    at->first = row % 64;
    const uint32_t word = at->word < args->rows.word_count ? at->word : args->rows.word_count - 1;
    if (!segment_place_has(&at->place, word))
        at->place = segment_place_of(&args->rows, word);
    const size_t within = word - at->place.word_begin, rows_before = within * 64 + at->first;
    at->codes = IN_CONSTANT(kernel_segment, at->place.segment)->codes + within * (size_t)args->rows.chunks * SCREEN_SLAB;
    at->scales = IN_CONSTANT(kernel_segment, at->place.segment)->scales + rows_before;
    at->residuals = IN_CONSTANT(kernel_segment, at->place.segment)->residuals + rows_before;
    at->norms = IN_CONSTANT(kernel_segment, at->place.segment)->norms + rows_before;
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

DEVICE f32x4 wide_gate(screen_gate gate)
{
    return make_f32x4(gate.first, gate.second, gate.third, gate.third);
}

/* Computes the gates of the block's queries, and the value that the measures of rows need from them. */
DEVICE void wide_make_gates(const screen_scan_args *args, const wide_shared *at)
{
    const uint32_t thread = thread_index(), query = block_index_y() * WIDE_QUERIES + thread;
    if (thread == 0)
        AT(at->rho, 0) = 0;
    barrier();
    if (thread >= WIDE_QUERIES)
        return;
    if (query >= args->queries.count) {
        AT(at->gates, thread) = wide_gate(screen_gate_closed());
        return;
    }
    const screen_query numbers = IN_GLOBAL(const screen_query, args->queries.numbers)[query];
    screen_vector vector;
    vector.scale = numbers.scale;
    vector.residual = numbers.residual;
    vector.norm = numbers.norm;
    const float rho = screen_rho(args->rows.metric, args->rows.chunks * CANON_LANES, vector);
    atomic_max_u32(&AT(at->rho, 0), canon_float_bits(rho));
    AT(at->gates, thread) = wide_gate(screen_gate_for(args->rows.metric, screen_limit_of(&args->rows, &args->queries, query)));
}

DEVICE void wide_begin(const screen_scan_args *args, const wide_shared *at)
{
    wide_make_gates(args, at);
    for (int32_t chunk = 0; chunk < (wide_resident(args) ? args->rows.chunks : 1); chunk++) {
        const wide_part part = wide_load_queries(args, chunk);
        wide_store_queries(&part, at->queries + (uint32_t)chunk * WIDE_SLAB);
    }
    barrier();
}

/* Closes the gates of queries whose lists are full. */
DEVICE void wide_brake(const screen_scan_args *args, const wide_shared *at)
{
    const uint32_t query = block_index_y() * WIDE_QUERIES + thread_index();
    if (thread_index() < WIDE_QUERIES && query < args->queries.count &&
        atomic_load_u32(&args->queries.counts[query]) > args->capacity)
        AT(at->gates, thread_index()) = wide_gate(screen_gate_closed());
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

DEVICE screen_vector wide_load_numbers(const wide_place *place)
{
    screen_vector numbers;
    numbers.scale = MFMA_GLOBAL(float, place->scales)[lane()];
    numbers.residual = MFMA_GLOBAL(float, place->residuals)[lane()];
    numbers.norm = MFMA_GLOBAL(float, place->norms)[lane()];
    return numbers;
}

/* Stores the measures of the wave's rows in shared memory. A whole wave calls it. */
DEVICE void wide_measure(const screen_scan_args *args, const wide_shared *at, screen_vector row)
{
    int32_t padded = args->rows.chunks * CANON_LANES;
    SETTLE(padded); /* keeps values derived from it out of registers */
    const screen_measure measure = screen_measure_of(args->rows.metric, padded, row, canon_bits_float(AT(at->rho, 0)), 1);
    AT(at->measures, lane()) = measure.first;
    AT(at->measures, wave_size() + lane()) = measure.second;
    AT(at->measures, 2 * wave_size() + lane()) = measure.third;
    wave_barrier();
}

/* ---- the test ------------------------------------------------------------------------------------------------------------ */

/* A number of four rows, starting at row `row` of the wave. */
DEVICE mfma_quad wide_four(const wide_shared *at, uint32_t which, uint32_t row)
{
    return *(const mfma_quad *)AT_RANGE(at->measures, which * wave_size() + row, 4);
}

/* Appends the kept rows of the lane's strip one by one: they are rare. Bit 4 * c + r is row r and a query of sixteen c. */
DEVICE void wide_append(const screen_scan_args *args, const wide_place *place, uint32_t strip, uint32_t kept)
{
    if (place->word >= args->tile_end * SCREEN_TILE_WORDS || place->word >= args->rows.word_count)
        return;
    const uint64_t admitted =
        segment_admitted_uniform(&args->rows, place->place.segment, place->word - place->place.word_begin);
    for (; kept != 0; kept &= kept - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(kept), row = place->first + mfma_row(strip) + i % 4;
        const uint32_t query = block_index_y() * WIDE_QUERIES + mfma_column(i / 4);
        if ((admitted >> row & 1) == 0 || query >= args->queries.count)
            continue;
        const uint32_t at = atomic_add_u32(&args->queries.counts[query], 1);
        if (at < args->capacity)
            args->lists[(size_t)query * args->capacity + at] = (uint64_t)place->word * 64 + row;
    }
}

/* Tests the wave's rows against half of the block's queries and lists those that are kept. There are not enough registers for
 * the gates of all queries. A whole wave calls it. */
DEVICE void wide_test_half(const screen_scan_args *args, const wide_shared *at, const wide_place *place, const uint32_t half,
                           const int32_t *sums)
{
    const mfma_quad off = {SCREEN_GATE_OFF, SCREEN_GATE_OFF, SCREEN_GATE_OFF, SCREEN_GATE_OFF};
    f32x4 gates[MFMA_SIXTEENS / 2];
    UNROLL
    for (uint32_t c = 0; c < MFMA_SIXTEENS / 2; c++)
        gates[c] = AT(at->gates, mfma_column(half * (MFMA_SIXTEENS / 2) + c));
    UNROLL
    for (uint32_t s = 0; s < MFMA_STRIPS; s++) {
        SCHEDULE_APART(); /* nor for the measures of all rows */
        const mfma_quad first = wide_four(at, 0, mfma_row(s)), second = wide_four(at, 1, mfma_row(s));
        const mfma_quad third = wide_four(at, 2, mfma_row(s));
        uint32_t kept = 0;
        UNROLL
        for (uint32_t c = 0; c < MFMA_SIXTEENS / 2; c += 2) {
            bool keeps[8];
            UNROLL
            for (uint32_t i = 0; i < 8; i += 4) {
                const f32x4 gate = gates[c + i / 4];
                const mfma_quad twice = {gate.z, gate.w, gate.z, gate.w};
                const mfma_quad product_min =
                    mfma_fma(gate.x, first, mfma_fma_quads(twice, third, mfma_fma(gate.y, second, off)));
                const int32_t *const four = sums + (s * MFMA_SIXTEENS + half * (MFMA_SIXTEENS / 2) + c + i / 4) * 4;
                UNROLL
                for (uint32_t r = 0; r < 4; r++)
                    keeps[i + r] = four[r] >= (int32_t)canon_float_bits(product_min[r]);
            }
            if (mfma_any(keeps, 8))
                UNROLL
            for (uint32_t i = 0; i < 8; i++)
                kept |= (uint32_t)keeps[i] << (4 * c + i);
        }
        if (kept != 0)
            wide_append(args, place, s, kept << (half * 16));
    }
    SCHEDULE_APART();
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------ */

/* A wave's place in its walk, and what it has loaded. */
typedef struct wide_walk {
    wide_place place, next;
    mfma_rows rows; /* of the next chunk */
    uint32_t turn;  /* which of two slabs has the queries of that chunk, if they are not resident */
} wide_walk;

/* Multiplies the loaded chunk while loading the next one, of the same rows or the first of the next rows. All threads call
 * it. */
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
        wide_measure(args, at, numbers);
        UNROLL_BY(1)
        for (int32_t chunk = 1; chunk < args->rows.chunks; chunk++)
            wide_chunk(false, args, at, chunk, &walk, sums);
        wide_test_half(args, at, &walk.place, 0, sums);
        wide_test_half(args, at, &walk.place, 1, sums);
        wave_barrier(); /* the next rows overwrite the measures */
        if (++done % BRAKE_STEPS == 0)
            wide_brake(args, at);
        walk.place = walk.next;
    }
}

KERNEL_MATRIX(screen_mfma_keep, screen_scan_args, SCREEN_THREADS)
{
    SHARED(u32x4, queries, WIDE_SLABS * WIDE_SLAB / 4);
    SHARED(f32x4, gates, WIDE_QUERIES);
    SHARED(f32x4, measures, 3 * SCREEN_THREADS / 4);
    SHARED(uint32_t, rho, 1);
    const wide_shared at = {(uint32_t *)queries, gates, rho, (float *)measures + wave_index() * 3 * wave_size()};
    screen_mfma(&args, &at);
}
