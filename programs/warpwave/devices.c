/* `warpwave devices`: the devices of this machine, the backends that are missing and why, and the chips that have kernels. */
#include <stdio.h>
#include <string.h>
#include <warpwave/device.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

typedef struct devices_settings {
    const char *device; /* NULL: all devices */
    bool json;
} devices_settings;

static const char *const backend_names[] = {"cuda", "rocm"};

enum { BACKEND_COUNT = sizeof backend_names / sizeof *backend_names };

static void device_json(json_writer *w, const ww_device_info *info)
{
    json_open(w, NULL, '{');
    json_put_text(w, "id", info->id);
    json_put_text(w, "name", info->name);
    json_put_text(w, "vendor", info->vendor);
    json_put_text(w, "backend", info->backend);
    json_put_integer(w, "index", info->index);
    json_put_text(w, "arch", info->arch);
    json_put_text(w, "instruction_sets", info->instruction_sets);
    json_put_text(w, "kernels", info->kernels);
    json_put_text(w, "driver_version", info->driver_version);
    json_put_text(w, "pci_address", info->pci_address);
    json_put_integer(w, "wave_size", info->wave_size);
    json_put_integer(w, "compute_units", info->compute_units);
    json_put_integer(w, "max_threads_per_block", info->max_threads_per_block);
    json_put_integer(w, "shared_bytes_per_block", info->shared_bytes_per_block);
    json_put_integer(w, "memory_total_bytes", info->memory_total_bytes);
    json_put_integer(w, "memory_free_bytes", info->memory_free_bytes);
    json_put_integer(w, "memory_used_bytes", info->memory_used_bytes);
    if (info->member_count > 0) {
        json_put_integer(w, "member_count", info->member_count);
        json_put_text(w, "members", info->members);
    }
    if (*info->passed_over)
        json_put_text(w, "passed_over", info->passed_over);
    json_close(w);
}

static void print_json(const ww_device_info *infos, size_t count)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_text(&w, "version", ww_version());
    json_open(&w, "devices", '[');
    for (size_t i = 0; i < count; i++)
        device_json(&w, &infos[i]);
    json_close(&w);
    json_open(&w, "kernels", '[');
    for (size_t i = 0; i < ww_kernel_chip_count(); i++)
        json_put_text(&w, NULL, ww_kernel_chip(i));
    json_close(&w);
    json_open(&w, "absent", '{');
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const char *reason = ww_backend_absence(backend_names[i]);
        if (*reason)
            json_put_text(&w, backend_names[i], reason);
    }
    json_close(&w);
    json_close(&w);
}

static void print_line(const char *label, const char *value)
{
    if (!*value)
        return;
    printf("  %-18s ", label);
    print_plain(stdout, value);
    putchar('\n');
}

static void print_device(const ww_device_info *info)
{
    char text[128], free_bytes[32], total_bytes[32];
    command_print_device(stdout, info);
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
    print_line("members", info->members);
    print_line("driver", info->driver_version);
    print_line("PCI address", info->pci_address);
    print_line("kernels", info->kernels);
}

/* The reason may quote environment variables. */
static void print_absence(const char *backend, const char *reason)
{
    printf("%s%s", backend, *backend ? ": " : "");
    print_plain(stdout, reason);
    putchar('\n');
}

/* Without kernels CUDA's reason is that, and it comes last. ROCm can compile them, so its reason is its own. */
static void print_text(const ww_device_info *infos, size_t count)
{
    const bool has_kernels = ww_kernel_chip_count() > 0;
    for (size_t i = 0; i < count; i++)
        print_device(&infos[i]);
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const char *reason = ww_backend_absence(backend_names[i]);
        if (*reason && (has_kernels || strcmp(backend_names[i], "cuda") != 0))
            print_absence(backend_names[i], reason);
    }
    if (!has_kernels) {
        print_absence("", ww_backend_absence("cuda"));
        return;
    }
    printf("GPU kernels in this library:");
    for (size_t i = 0; i < ww_kernel_chip_count(); i++)
        printf(" %s", ww_kernel_chip(i));
    printf("\n");
}

/* Describes one device or group. Opens it, because the shares of a group's members are measured then. */
static ww_status show(const devices_settings *settings)
{
    ww_device *device = NULL;
    ww_device_info info = ww_device_info_default();
    size_t members = 0;
    ww_status status = command_open_device(settings->device, &device);
    if (status == WW_OK)
        status = ww_device_members(device, NULL, 0, &members);
    if (status == WW_OK)
        status = ww_device_describe(device, &info);
    ww_device_close(device);
    if (status == WW_OK && settings->json)
        print_json(&info, 1);
    else if (status == WW_OK)
        print_device(&info);
    return status;
}

static ww_status list(const devices_settings *settings)
{
    if (settings->device)
        return show(settings);
    size_t count = 0;
    ww_device_info *infos = NULL;
    /* A CPU is always there, unless WARPWAVE_ISA or WARPWAVE_THREADS is wrong. Without this check the list would hide that. */
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
        print_json(infos, count);
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
    OPTION_IS_TEXT(devices_settings, device, false, "--device", "D",
                   "only this one, or this group: \"cuda:0+cpu\", \"rocm:*\", \"all\"; with each member's share of the rows"),
    OPTION_IS_FLAG(devices_settings, json, "--json", "one JSON object: version, devices, kernels, absent"),
};

const command command_devices = {
    .name = "devices",
    .summary = "List the devices of this machine, and say why others are missing",
    .notes = "The first line of each device starts with the name that --device takes. 'auto' is the first that opens of\n"
             "the CUDA devices, the ROCm devices and the CPU; the environment variable WARPWAVE_DEVICE changes that. Names\n"
             "joined by '+' are a group, which searches as one device: 'cuda:0+cuda:1', 'cuda:0+cpu', 'rocm:*' (all of\n"
             "them), 'all' (every GPU).\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = devices_run,
};
