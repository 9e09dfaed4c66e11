/* A quantized matrix: rows of blocks in a buffer that views share. */
#ifndef WW_QUANT_MATRIX_H
#define WW_QUANT_MATRIX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/files/map.h"
#include "device/quant_jobs.h"
#include "quant/types.h"

/* The memory, and how many matrices share it. The rows are followed by blocks of zeros for QUANT_PADDING elements, unless they
 * lie in a mapped file. */
typedef struct quant_memory {
    ww_device *device; /* retained */
    buffer blocks;
    file_map *map; /* has the blocks; NULL: the device's buffer has them */
    atomic_int users;
} quant_memory;

struct ww_quant {
    quant_memory *memory;
    size_t offset; /* of the first row, in bytes */
    ww_quant_type type;
    int64_t rows, cols, row_bytes;
    bool loaded; /* its blocks were loaded and can have any bytes */
    bool finite; /* all of its weights are known to be finite */
};

/* Makes a matrix whose padding is zero and whose rows are not written yet. */
ww_status quant_make(ww_device *device, ww_quant_type type, int64_t rows, int64_t cols, ww_quant **out);

/* Makes a matrix of rows in a mapped file, from `offset` on: of f32, f16 or bf16, on a device whose memory is the host's. Such
 * devices read plain rows to their last element and no further. */
ww_status quant_make_mapped(ww_device *device, const ww_quant *shape, file_map *map, int64_t offset, ww_quant **out);

/* Makes `out` a tensor over a matrix of f32, which it takes over, if the device's memory is the host's. `out` stays empty
 * otherwise. */
ww_status quant_into_tensor(ww_quant *matrix, ww_tensor *out);

/* Returns WW_OK, or refuses rows that do not exist. */
ww_status quant_check_rows(const ww_quant *matrix, const char *call, int64_t first, int64_t count, const void *out);

/* Fails with a message that says which block of floats could not be encoded. */
ww_status quant_refuse_block(ww_quant_type type, int64_t block, int64_t cols);

typedef struct host_bytes {
    const void *data;
    size_t bytes;
} host_bytes;

/* Copies host bytes to the blocks of a new matrix, from byte `offset` on. With several calls, pieces must be whole rows or
 * consecutive; rows that a piece completes are converted to the device's layout. The caller may change the host memory
 * afterwards; the stream may still have work to do. */
ww_status quant_fill(ww_quant *matrix, device_stream *stream, size_t offset, host_bytes from);

/* ww_quant_multiply() with a norm, a gate or an addition. */
ww_status quant_multiply_fused(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *asked, ww_tensor *out);

/* ---- tensors and matrices
   -------------------------------------------------------------------------------------------------- */

/* Returns the format number of f32, f16 or bf16. */
int32_t quant_plain_type(ww_dtype type);

/* Checks that these are ids, of any shape, on the matrix's device. Does not check their values. */
ww_status quant_check_ids(const char *call, const ww_quant *matrix, const ww_tensor *ids);

#endif
