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
                         uint32_t width, uint32_t thread, few_sums *first, few_sums *second)
{
    const int32_t at = (int32_t)(thread % 4);
    two_words b = {0, 0};
    if (thread < 4 * width)
        b = *(const two_words *)(codes + thread * 2);
    const uint32_t a0 = words_of(type, upper, p, 0, at), a1 = words_of(type, lower, p, 0, at);
    const uint32_t a2 = words_of(type, upper, p, 1, at), a3 = words_of(type, lower, p, 1, at);
    if (words_runs_of_16(type)) {
        few_mma_16(first->of, a0, a1, b.x);
        few_mma_16(second->of, a2, a3, b.y);
    } else {
        few_mma_32(first->of, a0, a1, a2, a3, b.x, b.y);
    }
}

#else

DEVICE void few_multiply(int32_t type, const uint8_t *upper, const uint8_t *lower, int32_t p, const uint32_t *codes,
                         uint32_t width, uint32_t thread, few_sums *first, few_sums *second)
{
    const uint32_t column = thread % 4 * 2 % width, next = column + (width > 1 ? 1 : 0);
    UNROLL
    for (int32_t at = 0; at < 4; at++) {
        const two_words b0 = *(const two_words *)(codes + column * 8 + at * 2);
        const two_words b1 = *(const two_words *)(codes + next * 8 + at * 2);
        const uint32_t a0 = words_of(type, upper, p, 0, at), a1 = words_of(type, lower, p, 0, at);
        const uint32_t a2 = words_of(type, upper, p, 1, at), a3 = words_of(type, lower, p, 1, at);
        few_sums *rest = words_runs_of_16(type) ? second : first;
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

#endif

/* The sums of the two columns' codes that a piece has beside it. */
DEVICE void few_take_sums(const uint32_t *sums, uint32_t thread, int32_t *first, int32_t *second)
{
    const two_words both = *(const two_words *)(sums + thread % 4 * 2);
    first[0] = (int16_t)both.x;
    first[1] = (int16_t)both.y;
    second[0] = (int16_t)(both.x >> 16);
    second[1] = (int16_t)(both.y >> 16);
}

/* The activations of one block of weights, in shared memory: 32 codes of a column are eight words. */
typedef struct few_columns {
    const uint32_t *codes, *sums;
    const float *factors;
    uint32_t width;
} few_columns;

/* J and M of a block. */
DEVICE void few_integers(int32_t type, const uint8_t *upper, const uint8_t *lower, few_columns columns, uint32_t thread,
                         few_sums *j, few_sums *m)
{
    const bool large = dot_pieces(type) > 1 && type != BLOCK_Q8_K, runs_of_16 = words_runs_of_16(type);
    const words_scales of_upper = words_scales_of(type, upper), of_lower = words_scales_of(type, lower);
    UNROLL
    for (int32_t p = 0; p < dot_pieces(type); p++) {
        few_sums first = {{0, 0, 0, 0}}, second = {{0, 0, 0, 0}};
        few_multiply(type, upper, lower, p, columns.codes + (uint32_t)p * columns.width * 8, columns.width, thread, &first,
                     &second);
        int32_t sum_first[2] = {0, 0}, sum_second[2] = {0, 0};
        if (dot_has_min(type))
            few_take_sums(columns.sums + p * QUANT_FEW_COLUMNS, thread, sum_first, sum_second);
        const int32_t run = runs_of_16 ? 2 * p : p;
        UNROLL
        for (int32_t i = 0; i < 4; i++) {
            const words_scales *s = i < 2 ? &of_upper : &of_lower;
            if (!large) {
                j->of[i] += first.of[i];
                m->of[i] += sum_first[i % 2] + sum_second[i % 2];
            } else if (runs_of_16) {
                j->of[i] += words_byte(s->scales, run) * first.of[i] + words_byte(s->scales, run + 1) * second.of[i];
                m->of[i] += words_byte(s->mins, run) * sum_first[i % 2] + words_byte(s->mins, run + 1) * sum_second[i % 2];
            } else {
                j->of[i] += words_byte(s->scales, run) * first.of[i];
                m->of[i] += words_byte(s->mins, run) * (sum_first[i % 2] + sum_second[i % 2]);
            }
        }
    }
}

DEVICE void few_block(int32_t type, const uint8_t *upper, const uint8_t *lower, few_columns columns, uint32_t thread,
                      float *acc)
{
    few_sums j = {{0, 0, 0, 0}}, m = {{0, 0, 0, 0}};
    const f32x2 factors = load_f32x2(columns.factors + thread % 4 * 2);
    few_integers(type, upper, lower, columns, thread, &j, &m);
    const dot_factors of_upper = words_factors(type, upper), of_lower = words_factors(type, lower);
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        acc[i] =
            dot_add(i < 2 ? of_upper : of_lower, i % 2 ? factors.y : factors.x, j.of[i], m.of[i], dot_has_min(type), acc[i]);
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
    for (uint32_t s = 4; s > 0; s /= 2)
        UNROLL
    for (uint32_t c = 0; c < s; c++)
        sum[c] = sum[c] + sum[c + s];
    const uint32_t place = group * QUANT_FEW_COLUMNS + t / QUANT_FEW_ROWS;
    const uint32_t column = args->source ? args->source[place] : place;
    const uint64_t row = first + t % QUANT_FEW_ROWS;
    if (column < args->columns && row < args->rows)
        args->y[column * args->rows + row] = sum[0];
}

/* Block number `block` of a stage. */
DEVICE void few_staged(int32_t type, const uint8_t *stage, uint32_t block, uint32_t upper, uint32_t lower, uint32_t width,
                       uint32_t thread, float *acc)
{
    const uint32_t bytes = (uint32_t)block_bytes(type), parts = (uint32_t)dot_pieces(type), at = block * bytes;
    const uint32_t words = parts * width * 8, sums = dot_has_min(type) ? parts * QUANT_FEW_COLUMNS : 0;
    few_columns columns;
    columns.codes = (const uint32_t *)(const void *)AT_RANGE(stage, stage_codes_at(type) + block * words * 4, words * 4);
    columns.sums = (const uint32_t *)(const void *)AT_RANGE(stage, stage_sums_at(type) + block * sums * 4, sums * 4);
    columns.factors = (const float *)(const void *)AT_RANGE(stage, stage_factors_at(type) + block * QUANT_FEW_COLUMNS * 4,
                                                            QUANT_FEW_COLUMNS * 4);
    columns.width = width;
    few_block(type, AT_RANGE(stage, at + upper, bytes), AT_RANGE(stage, at + lower, bytes), columns, thread, acc);
}

/* Octets of a stage; of the last, those blocks that are there. */
DEVICE void few_octets(int32_t type, const uint8_t *stage, uint32_t blocks, uint32_t upper, uint32_t lower, uint32_t width,
                       float *acc)
{
    const uint32_t team = thread_index() / QUANT_TEAM, thread = thread_index() % QUANT_TEAM;
    if (blocks >= stage_blocks(type)) {
        UNROLL
        for (uint32_t o = 0; o < stage_octets(type); o++)
            few_staged(type, stage, o * 8 + team, upper, lower, width, thread, acc);
        return;
    }
    UNROLL_BY(1)
    for (uint32_t block = team; block < blocks; block += 8)
        few_staged(type, stage, block, upper, lower, width, thread, acc);
}

DEVICE void few_run(int32_t type, const quant_few_args *args, uint32_t *shared, const uint8_t *staged)
{
    const uint32_t thread = thread_index() % QUANT_TEAM, group = args->first_group + block_index_y();
    const uint32_t chunks = (args->blocks + stage_blocks(type) - 1) / stage_blocks(type), width = args->width;
    const uint32_t bytes = stage_bytes(type, width), stages = args->stages;
    const stage_source from = stage_source_of(type, args, group);
    const uint32_t upper = stage_row(type, args, group, thread / 4), lower = stage_row(type, args, group, thread / 4 + 8);
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    UNROLL_BY(1)
    for (uint32_t s = 0; s < stages; s++) {
        stage_fetch(type, &from, s, AT_RANGE(shared, s * bytes / 4, bytes / 4));
        copies_commit();
    }
    uint32_t now = 0;
    UNROLL_BY(1)
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        copies_wait((int32_t)stages - 1);
        barrier();
        few_octets(type, AT_RANGE(staged, now * bytes, bytes), args->blocks - chunk * stage_blocks(type), upper, lower, width,
                   acc);
        barrier();
        stage_fetch(type, &from, chunk + stages, AT_RANGE(shared, now * bytes / 4, bytes / 4));
        copies_commit();
        now = now + 1 == stages ? 0 : now + 1;
    }
    copies_wait(0);
    barrier();
    few_finish(args, group, (uint64_t)block_index() * QUANT_FEW_ROWS, (float *)(void *)shared, acc);
}

#define QUANT_FORMAT(name, type)                                                                                               \
    KERNEL(quant_few_##name, quant_few_args, QUANT_THREADS)                                                                    \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED_DYNAMIC(uint8_t, staged); /* the same, by bytes */                                                              \
        few_run(type, &args, shared, staged);                                                                                  \
    }
QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
