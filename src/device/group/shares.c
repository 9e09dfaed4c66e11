/* Decides how many rows each member gets. A search ends with its slowest member, so rows are divided by speed: measured first,
 * then corrected by searches. Rows that a member has no memory for go to the others. */
#include <math.h>

#include "base/integers.h"
#include "device/group/group.h"
#include "device/segment_buffers.h"

enum {
    WORD_ROWS = 64,
    ROOM_ASKED_BYTES = 64 << 20, /* for fewer bytes, members are not asked for their free memory */
    REST_PART = 4,               /* a segment also takes the remaining rows if they are less than 1/4 of it */
    SLACK_PART = 8               /* a member may be off by 1/8 of its share before rows are moved */
};

static const double ROOM_USED = 0.9; /* of the free memory: searches need some */

static double weight_of(const group_device *group, int32_t member)
{
    const group_member *m = &group->members[member];
    if (!member_is_in(m))
        return 0;
    const double speed = atomic_load(&group->members[m->kind].speed);
    return group->base.tuning.group_even || !(speed > 0) ? 1 : speed;
}

void group_shares(group_device *group, double shares[MEMBERS_MAX])
{
    double all = 0;
    for (int32_t m = 0; m < group->count; m++)
        all += weight_of(group, m);
    for (int32_t m = 0; m < group->count; m++)
        shares[m] = all > 0 ? weight_of(group, m) / all : 0;
}

void group_learn(group_device *group, int32_t member, double products, double seconds)
{
    static const double seconds_min = 1e-3, new_part = 0.25;
    _Atomic double *speed = &group->members[group->members[member].kind].speed;
    const double before = atomic_load(speed);
    if (seconds < seconds_min || products <= 0)
        return;
    const double now = products / seconds;
    atomic_store(speed, before > 0 ? before + (now - before) * new_part : now);
}

/* Returns how many more rows a member has room for. Members with the same device divide its memory. */
static double room_of(group_device *group, int32_t member, const segment_plan *plan)
{
    ww_device *device = group->members[member].device;
    ww_memory_info memory = ww_memory_info_default();
    int32_t sharing = 0;
    if (device->backend->memory(device, &memory) != WW_OK)
        return INFINITY; /* creating the segment will report the error */
    for (int32_t m = 0; m < group->count; m++)
        sharing += group->members[m].device == device;
    const double bytes = (double)segment_bytes_of_row(device, plan).device;
    return ROOM_USED * (double)(memory.free_bytes + memory.pooled_bytes) / bytes / sharing;
}

static void count_rows(const segment *segments, int64_t count, double rows[MEMBERS_MAX])
{
    for (int32_t m = 0; m < MEMBERS_MAX; m++)
        rows[m] = 0;
    for (int64_t i = 0; i < count; i++)
        rows[segments[i].member] += (double)segments[i].capacity;
}

/* Divides `total` rows by weight. A member whose part would exceed rows_max gets rows_max, and the others divide the rest. */
static void divide(const group_device *group, double total, const double *weights, const double *rows_max, double *targets)
{
    bool full[MEMBERS_MAX] = {false};
    for (bool again = true; again;) {
        double left = total, all = 0;
        for (int32_t m = 0; m < group->count; m++) {
            left -= full[m] ? rows_max[m] : 0;
            all += full[m] ? 0 : weights[m];
        }
        again = false;
        for (int32_t m = 0; m < group->count; m++) {
            targets[m] = full[m] ? rows_max[m] : all > 0 ? left * weights[m] / all : 0;
            if (!full[m] && targets[m] > rows_max[m])
                full[m] = again = true;
        }
    }
}

int32_t group_place(group_device *group, const segment_plan *plan, uint64_t without, int64_t *rows)
{
    double have[MEMBERS_MAX], rows_max[MEMBERS_MAX], weights[MEMBERS_MAX], targets[MEMBERS_MAX],
        total = (double)plan->rows_wanted;
    count_rows(plan->others, plan->others_count, have);
    const double bytes = (double)segment_bytes_of_row(&group->base, plan).device;
    const bool ask = total * bytes >= ROOM_ASKED_BYTES;
    for (int32_t m = 0; m < group->count; m++) {
        const bool out = without >> m & 1 || !member_is_in(&group->members[m]);
        weights[m] = out ? 0 : weight_of(group, m);
        rows_max[m] = out ? have[m] : ask ? have[m] + room_of(group, m, plan) : INFINITY;
        total += have[m];
    }
    divide(group, total, weights, rows_max, targets);
    int32_t best = MEMBER_ANY;
    for (int32_t m = 0; m < group->count; m++)
        if (weights[m] > 0 && (best == MEMBER_ANY || targets[m] - have[m] > targets[best] - have[best]))
            best = m;
    if (best == MEMBER_ANY)
        return best;
    const double wanted = fmin((double)plan->capacity, targets[best] - have[best]);
    const int64_t words = max_i64(1, ((int64_t)wanted + WORD_ROWS / 2) / WORD_ROWS);
    *rows = min_i64(plan->capacity, words * WORD_ROWS);
    if (plan->rows_wanted <= plan->capacity && plan->rows_wanted - *rows < *rows / REST_PART)
        *rows = plan->capacity; /* too few for another segment */
    return best;
}

bool group_segments_balanced(ww_device *device, const segment *segments, int64_t count)
{
    group_device *group = group_of(device);
    double have[MEMBERS_MAX], shares[MEMBERS_MAX] = {0}, total = 0;
    count_rows(segments, count, have);
    group_shares(group, shares);
    for (int32_t m = 0; m < group->count; m++)
        total += have[m];
    for (int32_t m = 0; m < group->count; m++) {
        const double slack = fmax(shares[m] * total / SLACK_PART, WORD_ROWS * 2.0);
        if (have[m] > 0 && !member_is_in(&group->members[m]))
            return false;
        if (fabs(have[m] - shares[m] * total) > slack)
            return false;
    }
    return true;
}

int32_t group_segment_place(ww_device *device, const segment_list *list, int64_t s, uint64_t without)
{
    group_device *group = group_of(device);
    double over[MEMBERS_MAX], shares[MEMBERS_MAX] = {0}, total = 0;
    const int32_t from = list->segments[s].member;
    const double rows = (double)list->segments[s].capacity;
    count_rows(list->segments, list->count, over);
    group_shares(group, shares);
    for (int32_t m = 0; m < group->count; m++)
        total += over[m];
    int32_t best = from;
    for (int32_t m = 0; m < group->count; m++)
        over[m] -= shares[m] * total;
    for (int32_t m = 0; m < group->count; m++)
        if (m != from && member_is_in(&group->members[m]) && !(without >> m & 1) && (best == from || over[m] < over[best]))
            best = m;
    if (best == from || !member_is_in(&group->members[from]))
        return best;
    const double now = fabs(over[from]) + fabs(over[best]), then = fabs(over[from] - rows) + fabs(over[best] + rows);
    return then < now ? best : from;
}
