/* The public functions about a group's members: their shares, and dropping a lost one. */
#include <stdio.h>
#include <string.h>

#include <warpwave/device.h>

#include "base/float_guard.h"
#include "base/status.h"
#include "base/structs.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "device/group/group.h"

STRUCT_INIT(ww_member_info, {0})

/* ---- describing a group -------------------------------------------------------------------------------------------------- */

/* A hash of the members' ids, to tell names apart that are too long. */
static uint32_t hash_of(const group_device *group)
{
    uint64_t hash = FNV_BEGIN;
    for (int32_t m = 0; m < group->count; m++) {
        const char *id = group->members[m].device->info.id;
        if (member_is_in(&group->members[m]))
            hash = fnv_bytes(hash, id, strlen(id));
    }
    return (uint32_t)hash;
}

/* "cuda:0+cpu". A name that does not fit ends in "+..." and a hash of the members. */
static void name_group(const group_device *group, char *id, size_t capacity)
{
    size_t length = 0;
    bool fits = true;
    char tail[16];
    const int tail_length = snprintf(tail, sizeof tail, "+...%08x", hash_of(group));
    id[0] = '\0';
    for (int32_t m = 0; m < group->count; m++) {
        const char *name = group->members[m].device->info.id;
        const size_t more = strlen(name) + (length > 0);
        if (!member_is_in(&group->members[m]))
            continue;
        fits = fits && length + more < capacity;
        if (!fits)
            break;
        length += (size_t)snprintf(id + length, capacity - length, "%s%s", length > 0 ? "+" : "", name);
    }
    if (fits)
        return;
    while (length + (size_t)tail_length >= capacity) { /* back to the end of a member's name */
        char *plus = strrchr(id, '+');
        if (!plus)
            break;
        *plus = '\0';
        length = strlen(id);
    }
    text_append(id, capacity, tail);
}

/* "cuda:0 75.0%, cpu 25.0%" */
static void list_members(group_device *group, char *text, size_t capacity)
{
    double shares[MEMBERS_MAX];
    group_shares(group, shares);
    text_copy(text, capacity, "");
    for (int32_t m = 0; m < group->count; m++) {
        char one[64];
        const char *id = group->members[m].device->info.id;
        if (member_is_in(&group->members[m]))
            snprintf(one, sizeof one, "%s%s %.1f%%", m > 0 ? ", " : "", id, 100 * shares[m]);
        else
            snprintf(one, sizeof one, "%s%s dropped", m > 0 ? ", " : "", id);
        if (strlen(text) + strlen(one) + sizeof ", and 64 more" > capacity) {
            snprintf(one, sizeof one, ", and %d more", group->count - m);
            text_append(text, capacity, one);
            return;
        }
        text_append(text, capacity, one);
    }
}

void group_describe_open(ww_device *device, ww_device_info *info)
{
    group_device *group = group_of(device);
    int32_t inside = 0;
    text_copy(info->backend, sizeof info->backend, "group");
    text_copy(info->kernels, sizeof info->kernels, "each member's own");
    info->compute_units = 0;
    for (int32_t m = 0; m < group->count; m++) {
        const ww_device_info *one = &group->members[m].device->info;
        if (!member_is_in(&group->members[m]))
            continue;
        inside++;
        info->compute_units += one->compute_units;
        text_copy(info->vendor, sizeof info->vendor,
                  inside == 1 || strcmp(info->vendor, one->vendor) == 0 ? one->vendor : "several");
        text_copy(info->arch, sizeof info->arch, inside == 1 || strcmp(info->arch, one->arch) == 0 ? one->arch : "several");
    }
    info->wave_size = 1; /* it runs no kernels of callers */
    info->max_threads_per_block = 1;
    info->member_count = inside;
    snprintf(info->name, sizeof info->name, "a group of %d devices", inside);
    name_group(group, info->id, sizeof info->id);
    list_members(group, info->members, sizeof info->members);
}

/* ---- public -------------------------------------------------------------------------------------------------------------- */

/* A device that is not a group is its only member. */
static ww_member_info member_of(ww_device *device, int32_t m)
{
    ww_member_info info = ww_member_info_default();
    if (!device->backend->member_id) {
        text_copy(info.id, sizeof info.id, device->info.id);
        info.share = 1;
        return info;
    }
    double shares[MEMBERS_MAX];
    group_device *group = group_of(device);
    const group_member *member = &group->members[m];
    group_shares(group, shares);
    text_copy(info.id, sizeof info.id, member->device->info.id);
    info.share = shares[m];
    info.dropped = !member_is_in(member);
    info.rows_capacity = atomic_load(&member->rows);
    info.bytes = atomic_load(&member->rows_bytes);
    return info;
}

ww_status ww_device_members(ww_device *device, ww_member_info *infos, size_t capacity, size_t *count)
{
    FLOAT_GUARD();
    if (!device || !count || (!infos && capacity > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_members: %s is NULL", !device ? "device" : count ? "infos" : "count");
    ww_status status = device_check(device);
    if (status == WW_OK && device->backend->member_id)
        (void)group_measure(group_of(device)); /* if a member cannot be measured, its share is a guess */
    const int32_t members = device->backend->member_id ? group_of(device)->count : 1;
    for (int32_t m = 0; status == WW_OK && m < members && (size_t)m < capacity; m++) {
        const ww_member_info info = member_of(device, m);
        status = struct_write((char *)infos + (size_t)m * infos->struct_size, &info, sizeof info, "ww_device_members",
                              "ww_member_info");
    }
    if (status == WW_OK)
        *count = (size_t)members;
    return status;
}

ww_status ww_device_drop(ww_device *device, const char *member)
{
    FLOAT_GUARD();
    if (!device || !member)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_drop: %s is NULL", device ? "member" : "device");
    const ww_status status = device_check(device);
    if (status != WW_OK)
        return status;
    if (!device->backend->member_id)
        return ww_fail(WW_UNSUPPORTED, "ww_device_drop: %s is one device; only a group can go on without a member",
                       device->info.id);
    group_device *group = group_of(device);
    int32_t named = 0, left = 0;
    pthread_mutex_lock(&group->measuring); /* so that two calls do not drop all members */
    for (int32_t m = 0; m < group->count; m++) {
        const bool it = strcmp(group->members[m].device->info.id, member) == 0;
        named += it;
        left += !it && member_is_in(&group->members[m]);
    }
    for (int32_t m = 0; named > 0 && left > 0 && m < group->count; m++)
        if (strcmp(group->members[m].device->info.id, member) == 0)
            atomic_store(&group->members[m].dropped, true);
    pthread_mutex_unlock(&group->measuring);
    if (named == 0)
        return ww_fail(WW_NOT_FOUND, "ww_device_drop: %s has no member '%s'", device->info.id, member);
    if (left == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_drop: '%s' is the last member of %s; close the group instead", member,
                       device->info.id);
    return WW_OK;
}
