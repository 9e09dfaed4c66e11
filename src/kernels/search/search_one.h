/* Scores one query against all rows and finds the k best, in one launch.
 *
 * Bound by memory: every row is read once. Sixteen lanes hold the 64 accumulators of a row (packed_layout.h), so a lane reads
 * 16 bytes of each chunk. The loads of the next rows are in flight before those of the previous ones are used. Eight rows are
 * folded across the lanes together: at each of three steps a lane keeps half of the sums and hands over the other half, so
 * eight sums cost eight shuffles, and every two lanes end with one sum to compare.
 *
 * A launch costs as much as reading 20 MB, so there is only one: the query travels in the arguments, and the last block to
 * finish merges the keys of all blocks and writes the answer to host memory, which the host polls. Every other search reads the
 * rows backward, because the rows that the previous search read last, tens of megabytes, are still in the cache.
 */
#ifndef WW_KERNELS_SEARCH_SEARCH_ONE_H
#define WW_KERNELS_SEARCH_SEARCH_ONE_H

#include "kernels/simt/simt.h"

#include "kernels/search/merge_keys.h"
#include "kernels/search/pack_row.h"
#include "kernels/search/segment_walk.h"
#include "kernels/search/topk_lists.h"
#include "kernels/simt/last_block.h"

/* Rows whose loads are in flight together. Four f32 rows saturate the memory of the fastest chips and fill their registers.
 * NVIDIA's chips before sm_90 get two, because the compiler would spill. Byte rows are so short that they need eight. */
#if defined(__NVPTX__) && __CUDA_ARCH__ < 900
enum { ONE_ROWS = ROWS_ELEMENT_BYTES == 4 ? 2 : 4 };
#else
enum { ONE_ROWS = ROWS_ELEMENT_BYTES == 1 ? 8 : 4 };
#endif

enum {
    ONE_FOLDED = SEARCH_ONE_ROWS / (SEARCH_THREADS / PACKED_GROUPS), /* 8 rows of a group, folded together */
    ONE_SHARERS = SEARCH_WORD_ROWS / ONE_FOLDED,                     /* groups that share a word */
    ONE_WORDS = SEARCH_ONE_ROWS / SEARCH_WORD_ROWS
};

/* How many times a block scores that many rows in a step, so that a step is as long as one of f32. */
enum { ONE_REPEAT = SEARCH_ONE_REPEAT(ROWS_ELEMENT_BYTES) };

/* Two chunks of a row are interleaved, 32 bytes per group. On chips that serve a load of 16 lanes line by line, neighbouring
 * lanes read neighbouring 16 bytes and then exchange halves: lane 2j has group j, and lane 2j+1 has group j+8. NVIDIA's chips
 * move 32 bytes for one lane as fast as for two, and rows of other types have another layout; there each lane has the group of
 * its own number. one_lanes() turns a mask of groups into a mask of lanes. */
#if ROWS_ELEMENT_BYTES < 4 || defined(__NVPTX__)
enum { ONE_TRADES = 0 };
#else
enum { ONE_TRADES = 1 };
#endif

DEVICE int32_t one_group(void)
{
    return ONE_TRADES ? group_lane() >> 1 | (group_lane() & 1) << 3 : group_lane();
}

DEVICE uint32_t one_lanes(const uint32_t groups)
{
    return ONE_TRADES ? (groups << 1 | groups >> 3) & (PACKED_GROUPS - 1) : groups;
}

/* Two chunks of a row (or its last odd one), as loaded by one lane. */
#if ROWS_ELEMENT_BYTES < 4
typedef struct one_piece {
    u32x2 even, odd;
} one_piece;
#define ONE_FLOATS(rows, four) typed_floats((rows)->type, four)
#else
typedef struct one_piece {
    f32x4 even, odd;
} one_piece;
#define ONE_FLOATS(rows, four) (four)
#endif

/* The rows of a group. */
typedef struct one_rows {
    const float *query; /* shared: chunks x 16 groups x 4 */
    const float *x;     /* the packed rows */
    int32_t chunks;
    int32_t row;  /* the row of the next pieces */
    int32_t pair; /* the pair of chunks of the next pieces */
    one_piece next[ONE_ROWS];
#if ROWS_ELEMENT_BYTES < 4
    int32_t type;
#endif
} one_rows;

#if ROWS_ELEMENT_BYTES < 4
/* Loads this lane's share of the next two chunks of row `row`, counted from `x`. */
DEVICE one_piece one_load(const one_rows *rows, uint32_t row)
{
    const int32_t even = 2 * rows->pair, odd = even + 1 < rows->chunks ? even + 1 : even;
    const uint32_t *x = (const uint32_t *)rows->x, *at = x + typed_at(rows->type, rows->chunks, row, even, group_lane());
    one_piece piece;
    if (!row_type_is_bytes(rows->type) && odd != even) { /* both chunks are adjacent */
        const u32x4 both = load_u32x4_readonly(at);
        const u32x2 first = {both.x, both.y}, second = {both.z, both.w};
        piece.even = first;
        piece.odd = second;
    } else {
        piece.even = typed_load(rows->type, at);
        piece.odd = typed_load(rows->type, x + typed_at(rows->type, rows->chunks, row, odd, group_lane()));
    }
    return piece;
}
#endif

/* Starts the loads of the next pieces. After the last ones it loads those again or, for rows of other types, nothing. */
DEVICE void one_fetch(one_rows *rows)
{
#if ROWS_ELEMENT_BYTES < 4
    if (rows->row >= ONE_FOLDED)
        return;
    UNROLL
    for (int32_t r = 0; r < ONE_ROWS; r++)
        rows->next[r] = one_load(rows, (uint32_t)(rows->row + r));
    if (++rows->pair * 2 >= rows->chunks) {
        rows->pair = 0;
        rows->row += ONE_ROWS;
    }
#else
    const size_t floats = (size_t)rows->chunks * CANON_LANES;
    const bool whole = 2 * rows->pair + 1 < rows->chunks;
    const int32_t own = ONE_TRADES ? 4 * (whole ? group_lane() : one_group()) : group_lane() * (whole ? 8 : 4);
    const int32_t other = ONE_TRADES ? CANON_LANES : 4;
    const float *x = rows->x + (size_t)rows->row * floats + rows->pair * (2 * CANON_LANES) + own;
    UNROLL
    for (int32_t r = 0; r < ONE_ROWS; r++) {
        rows->next[r].even = load_f32x4_readonly(x + r * floats);
        rows->next[r].odd = load_f32x4_readonly(x + r * floats + (whole ? other : 0));
    }
    if (++rows->pair * 2 >= rows->chunks) {
        rows->pair = 0;
        rows->row = rows->row + ONE_ROWS < ONE_FOLDED ? rows->row + ONE_ROWS : rows->row;
    }
#endif
}

#if ROWS_ELEMENT_BYTES == 4
DEVICE f32x4 one_neighbours(f32x4 mine)
{
    return make_f32x4(wave_shuffle_xor_f32(mine.x, 1), wave_shuffle_xor_f32(mine.y, 1), wave_shuffle_xor_f32(mine.z, 1),
                      wave_shuffle_xor_f32(mine.w, 1));
}

DEVICE f32x4 one_choose(bool first, f32x4 a, f32x4 b)
{
    return make_f32x4(first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w);
}

/* Returns both chunks of the lane's group from the two loads. Called by a whole wave. */
DEVICE one_piece one_trade(one_piece loaded)
{
    const bool upper = (group_lane() & 1) != 0;
    const f32x4 even = one_neighbours(loaded.even), odd = one_neighbours(loaded.odd);
    one_piece piece;
    piece.even = one_choose(upper, odd, loaded.even);
    piece.odd = one_choose(upper, loaded.odd, even);
    return piece;
}
#endif

DEVICE f32x4 one_step(int32_t metric, f32x4 q, f32x4 x, f32x4 acc)
{
    if (metric != CANON_L2)
        return f32x4_fma(q, x, acc);
    const f32x4 t = f32x4_sub(q, x);
    return f32x4_fma(t, t, acc);
}

/* Computes a lane's share of the sums of the next rows. The loads of the pieces after them start first. */
DEVICE void one_sums(int32_t metric, one_rows *rows, float *sums)
{
    f32x4 acc[ONE_ROWS];
    UNROLL
    for (int32_t r = 0; r < ONE_ROWS; r++)
        acc[r] = F32X4_ZERO;
    UNROLL_BY(1)
    for (int32_t chunk = 0; chunk < rows->chunks; chunk += 2) {
        one_piece pieces[ONE_ROWS];
        UNROLL
        for (int32_t r = 0; r < ONE_ROWS; r++)
            pieces[r] = rows->next[r];
        one_fetch(rows);
#if ROWS_ELEMENT_BYTES == 4
        if (ONE_TRADES && chunk + 1 < rows->chunks) {
            UNROLL
            for (int32_t r = 0; r < ONE_ROWS; r++)
                pieces[r] = one_trade(pieces[r]);
        }
#endif
        const f32x4 even = load_f32x4(AT_RANGE(rows->query, chunk * CANON_LANES + group_lane() * 4, 4));
        UNROLL
        for (int32_t r = 0; r < ONE_ROWS; r++)
            acc[r] = one_step(metric, even, ONE_FLOATS(rows, pieces[r].even), acc[r]);
        if (chunk + 1 < rows->chunks) {
            const f32x4 odd = load_f32x4(AT_RANGE(rows->query, (chunk + 1) * CANON_LANES + group_lane() * 4, 4));
            UNROLL
            for (int32_t r = 0; r < ONE_ROWS; r++)
                acc[r] = one_step(metric, odd, ONE_FLOATS(rows, pieces[r].odd), acc[r]);
        }
    }
    UNROLL
    for (int32_t r = 0; r < ONE_ROWS; r++) {
        sums[r] = fold_group(acc[r]);
        SETTLE(sums[r]);
    }
}

/* One step of the fold: of every two sums a lane keeps the one that its bit of `mask` selects, adds the neighbour's share of
 * it, and gives the neighbour its own share of the other. */
DEVICE void one_fold_step(float *sums, int32_t count, const uint32_t mask)
{
    const uint32_t upper = ((uint32_t)group_lane() & mask) != 0 ? 0xffffffffu : 0;
    UNROLL
    for (int32_t i = 0; i < count / 2; i++) {
        /* Selects by bits, because a choice between two elements could become a choice between two addresses, and then the sums
         * would leave the registers. */
        const uint32_t a = canon_float_bits(sums[2 * i]), b = canon_float_bits(sums[2 * i + 1]);
        const float keep = canon_bits_float((a & ~upper) | (b & upper));
        const float give = canon_bits_float((a & upper) | (b & ~upper));
        sums[i] = keep + wave_shuffle_xor_f32(give, mask);
    }
}

/* Folds `count` sums to one: that of row group / mask % count. */
DEVICE void one_fold(float *sums, const int32_t count, const uint32_t mask)
{
    UNROLL
    for (int32_t done = 1; done < count; done *= 2)
        one_fold_step(sums, count / done, one_lanes(mask * (uint32_t)done));
}

/* Scores the admitted ones of 8 rows, from row `first` of a word on, and offers their keys: the lane with group g offers the
 * g-th. Called by a whole wave. */
DEVICE void one_score(int32_t metric, const search_one_args *args, const topk *top, const float *query, float query_norm,
                      const row_word *word, uint32_t first)
{
    const uint32_t row = first + (uint32_t)one_group() % ONE_FOLDED;
#ifdef __clang_analyzer__ /* the analyzer does not know that a word without rows admits none */
    if (word->rows == NULL)
        return;
#endif
    /* A word without rows has no norms and admits no row. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    const float row_norm = metric == CANON_COSINE ? word->norms[row] : 0.0f;
    one_rows rows;
    rows.query = query;
    rows.chunks = args->rows.chunks;
#if ROWS_ELEMENT_BYTES < 4 /* eight rows, starting at a multiple of eight: bytes have the same places as in the first eight */
    rows.type = ROW_TYPE(&args->rows);
    rows.x = word->rows + (size_t)first * (size_t)(row_type_is_bytes(rows.type) ? CANON_LANES / 4 : ROW_FLOATS(&args->rows));
#else
    rows.x = word->rows + (size_t)first * (size_t)(rows.chunks * CANON_LANES);
#endif
    rows.row = 0;
    rows.pair = 0;
    one_fetch(&rows);
    float sums[ONE_FOLDED / ONE_ROWS];
    UNROLL
    for (int32_t i = 0; i < ONE_FOLDED / ONE_ROWS; i++) {
        float next[ONE_ROWS];
        one_sums(metric, &rows, next);
        one_fold(next, ONE_ROWS, 1);
        sums[i] = next[0];
    }
    one_fold(sums, ONE_FOLDED / ONE_ROWS, ONE_ROWS);
    sums[0] = sums[0] + wave_shuffle_xor_f32(sums[0], one_lanes(ONE_FOLDED)); /* two lanes have shares of the same row */
    if (one_group() < ONE_FOLDED && (word->admitted >> row & 1) &&
        topk_gate_open(metric, AT(top->gate, 0), sums[0], query_norm, row_norm))
        topk_offer(top, &args->lists, 0, sums[0], query_norm, row_norm, word->first_row + row);
}

/* The number of pieces of ONE_WORDS words. A step is ONE_REPEAT pieces. */
DEVICE uint32_t one_piece_count(const search_one_args *args)
{
    return (args->rows.word_count + ONE_WORDS - 1) / ONE_WORDS;
}

DEVICE uint32_t one_step_count(const search_one_args *args)
{
    return (one_piece_count(args) + ONE_REPEAT - 1) / ONE_REPEAT;
}

/* The word of this thread's group in a piece; beyond the last word, one without admitted rows. */
DEVICE row_word one_word(const search_one_args *args, uint32_t step, uint32_t *segment)
{
    const uint32_t steps = one_piece_count(args);
    const uint32_t from = args->backward && step < steps ? steps - 1 - step : step;
    const uint32_t word = from * ONE_WORDS + group_index() / ONE_SHARERS;
    row_word none = {0, 0, 0, 0};
    return word < args->rows.word_count ? row_word_at(&args->rows, word, segment) : none; /* uniform in a wave */
}

/* Runs the steps of a block: two by its number, then whichever is next, so that all blocks end at the same time. The next word
 * is loaded before one is scored; `word` is the first one. `ticket` is shared. */
DEVICE void one_steps(int32_t metric, const search_one_args *args, const topk *top, const float *query, float query_norm,
                      row_word word, uint32_t segment, uint32_t *ticket)
{
    const uint32_t first = group_index() % ONE_SHARERS * ONE_FOLDED, parts = args->lists.parts;
    uint32_t ahead = block_index() + parts;
    for (uint32_t step = block_index(); step < one_step_count(args);) {
        for (uint32_t piece = 1; piece <= ONE_REPEAT; piece++) {
            const row_word next = one_word(args, piece < ONE_REPEAT ? step * ONE_REPEAT + piece : ahead * ONE_REPEAT, &segment);
            if (wave_any((word.admitted >> first & (((uint64_t)1 << ONE_FOLDED) - 1)) != 0))
                one_score(metric, args, top, query, query_norm, &word, first);
            word = next;
        }
        step = ahead;
        barrier();
        if (thread_index() == SEARCH_THREADS - 1) /* the last wave, because the first one tends the list */
            AT(ticket, 0) = 2 * parts + atomic_add_u32(&args->state->given, 1);
        topk_tend(top, &args->lists, args->lists.trigger, args->lists.kept_max);
        barrier();
        ahead = AT(ticket, 0);
    }
}

/* Packs the query from `from`, one group of threads per chunk. */
DEVICE void one_pack(const float *from, int32_t dim, float *query)
{
    for (int32_t chunk = (int32_t)group_index(); chunk * CANON_LANES < dim; chunk += SEARCH_THREADS / PACKED_GROUPS) {
        const int32_t first = chunk * CANON_LANES + packed_first(one_group());
        store_f32x4(AT_RANGE(query, chunk * CANON_LANES + group_lane() * 4, 4),
                    make_f32x4(pack_element(from, dim, first), pack_element(from, dim, first + 32),
                               pack_element(from, dim, first + 16), pack_element(from, dim, first + 48)));
    }
}

/* Returns the packed query's norm. Called by whole waves. */
DEVICE float one_norm(const float *query, int32_t chunks)
{
    f32x4 acc = F32X4_ZERO;
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        const f32x4 q = load_f32x4(AT_RANGE(query, chunk * CANON_LANES + group_lane() * 4, 4));
        acc = f32x4_fma(q, q, acc);
    }
    float sum = fold_group(acc);
    UNROLL
    for (uint32_t groups = 1; groups < PACKED_GROUPS; groups *= 2)
        sum += wave_shuffle_xor_f32(sum, one_lanes(groups));
    return sqrt_f32(sum);
}

/* `metric` is a constant in the kernels for distances. Both loops in one kernel would be 104 KB of code, and such a kernel
 * starts 10 us later on an H200. */
DEVICE void one_search(int32_t metric, const search_one_args *args)
{
    SHARED_DYNAMIC(float, query);
    SHARED_DYNAMIC(uint64_t, keys); /* replaces the query at the end */
    SHARED(uint64_t, threshold, 1);
    SHARED(float, gate, 1);
    SHARED(uint32_t, ticket, 1);
    MERGE_SHARED(at, keys);
    const topk top = {threshold,           at.length, gate, args->lists.keys + (size_t)block_index() * args->lists.capacity,
                      &args->state->worst, 1,         1,    metric};
    uint32_t segment = args->backward ? args->rows.segment_count - 1 : 0;
    const row_word word = one_word(args, block_index() * ONE_REPEAT, &segment);
    topk_begin(&top);
    if (args->query_on_device != 0)
        one_pack(IN_GLOBAL(const float, args->query_on_device), args->dim, query);
    else
        one_pack(args->query, args->dim, query);
    barrier();
    const float query_norm = metric == CANON_COSINE ? one_norm(query, args->rows.chunks) : 0.0f;
    one_steps(metric, args, &top, query, query_norm, word, segment, ticket);
    topk_end(&top, &args->lists, 0);
    if (!block_is_last(&args->state->done, args->lists.parts, ticket))
        return;
    const uint32_t taken = atomic_load_u32(&args->state->taken);
    const uint64_t worst = atomic_load_u64(&args->state->worst);
    barrier();
    if (thread_index() == 0) {
        atomic_store_u64(&args->state->worst, CANON_KEY_WORST);
        atomic_store_u32(&args->state->taken, 0);
        atomic_store_u32(&args->state->done, 0);
        atomic_store_u32(&args->state->given, 0);
    }
    merge_best(args->lists.found, taken, worst, args->lists.k, &at, args->best);
}

#endif
