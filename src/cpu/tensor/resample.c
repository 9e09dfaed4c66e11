/* Image pooling and upsampling on the CPU: the arithmetic of arithmetic/resample.h, with outputs divided among the threads. */
#include "arithmetic/resample.h"

#include <string.h>

#include "cpu/tensor/tensor.h"

enum { OUTPUTS_GRAIN = 16 * 1024 };

static void copy_nearest(const resample_args *args, int64_t begin, int64_t end)
{
    const size_t bytes = (size_t)type_size(args->type);
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)args->out + (size_t)i * bytes, (const char *)args->in + (size_t)resample_nearest_from(args, i) * bytes,
               bytes);
}

static void work(void *context, int64_t begin, int64_t end)
{
    const resample_args *args = context;
    const int32_t kind = type_kind(args->type);
    if (args->what == RESAMPLE_NEAREST) {
        copy_nearest(args, begin, end);
        return;
    }
    const bool bilinear = args->what == RESAMPLE_BILINEAR;
    for (int64_t i = begin; i < end; i++) {
        if (kind == KIND_F32 && bilinear)
            resample_bilinear_f32(args, i);
        else if (kind == KIND_F32)
            resample_pool_f32(args, i);
        else if (kind == KIND_F64 && bilinear)
            resample_bilinear_f64(args, i);
        else if (kind == KIND_F64)
            resample_pool_f64(args, i);
        else
            resample_pool_i64(args, i);
    }
}

ww_status cpu_resample(ww_device *device, const resample_args *args)
{
    resample_args own = *args;
    cpu_run_ranges(device, own.count, OUTPUTS_GRAIN, work, &own);
    return WW_OK;
}
