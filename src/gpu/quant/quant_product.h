/* The state of a quantized product between plan, prepare and launch. */
#ifndef WW_GPU_QUANT_QUANT_PRODUCT_H
#define WW_GPU_QUANT_QUANT_PRODUCT_H

#include "gpu/quant/quant_plan.h"
#include "gpu/stream.h"
#include "kernels/quant/quant.h"

struct gpu_blas; /* gpu/blas/blas.h */

/* Codes on the device: the sections of quant_coded_bytes, which kernels/quant/quant.h describes. */
typedef struct quant_coded {
    uint32_t *codes;
    uint32_t *sums; /* or records; for weights in blocks of 32, minima */
    float *factors;
    float *partial;
} quant_coded;

typedef struct quant_product {
    gpu_stream *stream;
    const quant_product_job *job;
    struct gpu_blas *blas;
    uint64_t *refused; /* on the device: the first block that cannot be coded; NULL if the caller does not ask */
    quant_plan plan;

    /* What prepare makes for launch. */
    quant_coded activations, weights;
    const uint64_t *first_rows; /* of each column, or of each group */
    const uint32_t *source;     /* the column of each padded column of the groups */
    float *sums;                /* of tiles */
    uint16_t *x_bf16, *weights_bf16;
    uint32_t *counters; /* of a gemv: QUANT_READY_COUNTERS */
    const float *x;     /* of a gemv that codes its column itself; otherwise NULL */
    bool overlaps;      /* a gemv codes and multiplies while the previous one runs */
} quant_product;

/* Allocates workspaces, codes activations and unpacks weights for the plan. Queued; waits only if a workspace grows. */
ww_status quant_prepare(quant_product *p);
/* Queues the product. QUANT_BF16 fails with WW_UNSUPPORTED if the vendor's BLAS cannot do it on this chip. */
ww_status quant_launch(quant_product *p);

static inline const char *quant_x(const quant_product *p)
{
    return (const char *)p->job->x->data + p->job->x_offset;
}

/* What coding kernels apply to a column first. */
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
