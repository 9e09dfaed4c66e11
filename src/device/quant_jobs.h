/* What a backend must be able to do with quantized matrices: jobs, which src/quant checks first, and a table of functions. All
 * are blocking except for queued products. Formats have the numbers of arithmetic/blocks/blocks.h.
 */
#ifndef WW_DEVICE_QUANT_JOBS_H
#define WW_DEVICE_QUANT_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/blocks/input.h"
#include "device/backend.h"

/* Encodes floats as blocks on the device. The floats are in host memory, for encode_tensor in device memory. */
typedef struct quant_encode_job {
    int32_t type;
    const float *from;   /* rows x cols */
    int64_t from_stride; /* floats from row to row */
    int64_t rows, cols;  /* cols is a multiple of the block */
    const buffer *to;
    size_t to_offset; /* bytes */
    int64_t *refused; /* the first block that cannot hold its elements, numbered over all rows, or -1 */
} quant_encode_job;

/* Decodes blocks on the device to host floats: `count` rows, with the numbers in `ids`, or the first rows if `ids` is NULL. */
typedef struct quant_decode_job {
    int32_t type;
    const buffer *from;
    size_t from_offset;
    int64_t cols;
    const int64_t *ids; /* in host memory; all are valid */
    int64_t count;
    float *to; /* count x cols */
} quant_decode_job;

/* Decodes blocks to numbers, all on the device: `count` rows, with the numbers in `ids`, or the first rows if `ids` is NULL. */
typedef struct quant_decode_tensor_job {
    int32_t type;
    const buffer *from;
    size_t from_offset;
    int64_t rows, cols;
    const void *ids;  /* a row with an invalid id becomes zeros */
    int32_t id_bytes; /* 1, 4 or 8 */
    int64_t count;
    void *to;        /* count x cols */
    int32_t to_type; /* f32, f16 or bf16 */
} quant_decode_tensor_job;

/* What a product does in the same pass over memory, with the same bits as separate calls. Only for devices whose fuses()
 * accepts it. x is f32, and y overlaps nothing that is read, except that results may be added to it. */
typedef struct quant_fusion {
    int32_t input;       /* INPUT_: what happens to x before it is encoded */
    const float *weight; /* INPUT_NORM: device memory, one per element of a row of x */
    double eps;          /* INPUT_NORM: added to the mean square */
    const float *up;     /* INPUT_GATED: device memory, with the row stride of x */
    int64_t x_stride;    /* floats from row to row of x; 0: dense */
    bool adds;           /* results are added to what is in y */
} quant_fusion;

/* y[c][r] = row r of the weights times row c of x, as arithmetic/blocks/dot.h defines it; all on the device. */
typedef struct quant_product_job {
    int32_t type;
    const buffer *weights;
    size_t weights_offset;
    int64_t rows, cols; /* rows of a result */
    const buffer *x;    /* columns x cols numbers of x_type: f32, or what takes() accepts */
    size_t x_offset;    /* bytes */
    int32_t x_type;
    int64_t columns;
    bool decoded;     /* activations stay floats, and weights are decoded: canonical dot products */
    bool coded;       /* x has columns of blocks of dot_activations(type), encoded by this device */
    const void *ids;  /* on the device: for each column one of `experts`, which have `rows` rows each; NULL: no experts. The
                         results of a */
    int32_t id_bytes; /* column with an invalid id are NaN; with the largest id of the type they are zeros */
    int64_t experts;
    const buffer *y;     /* columns x rows floats */
    bool fast;           /* results may differ slightly: the vendor's library, with weights and activations as bf16 */
    int64_t *refused;    /* the first block of activations that cannot be encoded, numbered over all columns, or -1; NULL: see
                            `product` */
    quant_fusion fusion; /* all 0: none */
} quant_product_job;

/* Some rows of blocks on the device. */
typedef struct quant_rows {
    int32_t type;
    const buffer *blocks;
    size_t offset; /* of the first row, in bytes */
    int64_t rows, cols;
} quant_rows;

struct quant_backend {
    bool queues; /* it can queue products without `refused`, and takes ids on the device */
    /* Converts rows that were copied in with a file's layout to the device's layout, in place. NULL if both are the same.
     * encode, decode and product use the device's layout. */
    ww_status (*arrange)(ww_device *device, const quant_rows *rows);
    /* Reads rows back to the host in a file's layout. NULL if a copy does that. */
    ww_status (*read)(ww_device *device, const quant_rows *rows, void *to);
    /* Encodes all rows; does not touch memory after the last block. */
    ww_status (*encode)(ww_device *device, const quant_encode_job *job);
    ww_status (*decode)(ww_device *device, const quant_decode_job *job);
    /* The same, in the order of operations on the device's tensors: encode_tensor waits, decode_tensor only queues. */
    ww_status (*encode_tensor)(ww_device *device, const quant_encode_job *job);
    ww_status (*decode_tensor)(ww_device *device, const quant_decode_tensor_job *job);
    /* In the order of operations on the device's tensors. With `refused` it waits, and y is undefined if a block was refused.
     * Without, a GPU only queues, and a block that cannot be encoded makes the results of its column NaN. */
    ww_status (*product)(ww_device *device, const quant_product_job *job);
    /* Returns true if product() accepts activations of the job's x_type, f16 or bf16. The memory need not exist yet. NULL:
     * never. */
    bool (*takes)(const quant_product_job *job);
    /* Returns true if product() can do the job's fusion. Otherwise the caller uses separate calls. NULL: never. */
    bool (*fuses)(ww_device *device, const quant_product_job *job);
};

#endif
