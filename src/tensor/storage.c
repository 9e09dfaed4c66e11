/* Storages: creating, sharing and freeing them, and copying bytes from and to the host. */
#include "base/float_guard.h"
#include "base/memory.h"
#include "tensor/tensor.h"

/* ---- creating and freeing ------------------------------------------------------------------------------------------------ */

ww_status storage_make(ww_device *device, ww_dtype dtype, int64_t elements, ww_storage **out)
{
    size_t bytes;
    if (!size_multiply((size_t)elements, ww_dtype_bytes(dtype), &bytes) || bytes > (size_t)INT64_MAX)
        return ww_fail(WW_OUT_OF_MEMORY, "a storage of %lld %s elements is too large: its bytes do not fit 63 bits",
                       (long long)elements, ww_dtype_name(dtype));
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = device_check_single(device, "tensors");
    if (status != WW_OK)
        return status;
    ww_storage *storage = memory_alloc_zeroed(1, sizeof *storage);
    if (!storage)
        return memory_failed("a storage", sizeof *storage);
    status = tensors_of(device)->alloc(device, bytes, &storage->data);
    if (status != WW_OK) {
        memory_free(storage);
        return status;
    }
    storage->device = device_retain(device);
    atomic_init(&storage->users, 1);
    storage->dtype = dtype;
    storage->elements = elements;
    *out = storage;
    return WW_OK;
}

ww_status check_new(const char *operation, ww_device *device, ww_dtype dtype, int64_t elements)
{
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: device is NULL", operation);
    if (ww_dtype_bytes(dtype) == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %d is not a ww_dtype", operation, (int)dtype);
    if (elements < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: elements is %lld; it must not be negative", operation, (long long)elements);
    return WW_OK;
}

ww_status ww_storage_create(ww_device *device, ww_dtype dtype, int64_t elements, ww_storage **storage)
{
    FLOAT_GUARD();
    if (!storage)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_storage_create: storage is NULL");
    *storage = NULL;
    const ww_status status = check_new("ww_storage_create", device, dtype, elements);
    return status == WW_OK ? storage_make(device, dtype, elements, storage) : status;
}

ww_status ww_storage_from_host(ww_device *device, ww_dtype dtype, int64_t elements, const void *data, ww_storage **storage)
{
    FLOAT_GUARD();
    ww_storage *made = NULL;
    if (!storage)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_storage_from_host: storage is NULL");
    *storage = NULL;
    ww_status status = check_new("ww_storage_from_host", device, dtype, elements);
    if (status == WW_OK && !data && elements > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_storage_from_host: data is NULL");
    if (status == WW_OK)
        status = storage_make(device, dtype, elements, &made);
    if (status == WW_OK && elements > 0)
        status = tensors_of(device)->write(device, &made->data, data);
    if (status == WW_OK)
        *storage = made;
    else
        ww_storage_release(made);
    return status;
}

ww_storage *ww_storage_retain(ww_storage *storage)
{
    if (storage)
        atomic_fetch_add(&storage->users, 1);
    return storage;
}

void ww_storage_release(ww_storage *storage)
{
    if (!storage || !device_is_ours(storage->device) || atomic_fetch_sub(&storage->users, 1) != 1)
        return;
    const tensor_backend *tensors = tensors_of(storage->device);
    if (storage->foreign) {
        if (storage->elements > 0)
            (void)tensors->synchronize(storage->device); /* fails if the device is lost, and then its work has ended, too */
        if (storage->release)
            storage->release(storage->owner);
    } else if (atomic_load(&storage->shared)) {
        tensors->release_shared(storage->device, &storage->data);
    } else {
        tensors->release(storage->device, &storage->data);
    }
    ww_device_close(storage->device);
    memory_free(storage);
}

ww_status storage_wrap(ww_device *device, const ww_storage *as, ww_storage **out)
{
    ww_storage *storage = memory_alloc_zeroed(1, sizeof *storage);
    if (!storage)
        return memory_failed("a storage", sizeof *storage);
    storage->device = device_retain(device);
    atomic_init(&storage->users, 1);
    storage->dtype = as->dtype;
    storage->elements = as->elements;
    storage->data = as->data;
    storage->foreign = true;
    storage->read_only = as->read_only;
    storage->release = as->release;
    storage->owner = as->owner;
    *out = storage;
    return WW_OK;
}

/* ---- describing ---------------------------------------------------------------------------------------------------------- */

ww_dtype ww_storage_dtype(const ww_storage *storage)
{
    return storage ? storage->dtype : WW_U8;
}

int64_t ww_storage_elements(const ww_storage *storage)
{
    return storage ? storage->elements : 0;
}

ww_device *ww_storage_device(const ww_storage *storage)
{
    return storage ? storage->device : NULL;
}

/* ---- the host ------------------------------------------------------------------------------------------------------------ */

ww_status ww_storage_to_host(const ww_storage *storage, void *data)
{
    FLOAT_GUARD();
    if (!storage || (!data && storage->elements > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_storage_to_host: %s is NULL", storage ? "data" : "storage");
    const ww_status status = device_check(storage->device);
    if (status != WW_OK || storage->elements == 0)
        return status;
    return tensors_of(storage->device)->read(storage->device, data, &storage->data);
}

ww_status ww_device_synchronize(ww_device *device)
{
    FLOAT_GUARD();
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_synchronize: device is NULL");
    const ww_status status = device_check(device);
    /* A group has no work left when its calls have returned. */
    return status == WW_OK && tensors_of(device) ? tensors_of(device)->synchronize(device) : status;
}
