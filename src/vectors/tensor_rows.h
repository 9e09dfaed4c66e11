/* Rows and queries in tensors.
 *
 * Tensors on the collection's device stay there: rows are packed and queries searched in place. Tensors in host memory are read
 * in place. All others are copied to the host and then handled like other rows and queries.
 */
#ifndef WW_VECTORS_TENSOR_ROWS_H
#define WW_VECTORS_TENSOR_ROWS_H

#include "tensor/tensor.h"
#include "vectors/collection.h"

/* The data of a tensor; all zero: none. */
typedef struct tensor_rows {
    ww_tensor dense; /* on the tensor's device, or empty */
    void *host;      /* the same elements in host memory, dense, or NULL */
} tensor_rows;

void tensor_rows_release(tensor_rows *rows);

/* The expected shape of a tensor: [count, dim], or [dim] for one row. A count of 0 is set to the tensor's; others must match.
 * `role` names the tensor in messages: "rows->tensor". */
typedef struct tensor_asked {
    const char *function, *role;
    const ww_tensor *tensor;
} tensor_asked;
ww_status tensor_rows_check(const tensor_asked *asked, const ww_collection *c, int64_t *count, int32_t *dim);

/* Makes the elements dense, with type `dtype`, on the tensor's own device, and waits until that is done. */
ww_status tensor_rows_make(const ww_tensor *tensor, ww_dtype dtype, tensor_rows *made);

/* Returns their address on the tensor's device. */
const void *tensor_rows_data(const tensor_rows *rows);

/* Returns true if the host can read that address. */
bool tensor_rows_on_host(const tensor_rows *rows);

/* Returns true if `device` can use them there: it has that memory, and the functions for it. */
bool tensor_rows_on(const tensor_rows *rows, const ww_device *device);

/* Copies all of them to rows->host; below, copies `count` elements from number `first` on to `to`. */
ww_status tensor_rows_to_host(tensor_rows *rows);
ww_status tensor_rows_read(const tensor_rows *rows, int64_t first, int64_t count, void *to);

/* Makes rows from dense elements of a tensor in host memory, either of f32 or of the collection's type. */
void rows_read_in_place(ww_rows *rows, const ww_collection *c, const void *elements);

/* Returns the tensor type with the same elements as a collection's rows. */
ww_dtype tensor_type_of(ww_vector_type type);

#endif
