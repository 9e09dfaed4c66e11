/* `warpwave devices`: what there is to compute on, what is not there and why, and which chips have kernels. */
#include <stdio.h>
#include <string.h>
#include <warpwave/device.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json.h"

typedef struct devices_settings {
    bool json;
} devices_settings;

static const char *const backend_names[] = {"cuda", "rocm", "emulator"};

enum { BACKEND_COUNT = sizeof backend_names / sizeof *backend_names };

static json_t *device_json(const ww_device_info *info)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", /**/
                     "id", info->id, "name", info->name, "vendor", info->vendor, "backend", info->backend, "index", info->index,
                     "arch", info->arch, "instruction_sets", info->instruction_sets, "kernels", info->kernels, "driver_version",
                     info->driver_version, "pci_address", info->pci_address, "wave_size", info->wave_size, "compute_units",
                     info->compute_units, "max_threads_per_block", info->max_threads_per_block, "shared_bytes_per_block",
                     (json_int_t)info->shared_bytes_per_block, "memory_total_bytes", (json_int_t)info->memory_total_bytes,
                     "memory_free_bytes", (json_int_t)info->memory_free_bytes, "memory_used_bytes",
                     (json_int_t)info->memory_used_bytes);
}

static ww_status print_json(const ww_device_info *infos, size_t count)
{
    json_t *devices = json_array(), *kernels = json_array(), *absent = json_object();
    int failed = 0;
    for (size_t i = 0; i < count; i++)
        failed |= json_array_append_new(devices, device_json(&infos[i]));
    for (size_t i = 0; i < ww_kernel_chip_count(); i++)
        failed |= json_array_append_new(kernels, json_string(ww_kernel_chip(i)));
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const char *reason = ww_backend_absence(backend_names[i]);
        if (*reason)
            failed |= json_object_set_new(absent, backend_names[i], json_string(reason));
    }
    json_t *report =
        json_pack("{s:s, s:o, s:o, s:o}", "version", ww_version(), "devices", devices, "kernels", kernels, "absent", absent);
    if (failed) {
        json_decref(report);
        report = NULL;
    }
    return json_print(report);
}

static void print_line(const char *label, const char *value)
{
    if (*value)
        printf("  %-18s %s\n", label, value);
}

static void print_device(const ww_device_info *info)
{
    char text[128], free_bytes[32], total_bytes[32];
    printf("%s: %s\n", info->id, info->name);
    print_line("vendor", info->vendor);
    print_line("arch", info->arch);
    print_line("instruction sets", info->instruction_sets);
    snprintf(text, sizeof text, "%d", info->compute_units);
    print_line(strcmp(info->backend, "cpu") == 0 ? "cores" : "compute units", text);
    snprintf(text, sizeof text, "%s free of %s", human_bytes(free_bytes, info->memory_free_bytes),
             human_bytes(total_bytes, info->memory_total_bytes));
    print_line("memory", text);
    if (info->wave_size > 1) {
        snprintf(text, sizeof text, "%d lanes", info->wave_size);
        print_line("wave", text);
        snprintf(text, sizeof text, "at most %d threads, %s shared", info->max_threads_per_block,
                 human_bytes(total_bytes, info->shared_bytes_per_block));
        print_line("block", text);
    }
    print_line("driver", info->driver_version);
    print_line("PCI address", info->pci_address);
    print_line("kernels", info->kernels);
}

static void print_text(const ww_device_info *infos, size_t count)
{
    for (size_t i = 0; i < count; i++)
        print_device(&infos[i]);
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const char *reason = ww_backend_absence(backend_names[i]);
        if (strcmp(backend_names[i], "emulator") != 0 && ww_kernel_chip_count() > 0 && *reason)
            printf("%s: %s\n", backend_names[i], reason);
    }
    if (ww_kernel_chip_count() == 0) {
        printf("%s\n", ww_backend_absence("cuda")); /* that there are no kernels, and why */
        return;
    }
    printf("GPU kernels in this library:");
    for (size_t i = 0; i < ww_kernel_chip_count(); i++)
        printf(" %s", ww_kernel_chip(i));
    printf("\n");
}

static ww_status list(const devices_settings *settings)
{
    size_t count = 0;
    ww_device_info *infos = NULL;
    /* There is always a CPU, unless WARPWAVE_ISA or WARPWAVE_THREADS is wrong; a list without it would not say so. */
    ww_device *cpu = NULL;
    ww_status status = command_open_device("cpu", &cpu);
    ww_device_close(cpu);
    if (status == WW_OK)
        status = ww_devices(NULL, 0, &count);
    if (status == WW_OK) {
        infos = memory_alloc_zeroed(count, sizeof *infos);
        if (!infos)
            status = memory_failed("the list of devices", count * sizeof *infos);
    }
    if (status == WW_OK) {
        const size_t room = count;
        for (size_t i = 0; i < room; i++)
            infos[i] = ww_device_info_default();
        status = ww_devices(infos, room, &count);
        count = min_size(count, room);
    }
    if (status == WW_OK && settings->json)
        status = print_json(infos, count);
    else if (status == WW_OK)
        print_text(infos, count);
    memory_free(infos);
    return status;
}

static exit_code devices_run(const char *const *arguments, size_t count)
{
    devices_settings settings = {0};
    const exit_code code = command_parse(&command_devices, arguments, count, &settings);
    return code != EXIT_CODE_OK ? code : command_end(&command_devices, list(&settings));
}

static const option options[] = {
    OPTION_IS_FLAG(devices_settings, json, "--json", "one JSON object: version, devices, kernels, absent"),
};

const command command_devices = {
    .name = "devices",
    .summary = "List the devices of this machine, and say why others are missing",
    .notes =
        "The first line of each device starts with the name that --device takes. 'auto' is the first CUDA device, then the\n"
        "first ROCm device, then the CPU; the environment variable WARPWAVE_DEVICE changes that.\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = devices_run,
};
