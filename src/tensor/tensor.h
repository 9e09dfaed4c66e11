/* What the files of this room share: storages from inside, the checks that come before every operation, and jobs made of
 * tensors.
 */
#ifndef WW_TENSOR_TENSOR_H
#define WW_TENSOR_TENSOR_H

#include <stdbool.h>

#include <warpwave/tensor.h>

#include "base/status.h"
#include "device/backend.h"
#include "device/tensor_jobs.h"

struct ww_storage {
    ww_device *device; /* retained */
    ww_dtype dtype;
    int64_t elements;
    buffer data;
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

/* Is x there, is its layout one, and does every element lie in its storage? `role` names it in messages: "x", "ids". */
ww_status check_tensor(const char *operation, const char *role, const ww_tensor *x);
ww_status check_out(const char *operation, ww_storage **out); /* not NULL; empties it */
ww_status check_same_device(const char *operation, const ww_tensor *x, const ww_tensor *y);
ww_status check_same_type(const char *operation, const ww_tensor *x, const ww_tensor *y);
ww_status check_same_shape(const char *operation, const ww_tensor *x, const ww_tensor *y);
/* Does no two elements of x share a place? Dimensions that do not nest are refused with those that do. */
ww_status check_writable(const char *operation, const char *role, const ww_tensor *x);
/* -rank..rank-1 becomes 0..rank-1. */
ww_status check_dim(const char *operation, const ww_tensor *x, int32_t *dim);
/* WW_UNSUPPORTED: "sqrt: not for u8". */
ww_status refuse_type(const char *operation, ww_dtype dtype);

/* Elements of a checked layout. */
int64_t count_of(const ww_layout *layout);

/* ---- jobs ---------------------------------------------------------------------------------------------------------------- */

/* The operand that a checked tensor is. */
tensor_operand operand_of(const ww_tensor *x);

/* Sets the job's shape, count and operands' strides from a shape and the operands, simplified. The operands' strides are
 * those of `shape` when this is called. */
void job_simplify(elementwise_job *job, int32_t rank, const int64_t *shape);

/* Do the two share bytes of one storage? May say yes where the elements only lie between each other's. */
bool tensors_meet(const ww_tensor *x, const ww_tensor *y);

/* What every function that makes a storage asks first; empties `out`. */
ww_status check_new(const char *operation, ww_device *device, ww_dtype dtype, int64_t elements, ww_storage **out);

/* Gives a storage that was filled in `out`, or ends it if the status is not WW_OK. Returns the status. */
ww_status give_filled(ww_status status, ww_storage *storage, ww_storage **out);

/* Makes an uninitialised storage, without checking what the public function checks. */
ww_status storage_make(ww_device *device, ww_dtype dtype, int64_t elements, ww_storage **out);

/* Runs a job that fills a new storage of `dtype` with the shape's elements: makes it, completes the job (out, shape), runs it,
 * and gives the storage in `out`, or nothing. */
ww_status run_to_new(ww_device *device, elementwise_job *job, const ww_layout *shape, ww_dtype dtype, ww_storage **out);

#endif
