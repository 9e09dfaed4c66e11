/* Reductions: determines the reduced and the remaining dimensions, and simplifies both lists for the backend. */
#include <string.h>

#include "base/float_guard.h"
#include "tensor/tensor.h"

#include <warpwave/tensor_rows.h>

static const char *const names[REDUCE_COUNT] = {
    [REDUCE_SUM] = "sum",       [REDUCE_MIN] = "min",   [REDUCE_MAX] = "max",  [REDUCE_ARGMIN] = "argmin",
    [REDUCE_ARGMAX] = "argmax", [REDUCE_MEAN] = "mean", [REDUCE_PROD] = "prod"};

_Static_assert((int)WW_REDUCE_SUM == REDUCE_SUM && (int)WW_REDUCE_MIN == REDUCE_MIN && (int)WW_REDUCE_MAX == REDUCE_MAX &&
                   (int)WW_REDUCE_ARGMIN == REDUCE_ARGMIN && (int)WW_REDUCE_ARGMAX == REDUCE_ARGMAX &&
                   (int)WW_REDUCE_MEAN == REDUCE_MEAN && (int)WW_REDUCE_PROD == REDUCE_PROD,
               "ww_reduce and reduce_op have the same numbers");

const char *ww_reduce_name(ww_reduce op)
{
    return (uint32_t)op < REDUCE_COUNT ? names[op] : "unknown";
}

int32_t ww_reduce_of_name(const char *name)
{
    for (int32_t op = 0; name && op < REDUCE_COUNT; op++)
        if (strcmp(names[op], name) == 0)
            return op;
    return -1;
}

/* Marks the dimensions that are reduced. */
static ww_status mark_dims(const char *operation, const ww_tensor *x, const int32_t *dims, int32_t count,
                           bool reduced[WW_RANK_MAX])
{
    for (int32_t d = 0; !dims && d < x->layout.rank; d++)
        reduced[d] = true;
    for (int32_t i = 0; dims && i < count; i++) {
        int32_t dim = dims[i];
        const ww_status status = check_dim(operation, x, &dim);
        if (status != WW_OK)
            return status;
        if (reduced[dim])
            return ww_fail(WW_INVALID_ARGUMENT, "%s: dimension %d of shape %s is given twice", operation, (int)dim,
                           SHAPE_TEXT(&x->layout));
        reduced[dim] = true;
    }
    return WW_OK;
}

/* Appends a dimension; merges it with the last one if they are contiguous. */
static void add_dim(reduce_dims *dims, int64_t size, int64_t stride)
{
    if (size == 1)
        return;
    const int32_t last = dims->rank - 1;
    const bool joins = last >= 0 && dims->strides[last] == stride * size;
    const int32_t at = joins ? last : dims->rank++;
    dims->shape[at] = joins ? dims->shape[at] * size : size;
    dims->strides[at] = stride;
}

static ww_status check_reduction(const char *operation, ww_reduce op, const ww_tensor *x, const int32_t *dims, int32_t count)
{
    const bool arg = op == WW_REDUCE_ARGMIN || op == WW_REDUCE_ARGMAX;
    ww_status status = check_tensor(operation, "x", x);
    if (status != WW_OK)
        return status;
    const ww_dtype dtype = x->storage->dtype;
    if (dtype == WW_I8 || (op == WW_REDUCE_MEAN && type_kind((int32_t)dtype) == KIND_I64))
        return refuse_type(operation, dtype);
    if (dims && (count < 0 || count > WW_RANK_MAX))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %d dimensions given for shape %s", operation, (int)count,
                       SHAPE_TEXT(&x->layout));
    if (arg && (dims ? count : x->layout.rank) != 1)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: takes one dimension; %d were given for shape %s", operation,
                       (int)(dims ? count : x->layout.rank), SHAPE_TEXT(&x->layout));
    return WW_OK;
}

static ww_status run_reduction(const char *operation, const ww_tensor *x, const bool reduced[WW_RANK_MAX], reduce_job *job,
                               ww_tensor *out)
{
    int64_t shape[WW_RANK_MAX];
    int32_t rank = 0;
    for (int32_t d = 0; d < x->layout.rank; d++)
        if (!reduced[d])
            shape[rank++] = x->layout.shape[d];
    result r = {.operation = operation, .out = out, .inputs = {x}};
    const ww_dtype dtype = job->out_type == TYPE_U32 ? WW_U32 : ww_tensor_dtype(x); /* indices, or the type of x */
    ww_status status = result_begin(&r, x->storage->device, dtype, rank, shape);
    if (status == WW_OK && job->outs > 0) {
        job->x = operand_of(x).data;
        job->out = operand_of(&r.at).data;
        status = tensors_of(x->storage->device)->reduce(x->storage->device, job);
    }
    return result_end(&r, status);
}

ww_status ww_tensor_reduce(ww_reduce op, const ww_tensor *x, const int32_t *dims, int32_t count, ww_tensor *out)
{
    FLOAT_GUARD();
    bool reduced[WW_RANK_MAX] = {false};
    if ((uint32_t)op >= REDUCE_COUNT)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tensor_reduce: %d is not a ww_reduce", (int)op);
    const char *operation = names[op];
    ww_status status = check_out(operation, out);
    if (status == WW_OK)
        status = check_reduction(operation, op, x, dims, count);
    if (status == WW_OK)
        status = mark_dims(operation, x, dims, count, reduced);
    if (status != WW_OK)
        return status;

    const bool arg = op == WW_REDUCE_ARGMIN || op == WW_REDUCE_ARGMAX;
    reduce_job job = {.op = (int32_t)op, .type = (int32_t)x->storage->dtype, .outs = 1, .n = 1};
    job.out_type = arg ? TYPE_U32 : job.type;
    for (int32_t d = 0; d < x->layout.rank; d++) {
        add_dim(reduced[d] ? &job.reduced : &job.kept, x->layout.shape[d], x->layout.strides[d]);
        *(reduced[d] ? &job.n : &job.outs) *= x->layout.shape[d];
    }
    if (job.n == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: there are no elements to reduce in shape %s", operation,
                       SHAPE_TEXT(&x->layout));
    if (arg && job.n > UINT32_MAX)
        return ww_fail(WW_UNSUPPORTED, "%s: %lld elements; their indices do not fit u32", operation, (long long)job.n);
    return run_reduction(operation, x, reduced, &job, out);
}
