/* The group behind the backend interface: opening and closing, memory, buffers, streams and copies. */
#include "device/group/group.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

enum { REASON_BYTES = 640 };

/* ---- members ------------------------------------------------------------------------------------------------------------- */

ww_status member_failed(const group_device *group, int32_t member, ww_status status)
{
    char reason[REASON_BYTES];
    if (status == WW_OK || status == WW_CANCELLED)
        return status;
    text_copy(reason, sizeof reason, ww_error_message());
    const char *id = group->members[member].device->info.id;
    if (status == WW_DRIVER_ERROR)
        return ww_fail(status, "member %s of the group: %s; if you drop it, the group goes on without it", id, reason);
    return ww_fail(status, "member %s of the group: %s", id, reason);
}

ww_status member_check(group_device *group, int32_t member)
{
    if (member_is_in(&group->members[member]))
        return WW_OK;
    return ww_fail(WW_DRIVER_ERROR,
                   "these rows are on %s, which the group goes on without; moving the collection to the same group brings "
                   "them to the other members, if host memory or a store has them",
                   group->members[member].device->info.id);
}

/* Returns a member that has a device: all that have the same device are alike. */
static int32_t member_with(const group_device *group, const ww_device *device)
{
    int32_t m = 0;
    while (m + 1 < group->count && group->members[m].device != device)
        m++;
    return m;
}

/* Returns true for the first member that has its device. */
static bool is_first(const group_device *group, int32_t member)
{
    return member_with(group, group->members[member].device) == member;
}

static int32_t first_in(const group_device *group)
{
    int32_t m = 0;
    while (m + 1 < group->count && !member_is_in(&group->members[m]))
        m++;
    return m;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static bool same_kind(const ww_device *a, const ww_device *b)
{
    return strcmp(a->info.backend, b->info.backend) == 0 && strcmp(a->info.arch, b->info.arch) == 0 &&
           strcmp(a->info.name, b->info.name) == 0;
}

static void group_close(ww_device *device)
{
    group_device *group = group_of(device);
    pool_destroy(group->searchers);
    for (int32_t m = 0; m < group->count; m++)
        ww_device_close(group->members[m].device);
    pthread_mutex_destroy(&group->measuring);
    memory_free(group);
}

ww_status group_make(ww_device *const *devices, int32_t count, ww_device **out)
{
    group_device *group = memory_alloc_zeroed(1, sizeof *group);
    if (!group) {
        for (int32_t m = 0; m < count; m++)
            ww_device_close(devices[m]);
        return memory_failed("a group of devices", sizeof *group);
    }
    group->base.backend = &backend_group;
    group->base.opened_in = process_here();
    group->base.info = ww_device_info_default();
    atomic_init(&group->base.users, 1);
    pthread_mutex_init(&group->measuring, NULL); /* cannot fail with default attributes */
    group->count = count;
    for (int32_t m = 0; m < count; m++) {
        group_member *member = &group->members[m];
        member->device = devices[m];
        while (!same_kind(devices[member->kind], devices[m]))
            member->kind++;
    }
    group_describe_open(&group->base, &group->base.info);
    const ww_status status = pool_create(NULL, count, &group->searchers);
    if (status != WW_OK) {
        group_close(&group->base);
        return status;
    }
    *out = &group->base;
    return WW_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static ww_status group_memory(ww_device *device, ww_memory_info *memory)
{
    group_device *group = group_of(device);
    ww_status status = WW_OK;
    ww_memory_info all = {.struct_size = memory->struct_size};
    for (int32_t m = 0; status == WW_OK && m < group->count; m++) {
        ww_device *member = group->members[m].device;
        ww_memory_info one = ww_memory_info_default();
        if (!is_first(group, m) || !member_is_in(&group->members[m]))
            continue;
        status = member_failed(group, m, member->backend->memory(member, &one));
        all.total_bytes += one.total_bytes;
        all.free_bytes += one.free_bytes;
        all.ours_bytes += one.ours_bytes;
        all.pooled_bytes += one.pooled_bytes;
        all.peak_bytes += one.peak_bytes;
    }
    if (status == WW_OK)
        *memory = all;
    return status;
}

static ww_status group_trim(ww_device *device)
{
    group_device *group = group_of(device);
    ww_status status = WW_OK;
    for (int32_t m = 0; status == WW_OK && m < group->count; m++)
        if (is_first(group, m) && member_is_in(&group->members[m]))
            status = member_failed(group, m, group->members[m].device->backend->trim(group->members[m].device));
    return status;
}

/* The threads of the first member that has some: they only do host work. */
static pool *group_threads(ww_device *device)
{
    group_device *group = group_of(device);
    pool *threads = NULL;
    for (int32_t m = 0; !threads && m < group->count; m++)
        threads = group->members[m].device->backend->threads(group->members[m].device);
    return threads;
}

/* ---- buffers ------------------------------------------------------------------------------------------------------------- */

static ww_status group_buffer_create(ww_device *device, size_t bytes, buffer *out)
{
    group_device *group = group_of(device);
    const int32_t m = first_in(group);
    ww_device *member = group->members[m].device;
    const ww_status status = member->backend->buffer_create(member, bytes, out);
    if (status == WW_OK)
        out->owner = member;
    return member_failed(group, m, status);
}

static void group_buffer_destroy(ww_device *device, buffer *b)
{
    (void)device;
    if (b->owner)
        b->owner->backend->buffer_destroy(b->owner, b);
    *b = (buffer){0};
}

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

/* A stream of each device; NULL for members that were dropped. */
typedef struct group_stream {
    device_stream *streams[MEMBERS_MAX]; /* by member; members with the same device share a stream */
} group_stream;

device_stream *stream_of_member(device_stream *stream, int32_t member)
{
    return stream ? ((group_stream *)stream)->streams[member] : NULL;
}

static void group_stream_destroy(ww_device *device, device_stream *stream)
{
    group_device *group = group_of(device);
    group_stream *made = (group_stream *)stream;
    for (int32_t m = 0; made && m < group->count; m++)
        if (is_first(group, m))
            group->members[m].device->backend->stream_destroy(group->members[m].device, made->streams[m]);
    memory_free(made);
}

static ww_status group_stream_create(ww_device *device, device_stream **out)
{
    group_device *group = group_of(device);
    group_stream *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("the streams of a group", sizeof *made);
    ww_status status = WW_OK;
    for (int32_t m = 0; status == WW_OK && m < group->count; m++) {
        ww_device *member = group->members[m].device;
        if (!is_first(group, m))
            made->streams[m] = made->streams[member_with(group, member)];
        else if (member_is_in(&group->members[m]))
            status = member_failed(group, m, member->backend->stream_create(member, &made->streams[m]));
    }
    if (status != WW_OK) {
        group_stream_destroy(device, (device_stream *)made);
        return status;
    }
    *out = (device_stream *)made;
    return WW_OK;
}

static ww_status group_stream_synchronize(ww_device *device, device_stream *stream)
{
    group_device *group = group_of(device);
    ww_status status = WW_OK;
    for (int32_t m = 0; status == WW_OK && m < group->count; m++) {
        ww_device *member = group->members[m].device;
        if (is_first(group, m) && member_is_in(&group->members[m]) && stream_of_member(stream, m))
            status = member_failed(group, m, member->backend->stream_synchronize(member, stream_of_member(stream, m)));
    }
    return status;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

static ww_status group_fill(ww_device *device, device_stream *stream, buffer_range to, uint32_t pattern)
{
    group_device *group = group_of(device);
    ww_device *owner = to.buffer->owner;
    const int32_t m = member_with(group, owner);
    const ww_status status = member_check(group, m);
    return status == WW_OK ? member_failed(group, m, owner->backend->fill(owner, stream_of_member(stream, m), to, pattern))
                           : status;
}

static ww_status group_copy_in(ww_device *device, device_stream *stream, buffer_range to, const void *from)
{
    group_device *group = group_of(device);
    ww_device *owner = to.buffer->owner;
    const int32_t m = member_with(group, owner);
    const ww_status status = member_check(group, m);
    return status == WW_OK ? member_failed(group, m, owner->backend->copy_in(owner, stream_of_member(stream, m), to, from))
                           : status;
}

static ww_status group_copy_out(ww_device *device, device_stream *stream, void *to, buffer_range from)
{
    group_device *group = group_of(device);
    ww_device *owner = from.buffer->owner;
    const int32_t m = member_with(group, owner);
    const ww_status status = member_check(group, m);
    return status == WW_OK ? member_failed(group, m, owner->backend->copy_out(owner, stream_of_member(stream, m), to, from))
                           : status;
}

/* Copies from one member to another through the host. */
static ww_status group_copy(ww_device *device, device_stream *stream, buffer_range to, const buffer *from, size_t from_offset)
{
    group_device *group = group_of(device);
    ww_device *owner = to.buffer->owner;
    const int32_t m = member_with(group, owner);
    if (owner == from->owner) {
        const ww_status status = member_check(group, m);
        return status == WW_OK
                   ? member_failed(group, m, owner->backend->copy(owner, stream_of_member(stream, m), to, from, from_offset))
                   : status;
    }
    void *bytes = memory_alloc(to.bytes);
    if (!bytes)
        return memory_failed("bytes on their way between the members of a group", to.bytes);
    ww_status status = group_copy_out(device, stream, bytes, (buffer_range){from, from_offset, to.bytes});
    if (status == WW_OK)
        status = group_copy_in(device, stream, to, bytes);
    memory_free(bytes);
    return status;
}

static const char *group_member_id(ww_device *device, int32_t member)
{
    return group_of(device)->members[member].device->info.id;
}

const backend backend_group = {
    .name = "group",
    .on_host = false,
    .close = group_close,
    .memory = group_memory,
    .trim = group_trim,
    .threads = group_threads,
    .describe_open = group_describe_open,
    .member_id = group_member_id,
    .buffer_create = group_buffer_create,
    .buffer_destroy = group_buffer_destroy,
    .segment_create = group_segment_create,
    .segment_destroy = group_segment_destroy,
    .segments_balanced = group_segments_balanced,
    .segment_place = group_segment_place,
    .stream_create = group_stream_create,
    .stream_destroy = group_stream_destroy,
    .stream_synchronize = group_stream_synchronize,
    .fill = group_fill,
    .copy_in = group_copy_in,
    .copy_out = group_copy_out,
    .copy = group_copy,
    .rows_write = group_rows_write,
    .rows_read = group_rows_read,
    .rows_gather = group_rows_gather,
    .rows_search = group_rows_search,
    .rows_search_lists = group_rows_search_lists,
    .lists_push = group_lists_push,
    .lists_destroy = group_lists_destroy,
    .lists_bytes = group_lists_bytes,
    .rows_range = group_rows_range,
};
