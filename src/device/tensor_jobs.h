/* Operations on tensors as a backend sees them: jobs that are checked and simplified, and the table of functions that do them.
 *
 * Everything above (src/tensor) has seen to it that types and shapes fit, that every element lies in its buffer, and that what
 * is written does not overlap what is read. Dimensions of size 1 are gone and dimensions that lie one behind the other in all
 * operands are one: a job whose operands are all dense has rank 1 (or 0) with strides of 1.
 *
 * Work of one device happens in the order of the calls. A GPU queues it on the device's stream for tensors and returns;
 * functions marked "waits" return when it is done. Any function may be called from any thread.
 */
#ifndef WW_DEVICE_TENSOR_JOBS_H
#define WW_DEVICE_TENSOR_JOBS_H

#include "arithmetic/operations.h"
#include "arithmetic/types.h"
#include "device/attention_jobs.h"
#include "device/backend.h"
#include "device/matmul_job.h"
#include "device/row_jobs.h"

enum { TENSOR_RANK_MAX = ELEMENTWISE_RANK };

/* An operand: its first element and how far apart the elements of each dimension are. */
typedef struct tensor_operand {
    void *data; /* on the device */
    int32_t type;
    int64_t strides[TENSOR_RANK_MAX]; /* elements */
} tensor_operand;

/* What is done to each element. */
typedef enum elementwise_family {
    ELEMENTWISE_UNARY,  /* in[0] -> out, same type; op of unary_op, parametric ones with a and b */
    ELEMENTWISE_BINARY, /* in[0], in[1] -> out, same type; op of binary_op */
    ELEMENTWISE_CMP,    /* in[0], in[1] of one type -> out u8; op of cmp_op */
    ELEMENTWISE_WHERE,  /* in[0] u8, u32 or i64; in[1] where it is not 0, in[2] where it is -> out */
    ELEMENTWISE_CAST,   /* in[0] -> out of another type */
    ELEMENTWISE_COPY,   /* in[0] -> out, same type; out may have any strides but those that name an element twice */
    ELEMENTWISE_SET,    /* the bits in ia -> out, likewise */
} elementwise_family;

typedef struct elementwise_job {
    elementwise_family family;
    int32_t op;
    int32_t inputs;
    int32_t rank;
    int64_t shape[TENSOR_RANK_MAX];
    int64_t count; /* at least 1 */
    tensor_operand out, in[ELEMENTWISE_INPUTS];
    double a, b;    /* of a parametric operation on floats */
    int64_t ia, ib; /* on integers; the bits of ELEMENTWISE_SET */
} elementwise_job;

/* Writing by ids: a line is a choice of all coordinates but that along one dimension; `lines` has where they begin, out = x,
 * in[0] = ids (u8, u32, i64), in[1] = sources. Along a line each source goes to, or is added to, the place of x that its id
 * says, in their order; the ids are in range or skipped (the largest value of their type means skip). */
typedef struct scatter_job {
    elementwise_job lines; /* count is the number of lines, at least 1 */
    int64_t length;        /* ids along a line, at least 1 */
    int64_t extent;        /* of x along it */
    int64_t x_step, ids_step, src_step;
    int32_t what; /* INDEX_SET or INDEX_ADD; each addition is rounded to the type */
} scatter_job;

/* Random numbers into dense memory (arithmetic/philox.h). */
typedef struct random_job {
    void *to;
    int32_t type; /* a float */
    int32_t what; /* RANDOM_UNIFORM or RANDOM_NORMAL */
    int64_t count;
    uint64_t seed, first_block;
    double a, b; /* low and span, or mean and deviation */
} random_job;
typedef struct tensor_recording tensor_recording; /* the backend's own */
struct resample_args;                             /* arithmetic/resample.h */
struct cumsum_args;                               /* arithmetic/cumsum.h */
struct conv_integer_args;                         /* arithmetic/conv_integer.h */

typedef struct tensor_backend {
    /* ---- memory ---------------------------------------------------------------------------------------------------------- */

    /* As buffer_create and buffer_destroy, in the order of the work on tensors: released while that is queued, it does not
     * wait. A buffer of 0 bytes is empty. */
    ww_status (*alloc)(ww_device *device, size_t bytes, buffer *out);
    void (*release)(ww_device *device, buffer *memory);
    /* All bytes of a buffer: zeroed; from the host, which may change them after; to the host (waits). */
    ww_status (*zero)(ww_device *device, const buffer *to);
    ww_status (*write)(ww_device *device, const buffer *to, const void *from);
    ww_status (*read)(ww_device *device, void *to, const buffer *from);
    ww_status (*synchronize)(ww_device *device); /* waits */

    /* ---- streams and memory that others use ------------------------------------------------------------------------------ */

    /* As release, of memory on which others may have queued work: what is on the device is waited for. */
    void (*release_shared)(ww_device *device, buffer *memory);
    /* The stream of the work on tensors, as others know it; NULL where there is none. */
    ww_status (*stream)(ww_device *device, void **stream);
    /* The work waits for what is on the stream of another now, or that stream for the work; WW_STREAM_NONE: nobody does. */
    ww_status (*wait_stream)(ww_device *device, void *stream);
    ww_status (*signal_stream)(ww_device *device, void *stream);

    /* ---- families of operations ------------------------------------------------------------------------------------------ */

    ww_status (*elementwise)(ww_device *device, const elementwise_job *job);
    ww_status (*random)(ww_device *device, const random_job *job);

    /* Looks for an element of in[0], ids, that is neither in 0..extent-1 nor the skip value: its number and its value, or -1.
     * Waits. */
    ww_status (*check_ids)(ww_device *device, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value);
    /* check_ids, and out = what is ia * id elements behind the element of in[0]; the id is in[1]'s, below ib. 0 where it is
     * skipped, anything where an id is refused. Waits for the check alone. */
    ww_status (*gather)(ww_device *device, const elementwise_job *job, const elementwise_job *ids, int64_t *bad,
                        int64_t *value);
    ww_status (*scatter)(ww_device *device, const scatter_job *job);
    ww_status (*reduce)(ww_device *device, const reduce_job *job);
    ww_status (*rows)(ww_device *device, const rows_job *job);
    /* NULL: it has none, and the tensor is transposed instead. */
    ww_status (*softmax_columns)(ww_device *device, const softmax_columns_job *job);
    ww_status (*rope)(ww_device *device, const rope_job *job);
    ww_status (*sort)(ww_device *device, const sort_job *job);
    /* A product with results to be made, k at least 1. */
    ww_status (*matmul)(ww_device *device, const matmul_job *job);
    /* Pools and enlargements with outputs to be made. */
    ww_status (*resample)(ww_device *device, const struct resample_args *args);
    /* One round of running sums, and convolutions of u8 and u32, with something to be made. */
    ww_status (*cumsum)(ww_device *device, const struct cumsum_args *args);
    ww_status (*conv_integer)(ww_device *device, const struct conv_integer_args *args);
    /* Keys and values into the pages of a cache, and queries against them. */
    ww_status (*attention_store)(ww_device *device, const attention_store_job *job);
    ww_status (*attention)(ww_device *device, const attention_job *job);

    /* ---- recorded steps --------------------------------------------------------------------------------------------------
     * Between begin and end what this thread asks of the device's tensors and quantized matrices is recorded and not done;
     * other threads wait. It can be replayed any number of times, in the order of the other work: with the same arguments, on
     * the same memory, whatever is in that by then. What a recorded operation uses stays the caller's to keep as long as the
     * recording lives, except for memory that was taken and given back meanwhile. Nothing is allocated by a replay.
     *
     * Operations that wait, or copy from or to the host, refuse to be recorded, and so do those that would need a larger
     * workspace or another kernel than was used before: a step is run once before it is recorded. The end gives the recording,
     * or with `keep` false ends it without one, which never fails; after a failure in between the caller ends so, and goes on
     * without. All NULL: the device does what it is asked at once, and calling again is the replay. */
    ww_status (*record_begin)(ww_device *device);
    ww_status (*record_end)(ww_device *device, bool keep, tensor_recording **out);
    ww_status (*replay)(ww_device *device, const tensor_recording *recording); /* queues */
    void (*recording_release)(ww_device *device, tensor_recording *recording); /* accepts NULL */
} tensor_backend;

/* The bytes of an element. */
static inline int32_t type_size(int32_t type)
{
#define TYPE(NAME, name, bits, kind) sizeof(bits),
    static const int8_t sizes[] = {TYPES(TYPE)};
#undef TYPE
    return sizes[type];
}

#endif
