/* Products together with neighbouring operations of a model, a norm or a gate before and an addition after: the bits of
 * separate calls, on every device and in every way; and refused arguments.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/tensor_rows.h>

#include "arithmetic/blocks/blocks.h"
#include "arithmetic/canon.h"
#include "device/backend.h"
#include "gpu/quant/quant_plan.h"
#include "kernels/quant/quant.h"
#include "support/calls/quant.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

typedef struct fused_case {
    ww_quant_type type;
    int64_t rows, columns, cols;
    int64_t apart; /* columns of x are as long as this, at least cols */
} fused_case;

/* Columns `first` .. of a matrix. */
static ww_tensor part_of(const ww_tensor *x, int64_t first, int64_t count)
{
    ww_tensor part = *x;
    part.layout.shape[1] = count;
    part.layout.offset = first;
    return part;
}

typedef struct fused_tensors {
    ww_quant *matrix;
    ww_tensor both, x, up, weight, sum; /* x and up are parts of `both` */
} fused_tensors;

static fused_tensors make_tensors(ww_device *device, const fused_case *c)
{
    float *w = quant_normals(1, c->rows * c->cols), *both = quant_normals(2, c->columns * 2 * c->apart);
    float *weight = quant_normals(3, c->cols), *sum = quant_normals(4, c->columns * c->rows);
    fused_tensors t = {0};
    CHECK_OK(ww_quant_from_f32(device, c->type, w, c->rows, c->cols, 0, &t.matrix));
    t.both = quant_tensor(device, both, c->columns, 2 * c->apart);
    t.x = part_of(&t.both, 0, c->cols);
    t.up = part_of(&t.both, c->apart, c->cols);
    CHECK_OK(ww_tensor_from_host(device, WW_F32, 1, &c->cols, weight, &t.weight));
    t.sum = quant_tensor(device, sum, c->columns, c->rows);
    free(sum);
    free(weight);
    free(both);
    free(w);
    return t;
}

static void free_tensors(fused_tensors *t)
{
    ww_tensor_release(&t->sum);
    ww_tensor_release(&t->weight);
    ww_tensor_release(&t->both);
    ww_quant_destroy(t->matrix);
}

static void compare(const char *what, const fused_case *c, const ww_tensor *expected, const ww_tensor *found)
{
    const size_t count = (size_t)(c->columns * c->rows);
    float *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
    CHECK_OK(ww_tensor_to_host(expected, a));
    CHECK_OK(ww_tensor_to_host(found, b));
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s, %s, %d x %d by %d: result %d is %a, one call after the other %a", what, ww_quant_name(c->type),
                     (int)c->rows, (int)c->cols, (int)c->columns, (int)i, (double)b[i], (double)a[i]);
    free(b);
    free(a);
}

/* Computes the results with separate calls. */
static ww_tensor one_by_one(const fused_tensors *t, const ww_quant_product *asked)
{
    ww_quant_product plain = ww_quant_product_default();
    ww_tensor made = {0}, out = {0};
    plain.queued = 1;
    if (asked->norm_weight)
        CHECK_OK(ww_tensor_rms_norm(&t->x, &t->weight, asked->norm_eps, &made));
    if (asked->up) {
        CHECK_OK(ww_tensor_unary(WW_SILU, &t->x, &made));
        CHECK_OK(ww_tensor_binary(WW_MUL, &made, &t->up, &made));
    }
    CHECK_OK(ww_quant_multiply(t->matrix, made.storage ? &made : &t->x, &plain, &out));
    if (asked->accumulate)
        CHECK_OK(ww_tensor_binary(WW_ADD, &t->sum, &out, &out));
    ww_tensor_release(&made);
    return out;
}

static void check_case(ww_device *device, const fused_case *c)
{
    static const char *const names[] = {"plain", "a norm", "a gate"};
    fused_tensors t = make_tensors(device, c);
    for (int input = 0; input < 3; input++)
        for (int adds = 0; adds < 2; adds++) {
            ww_quant_product asked = ww_quant_product_default();
            ww_tensor found = {0};
            asked.queued = 1;
            asked.norm_weight = input == 1 ? &t.weight : NULL;
            asked.norm_eps = 1e-5;
            asked.up = input == 2 ? &t.up : NULL;
            asked.accumulate = adds;
            pretend_gemv_one(device, false);
            ww_tensor expected = one_by_one(&t, &asked);
            pretend_gemv_one(device, true);
            if (adds) {
                found.layout = t.sum.layout;
                CHECK_OK(ww_tensor_affine(&t.sum, 1.0, 0.0, &found));
            }
            CHECK_OK(ww_quant_multiply(t.matrix, &t.x, &asked, &found));
            compare(names[input], c, &expected, &found);
            ww_tensor_release(&found);
            ww_tensor_release(&expected);
        }
    free_tensors(&t);
}

/* Formats with blocks of 32 and of 256, rotated ones and codebooks; rows that several thread blocks share; one column, a few,
 * and enough for tiles; columns of several chunks of a norm. */
static void products_with_their_neighbours_have_the_bits_of_calls_one_by_one(void **state)
{
    static const fused_case cases[] = {
        {WW_QUANT_Q4_K, 40, 1, 512, 512},   {WW_QUANT_Q8_0, 24, 1, 96, 96},     {WW_QUANT_Q4_0, 33, 1, 320, 352},
        {WW_QUANT_Q6_K, 16, 1, 2304, 2304}, {WW_QUANT_Q4_1, 700, 1, 64, 64},    {WW_QUANT_Q8_0, 20, 5, 288, 300},
        {WW_QUANT_Q5_K, 20, 9, 256, 256},   {WW_QUANT_IQ4_NL, 18, 1, 160, 160}, {WW_QUANT_Q8_0, 17, 2, 12320, 12320},
        {WW_QUANT_Q8_0, 16, 1, 5120, 5120}, {WW_QUANT_Q4_0, 16, 34, 64, 64},    {WW_QUANT_F16, 16, 2, 64, 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(*state, &cases[i]);
}

/* Thread blocks that stay and process one set of sixteen rows after the other, as on chips with a copy engine. Every format;
 * rows that start at any alignment; columns shorter than a stage and much longer; a last set that is not full. */
static void thread_blocks_that_stay_have_the_same_bits(void **state)
{
    static const fused_case cases[] = {
        {WW_QUANT_Q4_0, 330, 1, 96, 96},    {WW_QUANT_Q4_1, 700, 1, 64, 64},     {WW_QUANT_Q5_0, 40, 1, 2080, 2080},
        {WW_QUANT_Q5_1, 40, 1, 320, 320},   {WW_QUANT_Q8_0, 150, 1, 576, 576},   {WW_QUANT_Q2_K, 33, 1, 512, 512},
        {WW_QUANT_Q3_K, 33, 1, 768, 768},   {WW_QUANT_Q4_K, 150, 1, 2304, 2304}, {WW_QUANT_Q5_K, 16, 1, 4096, 4096},
        {WW_QUANT_Q6_K, 70, 1, 512, 512},   {WW_QUANT_IQ4_NL, 18, 1, 160, 160},  {WW_QUANT_IQ4_XS, 18, 1, 256, 256},
        {WW_QUANT_Q4_K, 20, 1, 5120, 5120}, {WW_QUANT_Q8_0, 20, 1, 8224, 8224},
    };
    ww_device *device = *state;
    pretend_sm_90a(device, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(device, &cases[i]);
    pretend_nothing(device);
}

/* The product quantizes its column chunk by chunk, as on AMD's chips; compared with the product of a column that a separate
 * kernel quantizes. Every format; columns shorter than a chunk and much longer; rows that thread blocks share, and some that no
 * thread block has all of. */
static void columns_that_are_coded_as_they_are_multiplied_have_the_same_bits(void **state)
{
    static const fused_case cases[] = {
        {WW_QUANT_Q4_0, 330, 1, 96, 96},     {WW_QUANT_Q4_0, 33, 1, 4160, 4163}, {WW_QUANT_Q4_1, 700, 1, 64, 64},
        {WW_QUANT_Q5_0, 40, 1, 2080, 2080},  {WW_QUANT_Q5_1, 40, 1, 320, 321},   {WW_QUANT_Q8_0, 150, 1, 2624, 2626},
        {WW_QUANT_Q8_1, 20, 1, 1056, 1056},  {WW_QUANT_Q2_K, 33, 1, 512, 512},   {WW_QUANT_Q3_K, 33, 1, 768, 768},
        {WW_QUANT_Q4_K, 150, 1, 2304, 2309}, {WW_QUANT_Q5_K, 16, 1, 4096, 4096}, {WW_QUANT_Q6_K, 70, 1, 512, 515},
        {WW_QUANT_Q8_K, 18, 1, 2560, 2560},  {WW_QUANT_IQ4_NL, 18, 1, 160, 160}, {WW_QUANT_IQ4_XS, 18, 1, 256, 256},
        {WW_QUANT_MXFP4, 18, 1, 2112, 2112}, {WW_QUANT_Q4_K, 20, 1, 5120, 5120},
    };
    ww_device *device = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(device, &cases[i]);
    pretend_gemv_splits(device, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += 3)
        check_case(device, &cases[i]);
    pretend_gemv_splits(device, 0);
}

/* One column in every way there is for it: coded before by the caller, and several products behind each other of which none
 * needs what another writes, so that thread blocks that stay code a long column while the product in front runs. The bits are
 * the CPU's. */
static void check_one_column(ww_device *device, ww_device *cpu, ww_quant_type type, ww_quant_type coded_type)
{
    enum { ROWS = 40, COLS = 5120, TIMES = 3 };
    float *w = quant_normals(8, (int64_t)ROWS * COLS), *x = quant_normals(9, COLS), expected[ROWS], found[ROWS];
    ww_device *const devices[] = {cpu, device};
    ww_quant_product how = ww_quant_product_default();
    how.queued = 1;
    for (int d = 0; d < 2; d++) {
        ww_quant *matrix = NULL, *coded = NULL;
        ww_tensor column = quant_tensor(devices[d], x, 1, COLS), outs[TIMES] = {{0}}, of_codes = {0};
        CHECK_OK(ww_quant_from_f32(devices[d], type, w, ROWS, COLS, 0, &matrix));
        CHECK_OK(ww_quant_from_tensor(coded_type, &column, &coded));
        for (int i = 0; i < TIMES; i++)
            CHECK_OK(ww_quant_multiply(matrix, &column, &how, &outs[i]));
        CHECK_OK(ww_quant_multiply_coded(matrix, coded, NULL, &of_codes));
        for (int i = 0; i <= TIMES; i++) {
            CHECK_OK(ww_tensor_to_host(i < TIMES ? &outs[i] : &of_codes, found));
            if (d == 0)
                memcpy(expected, found, sizeof found);
            assert_memory_equal(found, expected, sizeof found);
            ww_tensor_release(i < TIMES ? &outs[i] : &of_codes);
        }
        ww_tensor_release(&column);
        ww_quant_destroy(coded);
        ww_quant_destroy(matrix);
    }
    free(x);
    free(w);
}

static void one_column_has_the_same_bits_in_every_way(void **state)
{
    static const tuning_choice ways[] = {TUNING_AUTO, TUNING_ALWAYS, TUNING_NEVER};
    ww_device *device = *state, *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        pretend_sm_90a(device, ways[way] == TUNING_ALWAYS);
        pretend_gemv_one(device, ways[way] != TUNING_NEVER);
        check_one_column(device, cpu, WW_QUANT_Q4_0, WW_QUANT_Q8_1);
        check_one_column(device, cpu, WW_QUANT_Q4_K, WW_QUANT_Q8_K);
    }
    pretend_nothing(device);
    ww_device_close(cpu);
}

/* A value that cannot be encoded makes only its own column NaN, from any source. */
static void values_that_cannot_be_coded_make_their_column_nan(void **state)
{
    enum { N = 2, K = 64, ROWS = 16 };
    const fused_case c = {WW_QUANT_Q8_0, ROWS, N, K, K};
    fused_tensors t = make_tensors(*state, &c);
    float *x = quant_normals(5, N * K), *y = malloc(sizeof(float) * N * ROWS);
    x[3] = INFINITY;
    ww_tensor bad = quant_tensor(*state, x, N, K), out = {0};
    ww_quant_product asked = ww_quant_product_default();
    asked.queued = 1;
    asked.norm_weight = &t.weight;
    asked.norm_eps = 1e-5;
    CHECK_OK(ww_quant_multiply(t.matrix, &bad, &asked, &out));
    CHECK_OK(ww_tensor_to_host(&out, y));
    for (int i = 0; i < ROWS; i++)
        assert_true(isnan(y[i]) && isfinite(y[ROWS + i]));
    ww_tensor_release(&out);
    ww_tensor_release(&bad);
    free(y);
    free(x);
    free_tensors(&t);
}

/* ---- the edges of what can be coded -------------------------------------------------------------------------------------- */

/* A magnitude, the largest of its block: at the limit of what the column's codes can hold, or just beyond it. */
typedef struct edge_case {
    ww_quant_type type;
    uint32_t bits;
    bool coded; /* false: refused */
} edge_case;

enum { EDGE_ROWS = 20, EDGE_COLS = 4352 };

typedef struct edge_result {
    ww_status status;  /* of a product that waits, */
    char message[256]; /* names the block that is refused */
    float waited[EDGE_ROWS], queued[EDGE_ROWS];
} edge_result;

/* The element at `place` has the magnitude; the others of its block are smaller, and if it is tiny, they are, too. */
static void edge_column(const edge_case *c, int32_t place, bool negative, float *x)
{
    const float magnitude = canon_bits_float(c->bits);
    float *normals = quant_normals(7, EDGE_COLS);
    for (int i = 0; i < EDGE_COLS; i++)
        x[i] = magnitude < 1.0f ? 0.125f * magnitude * normals[i] : normals[i];
    x[place] = negative ? -magnitude : magnitude;
    free(normals);
}

/* The way in which a product of one column is computed. */
static quant_strategy strategy_of(ww_device *device, ww_quant_type type)
{
    const quant_product_job job = {
        .type = (int32_t)type, .rows = EDGE_ROWS, .cols = EDGE_COLS, .columns = 1, .x_type = BLOCK_F32};
    return quant_choose(gpu_of(device), &job);
}

static edge_result edge_multiply(ww_device *device, ww_quant_type type, const float *x)
{
    float *w = quant_normals(6, (int64_t)EDGE_ROWS * EDGE_COLS);
    ww_quant_product how = ww_quant_product_default();
    ww_quant *matrix = NULL;
    edge_result made = {0};
    for (int i = 0; i < EDGE_ROWS * EDGE_COLS; i++)
        w[i] *= 0x1p-8f; /* so that no result overflows */
    CHECK_OK(ww_quant_from_f32(device, type, w, EDGE_ROWS, EDGE_COLS, 0, &matrix));
    ww_tensor column = quant_tensor(device, x, 1, EDGE_COLS), waited = {0}, queued = {0};
    made.status = ww_quant_multiply(matrix, &column, &how, &waited);
    if (made.status == WW_OK)
        CHECK_OK(ww_tensor_to_host(&waited, made.waited));
    else
        snprintf(made.message, sizeof made.message, "%s", ww_error_message());
    how.queued = 1;
    CHECK_OK(ww_quant_multiply(matrix, &column, &how, &queued));
    CHECK_OK(ww_tensor_to_host(&queued, made.queued));
    ww_tensor_release(&queued);
    ww_tensor_release(&waited);
    ww_tensor_release(&column);
    ww_quant_destroy(matrix);
    free(w);
    return made;
}

static void check_edge(ww_device *device, ww_device *cpu, const edge_case *c, int32_t place, bool negative)
{
    static float x[EDGE_COLS];
    edge_column(c, place, negative, x);
    const edge_result expected = edge_multiply(cpu, c->type, x), found = edge_multiply(device, c->type, x);
    assert_int_equal(expected.status, c->coded ? WW_OK : WW_INVALID_ARGUMENT);
    assert_int_equal(found.status, expected.status);
    assert_string_equal(found.message, expected.message);
    for (int i = 0; i < EDGE_ROWS; i++)
        if (!c->coded)
            assert_true(isnan(found.queued[i]) && isnan(expected.queued[i]));
        else if (memcmp(&found.waited[i], &expected.waited[i], sizeof(float)) != 0 ||
                 memcmp(&found.queued[i], &expected.waited[i], sizeof(float)) != 0 || !isfinite(found.waited[i]))
            fail_msg("%s, a magnitude of 0x%08x at %d: result %d is %a and %a, the CPU's %a", ww_quant_name(c->type),
                     (unsigned)c->bits, (int)place, i, (double)found.waited[i], (double)found.queued[i],
                     (double)expected.waited[i]);
}

/* From 65520 * 127 on, the factor of a block of 32 does not fit in f16; blocks of 256 have an f32 factor, and codes from 2^-120
 * on. A column on either side of such a limit, in its first chunk or at its end, is encoded or refused as on the CPU: by the
 * product itself, in both forms, and by a separate kernel. */
static void columns_at_the_edges_of_their_codes_are_coded_or_refused_as_on_the_cpu(void **state)
{
    static const edge_case cases[] = {
        {WW_QUANT_Q8_0, 0x4afdf01f, true},  {WW_QUANT_Q8_0, 0x4afdf020, false}, {WW_QUANT_Q4_1, 0x4afdf01f, true},
        {WW_QUANT_Q4_1, 0x4afdf020, false}, {WW_QUANT_Q4_0, 0x7f800000, false}, {WW_QUANT_Q6_K, 0x7f7fffff, true},
        {WW_QUANT_Q6_K, 0x7f800000, false}, {WW_QUANT_Q4_K, 0x03800000, true},  {WW_QUANT_Q4_K, 0x03800001, true},
    };
    static const int32_t places[] = {5, EDGE_COLS - 1};
    static const struct {
        bool sm_90a, gemv_one;
        quant_strategy strategy;
    } ways[] = {{false, true, QUANT_DIRECT}, {true, true, QUANT_STAY}, {false, false, QUANT_GEMV}};
    ww_device *device = *state, *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            pretend_sm_90a(device, ways[way].sm_90a);
            pretend_gemv_one(device, ways[way].gemv_one);
            if (strcmp(device->info.arch, "emulated") == 0)
                assert_int_equal(strategy_of(device, cases[i].type), ways[way].strategy);
            check_edge(device, cpu, &cases[i], places[(i + way) % 2], i % 2 == way % 2);
        }
    pretend_nothing(device);
    ww_device_close(cpu);
}

/* On chips with a copy engine, thread blocks stay for one column; for a long one that nothing precedes or follows, and at most
 * a tile of rows each, it is coded by a kernel of its own. */
static void a_long_column_by_itself_is_coded_once(void **state)
{
    ww_device *device = *state;
    if (strcmp(device->info.arch, "emulated") != 0)
        skip();
    const int64_t resident = (int64_t)QUANT_GEMV_RESIDENT * device->info.compute_units * QUANT_GEMV_ROWS;
    const struct {
        quant_product_job job;
        quant_strategy strategy;
    } cases[] = {
        {{.rows = resident, .cols = 14336}, QUANT_GEMV},
        {{.rows = resident + 1, .cols = 14336}, QUANT_STAY},
        {{.rows = resident, .cols = 8192}, QUANT_STAY},
        {{.rows = resident, .cols = 14336, .fusion = {.adds = true}}, QUANT_STAY},
        {{.rows = resident, .cols = 14336, .fusion = {.input = INPUT_GATED}}, QUANT_STAY},
    };
    pretend_sm_90a(device, true);
    pretend_gemv_one(device, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quant_product_job job = cases[i].job;
        job.type = WW_QUANT_Q4_0;
        job.columns = 1;
        assert_int_equal(quant_choose(gpu_of(device), &job), cases[i].strategy);
    }
    pretend_nothing(device);
}

static void refuse(const fused_tensors *t, const ww_quant_product *asked, ww_tensor *out, ww_status wanted, const char *words)
{
    assert_int_equal(ww_quant_multiply(t->matrix, &t->x, asked, out), wanted);
    if (!strstr(ww_error_message(), words))
        fail_msg("refused with '%s', not with '%s'", ww_error_message(), words);
}

static void unsuitable_arguments_are_refused(void **state)
{
    const fused_case c = {WW_QUANT_Q8_0, 16, 1, 64, 64};
    fused_tensors t = make_tensors(*state, &c);
    const int64_t one = 1, halves[2] = {1, 64};
    ww_quant_product asked = ww_quant_product_default();
    ww_tensor out = {0}, short_weight = {0}, half = {0};
    CHECK_OK(ww_tensor_empty(*state, WW_F32, 1, &one, &short_weight));
    CHECK_OK(ww_tensor_empty(*state, WW_F16, 2, halves, &half));
    asked.norm_weight = &t.weight;
    asked.up = &t.up;
    refuse(&t, &asked, &out, WW_INVALID_ARGUMENT, "both norm_weight and up");
    asked.up = NULL;
    asked.norm_weight = &short_weight;
    refuse(&t, &asked, &out, WW_DIMENSION_MISMATCH, "it must be [64]");
    asked.norm_weight = NULL;
    asked.up = &t.weight;
    assert_int_not_equal(ww_quant_multiply(t.matrix, &t.x, &asked, &out), WW_OK);
    asked.up = NULL;
    asked.accumulate = 1;
    refuse(&t, &asked, &out, WW_INVALID_ARGUMENT, "out is empty");
    ww_tensor wrong = t.x;
    refuse(&t, &asked, &wrong, WW_DIMENSION_MISMATCH, "with accumulate it must be [1, 16]");
    assert_int_equal(ww_quant_multiply(t.matrix, &half, &asked, &t.sum), WW_UNSUPPORTED);
    const int64_t experts[1] = {0};
    asked.experts = experts;
    asked.expert_rows = 16;
    refuse(&t, &asked, &t.sum, WW_INVALID_ARGUMENT, "not for experts");
    assert_null(out.storage);
    ww_tensor_release(&half);
    ww_tensor_release(&short_weight);
    free_tensors(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_with_their_neighbours_have_the_bits_of_calls_one_by_one),
        cmocka_unit_test(thread_blocks_that_stay_have_the_same_bits),
        cmocka_unit_test(columns_that_are_coded_as_they_are_multiplied_have_the_same_bits),
        cmocka_unit_test(one_column_has_the_same_bits_in_every_way),
        cmocka_unit_test(a_long_column_by_itself_is_coded_once),
        cmocka_unit_test(values_that_cannot_be_coded_make_their_column_nan),
        cmocka_unit_test(columns_at_the_edges_of_their_codes_are_coded_or_refused_as_on_the_cpu),
        cmocka_unit_test(unsuitable_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("fused products", tests);
}
