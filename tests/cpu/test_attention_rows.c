/* If one call of attention's loops processes several rows, each has the same bits as by itself with scalar code, for every
 * instruction set. That includes rows without a common key, such as tokens far apart with a window. Head sizes are whole
 * vectors of every set, and also half a vector of AVX-512 more.
 */
#include <string.h>

#include "cpu/attention/attention_loops.h"
#include "cpu/isa/isa.h"
#include "cpu/isa/scalar/scalar.h"
#include "support/check.h"
#include "support/data/random.h"

enum { ROWS = 7, HEAD_MAX = 96, ROUNDS = 60 };

static float keys[ATTENTION_CHUNK * HEAD_MAX], values[ATTENTION_CHUNK * HEAD_MAX], queries[ROWS][HEAD_MAX];
static uint16_t half_keys[ATTENTION_CHUNK * HEAD_MAX], half_values[ATTENTION_CHUNK * HEAD_MAX];

typedef struct head {
    int32_t size;
    bool half;
    bool capped; /* scores have a cap, and fall with the distance */
} head;

typedef struct outcome {
    float out[ROWS][HEAD_MAX], largest[ROWS], sums[ROWS];
} outcome;

/* Rows from `first` on. */
static void run(const attention_loops *loops, head h, const attention_range *seen, int first, int rows, outcome *to)
{
    static float p[ROWS * ATTENTION_CHUNK];
    static const float slopes[ROWS] = {0.0f, 0.01f, 0.5f, 0.25f, 0.125f, 0.0625f, 0.3f};
    static const int32_t positions[ROWS] = {0, 300, 17, 255, 8, 64, 100};
    float *outs[ROWS];
    const float *q[ROWS];
    for (int r = 0; r < rows; r++) {
        q[r] = queries[first + r];
        outs[r] = to->out[first + r];
    }
    const attention_tile tile = {.rows = rows,
                                 .head_size = h.size,
                                 .half = h.half,
                                 .scale = 0.2f,
                                 .cap = h.capped ? 1.5f : 0.0f,
                                 .q = q,
                                 .seen = seen + first,
                                 .slopes = h.capped ? slopes + first : NULL,
                                 .positions = positions + first,
                                 .keys = h.half ? (const void *)half_keys : keys,
                                 .values = h.half ? (const void *)half_values : values,
                                 .p = p,
                                 .out = outs,
                                 .largest = to->largest + first,
                                 .sums = to->sums + first};
    loops->scores(&tile);
    loops->values(&tile);
}

static bool same_row(const outcome *a, const outcome *b, int row, head h)
{
    return memcmp(a->out[row], b->out[row], (size_t)h.size * sizeof(float)) == 0 &&
           memcmp(&a->largest[row], &b->largest[row], sizeof(float)) == 0 &&
           memcmp(&a->sums[row], &b->sums[row], sizeof(float)) == 0;
}

static void check_set(const instruction_set *set, head h)
{
    test_random random = {17};
    for (int round = 0; round < ROUNDS; round++) {
        attention_range seen[ROWS];
        static outcome together, alone;
        for (int r = 0; r < ROWS; r++) {
            seen[r].first = (int32_t)random_below(&random, 240);
            seen[r].end = seen[r].first + 1 + (int32_t)random_below(&random, round % 2 ? 16 : (uint64_t)(256 - seen[r].first));
        }
        run(set->attention, h, seen, 0, ROWS, &together);
        for (int r = 0; r < ROWS; r++) {
            run(&attention_loops_scalar, h, seen, r, 1, &alone);
            if (!same_row(&together, &alone, r, h))
                fail_msg("%s, heads of %d%s, round %d: row %d has other bits than alone with scalar code", set->name, h.size,
                         h.half ? " of f16" : "", round, r);
        }
    }
}

static void rows_processed_together_have_the_bits_of_single_rows(void **state)
{
    (void)state;
    static const int32_t sizes[] = {32, 40, 64, 72, HEAD_MAX};
    test_random random = {5};
    int sets = 0;
    random_normals(&random, keys, ATTENTION_CHUNK * HEAD_MAX);
    random_normals(&random, values, ATTENTION_CHUNK * HEAD_MAX);
    random_normals(&random, queries[0], ROWS * HEAD_MAX);
    attention_loops_scalar.narrow_f16(half_keys, keys, ATTENTION_CHUNK * HEAD_MAX);
    attention_loops_scalar.narrow_f16(half_values, values, ATTENTION_CHUNK * HEAD_MAX);
    for (const instruction_set *const *set = instruction_sets; *set; set++)
        if ((*set)->present()) {
            for (size_t i = 0; i < 4 * sizeof sizes / sizeof *sizes; i++)
                check_set(*set, (head){.size = sizes[i / 4], .half = i % 2 != 0, .capped = i / 2 % 2 != 0});
            sets++;
        }
    assert_true(sets > 0);
}

/* Converts a cache of f16 to floats: every number of elements that consists of whole pieces, and writes nothing after them. */
static void f16_becomes_floats_with_every_set(void **state)
{
    (void)state;
    for (const instruction_set *const *set = instruction_sets; *set; set++)
        for (int64_t count = 4 * ATTENTION_LANES; (*set)->present() && count <= HEAD_MAX; count += ATTENTION_LANES) {
            float out[HEAD_MAX + 1], expected[HEAD_MAX + 1];
            for (int i = 0; i <= HEAD_MAX; i++)
                out[i] = expected[i] = -1.0f;
            (*set)->attention->widen(ATTENTION_F16, out, half_keys, count);
            attention_loops_scalar.widen(ATTENTION_F16, expected, half_keys, count);
            assert_memory_equal(out, expected, sizeof out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_processed_together_have_the_bits_of_single_rows),
                                       cmocka_unit_test(f16_becomes_floats_with_every_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
