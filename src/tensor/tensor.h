/* What the files of this room share: storages from inside, the checks that come before every operation, and jobs made of
 * tensors.
 */
#ifndef WW_TENSOR_TENSOR_H
#define WW_TENSOR_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include <warpwave/tensor.h>

#include "base/status.h"
#include "device/backend.h"
#include "device/tensor_jobs.h"

struct ww_storage {
    ww_device *device; /* retained */
    atomic_int users;  /* tensors and others that retained it; the last to release it frees it */
    ww_dtype dtype;
    int64_t elements;
    buffer data;
    atomic_bool shared; /* others were told where it is, and may use it on streams of their own */
    bool foreign;       /* another library owns the memory; `release` tells it when it is no longer used: */
    bool read_only;
    void (*release)(void *owner); /* may be NULL */
    void *owner;
};

static inline const tensor_backend *tensors_of(const ww_device *device)
{
    return device->backend->tensors;
}

/* ---- texts for messages -------------------------------------------------------------------------------------------------- */

typedef struct shape_text {
    char text[8 * 21 + 8];
} shape_text;

/* "[2, 3]". */
shape_text shape_to_text(int32_t rank, const int64_t *shape);
#define SHAPE_TEXT(layout) shape_to_text((layout)->rank, (layout)->shape).text

/* ---- checks: WW_OK, or a refusal that begins with `operation` -------------------------------------------------------------
 */

/* Is x not NULL, is its layout valid, and is every element in its storage? `role` names it in messages: "x", "ids". */
ww_status check_tensor(const char *operation, const char *role, const ww_tensor *x);
ww_status check_out(const char *operation, const ww_tensor *out); /* not NULL */
ww_status check_same_device(const char *operation, const ww_tensor *x, const ww_tensor *y);
ww_status check_same_type(const char *operation, const ww_tensor *x, const ww_tensor *y);
ww_status check_same_shape(const char *operation, const ww_tensor *x, const ww_tensor *y);
/* Do ids have an id type? And is each below `extent`, or skipped? The latter waits for them. */
ww_status check_ids_type(const char *operation, const ww_tensor *ids);
ww_status check_ids(const char *operation, const ww_tensor *ids, int64_t extent);
/* May x be written to, and do no two elements of it share a place? Dimensions that do not nest are refused with those that do.
 */
ww_status check_writable(const char *operation, const char *role, const ww_tensor *x);
ww_status check_not_read_only(const char *operation, const char *role, const ww_tensor *x);
/* -rank..rank-1 becomes 0..rank-1. */
ww_status check_dim(const char *operation, const ww_tensor *x, int32_t *dim);
/* WW_UNSUPPORTED: "sqrt: not for u8". */
ww_status refuse_type(const char *operation, ww_dtype dtype);

/* Elements of a checked layout. */
int64_t count_of(const ww_layout *layout);

/* Do the elements lie one behind the other in row-major order? */
bool layout_is_dense(const ww_layout *layout);

/* ---- jobs ---------------------------------------------------------------------------------------------------------------- */

/* The operand that a checked tensor is. */
tensor_operand operand_of(const ww_tensor *x);

/* Its strides in a shape that it was broadcast to. */
tensor_operand operand_in(const ww_tensor *x, const ww_layout *shape);

/* The shape that `count` checked tensors are broadcast to, dense: sizes are counted from the last dimension, and are equal, 1
 * or missing. Refuses shapes that do not fit, both of them in the message. */
ww_status broadcast_shapes(const char *operation, const ww_tensor *const *xs, int32_t count, ww_layout *shape);

/* Sets the job's shape, count and operands' strides from a shape and the operands, simplified. The operands' strides are
 * those of `shape` when this is called. */
void job_simplify(elementwise_job *job, int32_t rank, const int64_t *shape);

/* Do the two share bytes? May return true if the elements only interleave. */
bool tensors_meet(const ww_tensor *x, const ww_tensor *y);

/* ---- storages and copies ------------------------------------------------------------------------------------------------- */

/* What every function that makes a storage asks first. */
ww_status check_new(const char *operation, ww_device *device, ww_dtype dtype, int64_t elements);

/* What a tensor that is made from nothing shall be, and the checks of that. */
typedef struct new_tensor {
    const char *operation;
    ww_device *device;
    ww_dtype dtype;
    int32_t rank;
    const int64_t *shape;
} new_tensor;
ww_status check_new_tensor(const new_tensor *made, const ww_tensor *out);

/* Makes an uninitialised storage, without checking what the public function checks. */
ww_status storage_make(ww_device *device, ww_dtype dtype, int64_t elements, ww_storage **out);

/* Another's memory as a storage. `release` is called when the storage ends, not if this fails. */
ww_status storage_wrap(ww_device *device, const ww_storage *as, ww_storage **out);

/* The bytes of a dense tensor, as a buffer of its own. */
buffer dense_bytes(const ww_tensor *x);

/* Copies between checked tensors of one shape and type that do not overlap. */
ww_status copy_apart(const ww_tensor *from, const ww_tensor *to);

/* Sets every element to the bits at the low end of `bits`. */
ww_status set_elements(const ww_tensor *to, int64_t bits);

/* ---- results ---------------------------------------------------------------------------------------------------------------
 *
 * An operation begins its result after all other checks, has the backend write to `at`, and ends it with the backend's status.
 * The caller's tensor is written directly if possible. Otherwise a dense one is made, and given to the caller or copied to
 * where the caller wants it.
 */

enum { RESULT_INPUTS = 4 };

typedef struct result {
    const char *operation;
    ww_tensor *out;                         /* the caller's, not NULL: with a storage, or to be given one */
    const ww_tensor *inputs[RESULT_INPUTS]; /* what is read while the result is written; may be NULL */
    bool by_element;                        /* each element depends on those at its own place: in place is safe */
    bool any_strides;                       /* the backend writes to any layout; otherwise `at` is dense and aligned */
    bool apart;                             /* something else keeps the result from being written straight */
    ww_tensor at;
    bool made; /* `at` has a new storage */
} result;

ww_status result_begin(result *r, ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape);

/* Fills `at` with zeros. */
ww_status result_zero(const result *r);

/* Returns the status of the operation, or of what was left to do; gives a new storage back if that is not WW_OK. */
ww_status result_end(result *r, ww_status status);

/* Runs a job of element-wise inputs, which are broadcast to one shape, into `out`. */
ww_status run_elementwise(const char *operation, elementwise_job *job, const ww_tensor *const *inputs, ww_dtype dtype,
                          ww_tensor *out);

#endif
