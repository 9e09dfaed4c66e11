/* Random numbers: a device counts the blocks that were used of its seed, so that the same calls after the same seed give the
 * same numbers on every device.
 */
#include <math.h>

#include "arithmetic/philox.h"
#include "tensor/tensor.h"

ww_status ww_device_seed(ww_device *device, uint64_t seed)
{
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_seed: device is NULL");
    atomic_store(&device->random_seed, seed);
    atomic_store(&device->random_blocks, 0);
    return WW_OK;
}

static ww_status fill(const char *operation, ww_device *device, ww_dtype dtype, int64_t elements, random_job *job,
                      ww_storage **out)
{
    ww_storage *made = NULL;
    ww_status status = check_new(operation, device, dtype, elements, out);
    if (status != WW_OK)
        return status;
    if (type_kind((int32_t)dtype) == KIND_I64)
        return refuse_type(operation, dtype);
    status = storage_make(device, dtype, elements, &made);
    if (status == WW_OK && elements > 0) {
        const uint64_t per_block = dtype == WW_F64 ? 2 : 4;
        const uint64_t blocks = ((uint64_t)elements + per_block - 1) / per_block;
        job->to = made->data.data;
        job->type = (int32_t)dtype;
        job->count = elements;
        job->seed = atomic_load(&device->random_seed);
        job->first_block = atomic_fetch_add(&device->random_blocks, blocks);
        status = tensors_of(device)->random(device, job);
        uint_least64_t end = job->first_block + blocks;
        if (status != WW_OK) /* as if it had not been, unless another thread has drawn since */
            (void)atomic_compare_exchange_strong(&device->random_blocks, &end, job->first_block);
    }
    return give_filled(status, made, out);
}

ww_status ww_storage_uniform(ww_device *device, ww_dtype dtype, int64_t elements, double low, double high, ww_storage **storage)
{
    random_job job = {.what = RANDOM_UNIFORM, .a = low, .b = high - low};
    if (!isfinite(low) || !isfinite(high - low) || high < low)
        return ww_fail(WW_INVALID_ARGUMENT, "uniform: from %g to %g; both must be finite, low not above high", low, high);
    return fill("uniform", device, dtype, elements, &job, storage);
}

ww_status ww_storage_normal(ww_device *device, ww_dtype dtype, int64_t elements, double mean, double deviation,
                            ww_storage **storage)
{
    random_job job = {.what = RANDOM_NORMAL, .a = mean, .b = deviation};
    if (!isfinite(mean) || !isfinite(deviation) || deviation < 0.0)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "normal: mean %g, standard deviation %g; both must be finite, the deviation not negative", mean,
                       deviation);
    return fill("normal", device, dtype, elements, &job, storage);
}
