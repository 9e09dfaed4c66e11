/* Callers' own kernels on a GPU: checks that the code is for this vendor, loads it, and launches it on the stream for tensors.
 */
#include <elf.h>
#include <string.h>

#include "base/memory.h"
#include "device/kernel_jobs.h"
#include "gpu/error.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum { MACHINE_AMD = 224, MACHINE_NVIDIA = 190 }; /* e_machine of their ELF files */

typedef struct own_module {
    driver_module handle;
    char *image; /* the driver may read it while the module is loaded */
} own_module;

/* ---- whose code is it? ------------------------------------------------------------------------------------------------------
 */

static bool begins_with(const char *image, size_t bytes, const char *text)
{
    return bytes >= strlen(text) && memcmp(image, text, strlen(text)) == 0;
}

/* Returns true if the ELF file is as long as its headers say. Loaders trust the headers and would read past the end. */
static bool elf_is_whole(const Elf64_Ehdr *header, size_t bytes)
{
    const uint64_t sections = (uint64_t)header->e_shnum * header->e_shentsize;
    const uint64_t segments = (uint64_t)header->e_phnum * header->e_phentsize;
    return header->e_shoff <= bytes && sections <= bytes - header->e_shoff && header->e_phoff <= bytes &&
           segments <= bytes - header->e_phoff;
}

static driver_code kind_of(const char *image, size_t bytes, bool *whole)
{
    static const char fatbin[] = {0x50, (char)0xed, 0x55, (char)0xba};
    *whole = true;
    if (begins_with(image, bytes, "__CLANG_OFFLOAD_BUNDLE__") || begins_with(image, bytes, "CCOB"))
        return DRIVER_CODE_AMD;
    if (bytes > sizeof fatbin && memcmp(image, fatbin, sizeof fatbin) == 0)
        return DRIVER_CODE_NVIDIA;
    if (begins_with(image, bytes, ELFMAG)) {
        Elf64_Ehdr header;
        *whole = bytes >= sizeof header;
        if (!*whole)
            return DRIVER_CODE_UNKNOWN;
        memcpy(&header, image, sizeof header);
        *whole = elf_is_whole(&header, bytes);
        return header.e_machine == MACHINE_AMD      ? DRIVER_CODE_AMD
               : header.e_machine == MACHINE_NVIDIA ? DRIVER_CODE_NVIDIA
                                                    : DRIVER_CODE_HOST;
    }
    return memmem(image, bytes, ".version", 8) != NULL && memmem(image, bytes, ".target", 7) != NULL ? DRIVER_CODE_NVIDIA
                                                                                                     : DRIVER_CODE_UNKNOWN;
}

static ww_status check_code(const gpu_device *device, const char *image, size_t bytes)
{
    static const char *const names[] = {"code of an unknown kind", "an AMD code object", "NVIDIA's code",
                                        "a program or library of the host"};
    bool whole = false;
    const driver_code kind = kind_of(image, bytes, &whole);
    if (kind != device->driver->code)
        return ww_fail(WW_UNSUPPORTED, "ww_module_load: this is %s; %s takes %s", names[kind], device->base.info.id,
                       device->driver->code_in_words);
    if (!whole)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_module_load: %zu bytes are not the whole file: its headers name more", bytes);
    return WW_OK;
}

/* ---- modules ----------------------------------------------------------------------------------------------------------------
 */

static ww_status load(ww_device *base, const void *image, size_t bytes, void **out)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    ww_status status = check_code(device, image, bytes);
    if (status != WW_OK)
        return status;
    own_module *module = memory_alloc_zeroed(1, sizeof *module);
    if (module == NULL)
        return memory_failed("a module", sizeof *module);
    module->image = memory_copy_text(image, bytes); /* PTX ends with a NUL */
    status = module->image != NULL ? gpu_enter(device, &previous) : memory_failed("a module's code", bytes + 1);
    if (status == WW_OK) {
        status = gpu_check(device, device->driver->module_load(module->image, bytes, &module->handle),
                           "loading a module of %zu bytes", bytes);
        gpu_leave(device, previous);
    }
    if (status != WW_OK) {
        memory_free(module->image);
        memory_free(module);
        return status;
    }
    *out = module;
    return WW_OK;
}

/* The status and the message of a failed compilation: of the source, or of the compiler. */
static ww_status compile_failed(gpu_device *device, const kernel_source *source, int number)
{
    driver_failure failure;
    const ww_status status = gpu_check(device, number, "compiling '%s' for %s", source->name, device->base.info.arch);
    if (status == WW_OUT_OF_MEMORY)
        return status;
    device->driver->failure(&failure);
    const bool refused = device->driver->error_class(number) == DRIVER_ERROR_IMAGE;
    return ww_fail(refused ? WW_INVALID_ARGUMENT : WW_UNSUPPORTED, "ww_module_compile: '%s' for %s (%s): %s", source->name,
                   device->base.info.id, device->base.info.arch, failure.detail);
}

/* Code from the cache that the driver refuses is compiled anew. */
static ww_status compile(ww_device *base, const kernel_source *source, void **out, char **log)
{
    gpu_device *device = gpu_of(base);
    driver_source job = {.text = source->text,
                         .name = source->name,
                         .arch = device->base.info.arch,
                         .options = source->options,
                         .option_count = source->option_count};
    ww_status status = WW_OK;
    *log = NULL;
    if (device->driver->source_compile == NULL)
        return ww_fail(WW_UNSUPPORTED, "ww_module_compile: %s has no compiler; it loads %s (ww_module_load)",
                       device->base.info.id, device->driver->code_in_words);
    for (int attempt = 0; attempt < 2; attempt++) {
        driver_compiled code;
        job.anew = attempt > 0;
        const int number = device->driver->source_compile(&job, &code, log);
        if (number != 0)
            return compile_failed(device, source, number);
        const bool cached = code.cached[0] != '\0';
        status = load(base, code.image, code.bytes, out);
        memory_free(code.image);
        if (!cached || status == WW_OK || status == WW_OUT_OF_MEMORY)
            break;
    }
    return status;
}

static void unload(ww_device *base, void *unloading)
{
    gpu_device *device = gpu_of(base);
    own_module *module = unloading;
    driver_context previous = NULL;
    gpu_enter_to_free(device, &previous);
    gpu_drain(device); /* a launch may be under way */
    (void)device->driver->module_unload(module->handle);
    gpu_leave(device, previous);
    memory_free(module->image);
    memory_free(module);
}

static ww_status find(ww_device *base, void *in, const char *name, void **function, kernel_limits *limits)
{
    gpu_device *device = gpu_of(base);
    const own_module *module = in;
    driver_function found = NULL;
    driver_function_limits allowed = {0};
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    const int number = device->driver->function_find(module->handle, name, &found);
    status = gpu_check(device, number, "finding kernel '%s'", name);
    if (number != 0 && device->driver->error_class(number) == DRIVER_ERROR_NOT_FOUND)
        status = ww_fail(WW_NOT_FOUND, "%s", ww_error_message());
    if (status == WW_OK)
        status = gpu_check(device, device->driver->function_limits(found, &allowed), "asking about kernel '%s'", name);
    int64_t bytes = -1;
    if (status == WW_OK && device->driver->function_arguments != NULL)
        status = gpu_check(device, device->driver->function_arguments(found, &bytes), "asking about kernel '%s'", name);
    gpu_leave(device, previous);
    *function = found;
    *limits = (kernel_limits){.threads_per_block_max = allowed.threads_per_block_max,
                              .registers = allowed.registers,
                              .shared_static_bytes = allowed.shared_static_bytes,
                              .shared_dynamic_bytes_max = allowed.shared_dynamic_bytes_max,
                              .local_bytes = allowed.local_bytes,
                              .argument_bytes = bytes};
    return status;
}

/* ---- launches ---------------------------------------------------------------------------------------------------------------
 */

static ww_status check_shape(const gpu_device *device, const kernel_limits *limits, const kernel_launch *l)
{
    static const char axes[] = "xyz";
    const driver_launch_limits *allowed = &device->limits;
    int64_t threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        if (l->block[axis] < 1 || l->block[axis] > allowed->block[axis])
            return ww_fail(WW_OUT_OF_RANGE, "kernel '%s': %lld threads of a block along %c; %s allows 1 to %lld", l->name,
                           (long long)l->block[axis], axes[axis], device->base.info.id, (long long)allowed->block[axis]);
        if (l->grid[axis] < 1 || l->grid[axis] > allowed->grid[axis])
            return ww_fail(WW_OUT_OF_RANGE, "kernel '%s': %lld blocks along %c; %s allows 1 to %lld", l->name,
                           (long long)l->grid[axis], axes[axis], device->base.info.id, (long long)allowed->grid[axis]);
        if (l->grid[axis] > allowed->threads[axis] / l->block[axis])
            return ww_fail(WW_OUT_OF_RANGE, "kernel '%s': %lld blocks of %lld threads along %c; %s allows %lld threads",
                           l->name, (long long)l->grid[axis], (long long)l->block[axis], axes[axis], device->base.info.id,
                           (long long)allowed->threads[axis]);
        threads *= l->block[axis];
    }
    if (threads > limits->threads_per_block_max)
        return ww_fail(WW_OUT_OF_RANGE, "kernel '%s': %lld threads a block; the maximum is %d", l->name, (long long)threads,
                       limits->threads_per_block_max);
    if (l->shared_bytes > (size_t)limits->shared_dynamic_bytes_max)
        return ww_fail(WW_OUT_OF_RANGE, "kernel '%s': %zu bytes of shared memory; the maximum is %lld", l->name,
                       l->shared_bytes, (long long)limits->shared_dynamic_bytes_max);
    return WW_OK;
}

/* The size of a struct includes its padding at the end, that of a parameter list does not; both are accepted. */
static ww_status check_arguments(const kernel_limits *limits, const kernel_launch *l, size_t *bytes)
{
    const size_t padded = (l->argument_bytes + l->argument_alignment - 1) / l->argument_alignment * l->argument_alignment;
    *bytes = limits->argument_bytes < 0 ? padded : (size_t)limits->argument_bytes;
    if (*bytes == l->argument_bytes || *bytes == padded)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "kernel '%s': %zu bytes of arguments; it takes %zu", l->name, l->argument_bytes,
                   *bytes);
}

static ww_status launch(ww_device *base, void *function, const kernel_limits *limits, const kernel_launch *l)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    size_t bytes = 0;
    ww_status status = check_shape(device, limits, l);
    if (status == WW_OK)
        status = check_arguments(limits, l, &bytes);
    if (status == WW_OK)
        status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    const driver_launch queued = {.grid_x = (uint32_t)l->grid[0],
                                  .grid_y = (uint32_t)l->grid[1],
                                  .grid_z = (uint32_t)l->grid[2],
                                  .block_x = (uint32_t)l->block[0],
                                  .block_y = (uint32_t)l->block[1],
                                  .block_z = (uint32_t)l->block[2],
                                  .shared_bytes = (uint32_t)l->shared_bytes,
                                  .arguments = l->arguments,
                                  .arguments_bytes = bytes,
                                  .packed = true};
    atomic_store(&stream->state, STREAM_BUSY);
    status = gpu_check(device, device->driver->launch(function, stream->handle, &queued),
                       "kernel '%s', %lld x %lld x %lld blocks of %lld x %lld x %lld threads", l->name, (long long)l->grid[0],
                       (long long)l->grid[1], (long long)l->grid[2], (long long)l->block[0], (long long)l->block[1],
                       (long long)l->block[2]);
    return gpu_tensors_leave(device, previous, status);
}

const kernel_backend gpu_kernels = {.load = load, .compile = compile, .unload = unload, .find = find, .launch = launch};
