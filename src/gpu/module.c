/* The kernels of a device: modules loaded once, functions found by name, launches checked.
 *
 * A module is a file of src/kernels, compiled for several chips. The device tries embedded code from the best down: a driver
 * that is too old for the newest code may still accept the baseline. If none is accepted and the vendor has a compiler, the
 * module is compiled here.
 */
#include "gpu/module.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "gpu/chip.h"
#include "gpu/error.h"
#include "gpu/launch.h"
#include "kernels/embedded.h"

typedef struct kernel_entry {
    const char *module;
    const char *name;
    size_t arguments_bytes;
} kernel_entry;

static const kernel_entry entries[] = {
#define KERNEL_ENTRY(module, name, args_type) {#module, #name, sizeof(args_type)},
#include "kernels/kernels.def"
#undef KERNEL_ENTRY
};

typedef struct loaded_kernel {
    atomic_bool ready; /* the other members are written before this is set, and never again */
    driver_function function;
    driver_function_limits limits;
    driver_module module; /* stored with the first kernel of each module, like the next */
    void *image;          /* its code; the driver may read it while the module is loaded */
} loaded_kernel;

struct gpu_modules {
    pthread_mutex_t lock; /* held while loading */
    bool opened;          /* the first module is loaded and info.kernels is written; other threads read it from then on */
    loaded_kernel kernels[GPU_KERNEL_COUNT];
};

/* ---- loading ------------------------------------------------------------------------------------------------------------- */

/* Returns the best code of a module for the device with a fitness below `below`, and its fitness; NULL if there is none. */
static const embedded_kernels *choose_code(const gpu_device *device, const char *module, int32_t below, int32_t *fitness)
{
    const embedded_kernels *best = NULL;
    *fitness = 0;
    for (const embedded_kernels *code = embedded_all(); code->module != NULL; code++) {
        if (strcmp(code->module, module) != 0)
            continue;
        const int32_t fits = chip_code_fitness(device->base.info.arch, code->chip, code->format);
        if (fits > *fitness && fits < below) {
            best = code;
            *fitness = fits;
        }
    }
    return best;
}

static ww_status no_code(const gpu_device *device, const char *module)
{
    char chips[256] = "";
    for (size_t i = 0; i < embedded_chip_count(); i++) {
        text_append(chips, sizeof chips, i > 0 ? ", " : "");
        text_append(chips, sizeof chips, embedded_chip(i));
    }
    if (chips[0] == '\0')
        return ww_fail(WW_UNSUPPORTED, "%s (%s): this library has no GPU kernels: %s", device->base.info.id,
                       device->base.info.arch, embedded_absence());
    return ww_fail(WW_UNSUPPORTED, "%s (%s): no kernels '%s' for this chip; this library has them for: %s",
                   device->base.info.id, device->base.info.arch, module, chips);
}

/* Returns true if the driver refused this kind of code, so that other code may load. A driver of an older CUDA refuses a cubin
 * as too new or unknown and may still compile the PTX. */
static bool refuses_code(const gpu_device *device, const embedded_kernels *code, int number)
{
    const driver_error class = device->driver->error_class(number);
    const bool has_alternative = device->driver->module_compile != NULL || strcmp(code->format, "cubin") == 0;
    return class == DRIVER_ERROR_TOO_OLD || (class == DRIVER_ERROR_IMAGE && has_alternative);
}

/* Unpacks the code and loads it. Sets `refused` if the driver does not accept this kind of code. */
static ww_status load_code(gpu_device *device, const embedded_kernels *code, driver_module *out, void **kept, bool *refused)
{
    char *image = NULL;
    size_t bytes = 0;
    *refused = false;
    ww_status status = embedded_unpack(code, &image, &bytes);
    if (status != WW_OK)
        return status;
    const int number = device->driver->module_load(image, bytes, out);
    status = gpu_check(device, number, "loading module '%s' for %s (%s)", code->module, code->chip, code->format);
    *refused = number != 0 && refuses_code(device, code, number);
    if (status == WW_OK)
        *kept = image;
    else
        memory_free(image);
    return status;
}

void gpu_take_chip(gpu_device *device, const char *name)
{
    const gpu_driver *driver = device->driver;
    const chip_family *row = chip_find(name);
    device->capabilities = driver->capabilities ? *driver->capabilities(device->base.info.wave_size) : row->has;
    device->constants = row->constants;
}

/* Loads the best embedded code that the driver accepts. Sets `refused` if it accepts none. */
static ww_status load_embedded(gpu_device *device, const char *module, driver_module *out, void **kept, bool *refused)
{
    int32_t fitness = INT32_MAX;
    ww_status status = no_code(device, module);
    const embedded_kernels *code = choose_code(device, module, INT32_MAX, &fitness);
    *refused = true;
    for (; code != NULL && *refused; code = choose_code(device, module, fitness, &fitness)) {
        status = load_code(device, code, out, kept, refused);
        if (status == WW_OK && !device->modules->opened) {
            snprintf(device->base.info.kernels, sizeof device->base.info.kernels, "embedded %s %s", code->chip, code->format);
            gpu_take_chip(device, code->chip);
        }
    }
    return status;
}

/* Compiles and loads a module. Cached code that the driver refuses is compiled again; `refused`, as large as
 * driver_compiled.cached, then gets its path. */
static int compile_and_load(gpu_device *device, const char *module, driver_module *out, driver_compiled *code, char *refused)
{
    const gpu_driver *driver = device->driver;
    const char *arch = device->base.info.arch;
    int number = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        number = driver->module_compile(module, arch, attempt > 0, code);
        if (number == 0)
            number = driver->module_load(code->image, code->bytes, out);
        if (number == 0)
            return number;
        memory_free(code->image);
        code->image = NULL;
        if (code->cached[0] == '\0' || driver->error_class(number) != DRIVER_ERROR_IMAGE)
            return number;
        memcpy(refused, code->cached, sizeof code->cached);
    }
    return number;
}

/* Compiles a module whose embedded code did not load. `refusal` says why; the message keeps that and adds why compiling
 * failed. */
static ww_status compile_module(gpu_device *device, const char *module, ww_status refusal, driver_module *out, void **kept)
{
    const char *arch = device->base.info.arch;
    char why[512], text[512];
    driver_compiled code = {0};
    char refused[sizeof code.cached] = "";
    text_copy(why, sizeof why, ww_error_message());
    const int number = compile_and_load(device, module, out, &code, refused);
    const ww_status status = gpu_check(device, number, "compiling module '%s' for %s", module, arch);
    if (status == WW_OK) {
        *kept = code.image;
        if (!device->modules->opened) {
            snprintf(device->base.info.kernels, sizeof device->base.info.kernels, "compiled here for %s", arch);
            gpu_take_chip(device, arch);
        }
        return WW_OK;
    }
    if (device->driver->error_class(number) != DRIVER_ERROR_IMAGE)
        return status;
    text_copy(text, sizeof text, ww_error_message());
    return ww_fail(refusal, "%s; nor could they be compiled here: %s%s%s", why, text,
                   refused[0] != '\0' ? "; the driver also refused the code that was compiled earlier and kept in " : "",
                   refused);
}

static ww_status load_module(gpu_device *device, const char *module, driver_module *out, void **kept)
{
    bool refused = false;
    if (!device->driver->loads_code)
        return gpu_check(device, device->driver->module_load(module, strlen(module), out), "finding module '%s'", module);
    const ww_status status = load_embedded(device, module, out, kept, &refused);
    return refused && device->driver->module_compile != NULL ? compile_module(device, module, status, out, kept) : status;
}

static int32_t first_of_module(int32_t kernel)
{
    int32_t first = 0;
    while (strcmp(entries[first].module, entries[kernel].module) != 0)
        first++;
    return first;
}

/* The lock is held. */
static ww_status load_kernel(gpu_device *device, int32_t kernel)
{
    const kernel_entry *entry = &entries[kernel];
    loaded_kernel *loaded = &device->modules->kernels[kernel];
    loaded_kernel *first = &device->modules->kernels[first_of_module(kernel)];
    ww_status status = WW_OK;
    if (first->module == NULL)
        status = load_module(device, entry->module, &first->module, &first->image);
    if (status == WW_OK)
        status = gpu_check(device, device->driver->function_find(first->module, entry->name, &loaded->function),
                           "finding kernel '%s' in module '%s'", entry->name, entry->module);
    if (status == WW_OK)
        status = gpu_check(device, device->driver->function_limits(loaded->function, &loaded->limits),
                           "asking about kernel '%s'", entry->name);
    if (status == WW_OK && loaded->limits.arguments_bytes >= 0 &&
        (size_t)loaded->limits.arguments_bytes != entry->arguments_bytes)
        status = ww_fail(WW_INTERNAL, "kernel '%s' takes %lld bytes of arguments; the library passes %zu", entry->name,
                         (long long)loaded->limits.arguments_bytes, entry->arguments_bytes);
    if (status == WW_OK)
        atomic_store(&loaded->ready, true);
    return status;
}

static ww_status find_kernel(gpu_device *device, int32_t kernel, const loaded_kernel **out)
{
    if (kernel < 0 || kernel >= GPU_KERNEL_COUNT)
        return ww_fail(WW_INTERNAL, "kernel %d does not exist", kernel);
    loaded_kernel *loaded = &device->modules->kernels[kernel];
    ww_status status = WW_OK;
    if (!atomic_load(&loaded->ready)) {
        pthread_mutex_lock(&device->modules->lock);
        if (!atomic_load(&loaded->ready))
            status = load_kernel(device, kernel);
        pthread_mutex_unlock(&device->modules->lock);
    }
    *out = loaded;
    return status;
}

ww_status gpu_modules_create(gpu_device *device)
{
    gpu_modules *modules = memory_alloc_zeroed(1, sizeof *modules);
    if (modules == NULL)
        return memory_failed("the kernels of a device", sizeof *modules);
    if (pthread_mutex_init(&modules->lock, NULL) != 0) {
        memory_free(modules);
        return memory_failed("a lock", sizeof modules->lock);
    }
    device->modules = modules;
    gpu_take_chip(device, device->base.info.arch);
    const loaded_kernel *first = NULL;
    const ww_status status = find_kernel(device, 0, &first);
    modules->opened = true;
    return status;
}

void gpu_modules_destroy(gpu_device *device)
{
    gpu_modules *modules = device->modules;
    if (modules == NULL)
        return;
    for (int32_t i = 0; i < GPU_KERNEL_COUNT; i++) {
        if (modules->kernels[i].module != NULL)
            (void)device->driver->module_unload(modules->kernels[i].module);
        memory_free(modules->kernels[i].image);
    }
    pthread_mutex_destroy(&modules->lock);
    memory_free(modules);
    device->modules = NULL;
}

/* ---- launching ----------------------------------------------------------------------------------------------------------- */

ww_status gpu_kernel_limits(gpu_device *device, int32_t kernel, driver_function_limits *out)
{
    const loaded_kernel *loaded = NULL;
    const ww_status status = find_kernel(device, kernel, &loaded);
    if (status == WW_OK)
        *out = loaded->limits;
    return status;
}

static ww_status check_shape(const gpu_device *device, const loaded_kernel *loaded, const char *name, gpu_shape shape)
{
    const gpu_grid grid = shape.grid;
    const driver_launch_limits *limits = &device->limits;
    if (grid.x < 1 || grid.x > limits->grid[0] || grid.y < 1 || grid.y > limits->grid[1])
        return ww_fail(WW_INTERNAL, "kernel '%s': a grid of %lld x %lld blocks; the maximum is %lld x %lld", name,
                       (long long)grid.x, (long long)grid.y, (long long)limits->grid[0], (long long)limits->grid[1]);
    if (shape.block < 1 || shape.block > loaded->limits.threads_per_block_max)
        return ww_fail(WW_INTERNAL, "kernel '%s': %d threads a block; the maximum is %d", name, shape.block,
                       loaded->limits.threads_per_block_max);
    if (grid.x > limits->threads[0] / shape.block || grid.y > limits->threads[1])
        return ww_fail(WW_INTERNAL, "kernel '%s': %lld blocks of %d threads; the driver takes %lld threads in a launch", name,
                       (long long)grid.x, shape.block, (long long)limits->threads[0]);
    if (shape.shared_bytes > (size_t)loaded->limits.shared_dynamic_bytes_max)
        return ww_fail(WW_INTERNAL, "kernel '%s': %zu bytes of shared memory; the maximum is %lld", name, shape.shared_bytes,
                       (long long)loaded->limits.shared_dynamic_bytes_max);
    return WW_OK;
}

ww_status gpu_launch(gpu_stream *stream, int32_t kernel, gpu_shape shape, const void *arguments, size_t arguments_bytes)
{
    gpu_device *device = stream->device;
    const loaded_kernel *loaded = NULL;
    ww_status status = find_kernel(device, kernel, &loaded);
    if (status != WW_OK)
        return status;
    const kernel_entry *entry = &entries[kernel];
    status = check_shape(device, loaded, entry->name, shape);
    if (status == WW_OK && arguments_bytes != entry->arguments_bytes)
        status = ww_fail(WW_INTERNAL, "kernel '%s': %zu bytes of arguments; it takes %zu", entry->name, arguments_bytes,
                         entry->arguments_bytes);
    if (status != WW_OK)
        return status;
    const driver_launch launch = {.grid_x = (uint32_t)shape.grid.x,
                                  .grid_y = (uint32_t)shape.grid.y,
                                  .grid_z = 1,
                                  .block_x = (uint32_t)shape.block,
                                  .block_y = 1,
                                  .block_z = 1,
                                  .shared_bytes = (uint32_t)shape.shared_bytes,
                                  .arguments = arguments,
                                  .arguments_bytes = arguments_bytes,
                                  .early = shape.grid.early && loaded->limits.early};
    atomic_store(&stream->state, STREAM_BUSY);
    return gpu_check(device, device->driver->launch(loaded->function, stream->handle, &launch),
                     "kernel '%s', %lld x %lld blocks of %d threads", entry->name, (long long)shape.grid.x,
                     (long long)shape.grid.y, shape.block);
}
