/* Quantized storage on the CPU: coding and decoding blocks, a table for each instruction set. */
#ifndef WW_CPU_QUANT_H
#define WW_CPU_QUANT_H

#include <stdint.h>
#include <string.h>

#include "device/quant_jobs.h"
#include "kernels/blocks.h"

extern const quant_backend cpu_quants;

typedef struct quant_coder {
    /* Encodes `count` blocks of floats one behind the other; returns the first that cannot be, or count. */
    int64_t (*encode)(const float *from, void *to, int64_t count);
    void (*decode)(const void *from, float *to, int64_t count);
} quant_coder;

/* By format; entries that are no format are empty. */
extern const quant_coder quant_coders_scalar[BLOCK_TYPES], quant_coders_avx2[BLOCK_TYPES], quant_coders_avx512[BLOCK_TYPES],
    quant_coders_neon[BLOCK_TYPES];

#endif
