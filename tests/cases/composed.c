/* Cases of operations that combine several of the library's, as users do. */
#include <string.h>

#include "base/memory.h"
#include "cases/cases.h"

/* ---- steps ---------------------------------------------------------------------------------------------------------------
 *
 * Each gives a tensor that the case keeps. After one that failed the others do nothing. */

typedef struct steps {
    case_run *run;
    ww_status status;
} steps;

static ww_tensor made(steps *s, ww_tensor out)
{
    if (s->status == WW_OK)
        s->status = case_keep(s->run, out.storage);
    return out;
}

static ww_tensor input(steps *s, const char *names)
{
    ww_tensor x = {0};
    if (s->status == WW_OK)
        s->status = case_input(s->run, names, &x);
    return x;
}

static ww_tensor unary(steps *s, ww_unary op, ww_tensor x)
{
    ww_tensor out = {0};
    if (s->status == WW_OK)
        s->status = ww_tensor_unary(op, &x, &out);
    return made(s, out);
}

static ww_tensor affine(steps *s, ww_tensor x, double mul, double add)
{
    ww_tensor out = {0};
    if (s->status == WW_OK)
        s->status = ww_tensor_affine(&x, mul, add, &out);
    return made(s, out);
}

static ww_tensor binary(steps *s, ww_binary op, ww_tensor x, ww_tensor y)
{
    ww_tensor out = {0};
    if (s->status == WW_OK)
        s->status = ww_tensor_binary(op, &x, &y, &out);
    return made(s, out);
}

/* Along one dimension, which stays, as 1. */
static ww_tensor reduced(steps *s, ww_reduce op, ww_tensor x, int32_t dim)
{
    ww_tensor out = {0};
    int32_t along = 0;
    if (s->status == WW_OK)
        s->status = ww_tensor_reduce(op, &x, &dim, 1, &out);
    if (s->status == WW_OK && case_dim_of(&x, dim, &along))
        s->status = ww_tensor_unsqueeze(&out, along, &out);
    return made(s, out);
}

/* One number in the type of x. */
static ww_tensor constant(steps *s, ww_tensor x, double value)
{
    ww_tensor out = {0};
    if (s->status == WW_OK)
        s->status = ww_tensor_full(s->run->device, ww_tensor_dtype(&x), 0, NULL, value, &out);
    return made(s, out);
}

static ww_tensor selected(steps *s, ww_tensor x, int32_t dim, const int64_t *ids, int64_t count)
{
    ww_tensor chosen = {0}, out = {0};
    if (s->status == WW_OK)
        s->status = ww_tensor_from_host(s->run->device, WW_I64, 1, &count, ids, &chosen);
    if (s->status == WW_OK)
        s->status = ww_tensor_index_select(&x, &chosen, dim, &out);
    ww_tensor_release(&chosen);
    return made(s, out);
}

static ww_status finish(const steps *s, ww_tensor result)
{
    if (s->status == WW_OK)
        s->run->result = result;
    return s->status;
}

/* Removes a reduced dimension, unless it should stay. */
static ww_status finish_reduced(const steps *s, ww_tensor result, int32_t rank, int32_t dim)
{
    const bool keep =
        case_truth(s->run, "keepdim|keep_dim", strstr(s->run->op, "_keepdim") || case_expected_rank(s->run) == rank);
    int32_t along = 0;
    if (s->status == WW_OK && !keep && case_dim_of(&result, dim, &along)) {
        const ww_status status = ww_tensor_squeeze(&result, along, &result);
        if (status != WW_OK)
            return status;
    }
    return finish(s, result);
}

/* ---- functions ----------------------------------------------------------------------------------------------------------- */

static ww_status run_log_softmax(case_run *run)
{
    steps s = {.run = run};
    const int32_t dim = case_dim(run, -1);
    const ww_tensor x = input(&s, CASE_X);
    const ww_tensor below = binary(&s, WW_SUB, x, reduced(&s, WW_REDUCE_MAX, x, dim));
    const ww_tensor sum = reduced(&s, WW_REDUCE_SUM, unary(&s, WW_EXP, below), dim);
    return finish(&s, binary(&s, WW_SUB, below, unary(&s, WW_LOG, sum)));
}

static ww_status run_log_sum_exp(case_run *run)
{
    steps s = {.run = run};
    const int32_t dim = case_dim(run, -1);
    const ww_tensor x = input(&s, CASE_X);
    const ww_tensor largest = reduced(&s, WW_REDUCE_MAX, x, dim);
    const ww_tensor sum = reduced(&s, WW_REDUCE_SUM, unary(&s, WW_EXP, binary(&s, WW_SUB, x, largest)), dim);
    return finish_reduced(&s, binary(&s, WW_ADD, unary(&s, WW_LOG, sum), largest), x.layout.rank, dim);
}

/* The variance of a sample: divided by the number of elements minus one. */
static ww_status run_var(case_run *run)
{
    steps s = {.run = run};
    int32_t along = 0;
    const int32_t dim = case_dim(run, -1);
    const ww_tensor x = input(&s, CASE_X);
    const ww_tensor apart = binary(&s, WW_SUB, x, reduced(&s, WW_REDUCE_MEAN, x, dim));
    const ww_tensor sum = reduced(&s, WW_REDUCE_SUM, unary(&s, WW_SQR, apart), dim);
    const int64_t count = case_dim_of(&x, dim, &along) ? x.layout.shape[along] : 1;
    return finish_reduced(&s, affine(&s, sum, 1.0 / (double)(count - 1), 0.0), x.layout.rank, dim);
}

static ww_status run_clamp(case_run *run)
{
    steps s = {.run = run};
    ww_tensor x = input(&s, CASE_X);
    if (case_attribute(run, "min"))
        x = binary(&s, WW_MAXIMUM, x, constant(&s, x, case_number(run, "min", 0.0)));
    if (case_attribute(run, "max"))
        x = binary(&s, WW_MINIMUM, x, constant(&s, x, case_number(run, "max", 0.0)));
    return finish(&s, x);
}

static ww_status run_leaky_relu(case_run *run)
{
    steps s = {.run = run};
    const ww_tensor x = input(&s, CASE_X);
    const ww_tensor zero = constant(&s, x, 0.0);
    const ww_tensor below =
        affine(&s, binary(&s, WW_MINIMUM, x, zero), case_number(run, "negative_slope|slope|alpha", 0.01), 0.0);
    return finish(&s, binary(&s, WW_ADD, unary(&s, WW_RELU, x), below));
}

/* ---- places -------------------------------------------------------------------------------------------------------------- */

/* A case is small: ids for more than this are not made. */
enum { IDS_MAX = 1 << 16 };

/* Extends a dimension before and after: with the elements at its ends, or with zeros, which skipped ids read. */
static ww_status run_pad(case_run *run, bool zeros)
{
    steps s = {.run = run};
    int32_t dim = 0;
    const int64_t left = case_integer(run, "left", 0), right = case_integer(run, "right", 0);
    ww_tensor x = input(&s, CASE_X);
    if (s.status != WW_OK)
        return s.status;
    if (!case_dim_of(&x, case_dim(run, 0), &dim))
        return ww_fail(WW_OUT_OF_RANGE, "no such dimension");
    const int64_t size = x.layout.shape[dim];
    if (size < 0 || (size == 0 && !zeros) || left < 0 || right < 0 || size > IDS_MAX || left > IDS_MAX || right > IDS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%lld elements with %lld before and %lld behind them", (long long)size, (long long)left,
                       (long long)right);
    const int64_t count = left + size + right;
    int64_t *ids = memory_alloc((size_t)count * sizeof *ids);
    if (!ids)
        return memory_failed("ids", (size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++) {
        const bool inside = i >= left && i - left < size;
        ids[i] = inside ? i - left : zeros ? INT64_MAX : i < left ? 0 : size - 1;
    }
    x = selected(&s, x, dim, ids, count);
    memory_free(ids);
    return finish(&s, x);
}

static ww_status run_pad_with_same(case_run *run)
{
    return run_pad(run, false);
}

static ww_status run_pad_with_zeros(case_run *run)
{
    return run_pad(run, true);
}

static ww_status run_flip(case_run *run)
{
    steps s = {.run = run};
    int64_t dims[WW_RANK_MAX] = {0};
    const int32_t count = case_integers(run, "dims|dim|axis", dims, WW_RANK_MAX);
    ww_tensor x = input(&s, CASE_X);
    for (int32_t i = 0; i < count && i < WW_RANK_MAX && s.status == WW_OK; i++) {
        int32_t dim;
        if (!case_dim_of(&x, dims[i], &dim))
            return ww_fail(WW_OUT_OF_RANGE, "no such dimension");
        const int64_t size = x.layout.shape[dim];
        if (size < 0 || size > IDS_MAX)
            return ww_fail(WW_OUT_OF_RANGE, "%lld elements to reverse", (long long)size);
        int64_t *ids = memory_alloc((size_t)size * sizeof *ids);
        if (!ids)
            return memory_failed("ids", (size_t)size * sizeof *ids);
        for (int64_t j = 0; j < size; j++)
            ids[j] = size - 1 - j;
        x = selected(&s, x, dim, ids, size);
        memory_free(ids);
    }
    return finish(&s, x);
}

/* Tensors of one shape side by side in a new dimension. */
static ww_status run_stack(case_run *run)
{
    enum { PIECES_MAX = 32 };
    const json_t *list = case_given(run, "xs|tensors|x");
    const size_t count = json_array_size(list);
    ww_tensor xs[PIECES_MAX] = {{0}};
    ww_tensor out = {0};
    ww_status status = count > PIECES_MAX ? ww_fail(WW_CORRUPT_FILE, "more than %d tensors", PIECES_MAX) : WW_OK;
    const int32_t dim = case_dim(run, 0);
    for (size_t i = 0; i < count && status == WW_OK; i++) {
        status = case_tensor(run, json_array_get(list, i), &xs[i]);
        if (status == WW_OK)
            status = ww_tensor_unsqueeze(&xs[i], dim, &xs[i]);
    }
    if (status == WW_OK)
        status = ww_tensor_cat(xs, count, dim, &out);
    return case_give(run, status, &out);
}

const case_entry cases_composed[] = {
    {"log_softmax", run_log_softmax},
    {"log_sum_exp", run_log_sum_exp},
    {"var", run_var},
    {"var_keepdim", run_var},
    {"clamp", run_clamp},
    {"leaky_relu", run_leaky_relu},
    {"pad_with_same", run_pad_with_same},
    {"pad_with_zeros", run_pad_with_zeros},
    {"flip", run_flip},
    {"stack", run_stack},
    {NULL, NULL},
};
