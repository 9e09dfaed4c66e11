/* Blocks of the reference, on every device: encoding gives the reference's bytes, or a smaller error if the format leaves a
 * choice; decoding gives its floats bit for bit; and every device gives the CPU's bytes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/blocks/blocks.h"
#include "arithmetic/blocks/encode.h"
#include "arithmetic/half.h"
#include "support/data/golden.h"
#include "support/data/random.h"
#include "support/devices.h"

static size_t blocks_size(ww_quant_type type, int64_t rows, int64_t cols)
{
    int64_t row_bytes;
    CHECK_OK(ww_quant_row_bytes(type, cols, &row_bytes));
    return (size_t)(rows * row_bytes);
}

static void *golden_blocks(const golden_type *t)
{
    char name[32];
    snprintf(name, sizeof name, "%s.blocks", t->name);
    return golden_read(name, blocks_size(t->type, GOLDEN_ROWS, GOLDEN_COLS));
}

static float *golden_floats(const golden_type *t)
{
    char name[32];
    snprintf(name, sizeof name, "%s.f32", t->name);
    return golden_read(name, (size_t)GOLDEN_ROWS * GOLDEN_COLS * sizeof(float));
}

static void *encode(ww_device *device, ww_quant_type type, const float *x, int64_t rows, int64_t cols)
{
    ww_quant *q;
    void *blocks = malloc(blocks_size(type, rows, cols));
    CHECK_OK(ww_quant_from_f32(device, type, x, rows, cols, 0, &q));
    CHECK_OK(ww_quant_read_blocks(q, 0, rows, blocks));
    ww_quant_destroy(q);
    return blocks;
}

static float *decode(ww_device *device, ww_quant_type type, const void *blocks, int64_t rows, int64_t cols)
{
    ww_quant *q;
    float *values = malloc((size_t)(rows * cols) * sizeof *values);
    CHECK_OK(ww_quant_load(device, type, blocks, blocks_size(type, rows, cols), rows, cols, &q));
    CHECK_OK(ww_quant_read_f32(q, 0, rows, values));
    ww_quant_destroy(q);
    return values;
}

static void decoding_gives_the_references_floats(void **state)
{
    int compared = 0;
    for (const golden_type *t = golden_types; t->name; t++) {
        void *blocks = golden_blocks(t);
        float *expected = golden_floats(t);
        assert_non_null(blocks);
        if (expected) {
            float *values = decode(*state, t->type, blocks, GOLDEN_ROWS, GOLDEN_COLS);
            if (memcmp(values, expected, (size_t)GOLDEN_ROWS * GOLDEN_COLS * sizeof *values) != 0)
                fail_msg("%s: decoded floats are not the reference's", t->name);
            free(values);
            compared++;
        }
        free(expected);
        free(blocks);
    }
    assert_int_equal(compared, 15);
}

static double squared_error(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum;
}

static void check_errors(ww_device *device, const golden_type *t, const float *x, const void *blocks)
{
    float *ours = decode(device, t->type, blocks, GOLDEN_ROWS, GOLDEN_COLS), *theirs = golden_floats(t);
    for (int64_t row = 0; row < GOLDEN_ROWS; row++) {
        const int64_t at = row * GOLDEN_COLS;
        const double mine = squared_error(ours + at, x + at, GOLDEN_COLS);
        const double reference = squared_error(theirs + at, x + at, GOLDEN_COLS);
        if (mine > reference)
            fail_msg("%s, row %d: squared error %g, the reference has %g", t->name, (int)row, mine, reference);
    }
    free(theirs);
    free(ours);
}

static void coding_gives_the_references_bytes_or_a_smaller_error(void **state)
{
    float *x = golden_read("input.f32", (size_t)GOLDEN_ROWS * GOLDEN_COLS * sizeof *x);
    for (const golden_type *t = golden_types; t->name; t++) {
        void *blocks = encode(*state, t->type, x, GOLDEN_ROWS, GOLDEN_COLS), *expected = golden_blocks(t);
        const bool free_to_choose =
            (t->type >= WW_QUANT_Q2_K && t->type <= WW_QUANT_Q6_K) || t->type == WW_QUANT_IQ4_NL || t->type == WW_QUANT_IQ4_XS;
        if (free_to_choose)
            check_errors(*state, t, x, blocks);
        else if (memcmp(blocks, expected, blocks_size(t->type, GOLDEN_ROWS, GOLDEN_COLS)) != 0)
            fail_msg("%s: coded bytes are not the reference's", t->name);
        free(expected);
        free(blocks);
    }
    free(x);
}

/* Rows of every kind: normal, constant of both signs, zeros, ramps, tiny, denormal, huge with small ones. */
static float *hard_rows(int64_t rows, int64_t cols)
{
    test_random random = {77};
    float *x = malloc((size_t)(rows * cols) * sizeof *x);
    random_normals(&random, x, rows * cols);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < cols; i++) {
            float *at = x + row * cols + i;
            switch (row % 12) {
            case 1:
                *at = -2.5f;
                break;
            case 2:
                *at = 0.3f;
                break;
            case 3:
                *at = i % 2 ? 0.0f : -0.0f;
                break;
            case 4:
                *at = (float)i - 200.0f;
                break;
            case 5:
                *at *= 1e-6f;
                break;
            case 6:
                *at *= 1e-42f;
                break;
            case 7:
                *at = i % 97 == 5 ? 3e4f : *at;
                break;
            case 8:
                *at = i % 64 < 32 ? 0.0f : *at;
                break;
            case 9:
                *at = fabsf(*at) + 5.0f;
                break;
            case 10:
                *at = -fabsf(*at) - 100.0f;
                break;
            case 11:
                *at = i % 2 ? 1.5f : -1.5f;
                break;
            default:
                break;
            }
        }
    return x;
}

static void every_device_codes_and_decodes_to_the_cpus_bits(void **state)
{
    enum { ROWS = 13, COLS = 768 };
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    float *x = hard_rows(ROWS, COLS);
    for (const golden_type *t = golden_types; t->name; t++) {
        void *here = encode(cpu, t->type, x, ROWS, COLS), *there = encode(*state, t->type, x, ROWS, COLS);
        const size_t size = blocks_size(t->type, ROWS, COLS);
        for (size_t i = 0; i < size; i++)
            if (((unsigned char *)here)[i] != ((unsigned char *)there)[i])
                fail_msg("%s: byte %zu of the blocks is not the CPU's", t->name, i);
        float *a = decode(cpu, t->type, here, ROWS, COLS), *b = decode(*state, t->type, here, ROWS, COLS);
        assert_memory_equal(a, b, (size_t)ROWS * COLS * sizeof *a);
        free(b);
        free(a);
        free(there);
        free(here);
    }
    free(x);
    ww_device_close(cpu);
}

/* Bytes that no encoder makes: any are decoded, to the same bits; NaN only has to be NaN. */
static void any_bytes_are_decoded_alike(void **state)
{
    enum { ROWS = 5, COLS = 512 };
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    test_random random = {78};
    for (const golden_type *t = golden_types; t->name; t++) {
        const size_t size = blocks_size(t->type, ROWS, COLS);
        unsigned char *blocks = malloc(size);
        for (size_t i = 0; i < size; i++)
            blocks[i] = (unsigned char)random_bits(&random);
        float *a = decode(cpu, t->type, blocks, ROWS, COLS), *b = decode(*state, t->type, blocks, ROWS, COLS);
        for (int64_t i = 0; i < ROWS * COLS; i++)
            if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
                fail_msg("%s: element %d is %a, on the CPU %a", t->name, (int)i, (double)b[i], (double)a[i]);
        free(b);
        free(a);
        free(blocks);
    }
    ww_device_close(cpu);
}

enum { REFUSED_ROWS = 9, REFUSED_COLS = 512 };

static void check_refused(ww_device *device, ww_quant_type type, float wrong)
{
    float *x = calloc((size_t)REFUSED_ROWS * REFUSED_COLS, sizeof *x);
    ww_quant *q = NULL;
    x[7 * REFUSED_COLS + 300] = x[8 * REFUSED_COLS] = wrong;
    if ((type == WW_QUANT_Q8_K || type == WW_QUANT_MXFP4) && isfinite(wrong)) { /* whose scales go as far as floats */
        CHECK_OK(ww_quant_from_f32(device, type, x, REFUSED_ROWS, REFUSED_COLS, 0, &q));
        ww_quant_destroy(q);
    } else {
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(device, type, x, REFUSED_ROWS, REFUSED_COLS, 0, &q));
        assert_null(q);
        assert_non_null(strstr(ww_error_message(), "row 7, columns "));
    }
    free(x);
}

static void values_that_a_block_cannot_hold_are_refused_with_their_place(void **state)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (const golden_type *t = golden_types; t->name; t++)
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
            if (t->type != WW_QUANT_F16 && t->type != WW_QUANT_BF16)
                check_refused(*state, t->type, wrong[w]);
}

static void halves_are_those_of_the_base(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float a = block_f32_from_f16(h), b = f32_from_f16((uint16_t)h);
        const float c = block_f32_from_bf16(h), d = f32_from_bf16((uint16_t)h);
        assert_memory_equal(&a, &b, sizeof a);
        assert_memory_equal(&c, &d, sizeof c);
    }
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 1021) {
        const float x = half_bits_f32((uint32_t)bits);
        assert_int_equal(block_f16_from_f32(x), f16_from_f32(x));
        assert_int_equal(block_bf16_from_f32(x), bf16_from_f32(x));
    }
}

/* A step of 509 covers every exponent and all endings of a significand; around halves and integers every float is tried. */
static void short_forms_give_the_bits_of_the_full_forms(void **state)
{
    const uint32_t most = canon_float_bits(127.5f);
    (void)state;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 509) {
        const float x = canon_bits_float(bits);
        assert_int_equal(canon_float_bits(block_by_127(x)), canon_float_bits(x / 127.0f));
        if (bits < most)
            assert_int_equal(block_round_away_quick(x), block_round_away(x));
    }
    for (int32_t half = -254; half <= 254; half++)
        for (int32_t ulps = -300; ulps <= 300; ulps++) {
            const float near = canon_bits_float((uint32_t)((int32_t)canon_float_bits((float)half * 0.5f) + ulps));
            if (fabsf(near) <= 127.49f)
                assert_int_equal(block_round_away_quick(near), block_round_away(near));
        }
}

int main(void)
{
    const struct CMUnitTest here[] = {cmocka_unit_test(halves_are_those_of_the_base),
                                      cmocka_unit_test(short_forms_give_the_bits_of_the_full_forms)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_gives_the_references_floats),
        cmocka_unit_test(coding_gives_the_references_bytes_or_a_smaller_error),
        cmocka_unit_test(every_device_codes_and_decodes_to_the_cpus_bits),
        cmocka_unit_test(any_bytes_are_decoded_alike),
        cmocka_unit_test(values_that_a_block_cannot_hold_are_refused_with_their_place),
    };
    return cmocka_run_group_tests_name("halves", here, NULL, NULL) + RUN_ON_EVERY_DEVICE("quant blocks", tests);
}
