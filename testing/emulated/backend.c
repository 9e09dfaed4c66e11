/* The backend "emulator": the GPU backend over the emulated driver, in builds with tests. */
#include "gpu/backend.h"
#include "emulated/emulated.h"

static ww_status emulator_count(int32_t *count)
{
    return gpu_count(&emulated_driver, count);
}

static ww_status emulator_describe(int32_t index, ww_device_info *info)
{
    return gpu_describe(&emulated_driver, index, info);
}

static ww_status emulator_open(int32_t index, ww_device **device)
{
    return gpu_open(&backend_emulator, &emulated_driver, index, device);
}

const backend backend_emulator = {.name = "emulator",
                                  .by_name_only = true,
                                  .count = emulator_count,
                                  .describe = emulator_describe,
                                  .open = emulator_open,
                                  GPU_BACKEND_COMMON};

/* The name under which the registry of devices finds it (src/device/registry.c). */
extern const backend backend_added __attribute__((alias("backend_emulator"), visibility("hidden")));
