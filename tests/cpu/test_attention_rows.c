/* Rows that one call of attention's loops takes together have the bits that each has alone, with every instruction set: also
 * rows that have no key in common, as tokens far from each other behind a window.
 */
#include <stdio.h>
#include <string.h>

#include "cpu/attention/attention_loops.h"
#include "cpu/isa/isa.h"
#include "support/check.h"
#include "support/data/random.h"

enum { ROWS = 7, SIZE = 40, ROUNDS = 200 };

static float keys[ATTENTION_CHUNK * SIZE], values[ATTENTION_CHUNK * SIZE], queries[ROWS][SIZE];

/* Rows from `first` on; what they leave goes to `out`. */
static void run(const attention_loops *loops, const attention_range *seen, int first, int rows, float out[ROWS][SIZE])
{
    static float p[ROWS * ATTENTION_CHUNK];
    float largest[ROWS], sums[ROWS], *outs[ROWS];
    const float *q[ROWS];
    for (int r = 0; r < rows; r++) {
        q[r] = queries[first + r];
        outs[r] = out[first + r];
    }
    const attention_tile tile = {.rows = rows,
                                 .head_size = SIZE,
                                 .scale = 0.2f,
                                 .q = q,
                                 .seen = seen + first,
                                 .keys = keys,
                                 .values = values,
                                 .p = p,
                                 .out = outs,
                                 .largest = largest,
                                 .sums = sums};
    loops->scores(&tile);
    loops->values(&tile);
}

static void check_set(const instruction_set *set)
{
    test_random random = {17};
    for (int round = 0; round < ROUNDS; round++) {
        attention_range seen[ROWS];
        float together[ROWS][SIZE], alone[ROWS][SIZE];
        for (int r = 0; r < ROWS; r++) {
            seen[r].first = (int32_t)random_below(&random, 240);
            seen[r].end = seen[r].first + 1 + (int32_t)random_below(&random, round % 2 ? 16 : (uint64_t)(256 - seen[r].first));
        }
        run(set->attention, seen, 0, ROWS, together);
        for (int r = 0; r < ROWS; r++) {
            run(set->attention, seen, r, 1, alone);
            if (memcmp(together[r], alone[r], sizeof alone[r]) != 0)
                fail_msg("%s, round %d: row %d has other bits than alone", set->name, round, r);
        }
    }
}

static void rows_have_the_same_bits_together_and_alone(void **state)
{
    (void)state;
    test_random random = {5};
    int sets = 0;
    random_normals(&random, keys, ATTENTION_CHUNK * SIZE);
    random_normals(&random, values, ATTENTION_CHUNK * SIZE);
    random_normals(&random, queries[0], ROWS * SIZE);
    for (const instruction_set *const *set = instruction_sets; *set; set++)
        if ((*set)->present()) {
            check_set(*set);
            sets++;
        }
    assert_true(sets > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_have_the_same_bits_together_and_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
