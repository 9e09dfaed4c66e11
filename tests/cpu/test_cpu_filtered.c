/* Products that are tested while the next ones are computed: the same products and candidates as one after the other.
 */
#include "support/check.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/isa/isa.h"
#include "support/data/random.h"

enum { PADDED_MAX = 1088, GROUPS = GROUPS_MAX + 3, GROUP_PRODUCTS = UNIT_ROWS * GROUP };

typedef struct meeting {
    int8_t rows[UNIT_ROWS * PADDED_MAX];
    int8_t queries[GROUPS * GROUP * PADDED_MAX];
    int8_t *packed;
    float scales[UNIT_ROWS], residuals[UNIT_ROWS], norms[UNIT_ROWS];
    screen_limits limits[GROUPS];
    strip_bounds runs;
} meeting;

static float between(test_random *random, float low, float high)
{
    return low + (high - low) * (random_uniform(random) * 0.5f + 0.5f);
}

/* Limits that some of the runs pass and some do not: h is near the largest product of a run. */
static void meet(meeting *m, const instruction_set *set, const screen_products *p, int32_t padded)
{
    test_random random = {(uint64_t)padded};
    for (int32_t i = 0; i < UNIT_ROWS * padded; i++)
        m->rows[i] = (int8_t)((int32_t)random_below(&random, 255) - 127);
    for (int32_t i = 0; i < GROUPS * GROUP * padded; i++)
        m->queries[i] = (int8_t)((int32_t)random_below(&random, 255) - 127);
    m->packed = aligned_alloc(64, (size_t)(GROUPS * packed_group_bytes(p, padded)));
    for (int32_t g = 0; g < GROUPS; g++)
        p->pack(m->queries + g * GROUP * padded, padded, m->packed + g * packed_group_bytes(p, padded));
    for (int32_t r = 0; r < UNIT_ROWS; r++) {
        m->scales[r] = between(&random, 0.9f, 1.0f);
        m->residuals[r] = between(&random, 0.0f, 1.0f);
        m->norms[r] = between(&random, 0.5f, 1.5f);
    }
    for (int32_t g = 0; g < GROUPS; g++) {
        for (int32_t q = 0; q < GROUP; q++) {
            m->limits[g].a[q] = between(&random, 0.0f, 1.0f);
            m->limits[g].b_above[q] = q % 2 ? between(&random, 0.0f, 1.0f) : 0.0f;
            m->limits[g].b_below[q] = q % 2 ? 0.0f : between(&random, -1.0f, 0.0f);
            m->limits[g].g[q] = between(&random, -1.0f, 0.0f);
            m->limits[g].h[q] = between(&random, 1.0f, 2.0f) * 73.0f * 73.0f * sqrtf((float)padded);
        }
    }
    const screen_rows rows = {m->scales, m->residuals, m->norms};
    set->bound_strips(&rows, UNIT_ROWS, &m->runs);
}

/* The calls that the test received, in the order of groups. */
typedef struct told {
    int32_t groups, row_count;
    int32_t products[GROUPS][GROUP_PRODUCTS];
    uint16_t candidates[GROUPS][SCREEN_STRIPS];
} told;

static void take_down(void *context, int32_t group, const int32_t *products, const uint16_t candidates[SCREEN_STRIPS])
{
    told *t = context;
    assert_int_equal(group, t->groups++);
    memcpy(t->products[group], products, (size_t)(t->row_count * GROUP) * sizeof *products);
    memcpy(t->candidates[group], candidates, (size_t)(t->row_count / SCREEN_STRIP) * sizeof *candidates);
}

/* Counts the queries that are candidates somewhere, and those that were tried. */
static void check(const meeting *m, const instruction_set *set, const screen_products *p, int32_t padded, int *candidates,
                  int *tried)
{
    static int32_t expected[GROUP_PRODUCTS], out[GROUPS_MAX * GROUP_PRODUCTS];
    static told found;
    for (int32_t count = SCREEN_STRIP; count <= UNIT_ROWS; count += SCREEN_STRIP) {
        for (int32_t groups = 1; groups <= GROUPS; groups++) {
            found.groups = 0;
            found.row_count = count;
            const filtered_groups job = {.packed = m->packed,
                                         .group_count = groups,
                                         .prepared = m->rows,
                                         .row_count = count,
                                         .padded = padded,
                                         .out = out,
                                         .bounds = &m->runs,
                                         .limits = m->limits,
                                         .ready = take_down,
                                         .context = &found};
            p->groups_filtered(&job);
            assert_int_equal(found.groups, groups);
            for (int32_t g = 0; g < groups; g++) {
                uint16_t by_turns[SCREEN_STRIPS];
                p->groups(m->packed + g * packed_group_bytes(p, padded), 1, m->rows, count, padded, expected);
                set->filter_strips(expected, &m->runs, count, &m->limits[g], by_turns);
                assert_memory_equal(found.products[g], expected, (size_t)(count * GROUP) * sizeof *expected);
                for (int32_t run = 0; run < count / SCREEN_STRIP; run++) {
                    assert_int_equal(found.candidates[g][run], by_turns[run]);
                    *candidates += __builtin_popcount(by_turns[run]);
                    *tried += GROUP;
                }
            }
        }
    }
}

static void products_tested_while_computing_equal_those_tested_afterwards(void **state)
{
    (void)state;
    static const int32_t sizes[] = {64, 128, 192, 512, PADDED_MAX};
    static meeting m;
    int ways = 0;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        const screen_products *p = (*set)->present() ? screen_products_choose(*set) : NULL;
        if (!p || !p->groups_filtered)
            continue;
        ways++;
        p->begin();
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            int candidates = 0, tried = 0;
            meet(&m, *set, p, sizes[i]);
            check(&m, *set, p, sizes[i], &candidates, &tried);
            free(m.packed);
            assert_true(candidates > tried / 50 && candidates < tried - tried / 50);
        }
        p->end();
    }
    if (ways == 0) {
        printf("SKIP: no instruction set of this machine tests products while it makes the next\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_tested_while_computing_equal_those_tested_afterwards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
