/* Overrides the capabilities and constants of a device's chip. */
#include "support/pretend/pretend.h"

#include <stdio.h>
#include <string.h>

#include "gpu/device.h"
#include "gpu/module.h"

static gpu_device *gpu_or_null(ww_device *device)
{
    static const char *const names[] = {"cuda", "rocm", "emulator"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(device->backend->name, names[i]) == 0)
            return gpu_of(device);
    return NULL;
}

device_tuning *pretend_tuning(ww_device *device)
{
    return &device->tuning;
}

void pretend_screen(ww_device *device, bool always)
{
    gpu_device *gpu = gpu_or_null(device);
    device->tuning.screen = device->tuning.planes = always ? TUNING_ALWAYS : TUNING_AUTO;
    if (gpu == NULL)
        return;
    const chip_constants *real = &chip_find(device->info.arch)->constants;
    gpu->constants.screen_sample_buckets = always ? 1 : real->screen_sample_buckets;
    gpu->constants.screen_sample_tiles = always ? 1 : real->screen_sample_tiles;
}

void pretend_three_stages(ww_device *device, bool always)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu == NULL)
        return;
    const chip_constants *real = &chip_find(device->info.arch)->constants;
    gpu->constants.three_stages_numbers = always ? 0 : real->three_stages_numbers;
    gpu->constants.three_stages_tiles = always ? 3 : real->three_stages_tiles;
}

/* The chip that the device's code is for. */
static const chip_family *chip_of(const ww_device *device)
{
    char code[32] = "";
    return chip_find(sscanf(device->info.kernels, "embedded %31s", code) == 1 ? code : device->info.arch);
}

/* True if `has` is, and the device is emulated or really has it. */
static bool may_have(const gpu_device *gpu, bool has, bool really)
{
    return has && (gpu->driver->capabilities || really);
}

void pretend_sm_90a(ww_device *device, bool has)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu)
        gpu->capabilities.sm_90a_code = may_have(gpu, has, chip_of(device)->has.sm_90a_code);
}

void pretend_small_streams(ww_device *device)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu)
        gpu->constants.stream_queries = gpu->constants.stream_teams = 1;
}

void pretend_mfma(ww_device *device, bool has)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu)
        gpu->capabilities.mfma = may_have(gpu, has, chip_of(device)->has.mfma);
}

void pretend_no_mma(ww_device *device)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu)
        gpu->capabilities.sm_80_code = false;
}

void pretend_large_tensors(ww_device *device, bool large)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu)
        gpu->constants.narrow_count_max = large ? 0 : chip_find(device->info.arch)->constants.narrow_count_max;
}

void pretend_gemv_one(ww_device *device, bool has)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu)
        gpu->capabilities.gemv_one = may_have(gpu, has, chip_of(device)->has.gemv_one);
}

void pretend_gemv_splits(ww_device *device, int32_t splits)
{
    gpu_device *gpu = gpu_or_null(device);
    if (gpu)
        gpu->constants.quant_gemv_splits = splits;
}

void pretend_nothing(ww_device *device)
{
    gpu_device *gpu = gpu_or_null(device);
    device->tuning = (device_tuning){0};
    if (gpu)
        gpu_take_chip(gpu, chip_of(device)->prefix);
}
