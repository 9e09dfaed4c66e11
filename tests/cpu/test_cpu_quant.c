/* Quantized matrices on every instruction set of this machine: rows come back from their order in memory byte for byte, and
 * decode and multiply to the scalar set's bits, for any shape and for extreme codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arithmetic/blocks/dot.h"
#include "cpu/quant/layout.h"
#include "cpu/quant/quant.h"
#include "support/data/random.h"

static const int32_t types[] = {BLOCK_Q4_0,   BLOCK_Q4_1,   BLOCK_Q5_0,  BLOCK_Q5_1, BLOCK_Q8_0, BLOCK_Q8_1,
                                BLOCK_Q2_K,   BLOCK_Q3_K,   BLOCK_Q4_K,  BLOCK_Q5_K, BLOCK_Q6_K, BLOCK_Q8_K,
                                BLOCK_IQ4_NL, BLOCK_IQ4_XS, BLOCK_MXFP4, BLOCK_F32,  BLOCK_F16,  BLOCK_BF16};
enum { TYPES = sizeof types / sizeof *types };

/* One of the ways of each instruction set that this machine has. */
typedef struct way {
    const instruction_set *isa;
    const quant_set *set;
} way;

enum { WAYS_MAX = 16 };

static int32_t find_ways(way ways[WAYS_MAX])
{
    int32_t count = 0;
    for (const instruction_set *const *isa = instruction_sets; *isa; isa++)
        for (const quant_set *set = (*isa)->quants; set->name && (*isa)->present(); set++)
            if (!set->present || set->present())
                ways[count++] = (way){*isa, set};
    assert_true(count > 0 && count <= WAYS_MAX);
    return count;
}

static way scalar(void)
{
    way ways[WAYS_MAX];
    return ways[find_ways(ways) - 1]; /* the last in the table */
}

/* Blocks of random bytes, except that their factors are f16 numbers between 2^-9 and 2, of either sign. In every third row all
 * codes are extreme. */
static char *make_blocks(uint64_t seed, int32_t type, int64_t rows, int64_t blocks)
{
    test_random random = {seed};
    const int64_t bytes = block_bytes(type), count = rows * blocks;
    char *made = malloc((size_t)(count * bytes) + 1);
    for (int64_t i = 0; i < count * bytes; i++)
        made[i] = (char)(i / (blocks * bytes) % 3 == 1 ? 0xff : i / (blocks * bytes) % 3 == 2 ? 0x80 : random_bits(&random));
    for (int64_t b = 0; b < count; b++) {
        char *block = made + b * bytes;
        for (int32_t h = 0; h < halves_before(type) + halves_after(type) - (type == BLOCK_IQ4_XS); h++) { /* a half of scales */
            const uint16_t half = (uint16_t)((random_bits(&random) & 0x9fff) | 0x2000);
            memcpy(block + half_offset(type, h), &half, sizeof half);
        }
        if (type == BLOCK_MXFP4)
            *block = (char)(110 + random_bits(&random) % 24);
        const float d = 0.25f + (float)(random_bits(&random) % 100) / 64.0f;
        if (type == BLOCK_Q8_K || type == BLOCK_F32)
            memcpy(block, &d, sizeof d);
        const uint16_t plain = (uint16_t)((random_bits(&random) & 0x9fff) | 0x2000);
        if (type == BLOCK_F16 || type == BLOCK_BF16)
            memcpy(block, &plain, sizeof plain);
    }
    return made;
}

static char *arranged(const quant_set *set, int32_t type, const char *blocks, int64_t rows, int64_t row_blocks)
{
    const int64_t row_bytes = row_blocks * block_bytes(type);
    char *made = malloc((size_t)(rows * row_bytes) + 1);
    memcpy(made, blocks, (size_t)(rows * row_bytes));
    for (int64_t r = 0; r < rows; r++)
        set->coders[type].arrange(made + r * row_bytes, row_blocks);
    return made;
}

static void rows_are_read_back_and_decode_alike(void **state)
{
    (void)state;
    way ways[WAYS_MAX];
    const int32_t count = find_ways(ways);
    for (int32_t t = 0; t < TYPES; t++)
        for (int64_t blocks = 1; blocks < 27; blocks += blocks < 10 ? 1 : 8) {
            const size_t bytes = (size_t)(blocks * block_bytes(types[t])), floats = (size_t)(blocks * block_elements(types[t]));
            char *plain = make_blocks(5, types[t], 1, blocks), *expected = arranged(scalar().set, types[t], plain, 1, blocks);
            char *back = malloc(bytes);
            float *a = malloc(floats * sizeof *a), *b = malloc(floats * sizeof *b);
            scalar().set->coders[types[t]].decode(expected, a, blocks);
            if (blocks >= BLOCK_GROUP && block_elements(types[t]) > 1)
                assert_true(memcmp(plain, expected, bytes) != 0);
            for (int32_t i = 0; i < count; i++) {
                const quant_set *set = ways[i].set;
                char *row = arranged(set, types[t], plain, 1, blocks);
                assert_memory_equal(row, expected, bytes);
                set->coders[types[t]].restore(row, back, blocks);
                assert_memory_equal(back, plain, bytes);
                set->coders[types[t]].decode(row, b, blocks);
                assert_memory_equal(a, b, floats * sizeof *a);
                free(row);
            }
            free(b);
            free(a);
            free(back);
            free(expected);
            free(plain);
        }
}

typedef struct shape {
    int64_t rows, columns, blocks, experts;
} shape;

static void multiply(way how, int32_t type, const shape *s, const char *weights, const float *x, float *y)
{
    cpu_device cpu = {.isa = how.isa};
    const int64_t cols = s->blocks * block_elements(type);
    int64_t refused = 0, *ids = malloc((size_t)s->columns * sizeof *ids);
    const buffer w = {.data = (void *)(uintptr_t)weights}, from = {.data = (void *)(uintptr_t)x}, to = {.data = y};
    for (int64_t c = 0; c < s->columns; c++)
        ids[c] = s->experts > 1 ? (c * 7 + c / 3) % s->experts : 0;
    const quant_product_job job = {.type = type,
                                   .weights = &w,
                                   .rows = s->rows,
                                   .cols = cols,
                                   .x = &from,
                                   .columns = s->columns,
                                   .ids = s->experts > 1 ? ids : NULL,
                                   .id_bytes = sizeof *ids,
                                   .experts = s->experts,
                                   .y = &to,
                                   .refused = &refused};
    assert_int_equal(pool_create(NULL, 2, &cpu.pool), WW_OK);
    assert_int_equal(quant_product_with(&cpu, how.set, &job), WW_OK);
    assert_int_equal(refused, -1);
    pool_destroy(cpu.pool);
    free(ids);
}

static void check_shape(int32_t type, const shape *s)
{
    const int64_t cols = s->blocks * block_elements(type), results = s->rows * s->columns;
    const int64_t rows = s->rows * (s->experts > 1 ? s->experts : 1);
    char *plain = make_blocks((uint64_t)(s->rows + s->blocks), type, rows, s->blocks);
    char *weights = arranged(scalar().set, type, plain, rows, s->blocks);
    float *x = malloc((size_t)(s->columns * cols) * sizeof *x), *expected = malloc((size_t)results * sizeof *expected);
    float *y = malloc((size_t)results * sizeof *y);
    test_random random = {9};
    random_normals(&random, x, s->columns * cols);
    for (int64_t i = 0; i < s->columns * cols; i++)
        if (i / cols % 3 > 0) /* codes that are all at an end */
            x[i] = i / cols % 3 == 1 ? 1.0f : i % 2 ? 1.0f : -1.0f;
    multiply(scalar(), type, s, weights, x, expected);
    way ways[WAYS_MAX];
    const int32_t count = find_ways(ways);
    for (int32_t w = 0; w + 1 < count; w++) { /* the last is the scalar one */
        memset(y, 0x7f, (size_t)results * sizeof *y);
        multiply(ways[w], type, s, weights, x, y);
        for (int64_t i = 0; i < results; i++)
            if (memcmp(&y[i], &expected[i], sizeof *y) != 0)
                fail_msg("%s, type %d, %d rows, %d columns, %d blocks: column %d, row %d is %a, by scalar %a",
                         ways[w].set->name, type, (int)s->rows, (int)s->columns, (int)s->blocks, (int)(i / s->rows),
                         (int)(i % s->rows), (double)y[i], (double)expected[i]);
    }
    free(y);
    free(expected);
    free(x);
    free(weights);
    free(plain);
}

static void products_of_any_shape_have_the_scalar_bits(void **state)
{
    (void)state;
    static const shape shapes[] = {{1, 1, 1, 1},  {3, 1, 9, 1},   {65, 2, 8, 1},   {17, 7, 3, 1},  {5, 8, 16, 1},
                                   {31, 9, 5, 1}, {66, 16, 2, 1}, {16, 17, 11, 1}, {33, 40, 8, 1}, {2, 150, 17, 1}};
    for (int32_t t = 0; t < TYPES; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            check_shape(types[t], &shapes[s]);
}

/* A long row, in which every accumulator has several blocks, and more columns than are processed together. */
static void long_rows_and_many_columns_too(void **state)
{
    (void)state;
    static const int32_t some[] = {BLOCK_Q4_0, BLOCK_Q5_1,   BLOCK_Q8_0,   BLOCK_Q4_K,
                                   BLOCK_Q6_K, BLOCK_IQ4_NL, BLOCK_IQ4_XS, BLOCK_MXFP4};
    for (size_t t = 0; t < sizeof some / sizeof *some; t++) {
        const shape s = {18, 140, block_elements(some[t]) == BLOCK32_ELEMENTS ? 77 : 21, 1};
        check_shape(some[t], &s);
    }
}

static void experts_take_columns_in_any_order(void **state)
{
    (void)state;
    static const shape shapes[] = {{7, 5, 4, 3}, {20, 70, 9, 4}, {3, 40, 1, 31}};
    static const int32_t some[] = {BLOCK_Q4_1, BLOCK_Q8_0, BLOCK_Q2_K, BLOCK_Q6_K, BLOCK_F16, BLOCK_IQ4_XS, BLOCK_MXFP4};
    for (size_t t = 0; t < sizeof some / sizeof *some; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            check_shape(some[t], &shapes[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_back_and_decode_alike),
        cmocka_unit_test(products_of_any_shape_have_the_scalar_bits),
        cmocka_unit_test(long_rows_and_many_columns_too),
        cmocka_unit_test(experts_take_columns_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
