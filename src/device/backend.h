/* The backend interface: what every CPU and GPU must be able to do, as one table of functions.
 *
 * A backend is a kind of device ("cpu", "cuda", "rocm"). It finds its devices, opens them, keeps memory on them in
 * buffers, copies bytes, and carries out operations on them. The rooms above (collections, tensors) know only this file.
 *
 * Rules for every function: if it fails, it returns a status, sets a message and changes nothing. It waits only if its comment
 * says so. Operations take a stream: work on one stream is done in order, and is complete when stream_synchronize returns.
 * Functions marked "blocking" return when their work is done. Any thread may call any function, but only one thread at a time
 * may use a stream.
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

/* A device as the rooms above see it. A backend's own device struct starts with this one. */
struct ww_device {
    const backend *backend;
    atomic_int users;       /* opens and collections; the last one to release it closes it */
    process_mark opened_in; /* the process that opened it, the only one in which it works */
    ww_device_info info;

    /* Random numbers for tensors: the seed, and how many blocks of its sequence have been used. */
    atomic_uint_least64_t random_seed, random_blocks;

    device_tuning tuning;
};

/* A piece of a device's memory. `data` is a device address: the host may only read it if the device is a CPU. If `bytes` is 0,
 * `data` may be NULL. */
typedef struct buffer {
    void *data;
    size_t bytes;
    ww_device *owner; /* in a group: the member that has it; NULL: the device that created it */
} buffer;

/* Bytes [offset, offset + bytes) of a buffer. */
typedef struct buffer_range {
    const buffer *buffer;
    size_t offset;
    size_t bytes;
} buffer_range;

typedef struct device_stream device_stream; /* defined by each backend */

/* Rows on a device: `capacity` rows have room, the first `count` exist. There is room for whole words of 64 rows, so that
 * `first_row` is a multiple of 64 and masks over all rows can be read word by word. */
typedef struct segment {
    buffer rows;  /* capacity x canon_padded(dim) elements of `type`, in an order that the backend chooses */
    buffer norms; /* sqrt(dot(x,x)) of each row */
    buffer live;  /* one bit per row, in 64-bit words; bits from `count` on are 0 */

    /* For the screen (arithmetic/screen.h); all three are empty in a collection without a screen. Rows of bytes are their own
     * codes. */
    buffer codes;     /* capacity x canon_padded(dim) int8; the backend chooses the order within a row */
    buffer scales;    /* one float per row */
    buffer residuals; /* one float per row: at least the norm of what quantizing lost */

    /* The high plane of the codes (arithmetic/screen.h), if the device reads it; otherwise empty. */
    buffer highs;          /* capacity x canon_padded(dim) / 2 bytes */
    buffer high_residuals; /* one float per row: the same for the plane */

    int64_t first_row;
    int64_t count;
    int64_t capacity;
    int32_t type;      /* of the rows: ROW_F32, ... (arithmetic/row_types.h) */
    int32_t member;    /* in a group: the number of the member that has it; otherwise 0 */
    bool rows_on_host; /* `rows` are in pinned host memory, which the device reads over the bus */
} segment;

typedef struct segment_list {
    const segment *segments;
    int64_t count;
} segment_list;

enum { MEMBER_ANY = -1, MEMBERS_MAX = 64 }; /* of a group */

/* A segment to create. */
typedef struct segment_plan {
    int32_t dim;
    int32_t type;
    bool screen;           /* with codes, scales and residuals */
    bool live;             /* with live bits, all 0: for a segment that is searched */
    device_stream *stream; /* sets the live bits; may be NULL without them */
    bool rows_on_host;     /* rows in pinned host memory, unless the device's memory is the host's anyway */
    int32_t member;        /* in a group: the member that gets it; MEMBER_ANY: the group chooses */
    int64_t capacity;      /* rows; a multiple of 64 */

    /* For a group that chooses: the number of rows wanted in this and all later segments, and the existing segments, so that
     * each member gets its share. The group may make the segment smaller than requested. */
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

/* Rows of a segment by their numbers in it, in ascending order. */
typedef struct row_choice {
    const segment *segment;
    const int64_t *numbers;
    int64_t count;
    int32_t dim;
} row_choice;

/* What a search did for all its queries together. A row counts once per query. */
typedef struct search_stats {
    int64_t rows_screened; /* tested by the screen */
    int64_t rows_kept;     /* of these, not discarded */
    int64_t rows_scored;   /* whose canonical score was computed, for any reason */
    int64_t fallback_queries;
    float certificate; /* see ww_search_stats */
    int64_t repeated_queries;
    int64_t lists_read, list_rows_read, list_bytes_read; /* by rows_search_lists or its replacement */
} search_stats;

/* Marks of a query, so that a group counts it once in fallback_queries and repeated_queries. */
enum { MARK_FALLBACK = 1, MARK_REPEATED = 2 };

enum { SEARCH_K_MAX = 2048 }; /* hits that kernels keep for a query; more are found as a range without a bound */

/* One search, checked: every pointer valid, queries finite, 1 <= k <= SEARCH_K_MAX, query_count >= 1. */
typedef struct search_job {
    int32_t metric; /* CANON_COSINE, ... */
    int32_t dim;
    int32_t type; /* of the rows, as in every segment */
    const segment *segments;
    int64_t segment_count;
    const float *queries; /* in host memory, or with queries_on_device in device memory */
    bool queries_on_device;
    int64_t query_count;
    int64_t query_stride; /* in floats; dim if they are on the device */
    int32_t k;
    const uint64_t *mask; /* host, over all rows; NULL admits all */
    int64_t mask_rows;
    int64_t *rows; /* host, query_count x k */
    float *scores;
    bool screen;          /* the segments have codes, and may be screened; the results are the same */
    search_stats *stats;  /* zero except for a certificate of +inf; the backend adds its counts; may be NULL */
    ww_progress progress; /* may be NULL */
    void *progress_user;
    uint8_t *marks; /* one byte per query, to which MARK_... are added; may be NULL */
} search_job;

/* Rows of a collection by their numbers, in ascending order. */
typedef struct row_list {
    const uint32_t *rows;
    int64_t count;
} row_list;

typedef struct device_lists device_lists; /* codes of rows in list order, in device memory; defined by each backend */

/* Lists for a device to copy. */
typedef struct list_push {
    const segment *segments; /* with a screen */
    int64_t segment_count;
    int32_t dim, type;
    const row_list *lists;
    int64_t count;
    int64_t *held; /* for each list: how many of its first rows the device already has; updated to the new number */
} list_push;

/* A search that reads only some lists of rows: query q reads lists[numbers[i]] for starts[q] <= i < starts[q + 1]. A query
 * reads a list only once, and no row is in two lists. Only live and admitted rows of these lists can be found. */
typedef struct list_job {
    search_job search;
    const row_list *lists;
    const uint32_t *numbers;  /* the nearest list first, so that thresholds are tight from the start */
    const int64_t *starts;    /* query_count + 1 */
    bool all_count;           /* every row of every list is live and admitted */
    const device_lists *held; /* all these lists, from lists_push; NULL if the backend has no such function */
} list_job;

/* A range search, checked: finds all rows at least as good as a bound. `bound` is a number or infinite, but not -0; for l2 it
 * is not negative. The fields of `search` for a number of results (k, rows, scores) are ignored. The certificate is 0 if the
 * screen discarded a row by the bound itself, and +inf if it discarded none. */
typedef struct range_job {
    search_job search;
    float bound;     /* for a score: l2 at most this, cosine and dot at least this */
    int64_t limit;   /* maximum number of keys per query, the best ones; 0 only counts. The counts always include all. */
    key_list *found; /* one per query, in host memory, empty; receives keys (arithmetic/canon.h) in order, which the caller
                        frees, also after a failure */
} range_job;

struct backend {
    const char *name;
    bool on_host;      /* buffers are host memory, which the host may read and write */
    bool by_name_only; /* "all" leaves its devices out */

    /* ---- finding devices ------------------------------------------------------------------------------------------------ */

    /* Returns the number of devices. If there are none, it is 0 with WW_OK, and ww_error_message() says why. */
    ww_status (*count)(int32_t *count);
    /* Fills in what is known without opening the device; does not touch info->struct_size. */
    ww_status (*describe)(int32_t index, ww_device_info *info);
    /* Opens the device and returns it with users = 1. */
    ww_status (*open)(int32_t index, ww_device **device);
    /* Frees everything. The caller has destroyed all buffers and streams before. */
    void (*close)(ww_device *device);
    /* Total, free, used by us, pooled, peak; does not touch struct_size. */
    ww_status (*memory)(ww_device *device, ww_memory_info *memory);
    /* Frees pooled memory. */
    ww_status (*trim)(ww_device *device);

    /* For a group, otherwise NULL: updates what has changed since it was opened, and the id of a member by its number. */
    void (*describe_open)(ww_device *device, ww_device_info *info);
    const char *(*member_id)(ww_device *device, int32_t member);

    /* Returns the host threads that work for the device, which owns them; NULL if it has none. */
    pool *(*threads)(ww_device *device);

    /* ---- buffers -------------------------------------------------------------------------------------------------------- */

    /* Uninitialised memory, aligned to 256 bytes. If it does not fit, the message says how much was requested and how much is
     * free. */
    ww_status (*buffer_create)(ww_device *device, size_t bytes, buffer *out);
    /* Frees a buffer and empties the struct; waits for work that uses it. Accepts an empty buffer. In any order. */
    void (*buffer_destroy)(ww_device *device, buffer *buffer);

    /* Host memory that the device reads at the same address, over the bus, and that stays readable if the device is lost. Both
     * are NULL if buffers are host memory. Otherwise like the two above. */
    ww_status (*pinned_create)(ww_device *device, size_t bytes, buffer *out);
    void (*pinned_destroy)(ww_device *device, buffer *buffer);

    /* ---- segments ------------------------------------------------------------------------------------------------------- */

    /* Creates a segment without rows. Only its live bits are initialised; first_row and count are 0. Blocking. */
    ww_status (*segment_create)(ww_device *device, const segment_plan *plan, segment *out);
    /* Frees what the segment has, and empties the struct. Accepts a segment that is all zero or partly created. */
    void (*segment_destroy)(ww_device *device, segment *segment);
    /* Returns true if these segments are on the right members. NULL: there is only one place. */
    bool (*segments_balanced)(ww_device *device, const segment *segments, int64_t count);
    /* Returns the member that should have segment `s` of these: its own if no other brings all members closer to their shares,
     * or if only the members in `without`, one bit each, are left. NULL like the one before. */
    int32_t (*segment_place)(ww_device *device, const segment_list *list, int64_t s, uint64_t without);

    /* ---- streams and copies --------------------------------------------------------------------------------------------- */

    ww_status (*stream_create)(ww_device *device, device_stream **out);
    void (*stream_destroy)(ww_device *device, device_stream *stream); /* accepts NULL */
    ww_status (*stream_synchronize)(ww_device *device, device_stream *stream);

    /* Fills a range, whose offset and bytes are multiples of 4, with a 32-bit pattern. */
    ww_status (*fill)(ww_device *device, device_stream *stream, buffer_range to, uint32_t pattern);
    /* Host to device. The caller may change the host memory when the call returns. */
    ww_status (*copy_in)(ww_device *device, device_stream *stream, buffer_range to, const void *from);
    /* Device to host. Blocking. */
    ww_status (*copy_out)(ww_device *device, device_stream *stream, void *to, buffer_range from);
    /* Device to device, within one device: `to.bytes` bytes, from `from_offset` on. The ranges do not overlap. */
    ww_status (*copy)(ww_device *device, device_stream *stream, buffer_range to, const buffer *from, size_t from_offset);

    /* ---- operations on rows --------------------------------------------------------------------------------------------- */

    /* Writes host rows (dim elements of the segment's type each, row_stride elements apart) to a range of the segment's rows:
     * padded, with their norms and, if the segment has them, codes, scales and residuals. Does not touch live or count. Sets
     * `refused` to the first row (0..to.count-1) whose squared norm is not finite, or to -1. If it is not -1, the contents of
     * the range are undefined. Blocking. */
    ww_status (*rows_write)(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused);
    /* The same from device memory: dense rows, after the tensor work on them is complete. NULL: the backend cannot do this, and
     * its searches do not accept queries_on_device. Blocking. */
    ww_status (*rows_write_here)(ww_device *device, row_range to, const void *rows, int64_t *refused);
    /* Finds the first of `count` dense f32 rows in device memory whose squared norm is not finite, or -1. NULL if
     * rows_write_here is NULL. Blocking. */
    ww_status (*rows_check_here)(ww_device *device, const float *rows, int64_t count, int32_t dim, int64_t *refused);
    /* Writes rows of any type as f32, dense, to device memory, where searches can use them as queries_on_device. NULL if
     * rows_write_here is NULL. Blocking. */
    ww_status (*rows_read_here)(ww_device *device, const row_choice *from, float *to);
    /* Reads rows back, dim elements each, dense, with the same bits as written. Blocking. */
    ww_status (*rows_read)(ww_device *device, row_range from, void *out);
    /* Copies rows sources[0..to.count) of `from`, in ascending order, to a range of rows, with their norms and the screen's
     * data. Blocking. */
    ww_status (*rows_gather)(ww_device *device, row_range to, const segment *from, const int64_t *sources);
    /* Finds the k best live and admitted rows for each query; pads the results as ww_collection_search documents. Blocking. */
    ww_status (*rows_search)(ww_device *device, const search_job *job);
    /* The same among the rows of some lists. NULL: the backend has no special way, and the caller uses rows_search with a mask
     * for each query instead. Blocking. */
    ww_status (*rows_search_lists)(ww_device *device, const list_job *job);
    /* Updates `lists`, initially NULL, as the job says. After a failure `lists` is NULL, and `held` is 0 for all lists. NULL:
     * searches of lists do not need them. Blocking. */
    ww_status (*lists_push)(ww_device *device, const list_push *job, device_lists **lists);
    /* Frees lists; accepts NULL. Below: the bytes they take on the device. Both are NULL if lists_push is NULL. */
    void (*lists_destroy)(ww_device *device, device_lists *lists);
    int64_t (*lists_bytes)(const device_lists *lists);
    /* Finds all live and admitted rows of each query that are at least as good as a bound. Blocking. */
    ww_status (*rows_range)(ww_device *device, const range_job *job);

    /* ---- operations on tensors ------------------------------------------------------------------------------------------ */

    const struct tensor_backend *tensors;

    /* ---- operations on quantized matrices -------------------------------------------------------------------------------- */

    const quant_backend *quants;

    /* ---- the caller's own kernels -----------------------------------------------------------------------------------------
     */

    const struct kernel_backend *kernels; /* NULL: it runs none */
};

/* The backends of this build, best first: the order in which "auto" tries them. Ends with NULL. */
extern const backend *const backends[];

/* Adds a user to an open device. Each user is released with ww_device_close(). */
ww_device *device_retain(ww_device *device);

/* Returns WW_OK, or WW_UNSUPPORTED if the device is a group, which has only collections; `what` names the rest. */
ww_status device_check_single(const ww_device *device, const char *what);

/* Returns WW_OK, or WW_OTHER_PROCESS if the device was opened before the fork() that made this process. Every public function
 * checks this first: threads that do not exist in this process may hold the device's locks for ever, and nothing of the device
 * may be used or freed here. */
static inline ww_status device_check(const ww_device *device)
{
    return process_check(device->opened_in, device->info.id);
}
static inline bool device_is_ours(const ww_device *device)
{
    return process_is_ours(device->opened_in);
}

#endif
