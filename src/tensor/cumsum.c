/* Running sums: in rounds of chunks (arithmetic/cumsum.h). The sums of each round are a tensor that is summed in the same
 * way. */
#include "arithmetic/cumsum.h"

#include "base/float_guard.h"
#include "base/integers.h"
#include "tensor/tensor.h"

#include <warpwave/tensor_rows.h>

/* Sums the dense lines `in` of a type into `out`. */
static ww_status sum_lines(ww_device *device, const cumsum_args *lines)
{
    static const ww_dtype of_kind[] = {[KIND_F32] = WW_F32, [KIND_F64] = WW_F64, [KIND_I64] = WW_I64};
    const tensor_backend *tensors = tensors_of(device);
    cumsum_args args = *lines;
    ww_tensor sums = {0}, carries = {0};
    ww_status status = WW_OK;
    if (args.chunks > 1) {
        const ww_dtype kind = of_kind[type_kind(args.type)];
        status = ww_tensor_empty(device, kind, 1, &args.count, &sums);
        if (status == WW_OK)
            status = ww_tensor_empty(device, kind, 1, &args.count, &carries);
        if (status == WW_OK) {
            args.sums = 1;
            args.out = operand_of(&sums).data;
            status = tensors->cumsum(device, &args);
        }
        if (status == WW_OK) {
            cumsum_args above = {.in = operand_of(&sums).data,
                                 .out = operand_of(&carries).data,
                                 .n = args.chunks,
                                 .inner = args.inner,
                                 .chunks = divide_up_i64(args.chunks, CUMSUM_CHUNK),
                                 .type = (int32_t)kind};
            above.count = args.count / args.chunks * above.chunks;
            status = sum_lines(device, &above);
        }
        args.sums = 0;
        args.out = lines->out;
        args.carries = status == WW_OK ? operand_of(&carries).data : NULL;
    }
    if (status == WW_OK)
        status = tensors->cumsum(device, &args);
    ww_tensor_release(&sums);
    ww_tensor_release(&carries);
    return status;
}

ww_status ww_tensor_cumsum(const ww_tensor *x, int32_t dim, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_tensor copy = {0};
    ww_status status = check_out("cumsum", out);
    if (status == WW_OK)
        status = check_tensor("cumsum", "x", x);
    if (status == WW_OK)
        status = check_dim("cumsum", x, &dim);
    if (status == WW_OK && x->storage->dtype == WW_I8)
        status = refuse_type("cumsum", WW_I8);
    if (status == WW_OK && !layout_is_dense(&x->layout))
        status = ww_tensor_contiguous(x, &copy);
    if (status != WW_OK)
        return status;
    ww_device *device = x->storage->device;
    cumsum_args lines = {.n = x->layout.shape[dim], .inner = 1, .type = (int32_t)x->storage->dtype};
    int64_t outer = 1;
    for (int32_t d = 0; d < x->layout.rank; d++) {
        outer *= d < dim ? x->layout.shape[d] : 1;
        lines.inner *= d > dim ? x->layout.shape[d] : 1;
    }
    lines.chunks = divide_up_i64(lines.n, CUMSUM_CHUNK);
    lines.count = outer * lines.chunks * lines.inner;
    result r = {.operation = "cumsum", .out = out, .inputs = {x}};
    status = result_begin(&r, device, x->storage->dtype, x->layout.rank, x->layout.shape);
    if (status == WW_OK && lines.count > 0) {
        lines.in = operand_of(copy.storage ? &copy : x).data;
        lines.out = operand_of(&r.at).data;
        status = sum_lines(device, &lines);
    }
    ww_tensor_release(&copy);
    return result_end(&r, status);
}
