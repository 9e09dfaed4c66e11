/* Reading and writing by ids: gather, index_select, scatter, scatter_add, index_add.
 *
 * The two that read are one job, and so are the three that write: strides tell whether each element has its own id or all lines
 * share the same ids. Ids are checked before anything is read or written with them.
 */
#include <string.h>

#include "base/float_guard.h"
#include "tensor/tensor.h"

ww_status check_ids_type(const char *operation, const ww_tensor *ids)
{
    const ww_dtype dtype = ids->storage->dtype;
    if (dtype == WW_U8 || dtype == WW_U32 || dtype == WW_I64)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "%s: the ids are %s; they must be u8, u32 or i64", operation, ww_dtype_name(dtype));
}

static elementwise_job ids_job(const ww_tensor *ids)
{
    elementwise_job job = {.inputs = 1, .in = {operand_of(ids)}};
    job_simplify(&job, ids->layout.rank, ids->layout.shape);
    return job;
}

static ww_status refuse_id(const char *operation, const ww_tensor *ids, int64_t extent, int64_t bad, int64_t value)
{
    return ww_fail(WW_OUT_OF_RANGE, "%s: element %lld of the ids, of shape %s, is %lld; the dimension has %lld elements",
                   operation, (long long)bad, SHAPE_TEXT(&ids->layout), (long long)value, (long long)extent);
}

ww_status check_ids(const char *operation, const ww_tensor *ids, int64_t extent)
{
    int64_t bad = -1;
    int64_t value = 0;
    if (count_of(&ids->layout) == 0)
        return WW_OK;
    const elementwise_job job = ids_job(ids);
    const ww_status status = tensors_of(ids->storage->device)->check_ids(ids->storage->device, &job, extent, &bad, &value);
    return status == WW_OK && bad >= 0 ? refuse_id(operation, ids, extent, bad, value) : status;
}

/* Checks x, ids and dim separately. */
static ww_status check_operands(const char *operation, const ww_tensor *x, const ww_tensor *ids, int32_t *dim)
{
    ww_status status = check_tensor(operation, "x", x);
    if (status == WW_OK)
        status = check_tensor(operation, "ids", ids);
    if (status == WW_OK)
        status = check_ids_type(operation, ids);
    if (status == WW_OK)
        status = check_same_device(operation, x, ids);
    if (status == WW_OK)
        status = check_dim(operation, x, dim);
    return status;
}

/* With an id for each element, ids must not be larger than x except along `dim`. */
static ww_status check_within(const char *operation, const ww_tensor *x, const ww_tensor *ids, int32_t dim)
{
    bool within = x->layout.rank == ids->layout.rank;
    for (int32_t d = 0; within && d < x->layout.rank; d++)
        within = d == dim || ids->layout.shape[d] <= x->layout.shape[d];
    if (within)
        return WW_OK;
    return ww_fail(WW_DIMENSION_MISMATCH,
                   "%s: the ids have shape %s, x has %s; except along dimension %d the ids must not be larger", operation,
                   SHAPE_TEXT(&ids->layout), SHAPE_TEXT(&x->layout), (int)dim);
}

static ww_status check_list(const char *operation, const ww_tensor *ids)
{
    if (ids->layout.rank == 1)
        return WW_OK;
    return ww_fail(WW_DIMENSION_MISMATCH, "%s: the ids have shape %s; they must have one dimension", operation,
                   SHAPE_TEXT(&ids->layout));
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

typedef struct id_read {
    const char *operation;
    const ww_tensor *x, *ids;
    int32_t dim;
    ww_layout shape;                  /* of the result */
    int64_t ids_strides[WW_RANK_MAX]; /* strides of the ids in that shape */
} id_read;

static ww_status read_by_ids(const id_read *read, ww_tensor *out)
{
    const char *operation = read->operation;
    const ww_tensor *x = read->x, *ids = read->ids;
    const ww_layout *shape = &read->shape;
    const int32_t dim = read->dim;
    const int64_t count = ww_layout_elements(shape);
    ww_device *device = x->storage->device;
    if (count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the result would have shape %s, which is too large", operation,
                       SHAPE_TEXT(shape));
    /* The caller's tensor is not written before the ids were checked. */
    ww_status status = count == 0 || out->storage ? check_ids(operation, ids, x->layout.shape[dim]) : WW_OK;
    if (status != WW_OK)
        return status;
    result r = {.operation = operation, .out = out, .inputs = {x, ids}};
    status = result_begin(&r, device, x->storage->dtype, shape->rank, shape->shape);
    if (status == WW_OK && count > 0) {
        int64_t bad = -1, value = 0;
        elementwise_job job = {.inputs = 2, .in = {operand_of(x), operand_of(ids)}, .out = operand_of(&r.at)};
        const elementwise_job looked = ids_job(ids);
        job.ia = x->layout.strides[dim];
        job.ib = x->layout.shape[dim];
        job.in[0].strides[dim] = 0;
        memcpy(job.in[1].strides, read->ids_strides, sizeof job.in[1].strides);
        job_simplify(&job, shape->rank, shape->shape);
        status = tensors_of(device)->gather(device, &job, &looked, &bad, &value);
        if (status == WW_OK && bad >= 0)
            status = refuse_id(operation, ids, x->layout.shape[dim], bad, value);
    }
    return result_end(&r, status);
}

ww_status ww_tensor_gather(const ww_tensor *x, const ww_tensor *ids, int32_t dim, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_status status = check_out("gather", out);
    if (status == WW_OK)
        status = check_operands("gather", x, ids, &dim);
    if (status == WW_OK)
        status = check_within("gather", x, ids, dim);
    if (status != WW_OK)
        return status;
    id_read read = {"gather", x, ids, dim, ww_layout_contiguous(ids->layout.rank, ids->layout.shape), {0}};
    memcpy(read.ids_strides, ids->layout.strides, sizeof read.ids_strides);
    return read_by_ids(&read, out);
}

ww_status ww_tensor_index_select(const ww_tensor *x, const ww_tensor *ids, int32_t dim, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_status status = check_out("index_select", out);
    if (status == WW_OK)
        status = check_operands("index_select", x, ids, &dim);
    if (status == WW_OK)
        status = check_list("index_select", ids);
    if (status != WW_OK)
        return status;
    ww_layout shape = x->layout;
    shape.shape[dim] = ids->layout.shape[0];
    id_read read = {"index_select", x, ids, dim, ww_layout_contiguous(shape.rank, shape.shape), {0}};
    read.ids_strides[dim] = ids->layout.strides[0];
    return read_by_ids(&read, out);
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

typedef struct id_write {
    const char *operation;
    const ww_tensor *x;
    ww_tensor ids, src;
    int32_t dim, what;
    bool list; /* one list of ids for all lines */
} id_write;

/* Everything is checked except the ids. ids_strides are the strides of the ids in the shape of src. */
static ww_status write_apart(const id_write *w, const int64_t *ids_strides)
{
    const ww_tensor *x = w->x, *ids = &w->ids, *src = &w->src;
    const int32_t dim = w->dim;
    ww_device *device = x->storage->device;
    ww_status status = check_ids(w->operation, ids, x->layout.shape[dim]);
    if (status != WW_OK || count_of(&src->layout) == 0 || count_of(&x->layout) == 0)
        return status;
    scatter_job job = {.lines = {.inputs = 2, .in = {operand_of(ids), operand_of(src)}, .out = operand_of(x)},
                       .length = src->layout.shape[dim],
                       .extent = x->layout.shape[dim],
                       .x_step = x->layout.strides[dim],
                       .ids_step = ids_strides[dim],
                       .src_step = src->layout.strides[dim],
                       .what = w->what};
    int64_t lines[WW_RANK_MAX];
    memcpy(lines, src->layout.shape, sizeof lines);
    lines[dim] = 1;
    memcpy(job.lines.in[0].strides, ids_strides, sizeof job.lines.in[0].strides);
    job_simplify(&job.lines, src->layout.rank, lines);
    return tensors_of(device)->scatter(device, &job);
}

/* Copies sources that the write would overwrite before they are read. */
static ww_status copy_overlapping(const ww_tensor *x, ww_tensor *other, ww_tensor *aside)
{
    if (!tensors_meet(x, other))
        return WW_OK;
    const ww_status status = ww_tensor_contiguous(other, aside);
    if (status == WW_OK)
        *other = *aside;
    return status;
}

static ww_status write_by_ids(id_write w)
{
    ww_tensor copied_ids = {0}, copied_src = {0};
    int64_t strides[WW_RANK_MAX] = {0};
    if (w.what == INDEX_ADD && w.x->storage->dtype == WW_I8)
        return refuse_type(w.operation, WW_I8);
    ww_status status = check_writable(w.operation, "x", w.x);
    if (status == WW_OK)
        status = copy_overlapping(w.x, &w.ids, &copied_ids);
    if (status == WW_OK)
        status = copy_overlapping(w.x, &w.src, &copied_src);
    if (status == WW_OK && w.list)
        strides[w.dim] = w.ids.layout.strides[0];
    else if (status == WW_OK)
        memcpy(strides, w.ids.layout.strides, sizeof strides);
    if (status == WW_OK)
        status = write_apart(&w, strides);
    ww_tensor_release(&copied_ids);
    ww_tensor_release(&copied_src);
    return status;
}

static ww_status check_source(const char *operation, const ww_tensor *x, const ww_tensor *src)
{
    ww_status status = check_tensor(operation, "src", src);
    if (status == WW_OK)
        status = check_same_type(operation, x, src);
    if (status == WW_OK)
        status = check_same_device(operation, x, src);
    return status;
}

static ww_status scatter(int32_t what, const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim)
{
    const char *operation = what == INDEX_ADD ? "scatter_add" : "scatter";
    ww_status status = check_operands(operation, x, ids, &dim);
    if (status == WW_OK)
        status = check_source(operation, x, src);
    if (status == WW_OK)
        status = check_same_shape(operation, ids, src);
    if (status == WW_OK)
        status = check_within(operation, x, ids, dim);
    return status == WW_OK ? write_by_ids((id_write){operation, x, *ids, *src, dim, what, false}) : status;
}

ww_status ww_tensor_scatter(const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim)
{
    FLOAT_GUARD();
    return scatter(INDEX_SET, x, ids, src, dim);
}

ww_status ww_tensor_scatter_add(const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim)
{
    FLOAT_GUARD();
    return scatter(INDEX_ADD, x, ids, src, dim);
}

ww_status ww_tensor_index_add(const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim)
{
    FLOAT_GUARD();
    ww_status status = check_operands("index_add", x, ids, &dim);
    if (status == WW_OK)
        status = check_list("index_add", ids);
    if (status == WW_OK)
        status = check_source("index_add", x, src);
    if (status != WW_OK)
        return status;
    ww_tensor like = *x;
    like.layout.shape[dim] = ids->layout.shape[0];
    if (check_same_shape("index_add", &like, src) != WW_OK)
        return ww_fail(WW_DIMENSION_MISMATCH,
                       "index_add: src has shape %s; it must have x's, %s, but with %lld along dimension %d",
                       SHAPE_TEXT(&src->layout), SHAPE_TEXT(&x->layout), (long long)ids->layout.shape[0], (int)dim);
    return write_by_ids((id_write){"index_add", x, *ids, *src, dim, INDEX_ADD, true});
}
