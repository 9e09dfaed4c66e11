/* Image pooling and upsampling: a thread computes one output at a time. */
#include "kernels/simt/simt.h"

#include "arithmetic/resample.h"

#define EACH_OUTPUT                                                                                                            \
    for (int64_t i = (int64_t)block_index() * RESAMPLE_THREADS + thread_index(); i < args.count;                               \
         i += (int64_t)block_count() * RESAMPLE_THREADS)

KERNEL(tensor_pool, resample_args, RESAMPLE_THREADS)
{
    const int32_t kind = type_kind(args.type);
    if (kind == KIND_F32)
        EACH_OUTPUT resample_pool_f32(&args, i);
    else if (kind == KIND_F64)
        EACH_OUTPUT resample_pool_f64(&args, i);
    else
        EACH_OUTPUT resample_pool_i64(&args, i);
}

/* args.type is any type of the elements' size: only bits are moved. */
KERNEL(tensor_nearest, resample_args, RESAMPLE_THREADS)
{
    EACH_OUTPUT
    {
        const int64_t from = resample_nearest_from(&args, i);
        if (args.type == TYPE_U8)
            ((uint8_t *)args.out)[i] = ((const uint8_t *)args.in)[from];
        else if (args.type == TYPE_I16)
            ((uint16_t *)args.out)[i] = ((const uint16_t *)args.in)[from];
        else if (args.type == TYPE_U32)
            ((uint32_t *)args.out)[i] = ((const uint32_t *)args.in)[from];
        else
            ((uint64_t *)args.out)[i] = ((const uint64_t *)args.in)[from];
    }
}

KERNEL(tensor_bilinear, resample_args, RESAMPLE_THREADS)
{
    if (args.type == TYPE_F64)
        EACH_OUTPUT resample_bilinear_f64(&args, i);
    else
        EACH_OUTPUT resample_bilinear_f32(&args, i);
}
