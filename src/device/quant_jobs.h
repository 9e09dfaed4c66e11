/* What a backend must be able to do with quantized matrices: jobs, checked by src/quant before they get here, and a table of
 * functions that do them. All are blocking. Formats are numbered as in kernels/blocks.h.
 */
#ifndef WW_DEVICE_QUANT_JOBS_H
#define WW_DEVICE_QUANT_JOBS_H

#include <stdint.h>

#include "device/backend.h"

/* Floats of the host to blocks on the device. */
typedef struct quant_encode_job {
    int32_t type;
    const float *from;   /* rows x cols */
    int64_t from_stride; /* floats from row to row */
    int64_t rows, cols;  /* cols is a multiple of the block */
    const buffer *to;
    size_t to_offset; /* bytes */
    int64_t *refused; /* the first block that cannot hold its elements, counted over all rows, or -1 */
} quant_encode_job;

/* Blocks on the device to floats of the host: `count` rows, those that `ids` names, or the first if that is NULL. */
typedef struct quant_decode_job {
    int32_t type;
    const buffer *from;
    size_t from_offset;
    int64_t cols;
    const int64_t *ids; /* host, each a row that is there */
    int64_t count;
    float *to; /* count x cols */
} quant_decode_job;

struct quant_backend {
    /* Encodes all rows; what is behind the last block is not touched. */
    ww_status (*encode)(ww_device *device, const quant_encode_job *job);
    ww_status (*decode)(ww_device *device, const quant_decode_job *job);
};

#endif
