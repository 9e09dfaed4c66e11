/* Shared by the files of this room: the fields of storages, the checks before every operation, and jobs made from tensors.
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
    atomic_int users;  /* tensors and other holders; the last one to release it frees it */
    ww_dtype dtype;
    int64_t elements;
    buffer data;
    atomic_bool shared; /* other libraries know its address, and may use it on their streams */
    bool foreign;       /* another library owns the memory; `release` tells it when it is no longer used */
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

/* ---- checks: WW_OK, or a message that starts with `operation`
   --------------------------------------------------------------- */

/* Checks that x is not NULL, its layout is valid, and every element is in its storage. `role` names it in messages: "x",
 * "ids". */
ww_status check_tensor(const char *operation, const char *role, const ww_tensor *x);
ww_status check_out(const char *operation, const ww_tensor *out); /* must not be NULL */
ww_status check_same_device(const char *operation, const ww_tensor *x, const ww_tensor *y);
ww_status check_same_type(const char *operation, const ww_tensor *x, const ww_tensor *y);
ww_status check_same_shape(const char *operation, const ww_tensor *x, const ww_tensor *y);
/* Checks that ids have an id type; below, that each is below `extent` or skipped. The latter waits for them. */
ww_status check_ids_type(const char *operation, const ww_tensor *ids);
ww_status check_ids(const char *operation, const ww_tensor *ids, int64_t extent);
/* Checks that x can be written, and that no two elements of it share a place. Layouts that merely do not nest are refused,
   too. */
ww_status check_writable(const char *operation, const char *role, const ww_tensor *x);
ww_status check_not_read_only(const char *operation, const char *role, const ww_tensor *x);
/* Checks a dimension and converts -rank..rank-1 to 0..rank-1. */
ww_status check_dim(const char *operation, const ww_tensor *x, int32_t *dim);
/* Fails with WW_UNSUPPORTED: "sqrt: not for u8". */
ww_status refuse_type(const char *operation, ww_dtype dtype);

/* Returns the number of elements of a checked layout. */
int64_t count_of(const ww_layout *layout);

/* Returns true if the elements are contiguous in row-major order. */
bool layout_is_dense(const ww_layout *layout);

/* ---- jobs ---------------------------------------------------------------------------------------------------------------- */

/* Makes an operand of a checked tensor. */
tensor_operand operand_of(const ww_tensor *x);

/* Makes an operand with its strides in a shape that it was broadcast to. */
tensor_operand operand_in(const ww_tensor *x, const ww_layout *shape);

/* Computes the shape that `count` checked tensors are broadcast to, dense: sizes are compared from the last dimension on, and
 * must be equal, 1 or missing. If two shapes do not fit, the message has both. */
ww_status broadcast_shapes(const char *operation, const ww_tensor *const *xs, int32_t count, ww_layout *shape);

/* Sets the job's shape, count and operands' strides, simplified. When this is called, the operands' strides are those of
 * `shape`. */
void job_simplify(elementwise_job *job, int32_t rank, const int64_t *shape);

/* Returns true if they share bytes. May also return true if the elements only interleave. */
bool tensors_meet(const ww_tensor *x, const ww_tensor *y);

/* ---- storages and copies ------------------------------------------------------------------------------------------------- */

/* The checks of every function that creates a storage. */
ww_status check_new(const char *operation, ww_device *device, ww_dtype dtype, int64_t elements);

/* The description of a new tensor, and its checks. */
typedef struct new_tensor {
    const char *operation;
    ww_device *device;
    ww_dtype dtype;
    int32_t rank;
    const int64_t *shape;
} new_tensor;
ww_status check_new_tensor(const new_tensor *made, const ww_tensor *out);

/* Creates an uninitialised storage, without the checks of the public function. */
ww_status storage_make(ww_device *device, ww_dtype dtype, int64_t elements, ww_storage **out);

/* Makes a storage of another library's memory. `release` is called when the storage is freed, not if this fails. */
ww_status storage_wrap(ww_device *device, const ww_storage *as, ww_storage **out);

/* Returns the bytes of a dense tensor as a buffer. */
buffer dense_bytes(const ww_tensor *x);

/* Copies between checked tensors of the same shape and type that do not overlap. */
ww_status copy_apart(const ww_tensor *from, const ww_tensor *to);

/* Sets every element to the low bits of `bits`. */
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
    ww_tensor *out;                         /* the caller's tensor, not NULL: with a storage, or empty */
    const ww_tensor *inputs[RESULT_INPUTS]; /* tensors that are read while the result is written; may be NULL */
    bool by_element;                        /* each element depends only on those at the same place: it may overwrite them */
    bool any_strides;                       /* the backend can write to any layout; otherwise `at` is dense and aligned */
    bool apart;                             /* the result must not be written directly, for another reason */
    ww_tensor at;
    bool made; /* `at` has a new storage */
} result;

ww_status result_begin(result *r, ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape);

/* Sets `at` to zero. */
ww_status result_zero(const result *r);

/* Returns the operation's status, or that of the copy. If it is not WW_OK, frees a new storage. */
ww_status result_end(result *r, ww_status status);

/* Broadcasts element-wise inputs to one shape and runs the job into `out`. */
ww_status run_elementwise(const char *operation, elementwise_job *job, const ww_tensor *const *inputs, ww_dtype dtype,
                          ww_tensor *out);

#endif
