/* The backend interface: what a CPU and a GPU alike must be able to do, as one table of functions.
 *
 * A backend is a kind of device ("cpu", "cuda", "rocm", "emulator"). It finds its devices, opens them, keeps memory on them
 * in buffers, moves bytes, and carries out operations on them. What stands above (collections, tensors) knows only this file.
 *
 * Rules for every function: a status and a message on failure, with nothing changed; never a wait that is not named here.
 * Operations take a stream: work on one stream happens in order, and is done when stream_synchronize returns. Functions
 * marked "blocking" return when their work is done. Any function may be called from any thread; one stream by one thread at
 * a time.
 */
#ifndef WW_DEVICE_BACKEND_H
#define WW_DEVICE_BACKEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/status.h>

#include "base/pool.h"
#include "base/system/process.h"
#include "base/tables/key_list.h"
#include "device/tuning.h"

typedef struct backend backend;
struct tensor_backend;                      /* device/tensor_jobs.h */
typedef struct quant_backend quant_backend; /* device/quant_jobs.h */
struct kernel_backend;                      /* device/kernel_jobs.h */

/* A device as the rooms above see it. A backend's own device struct begins with this one. */
struct ww_device {
    const backend *backend;
    atomic_int users;       /* opens and collections; the last to go closes it */
    process_mark opened_in; /* it works in no other process */
    ww_device_info info;

    /* Random numbers for tensors: the seed, and the blocks of its sequence that were used. */
    atomic_uint_least64_t random_seed, random_blocks;

    device_tuning tuning;
};

/* A piece of a device's memory. `data` is an address there: only a CPU's may be read by the host. Bytes 0: data may be NULL. */
typedef struct buffer {
    void *data;
    size_t bytes;
    ww_device *owner; /* of a group's: the member that has it; NULL: the device that made it */
} buffer;

/* Bytes [offset, offset + bytes) of a buffer. */
typedef struct buffer_range {
    const buffer *buffer;
    size_t offset;
    size_t bytes;
} buffer_range;

typedef struct device_stream device_stream; /* the backend's own */

/* Rows on a device: `capacity` of them have room, the first `count` are there. Room for whole words of 64 rows, so that
 * `first_row` is a multiple of 64 and masks over all rows can be read a word at a time. */
typedef struct segment {
    buffer rows;  /* capacity x canon_padded(dim) elements of `type`; their order is the backend's own affair */
    buffer norms; /* sqrt(dot(x,x)) of each row */
    buffer live;  /* a bit a row, in 64-bit words; bits past `count` are 0 */

    /* The screen (arithmetic/screen.h); all three empty in a collection without one. Rows of bytes are their own codes. */
    buffer codes;     /* capacity x canon_padded(dim) int8; the order inside a row is the backend's own affair */
    buffer scales;    /* a float a row */
    buffer residuals; /* a float a row: at least the norm of what coding threw away */

    /* The high plane of the codes (arithmetic/screen.h), where the device reads it; else empty. */
    buffer highs;          /* capacity x canon_padded(dim) / 2 bytes */
    buffer high_residuals; /* a float a row: the same for the plane */

    int64_t first_row;
    int64_t count;
    int64_t capacity;
    int32_t type;      /* of the rows: ROW_F32, ... (arithmetic/row_types.h) */
    int32_t member;    /* of a group: the number of the one that has it; else 0 */
    bool rows_on_host; /* `rows` are pinned memory of the host, which the device reaches over the bus */
} segment;

typedef struct segment_list {
    const segment *segments;
    int64_t count;
} segment_list;

enum { MEMBER_ANY = -1, MEMBERS_MAX = 64 }; /* of a group */

/* A segment that is wanted. */
typedef struct segment_plan {
    int32_t dim;
    int32_t type;
    bool screen;           /* with codes, scales and residuals, */
    bool live;             /* and live bits, all 0: a segment that is searched */
    device_stream *stream; /* on which they are set; may be NULL without them */
    bool rows_on_host;     /* rows in pinned memory of the host, where the device's own is not that already */
    int32_t member;        /* of a group: whose it will be, or MEMBER_ANY: its own choice */
    int64_t capacity;      /* rows; a multiple of 64 */

    /* For a group that chooses: how many rows are wanted in this and the segments that will follow, and how many there are
     * already, so that each member gets its share. It may make the segment smaller than asked. */
    int64_t rows_wanted;
    const segment *others;
    int64_t others_count;
} segment_plan;

/* Rows first .. first + count - 1 of a segment, whose rows have `dim` elements. */
typedef struct row_range {
    const segment *segment;
    int64_t first;
    int64_t count;
    int32_t dim;
} row_range;

/* Rows of a segment by their numbers in it, ascending. */
typedef struct row_choice {
    const segment *segment;
    const int64_t *numbers;
    int64_t count;
    int32_t dim;
} row_choice;

/* What a search did, over all its queries; a row counts once for each query. */
typedef struct search_stats {
    int64_t rows_screened; /* tested by the screen */
    int64_t rows_kept;     /* of them, not discarded */
    int64_t rows_scored;   /* whose canonical score was computed, for whatever reason */
    int64_t fallback_queries;
    float certificate; /* as ww_search_stats says */
    int64_t repeated_queries;
    int64_t lists_read, list_rows_read, list_bytes_read; /* by rows_search_lists and what stands in for it */
} search_stats;

/* What is marked of a query, so that a group counts it once: what fallback_queries and repeated_queries count. */
enum { MARK_FALLBACK = 1, MARK_REPEATED = 2 };

/* One search, checked: every pointer valid, queries finite, 1 <= k <= WW_K_MAX, query_count >= 1. */
typedef struct search_job {
    int32_t metric; /* CANON_COSINE, ... */
    int32_t dim;
    int32_t type; /* of the rows, as in every segment */
    const segment *segments;
    int64_t segment_count;
    const float *queries; /* host, or with the next the device's memory */
    bool queries_on_device;
    int64_t query_count;
    int64_t query_stride; /* floats; dim if they are on the device */
    int32_t k;
    const uint64_t *mask; /* host, over all rows; NULL admits all */
    int64_t mask_rows;
    int64_t *rows; /* host, query_count x k */
    float *scores;
    bool screen;          /* the segments have codes, and may be screened; the results are the same */
    search_stats *stats;  /* zero except for a certificate of +inf; the backend adds what it did; may be NULL */
    ww_progress progress; /* may be NULL */
    void *progress_user;
    uint8_t *marks; /* a byte a query, to which MARK_... are added; may be NULL */
} search_job;

/* Rows of a collection by their numbers, ascending. */
typedef struct row_list {
    const uint32_t *rows;
    int64_t count;
} row_list;

typedef struct device_lists device_lists; /* codes of rows in the order of lists, in memory of the device: the backend's own */

/* Lists that a device is to have. */
typedef struct list_push {
    const segment *segments; /* with a screen */
    int64_t segment_count;
    int32_t dim, type;
    const row_list *lists;
    int64_t count;
    int64_t *held; /* of each list: how many of its first rows the device has already; becomes what it has then */
} list_push;

/* One search that reads some lists of rows only: query q reads lists[numbers[i]] for starts[q] <= i < starts[q + 1]. A query
 * reads a list once, and no row is in two lists. A live and admitted row of these lists counts, no other. */
typedef struct list_job {
    search_job search;
    const row_list *lists;
    const uint32_t *numbers;  /* nearest first, so that thresholds are tight from the start */
    const int64_t *starts;    /* query_count + 1 */
    bool all_count;           /* every row of every list is live and admitted */
    const device_lists *held; /* by lists_push, all of these lists; NULL where the backend has no such function */
} list_job;

/* One range search, checked: all rows at least as good as a bound. `bound` is a number, or infinite, and not -0; for l2 it is
 * not negative. What of `search` asks for a number of results (k, rows, scores) is not looked at. The certificate is 0 where
 * the screen discarded a row by the bound itself, and +inf where it discarded none. */
typedef struct range_job {
    search_job search;
    float bound;   /* of a score: l2 at most this, cosine and dot at least */
    int64_t limit; /* keys of each query at most, the best; 0 only counts. All are counted in any case. */
    key_list
        *found; /* host, a query each, empty; keys (arithmetic/canon.h) in order, which the caller frees, of a failure too */
} range_job;

struct backend {
    const char *name;
    bool on_host; /* buffers are memory of the host, which may read and write them */

    /* ---- finding devices ------------------------------------------------------------------------------------------------ */

    /* How many devices there are. 0 with WW_OK when there are none; why stands in ww_error_message() then. */
    ww_status (*count)(int32_t *count);
    /* Fills in what can be said without opening; info->struct_size is not touched. */
    ww_status (*describe)(int32_t index, ww_device_info *info);
    /* Makes the device usable and gives it with users = 1. */
    ww_status (*open)(int32_t index, ww_device **device);
    /* Frees everything. All buffers and streams are gone by then. */
    void (*close)(ww_device *device);
    /* Total, free, ours, pooled, peak; struct_size is not touched. */
    ww_status (*memory)(ww_device *device, ww_memory_info *memory);
    /* Gives pooled memory back. */
    ww_status (*trim)(ww_device *device);

    /* Of a group, else NULL: corrects what has changed since it was opened, and the id of a member by its number. */
    void (*describe_open)(ww_device *device, ww_device_info *info);
    const char *(*member_id)(ww_device *device, int32_t member);

    /* The threads that work for the device on the host; NULL if it has none. They are the device's. */
    pool *(*threads)(ww_device *device);

    /* ---- buffers -------------------------------------------------------------------------------------------------------- */

    /* Uninitialised memory, aligned to 256 bytes. Refuses what cannot fit with the bytes asked and free. */
    ww_status (*buffer_create)(ww_device *device, size_t bytes, buffer *out);
    /* Gives it back; waits for work that uses it. Accepts an empty buffer and empties the struct. In any order. */
    void (*buffer_destroy)(ww_device *device, buffer *buffer);

    /* Memory of the host that the device reaches at the same address, over the bus, and that stays readable when the device is
     * lost. Both NULL where buffers are the host's memory. Otherwise as the two above. */
    ww_status (*pinned_create)(ww_device *device, size_t bytes, buffer *out);
    void (*pinned_destroy)(ww_device *device, buffer *buffer);

    /* ---- segments ------------------------------------------------------------------------------------------------------- */

    /* Makes a segment without rows, uninitialised except for its live bits; first_row and count are 0. Blocking. */
    ww_status (*segment_create)(ww_device *device, const segment_plan *plan, segment *out);
    /* Gives back what it has, and empties the struct. Accepts one that is all zero, or was made in part. */
    void (*segment_destroy)(ww_device *device, segment *segment);
    /* Are these segments where they should be? NULL: there is only one place. */
    bool (*segments_balanced)(ww_device *device, const segment *segments, int64_t count);
    /* The member that segment `s` of these should be on; its own if no other would bring all nearer to their shares, or if
     * there is none beside `without`, a bit a member. NULL like the one before. */
    int32_t (*segment_place)(ww_device *device, const segment_list *list, int64_t s, uint64_t without);

    /* ---- streams and copies --------------------------------------------------------------------------------------------- */

    ww_status (*stream_create)(ww_device *device, device_stream **out);
    void (*stream_destroy)(ww_device *device, device_stream *stream); /* accepts NULL */
    ww_status (*stream_synchronize)(ww_device *device, device_stream *stream);

    /* Sets a range, its offset and bytes multiples of 4, to a repeated 32-bit pattern. */
    ww_status (*fill)(ww_device *device, device_stream *stream, buffer_range to, uint32_t pattern);
    /* Host to device. The host memory may be changed when the call returns. */
    ww_status (*copy_in)(ww_device *device, device_stream *stream, buffer_range to, const void *from);
    /* Device to host. Blocking. */
    ww_status (*copy_out)(ww_device *device, device_stream *stream, void *to, buffer_range from);
    /* Device to device, the same device: as many bytes as `to` has, from `from_offset` on; ranges do not overlap. */
    ww_status (*copy)(ww_device *device, device_stream *stream, buffer_range to, const buffer *from, size_t from_offset);

    /* ---- operations on rows --------------------------------------------------------------------------------------------- */

    /* Writes host rows (dim elements of the segment's type each, row_stride elements apart) to a range of the segment's rows,
     * padded, with their norms and, where the segment has them, their codes, scales and residuals; does not touch live or
     * count. `refused` gets the first row (0..to.count-1) whose squared norm is not finite, or -1; then what was written is
     * meaningless. Blocking. */
    ww_status (*rows_write)(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused);
    /* The same from memory of the device: dense rows, of which the work on tensors is done. NULL: the backend cannot, and its
     * searches take no queries_on_device. Blocking. */
    ww_status (*rows_write_here)(ww_device *device, row_range to, const void *rows, int64_t *refused);
    /* The first of `count` dense f32 rows in memory of the device whose squared norm is not finite, or -1. NULL with the
     * last. Blocking. */
    ww_status (*rows_check_here)(ww_device *device, const float *rows, int64_t count, int32_t dim, int64_t *refused);
    /* Rows of any type as f32, dense, to memory of the device, where searches take them as queries_on_device. NULL with
     * rows_write_here. Blocking. */
    ww_status (*rows_read_here)(ww_device *device, const row_choice *from, float *to);
    /* Reads rows back, dim elements each, one behind the other, bit for bit as they came. Blocking. */
    ww_status (*rows_read)(ww_device *device, row_range from, void *out);
    /* Copies rows (with norms and screen) sources[0..to.count) of `from`, ascending, to a range of rows. Blocking. */
    ww_status (*rows_gather)(ww_device *device, row_range to, const segment *from, const int64_t *sources);
    /* The k best rows of each query among the live and admitted ones; pads as ww_collection_search says. Blocking. */
    ww_status (*rows_search)(ww_device *device, const search_job *job);
    /* The same among the rows of some lists. NULL: the backend has no way of its own, and rows_search with a mask for each
     * query stands in for it. Blocking. */
    ww_status (*rows_search_lists)(ww_device *device, const list_job *job);
    /* Brings `lists`, NULL at first, to what the job says. After a failure it is NULL, and `held` is 0 for all. NULL: searches
     * of lists do not want them. Blocking. */
    ww_status (*lists_push)(ww_device *device, const list_push *job, device_lists **lists);
    /* Frees them; accepts NULL. And the bytes they take on the device. Both NULL with the last. */
    void (*lists_destroy)(ww_device *device, device_lists *lists);
    int64_t (*lists_bytes)(const device_lists *lists);
    /* All live and admitted rows of each query that are at least as good as a bound. Blocking. */
    ww_status (*rows_range)(ww_device *device, const range_job *job);

    /* ---- operations on tensors ------------------------------------------------------------------------------------------ */

    const struct tensor_backend *tensors;

    /* ---- operations on quantized matrices -------------------------------------------------------------------------------- */

    const quant_backend *quants;

    /* ---- the caller's own kernels -----------------------------------------------------------------------------------------
     */

    const struct kernel_backend *kernels; /* NULL: it runs none */
};

/* The backends of this build, best first: the order in which "auto" looks. Ends with NULL. */
extern const backend *const backends[];

/* One more user of an open device; each is given back with ww_device_close(). */
ww_device *device_retain(ww_device *device);

/* WW_OK, or WW_UNSUPPORTED if the device is a group, which has nothing but collections: `what` cannot be there. */
ww_status device_check_single(const ww_device *device, const char *what);

/* WW_OK, or WW_OTHER_PROCESS if the device was opened before the fork() that made this process. What is public asks it first:
 * the device's locks may be held for ever, by threads that are not here, and nothing of it may be used or given back. */
static inline ww_status device_check(const ww_device *device)
{
    return process_check(device->opened_in, device->info.id);
}
static inline bool device_is_ours(const ww_device *device)
{
    return process_is_ours(device->opened_in);
}

#endif
