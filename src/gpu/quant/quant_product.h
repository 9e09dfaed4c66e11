/* A quantized product on its way through plan, prepare and launch. */
#ifndef WW_GPU_QUANT_QUANT_PRODUCT_H
#define WW_GPU_QUANT_QUANT_PRODUCT_H

#include "gpu/quant/quant_plan.h"
#include "gpu/stream.h"
#include "kernels/quant/quant.h"

struct gpu_blas; /* gpu/blas/blas.h */

/* Codes on the device, the sections of quant_coded_bytes; kernels/quant/quant.h says what is where in them. */
typedef struct quant_coded {
    uint32_t *codes;
    uint32_t *sums; /* or records; of weights in blocks of 32, minima */
    float *factors;
    float *partial;
} quant_coded;

typedef struct quant_product {
    gpu_stream *stream;
    const quant_product_job *job;
    struct gpu_blas *blas;
    uint64_t *refused; /* on the device: the first block that cannot be coded; NULL: nobody asks */
    quant_plan plan;

    /* What prepare leaves for launch. */
    quant_coded activations, weights;
    const uint64_t *first_rows; /* of each column, or of each group */
    const uint32_t *source;     /* the column for each padded column of the groups */
    float *sums;                /* of tiles */
    uint16_t *x_bf16, *weights_bf16;
    uint32_t *counters; /* of a gemv: QUANT_READY_COUNTERS */
    const float *x;     /* of a gemv that codes its column itself; otherwise NULL */
    bool overlaps;      /* a gemv codes and multiplies while the one in front of it runs */
} quant_product;

/* Takes workspaces, codes activations and unpacks weights for the plan. Queues; waits only where a workspace grows. */
ww_status quant_prepare(quant_product *p);
/* Queues the product itself. QUANT_BF16 refuses with WW_UNSUPPORTED what the vendor's BLAS cannot do on this chip. */
ww_status quant_launch(quant_product *p);

static inline const char *quant_x(const quant_product *p)
{
    return (const char *)p->job->x->data + p->job->x_offset;
}

/* What kernels that code columns make of them first. */
static inline quant_input quant_input_of(const quant_product *p)
{
    const quant_fusion *fusion = &p->job->fusion;
    return (quant_input){.weight = fusion->weight, .up = fusion->up, .eps = (float)fusion->eps, .kind = fusion->input};
}

static inline const uint8_t *quant_weights(const quant_product *p)
{
    return (const uint8_t *)p->job->weights->data + p->job->weights_offset;
}

#endif
