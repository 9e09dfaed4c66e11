/* Operations element by element: checked, and passed to the backend as one job. */
#include "arithmetic/convert.h"
#include "base/float_guard.h"
#include "tensor/tensor.h"

/* Which integer types have an operation. */
typedef enum integers { INTEGERS_NONE, INTEGERS_SIGNED, INTEGERS_ALL } integers;

static const integers unary_integers[UNARY_ALL_COUNT] = {
#define UNARY(NAME, name, floats, integers, which) [UNARY_##NAME] = INTEGERS_##which,
#include "arithmetic/unary.def"
#undef UNARY
#define PARAMETRIC(NAME, name, floats, integers, which) [UNARY_##NAME] = INTEGERS_##which,
#include "arithmetic/parametric.def"
#undef PARAMETRIC
};

static const integers binary_integers[BINARY_COUNT] = {
#define BINARY(NAME, name, floats, integers, which) [BINARY_##NAME] = INTEGERS_##which,
#include "arithmetic/binary.def"
#undef BINARY
};

static ww_status check_arithmetic(const char *operation, ww_dtype dtype, integers which)
{
    const bool is_unsigned = dtype == WW_U8 || dtype == WW_U32;
    const bool is_integer = type_kind((int32_t)dtype) == KIND_I64;
    if (dtype == WW_I8 || (is_integer && (which == INTEGERS_NONE || (is_unsigned && which == INTEGERS_SIGNED))))
        return refuse_type(operation, dtype);
    return WW_OK;
}

/* ---- one operand --------------------------------------------------------------------------------------------------------- */

/* An operation on one operand, with its parameters as numbers of every kind. */
static elementwise_job unary_job(int32_t op, double a, double b)
{
    return (elementwise_job){
        .family = ELEMENTWISE_UNARY, .op = op, .inputs = 1, .a = a, .b = b, .ia = i64_from_f64(a), .ib = i64_from_f64(b)};
}

static ww_status run_unary(const char *operation, elementwise_job job, const ww_tensor *x, ww_tensor *out)
{
    ww_status status = check_out(operation, out);
    if (status == WW_OK)
        status = check_tensor(operation, "x", x);
    if (status == WW_OK)
        status = check_arithmetic(operation, x->storage->dtype, unary_integers[job.op]);
    if (status != WW_OK)
        return status;
    return run_elementwise(operation, &job, &x, x->storage->dtype, out);
}

ww_status ww_tensor_unary(ww_unary op, const ww_tensor *x, ww_tensor *out)
{
    FLOAT_GUARD();
    if ((uint32_t)op >= UNARY_COUNT)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tensor_unary: %d is not a ww_unary", (int)op);
    return run_unary(ww_unary_name(op), unary_job((int32_t)op, 0.0, 0.0), x, out);
}

ww_status ww_tensor_affine(const ww_tensor *x, double mul, double add, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_unary("affine", unary_job(UNARY_AFFINE, mul, add), x, out);
}

ww_status ww_tensor_powf(const ww_tensor *x, double e, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_unary("powf", unary_job(UNARY_POWF, e, 0.0), x, out);
}

ww_status ww_tensor_elu(const ww_tensor *x, double alpha, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_unary("elu", unary_job(UNARY_ELU, alpha, 0.0), x, out);
}

ww_status ww_tensor_cast(const ww_tensor *x, ww_dtype dtype, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_status status = check_out("cast", out);
    if (status == WW_OK)
        status = check_tensor("cast", "x", x);
    if (status != WW_OK)
        return status;
    if (ww_dtype_bytes(dtype) == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "cast: from %s to %d, which is not a ww_dtype", ww_dtype_name(x->storage->dtype),
                       (int)dtype);
    elementwise_job job = {.family = dtype == x->storage->dtype ? ELEMENTWISE_COPY : ELEMENTWISE_CAST, .inputs = 1};
    return run_elementwise("cast", &job, &x, dtype, out);
}

/* ---- two and three ------------------------------------------------------------------------------------------------------- */

static ww_status check_pair(const char *operation, const ww_tensor *x, const ww_tensor *y)
{
    ww_status status = check_tensor(operation, "x", x);
    if (status == WW_OK)
        status = check_tensor(operation, "y", y);
    if (status == WW_OK)
        status = check_same_type(operation, x, y);
    if (status == WW_OK)
        status = check_same_device(operation, x, y);
    return status;
}

ww_status ww_tensor_binary(ww_binary op, const ww_tensor *x, const ww_tensor *y, ww_tensor *out)
{
    FLOAT_GUARD();
    if ((uint32_t)op >= BINARY_COUNT)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tensor_binary: %d is not a ww_binary", (int)op);
    const char *operation = ww_binary_name(op);
    ww_status status = check_out(operation, out);
    if (status == WW_OK)
        status = check_pair(operation, x, y);
    if (status == WW_OK)
        status = check_arithmetic(operation, x->storage->dtype, binary_integers[op]);
    if (status != WW_OK)
        return status;
    elementwise_job job = {.family = ELEMENTWISE_BINARY, .op = (int32_t)op, .inputs = 2};
    return run_elementwise(operation, &job, (const ww_tensor *[]){x, y}, x->storage->dtype, out);
}

ww_status ww_tensor_cmp(ww_cmp op, const ww_tensor *x, const ww_tensor *y, ww_tensor *out)
{
    FLOAT_GUARD();
    if ((uint32_t)op >= CMP_COUNT)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tensor_cmp: %d is not a ww_cmp", (int)op);
    ww_status status = check_out(ww_cmp_name(op), out);
    if (status == WW_OK)
        status = check_pair(ww_cmp_name(op), x, y);
    if (status == WW_OK)
        status = check_arithmetic(ww_cmp_name(op), x->storage->dtype, INTEGERS_ALL);
    if (status != WW_OK)
        return status;
    elementwise_job job = {.family = ELEMENTWISE_CMP, .op = (int32_t)op, .inputs = 2};
    return run_elementwise(ww_cmp_name(op), &job, (const ww_tensor *[]){x, y}, WW_U8, out);
}

ww_status ww_tensor_where(const ww_tensor *condition, const ww_tensor *x, const ww_tensor *y, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_status status = check_out("where", out);
    if (status == WW_OK)
        status = check_tensor("where", "the condition", condition);
    if (status == WW_OK)
        status = check_pair("where", x, y);
    if (status == WW_OK)
        status = check_same_device("where", condition, x);
    if (status != WW_OK)
        return status;
    const ww_dtype by = condition->storage->dtype;
    if (by != WW_U8 && by != WW_U32 && by != WW_I64)
        return ww_fail(WW_UNSUPPORTED, "where: the condition is %s, the values are %s; the condition must be u8, u32 or i64",
                       ww_dtype_name(by), ww_dtype_name(x->storage->dtype));
    elementwise_job job = {.family = ELEMENTWISE_WHERE, .inputs = 3};
    return run_elementwise("where", &job, (const ww_tensor *[]){condition, x, y}, x->storage->dtype, out);
}
