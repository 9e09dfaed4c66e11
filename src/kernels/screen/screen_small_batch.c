/* The screen for a few queries (1, 4 or 8): one pass over the codes; for one query, also everything after it.
 *
 * Bound by memory: every code is read once (screen_small.h). A lane ends with the products of one row, and loads that row's
 * numbers. Rows that the limit does not exclude are appended to the query's list, with one atomic addition per wave.
 *
 * For one query, launches would take as long as the work. So each block scores the rows it kept, and the last block to finish
 * makes the threshold from the sample, or the result from the list. If the device has high planes of the codes, which are half
 * as long, the kernel reads these first, and codes only of the rows that they do not exclude.
 *
 * Nothing depends on the wave size: a wave takes as many rows of a word as it has lanes, and 32 lanes make a bucket.
 */
#define ROW_TYPE(rows) ROW_F32 /* only a single query's rows are scored here, and only those of f32 */
#include "kernels/screen/screen_exact.h"
#include "kernels/screen/screen_small.h"
#include "kernels/simt/last_block.h"

enum {
    SMALL_KEPT = 1024,   /* rows of one query that a block can keep: many times its share of a list */
    PLANE_HELP = 4,      /* planes are worth reading if at most 1/4 of the rows remains */
    PLANE_PAUSE_MAX = 32 /* otherwise a wave skips them, at most this many times in a row */
};

/* A lane's row: its numbers, its position, and whether it counts. */
typedef struct small_row {
    screen_vector numbers;
    uint32_t position;
    bool admitted;
} small_row;

/* What a block keeps for one query: positions, in shared memory. */
typedef struct small_kept {
    uint32_t *positions; /* SMALL_KEPT */
    uint32_t *count;     /* of all kept rows, including those without room */
} small_kept;

/* Appends the rows of a whole wave that query q keeps: to the query's list or, if there is only one query, to the block's
 * own. */
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

/* Leaves the best of 32 rows for query q in bucket `bucket`; a wave of 64 also fills the next bucket. `position` is the
 * lane's. */
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

/* Processes one row per lane of a word, from row `first` on; `number` counts the words of a sample. */
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
    const small_queries from = small_queries_of(&args->rows, &args->queries, NULL);
    small_products(queries, &from,
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
    const uint32_t pieces = 64 / wave_size(); /* pieces per word */
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

/* ---- one query by high planes ---------------------------------------------------------------------------------------------
 */

/* Adds the products of a chunk of four rows' planes with two chunks of the query. */
DEVICE void plane_multiply(const small_queries *from, int32_t chunk, const small_piece *piece, int32_t *sums)
{
    const uint32_t mask = 0xf0f0f0f0u;
    const int32_t last = (int32_t)(from->words / 16) - 1, second = 2 * chunk < last ? 2 * chunk + 1 : last;
    const u32x4 even = load_u32x4_readonly(from->codes + 2 * chunk * 16), odd = load_u32x4_readonly(from->codes + second * 16);
    UNROLL
    for (int32_t r = 0; r < SMALL_ROWS; r++) {
        const u32x4 x = piece->row[r];
        const u32x4 high = {x.x & mask, x.y & mask, x.z & mask, x.w & mask};
        const u32x4 low = {x.x << 4 & mask, x.y << 4 & mask, x.z << 4 & mask, x.w << 4 & mask};
        sums[r] = dot16_i8(odd, low, dot16_i8(even, high, sums[r]));
    }
}

/* Returns the product of the query with the plane of the lane's row. The wave's rows start at row `first` of the word at
 * `highs`. */
DEVICE int32_t plane_product(const small_queries *from, const uint32_t *highs, uint32_t first)
{
    const int32_t chunks = screen_plane_chunks((int32_t)(from->words / 16));
    int32_t sums[SMALL_ROWS] = {0, 0, 0, 0};
    UNROLL_BY(1)
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        const small_piece loaded = small_load(highs, first + small_first(), chunk);
        plane_multiply(from, chunk, &loaded, sums);
    }
    return small_fold(sums);
}

/* Returns true if the plane of the lane's row does not exclude it. `row` is its number in the segment; the wave's rows start at
 * row `first` of a word. */
DEVICE bool plane_keeps(const screen_scan_args *args, const screen_limit *limits, const segment_place *place, uint32_t row,
                        uint32_t first)
{
    const small_queries from = small_queries_of(&args->rows, &args->queries, NULL);
    screen_vector mine;
    mine.scale = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->scales)[row];
    mine.norm = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->norms)[row];
    mine.residual = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->high_residuals)[row];
    const int32_t product = plane_product(&from,
                                          IN_GLOBAL(const uint32_t, IN_CONSTANT(kernel_segment, place->segment)->highs) +
                                              (size_t)(row / 64) * (size_t)screen_plane_chunks(args->rows.chunks) * SCREEN_SLAB,
                                          first);
    const screen_limit limit = AT(limits, 0);
    return !(screen_value(limit, mine, (float)product) < limit.h);
}

/* Rows of a segment that their planes do not exclude, collected in shared memory until the wave has one for each lane. */
typedef struct plane_rows {
    uint32_t *numbers; /* the wave's own: room for two rows per lane */
    uint32_t count;    /* the same in all lanes */
} plane_rows;

/* Tests the last collected rows, at most one per lane, by their whole codes, and appends those that are kept. */
DEVICE void plane_test(const screen_scan_args *args, const small_kept *own, const screen_limit *limits,
                       const segment_place *place, plane_rows *rows)
{
    const uint32_t count = rows->count < wave_size() ? rows->count : wave_size(), begin = rows->count - count;
    const small_queries from = small_queries_of(&args->rows, &args->queries, NULL);
    if (count == 0)
        return;
    rows->count = begin;
    wave_barrier();
    const uint32_t *codes[SMALL_ROWS];
    int32_t sums[SMALL_ROWS] = {0, 0, 0, 0};
    UNROLL
    for (uint32_t r = 0; r < SMALL_ROWS; r++) {
        const uint32_t at = small_first() + r * SMALL_APART;
        codes[r] = IN_GLOBAL(const uint32_t, IN_CONSTANT(kernel_segment, place->segment)->codes) +
                   screen_code_at(args->rows.chunks, AT(rows->numbers, begin + (at < count ? at : 0)), 0, lane() & 3u);
    }
    UNROLL_BY(1)
    for (int32_t chunk = 0; chunk < args->rows.chunks; chunk++) {
        small_piece loaded;
        UNROLL
        for (uint32_t r = 0; r < SMALL_ROWS; r++)
            loaded.row[r] = load_u32x4_streaming(codes[r] + (size_t)chunk * SCREEN_SLAB);
        small_multiply(1, &from, chunk, &loaded, sums);
    }
    const uint32_t row = AT(rows->numbers, begin + (small_own() < count ? small_own() : 0));
    screen_vector mine;
    mine.scale = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->scales)[row];
    mine.norm = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->norms)[row];
    mine.residual = IN_GLOBAL(const float, IN_CONSTANT(kernel_segment, place->segment)->residuals)[row];
    const screen_limit limit = AT(limits, 0);
    const float value = screen_value(limit, mine, (float)small_fold(sums));
    small_append(1, args, own, 0, small_own() < count && !(value < limit.h), place->word_begin * 64 + row);
    wave_barrier();
}

/* Screens all rows by their planes, and those that remain by their codes. If the planes exclude too little, the wave skips them
 * once, then twice, then four times and so on. */
DEVICE void screen_planes(const screen_scan_args *args, const small_kept *own)
{
    SHARED(screen_limit, limits, 1);
    SHARED(uint32_t, numbers, 2 * SCREEN_THREADS);
    if (thread_index() == 0)
        AT(limits, 0) = screen_limit_of_codes(&args->rows, &args->queries, 0);
    barrier();
    const uint32_t pieces = 64 / wave_size(), count = args->rows.word_count * pieces, waves = waves_per_block();
    uint32_t pause = 0, wait = 0;
    segment_place place = segment_place_none(&args->rows);
    plane_rows rows = {AT_RANGE(numbers, wave_index() * 2 * wave_size(), 2 * wave_size()), 0};
    for (uint32_t piece = block_index() * waves + wave_index(); piece < count; piece += block_count() * waves) {
        const uint32_t number = args->backward ? count - 1 - piece : piece;
        const uint32_t word = number / pieces, first = number % pieces * wave_size();
        if (!segment_place_has(&place, word)) {
            plane_test(args, own, limits, &place, &rows);
            place = segment_place_of(&args->rows, word);
        }
        const uint32_t within = word - place.word_begin, row = within * 64 + first + small_own();
        const uint64_t admitted = segment_admitted_uniform(&args->rows, place.segment, within);
        bool keeps = true;
        if (wait == 0) /* the same in all lanes */
            keeps = plane_keeps(args, limits, &place, row, first);
        const uint64_t left = wave_ballot(keeps && (admitted >> row % 64 & 1) != 0);
        const uint32_t left_count = (uint32_t)__builtin_popcountll(left);
        if ((left >> lane() & 1) != 0)
            AT(rows.numbers, rows.count + (uint32_t)__builtin_popcountll(left & (((uint64_t)1 << lane()) - 1))) = row;
        rows.count += left_count;
        if (wait == 0)
            pause = left_count * PLANE_HELP <= wave_size() ? 0 : pause == 0 ? 1 : pause < PLANE_PAUSE_MAX ? 2 * pause : pause;
        wait = wait == 0 ? pause : wait - 1;
        if (rows.count >= wave_size())
            plane_test(args, own, limits, &place, &rows);
    }
    plane_test(args, own, limits, &place, &rows);
}

/* ---- one query: what follows ------------------------------------------------------------------------------------------------
 */

/* Scores the rows that the block kept and appends their keys to the list. If there was no room for all of them, the list counts
 * as full. All threads call it. */
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

/* Screens all rows, by their planes or by their codes, then scores the kept rows and makes the result. */
DEVICE void small_one(const bool planes, const screen_scan_args *args, const small_kept *own, uint32_t *ticket,
                      const exact_shared *at)
{
    if (thread_index() == 0)
        AT(own->count, 0) = 0;
    barrier();
    if (planes)
        screen_planes(args, own);
    else
        screen_small_batch(1, false, args, own);
    small_score(args, own, ticket);
    if (!block_is_last(&args->queries.blocks_ready[1], block_count(), ticket))
        return;
    const uint32_t kept = atomic_load_u32(&args->queries.counts[0]);
    exact_finish(0, args->lists, kept < args->capacity ? kept : args->capacity, args->k, args->best, at);
    if (thread_index() == 0) {
        store_host_u64(&args->best[args->k], args->queries.thresholds[0]);
        store_host_u64(&args->best[args->k + 1], SCREEN_ANSWERED | kept);
    }
}

#define SCREEN_ONE(name, planes)                                                                                               \
    KERNEL_RESIDENT(name, screen_scan_args, SCREEN_THREADS, 3)                                                                 \
    {                                                                                                                          \
        EXACT_SHARED(at);                                                                                                      \
        SHARED(uint32_t, ticket, 1);                                                                                           \
        SHARED(uint32_t, positions, SMALL_KEPT);                                                                               \
        SHARED(uint32_t, count, 1);                                                                                            \
        const small_kept own = {positions, count};                                                                             \
        small_one(planes, &args, &own, ticket, &at);                                                                           \
    }

SCREEN_ONE(screen_small_batch_1_keep, false)
SCREEN_ONE(screen_small_batch_1_planes, true)

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
