/* Parses names of several devices: parts separated by '+', each a device, all devices of a backend ("rocm:*"), or all GPUs
 * ("all"). */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "device/group/group.h"

enum { NAME_BYTES = 64 };

typedef struct name_list {
    char names[MEMBERS_MAX][NAME_BYTES];
    int32_t count;
    const char *whole; /* for messages */
} name_list;

bool group_is_named(const char *name)
{
    return strchr(name, '+') || strchr(name, '*') || strcmp(name, "all") == 0;
}

static ww_status add_name(name_list *list, const char *name)
{
    if (list->count == MEMBERS_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "device '%s' has more than %d members", list->whole, MEMBERS_MAX);
    text_copy(list->names[list->count++], NAME_BYTES, name);
    return WW_OK;
}

/* Adds all devices of a backend. If the backend has none, it adds nothing. */
static ww_status add_all_of(name_list *list, const backend *b)
{
    int32_t devices = 0;
    ww_status status = b->count(&devices);
    if (status == WW_OTHER_PROCESS)
        return status;
    if (status != WW_OK)
        return WW_OK; /* a backend that fails has no devices, as in ww_devices() */
    for (int32_t i = 0; status == WW_OK && i < devices; i++) {
        ww_device_info info = ww_device_info_default();
        status = b->describe(i, &info);
        if (status == WW_OK)
            status = add_name(list, info.id);
    }
    return status;
}

/* Adds all GPUs. */
static ww_status add_gpus(name_list *list)
{
    const int32_t before = list->count;
    ww_status status = WW_OK;
    for (const backend *const *b = backends; status == WW_OK && *b; b++)
        if (!(*b)->on_host && !(*b)->by_name_only)
            status = add_all_of(list, *b);
    if (status == WW_OK && list->count == before)
        status =
            ww_fail(WW_NO_DEVICE, "no device '%s': \"all\" is every GPU, and there is none; \"auto\" takes the best device",
                    list->whole);
    return status;
}

static ww_status add_backend(name_list *list, const char *name, size_t length)
{
    const int32_t before = list->count;
    for (const backend *const *b = backends; *b; b++) {
        if (strlen((*b)->name) != length || strncmp((*b)->name, name, length) != 0)
            continue;
        const ww_status status = add_all_of(list, *b);
        if (status != WW_OK || list->count > before)
            return status;
        return ww_fail(WW_NO_DEVICE, "no device '%s': %s has none: %s", list->whole, (*b)->name,
                       ww_backend_absence((*b)->name));
    }
    return ww_fail(WW_NO_DEVICE, "no device '%s': unknown backend '%.*s'", list->whole, (int)length, name);
}

static ww_status add_part(name_list *list, const char *part)
{
    const size_t length = strlen(part);
    if (length == 0 || strcmp(part, "auto") == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "device '%s': a group names each member, as in \"cuda:0+cuda:1\"; %s", list->whole,
                       length == 0 ? "a name is missing" : "\"auto\" is not a name");
    if (strcmp(part, "all") == 0)
        return add_gpus(list);
    if (length > 2 && strcmp(part + length - 2, ":*") == 0)
        return add_backend(list, part, length - 2);
    return add_name(list, part);
}

static ww_status list_names(name_list *list, const char *name)
{
    ww_status status = WW_OK;
    list->whole = name;
    for (const char *rest = name; status == WW_OK && rest;) {
        char part[NAME_BYTES];
        const size_t length = strcspn(rest, "+");
        if (length >= sizeof part)
            return ww_fail(WW_NO_DEVICE, "no device '%.*s'", (int)length, rest);
        snprintf(part, sizeof part, "%.*s", (int)length, rest);
        status = add_part(list, part);
        rest = rest[length] == '+' ? rest + length + 1 : NULL;
    }
    return status;
}

/* A device that is named twice is opened only once: it has one memory and, if it is the CPU, one set of threads. */
static ww_status open_part(const name_list *list, int32_t number, open_by_name open, ww_device **devices)
{
    const char *name = list->names[number];
    ww_device *made = NULL;
    for (int32_t i = 0; i < number; i++)
        if (strcmp(list->names[i], name) == 0 || strcmp(devices[i]->info.id, name) == 0) {
            devices[number] = device_retain(devices[i]);
            return WW_OK;
        }
    const ww_status status = open(name, &made);
    if (status != WW_OK)
        return status;
    for (int32_t i = 0; i < number; i++) /* "cuda" and "cuda:0" are the same */
        if (strcmp(devices[i]->info.id, made->info.id) == 0) {
            ww_device_close(made);
            made = device_retain(devices[i]);
            break;
        }
    devices[number] = made;
    return WW_OK;
}

ww_status group_open(const char *name, open_by_name open, ww_device **device)
{
    name_list list = {.count = 0};
    ww_device *devices[MEMBERS_MAX] = {NULL};
    int32_t opened = 0;
    ww_status status = list_names(&list, name);
    while (status == WW_OK && opened < list.count) {
        status = open_part(&list, opened, open, devices);
        opened += status == WW_OK;
    }
    if (status == WW_OK && opened > 1)
        return group_make(devices, opened, device);
    if (status == WW_OK) {
        *device = devices[0];
        return WW_OK;
    }
    while (opened > 0)
        ww_device_close(devices[--opened]);
    return status;
}
