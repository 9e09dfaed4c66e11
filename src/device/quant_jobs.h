/* What a backend must be able to do with quantized matrices: jobs, checked by src/quant before they get here, and a table of
 * functions that do them. All are blocking but a product that is queued. Formats are numbered as in arithmetic/blocks/blocks.h.
 */
#ifndef WW_DEVICE_QUANT_JOBS_H
#define WW_DEVICE_QUANT_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/blocks/input.h"
#include "device/backend.h"

/* Floats of the host, or for encode_tensor of the device, to blocks on the device. */
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

/* Blocks to numbers, all on the device: `count` rows, those that `ids` name, or the first if that is NULL. */
typedef struct quant_decode_tensor_job {
    int32_t type;
    const buffer *from;
    size_t from_offset;
    int64_t rows, cols;
    const void *ids;  /* an invalid id makes zeros */
    int32_t id_bytes; /* 1, 4 or 8 */
    int64_t count;
    void *to;        /* count x cols */
    int32_t to_type; /* f32, f16 or bf16 */
} quant_decode_tensor_job;

/* What is done beside a product, in the same pass over memory, with the bits of calls of its own; a device that fuses() it is
 * asked to. x is f32, and y not part of what is read, but where it is added to. */
typedef struct quant_fusion {
    int32_t input;       /* INPUT_: what x is made into before it is coded */
    const float *weight; /* INPUT_NORM: device memory, as many as a row of x has elements */
    double eps;          /* INPUT_NORM: added to the mean square */
    const float *up;     /* INPUT_GATED: device memory, rows as far apart as those of x */
    int64_t x_stride;    /* floats from row to row of x; 0: they are dense */
    bool adds;           /* results are added to what is in y */
} quant_fusion;

/* y[c][r] = row r of the weights times row c of x, as arithmetic/blocks/dot.h says; all on the device. */
typedef struct quant_product_job {
    int32_t type;
    const buffer *weights;
    size_t weights_offset;
    int64_t rows, cols; /* rows of a result */
    const buffer *x;    /* columns x cols numbers of x_type: f32, or what takes() says */
    size_t x_offset;    /* bytes */
    int32_t x_type;
    int64_t columns;
    bool decoded;     /* activations stay floats, and weights are decoded: canonical dot products */
    bool coded;       /* x is columns of blocks of dot_activations(type), coded by this device */
    const void *ids;  /* device: of each column, which of `experts` it meets, `rows` rows each; NULL: none. The results */
    int32_t id_bytes; /* of a column whose id is none are NaN, of one whose id is the largest of the type zeros */
    int64_t experts;
    const buffer *y;     /* columns x rows floats */
    bool fast;           /* near it will do: the vendor's library, weights and activations as bf16 */
    int64_t *refused;    /* the first block of activations that cannot be coded, counted over all, or -1; NULL: as below */
    quant_fusion fusion; /* all 0: nothing */
} quant_product_job;

/* Some rows of blocks on the device. */
typedef struct quant_rows {
    int32_t type;
    const buffer *blocks;
    size_t offset; /* of the first, in bytes */
    int64_t rows, cols;
} quant_rows;

struct quant_backend {
    bool queues; /* takes products without `refused`, and ids on the device */
    /* Rows that were just copied in as a file has them, to the order in which this device keeps blocks, in place; NULL where
     * that is the same. What encode, decode and product meet is in that order. */
    ww_status (*arrange)(ww_device *device, const quant_rows *rows);
    /* And to the host, as a file has them; NULL where a copy does it. */
    ww_status (*read)(ww_device *device, const quant_rows *rows, void *to);
    /* Encodes all rows; what is behind the last block is not touched. */
    ww_status (*encode)(ww_device *device, const quant_encode_job *job);
    ww_status (*decode)(ww_device *device, const quant_decode_job *job);
    /* The same in the order of the operations on the device's tensors: encode_tensor waits, decode_tensor only queues. */
    ww_status (*encode_tensor)(ww_device *device, const quant_encode_job *job);
    ww_status (*decode_tensor)(ww_device *device, const quant_decode_tensor_job *job);
    /* In the order of the operations on the device's tensors. With `refused` it waits, and y means nothing where a block was
     * refused. Without, a GPU only queues, and what cannot be coded makes NaN of its column's results. */
    ww_status (*product)(ww_device *device, const quant_product_job *job);
    /* Does product() take activations of the job's x_type, f16 or bf16? Memory is not there yet. NULL: never. */
    bool (*takes)(const quant_product_job *job);
    /* Does product() do the job's fusion? Otherwise the caller has it done by calls of its own. NULL: never. */
    bool (*fuses)(ww_device *device, const quant_product_job *job);
};

#endif
