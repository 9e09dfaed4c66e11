/* Kernels of the caller: modules, loaded or compiled, their kernels, and launches on tensors. Everything about tensors is
 * checked here; the functions of the device do the rest.
 */
#include <warpwave/kernel.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/hash.h"
#include "device/kernel_jobs.h"
#include "tensor/tensor.h"

enum { NAME_BYTES = 256, ALIGNMENT_MAX = 256, OPTIONS_MAX = 48 };

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
    pthread_mutex_t lock; /* protects the list of kernels */
    ww_kernel *kernels;
    char name[NAME_BYTES]; /* "", or that of a module in `named` */
    uint64_t source;       /* the next three only in `named`: the hash of source and options */
    int64_t users;
    ww_module *next;
};

/* Modules that were compiled under a name, of all devices. The lock is held while one is compiled, so that threads that ask for
 * the same one compile it once. */
static ww_module *named;
static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- modules ------------------------------------------------------------------------------------------------------------- */

static ww_status check_device(ww_device *device, const char *function)
{
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = device_check_single(device, "kernels of its own");
    if (status == WW_OK && !device->backend->kernels)
        status = ww_fail(WW_UNSUPPORTED, "%s: %s is not a GPU and runs no kernels; call a function of your own instead",
                         function, device->info.id);
    return status;
}

/* Code, or a source if there are no bytes of code. */
typedef struct content {
    const void *image;
    size_t bytes;
    const kernel_source *source;
    char **log;
} content;

static ww_status module_make(ww_device *device, const content *from, ww_module **module)
{
    const kernel_backend *kernels = device->backend->kernels;
    ww_module *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a module", sizeof *made);
    const ww_status status = from->bytes > 0 ? kernels->load(device, from->image, from->bytes, &made->handle)
                                             : kernels->compile(device, from->source, &made->handle, from->log);
    if (status != WW_OK) {
        memory_free(made);
        return status;
    }
    pthread_mutex_init(&made->lock, NULL); /* cannot fail with default attributes */
    made->device = device_retain(device);
    *module = made;
    return WW_OK;
}

ww_status ww_module_load(ww_device *device, const void *image, size_t bytes, ww_module **module)
{
    FLOAT_GUARD();
    if (!device || !image || !module)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_load: %s is NULL", !device ? "device" : !image ? "image" : "module");
    *module = NULL;
    if (bytes == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_load: the image has no bytes");
    const ww_status status = check_device(device, "ww_module_load");
    return status == WW_OK ? module_make(device, &(content){.image = image, .bytes = bytes}, module) : status;
}

STRUCT_INIT(ww_compile_options, {0})

static uint64_t hash_source(const kernel_source *source)
{
    uint64_t hash = fnv_bytes(FNV_BEGIN, source->text, strlen(source->text) + 1);
    for (size_t i = 0; i < source->option_count; i++)
        hash = fnv_bytes(hash, source->options[i], strlen(source->options[i]) + 1);
    return hash;
}

/* Called with the lock of `named`. */
static ww_status find_named(ww_device *device, const content *from, ww_module **module)
{
    const char *name = from->source->name;
    ww_module *found = named;
    while (found && (found->device != device || strcmp(found->name, name) != 0))
        found = found->next;
    if (!found) {
        const ww_status status = module_make(device, from, &found);
        if (status != WW_OK)
            return status;
        memcpy(found->name, name, strlen(name) + 1);
        found->source = hash_source(from->source);
        found->next = named;
        named = found;
    } else if (found->source != hash_source(from->source)) {
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "ww_module_compile: the module '%s' on %s has another source or other options; unload it first, or choose "
            "another name",
            name, device->info.id);
    }
    found->users++;
    *module = found;
    return WW_OK;
}

static ww_status check_options(const ww_compile_options *options)
{
    const size_t name_bytes = options->name ? strlen(options->name) : 0;
    if (options->option_count > OPTIONS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_module_compile: %zu options; the maximum is %d", options->option_count,
                       (int)OPTIONS_MAX);
    if (!options->options && options->option_count > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_compile: options is NULL, and option_count %zu", options->option_count);
    for (size_t i = 0; i < options->option_count; i++)
        if (!options->options[i])
            return ww_fail(WW_INVALID_ARGUMENT, "ww_module_compile: option %zu is NULL", i);
    if (name_bytes >= NAME_BYTES)
        return ww_fail(WW_OUT_OF_RANGE, "ww_module_compile: a name of %zu bytes; the maximum is %d", name_bytes,
                       NAME_BYTES - 1);
    return WW_OK;
}

ww_status ww_module_compile(ww_device *device, const char *source, const ww_compile_options *options, ww_module **module,
                            char **log)
{
    FLOAT_GUARD();
    ww_compile_options ours = {0};
    char *unwanted = NULL, **said = log ? log : &unwanted;
    if (!device || !source || !module)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_compile: %s is NULL",
                       !device   ? "device"
                       : !source ? "source"
                                 : "module");
    *module = NULL;
    *said = NULL;
    ww_status status = options ? struct_read(&ours, sizeof ours, options, "ww_module_compile", "ww_compile_options") : WW_OK;
    if (status == WW_OK)
        status = check_options(&ours);
    if (status == WW_OK)
        status = check_device(device, "ww_module_compile");
    if (status != WW_OK)
        return status;
    const bool has_name = ours.name && ours.name[0] != '\0';
    const kernel_source text = {
        .text = source, .name = has_name ? ours.name : "kernels", .options = ours.options, .option_count = ours.option_count};
    const content from = {.source = &text, .log = said};
    if (has_name) {
        pthread_mutex_lock(&named_lock);
        status = find_named(device, &from, module);
        pthread_mutex_unlock(&named_lock);
    } else {
        status = module_make(device, &from, module);
    }
    if (!log)
        memory_free(unwanted);
    return status;
}

void ww_compile_log_destroy(char *log)
{
    memory_free(log);
}

/* Returns true if the module is in `named` for other callers, too. */
static bool has_other_users(ww_module *module)
{
    if (module->name[0] == '\0')
        return false;
    pthread_mutex_lock(&named_lock);
    const bool others = --module->users > 0;
    ww_module **at = &named;
    while (!others && *at != module)
        at = &(*at)->next;
    if (!others)
        *at = module->next;
    pthread_mutex_unlock(&named_lock);
    return others;
}

void ww_module_release(ww_module *module)
{
    if (!module || !device_is_ours(module->device) || has_other_users(module))
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
