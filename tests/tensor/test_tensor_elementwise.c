/* Element-wise operations on every type and layout, against plain arithmetic, to the bit: casts, two and three operands, rows.
 * Functions of one element: test_tensor_functions.c. */
#include "support/elementwise.h"
#include "support/pretend/pretend.h"

/* ---- casts --------------------------------------------------------------------------------------------------------------- */

static void check_cast(ww_device *device, test_random *random, ww_dtype from, ww_dtype to, test_layout style)
{
    int64_t shape[3];
    ww_tensor out = {0};
    random_shape(random, 3, 500, shape);
    test_tensor x = test_tensor_make(device, random, from, 3, shape, style);
    CHECK_OK(ww_tensor_cast(&x.tensor, to, &out));
    check_result(ww_dtype_name(from), &out, to, &x, (int32_t)to, cast_expected);
    test_tensor_free(&x);
}

static void every_type_is_cast_to_every_type(void **state)
{
    test_random random = {11};
    for (int from = 0; from < TEST_TYPES; from++)
        for (int to = 0; to < TEST_TYPES; to++)
            for (int style = TEST_DENSE; style <= TEST_BROADCAST; style++)
                check_cast(*state, &random, (ww_dtype)from, (ww_dtype)to, (test_layout)style);
}

/* All values of the 16-bit and 8-bit types, dense: whole tiles, which GPUs take by chunks. */
static void every_small_float_is_cast_exactly(void **state)
{
    static const ww_dtype small[] = {WW_F16, WW_BF16, WW_F8E4M3};
    static const ww_dtype to[] = {WW_F32, WW_F16, WW_BF16, WW_F8E4M3, WW_I32};
    for (size_t s = 0; s < sizeof small / sizeof *small; s++) {
        const int64_t count = ww_dtype_bytes(small[s]) == 1 ? 8192 : 65536;
        uint16_t *all = malloc((size_t)count * sizeof *all);
        for (int64_t i = 0; i < count; i++) {
            if (count == 65536)
                all[i] = (uint16_t)i;
            else
                ((uint8_t *)all)[i] = (uint8_t)i;
        }
        test_tensor x = test_tensor_of(*state, small[s], 1, &count, all);
        for (size_t t = 0; t < sizeof to / sizeof *to; t++) {
            ww_tensor out = {0};
            CHECK_OK(ww_tensor_cast(&x.tensor, to[t], &out));
            check_result(ww_dtype_name(small[s]), &out, to[t], &x, (int32_t)to[t], cast_expected);
        }
        test_tensor_free(&x);
        free(all);
    }
}

/* ---- arithmetic ---------------------------------------------------------------------------------------------------------- */

/* By the definition. Large exponents are only tested with bases for which this ends soon. */
static uint64_t power(int64_t x, int64_t y)
{
    uint64_t result = 1;
    if (y < 0)
        return x == 1 ? 1 : x == -1 ? (y & 1 ? UINT64_MAX : 1) : 0;
    if (x == 0 || x == 1 || x == -1)
        return y == 0 ? 1 : x == -1 && !(y & 1) ? 1 : (uint64_t)x;
    if (x % 2 == 0 && y >= 64)
        return 0;
    uint64_t base = (uint64_t)x;
    for (; y > 0; y /= 2, base *= base)
        result *= y % 2 ? base : 1;
    return result;
}

static uint64_t binary_integer(ww_binary op, ww_dtype dtype, uint64_t a, uint64_t b)
{
    const int64_t x = dtype == WW_I64 ? (int64_t)a : (int64_t)number_of(dtype, a);
    const int64_t y = dtype == WW_I64 ? (int64_t)b : (int64_t)number_of(dtype, b);
    switch (op) {
    case WW_ADD:
        return wrapped(dtype, (uint64_t)x + (uint64_t)y);
    case WW_SUB:
        return wrapped(dtype, (uint64_t)x - (uint64_t)y);
    case WW_MUL:
        return wrapped(dtype, (uint64_t)x * (uint64_t)y);
    case WW_DIV:
        return wrapped(dtype, y == 0 ? 0 : y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y));
    case WW_REM:
        return wrapped(dtype, y == 0 ? (uint64_t)x : y == -1 ? 0 : (uint64_t)(x % y));
    case WW_MAXIMUM:
        return x > y ? a : b;
    case WW_MINIMUM:
        return x < y ? a : b;
    default:
        return wrapped(dtype, power(x, y));
    }
}

static double larger(double x, double y)
{
    if (isnan(x) || isnan(y))
        return NAN;
    return x > y || (x == y && !signbit(x)) ? x : y;
}

static uint64_t binary_expected(const test_tensor *xs, int32_t number, int64_t i)
{
    const ww_binary op = (ww_binary)number;
    const ww_dtype dtype = ww_storage_dtype(xs[0].tensor.storage);
    const uint64_t a = test_tensor_bits(&xs[0], i), b = test_tensor_bits(&xs[1], i);
    if (!is_float(dtype))
        return binary_integer(op, dtype, a, b);
    const double x = (double)number_of(dtype, a), y = (double)number_of(dtype, b);
    if (op == WW_MAXIMUM || op == WW_MINIMUM)
        return bits_nearest(dtype, op == WW_MAXIMUM ? larger(x, y) : -larger(-x, -y));
    if (op == WW_REM)
        return bits_nearest(dtype, fmod(x, y)); /* exact, and in no more bits than x and y have */
    if (op == WW_POW || op == WW_ATAN2) {
        const float f = (float)x, g = (float)y;
        const double wide = op == WW_POW ? canon_pow_f64(x, y) : canon_atan2_f64(x, y);
        return bits_nearest(dtype, dtype == WW_F64 ? wide : op == WW_POW ? canon_pow_f32(f, g) : canon_atan2_f32(f, g));
    }
    if (dtype == WW_F64)
        return bits_nearest(dtype, op == WW_ADD ? x + y : op == WW_SUB ? x - y : op == WW_MUL ? x * y : x / y);
    const float f = (float)x, g = (float)y;
    return bits_nearest(dtype, op == WW_ADD ? f + g : op == WW_SUB ? f - g : op == WW_MUL ? f * g : f / g);
}

static uint64_t cmp_expected(const test_tensor *xs, int32_t op, int64_t i)
{
    const ww_dtype dtype = ww_storage_dtype(xs[0].tensor.storage);
    const long double x = number_of(dtype, test_tensor_bits(&xs[0], i)), y = number_of(dtype, test_tensor_bits(&xs[1], i));
    const bool holds[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
    return holds[op];
}

/* Two or three tensors of one shape and random layouts. */
static void make_operands(ww_device *device, test_random *random, ww_dtype dtype, int32_t rank, const int64_t *shape,
                          bool dense, int32_t count, test_tensor *xs)
{
    for (int32_t i = 0; i < count; i++)
        xs[i] = test_tensor_make(device, random, dtype, rank, shape, dense ? TEST_DENSE : (test_layout)random_below(random, 3));
}

static void check_binary(ww_device *device, test_random *random, int number, bool compares, ww_dtype dtype, bool dense)
{
    const bool heavy = !compares && (number == WW_POW || number == WW_ATAN2);
    const bool large = dense && (dtype == WW_F32 || dtype == WW_BF16 || (dtype == WW_F16 && heavy) ||
                                 (dtype == WW_F8E4M3 && number == WW_SUB));
    const int32_t rank = large ? 1 : 1 + (int32_t)random_below(random, 5);
    int64_t shape[5];
    test_tensor xs[2];
    ww_tensor out = {0};
    random_shape(random, rank, 400, shape);
    if (large)
        shape[0] = tile_and_some(dtype);
    make_operands(device, random, dtype, rank, shape, dense, 2, xs);
    const ww_status status = compares ? ww_tensor_cmp((ww_cmp)number, &xs[0].tensor, &xs[1].tensor, &out)
                                      : ww_tensor_binary((ww_binary)number, &xs[0].tensor, &xs[1].tensor, &out);
    if (dtype == WW_I8 || (!compares && number == WW_ATAN2 && !is_float(dtype))) {
        assert_int_equal(status, WW_UNSUPPORTED);
    } else {
        CHECK_OK(status);
        check_result(compares ? ww_cmp_name((ww_cmp)number) : ww_binary_name((ww_binary)number), &out, compares ? WW_U8 : dtype,
                     xs, number, compares ? cmp_expected : binary_expected);
    }
    test_tensor_free(&xs[0]);
    test_tensor_free(&xs[1]);
}

static void binary_operations_match_their_definitions(void **state)
{
    test_random random = {13};
    for (int op = WW_ADD; op <= WW_ATAN2; op++)
        for (int type = 0; type < TEST_TYPES; type++)
            for (int dense = 0; dense < 2; dense++)
                check_binary(*state, &random, op, false, (ww_dtype)type, dense);
}

static void comparisons_match_their_definitions(void **state)
{
    test_random random = {18};
    for (int op = WW_EQ; op <= WW_GE; op++)
        for (int type = 0; type < TEST_TYPES; type++)
            for (int dense = 0; dense < 2; dense++)
                check_binary(*state, &random, op, true, (ww_dtype)type, dense);
}

static uint64_t where_expected(const test_tensor *xs, int32_t op, int64_t i)
{
    (void)op;
    return test_tensor_bits(&xs[0], i) != 0 ? test_tensor_bits(&xs[1], i) : test_tensor_bits(&xs[2], i);
}

static void where_chooses_by_any_condition(void **state)
{
    static const ww_dtype conditions[] = {WW_U8, WW_U32, WW_I64};
    test_random random = {14};
    for (int type = 0; type < TEST_TYPES; type++) {
        for (int c = 0; c < 6; c++) {
            int64_t shape[3] = {1, 1, 1};
            test_tensor xs[3];
            ww_tensor out = {0};
            random_shape(&random, 3, 600, shape);
            if (c == 0) {
                shape[0] = tile_and_some(WW_F32);
                shape[1] = shape[2] = 1;
            }
            make_operands(*state, &random, (ww_dtype)type, 3, shape, c % 2 == 0, 3, xs);
            test_tensor_free(&xs[0]);
            xs[0] = test_tensor_make(*state, &random, conditions[c / 2], 3, shape, c % 2 == 0 ? TEST_DENSE : TEST_BROADCAST);
            CHECK_OK(ww_tensor_where(&xs[0].tensor, &xs[1].tensor, &xs[2].tensor, &out));
            check_result("where", &out, (ww_dtype)type, xs, 0, where_expected);
            for (int i = 0; i < 3; i++)
                test_tensor_free(&xs[i]);
        }
    }
}

static uint64_t affine_expected(const test_tensor *xs, int32_t op, int64_t i)
{
    (void)op;
    const ww_dtype dtype = ww_storage_dtype(xs[0].tensor.storage);
    const uint64_t bits = test_tensor_bits(&xs[0], i);
    if (!is_float(dtype))
        return wrapped(dtype, (uint64_t)(dtype == WW_I64 ? (int64_t)bits : (int64_t)number_of(dtype, bits)) * 3 - 2);
    const double x = (double)number_of(dtype, bits);
    return bits_nearest(dtype, dtype == WW_F64 ? fma(x, 3.7, -2.9) : fmaf((float)x, 3.7f, -2.9f));
}

static void affine_multiplies_and_adds_in_one_step(void **state)
{
    test_random random = {15};
    for (int type = 0; type < TEST_TYPES; type++) {
        int64_t shape[2] = {70, 61};
        ww_tensor out = {0};
        test_tensor x = test_tensor_make(*state, &random, (ww_dtype)type, 2, shape, (test_layout)(type % 3));
        if (type == WW_I8) {
            CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_affine(&x.tensor, 3.7, -2.9, &out));
        } else {
            CHECK_OK(ww_tensor_affine(&x.tensor, 3.7, -2.9, &out));
            check_result("affine", &out, (ww_dtype)type, &x, 0, affine_expected);
        }
        test_tensor_free(&x);
    }
}

/* More than a tile in rows: repeated, apart, and dense but not aligned. */
enum { COLUMNS = 64 };

/* A tensor of rows of COLUMNS with the strides and the offset given, made anew each time. */
static test_tensor make_rows(ww_device *device, test_random *random, ww_dtype dtype, int64_t rows, const int64_t *way)
{
    const int64_t row = way[0], column = way[1], offset = way[2];
    const int64_t elements = offset + (rows - 1) * row + (COLUMNS - 1) * column + 1, shape[] = {rows, COLUMNS};
    test_tensor x = test_tensor_make(device, random, dtype, 1, &elements, TEST_DENSE);
    x.tensor.layout = ww_layout_contiguous(2, shape);
    x.tensor.layout.strides[0] = row;
    x.tensor.layout.strides[1] = column;
    x.tensor.layout.offset = offset;
    return x;
}

enum { WAYS = 8 };

static void check_rows(ww_device *device, test_random *random, ww_dtype dtype, int way)
{
    static const int64_t ways[WAYS][3] = {{0, 1, 0},  {1, 0, 0}, {72, 1, 8}, {66, 1, 0},
                                          {64, 1, 3}, {0, 0, 0}, {0, 1, 4},  {80, 1, 16}};
    static const int64_t dense[] = {COLUMNS, 1, 0};
    const int64_t rows = tile_and_some(dtype) / COLUMNS + 7;
    test_tensor xs[3] = {make_rows(device, random, WW_U8, rows, ways[way]), make_rows(device, random, dtype, rows, dense),
                         make_rows(device, random, dtype, rows, ways[way])};
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_binary(WW_ADD, &xs[1].tensor, &xs[2].tensor, &out));
    check_result("add rows", &out, dtype, &xs[1], WW_ADD, binary_expected);
    CHECK_OK(ww_tensor_binary(WW_SUB, &xs[2].tensor, &xs[1].tensor, &out));
    const test_tensor swapped[] = {xs[2], xs[1]};
    check_result("sub rows", &out, dtype, swapped, WW_SUB, binary_expected);
    CHECK_OK(ww_tensor_cmp(WW_LE, &xs[1].tensor, &xs[2].tensor, &out));
    check_result("le rows", &out, WW_U8, &xs[1], WW_LE, cmp_expected);
    CHECK_OK(ww_tensor_where(&xs[0].tensor, &xs[1].tensor, &xs[2].tensor, &out));
    check_result("where rows", &out, dtype, xs, 0, where_expected);
    CHECK_OK(ww_tensor_unary(WW_NEG, &xs[2].tensor, &out));
    check_result("neg rows", &out, dtype, &xs[2], WW_NEG, unary_expected);
    CHECK_OK(ww_tensor_cast(&xs[2].tensor, WW_F16, &out));
    check_result("cast rows", &out, WW_F16, &xs[2], WW_F16, cast_expected);
    for (int i = 0; i < 3; i++)
        test_tensor_free(&xs[i]);
}

static void rows_may_repeat_have_gaps_or_be_unaligned(void **state)
{
    static const ww_dtype types[] = {WW_F32, WW_F16, WW_BF16, WW_F8E4M3};
    test_random random = {19};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int way = 0; way < WAYS; way++)
            check_rows(*state, &random, types[t], way);
}

/* ---- sizes and ranks ----------------------------------------------------------------------------------------------------- */

static void every_rank_and_empty_tensors_work(void **state)
{
    test_random random = {16};
    for (int32_t rank = 0; rank <= WW_RANK_MAX; rank++) {
        for (int empty = 0; empty < 2; empty++) {
            int64_t shape[WW_RANK_MAX];
            ww_tensor out = {0};
            random_shape(&random, rank, 300, shape);
            if (empty && rank > 0)
                shape[random_below(&random, (uint64_t)rank)] = 0;
            test_tensor xs[2];
            make_operands(*state, &random, WW_I32, rank, shape, false, 2, xs);
            CHECK_OK(ww_tensor_binary(WW_SUB, &xs[0].tensor, &xs[1].tensor, &out));
            check_result("sub", &out, WW_I32, xs, WW_SUB, binary_expected);
            test_tensor_free(&xs[0]);
            test_tensor_free(&xs[1]);
        }
    }
}

/* As for more than 2^31 elements, which are too many for a test. */
static void places_may_take_64_bits(void **state)
{
    ww_device *device = *state;
    pretend_large_tensors(device, true);
    rows_may_repeat_have_gaps_or_be_unaligned(state);
    where_chooses_by_any_condition(state);
    comparisons_match_their_definitions(state);
    every_rank_and_empty_tensors_work(state);
    pretend_large_tensors(device, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_cast_to_every_type),
        cmocka_unit_test(every_small_float_is_cast_exactly),
        cmocka_unit_test(binary_operations_match_their_definitions),
        cmocka_unit_test(comparisons_match_their_definitions),
        cmocka_unit_test(where_chooses_by_any_condition),
        cmocka_unit_test(affine_multiplies_and_adds_in_one_step),
        cmocka_unit_test(rows_may_repeat_have_gaps_or_be_unaligned),
        cmocka_unit_test(every_rank_and_empty_tensors_work),
        cmocka_unit_test(places_may_take_64_bits),
    };
    return RUN_ON_EVERY_DEVICE("tensors element by element", tests);
}
