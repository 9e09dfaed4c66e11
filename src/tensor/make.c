/* Creates tensors, copies them from and to the host, and releases them. */
#include <math.h>
#include <string.h>

#include "arithmetic/convert.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "tensor/tensor.h"

ww_status check_new_tensor(const new_tensor *made, const ww_tensor *out)
{
    ww_status status = check_out(made->operation, out);
    if (status == WW_OK)
        status = check_new(made->operation, made->device, made->dtype, 0);
    if (status != WW_OK)
        return status;
    if (made->rank < 0 || made->rank > WW_RANK_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: rank is %d; it must be 0 to %d", made->operation, (int)made->rank,
                       WW_RANK_MAX);
    if (!made->shape && made->rank > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: shape is NULL", made->operation);
    const ww_layout layout = ww_layout_contiguous(made->rank, made->shape);
    if (ww_layout_elements(&layout) < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is not a shape: sizes must be 0 or more, and their product below 2^63",
                       made->operation, SHAPE_TEXT(&layout));
    return WW_OK;
}

void ww_tensor_release(ww_tensor *x)
{
    if (!x)
        return;
    ww_storage_release(x->storage);
    *x = (ww_tensor){0};
}

ww_dtype ww_tensor_dtype(const ww_tensor *x)
{
    return ww_storage_dtype(x ? x->storage : NULL);
}

/* ---- creating ------------------------------------------------------------------------------------------------------------ */

ww_status ww_tensor_empty(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, ww_tensor *out)
{
    FLOAT_GUARD();
    const new_tensor made = {"empty", device, dtype, rank, shape};
    result r = {.operation = made.operation, .out = out, .any_strides = true};
    ww_status status = check_new_tensor(&made, out);
    if (status == WW_OK)
        status = result_begin(&r, device, dtype, rank, shape);
    return result_end(&r, status);
}

ww_status ww_tensor_zeros(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, ww_tensor *out)
{
    FLOAT_GUARD();
    const new_tensor made = {"zeros", device, dtype, rank, shape};
    result r = {.operation = made.operation, .out = out, .any_strides = true};
    ww_status status = check_new_tensor(&made, out);
    if (status == WW_OK)
        status = result_begin(&r, device, dtype, rank, shape);
    if (status == WW_OK)
        status = result_zero(&r);
    return result_end(&r, status);
}

/* Converts a number to the bits of a type, like a cast. */
static int64_t bits_of_f64(double x, ww_dtype dtype)
{
    union {
        int64_t bits;
        float f32;
        double f64;
    } made = {0};
    switch (dtype) {
    case WW_U8:
        return u8_of_f64(x);
    case WW_U32:
        return u32_of_f64(x);
    case WW_I8:
        return i8_of_f64(x);
    case WW_I16:
        return i16_of_f64(x);
    case WW_I32:
        return i32_of_f64(x);
    case WW_I64:
        return i64_of_f64(x);
    case WW_BF16:
        return bf16_of_f64(x);
    case WW_F16:
        return f16_of_f64(x);
    case WW_F8E4M3:
        return f8e4m3_of_f64(x);
    case WW_F32:
        made.f32 = f32_of_f64(x);
        return made.bits;
    default:
        made.f64 = f64_of_f64(x);
        return made.bits;
    }
}

ww_status ww_tensor_full(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, double value, ww_tensor *out)
{
    FLOAT_GUARD();
    const new_tensor made = {"full", device, dtype, rank, shape};
    result r = {.operation = made.operation, .out = out, .any_strides = true};
    ww_status status = check_new_tensor(&made, out);
    if (status == WW_OK)
        status = result_begin(&r, device, dtype, rank, shape);
    if (status == WW_OK)
        status = set_elements(&r.at, bits_of_f64(value, dtype));
    return result_end(&r, status);
}

/* Returns how many of the numbers start, start + step, ... are before end; -1 if that is too many to count. */
static int64_t arange_count(double start, double end, double step)
{
    if (!isfinite(start) || !isfinite(end) || !isfinite(step) || step == 0.0)
        return -1;
    const double count = ceil((end - start) / step);
    if (!(count < 0x1p53))
        return -1;
    return count > 0 ? (int64_t)count : 0;
}

ww_status ww_tensor_arange(ww_device *device, ww_dtype dtype, double start, double end, double step, ww_tensor *out)
{
    FLOAT_GUARD();
    const int64_t count = arange_count(start, end, step);
    const new_tensor made = {"arange", device, dtype, 1, &count};
    if (count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "arange: from %g to %g by %g; all must be finite, and step not 0", start, end,
                       step);
    const ww_status status = check_new_tensor(&made, out);
    if (status != WW_OK)
        return status;
    const size_t bytes = ww_dtype_bytes(dtype);
    char *host = memory_alloc_zeroed((size_t)count + 1, bytes);
    if (!host)
        return memory_failed("the numbers of an arange", ((size_t)count + 1) * bytes);
    for (int64_t i = 0; i < count; i++) {
        const int64_t bits = bits_of_f64(start + (double)i * step, dtype);
        memcpy(host + (size_t)i * bytes, &bits, bytes); /* little-endian, as every device is */
    }
    const ww_status written = ww_tensor_from_host(device, dtype, 1, &count, host, out);
    memory_free(host);
    return written;
}

/* ---- the host ------------------------------------------------------------------------------------------------------------ */

buffer dense_bytes(const ww_tensor *x)
{
    return (buffer){.data = operand_of(x).data, .bytes = (size_t)count_of(&x->layout) * ww_dtype_bytes(x->storage->dtype)};
}

/* Copies dense host elements to a tensor of any layout. */
static ww_status write_elements(const ww_tensor *to, const void *data)
{
    ww_device *device = to->storage->device;
    if (count_of(&to->layout) == 0)
        return WW_OK;
    if (layout_is_dense(&to->layout)) {
        const buffer bytes = dense_bytes(to);
        return tensors_of(device)->write(device, &bytes, data);
    }
    ww_tensor aside = {0};
    ww_status status = ww_tensor_from_host(device, to->storage->dtype, to->layout.rank, to->layout.shape, data, &aside);
    if (status == WW_OK)
        status = copy_apart(&aside, to);
    ww_tensor_release(&aside);
    return status;
}

ww_status ww_tensor_from_host(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, const void *data,
                              ww_tensor *out)
{
    FLOAT_GUARD();
    const new_tensor made = {"from_host", device, dtype, rank, shape};
    const ww_layout layout = ww_layout_contiguous(rank, shape);
    result r = {.operation = made.operation, .out = out, .any_strides = true};
    ww_status status = check_new_tensor(&made, out);
    if (status == WW_OK && !data && count_of(&layout) > 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "from_host: data is NULL");
    if (status == WW_OK)
        status = result_begin(&r, device, dtype, rank, shape);
    if (status == WW_OK)
        status = write_elements(&r.at, data);
    return result_end(&r, status);
}

ww_status ww_tensor_write(const ww_tensor *to, const void *data)
{
    FLOAT_GUARD();
    ww_status status = check_tensor("write", "to", to);
    if (status == WW_OK)
        status = check_writable("write", "to", to);
    if (status == WW_OK && !data && count_of(&to->layout) > 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "write: data is NULL");
    return status == WW_OK ? write_elements(to, data) : status;
}

ww_status ww_tensor_to_host(const ww_tensor *x, void *data)
{
    FLOAT_GUARD();
    ww_tensor aside = {0};
    ww_status status = check_tensor("to_host", "x", x);
    if (status == WW_OK && !data && count_of(&x->layout) > 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "to_host: data is NULL");
    if (status != WW_OK || count_of(&x->layout) == 0)
        return status;
    if (!layout_is_dense(&x->layout))
        status = ww_tensor_contiguous(x, &aside);
    if (status == WW_OK) {
        const buffer bytes = dense_bytes(aside.storage ? &aside : x);
        status = tensors_of(x->storage->device)->read(x->storage->device, data, &bytes);
    }
    ww_tensor_release(&aside);
    return status;
}
