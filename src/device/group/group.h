/* A group: several devices that work as one, behind the same interface as any of them.
 *
 * Every segment is on one member. A search runs on all members that have rows, each with its own thread and stream, and the
 * keys of their results are merged. The k smallest keys of a set do not depend on how it was divided, so a group gives the same
 * bits as any of its members. All jobs use the collection's row numbers, with gaps where another member has the rows, so masks,
 * ties and results need no translation; the certificate is the smallest of the members'. Work on a segment is done by its
 * member. Rows move between members through the host, and their norms and codes are computed again.
 *
 * The collection says how many rows it wants in total; segment_create may give fewer, on the member that is furthest below its
 * share, and is called again until there is room. A member that is dropped keeps its number, because segments still name it:
 * searches fail until its rows are moved, and frees still go to it. The group's id changes, so a store makes a new mirror.
 *
 *   names.c     "cuda:0+cuda:1", "rocm:*", "all": which devices a name means
 *   group.c     the table; opening and closing, memory, buffers, streams and copies
 *   shares.c    how much each member gets, by its speed and its free memory
 *   measure.c   how fast a member is, by a search of a few rows
 *   segments.c  creates segments, writes and reads their rows
 *   search.c    searches, range searches and searches of lists on all members at once
 *   lists.c     the lists of an index, divided among the members
 *   members.c   public functions: the members' shares, and dropping a member
 */
#ifndef WW_DEVICE_GROUP_GROUP_H
#define WW_DEVICE_GROUP_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/backend.h"

typedef struct group_member {
    ww_device *device;    /* a device that is named twice is two members with the same device, which has two users */
    int32_t kind;         /* the first member with the same chip; it has the speed of all of them */
    atomic_bool dropped;  /* the group works without it */
    _Atomic double speed; /* multiplications per second in searches; 0: not measured yet */
    atomic_int_least64_t rows, rows_bytes; /* in its segments */
} group_member;

typedef struct group_device {
    ww_device base; /* first: a ww_device * of this backend is a group_device * */
    group_member members[MEMBERS_MAX];
    int32_t count;
    pool *searchers;           /* one thread per member */
    pthread_mutex_t measuring; /* so that only one thread measures */
} group_device;

extern const backend backend_group;

static inline group_device *group_of(ww_device *device)
{
    return (group_device *)device;
}

/* Returns true if the group works with this member. */
static inline bool member_is_in(const group_member *member)
{
    return !atomic_load(&member->dropped);
}

/* ---- group.c ------------------------------------------------------------------------------------------------------------- */

/* Makes a group of 2..MEMBERS_MAX open devices; a device may appear several times. Takes over one user of each; if it fails, it
 * closes them. */
ww_status group_make(ww_device *const *devices, int32_t count, ww_device **out);

/* Puts the member's name in front of the thread's message and returns `status`. Does nothing for WW_OK and WW_CANCELLED. */
ww_status member_failed(const group_device *group, int32_t member, ww_status status);

/* Returns WW_DRIVER_ERROR if the group works without the member that has this segment. */
ww_status member_check(group_device *group, int32_t member);

/* Returns a member's stream from a group's stream. */
device_stream *stream_of_member(device_stream *stream, int32_t member);

/* ---- names.c ------------------------------------------------------------------------------------------------------------- */

/* Returns true if the name stands for several devices: it has a '+' or '*', or is "all". */
bool group_is_named(const char *name);

/* Opens one device by its name. */
typedef ww_status (*open_by_name)(const char *name, ww_device **device);

/* Opens the devices of such a name; a single device is opened without a group. */
ww_status group_open(const char *name, open_by_name open, ww_device **device);

/* ---- shares.c ------------------------------------------------------------------------------------------------------------ */

/* Computes each member's share of the rows, from 0 to 1, if memory allows; 0 for dropped members. */
void group_shares(group_device *group, double shares[MEMBERS_MAX]);

/* Returns the member that gets the segment, and sets `rows` to its size. `without` are members that were tried in vain, one bit
 * each. Returns MEMBER_ANY if there is no other. */
int32_t group_place(group_device *group, const segment_plan *plan, uint64_t without, int64_t *rows);

bool group_segments_balanced(ww_device *device, const segment *segments, int64_t count);
int32_t group_segment_place(ww_device *device, const segment_list *list, int64_t s, uint64_t without);

/* Records how long a member took for its multiplications, to place the next rows. */
void group_learn(group_device *group, int32_t member, double products, double seconds);

/* ---- measure.c ----------------------------------------------------------------------------------------------------------- */

/* Measures each kind of member that is not measured yet. */
ww_status group_measure(group_device *group);

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

/* Returns the member that searches the rows of `member`: the first one with the same device. Asking a device twice is not
 * faster. */
int32_t group_searcher(const group_device *group, int32_t member);

/* ---- lists.c ------------------------------------------------------------------------------------------------------------- */

ww_status group_lists_push(ww_device *device, const list_push *job, device_lists **lists);
void group_lists_destroy(ww_device *device, device_lists *lists);
int64_t group_lists_bytes(const device_lists *lists);

/* Returns the job of a member, with its share of the lists. */
list_job group_lists_of(const list_job *job, int32_t member);

/* ---- members.c ----------------------------------------------------------------------------------------------------------- */

/* Describes the group as it is now, without the dropped members. */
void group_describe_open(ww_device *device, ww_device_info *info);

#endif
