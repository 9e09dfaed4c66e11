/* Cases of element-wise operations. */
#include <string.h>

#include "cases/cases.h"

static ww_status run_affine(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_affine(&x, case_number(run, "mul|scale", 1.0), case_number(run, "add|bias", 0.0), &out);
    return case_give(run, status, &out);
}

static ww_status run_powf(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_powf(&x, case_number(run, "e|exponent|p|power", 1.0), &out);
    return case_give(run, status, &out);
}

static ww_status run_elu(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_elu(&x, case_number(run, "alpha", 1.0), &out);
    return case_give(run, status, &out);
}

/* powf, elu and affine may also come as kinds of unary. */
static ww_status run_unary(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    const char *kind = case_kind_text(run);
    const int32_t op = case_kind(run, ww_unary_of_name);
    if (strcmp(kind, "powf") == 0)
        return run_powf(run);
    if (strcmp(kind, "elu") == 0)
        return run_elu(run);
    if (strcmp(kind, "affine") == 0)
        return run_affine(run);
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK && op < 0)
        return ww_fail(WW_CORRUPT_FILE, "no unary operation '%s'", kind);
    if (status == WW_OK)
        status = ww_tensor_unary((ww_unary)op, &x, &out);
    return case_give(run, status, &out);
}

static ww_status two_inputs(case_run *run, ww_tensor *x, ww_tensor *y)
{
    ww_status status = case_input(run, "x|a|lhs", x);
    if (status == WW_OK)
        status = case_input(run, "y|b|rhs", y);
    return status;
}

static ww_status run_binary(case_run *run)
{
    ww_tensor x;
    ww_tensor y;
    ww_tensor out = {0};
    const int32_t op = case_kind(run, ww_binary_of_name);
    ww_status status = two_inputs(run, &x, &y);
    if (status == WW_OK && op < 0)
        return ww_fail(WW_CORRUPT_FILE, "no binary operation '%s'", case_kind_text(run));
    if (status == WW_OK)
        status = ww_tensor_binary((ww_binary)op, &x, &y, &out);
    return case_give(run, status, &out);
}

static ww_status run_cmp(case_run *run)
{
    ww_tensor x;
    ww_tensor y;
    ww_tensor out = {0};
    const int32_t op = case_kind(run, ww_cmp_of_name);
    ww_status status = two_inputs(run, &x, &y);
    if (status == WW_OK && op < 0)
        return ww_fail(WW_CORRUPT_FILE, "no comparison '%s'", case_kind_text(run));
    if (status == WW_OK)
        status = ww_tensor_cmp((ww_cmp)op, &x, &y, &out);
    return case_give(run, status, &out);
}

static ww_status run_where(case_run *run)
{
    ww_tensor condition;
    ww_tensor yes;
    ww_tensor no;
    ww_tensor out = {0};
    ww_status status = case_condition(run, &condition);
    if (status == WW_OK)
        status = case_input(run, "t|x|on_true", &yes);
    if (status == WW_OK)
        status = case_input(run, "f|y|on_false", &no);
    if (status == WW_OK)
        status = ww_tensor_where(&condition, &yes, &no, &out);
    return case_give(run, status, &out);
}

static ww_status cast_to(case_run *run, const char *name, ww_tensor *x)
{
    const char *text = case_text(run, name);
    const int32_t dtype = case_dtype(text);
    ww_tensor out = {0};
    if (dtype < 0)
        return ww_fail(text ? WW_UNSUPPORTED : WW_CORRUPT_FILE, "no type '%s'", text ? text : "");
    const ww_status status = ww_tensor_cast(x, (ww_dtype)dtype, &out);
    return case_give(run, status, &out);
}

static ww_status run_cast(case_run *run)
{
    ww_tensor x;
    const ww_status status = case_input(run, CASE_X, &x);
    return status == WW_OK ? cast_to(run, "to|dtype|to_dtype", &x) : status;
}

static ww_status run_cast_roundtrip(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = cast_to(run, "via", &x);
    if (status == WW_OK)
        status = ww_tensor_cast(&run->result, ww_storage_dtype(x.storage), &out);
    return case_give(run, status, &out);
}

const case_entry cases_elementwise[] = {
    {"affine", run_affine},
    {"unary", run_unary},
    {"powf", run_powf},
    {"elu", run_elu},
    {"binary", run_binary},
    {"cmp", run_cmp},
    {"where_cond", run_where},
    {"where", run_where},
    {"cast", run_cast},
    {"to_dtype", run_cast},
    {"cast_roundtrip", run_cast_roundtrip},
    {NULL, NULL},
};
