/* Segments of a group: each is on one member, which does all work on it. */
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/integers.h"
#include "base/memory.h"
#include "device/group/group.h"

enum { WORD_ROWS = 64, CARRIED_BYTES = 16 << 20 }; /* bytes copied between two members at a time */

/* ---- creating ------------------------------------------------------------------------------------------------------------ */

static void own(segment *part, ww_device *owner)
{
    buffer *const buffers[] = {&part->rows,   &part->norms,     &part->live,  &part->codes,
                               &part->scales, &part->residuals, &part->highs, &part->high_residuals};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffers[i]->owner = owner;
}

static int64_t bytes_of(const segment *part)
{
    return (int64_t)(part->rows.bytes + part->norms.bytes + part->live.bytes + part->codes.bytes + part->scales.bytes +
                     part->residuals.bytes + part->highs.bytes + part->high_residuals.bytes);
}

static ww_status create_on(group_device *group, int32_t m, segment_plan plan, segment *out)
{
    group_member *member = &group->members[m];
    ww_status status = member_check(group, m);
    plan.stream = stream_of_member(plan.stream, m);
    if (status == WW_OK)
        status = member_failed(group, m, member->device->backend->segment_create(member->device, &plan, out));
    if (status != WW_OK)
        return status;
    own(out, member->device);
    out->member = m;
    atomic_fetch_add(&member->rows, plan.live ? out->capacity : 0);
    atomic_fetch_add(&member->rows_bytes, bytes_of(out));
    return WW_OK;
}

/* Chooses the member that is furthest below its share. If it has no room, the next one is tried. */
ww_status group_segment_create(ww_device *device, const segment_plan *plan, segment *out)
{
    group_device *group = group_of(device);
    if (plan->member != MEMBER_ANY)
        return create_on(group, plan->member, *plan, out);
    uint64_t without = 0;
    ww_status status = group_measure(group);
    if (status != WW_OK)
        return status;
    for (;;) {
        segment_plan placed = *plan;
        const int32_t m = group_place(group, plan, without, &placed.capacity);
        if (m == MEMBER_ANY)
            return status == WW_OK ? ww_fail(WW_DRIVER_ERROR, "no member of the group is left") : status;
        status = create_on(group, m, placed, out);
        if (status != WW_OUT_OF_MEMORY)
            return status;
        without |= UINT64_C(1) << m;
    }
}

void group_segment_destroy(ww_device *device, segment *part)
{
    group_member *member = &group_of(device)->members[part->member];
    if (part->norms.owner) {
        atomic_fetch_sub(&member->rows, part->live.data ? part->capacity : 0);
        atomic_fetch_sub(&member->rows_bytes, bytes_of(part));
    }
    member->device->backend->segment_destroy(member->device, part);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

ww_status group_rows_write(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused)
{
    group_device *group = group_of(device);
    const int32_t m = to.segment->member;
    ww_device *member = group->members[m].device;
    const ww_status status = member_check(group, m);
    return status == WW_OK ? member_failed(group, m, member->backend->rows_write(member, to, rows, row_stride, refused))
                           : status;
}

/* Rows in host memory, of a GPU or a CPU, can still be read after their member was dropped. */
ww_status group_rows_read(ww_device *device, row_range from, void *out)
{
    group_device *group = group_of(device);
    const int32_t m = from.segment->member;
    ww_device *member = group->members[m].device;
    const bool on_host = from.segment->rows_on_host || member->backend->on_host;
    const ww_status status = on_host ? WW_OK : member_check(group, m);
    return status == WW_OK ? member_failed(group, m, member->backend->rows_read(member, from, out)) : status;
}

/* Moves some rows of `from` to another member: gathers and reads them, and writes them to `to`. Their norms and codes are
 * computed again there, with the same bits. */
static ww_status carry(group_device *group, row_range to, const segment *from, const int64_t *sources, const segment *gathered)
{
    const size_t bytes = (size_t)to.count * (size_t)to.dim * row_type_bytes(from->type);
    const row_range between = {gathered, 0, to.count, to.dim};
    ww_device *device = &group->base;
    int64_t refused = -1;
    void *rows = memory_alloc(bytes);
    if (!rows)
        return memory_failed("rows on their way between the members of a group", bytes);
    ww_device *member = group->members[from->member].device;
    ww_status status = member_check(group, from->member);
    if (status == WW_OK)
        status = member_failed(group, from->member, member->backend->rows_gather(member, between, from, sources));
    if (status == WW_OK)
        status = group_rows_read(device, between, rows);
    if (status == WW_OK)
        status = group_rows_write(device, to, rows, to.dim, &refused);
    memory_free(rows);
    if (status == WW_OK && refused >= 0)
        status = ww_fail(WW_DAMAGED, "row %lld of a segment on %s has values that were never stored; its memory is faulty",
                         (long long)sources[refused], member->info.id);
    return status;
}

ww_status group_rows_gather(ww_device *device, row_range to, const segment *from, const int64_t *sources)
{
    group_device *group = group_of(device);
    ww_device *member = group->members[from->member].device;
    if (member == group->members[to.segment->member].device) {
        const ww_status status = member_check(group, from->member);
        return status == WW_OK ? member_failed(group, from->member, member->backend->rows_gather(member, to, from, sources))
                               : status;
    }
    const int64_t row_bytes = (int64_t)canon_padded(to.dim) * (int64_t)row_type_bytes(from->type);
    const int64_t rows_max = max_i64(CARRIED_BYTES / row_bytes / WORD_ROWS, 1) * WORD_ROWS;
    const segment_plan plan = {.dim = to.dim,
                               .type = from->type,
                               .member = from->member,
                               .capacity = min_i64(rows_max, round_up_i64(to.count, WORD_ROWS))};
    segment gathered = {0};
    ww_status status = to.count > 0 ? group_segment_create(device, &plan, &gathered) : WW_OK;
    for (int64_t done = 0; status == WW_OK && done < to.count; done += plan.capacity) {
        const row_range now = {to.segment, to.first + done, min_i64(plan.capacity, to.count - done), to.dim};
        status = carry(group, now, from, sources + done, &gathered);
    }
    group_segment_destroy(device, &gathered);
    return status;
}
