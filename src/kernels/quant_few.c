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
                         uint32_t thread, few_sums *first, few_sums *second)
{
    const int32_t at = (int32_t)(thread % 4);
    const two_words b = *(const two_words *)(codes + (uint64_t)thread * 2);
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
                         uint32_t thread, few_sums *first, few_sums *second)
{
    const uint32_t column = thread % 4 * 2;
    UNROLL
    for (int32_t at = 0; at < 4; at++) {
        const two_words b0 = *(const two_words *)(codes + column * 8 + at * 2);
        const two_words b1 = *(const two_words *)(codes + (column + 1) * 8 + at * 2);
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

/* What the activations of one block of weights are: 32 codes of eight columns are 64 words. */
typedef struct few_columns {
    const uint32_t *codes, *sums;
    const float *factors;
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
        few_multiply(type, upper, lower, p, columns.codes + p * 64, thread, &first, &second);
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

DEVICE void few_run(int32_t type, const quant_few_args *args, uint32_t *stages, const uint8_t *staged)
{
    const uint32_t team = thread_index() / QUANT_TEAM, thread = thread_index() % QUANT_TEAM;
    const uint32_t group = args->first_group + block_index_y();
    const uint64_t first = (uint64_t)block_index() * QUANT_FEW_ROWS;
    const uint32_t octets = stage_octets(type), pieces = args->blocks_kept * (uint32_t)dot_pieces(type);
    const uint64_t before = (uint64_t)group * pieces;
    const uint32_t chunks = (args->blocks + octets * 8 - 1) / (octets * 8), bytes = (uint32_t)block_bytes(type);
    stage_rows rows;
    rows.weights = args->weights + (args->first_rows ? args->first_rows[group] : 0) * args->weights_stride;
    rows.stride = args->weights_stride;
    rows.first = first;
    rows.last = args->rows - 1;
    rows.row_bytes = args->blocks * bytes;
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    const uint32_t upper = stage_row(type, &rows, thread / 4), lower = stage_row(type, &rows, thread / 4 + 8);
    UNROLL
    for (uint32_t s = 0; s < stage_count(type); s++)
        stage_fetch(type, &rows, s, stages, s);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        copies_wait((int32_t)stage_count(type) - 1);
        barrier();
        const uint32_t stage = chunk % stage_count(type) * stage_bytes(type);
        UNROLL_BY(2)
        for (uint32_t o = 0; o < octets; o++) {
            const uint32_t block = (chunk * octets + o) * 8 + team, at = stage + (o * 8 + team) * bytes;
            if (block >= args->blocks)
                break;
            few_columns columns;
            columns.codes = args->codes + (before + (uint64_t)block * (uint32_t)dot_pieces(type)) * 64;
            columns.sums = args->sums + (before + (uint64_t)block * (uint32_t)dot_pieces(type)) * QUANT_FEW_COLUMNS;
            columns.factors = args->factors + ((uint64_t)group * args->blocks_kept + block) * QUANT_FEW_COLUMNS;
            few_block(type, AT_RANGE(staged, at + upper, bytes), AT_RANGE(staged, at + lower, bytes), columns, thread, acc);
        }
        barrier();
        stage_fetch(type, &rows, chunk + stage_count(type), stages, chunk % stage_count(type));
    }
    copies_wait(0);
    barrier();
    few_finish(args, group, first, (float *)stages, acc);
}

#define QUANT_FORMAT(name, type)                                                                                               \
    KERNEL(quant_few_##name, quant_few_args, QUANT_THREADS)                                                                    \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, stages);                                                                                      \
        SHARED_DYNAMIC(uint8_t, staged); /* the same, by bytes */                                                              \
        few_run(type, &args, stages, staged);                                                                                  \
    }
QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
