/* Copies elements unchanged: to a dense storage, to another device, into a view, by ranges; sets all elements to a value;
 * concatenates tensors. */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "tensor/tensor.h"

ww_status ww_tensor_contiguous(const ww_tensor *x, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_status status = check_out("contiguous", out);
    if (status == WW_OK)
        status = check_tensor("contiguous", "x", x);
    if (status != WW_OK)
        return status;
    elementwise_job job = {.family = ELEMENTWISE_COPY, .inputs = 1};
    return run_elementwise("contiguous", &job, &x, x->storage->dtype, out);
}

/* Copies through the host, the only way between devices of two vendors. Both are dense. */
static ww_status copy_through_host(const ww_tensor *from, const ww_tensor *to)
{
    const buffer source = dense_bytes(from), target = dense_bytes(to);
    void *host = memory_alloc(source.bytes);
    if (!host)
        return memory_failed("a copy from device to device", source.bytes);
    ww_status status = tensors_of(from->storage->device)->read(from->storage->device, host, &source);
    if (status == WW_OK)
        status = tensors_of(to->storage->device)->write(to->storage->device, &target, host);
    memory_free(host);
    return status;
}

ww_status ww_tensor_copy_to(const ww_tensor *x, ww_device *device, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_tensor dense = {0};
    ww_status status = check_out("copy_to", out);
    if (status == WW_OK)
        status = check_tensor("copy_to", "x", x);
    if (status == WW_OK && !device)
        status = ww_fail(WW_INVALID_ARGUMENT, "copy_to: device is NULL");
    if (status != WW_OK)
        return status;
    if (device == x->storage->device)
        return ww_tensor_contiguous(x, out);
    if (!layout_is_dense(&x->layout))
        status = ww_tensor_contiguous(x, &dense);
    result r = {.operation = "copy_to", .out = out};
    if (status == WW_OK)
        status = result_begin(&r, device, x->storage->dtype, x->layout.rank, x->layout.shape);
    if (status == WW_OK && count_of(&x->layout) > 0)
        status = copy_through_host(dense.storage ? &dense : x, &r.at);
    ww_tensor_release(&dense);
    return result_end(&r, status);
}

ww_status copy_apart(const ww_tensor *from, const ww_tensor *to)
{
    if (count_of(&to->layout) == 0)
        return WW_OK;
    elementwise_job job = {.family = ELEMENTWISE_COPY, .inputs = 1, .in = {operand_of(from)}, .out = operand_of(to)};
    job_simplify(&job, to->layout.rank, to->layout.shape);
    return tensors_of(to->storage->device)->elementwise(to->storage->device, &job);
}

/* Elements that would be overwritten before they are read are copied first. */
static ww_status copy_checked(const ww_tensor *from, const ww_tensor *to)
{
    if (count_of(&to->layout) == 0 || !tensors_meet(from, to))
        return copy_apart(from, to);
    ww_tensor aside = {0};
    ww_status status = ww_tensor_contiguous(from, &aside);
    if (status == WW_OK)
        status = copy_apart(&aside, to);
    ww_tensor_release(&aside);
    return status;
}

ww_status ww_tensor_copy_strided(const ww_tensor *from, const ww_tensor *to)
{
    FLOAT_GUARD();
    ww_status status = check_tensor("copy_strided", "from", from);
    if (status == WW_OK)
        status = check_tensor("copy_strided", "to", to);
    if (status == WW_OK)
        status = check_same_type("copy_strided", from, to);
    if (status == WW_OK)
        status = check_same_shape("copy_strided", from, to);
    if (status == WW_OK)
        status = check_same_device("copy_strided", from, to);
    if (status == WW_OK)
        status = check_writable("copy_strided", "to", to);
    return status == WW_OK ? copy_checked(from, to) : status;
}

ww_status ww_tensor_copy2d(const ww_storage *from, ww_storage *to, int64_t rows, int64_t columns, int64_t from_stride,
                           int64_t to_stride, int64_t from_offset, int64_t to_offset)
{
    FLOAT_GUARD();
    const ww_tensor source = {
        .storage = (ww_storage *)from,
        .layout = {.rank = 2, .shape = {rows, columns}, .strides = {from_stride, 1}, .offset = from_offset}};
    const ww_tensor target = {.storage = to,
                              .layout = {.rank = 2, .shape = {rows, columns}, .strides = {to_stride, 1}, .offset = to_offset}};
    ww_status status = check_tensor("copy2d", "from", &source);
    if (status == WW_OK)
        status = check_tensor("copy2d", "to", &target);
    if (status == WW_OK)
        status = check_same_type("copy2d", &source, &target);
    if (status == WW_OK)
        status = check_same_device("copy2d", &source, &target);
    if (status == WW_OK)
        status = check_writable("copy2d", "to", &target);
    return status == WW_OK ? copy_checked(&source, &target) : status;
}

ww_status set_elements(const ww_tensor *to, int64_t bits)
{
    if (count_of(&to->layout) == 0)
        return WW_OK;
    elementwise_job job = {.family = ELEMENTWISE_SET, .out = operand_of(to), .ia = bits};
    job_simplify(&job, to->layout.rank, to->layout.shape);
    return tensors_of(to->storage->device)->elementwise(to->storage->device, &job);
}

ww_status ww_tensor_const_set(const ww_tensor *to, const void *value)
{
    FLOAT_GUARD();
    int64_t bits = 0;
    ww_status status = check_tensor("const_set", "to", to);
    if (status == WW_OK)
        status = check_not_read_only("const_set", "to", to);
    if (status != WW_OK)
        return status;
    if (!value)
        return ww_fail(WW_INVALID_ARGUMENT, "const_set: value is NULL");
    memcpy(&bits, value, ww_dtype_bytes(to->storage->dtype)); /* little-endian, as every device is */
    return set_elements(to, bits);
}

/* ---- cat ----------------------------------------------------------------------------------------------------------------- */

/* Checks that x matches the first tensor except along `dim`, and adds its length along `dim` to the total. */
static ww_status check_piece(const ww_tensor *first, const ww_tensor *x, int32_t dim, int64_t *length)
{
    ww_status status = check_tensor("cat", "a tensor", x);
    if (status == WW_OK)
        status = check_same_type("cat", first, x);
    if (status == WW_OK)
        status = check_same_device("cat", first, x);
    if (status != WW_OK)
        return status;
    ww_tensor alike = *x;
    if (x->layout.rank == first->layout.rank)
        alike.layout.shape[dim] = first->layout.shape[dim];
    if (check_same_shape("cat", first, &alike) != WW_OK)
        return ww_fail(WW_DIMENSION_MISMATCH, "cat: shapes %s and %s differ in more than dimension %d",
                       SHAPE_TEXT(&first->layout), SHAPE_TEXT(&x->layout), (int)dim);
    if (__builtin_add_overflow(*length, x->layout.shape[dim], length))
        return ww_fail(WW_INVALID_ARGUMENT, "cat: the result is too long along dimension %d", (int)dim);
    return WW_OK;
}

static ww_status check_pieces(const ww_tensor *xs, size_t count, int32_t *dim, ww_layout *whole)
{
    if (!xs || count == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "cat: %zu tensors given; it takes at least one", xs ? count : 0);
    ww_status status = check_tensor("cat", "a tensor", &xs[0]);
    if (status == WW_OK)
        status = check_dim("cat", &xs[0], dim);
    int64_t length = 0;
    for (size_t i = 0; i < count && status == WW_OK; i++)
        status = check_piece(&xs[0], &xs[i], *dim, &length);
    if (status != WW_OK)
        return status;
    *whole = xs[0].layout;
    whole->shape[*dim] = length;
    *whole = ww_layout_contiguous(whole->rank, whole->shape);
    if (ww_layout_elements(whole) < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "cat: the result would have shape %s, which is too large", SHAPE_TEXT(whole));
    return WW_OK;
}

ww_status ww_tensor_cat(const ww_tensor *xs, size_t count, int32_t dim, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_layout whole;
    ww_status status = check_out("cat", out);
    if (status == WW_OK)
        status = check_pieces(xs, count, &dim, &whole);
    if (status != WW_OK)
        return status;
    result r = {.operation = "cat", .out = out, .any_strides = true};
    for (size_t i = 0; i < count && out->storage && check_tensor("cat", "out", out) == WW_OK; i++)
        r.apart |= tensors_meet(out, &xs[i]);
    status = result_begin(&r, xs[0].storage->device, xs[0].storage->dtype, whole.rank, whole.shape);
    int64_t along = 0;
    for (size_t i = 0; i < count && status == WW_OK; i++) {
        ww_tensor part = r.at;
        part.layout.shape[dim] = xs[i].layout.shape[dim];
        part.layout.offset += along * r.at.layout.strides[dim];
        along += xs[i].layout.shape[dim];
        status = copy_apart(&xs[i], &part);
    }
    return result_end(&r, status);
}
