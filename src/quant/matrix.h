/* A quantized matrix: rows of blocks in a buffer that views share. */
#ifndef WW_QUANT_MATRIX_H
#define WW_QUANT_MATRIX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "device/quant_jobs.h"
#include "quant/types.h"

/* The memory, and how many matrices share it. Behind the rows there are blocks of zeros for QUANT_PADDING elements. */
typedef struct quant_memory {
    ww_device *device; /* retained */
    buffer blocks;
    atomic_int users;
} quant_memory;

struct ww_quant {
    quant_memory *memory;
    size_t offset; /* of the first row, in bytes */
    ww_quant_type type;
    int64_t rows, cols, row_bytes;
    bool loaded; /* blocks came from outside: any bytes */
    bool finite; /* it is known that all of its weights are */
};

/* Makes a matrix whose padding is zero and whose rows are not written yet. */
ww_status quant_make(ww_device *device, ww_quant_type type, int64_t rows, int64_t cols, ww_quant **out);

/* WW_OK, or a refusal of rows that are not there. */
ww_status quant_check_rows(const ww_quant *matrix, const char *call, int64_t first, int64_t count, const void *out);

/* Says which block of floats could not be coded. */
ww_status quant_refuse_block(ww_quant_type type, int64_t block, int64_t cols);

typedef struct host_bytes {
    const void *data;
    size_t bytes;
} host_bytes;

/* Copies bytes of the host into the blocks of a matrix that was just made, from byte `offset` on; in pieces, if so, of whole
 * rows, or one behind the other: rows that are whole with a piece are put into the order of the device. The host's may be
 * changed then; the stream may have to be waited for. */
ww_status quant_fill(ww_quant *matrix, device_stream *stream, size_t offset, host_bytes from);

/* ww_quant_multiply() with a norm, a gate or an addition asked for. */
ww_status quant_multiply_beside(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *asked, ww_tensor *out);

/* ---- tensors beside matrices ----------------------------------------------------------------------------------------------
 */

/* The number of f32, f16 or bf16 among formats. */
int32_t quant_plain_type(ww_dtype type);

/* Are these ids, of any shape, on the matrix's device? Their values are not looked at. */
ww_status quant_check_ids(const char *call, const ww_quant *matrix, const ww_tensor *ids);

#endif
