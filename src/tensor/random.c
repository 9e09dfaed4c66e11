/* Random numbers. A device counts how many blocks of its seed were used, so that the same calls after the same seed give the
 * same numbers on every device.
 */
#include <math.h>

#include "arithmetic/philox.h"
#include "base/float_guard.h"
#include "tensor/tensor.h"

ww_status ww_device_seed(ww_device *device, uint64_t seed)
{
    FLOAT_GUARD();
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_seed: device is NULL");
    atomic_store(&device->random_seed, seed);
    atomic_store(&device->random_blocks, 0);
    return WW_OK;
}

/* Draws one number per element of `to`, dense. */
static ww_status draw(const ww_tensor *to, random_job *job)
{
    ww_device *device = to->storage->device;
    const int64_t elements = count_of(&to->layout);
    const uint64_t per_block = to->storage->dtype == WW_F64 ? 2 : 4;
    const uint64_t blocks = ((uint64_t)elements + per_block - 1) / per_block;
    job->to = operand_of(to).data;
    job->type = (int32_t)to->storage->dtype;
    job->count = elements;
    job->seed = atomic_load(&device->random_seed);
    job->first_block = atomic_fetch_add(&device->random_blocks, blocks);
    const ww_status status = tensors_of(device)->random(device, job);
    uint_least64_t end = job->first_block + blocks;
    if (status != WW_OK) /* undo the count, unless another thread has drawn numbers since */
        (void)atomic_compare_exchange_strong(&device->random_blocks, &end, job->first_block);
    return status;
}

static ww_status fill(const new_tensor *made, random_job *job, ww_tensor *out)
{
    result r = {.operation = made->operation, .out = out};
    ww_status status = check_new_tensor(made, out);
    if (status == WW_OK && type_kind((int32_t)made->dtype) == KIND_I64)
        status = refuse_type(made->operation, made->dtype);
    if (status == WW_OK)
        status = result_begin(&r, made->device, made->dtype, made->rank, made->shape);
    if (status == WW_OK && count_of(&r.at.layout) > 0)
        status = draw(&r.at, job);
    return result_end(&r, status);
}

ww_status ww_tensor_uniform(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, double low, double high,
                            ww_tensor *out)
{
    FLOAT_GUARD();
    random_job job = {.what = RANDOM_UNIFORM, .a = low, .b = high - low};
    if (!isfinite(low) || !isfinite(high - low) || high < low)
        return ww_fail(WW_INVALID_ARGUMENT, "uniform: from %g to %g; both must be finite, low not above high", low, high);
    return fill(&(new_tensor){"uniform", device, dtype, rank, shape}, &job, out);
}

ww_status ww_tensor_normal(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, double mean, double deviation,
                           ww_tensor *out)
{
    FLOAT_GUARD();
    random_job job = {.what = RANDOM_NORMAL, .a = mean, .b = deviation};
    if (!isfinite(mean) || !isfinite(deviation) || deviation < 0.0)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "normal: mean %g, standard deviation %g; both must be finite, the deviation not negative", mean,
                       deviation);
    return fill(&(new_tensor){"normal", device, dtype, rank, shape}, &job, out);
}
