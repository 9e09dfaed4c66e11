/* The backends of this build. Finds and opens devices by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/status.h"
#include "base/structs.h"
#include "base/text.h"
#include "device/backend.h"
#include "device/group/group.h"
#include "device/share.h"
#include "gpu/backend.h"

extern const backend backend_cpu;
/* A further backend, opened only by its name, of a program that links one with the library's objects: tests have an emulated
 * GPU. */
extern const backend backend_added __attribute__((weak, visibility("hidden")));

const backend *const backends[] = {
    &backend_cuda, &backend_rocm, &backend_cpu, &backend_added, /* NULL in the library that users get */
    NULL,
};

enum {
    LIST_BYTES = 512,
    REASON_BYTES = 120 /* of a message, so that the reasons of four devices fit in ww_device_info.passed_over */
};

/* Returns how many devices a backend has. A backend that fails has none; the thread's message says why. */
static int32_t devices_of(const backend *b)
{
    int32_t count = 0;
    return b->count(&count) == WW_OK && count > 0 ? count : 0;
}

static const backend *find_backend(const char *name, size_t length)
{
    for (const backend *const *b = backends; *b; b++)
        if (strlen((*b)->name) == length && strncmp((*b)->name, name, length) == 0)
            return *b;
    return NULL;
}

ww_status ww_devices(ww_device_info *infos, size_t capacity, size_t *count)
{
    FLOAT_GUARD();
    if (!count || (!infos && capacity > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_devices: %s is NULL", count ? "infos" : "count");
    size_t found = 0;
    ww_status broken = WW_OK; /* a device that cannot be described counts as absent, unless it is the only one */
    for (const backend *const *b = backends; *b; b++) {
        const int32_t devices = devices_of(*b);
        for (int32_t i = 0; i < devices; i++) {
            ww_device_info info = ww_device_info_default();
            const ww_status status = (*b)->describe(i, &info);
            if (status != WW_OK) {
                broken = status;
                continue;
            }
            if (found < capacity &&
                struct_write((char *)infos + found * infos->struct_size, &info, sizeof info, "ww_devices", "ww_device_info"))
                return WW_INVALID_ARGUMENT;
            found++;
        }
    }
    *count = found;
    return found > 0 ? WW_OK : broken;
}

/* Writes "cuda:0, cpu" into `text`. */
static void list_devices(char *text, size_t capacity)
{
    text_copy(text, capacity, "");
    for (const backend *const *b = backends; *b; b++) {
        const int32_t devices = devices_of(*b);
        for (int32_t i = 0; i < devices; i++) {
            ww_device_info info = ww_device_info_default();
            if ((*b)->describe(i, &info) != WW_OK)
                continue;
            text_append(text, capacity, *text ? ", " : "");
            text_append(text, capacity, info.id);
        }
    }
}

static ww_status no_device(const char *name, const char *why)
{
    char reason[LIST_BYTES], list[LIST_BYTES];
    text_copy(reason, sizeof reason, why); /* a copy, because looking for devices may overwrite the message */
    const vendor_failure noted = vendor_failure_noted();
    list_devices(list, sizeof list);
    vendor_failure_note(&noted);
    return ww_fail(WW_NO_DEVICE, "no device '%s': %s; available: %s", name, *reason ? reason : "the backend has no device",
                   list);
}

/* Returns the backend's last message without its name in front, because messages that quote it already name the backend. */
static const char *absence_of(const backend *b)
{
    const char *message = ww_error_message();
    const size_t length = strlen(b->name);
    return strncmp(message, b->name, length) == 0 && strncmp(message + length, ": ", 2) == 0 ? message + length + 2 : message;
}

/* Returns the number after "cuda:" if it is the index of a device, otherwise -1; "cuda" means "cuda:0", and "cpu" "cpu:0". */
static int32_t number_in(const char *name, int32_t devices)
{
    const char *digits = strchr(name, ':');
    char *end = NULL;
    const long number = digits ? strtol(digits + 1, &end, 10) : 0;
    const bool whole = !digits || (end != digits + 1 && *end == '\0' && digits[1] >= '0' && digits[1] <= '9');
    return whole && number < devices ? (int32_t)number : -1;
}

static ww_status open_named(const char *name, ww_device **device)
{
    const backend *b = find_backend(name, strcspn(name, ":"));
    if (!b)
        return no_device(name, "unknown backend");
    int32_t devices = 0;
    const ww_status counted = b->count(&devices);
    if (counted == WW_OTHER_PROCESS)
        return counted;
    if (counted != WW_OK || devices == 0)
        return no_device(name, absence_of(b));
    const int32_t index = number_in(name, devices);
    if (index >= 0)
        return b->open(index, device); /* without describing the other devices, which may create a context on each */
    for (int32_t i = 0; i < devices; i++) {
        ww_device_info info = ww_device_info_default();
        const ww_status status = b->describe(i, &info);
        if (status != WW_OK)
            return status;
        if (strcmp(name, info.id) == 0)
            return b->open(i, device);
    }
    return no_device(name, "the backend has no such device");
}

/* Adds the reason why a device did not open to a list such as "cuda:0: out of memory; rocm:0: no kernels for gfx1036". */
static void note_failure(char *failures, size_t capacity, const backend *b, int32_t index)
{
    char id[32], reason[REASON_BYTES];
    snprintf(id, sizeof id, "%s:%d", b->name, (int)index);
    text_copy(reason, sizeof reason, ww_error_message());
    if (strlen(ww_error_message()) >= sizeof reason)
        text_copy(reason + sizeof reason - sizeof "...", sizeof "...", "...");
    const bool named = strstr(reason, id) != NULL; /* most messages start with the device */
    text_append(failures, capacity, *failures ? "; " : "");
    text_append(failures, capacity, named ? "" : id);
    text_append(failures, capacity, named ? "" : ": ");
    text_append(failures, capacity, reason);
}

/* Opens the first device that can be opened, in the order of backends. Devices that are busy, out of memory or without kernels
 * are skipped, and the info of the opened device says why. The added backend is only opened by name. */
static ww_status open_best(ww_device **device)
{
    char failures[sizeof(*device)->info.passed_over] = "";
    ww_status failed = WW_OK;
    for (const backend *const *b = backends; *b; b++) {
        int32_t devices = 0;
        ww_status status = *b != &backend_added ? (*b)->count(&devices) : WW_OK;
        for (int32_t i = 0; status == WW_OK && i < devices; i++) {
            status = (*b)->open(i, device);
            if (status == WW_OK) {
                text_copy((*device)->info.passed_over, sizeof(*device)->info.passed_over, failures);
                return WW_OK;
            }
            if (status == WW_OTHER_PROCESS)
                break;
            failed = failed == WW_OK ? status : failed;
            note_failure(failures, sizeof failures, *b, i);
            status = WW_OK;
        }
        if (status == WW_OTHER_PROCESS)
            return status; /* it does not open a slower device instead */
    }
    return failed == WW_OK ? no_device("auto", "no backend has a device")
                           : ww_fail(failed, "no device could be opened: %s", failures);
}

ww_status ww_device_open(const char *name, ww_device **device)
{
    FLOAT_GUARD();
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_open: device is NULL");
    *device = NULL;
    if (!name || strcmp(name, "auto") == 0) {
        const char *meant = getenv("WARPWAVE_DEVICE");
        name = meant && *meant ? meant : "auto";
    }
    if (group_is_named(name))
        return group_open(name, open_named, device);
    return strcmp(name, "auto") == 0 ? open_best(device) : open_named(name, device);
}

ww_device *device_retain(ww_device *device)
{
    atomic_fetch_add(&device->users, 1);
    return device;
}

ww_status device_share(ww_device *device, ww_device **shared)
{
    const ww_status status = device_check(device);
    if (status == WW_OK)
        *shared = device_retain(device);
    return status;
}

ww_status device_check_single(const ww_device *device, const char *what)
{
    if (!device->backend->member_id)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "%s is a group of devices, which supports collections but no %s; open one of its members",
                   device->info.id, what);
}

void ww_device_close(ww_device *device)
{
    if (device && device_is_ours(device) && atomic_fetch_sub(&device->users, 1) == 1)
        device->backend->close(device);
}

const char *ww_backend_absence(const char *name)
{
    const backend *b = name ? find_backend(name, strlen(name)) : NULL;
    if (!b) {
        (void)ww_fail(WW_NO_DEVICE, "unknown backend '%s'", name ? name : "");
        return ww_error_message();
    }
    int32_t count = 0;
    const ww_status status = b->count(&count);
    return status == WW_OK && count > 0 ? "" : absence_of(b);
}

ww_status ww_device_describe(ww_device *device, ww_device_info *info)
{
    FLOAT_GUARD();
    if (!device || !info)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_describe: %s is NULL", device ? "info" : "device");
    ww_device_info ours = device->info;
    ww_memory_info memory = ww_memory_info_default();
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = device->backend->memory(device, &memory);
    if (status != WW_OK)
        return status;
    if (device->backend->describe_open)
        device->backend->describe_open(device, &ours);
    ours.memory_total_bytes = memory.total_bytes;
    ours.memory_free_bytes = memory.free_bytes;
    ours.memory_used_bytes = memory.total_bytes - memory.free_bytes;
    return struct_write(info, &ours, sizeof ours, "ww_device_describe", "ww_device_info");
}

ww_status ww_device_memory(ww_device *device, ww_memory_info *memory)
{
    FLOAT_GUARD();
    if (!device || !memory)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_memory: %s is NULL", device ? "memory" : "device");
    ww_memory_info ours = ww_memory_info_default();
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = device->backend->memory(device, &ours);
    if (status != WW_OK)
        return status;
    return struct_write(memory, &ours, sizeof ours, "ww_device_memory", "ww_memory_info");
}

ww_status ww_device_trim(ww_device *device)
{
    FLOAT_GUARD();
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_trim: device is NULL");
    const ww_status status = device_check(device);
    return status == WW_OK ? device->backend->trim(device) : status;
}
