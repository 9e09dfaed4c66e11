/* Scores of a few queries (1, 4 or 8) against all rows, in one pass over them.
 *
 * Bound by memory: every row is read once. Sixteen lanes hold the 64 accumulators of a row, so a lane reads 16 bytes of each
 * run and several rows' loads are in flight before the first is used. The sums of many rows and queries are folded across the
 * lanes together: at each of the four steps a lane keeps half of them and hands the other half over, so that sixteen sums
 * cost fifteen shuffles, and each lane ends with a sum of its own to compare.
 *
 * Nothing depends on the wave size: groups of sixteen lanes never straddle a wave, and a wave's groups share a word of the
 * mask.
 */
#include "kernels/simt.h"

#include "kernels/cursor.h"
#include "kernels/pack.h"
#include "kernels/topk.h"

enum {
    FEW_SUMS_MAX = 16, /* a lane's accumulators of four: rows at once x queries; and the sums that are folded together */
    FEW_ROWS_MAX = 4   /* rows at once */
};

/* A kernel's shape, known when it is compiled. */
typedef struct few_shape {
    int32_t queries;
    int32_t rows;   /* whose accumulators a lane holds at once */
    int32_t folded; /* rows that are folded together: 16 sums a query at least */
    bool l2;
} few_shape;

/* Two runs of a row (or its last odd one), as one lane sees them. */
typedef struct few_piece {
    f32x4 even, odd;
} few_piece;

/* Two runs of each of `rows` rows: the loads of all of them are in flight together. */
DEVICE void few_load(few_shape shape, const float *x, int32_t runs, int32_t pair, few_piece *pieces)
{
    const size_t floats = (size_t)runs * CANON_LANES;
    const bool whole = 2 * pair + 1 < runs;
    x += pair * (2 * CANON_LANES) + group_lane() * (whole ? 8 : 4);
    UNROLL
    for (int32_t r = 0; r < shape.rows; r++) {
        pieces[r].even = load_f32x4_readonly(x + r * floats);
        pieces[r].odd = load_f32x4_readonly(x + r * floats + (whole ? 4 : 0));
    }
}

DEVICE f32x4 few_step(bool l2, f32x4 q, f32x4 x, f32x4 acc)
{
    if (!l2)
        return f32x4_fma(q, x, acc);
    const f32x4 t = f32x4_sub(q, x);
    return f32x4_fma(t, t, acc);
}

/* Adds a piece of each row times the same piece of each query: in a bundle the queries' pieces are at fixed distances. */
DEVICE void few_accumulate(few_shape shape, const float *queries, int32_t runs, int32_t pair, const few_piece *pieces,
                           f32x4 *acc)
{
    const bool whole = 2 * pair + 1 < runs;
    const int32_t width = whole ? 2 * CANON_LANES : CANON_LANES;
    queries += pair * shape.queries * (2 * CANON_LANES) + group_lane() * (whole ? 8 : 4);
    UNROLL
    for (int32_t q = 0; q < shape.queries; q++) {
        const f32x4 query = load_f32x4_readonly(queries + q * width);
        UNROLL
        for (int32_t r = 0; r < shape.rows; r++)
            acc[r * shape.queries + q] = few_step(shape.l2, query, pieces[r].even, acc[r * shape.queries + q]);
    }
    if (!whole)
        return;
    UNROLL
    for (int32_t q = 0; q < shape.queries; q++) {
        const f32x4 query = load_f32x4_readonly(queries + q * (2 * CANON_LANES) + 4);
        UNROLL
        for (int32_t r = 0; r < shape.rows; r++)
            acc[r * shape.queries + q] = few_step(shape.l2, query, pieces[r].odd, acc[r * shape.queries + q]);
    }
}

/* What 16 rows of one group are scored from. */
typedef struct few_rows {
    const float *queries; /* a bundle */
    const float *x;       /* packed rows from here on */
    int32_t runs;
    int32_t row;  /* of the next pieces, 0..15 */
    int32_t pair; /* of the next pieces */
    few_piece next[FEW_ROWS_MAX];
} few_rows;

/* Asks for the pieces behind the ones that came last; behind the last of all for those again. */
DEVICE void few_fetch(few_shape shape, few_rows *rows)
{
    few_load(shape, rows->x + (size_t)rows->row * (size_t)(rows->runs * CANON_LANES), rows->runs, rows->pair, rows->next);
    if (++rows->pair * 2 >= rows->runs) {
        rows->pair = 0;
        rows->row = rows->row + shape.rows < 16 ? rows->row + shape.rows : rows->row;
    }
}

/* The sums, a lane's share of each, of the next rows with all queries. The next pieces are asked for before these are used. */
DEVICE void few_sums(few_shape shape, few_rows *rows, float *sums)
{
    f32x4 acc[FEW_SUMS_MAX];
    UNROLL
    for (int32_t i = 0; i < shape.rows * shape.queries; i++)
        acc[i] = F32X4_ZERO;
    UNROLL_BY(1)
    for (int32_t pair = 0; pair * 2 < rows->runs; pair++) {
        few_piece pieces[FEW_ROWS_MAX];
        UNROLL
        for (int32_t r = 0; r < shape.rows; r++)
            pieces[r] = rows->next[r];
        few_fetch(shape, rows);
        few_accumulate(shape, rows->queries, rows->runs, pair, pieces, acc);
    }
    UNROLL
    for (int32_t i = 0; i < shape.rows * shape.queries; i++) {
        sums[i] = fold_group(acc[i]);
        SETTLE(sums[i]);
    }
}

/* One step of the fold: of each two sums a lane keeps the one that its bit of `mask` says, adds the neighbour's share of it,
 * and gives the neighbour its own share of the other. */
DEVICE void few_fold_step(float *sums, int32_t count, const uint32_t mask)
{
    const uint32_t upper = ((uint32_t)group_lane() & mask) != 0 ? 0xffffffffu : 0;
    UNROLL
    for (int32_t i = 0; i < count / 2; i++) {
        /* Chosen by bits: a choice between two elements could become a choice between two addresses, and the sums leave the
         * registers. */
        const uint32_t a = canon_float_bits(sums[2 * i]), b = canon_float_bits(sums[2 * i + 1]);
        const float keep = canon_bits_float((a & ~upper) | (b & upper));
        const float give = canon_bits_float((a & upper) | (b & ~upper));
        sums[i] = keep + wave_shuffle_xor_f32(give, mask);
    }
}

/* From `count` sums of which each lane of a group has a share, to count/16 whole ones: lane l has numbers l, l+16, ... */
DEVICE void few_fold(float *sums, int32_t count)
{
    few_fold_step(sums, count, 1);
    few_fold_step(sums, count / 2, 2);
    few_fold_step(sums, count / 4, 4);
    few_fold_step(sums, count / 8, 8);
}

/* Scores 16 rows from row `first` of a word, those that are admitted, and offers them. By a whole wave. */
DEVICE void few_score(few_shape shape, const search_args *args, const topk *top, const float *query_norms, const row_word *word,
                      uint32_t first)
{
    const bool cosine = top->metric == CANON_COSINE;
    const float norm = cosine ? word->norms[first + (uint32_t)group_lane()] : 0.0f;
    few_rows rows;
    rows.queries = args->queries.packed;
    rows.runs = args->rows.runs;
    rows.x = word->rows + (size_t)first * (size_t)(rows.runs * CANON_LANES);
    rows.row = 0;
    rows.pair = 0;
    few_fetch(shape, &rows);
    UNROLL_BY(1)
    for (uint32_t begin = 0; begin < 16; begin += (uint32_t)shape.folded) {
        float sums[FEW_SUMS_MAX];
        UNROLL
        for (int32_t block = 0; block < shape.folded; block += shape.rows)
            few_sums(shape, &rows, sums + block * shape.queries);
        few_fold(sums, shape.folded * shape.queries);
        UNROLL
        for (int32_t i = 0; i < shape.folded * shape.queries / 16; i++) {
            const uint32_t number = (uint32_t)(i * 16 + group_lane());
            const uint32_t q = number % (uint32_t)shape.queries, row = begin + number / (uint32_t)shape.queries;
            const float row_norm = cosine ? wave_shuffle_f32(norm, (lane() & ~15u) + row) : 0.0f;
            const float query_norm = cosine ? AT(query_norms, q) : 0.0f;
            if ((word->admitted >> (first + row) & 1) &&
                topk_gate_open(top->metric, AT(top->gate, q), sums[i], query_norm, row_norm))
                topk_offer(top, &args->lists, q, sums[i], query_norm, row_norm, word->first_row + first + row);
        }
    }
}

/* The norms of the queries, into shared memory: a group of lanes each. By all threads. */
DEVICE void few_norms(few_shape shape, const search_args *args, float *norms)
{
    const int32_t q = (int32_t)group_index(), runs = args->rows.runs;
    const bool there = q < shape.queries;
    f32x4 acc = F32X4_ZERO;
    for (int32_t run = 0; there && run < runs; run++) {
        const int32_t at = packed_in_bundle(runs, run, group_lane(), shape.queries, q);
        const f32x4 x = load_f32x4_readonly(args->queries.packed + at);
        acc = f32x4_fma(x, x, acc);
    }
    const float sum = fold_row(acc);
    if (there && group_lane() == 0)
        AT(norms, q) = sqrt_f32(sum);
}

/* The rows are dealt out by steps of four words, one to four groups; each block takes every parts-th step. */
DEVICE void search_few(few_shape shape, const search_args *args)
{
    SHARED(uint64_t, threshold, SEARCH_FEW_MAX);
    SHARED(uint32_t, length, SEARCH_FEW_MAX);
    SHARED(float, gate, SEARCH_FEW_MAX);
    SHARED(float, norms, SEARCH_FEW_MAX);
    const uint32_t part = block_index();
    const size_t first_list = (size_t)part * args->queries.slots;
    const topk top = {threshold,
                      length,
                      gate,
                      args->lists.keys + first_list * args->lists.capacity,
                      args->queries.worst,
                      (uint32_t)shape.queries,
                      args->queries.count,
                      shape.l2 ? CANON_L2 : args->rows.metric};
    topk_begin(&top);
    if (top.metric == CANON_COSINE)
        few_norms(shape, args, norms);
    barrier();

    uint32_t segment = 0;
    const uint32_t first = group_index() % 4 * 16;
    for (uint32_t step = part * SEARCH_FEW_WORDS; step < args->rows.word_count; step += args->lists.parts * SEARCH_FEW_WORDS) {
        const uint32_t number = step + group_index() / 4;
        if (number < args->rows.word_count) { /* the same for a whole wave */
            const row_word word = row_word_at(&args->rows, number, &segment);
            if (wave_any((word.admitted >> first & 0xffffu) != 0))
                few_score(shape, args, &top, norms, &word, first);
        }
        barrier();
        topk_tend(&top, &args->lists, args->lists.trigger, args->lists.kept_max);
        barrier();
    }
    topk_end(&top, &args->lists, args->lists.counts + first_list);
}

#define SEARCH_FEW(name, queries, rows, folded, l2)                                                                            \
    KERNEL(name, search_args, SEARCH_THREADS)                                                                                  \
    {                                                                                                                          \
        const few_shape shape = {queries, rows, folded, l2};                                                                   \
        search_few(shape, &args);                                                                                              \
    }

SEARCH_FEW(search_few_1_dot, 1, 4, 16, false)
SEARCH_FEW(search_few_4_dot, 4, 4, 4, false)
SEARCH_FEW(search_few_8_dot, 8, 2, 2, false)
SEARCH_FEW(search_few_1_l2, 1, 4, 16, true)
SEARCH_FEW(search_few_4_l2, 4, 4, 4, true)
SEARCH_FEW(search_few_8_l2, 8, 2, 2, true)
