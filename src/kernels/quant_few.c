/* Products of quantized weights with up to eight columns (blocks_dot.h says what they are): bound by the reading of the
 * weights.
 *
 * A block of threads takes 16 rows and 8 columns. Its rows come in pieces of 16 bytes, as they lie, several stages ahead, into
 * shared memory; rows that do not begin at a multiple of 16 bytes lie there just as crookedly. Each of the eight teams of 32
 * threads owns one accumulator: it takes every eighth block of the rows, so no fma waits for another team, and the eight meet
 * in the end. Tensor cores multiply 16 rows x 32 codes by 8 columns at once where there are any; how many columns there are
 * makes little difference then.
 */
#include "kernels/quant.h"
#include "kernels/quant_words.h"

#include "kernels/quant_stages.h"

typedef struct __attribute__((aligned(8), may_alias)) two_words {
    uint32_t x, y;
} two_words;

/* Thread l of a team has rows l / 4 and l / 4 + 8, columns 2 * (l % 4) and the next: results in that order. */
typedef struct few_sums {
    int32_t of[4];
} few_sums;

/* A thread of a team, and the column whose codes it feeds to tensor cores: of columns that are not there, any. */
typedef struct few_thread {
    uint32_t thread, column, width;
} few_thread;

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800

DEVICE void few_mma_32(int32_t *sums, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

DEVICE void few_mma_16(int32_t *sums, uint32_t a0, uint32_t a1, uint32_t b0)
{
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
            : "r"(a0), "r"(a1), "r"(b0));
}

/* Piece p of a block of each row by the same 32 codes of all columns: first[] for the first 16, second[] for the others where
 * these have scales of their own, otherwise all in first[]. */
DEVICE void few_multiply(int32_t type, const uint8_t *upper, const uint8_t *lower, int32_t p, const uint32_t *codes,
                         few_thread here, few_sums *first, few_sums *second)
{
    const int32_t at = (int32_t)(here.thread % 4);
    const two_words b = *(const two_words *)(codes + here.column * 8 + at * 2);
    const uint32_t a0 = words_quick(type, upper, p, 0, at), a1 = words_quick(type, lower, p, 0, at);
    const uint32_t a2 = words_quick(type, upper, p, 1, at), a3 = words_quick(type, lower, p, 1, at);
    if (words_runs_of_16(type)) {
        few_mma_16(first->of, a0, a1, b.x);
        few_mma_16(second->of, a2, a3, b.y);
    } else {
        few_mma_32(first->of, a0, a1, a2, a3, b.x, b.y);
    }
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
                         few_thread here, few_sums *first, few_sums *second)
{
    const uint32_t column = here.thread % 4 * 2 % here.width, next = column + (here.width > 1 ? 1 : 0);
    few_sums *rest = words_runs_of_16(type) ? second : first;
    UNROLL
    for (int32_t at = 0; at < 4; at++) {
        const two_words b0 = *(const two_words *)(codes + column * 8 + at * 2);
        const two_words b1 = *(const two_words *)(codes + next * 8 + at * 2);
        const uint32_t a0 = words_quick(type, upper, p, 0, at), a1 = words_quick(type, lower, p, 0, at);
        const uint32_t a2 = words_quick(type, upper, p, 1, at), a3 = words_quick(type, lower, p, 1, at);
        first->of[0] = dot4_i8(a0, b0.x, first->of[0]);
        first->of[1] = dot4_i8(a0, b1.x, first->of[1]);
        first->of[2] = dot4_i8(a1, b0.x, first->of[2]);
        first->of[3] = dot4_i8(a1, b1.x, first->of[3]);
        rest->of[0] = dot4_i8(a2, b0.y, rest->of[0]);
        rest->of[1] = dot4_i8(a2, b1.y, rest->of[1]);
        rest->of[2] = dot4_i8(a3, b0.y, rest->of[2]);
        rest->of[3] = dot4_i8(a3, b1.y, rest->of[3]);
    }
}

DEVICE void few_multiply_mins(int32_t type, const words_scales *upper, const words_scales *lower, const uint32_t *sums,
                              few_thread here, few_sums *low, few_sums *high)
{
    UNROLL
    for (uint32_t at = 0; at < 4; at++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const two_words b = *(const two_words *)(sums + (here.thread % 4 * 2 + i % 2) * 8 + at * 2);
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
 * there are. */
#if defined(SIMT_DOT4_IS_LONG)
#define FEW_UNROLL UNROLL_BY(1)
#else
#define FEW_UNROLL UNROLL
#endif

/* J of a block, added to what is there. */
DEVICE void few_integers(int32_t type, const uint8_t *upper, const uint8_t *lower, const words_scales *of_upper,
                         const words_scales *of_lower, const uint32_t *codes, few_thread here, few_sums *j)
{
    const bool large = dot_pieces(type) > 1 && type != BLOCK_Q8_K, runs_of_16 = words_runs_of_16(type);
    if (dot_pieces(type) == 1) {
        few_multiply(type, upper, lower, 0, codes, here, j, j);
        return;
    }
    FEW_UNROLL
    for (int32_t p = 0; p < dot_pieces(type); p++) {
        few_sums first = {{0, 0, 0, 0}}, second = {{0, 0, 0, 0}};
        few_multiply(type, upper, lower, p, codes + (uint32_t)p * here.width * 8, here, &first, &second);
        const int32_t run = runs_of_16 ? 2 * p : p;
        UNROLL
        for (int32_t i = 0; i < 4; i++) {
            const words_scales *s = i < 2 ? of_upper : of_lower;
            j->of[i] += large ? words_byte(s->scales, run) * first.of[i] : first.of[i];
            if (runs_of_16)
                j->of[i] += words_byte(s->scales, run + 1) * second.of[i];
        }
    }
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        j->of[i] >>= words_shift(type);
}

/* M of a block. */
DEVICE void few_integers_of_mins(int32_t type, const words_scales *of_upper, const words_scales *of_lower, const uint32_t *sums,
                                 few_thread here, few_sums *m)
{
    if (dot_pieces(type) == 1) {
        const two_words both = *(const two_words *)(sums + here.thread % 4 * 2);
        UNROLL
        for (int32_t i = 0; i < 4; i++)
            m->of[i] = (int16_t)(i % 2 ? both.y : both.x) + (int16_t)((i % 2 ? both.y : both.x) >> 16);
        return;
    }
    few_sums low = {{0, 0, 0, 0}}, high = {{0, 0, 0, 0}};
    few_multiply_mins(type, of_upper, of_lower, sums, here, &low, &high);
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        m->of[i] = low.of[i] + 128 * high.of[i];
}

#define FEW_ONE_AND_A_HALF 0x4b400000 /* the bits of 1.5 * 2^23: what is added to it, below 2^22, is a float but for them */

DEVICE void few_block(int32_t type, const uint8_t *upper, const uint8_t *lower, few_columns columns, few_thread here,
                      float *acc)
{
    const bool small = dot_pieces(type) == 1;
    const int32_t from = small ? FEW_ONE_AND_A_HALF : 0;
    few_sums j = {{from, from, from, from}}, m = {{0, 0, 0, 0}};
    const f32x2 factors = load_f32x2(columns.factors + here.thread % 4 * 2);
    const words_scales of_upper = words_scales_of(type, upper), of_lower = words_scales_of(type, lower);
    few_integers(type, upper, lower, &of_upper, &of_lower, columns.codes, here, &j);
    if (dot_has_min(type))
        few_integers_of_mins(type, &of_upper, &of_lower, columns.sums, here, &m);
    const dot_factors d_upper = words_factors(type, upper), d_lower = words_factors(type, lower);
    UNROLL
    for (int32_t i = 0; i < 4; i++) {
        const dot_factors d = i < 2 ? d_upper : d_lower;
        const float da = i % 2 ? factors.y : factors.x;
        const float of_j = small ? canon_bits_float((uint32_t)j.of[i]) - 12582912.0f : (float)j.of[i];
        acc[i] = fma_f32(d.d * da, of_j, acc[i]);
        if (dot_has_min(type))
            acc[i] = fma_f32(d.min * da, (float)m.of[i], acc[i]);
    }
}

/* The eight accumulators of each result meet; thread t has row t % 16 of column t / 16. */
DEVICE void few_finish(const quant_few_args *args, uint32_t group, uint64_t first, float *meeting, const float *acc)
{
    const uint32_t team = thread_index() / QUANT_TEAM, thread = thread_index() % QUANT_TEAM;
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        AT(meeting, (team * QUANT_FEW_COLUMNS + thread % 4 * 2 + i % 2) * QUANT_FEW_ROWS + thread / 4 + i / 2 * 8) = acc[i];
    barrier();
    const uint32_t t = thread_index(), results = QUANT_FEW_COLUMNS * QUANT_FEW_ROWS;
    if (t >= results)
        return;
    float sum[QUANT_CLASSES];
    UNROLL
    for (uint32_t c = 0; c < QUANT_CLASSES; c++)
        sum[c] = AT(meeting, c * results + t);
    UNROLL
    for (uint32_t s = 4; s > 0; s /= 2) {
        UNROLL
        for (uint32_t c = 0; c < s; c++)
            sum[c] = sum[c] + sum[c + s];
    }
    const uint32_t place = group * QUANT_FEW_COLUMNS + t / QUANT_FEW_ROWS;
    const uint32_t column = args->source ? args->source[place] : place;
    const uint64_t row = first + t % QUANT_FEW_ROWS;
    if (column < args->columns && row < args->rows)
        args->y[column * args->rows + row] = sum[0];
}

/* Block number `block` of a stage. */
DEVICE void few_staged(int32_t type, const uint8_t *stage, uint32_t block, uint32_t upper, uint32_t lower, few_thread here,
                       float *acc)
{
    const uint32_t bytes = (uint32_t)block_bytes(type), parts = (uint32_t)dot_pieces(type), at = block * bytes;
    const uint32_t words = parts * here.width * 8, sums = dot_has_min(type) ? parts * QUANT_FEW_COLUMNS : 0;
    few_columns columns;
    columns.codes = (const uint32_t *)(const void *)AT_RANGE(stage, stage_codes_at(type) + block * words * 4, words * 4);
    columns.sums = (const uint32_t *)(const void *)AT_RANGE(stage, stage_sums_at(type) + block * sums * 4, sums * 4);
    columns.factors = (const float *)(const void *)AT_RANGE(stage, stage_factors_at(type) + block * QUANT_FEW_COLUMNS * 4,
                                                            QUANT_FEW_COLUMNS * 4);
    few_block(type, AT_RANGE(stage, at + upper, bytes), AT_RANGE(stage, at + lower, bytes), columns, here, acc);
}

/* Octets of a stage; of the last, those blocks that are there. */
DEVICE void few_octets(int32_t type, const uint8_t *stage, uint32_t blocks, uint32_t upper, uint32_t lower, few_thread here,
                       float *acc)
{
    const uint32_t team = thread_index() / QUANT_TEAM;
    if (blocks >= stage_blocks(type)) {
        UNROLL
        for (uint32_t o = 0; o < stage_octets(type); o++)
            few_staged(type, stage, o * 8 + team, upper, lower, here, acc);
        return;
    }
    UNROLL_BY(1)
    for (uint32_t block = team; block < blocks; block += 8)
        few_staged(type, stage, block, upper, lower, here, acc);
}

DEVICE void few_run(int32_t type, const quant_few_args *args, uint32_t *shared, const uint8_t *staged)
{
    const uint32_t thread = thread_index() % QUANT_TEAM, group = args->first_group + block_index_y(), stages = args->stages;
    const uint32_t chunks = (args->blocks + stage_blocks(type) - 1) / stage_blocks(type);
    const uint32_t bytes = stage_bytes(type, args->width);
    const stage_source from = stage_source_of(type, args, group);
    const uint32_t upper = stage_row(type, args, group, thread / 4), lower = stage_row(type, args, group, thread / 4 + 8);
    few_thread here;
    here.thread = thread;
    here.column = thread / 4 % args->width;
    here.width = args->width;
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint32_t filled = 0, now = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < chunks + stages - 1; step++) {
        if (step + 1 >= stages)
            copies_wait((int32_t)stages - 2);
        barrier();
        if (step < chunks)
            stage_fetch(type, &from, step, AT_RANGE(shared, filled * bytes / 4, bytes / 4));
        copies_commit();
        filled = filled + 1 == stages ? 0 : filled + 1;
        if (step + 1 < stages)
            continue;
        if (stages == 1)
            copies_wait(0), barrier();
        const uint32_t chunk = step + 1 - stages;
        few_octets(type, AT_RANGE(staged, now * bytes, bytes), args->blocks - chunk * stage_blocks(type), upper, lower, here,
                   acc);
        now = now + 1 == stages ? 0 : now + 1;
    }
    barrier();
    few_finish(args, group, (uint64_t)block_index() * QUANT_FEW_ROWS, (float *)(void *)shared, acc);
}

#define QUANT_FORMAT(name, type)                                                                                               \
    KERNEL_RESIDENT(quant_few_##name, quant_few_args, QUANT_THREADS, 2)                                                        \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED_DYNAMIC(uint8_t, staged); /* the same, by bytes */                                                              \
        few_run(type, &args, shared, staged);                                                                                  \
    }
QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
