/* The loops over elements and rows of every instruction set that this machine has, to the bit against the scalar one; all of it
 * in one program, so that it also runs for other machines under an emulator.
 */
#include <string.h>

#include "support/check.h"
#include "support/data/random.h"

#include "arithmetic/convert.h"
#include "arithmetic/operations.h"
#include "arithmetic/reduce.h"
#include "cpu/isa/isa.h"
#include "cpu/tensor/element_loops.h"
#include "cpu/tensor/row_loops.h"

enum { COUNT = LOOP_BLOCK, ROUNDS = 3 };

static const int32_t types[] = {TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_F8E4M3};
enum { TYPE_KINDS = sizeof types / sizeof *types };

static const instruction_set *scalar(void)
{
    const instruction_set *const *set = instruction_sets;
    while (strcmp((*set)->name, "scalar") != 0)
        set++;
    return *set;
}

static size_t type_bytes(int32_t type)
{
    return type == TYPE_F32 ? 4 : type == TYPE_F8E4M3 ? 1 : 2;
}

/* Numbers of all sizes in one round, of the size that functions bend at in the others. */
static void random_elements(test_random *random, int32_t round, int32_t type, void *to)
{
    for (int64_t i = 0; i < COUNT; i++) {
        const uint64_t bits = random_bits(random);
        const float value = round == 0 ? canon_bits_float((uint32_t)bits) : random_normal(random) * (round == 1 ? 1.0f : 30.0f);
        if (type == TYPE_F32)
            ((float *)to)[i] = value;
        else if (type == TYPE_F8E4M3)
            ((uint8_t *)to)[i] = (uint8_t)bits;
        else
            ((uint16_t *)to)[i] = round == 0 ? (uint16_t)bits : type == TYPE_F16 ? narrow_f16(value) : narrow_bf16(value);
    }
}

/* An operation as tensors have it: directly if the set can, or widened, worked on, narrowed. Returns whether directly. */
static bool unary_by(const element_loops *loops, int32_t op, int32_t type, void *to, const void *from, int64_t count)
{
    float wide[COUNT], done[COUNT];
    if (loops->unary_direct && loops->unary_direct(op, type, to, from, count))
        return true;
    loops->widen_f32(type, wide, from, count);
    loops->unary_f32(op, done, wide, count, 0.75f, 0.5f);
    loops->narrow_f32(type, to, done, count);
    return false;
}

static void functions_are_the_scalar_ones_to_the_bit(void **state)
{
    (void)state;
    test_random random = {.state = 11};
    int32_t direct = 0;
    for (int32_t kind = 0; kind < TYPE_KINDS; kind++)
        for (int32_t round = 0; round < ROUNDS; round++) {
            const size_t size = type_bytes(types[kind]);
            uint8_t x[COUNT * 4 + 4], want[COUNT * 4], got[COUNT * 4 + 8];
            random_elements(&random, round, types[kind], x);
            for (const instruction_set *const *set = instruction_sets; *set; set++)
                for (int32_t op = 0; (*set)->present() && op < UNARY_COUNT; op++) {
                    const int64_t first = (int64_t)random_below(&random, 20), left = COUNT - first;
                    const int64_t count = round == 2 ? 1 + (int64_t)random_below(&random, 50) : left;
                    unary_by(scalar()->element_loops, op, types[kind], want, x + first * (int64_t)size, count);
                    memset(got, 0xa5, sizeof got);
                    direct += unary_by((*set)->element_loops, op, types[kind], got, x + first * (int64_t)size, count);
                    if (memcmp(want, got, (size_t)count * size) != 0)
                        fail_msg("%s: operation %d, type %d, %d elements from %d on", (*set)->name, op, types[kind], (int)count,
                                 (int)first);
                    assert_int_equal(got[(size_t)count * size], 0xa5); /* nothing past the end */
                }
        }
#if defined(__x86_64__)
    assert_true(direct > 0 || !__builtin_cpu_supports("avx512bw"));
#elif defined(__aarch64__)
    assert_true(direct > 0);
#else
    (void)direct; /* no other instruction set has such loops */
#endif
}

static void two_operands_and_f64_are_the_scalar_ones_to_the_bit(void **state)
{
    (void)state;
    test_random random = {.state = 13};
    for (const instruction_set *const *set = instruction_sets; *set; set++)
        for (int32_t round = 0; (*set)->present() && round < ROUNDS; round++) {
            const element_loops *one = scalar()->element_loops, *other = (*set)->element_loops;
            float x[COUNT], y[COUNT], want[COUNT], got[COUNT];
            double x_f64[COUNT], y_f64[COUNT], want_f64[COUNT], got_f64[COUNT];
            random_elements(&random, round, TYPE_F32, x);
            random_elements(&random, round, TYPE_F32, y);
            for (int64_t i = 0; i < COUNT; i++) {
                const uint64_t bits = random_bits(&random);
                memcpy(&x_f64[i], &bits, sizeof bits);
                x_f64[i] = round == 0 ? x_f64[i] : (double)x[i] * (1.0 + 0x1p-30);
                y_f64[i] = (double)y[i];
            }
            for (int32_t op = 0; op < BINARY_COUNT; op++) {
                one->binary_f32(op, want, x, y, COUNT);
                other->binary_f32(op, got, x, y, COUNT);
                assert_memory_equal(want, got, sizeof want);
                one->binary_f64(op, want_f64, x_f64, y_f64, COUNT);
                other->binary_f64(op, got_f64, x_f64, y_f64, COUNT);
                assert_memory_equal(want_f64, got_f64, sizeof want_f64);
            }
            for (int32_t op = 0; op < UNARY_COUNT; op++) {
                one->unary_f64(op, want_f64, x_f64, COUNT, 0.75, 0.5);
                other->unary_f64(op, got_f64, x_f64, COUNT, 0.75, 0.5);
                assert_memory_equal(want_f64, got_f64, sizeof want_f64);
            }
            for (int32_t type = 0; type < TYPE_COUNT; type++) {
                memset(want_f64, 0, sizeof want_f64);
                memset(got_f64, 0, sizeof got_f64);
                one->narrow_f64(type, want_f64, x_f64, COUNT);
                other->narrow_f64(type, got_f64, x_f64, COUNT);
                assert_memory_equal(want_f64, got_f64, sizeof want_f64);
            }
        }
}

/* Elements joined in their own type, including zeros of both signs and a few NaNs. */
static void check_joined(test_random *random, const row_loops *one, const row_loops *other, int32_t op, int32_t type,
                         int64_t count)
{
    float wide[COUNT], sums[2][REDUCE_LANES];
    uint8_t x[COUNT * 4];
    random_elements(random, 1, type, x);
    for (int64_t i = 0; i < COUNT; i += 7)
        memset(x + (size_t)i * type_bytes(type), 0, type_bytes(type));
    for (int64_t i = 0; i < COUNT; i += 11) {
        memset(x + (size_t)i * type_bytes(type), 0, type_bytes(type));
        x[(size_t)(i + 1) * type_bytes(type) - 1] = 0x80;
    }
    if (random_below(random, 4) == 0)
        memset(x + random_below(random, COUNT) * type_bytes(type), 0x7f, type_bytes(type));
    for (int32_t j = 0; j < REDUCE_LANES; j++)
        sums[0][j] = sums[1][j] = reduce_neutral_f32(op);
    scalar()->element_loops->widen_f32(type, wide, x, COUNT);
    one->join_f32(op, sums[0], wide, count);
    /* In two calls: the second must not forget a NaN that the first has found. */
    const int64_t half = count / 2 / REDUCE_LANES * REDUCE_LANES;
    if (!other->join_direct(op, type, sums[1], x, half))
        return;
    assert_true(other->join_direct(op, type, sums[1], x + (size_t)half * type_bytes(type), count - half));
    one->fold_f32(op, sums[0]);
    other->fold_f32(op, sums[1]);
    assert_int_equal(canon_float_bits(one_nan_f32(sums[0][0])), canon_float_bits(one_nan_f32(sums[1][0])));
}

static void sums_and_exponentials_are_the_scalar_ones_to_the_bit(void **state)
{
    (void)state;
    test_random random = {.state = 12};
    for (const instruction_set *const *set = instruction_sets; *set; set++)
        for (int32_t round = 0; (*set)->present() && round < 40; round++) {
            const row_loops *one = scalar()->row_loops, *other = (*set)->row_loops;
            float x[COUNT], e[2][COUNT], sums[2][REDUCE_LANES] = {{0}, {0}}, columns[2][REDUCE_LANES * 24] = {{0}, {0}};
            const int64_t count = 1 + (int64_t)random_below(&random, COUNT), width = 1 + (int64_t)random_below(&random, 24);
            for (int64_t i = 0; i < COUNT; i++)
                x[i] = random_normal(&random) * 20.0f;
            one->exponentials_f32(e[0], sums[0], x, count, 3.0f);
            other->exponentials_f32(e[1], sums[1], x, count, 3.0f);
            assert_memory_equal(e[0], e[1], (size_t)count * sizeof(float));
            assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
            for (int32_t op = REDUCE_SUM; op <= REDUCE_MAX; op++) {
                for (int32_t kind = 0; other->join_direct && kind < TYPE_KINDS; kind++)
                    check_joined(&random, one, other, op, types[kind], count);
                one->each_row_f32(op, columns[0], x, width, COUNT / width, width);
                other->each_row_f32(op, columns[1], x, width, COUNT / width, width);
                assert_memory_equal(columns[0], columns[1], sizeof columns[0]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_the_scalar_ones_to_the_bit),
        cmocka_unit_test(two_operands_and_f64_are_the_scalar_ones_to_the_bit),
        cmocka_unit_test(sums_and_exponentials_are_the_scalar_ones_to_the_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
