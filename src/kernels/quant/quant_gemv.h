/* Products of quantized weights with up to eight columns (blocks/dot.h says what they are): bound by the reading of the
 * weights.
 *
 * A block of threads takes 16 rows and 8 columns. Its rows come in pieces of 16 bytes, as they lie, several stages ahead, into
 * shared memory; rows that do not begin at a multiple of 16 bytes lie there just as crookedly. Each of the eight teams of 32
 * threads owns one accumulator: it takes every eighth block of the rows, so no fma waits for another team, and the eight meet
 * in the end. Tensor cores multiply 16 rows x 32 codes by 8 columns at once where there are any; how many columns there are
 * makes little difference then.
 *
 * Where rows are few, several blocks of threads share 16 of them, each with some of the accumulators, and the teams of the
 * others have nothing to do but to copy. The last of the blocks to be done adds up what all found.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_H
#define WW_KERNELS_QUANT_QUANT_GEMV_H

#include "kernels/quant/quant.h"
#include "kernels/quant/quant_words.h"

#include "kernels/quant/quant_gemv_fused.h"
#include "kernels/quant/quant_stages.h"

typedef struct __attribute__((aligned(8), may_alias)) two_words {
    uint32_t x, y;
} two_words;

/* Thread l of a team has rows l / 4 and l / 4 + 8, columns 2 * (l % 4) and the next: results in that order. */
typedef struct few_sums {
    int32_t of[4];
} few_sums;

/* A thread of a team, and the column whose codes it feeds to tensor cores: of columns that are not there, any. How the team's
 * blocks lie, and whether there is but one column: both are constants wherever they are asked. */
typedef struct few_thread {
    uint32_t thread, column, width;
    int32_t lies;
    bool single, even; /* even: so are the numbers of the team's blocks */
    uint32_t flip;     /* quant_gemv_args */
} few_thread;

/* Result i of a thread is of column 2 * (thread % 4) + i % 2: with a single column half of them are nobody's. */
#define FEW_FOR_RESULTS(i, single)                                                                                             \
    UNROLL                                                                                                                     \
    for (int32_t i = 0; i < 4; i += (single) ? 2 : 1)

/* What a row of a team's has of a piece: words `at` and `at` + 4. Of a format whose codes are turned, the factor as well. */
DEVICE words_two few_words(int32_t type, const uint8_t *block, int32_t p, few_thread here, int32_t at)
{
    if (words_turned(type))
        return words_turned_of(type, here.lies, here.even, here.flip, block, at);
    words_two two;
    two.x = words_quick(type, here.lies, here.flip, block, p, 0, at);
    two.y = words_quick(type, here.lies, here.flip, block, p, 1, at);
    two.factor = 0;
    return two;
}

/* The f16 in front of the codes of two rows, of formats whose codes are turned. */
typedef struct few_factors {
    uint32_t upper, lower;
} few_factors;

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800

/* `from` is what all sums begin with. */
DEVICE void few_mma_32(int32_t *sums, int32_t from, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                       uint32_t b1)
{
    __asm__(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(from));
}

DEVICE void few_mma_16(int32_t *sums, uint32_t a0, uint32_t a1, uint32_t b0)
{
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
            : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
            : "r"(a0), "r"(a1), "r"(b0), "r"(0));
}

/* Piece p of a block of each row by the same 32 codes of all columns: first[] for the first 16, second[] for the others where
 * these have scales of their own, otherwise all in first[], which then begin with `from`. */
DEVICE void few_multiply(int32_t type, const uint8_t *upper, const uint8_t *lower, int32_t p, const uint32_t *codes,
                         few_thread here, int32_t from, few_sums *first, few_sums *second, few_factors *factors)
{
    const int32_t at = (int32_t)(here.thread % 4);
    const two_words b = *(const two_words *)(codes + here.column * 8 + at * 2);
    const words_two a = few_words(type, upper, p, here, at), c = few_words(type, lower, p, here, at);
    if (words_runs_of_16(type)) {
        few_mma_16(first->of, a.x, c.x, b.x);
        few_mma_16(second->of, a.y, c.y, b.y);
    } else {
        few_mma_32(first->of, from, a.x, c.x, a.y, c.y, b.x, b.y);
    }
    factors->upper = a.factor;
    factors->lower = c.factor;
}

/* Minima of 16 elements each by the sums of so many codes, whose low and high bytes are apart. */
DEVICE void few_multiply_mins(int32_t type, const words_scales *upper, const words_scales *lower, const uint32_t *sums,
                              few_thread here, few_sums *low, few_sums *high)
{
    const uint32_t at = here.thread % 4, a0 = words_mins(type, upper, at), a1 = words_mins(type, lower, at);
    const two_words b = *(const two_words *)(sums + here.thread / 4 * 8 + at * 2);
    few_mma_16(low->of, a0, a1, b.x);
    few_mma_16(high->of, a0, a1, b.y);
}

#else

DEVICE void few_multiply(int32_t type, const uint8_t *upper, const uint8_t *lower, int32_t p, const uint32_t *codes,
                         few_thread here, int32_t from, few_sums *first, few_sums *second, few_factors *factors)
{
    const uint32_t column = here.thread % 4 * 2 % here.width, next = column + (here.width > 1 ? 1 : 0);
    const bool runs_of_16 = words_runs_of_16(type);
    FEW_FOR_RESULTS(i, here.single)
    {
        first->of[i] = from;
        second->of[i] = 0;
    }
    UNROLL
    for (int32_t at = 0; at < 4; at++) {
        const words_two a = few_words(type, upper, p, here, at), c = few_words(type, lower, p, here, at);
        FEW_FOR_RESULTS(i, here.single)
        {
            const two_words b = *(const two_words *)(codes + (i % 2 ? next : column) * 8 + at * 2);
            int32_t *rest = runs_of_16 ? &second->of[i] : &first->of[i];
            first->of[i] = dot4_i8(i < 2 ? a.x : c.x, b.x, first->of[i]);
            *rest = dot4_i8(i < 2 ? a.y : c.y, b.y, *rest);
        }
        factors->upper = a.factor;
        factors->lower = c.factor;
    }
}

DEVICE void few_multiply_mins(int32_t type, const words_scales *upper, const words_scales *lower, const uint32_t *sums,
                              few_thread here, few_sums *low, few_sums *high)
{
    FEW_FOR_RESULTS(i, here.single)
    {
        low->of[i] = high->of[i] = 0;
        UNROLL
        for (uint32_t at = 0; at < 4; at++) {
            const two_words b = *(const two_words *)(sums + (here.thread % 4 * 2 + (uint32_t)i % 2) * 8 + at * 2);
            const uint32_t a = words_mins(type, i < 2 ? upper : lower, at);
            low->of[i] = dot4_i8(a, b.x, low->of[i]);
            high->of[i] = dot4_i8(a, b.y, high->of[i]);
        }
    }
}

#endif

/* The activations of one block of weights, in shared memory: 32 codes of a column are eight words. */
typedef struct few_columns {
    const uint32_t *codes, *sums;
    const float *factors;
} few_columns;

/* Chips without products of bytes make them of many instructions: all pieces of a block at once would want more registers than
 * there are. AMD's compilers read all of them ahead, and on RDNA 3 and 4 spill; two at a time keep the loads busy. */
#if defined(SIMT_DOT4_IS_LONG)
#define FEW_UNROLL UNROLL_BY(1)
#elif defined(__NVPTX__)
#define FEW_UNROLL UNROLL
#else
#define FEW_UNROLL UNROLL_BY(2)
#endif

/* Are there copies of the loop for how blocks lie? They make the build for AMD's many chips half as long again, for what nobody
 * has measured there. And are there kernels of their own for a single column? Likewise; and old chips of AMD's have too few
 * scalar registers to code it on the way. */
#if defined(__AMDGCN__)
enum { FEW_KNOWS_PLACES = 0, FEW_ONE_APART = 0 };
#else
enum { FEW_KNOWS_PLACES = 1, FEW_ONE_APART = 1 };
#endif

/* J of a block of many pieces. */
DEVICE void few_integers(int32_t type, const uint8_t *upper, const uint8_t *lower, const words_scales *of_upper,
                         const words_scales *of_lower, const uint32_t *codes, few_thread here, few_sums *j)
{
    const bool scaled = type != BLOCK_Q8_K, runs_of_16 = words_runs_of_16(type);
    FEW_UNROLL
    for (int32_t p = 0; p < dot_pieces(type); p++) {
        few_sums first, second;
        few_factors none;
        few_multiply(type, upper, lower, p, codes + (uint32_t)p * here.width * 8, here, 0, &first, &second, &none);
        const int32_t run = runs_of_16 ? 2 * p : p;
        FEW_FOR_RESULTS(i, here.single)
        {
            const words_scales *s = i < 2 ? of_upper : of_lower;
            j->of[i] += scaled ? words_byte(s->scales, run) * first.of[i] : first.of[i];
            if (runs_of_16)
                j->of[i] += words_byte(s->scales, run + 1) * second.of[i];
        }
    }
    FEW_FOR_RESULTS(i, here.single)
    j->of[i] >>= words_shift(type);
}

/* M of a block. */
DEVICE void few_integers_of_mins(int32_t type, const words_scales *of_upper, const words_scales *of_lower, const uint32_t *sums,
                                 few_thread here, few_sums *m)
{
    if (dot_pieces(type) == 1) {
        const two_words both = *(const two_words *)(sums + here.thread % 4 * 2);
        FEW_FOR_RESULTS(i, here.single)
        m->of[i] = (int16_t)(i % 2 ? both.y : both.x) + (int16_t)((i % 2 ? both.y : both.x) >> 16);
        return;
    }
    few_sums low, high;
    few_multiply_mins(type, of_upper, of_lower, sums, here, &low, &high);
    FEW_FOR_RESULTS(i, here.single)
    m->of[i] = low.of[i] + 128 * high.of[i];
}

#define FEW_ONE_AND_A_HALF 0x4b400000 /* the bits of 1.5 * 2^23: what is added to it, below 2^22, is a float but for them */

/* Codes of q4_0 are sixteen times as large (quant_words.h), and so are sums of it until the end: exact, for nothing here comes
 * near to underflow or overflow. */
DEVICE float few_scale(int32_t type)
{
    return type == BLOCK_Q4_0 ? 0.0625f : 1.0f;
}

DEVICE void few_block_small(int32_t type, const uint8_t *upper, const uint8_t *lower, few_columns columns, few_thread here,
                            float *acc)
{
    const f32x2 da = load_f32x2(columns.factors + here.thread % 4 * 2);
    few_sums j, m = {{0, 0, 0, 0}}, none;
    few_factors heads;
    few_multiply(type, upper, lower, 0, columns.codes, here, FEW_ONE_AND_A_HALF, &j, &none, &heads);
    dot_factors d_upper = {words_f16_from((uint16_t)heads.upper), 0.0f},
                d_lower = {words_f16_from((uint16_t)heads.lower), 0.0f};
    if (!words_turned(type)) {
        d_upper = words_factors(type, upper);
        d_lower = words_factors(type, lower);
    }
    if (dot_has_min(type))
        few_integers_of_mins(type, NULL, NULL, columns.sums, here, &m);
    FEW_FOR_RESULTS(i, here.single)
    {
        const dot_factors d = i < 2 ? d_upper : d_lower;
        const float factor = i % 2 ? da.y : da.x, of_j = canon_bits_float((uint32_t)j.of[i]) - 12582912.0f;
        acc[i] = fma_f32(d.d * factor, of_j, acc[i]);
        if (dot_has_min(type))
            acc[i] = fma_f32(d.min * factor, (float)m.of[i], acc[i]);
    }
}

DEVICE void few_block_large(int32_t type, const uint8_t *upper, const uint8_t *lower, few_columns columns, few_thread here,
                            float *acc)
{
    const f32x2 da = load_f32x2(columns.factors + here.thread % 4 * 2);
    few_sums j = {{0, 0, 0, 0}}, m = {{0, 0, 0, 0}};
    const words_scales of_upper = words_scales_lying(type, here.lies, upper),
                       of_lower = words_scales_lying(type, here.lies, lower);
    few_integers(type, upper, lower, &of_upper, &of_lower, columns.codes, here, &j);
    if (dot_has_min(type))
        few_integers_of_mins(type, &of_upper, &of_lower, columns.sums, here, &m);
    const dot_factors d_upper = words_factors(type, upper), d_lower = words_factors(type, lower);
    FEW_FOR_RESULTS(i, here.single)
    {
        const dot_factors d = i < 2 ? d_upper : d_lower;
        const float factor = i % 2 ? da.y : da.x;
        acc[i] = fma_f32(d.d * factor, (float)j.of[i], acc[i]);
        if (dot_has_min(type))
            acc[i] = fma_f32(d.min * factor, (float)m.of[i], acc[i]);
    }
}

/* The accumulators of result t, row t % 16 of column t / 16, are added up. */
DEVICE void few_put(int32_t type, const quant_gemv_args *args, uint32_t group, float *sum, uint32_t t)
{
    UNROLL
    for (uint32_t s = 4; s > 0; s /= 2) {
        UNROLL
        for (uint32_t c = 0; c < s; c++)
            sum[c] = sum[c] + sum[c + s];
    }
    const uint32_t place = group * QUANT_FEW_COLUMNS + t / QUANT_FEW_ROWS;
    const uint32_t column = args->source ? args->source[place] : place;
    const uint64_t row = (uint64_t)stage_tile(args) * QUANT_FEW_ROWS + t % QUANT_FEW_ROWS;
    if (column < args->columns && row < args->rows)
        args->y[column * args->rows + row] = sum[0] * few_scale(type);
}

/* The accumulators of this block go to memory; if all others have done that, they meet there. By all threads. */
DEVICE void few_share(int32_t type, const quant_gemv_args *args, uint32_t group, const float *meeting, uint32_t *ticket)
{
    const uint32_t t = thread_index(), tile = block_index_y() * (block_count() / args->parts) + stage_tile(args);
    float *together = args->partial + (uint64_t)tile * QUANT_CLASSES * QUANT_FEW_RESULTS;
    const uint32_t count = QUANT_CLASSES / args->parts * QUANT_FEW_RESULTS, first = stage_part(args) * count;
    for (uint32_t i = first + t; i < first + count; i += QUANT_THREADS)
        together[i] = AT(meeting, i);
    memory_fence_device();
    barrier();
    if (t == 0)
        AT(ticket, 0) = atomic_add_u32(&args->ready[tile], 1);
    barrier();
    memory_fence_device();
    if (AT(ticket, 0) == args->parts - 1 && t < QUANT_FEW_RESULTS) {
        args->ready[tile] = 0; /* for whoever comes next */
        float sum[QUANT_CLASSES];
        UNROLL
        for (uint32_t c = 0; c < QUANT_CLASSES; c++)
            sum[c] = together[c * QUANT_FEW_RESULTS + t];
        few_put(type, args, group, sum, t);
    }
}

/* The eight accumulators of each result meet. */
DEVICE void few_finish(int32_t type, const quant_gemv_args *args, uint32_t group, float *meeting, uint32_t *ticket,
                       const float *acc)
{
    const uint32_t team = thread_index() / QUANT_TEAM, thread = thread_index() % QUANT_TEAM;
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        AT(meeting, (team * QUANT_FEW_COLUMNS + thread % 4 * 2 + i % 2) * QUANT_FEW_ROWS + thread / 4 + i / 2 * 8) = acc[i];
    barrier();
    if (STAGES_SHARED && args->parts > 1) {
        few_share(type, args, group, meeting, ticket);
    } else if (thread_index() < QUANT_FEW_RESULTS) {
        float sum[QUANT_CLASSES];
        UNROLL
        for (uint32_t c = 0; c < QUANT_CLASSES; c++)
            sum[c] = AT(meeting, c * QUANT_FEW_RESULTS + thread_index());
        few_put(type, args, group, sum, thread_index());
    }
}

/* What a thread works on in a stage: the first block of its team in both of its rows, and what columns have for it. */
typedef struct few_place {
    const uint8_t *upper, *lower;
    few_columns columns;
} few_place;

/* The same `blocks` further on. */
DEVICE void few_block(int32_t type, const few_place *at, uint32_t blocks, few_thread here, float *acc)
{
    const uint32_t bytes = (uint32_t)block_bytes(type), parts = (uint32_t)dot_pieces(type);
    const uint32_t sums = dot_has_min(type) ? parts * QUANT_FEW_COLUMNS : 0;
    few_columns columns;
    columns.codes = at->columns.codes + blocks * (parts * here.width * 8);
    columns.sums = at->columns.sums + blocks * sums;
    columns.factors = at->columns.factors + blocks * QUANT_FEW_COLUMNS;
    if (parts == 1)
        few_block_small(type, at->upper + blocks * bytes, at->lower + blocks * bytes, columns, here, acc);
    else
        few_block_large(type, at->upper + blocks * bytes, at->lower + blocks * bytes, columns, here, acc);
}

/* Blocks of a stage from a team's first to its last. */
DEVICE uint32_t few_reach(int32_t type)
{
    return stage_blocks(type) - 7;
}

/* Octets of a stage; of the last, those blocks that are there. */
DEVICE void few_octets(int32_t type, const uint8_t *stage, uint32_t blocks, uint32_t upper, uint32_t lower, few_thread here,
                       float *acc)
{
    const uint32_t team = thread_index() / QUANT_TEAM, bytes = (uint32_t)block_bytes(type), parts = (uint32_t)dot_pieces(type);
    const uint32_t words = parts * here.width * 8, sums = dot_has_min(type) ? parts * QUANT_FEW_COLUMNS : 0;
    few_place at;
    at.upper = AT_RANGE(stage, upper + team * bytes, few_reach(type) * bytes);
    at.lower = AT_RANGE(stage, lower + team * bytes, few_reach(type) * bytes);
    at.columns.codes =
        (const uint32_t *)(const void *)AT_RANGE(stage, stage_codes_at(type) + team * words * 4, few_reach(type) * words * 4);
    at.columns.sums =
        (const uint32_t *)(const void *)AT_RANGE(stage, stage_sums_at(type) + team * sums * 4, few_reach(type) * sums * 4);
    at.columns.factors = (const float *)(const void *)AT_RANGE(stage, stage_factors_at(type) + team * QUANT_FEW_COLUMNS * 4,
                                                               few_reach(type) * QUANT_FEW_COLUMNS * 4);
    if (blocks >= stage_blocks(type)) {
        UNROLL
        for (uint32_t o = 0; o < stage_octets(type); o++)
            few_block(type, &at, o * 8, here, acc);
        return;
    }
    UNROLL_BY(1)
    for (uint32_t block = team; block < blocks; block += 8)
        few_block(type, &at, block - team, here, acc);
}

/* ---- a kernel -------------------------------------------------------------------------------------------------------------
 */

/* What rows and columns have for the first stages. Rows are asked for first, but by blocks that code and need not wait: the few
 * floats that they read would come behind all rows. */
DEVICE void few_begin(int32_t type, bool single, const quant_gemv_args *args, uint32_t *missing, stage_ring *stages)
{
    const bool asked = single && args->x, codes = asked && block_index() < few_shares(type, args);
    const bool first = codes && args->apart;
    if (!first)
        stages_rows(type, stages);
    if (!args->apart)
        launches_wait();
    launches_next();
    if (codes)
        few_code(type, args, block_index());
    if (first)
        stages_rows(type, stages);
    if (asked)
        few_await_codes(type, args, missing);
    stages_columns(type, stages);
}

/* All chunks. How blocks lie, and whether there is but one column, are constants here. */
DEVICE void few_chunks(int32_t type, const quant_gemv_args *args, const uint8_t *staged, uint32_t upper, uint32_t lower,
                       few_thread here, int32_t lies, bool single, stage_ring *stages, float *acc)
{
    here.lies = lies;
    here.single = single;
    here.column = single ? 0 : here.thread / 4 % args->width;
    here.width = single ? 1 : args->width;
    UNROLL_BY(1)
    while (stages->chunk < stages->chunks) {
        const uint32_t left = args->blocks - stages->chunk * stage_blocks(type), at = stages_take(type, stages);
        if (!STAGES_SHARED || stage_has_class(args, thread_index() / QUANT_TEAM))
            few_octets(type, AT_RANGE(staged, at, stages->bytes), left, upper, lower, here, acc);
        stages_give(type, stages);
    }
}

DEVICE void few_run(int32_t type, bool single, const quant_gemv_args *args, uint32_t *shared, const uint8_t *staged,
                    uint64_t *arrivals, uint32_t *ticket)
{
    const uint32_t group = args->first_group + block_index_y();
    const uint32_t chunks = (args->blocks + stage_blocks(type) - 1) / stage_blocks(type);
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    stage_ring stages;
    few_thread here;
    here.thread = thread_index() % QUANT_TEAM;
    here.even = thread_index() / QUANT_TEAM % 2 == 0;
    here.flip = args->flip;
    stages_begin(type, args, group, chunks, shared, arrivals, &stages);
    few_begin(type, single, args, ticket, &stages);
    const uint32_t upper = stage_row(type, args, group, here.thread / 4),
                   lower = stage_row(type, args, group, here.thread / 4 + 8);
    if (!FEW_ONE_APART && args->width == 1)
        few_chunks(type, args, staged, upper, lower, here, WORDS_ANYWHERE, true, &stages, acc);
    else if (!FEW_KNOWS_PLACES || !(words_turned(type) || type == BLOCK_Q6_K) || !args->aligned)
        few_chunks(type, args, staged, upper, lower, here, WORDS_ANYWHERE, single, &stages, acc);
    else if (here.even)
        few_chunks(type, args, staged, upper, lower, here, WORDS_EVEN, single, &stages, acc);
    else
        few_chunks(type, args, staged, upper, lower, here, WORDS_ODD, single, &stages, acc);
    barrier();
    if (args->apart)
        launches_wait();
    few_finish(type, args, group, (float *)(void *)shared, ticket, acc);
}

#define FEW_KERNEL(kernel, type, single, resident)                                                                             \
    KERNEL_RESIDENT(kernel, quant_gemv_args, QUANT_THREADS, resident)                                                          \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED_DYNAMIC(uint8_t, staged); /* the same, by bytes */                                                              \
        SHARED(uint64_t, arrivals, 2 * STAGES_MOST);                                                                           \
        SHARED(uint32_t, ticket, 1);                                                                                           \
        few_run(type, single, &args, shared, staged, arrivals, ticket);                                                        \
    }

#endif
