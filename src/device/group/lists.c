/* The lists of an index on a group. From each list, every member has the rows in its own segments, in list order; all members
 * read the same lists. Their keys are merged as in any search (search.c).
 *
 * Rows have the collection's numbers everywhere. The group keeps each member's share of the lists on the host, 4 bytes per row;
 * the members have the codes.
 */
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "device/group/group.h"

enum { ROWS_FIRST = 16 };

/* The lists of one member. */
typedef struct member_lists {
    row_list *lists;         /* this group owns `rows` of each */
    int64_t *rooms;          /* the capacity of each, in rows */
    int64_t *held;           /* rows of each that the member's device has */
    device_lists *on_device; /* the member's, or NULL */
} member_lists;

typedef struct group_lists {
    const group_device *group;
    int64_t count; /* lists */
    member_lists members[MEMBERS_MAX];
} group_lists;

static uint32_t *rows_of(const member_lists *m, int64_t list)
{
    return (uint32_t *)(uintptr_t)m->lists[list].rows;
}

void group_lists_destroy(ww_device *device, device_lists *lists)
{
    group_lists *g = (group_lists *)lists;
    const group_device *group = group_of(device);
    for (int32_t m = 0; g && m < group->count; m++) {
        const member_lists *one = &g->members[m];
        ww_device *member = group->members[m].device;
        if (one->on_device)
            member->backend->lists_destroy(member, one->on_device);
        for (int64_t l = 0; one->lists && l < g->count; l++)
            memory_free(rows_of(one, l));
        memory_free(one->held);
        memory_free(one->rooms);
        memory_free(one->lists);
    }
    memory_free(g);
}

int64_t group_lists_bytes(const device_lists *lists)
{
    const group_lists *g = (const group_lists *)lists;
    int64_t bytes = 0;
    for (int32_t m = 0; m < g->group->count; m++) {
        const member_lists *one = &g->members[m];
        if (one->on_device)
            bytes += g->group->members[m].device->backend->lists_bytes(one->on_device);
        for (int64_t l = 0; one->lists && l < g->count; l++)
            bytes += one->rooms[l] * (int64_t)sizeof *one->lists[l].rows;
    }
    return bytes;
}

/* ---- dividing ------------------------------------------------------------------------------------------------------------ */

/* Makes room for `count` lists in the tables; new lists are empty. */
static ww_status grow_tables(group_lists *g, int64_t count)
{
    const size_t all = (size_t)count, new = (size_t)max_i64(count - g->count, 0);
    for (int32_t m = 0; new > 0 && m < g->group->count; m++) {
        member_lists *one = &g->members[m];
        row_list *lists = memory_resize(one->lists, all * sizeof *lists);
        one->lists = lists ? lists : one->lists;
        int64_t *rooms = lists ? memory_resize(one->rooms, all * sizeof *rooms) : NULL;
        one->rooms = rooms ? rooms : one->rooms;
        int64_t *held = rooms ? memory_resize(one->held, all * sizeof *held) : NULL;
        one->held = held ? held : one->held;
        if (!held)
            return memory_failed("lists of an index on a group", all * sizeof *lists);
        memset(lists + g->count, 0, new * sizeof *lists);
        memset(rooms + g->count, 0, new * sizeof *rooms);
        memset(held + g->count, 0, new * sizeof *held);
    }
    g->count = max_i64(count, g->count);
    return WW_OK;
}

static bool append(member_lists *one, int64_t list, uint32_t row)
{
    row_list *to = &one->lists[list];
    if (to->count == one->rooms[list]) {
        const int64_t room = max_i64(to->count + to->count / 4, ROWS_FIRST);
        uint32_t *rows = memory_resize(rows_of(one, list), (size_t)room * sizeof *rows);
        if (!rows)
            return false;
        to->rows = rows;
        one->rooms[list] = room;
    }
    rows_of(one, list)[to->count++] = row;
    return true;
}

/* Divides the new rows of a list, or all of a rebuilt list. Rows are in ascending order, and so are segments. */
static ww_status divide(group_lists *g, const list_push *job, int64_t list)
{
    const row_list *from = &job->lists[list];
    int64_t s = 0;
    for (int32_t m = 0; job->held[list] == 0 && m < g->group->count; m++)
        g->members[m].lists[list].count = g->members[m].held[list] = 0;
    for (int64_t i = job->held[list]; i < from->count; i++) {
        while (s + 1 < job->segment_count && job->segments[s + 1].first_row <= from->rows[i])
            s++;
        if (!append(&g->members[group_searcher(g->group, job->segments[s].member)], list, from->rows[i]))
            return memory_failed("a list of an index on a group", (size_t)from->count * sizeof *from->rows);
    }
    return WW_OK;
}

/* ---- members ------------------------------------------------------------------------------------------------------------- */

/* Updates the lists on a member that has segments; `segments` has room for all of them. */
static ww_status push_member(group_lists *g, group_device *group, int32_t m, const list_push *job, segment *segments)
{
    member_lists *one = &g->members[m];
    ww_device *member = group->members[m].device;
    list_push own = *job;
    own.segments = segments;
    own.segment_count = 0;
    for (int64_t s = 0; s < job->segment_count; s++)
        if (job->segments[s].count > 0 && group_searcher(group, job->segments[s].member) == m)
            segments[own.segment_count++] = job->segments[s];
    if (own.segment_count == 0)
        return WW_OK;
    own.lists = one->lists;
    own.held = one->held;
    const ww_status status = member_check(group, m);
    return status == WW_OK ? member_failed(group, m, member->backend->lists_push(member, &own, &one->on_device)) : status;
}

static ww_status push_all(group_lists *g, group_device *group, const list_push *job)
{
    ww_status status = grow_tables(g, job->count);
    for (int64_t l = 0; status == WW_OK && l < job->count; l++)
        status = divide(g, job, l);
    if (status != WW_OK)
        return status;
    const size_t bytes = (size_t)job->segment_count * sizeof *job->segments;
    segment *segments = memory_alloc(bytes);
    if (!segments)
        return memory_failed("the segments of a group", bytes);
    for (int32_t m = 0; status == WW_OK && m < group->count; m++)
        status = push_member(g, group, m, job, segments);
    memory_free(segments);
    return status;
}

ww_status group_lists_push(ww_device *device, const list_push *job, device_lists **lists)
{
    group_device *group = group_of(device);
    group_lists *g = *lists ? (group_lists *)*lists : memory_alloc_zeroed(1, sizeof *g);
    if (g)
        g->group = group;
    const ww_status status = g ? push_all(g, group, job) : memory_failed("lists of an index on a group", sizeof *g);
    for (int64_t l = 0; l < job->count; l++)
        job->held[l] = status == WW_OK ? job->lists[l].count : 0;
    if (status != WW_OK) {
        group_lists_destroy(device, (device_lists *)g);
        g = NULL;
    }
    *lists = (device_lists *)g;
    return status;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

list_job group_lists_of(const list_job *job, int32_t member)
{
    const member_lists *one = &((const group_lists *)job->held)->members[member];
    list_job own = *job;
    own.lists = one->lists;
    own.held = one->on_device;
    return own;
}
