/* Operations on tensors as a backend sees them: checked and simplified jobs, and the table of functions that do them.
 *
 * The callers (src/tensor) make sure that types and shapes fit, that every element is inside its buffer, and that outputs do
 * not overlap inputs. Dimensions of size 1 are removed, and dimensions that are contiguous in all operands are merged: a job
 * whose operands are all dense has rank 1 (or 0) with strides of 1.
 *
 * A device does its work in the order of the calls. A GPU queues it on the device's stream for tensors and returns; functions
 * marked "waits" return when it is done. Any thread may call any function.
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

/* An operand: its first element, and the distance between elements along each dimension. */
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
    ELEMENTWISE_COPY,   /* in[0] -> out, same type; out may have any strides, but each element must have its own place */
    ELEMENTWISE_SET,    /* the bits in ia -> out; strides as for ELEMENTWISE_COPY */
} elementwise_family;

typedef struct elementwise_job {
    elementwise_family family;
    int32_t op;
    int32_t inputs;
    int32_t rank;
    int64_t shape[TENSOR_RANK_MAX];
    int64_t count; /* at least 1 */
    tensor_operand out, in[ELEMENTWISE_INPUTS];
    double a, b;    /* for parametric operations on floats */
    int64_t ia, ib; /* the same for integers; or the bits for ELEMENTWISE_SET */
} elementwise_job;

/* Writes by ids. A line has all elements with the same coordinates except along one dimension; `lines` says where lines start:
 * out = x, in[0] = ids (u8, u32, i64), in[1] = sources. Along a line, each source is written, or added, to the element of x
 * with its id, in their order. Ids are in range or skipped (the largest value of their type means skip). */
typedef struct scatter_job {
    elementwise_job lines; /* count is the number of lines, at least 1 */
    int64_t length;        /* ids per line, at least 1 */
    int64_t extent;        /* elements of x per line */
    int64_t x_step, ids_step, src_step;
    int32_t what; /* INDEX_SET or INDEX_ADD; each addition is rounded to the type */
} scatter_job;

/* Writes random numbers to dense memory (arithmetic/philox.h). */
typedef struct random_job {
    void *to;
    int32_t type; /* a float */
    int32_t what; /* RANDOM_UNIFORM or RANDOM_NORMAL */
    int64_t count;
    uint64_t seed, first_block;
    double a, b; /* low and span, or mean and deviation */
} random_job;
typedef struct tensor_recording tensor_recording; /* defined by each backend */
struct resample_args;                             /* arithmetic/resample.h */
struct cumsum_args;                               /* arithmetic/cumsum.h */
struct conv_integer_args;                         /* arithmetic/conv_integer.h */

typedef struct tensor_backend {
    /* ---- memory ---------------------------------------------------------------------------------------------------------- */

    /* Like buffer_create and buffer_destroy, but in the order of the work on tensors: releasing a buffer while work is queued
     * does not wait. A buffer of 0 bytes is empty. */
    ww_status (*alloc)(ww_device *device, size_t bytes, buffer *out);
    void (*release)(ww_device *device, buffer *memory);
    /* For all bytes of a buffer: set to zero; copy from the host, which may change its memory afterwards; copy to the host
     * (waits). */
    ww_status (*zero)(ww_device *device, const buffer *to);
    ww_status (*write)(ww_device *device, const buffer *to, const void *from);
    ww_status (*read)(ww_device *device, void *to, const buffer *from);
    ww_status (*synchronize)(ww_device *device); /* waits */

    /* ---- streams and memory of other libraries
     * -------------------------------------------------------------------------------- */

    /* Like release, for memory on which other libraries may have queued work: waits for all work on the device. */
    void (*release_shared)(ww_device *device, buffer *memory);
    /* Returns the handle of the stream for tensors, for other libraries; NULL if there is none. */
    ww_status (*stream)(ww_device *device, void **stream);
    /* The tensors' stream waits for the work that is now on another stream, or the reverse. WW_STREAM_NONE: neither waits. */
    ww_status (*wait_stream)(ww_device *device, void *stream);
    ww_status (*signal_stream)(ww_device *device, void *stream);

    /* ---- families of operations ------------------------------------------------------------------------------------------ */

    ww_status (*elementwise)(ww_device *device, const elementwise_job *job);
    ww_status (*random)(ww_device *device, const random_job *job);

    /* Finds an element of in[0], the ids, that is neither in 0..extent-1 nor the skip value. Returns its index and value, or
     * -1. Waits. */
    ww_status (*check_ids)(ww_device *device, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value);
    /* Like check_ids, and sets out to the element of in[0] that is ia * id elements further; the id is from in[1], below ib. A
     * skipped element becomes 0; if an id is refused, out is undefined. Waits only for the check. */
    ww_status (*gather)(ww_device *device, const elementwise_job *job, const elementwise_job *ids, int64_t *bad,
                        int64_t *value);
    ww_status (*scatter)(ww_device *device, const scatter_job *job);
    ww_status (*reduce)(ww_device *device, const reduce_job *job);
    ww_status (*rows)(ww_device *device, const rows_job *job);
    /* NULL: the device has no such function, and the caller transposes the tensor. */
    ww_status (*softmax_columns)(ww_device *device, const softmax_columns_job *job);
    ww_status (*rope)(ww_device *device, const rope_job *job);
    ww_status (*sort)(ww_device *device, const sort_job *job);
    /* A product with at least one result, and k at least 1. */
    ww_status (*matmul)(ww_device *device, const matmul_job *job);
    /* Pooling and upsampling with at least one output. */
    ww_status (*resample)(ww_device *device, const struct resample_args *args);
    /* One round of running sums, and convolutions of u8 and u32, with at least one output. */
    ww_status (*cumsum)(ww_device *device, const struct cumsum_args *args);
    ww_status (*conv_integer)(ww_device *device, const struct conv_integer_args *args);
    /* Writes keys and values to the pages of a cache, and computes attention of queries. */
    ww_status (*attention_store)(ww_device *device, const attention_store_job *job);
    ww_status (*attention)(ww_device *device, const attention_job *job);

    /* ---- recorded steps --------------------------------------------------------------------------------------------------
     * Between record_begin and record_end, operations of this thread on the device's tensors and quantized matrices are
     * recorded, not done; other threads wait. The recording can be replayed any number of times, in the order of the other
     * work: with the same arguments, on the same memory, with its contents at that time. The caller must keep all memory that
     * recorded operations use for as long as the recording exists, except memory that was allocated and freed during the
     * recording. A replay allocates nothing.
     *
     * Operations that wait, or copy from or to the host, cannot be recorded. Nor can operations that need a larger workspace or
     * another kernel than was used before, so callers run a step once before they record it. record_end returns the recording.
     * With `keep` false it ends without one, and never fails: callers do that after a failure, and continue without a
     * recording. All are NULL if the device does everything at once; then calling the operations again is the replay. */
    ww_status (*record_begin)(ww_device *device);
    ww_status (*record_end)(ww_device *device, bool keep, tensor_recording **out);
    ww_status (*replay)(ww_device *device, const tensor_recording *recording); /* queues */
    void (*recording_release)(ww_device *device, tensor_recording *recording); /* accepts NULL */
} tensor_backend;

/* Returns the bytes of an element. */
static inline int32_t type_size(int32_t type)
{
#define TYPE(NAME, name, bits, kind) sizeof(bits),
    static const int8_t sizes[] = {TYPES(TYPE)};
#undef TYPE
    return sizes[type];
}

#endif
