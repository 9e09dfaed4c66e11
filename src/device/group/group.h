/* A group: several devices that work as one, behind the same interface as any of them.
 *
 * Every segment is on one member. A search runs on all members that have rows, each by its own thread and stream, and the keys
 * of their results are merged: the k smallest of a set are one set, however it was divided, so a group gives the bits of any of
 * its members alone. What belongs to one segment goes to its member. Rows go from one member to another through the host.
 *
 *   names.c     "cuda:0+cuda:1", "rocm:*", "all": which devices a name means
 *   group.c     the table; opening and closing, memory, buffers, streams and copies
 *   shares.c    how much each member gets, by its speed and its free memory
 *   measure.c   how fast a member is, by a search of a few rows
 *   segments.c  making segments, and rows in and out of them
 *   search.c    searches, range searches and searches of lists on all members at once
 *   lists.c     the lists of an index, divided among the members
 *   members.c   what is public: the members' shares, and going on without one
 */
#ifndef WW_DEVICE_GROUP_GROUP_H
#define WW_DEVICE_GROUP_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/backend.h"

typedef struct group_member {
    ww_device *device;                     /* one that is named twice is the same device, and has two users */
    int32_t kind;                          /* the first member of the same chip, which has the speed of all of them */
    atomic_bool dropped;                   /* the group goes on without it */
    _Atomic double speed;                  /* products of numbers in a second; 0: not measured yet */
    atomic_int_least64_t rows, rows_bytes; /* in segments that it has */
} group_member;

typedef struct group_device {
    ww_device base; /* first: a ww_device * of this backend is a group_device * */
    group_member members[MEMBERS_MAX];
    int32_t count;
    pool *searchers;           /* a thread a member */
    pthread_mutex_t measuring; /* so that it is done once */
} group_device;

extern const backend backend_group;

static inline group_device *group_of(ww_device *device)
{
    return (group_device *)device;
}

/* Does the group work with this member? */
static inline bool member_is_in(const group_member *member)
{
    return !atomic_load(&member->dropped);
}

/* ---- group.c ------------------------------------------------------------------------------------------------------------- */

/* Makes a group of `count` open devices, 2..MEMBERS_MAX of them, the same one perhaps several times; takes over a user of each.
 * On failure they are closed. */
ww_status group_make(ww_device *const *devices, int32_t count, ww_device **out);

/* `status` with the member's name in front of the thread's message; WW_OK stays that, and WW_CANCELLED, too. */
ww_status member_failed(const group_device *group, int32_t member, ww_status status);

/* WW_DRIVER_ERROR if the group goes on without the member that has this segment. */
ww_status member_check(group_device *group, int32_t member);

/* The member's own stream of a group's. */
device_stream *stream_of_member(device_stream *stream, int32_t member);

/* ---- names.c ------------------------------------------------------------------------------------------------------------- */

/* Is it the name of more than one device: has it a '+' or '*', or is it "all"? */
bool group_is_named(const char *name);

/* Opens one device by its own name. */
typedef ww_status (*open_by_name)(const char *name, ww_device **device);

/* Opens what such a name means; one device alone is no group. */
ww_status group_open(const char *name, open_by_name open, ww_device **device);

/* ---- shares.c ------------------------------------------------------------------------------------------------------------ */

/* What part of the rows each member should have, from 0 to 1, as far as memory allows; 0 for those that are out. */
void group_shares(group_device *group, double shares[MEMBERS_MAX]);

/* Which member the segment goes to, and how many rows it has. `without` are members that were tried in vain, a bit each.
 * Returns MEMBER_ANY if there is none left. */
int32_t group_place(group_device *group, const segment_plan *plan, uint64_t without, int64_t *rows);

bool group_segments_balanced(ww_device *device, const segment *segments, int64_t count);
int32_t group_segment_place(ww_device *device, const segment_list *list, int64_t s, uint64_t without);

/* Notes how long a member took for its products, for placing the next rows. */
void group_learn(group_device *group, int32_t member, double products, double seconds);

/* ---- measure.c ----------------------------------------------------------------------------------------------------------- */

/* Measures each kind of member, if that has not been done. */
ww_status group_measure(group_device *group);

double group_seconds(void);

/* ---- segments.c ---------------------------------------------------------------------------------------------------------- */

ww_status group_segment_create(ww_device *device, const segment_plan *plan, segment *out);
void group_segment_destroy(ww_device *device, segment *part);
ww_status group_rows_write(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused);
ww_status group_rows_read(ww_device *device, row_range from, void *out);
ww_status group_rows_gather(ww_device *device, row_range to, const segment *from, const int64_t *sources);

/* ---- search.c ------------------------------------------------------------------------------------------------------------ */

ww_status group_rows_search(ww_device *device, const search_job *job);
ww_status group_rows_range(ww_device *device, const range_job *job);
ww_status group_rows_search_lists(ww_device *device, const list_job *job);

/* Which member searches the rows that `member` has: the first that has the same device, since one device has nothing to gain
 * from being asked twice. */
int32_t group_searcher(const group_device *group, int32_t member);

/* ---- lists.c ------------------------------------------------------------------------------------------------------------- */

ww_status group_lists_push(ww_device *device, const list_push *job, device_lists **lists);
void group_lists_destroy(ww_device *device, device_lists *lists);
int64_t group_lists_bytes(const device_lists *lists);

/* The job of a member, with its share of the lists. */
list_job group_lists_of(const list_job *job, int32_t member);

/* ---- members.c ----------------------------------------------------------------------------------------------------------- */

/* The group as it is now: without the members that are out. */
void group_describe_open(ww_device *device, ww_device_info *info);

#endif
