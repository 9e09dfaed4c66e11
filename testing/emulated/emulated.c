/* The emulator as a driver: its devices, modules and table. Contexts, memory and streams have their own files. */
#include "emulated/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "emulator/emulator.h"
#include "emulator/object.h"

static atomic_int_least64_t modules_alive;
static _Atomic process_mark emulated_started_in;

void emulated_count(emulated_counts *out)
{
    memset(out, 0, sizeof *out);
    out->contexts = emulated_contexts_alive();
    out->streams = atomic_load(&emulated_streams_alive);
    out->events = atomic_load(&emulated_events_alive);
    out->modules = atomic_load(&modules_alive);
    out->graphs = atomic_load(&emulated_graphs_alive);
    emulated_count_memory(out);
}

/* ---- devices ------------------------------------------------------------------------------------------------------------- */

static int emulated_load(char *why, size_t why_capacity)
{
    text_copy(why, why_capacity, "");
    atomic_store(&emulated_started_in, process_here());
    return EMULATED_OK;
}

static int emulated_device_count(int32_t *count)
{
    *count = EMULATED_DEVICES;
    return EMULATED_OK;
}

static bool is_device(int32_t index)
{
    return index >= 0 && index < EMULATED_DEVICES;
}

static int emulated_device_describe(int32_t index, ww_device_info *info)
{
    if (!is_device(index))
        return emulated_answer("emulatedDeviceDescribe", EMULATED_INVALID_DEVICE, "");
    const uint32_t wave_size = emulated_wave_size(index);
    snprintf(info->id, sizeof info->id, "emulator:%u", wave_size);
    snprintf(info->name, sizeof info->name, "Emulated GPU with waves of %u lanes", wave_size);
    text_copy(info->arch, sizeof info->arch, "emulated");
    text_copy(info->driver_version, sizeof info->driver_version, WW_VERSION_TEXT);
    info->wave_size = (int32_t)wave_size;
    info->compute_units = 3; /* not a power of two, as on many cards */
    info->max_threads_per_block = EMULATOR_MAX_THREADS;
    info->shared_bytes_per_block = EMULATOR_SHARED_BYTES;
    info->memory_total_bytes = emulated_memory_total();
    return EMULATED_OK;
}

/* A chip's limits, unless a test sets smaller ones to check that work is divided. */
static int64_t limit_of(const char *variable, int64_t max)
{
    const char *asked = getenv(variable);
    const int64_t wanted = asked != NULL ? strtoll(asked, NULL, 10) : 0;
    return wanted > 0 && wanted < max ? wanted : max;
}

int emulated_launch_limits(int32_t index, driver_launch_limits *out)
{
    if (!is_device(index))
        return emulated_answer("emulatedLaunchLimits", EMULATED_INVALID_DEVICE, "");
    *out = (driver_launch_limits){.grid = {limit_of("WARPWAVE_EMULATOR_BLOCKS_X", INT32_MAX),
                                           limit_of("WARPWAVE_EMULATOR_BLOCKS_Y", EMULATOR_MAX_GRID_Y), 1},
                                  .block = {EMULATOR_MAX_THREADS, 1, 1},
                                  .threads = {limit_of("WARPWAVE_EMULATOR_THREADS_X", INT64_MAX), INT64_MAX, INT64_MAX}};
    return EMULATED_OK;
}

/* ---- code ---------------------------------------------------------------------------------------------------------------- */

static const char ELF[] = {0x7f, 'E', 'L', 'F'};

/* The library's own kernels, which are found by name in any module, or an object with its own kernels. */
typedef struct emulated_module {
    void *object;
} emulated_module;

static int emulated_module_load(const void *image, size_t bytes, driver_module *out)
{
    int number = EMULATED_OK;
    if (emulated_here_or("emulatedModuleLoad", &number) == NULL)
        return number;
    emulated_module *made = calloc(1, sizeof *made);
    if (made == NULL)
        return emulated_answer("emulatedModuleLoad", EMULATED_OUT_OF_MEMORY, "");
    if (bytes > sizeof ELF && memcmp(image, ELF, sizeof ELF) == 0) {
        char why[EMULATED_DETAIL_BYTES] = "";
        made->object = emulator_object_load(image, bytes, why, sizeof why);
        if (made->object == NULL) {
            free(made);
            return emulated_answer("emulatedModuleLoad", EMULATED_INVALID_IMAGE, why);
        }
    }
    atomic_fetch_add(&modules_alive, 1);
    *out = (driver_module)made;
    return EMULATED_OK;
}

static int emulated_module_unload(driver_module module)
{
    emulator_object_unload(((emulated_module *)module)->object);
    free(module);
    atomic_fetch_sub(&modules_alive, 1);
    return EMULATED_OK;
}

static int emulated_function_find(driver_module module, const char *name, driver_function *out)
{
    void *object = module != NULL ? ((emulated_module *)module)->object : NULL;
    const emulated_kernel *kernel = object != NULL ? emulator_object_find(object, name) : emulator_find(name);
    if (module == NULL || kernel == NULL)
        return emulated_answer("emulatedFunctionFind", EMULATED_NOT_FOUND, name);
    *out = (driver_function)kernel;
    return EMULATED_OK;
}

static int emulated_function_limits(driver_function function, driver_function_limits *out)
{
    const emulated_kernel *kernel = (const emulated_kernel *)function;
    *out = (driver_function_limits){.threads_per_block_max = (int32_t)kernel->max_threads,
                                    .shared_dynamic_bytes_max = EMULATOR_SHARED_BYTES,
                                    .arguments_bytes = (int64_t)kernel->args_bytes};
    return EMULATED_OK;
}

static int emulated_function_arguments(driver_function function, int64_t *bytes)
{
    *bytes = (int64_t)((const emulated_kernel *)function)->args_bytes;
    return EMULATED_OK;
}

/* ---- what a number means ------------------------------------------------------------------------------------------------- */

static const char *emulated_error_name(int number)
{
    switch (number) {
    case EMULATED_INVALID_VALUE:
        return "EMULATED_INVALID_VALUE";
    case EMULATED_OUT_OF_MEMORY:
        return "EMULATED_OUT_OF_MEMORY";
    case EMULATED_INVALID_DEVICE:
        return "EMULATED_INVALID_DEVICE";
    case EMULATED_INVALID_IMAGE:
        return "EMULATED_INVALID_IMAGE";
    case EMULATED_NO_CONTEXT:
        return "EMULATED_NO_CONTEXT";
    case EMULATED_INVALID_HANDLE:
        return "EMULATED_INVALID_HANDLE";
    case EMULATED_NOT_FOUND:
        return "EMULATED_NOT_FOUND";
    case EMULATED_NOT_READY:
        return "EMULATED_NOT_READY";
    case EMULATED_ILLEGAL_ADDRESS:
        return "EMULATED_ILLEGAL_ADDRESS";
    case EMULATED_LAUNCH_FAILED:
        return "EMULATED_LAUNCH_FAILED";
    default:
        return "an error without a name";
    }
}

static driver_error emulated_error_class(int number)
{
    switch (number) {
    case EMULATED_OUT_OF_MEMORY:
        return DRIVER_ERROR_MEMORY;
    case EMULATED_NOT_FOUND:
        return DRIVER_ERROR_NOT_FOUND;
    case EMULATED_INVALID_IMAGE:
        return DRIVER_ERROR_IMAGE;
    case EMULATED_ILLEGAL_ADDRESS:
    case EMULATED_LAUNCH_FAILED:
        return DRIVER_ERROR_LOST;
    default:
        return DRIVER_ERROR_OTHER;
    }
}

/* ---- chips --------------------------------------------------------------------------------------------------------------- */

/* Every kernel is here. Devices use those that suit every chip; tests have them use the others (tests/support/pretend). */
#define EVERY_CHIP .sm_80_code = true, .fast_f16 = true, .matrix_f16 = true, .matrix_f32 = true, .gemv_one = true

static const chip_capabilities *emulated_capabilities(int32_t wave_size)
{
    static const chip_capabilities narrow = {EVERY_CHIP};
    static const chip_capabilities wide = {EVERY_CHIP, .mfma = true, .conv_halves = true, .quant_slabs = true};
    return wave_size == 64 ? &wide : &narrow;
}

const gpu_driver emulated_driver = {
    .code = DRIVER_CODE_HOST,
    .code_in_words = "a shared object of the host's compiler",
    .backend = "emulator",
    .vendor = "emulated",
    .api = "emulator",
    .library = "",
    .started_in = &emulated_started_in,
    .capabilities = emulated_capabilities,
    .load = emulated_load,
    .device_count = emulated_device_count,
    .device_describe = emulated_device_describe,
    .launch_limits = emulated_launch_limits,
    .context_create = emulated_context_create,
    .context_destroy = emulated_context_destroy,
    .context_swap = emulated_context_swap,
    .memory_info = emulated_memory_info,
    .memory_alloc = emulated_memory_alloc,
    .memory_free = emulated_memory_free,
    .pinned_alloc = emulated_pinned_alloc,
    .pinned_free = emulated_pinned_free,
    .copy_in = emulated_copy_in,
    .copy_out = emulated_copy_out,
    .copy = emulated_copy,
    .fill32 = emulated_fill32,
    .stream_create = emulated_stream_create,
    .stream_destroy = emulated_stream_destroy,
    .stream_synchronize = emulated_stream_synchronize,
    .event_create = emulated_event_create,
    .event_destroy = emulated_event_destroy,
    .event_record = emulated_event_record,
    .stream_wait = emulated_stream_wait,
    .event_synchronize = emulated_event_synchronize,
    .event_elapsed = emulated_event_elapsed,
    .capture_begin = emulated_capture_begin,
    .capture_end = emulated_capture_end,
    .graph_launch = emulated_graph_launch,
    .graph_destroy = emulated_graph_destroy,
    .module_load = emulated_module_load,
    .module_unload = emulated_module_unload,
    .function_find = emulated_function_find,
    .function_limits = emulated_function_limits,
    .function_arguments = emulated_function_arguments,
    .launch = emulated_launch,
    .error_name = emulated_error_name,
    .error_class = emulated_error_class,
    .failure = emulated_failure,
};
