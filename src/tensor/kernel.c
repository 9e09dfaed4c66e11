/* Kernels of the caller: modules, their kernels, and launches on tensors. Everything about tensors is checked here; the
 * functions of the device do the rest.
 */
#include <warpwave/kernel.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "device/kernel_jobs.h"
#include "tensor/tensor.h"

enum { NAME_BYTES = 256, ALIGNMENT_MAX = 256 };

struct ww_kernel {
    ww_kernel *next; /* in the same module */
    ww_module *module;
    void *function; /* owned by the backend */
    kernel_limits limits;
    char name[NAME_BYTES];
};

struct ww_module {
    ww_device *device;    /* retained */
    void *handle;         /* owned by the backend */
    pthread_mutex_t lock; /* protects the list */
    ww_kernel *kernels;
};

/* ---- modules ------------------------------------------------------------------------------------------------------------- */

ww_status ww_module_load(ww_device *device, const void *image, size_t bytes, ww_module **module)
{
    FLOAT_GUARD();
    if (!device || !image || !module)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_load: %s is NULL", !device ? "device" : !image ? "image" : "module");
    *module = NULL;
    if (bytes == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_load: the image has no bytes");
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = device_check_single(device, "kernels of its own");
    if (status != WW_OK)
        return status;
    if (!device->backend->kernels)
        return ww_fail(WW_UNSUPPORTED,
                       "ww_module_load: %s is not a GPU and runs no kernels; call a function of your own instead",
                       device->info.id);
    ww_module *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a module", sizeof *made);
    status = device->backend->kernels->load(device, image, bytes, &made->handle);
    if (status != WW_OK) {
        memory_free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL); /* cannot fail with default attributes */
    made->device = device_retain(device);
    *module = made;
    return WW_OK;
}

void ww_module_unload(ww_module *module)
{
    if (!module || !device_is_ours(module->device))
        return;
    module->device->backend->kernels->unload(module->device, module->handle);
    while (module->kernels) {
        ww_kernel *gone = module->kernels;
        module->kernels = gone->next;
        memory_free(gone);
    }
    pthread_mutex_destroy(&module->lock);
    ww_device_close(module->device);
    memory_free(module);
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

/* Called with the lock. */
static ww_kernel *find_loaded(const ww_module *module, const char *name)
{
    ww_kernel *kernel = module->kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    return kernel;
}

/* Called with the lock. */
static ww_status find_new(ww_module *module, const char *name, ww_kernel **out)
{
    ww_kernel *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a kernel", sizeof *made);
    const ww_status status =
        module->device->backend->kernels->find(module->device, module->handle, name, &made->function, &made->limits);
    if (status != WW_OK) {
        memory_free(made);
        return status;
    }
    memcpy(made->name, name, strlen(name) + 1);
    made->module = module;
    made->next = module->kernels;
    module->kernels = made;
    *out = made;
    return WW_OK;
}

ww_status ww_module_function(ww_module *module, const char *name, ww_kernel **kernel)
{
    FLOAT_GUARD();
    if (!module || !name || !kernel)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_function: %s is NULL", !module ? "module" : !name ? "name" : "kernel");
    *kernel = NULL;
    ww_status status = device_check(module->device);
    if (status != WW_OK)
        return status;
    if (strlen(name) >= NAME_BYTES)
        return ww_fail(WW_OUT_OF_RANGE, "ww_module_function: a name of %zu bytes; the maximum is %d", strlen(name),
                       NAME_BYTES - 1);
    pthread_mutex_lock(&module->lock);
    *kernel = find_loaded(module, name);
    if (!*kernel)
        status = find_new(module, name, kernel);
    pthread_mutex_unlock(&module->lock);
    return status;
}

STRUCT_INIT(ww_kernel_info, {0})

ww_status ww_kernel_describe(const ww_kernel *kernel, ww_kernel_info *info)
{
    FLOAT_GUARD();
    if (!kernel)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_kernel_describe: kernel is NULL");
    const ww_kernel_info ours = {.struct_size = sizeof ours,
                                 .threads_per_block_max = kernel->limits.threads_per_block_max,
                                 .registers = kernel->limits.registers,
                                 .shared_static_bytes = kernel->limits.shared_static_bytes,
                                 .shared_dynamic_bytes_max = kernel->limits.shared_dynamic_bytes_max,
                                 .local_bytes = kernel->limits.local_bytes,
                                 .argument_bytes = kernel->limits.argument_bytes};
    return struct_write(info, &ours, sizeof ours, "ww_kernel_describe", "ww_kernel_info");
}

/* ---- launches ------------------------------------------------------------------------------------------------------------ */

STRUCT_INIT(ww_launch, {.grid = {1, 1, 1}, .block = {1, 1, 1}})

/* The bytes of an argument. */
typedef struct placed {
    const void *bytes;
    size_t size, alignment;
} placed;

static ww_status place_tensor(const ww_kernel *kernel, const ww_tensor *tensor, size_t number, void **address, placed *out)
{
    char role[32];
    snprintf(role, sizeof role, "argument %zu", number);
    const ww_status status = check_tensor(kernel->name, role, tensor);
    if (status != WW_OK)
        return status;
    const ww_device *here = kernel->module->device, *there = tensor->storage->device;
    if (here != there)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is a tensor on %s%s, the module on %s", kernel->name, role, there->info.id,
                       strcmp(here->info.id, there->info.id) == 0 ? ", opened a second time" : "", here->info.id);
    *address = (char *)tensor->storage->data.data + (size_t)tensor->layout.offset * ww_dtype_bytes(tensor->storage->dtype);
    *out = (placed){address, sizeof *address, _Alignof(void *)};
    return WW_OK;
}

static ww_status place_argument(const ww_kernel *kernel, const ww_argument *argument, size_t number, void **address,
                                placed *out)
{
    switch (argument->kind) {
    case WW_ARGUMENT_TENSOR:
        return place_tensor(kernel, argument->value.tensor, number, address, out);
    case WW_ARGUMENT_I32:
    case WW_ARGUMENT_U32:
    case WW_ARGUMENT_F32:
        *out = (placed){&argument->value, 4, 4};
        return WW_OK;
    case WW_ARGUMENT_I64:
    case WW_ARGUMENT_U64:
    case WW_ARGUMENT_F64:
        *out = (placed){&argument->value, 8, 8};
        return WW_OK;
    case WW_ARGUMENT_BYTES:
        *out = (placed){argument->value.bytes, argument->size, argument->alignment};
        break;
    default:
        return ww_fail(WW_INVALID_ARGUMENT, "%s: argument %zu is of kind %d, which does not exist", kernel->name, number,
                       (int)argument->kind);
    }
    const size_t alignment = argument->alignment;
    if (!argument->value.bytes || argument->size == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: argument %zu has no bytes", kernel->name, number);
    if (alignment == 0 || alignment > ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: argument %zu is aligned to %zu; that must be a power of two up to %d",
                       kernel->name, number, alignment, ALIGNMENT_MAX);
    return WW_OK;
}

/* Packs the arguments with the layout of a C struct. */
static ww_status pack(const ww_kernel *kernel, const ww_launch *launch, unsigned char *packed, kernel_launch *out)
{
    out->argument_alignment = 1;
    for (size_t i = 0; i < launch->argument_count; i++) {
        placed at = {0};
        void *address = NULL;
        const ww_status status = place_argument(kernel, &launch->arguments[i], i, &address, &at);
        if (status != WW_OK)
            return status;
        const size_t begin = (out->argument_bytes + at.alignment - 1) / at.alignment * at.alignment;
        if (at.size > KERNEL_ARGUMENTS_MAX || begin > KERNEL_ARGUMENTS_MAX - at.size)
            return ww_fail(WW_OUT_OF_RANGE, "%s: argument %zu ends behind byte %d, which is the maximum", kernel->name, i,
                           (int)KERNEL_ARGUMENTS_MAX);
        memcpy(packed + begin, at.bytes, at.size);
        out->argument_bytes = begin + at.size;
        if (at.alignment > out->argument_alignment)
            out->argument_alignment = at.alignment;
    }
    return WW_OK;
}

ww_status ww_kernel_launch(ww_kernel *kernel, const ww_launch *launch)
{
    FLOAT_GUARD();
    ww_launch ours;
    if (!kernel)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_kernel_launch: kernel is NULL");
    ww_device *device = kernel->module->device;
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = struct_read(&ours, sizeof ours, launch, "ww_kernel_launch", "ww_launch");
    if (status != WW_OK)
        return status;
    if (!ours.arguments && ours.argument_count > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_kernel_launch: arguments is NULL, and argument_count %zu", ours.argument_count);
    _Alignas(ALIGNMENT_MAX) unsigned char packed[KERNEL_ARGUMENTS_MAX + ALIGNMENT_MAX] = {0};
    kernel_launch job = {.name = kernel->name, .shared_bytes = ours.shared_bytes, .arguments = packed};
    memcpy(job.grid, ours.grid, sizeof job.grid);
    memcpy(job.block, ours.block, sizeof job.block);
    status = pack(kernel, &ours, packed, &job);
    return status == WW_OK ? device->backend->kernels->launch(device, kernel->function, &kernel->limits, &job) : status;
}
