/* Rows and queries that come as tensors.
 *
 * Tensors on the collection's device stay there: rows are packed and queries searched in place. Tensors in host memory are read
 * in place. All others are copied to the host and then handled as ordinary rows and queries.
 */
#ifndef WW_VECTORS_TENSOR_ROWS_H
#define WW_VECTORS_TENSOR_ROWS_H

#include "tensor/tensor.h"
#include "vectors/collection.h"

/* What was made of a tensor; all zero: nothing. */
typedef struct tensor_rows {
    ww_tensor dense; /* on its own device, or empty */
    void *host;      /* the same elements, dense, or NULL */
} tensor_rows;

void tensor_rows_release(tensor_rows *rows);

/* How many rows of the collection's dimension a tensor is: [count, dim], or [dim] for one. Counts of 0 are filled in, others
 * must be the tensor's. `role` names it in messages: "rows->tensor". */
typedef struct tensor_asked {
    const char *function, *role;
    const ww_tensor *tensor;
} tensor_asked;
ww_status tensor_rows_check(const tensor_asked *asked, const ww_collection *c, int64_t *count, int32_t *dim);

/* Makes the elements dense, in type `dtype`, on the tensor's own device, and waits until they are there. */
ww_status tensor_rows_make(const ww_tensor *tensor, ww_dtype dtype, tensor_rows *made);

/* Where they are: an address on the tensor's device. */
const void *tensor_rows_data(const tensor_rows *rows);

/* Can the host read them there? */
bool tensor_rows_on_host(const tensor_rows *rows);

/* Can `device` take them from there: is it theirs, and has it the functions for that? */
bool tensor_rows_on(const tensor_rows *rows, const ww_device *device);

/* Copies all of them to rows->host; or `count` elements from number `first` on to `to`. */
ww_status tensor_rows_to_host(tensor_rows *rows);
ww_status tensor_rows_read(const tensor_rows *rows, int64_t first, int64_t count, void *to);

/* Makes rows of a tensor, dense at `elements` in memory of the host, rows like any other: of f32, or of the collection's type.
 */
void rows_read_in_place(ww_rows *rows, const ww_collection *c, const void *elements);

/* The type of tensors whose elements are a collection's rows as they are. */
ww_dtype tensor_type_of(ww_vector_type type);

#endif
