/* Running sums, and convolutions of integers, on the CPU: the shared arithmetic, with chunks and outputs divided among the
 * threads. */
#include "arithmetic/cumsum.h"
#include "arithmetic/conv_integer.h"

#include "cpu/tensor/tensor.h"

enum { CHUNKS_GRAIN = 256, OUTPUTS_GRAIN = 1024 };

static void sum_chunks(void *context, int64_t begin, int64_t end)
{
    const cumsum_args *args = context;
    const int32_t kind = type_kind(args->type);
    for (int64_t i = begin; i < end; i++) {
        if (kind == KIND_F32)
            cumsum_chunk_f32(args, i);
        else if (kind == KIND_F64)
            cumsum_chunk_f64(args, i);
        else
            cumsum_chunk_i64(args, i);
    }
}

ww_status cpu_cumsum(ww_device *device, const cumsum_args *args)
{
    cumsum_args own = *args;
    cpu_run_ranges(device, own.count, CHUNKS_GRAIN, sum_chunks, &own);
    return WW_OK;
}

static void make_outputs(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        conv_integer_output(context, i);
}

ww_status cpu_conv_integer(ww_device *device, const conv_integer_args *args)
{
    conv_integer_args own = *args;
    cpu_run_ranges(device, own.count, OUTPUTS_GRAIN, make_outputs, &own);
    return WW_OK;
}
