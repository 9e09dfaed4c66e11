/* Quantized storage on the CPU: coding and decoding blocks, a table for each instruction set. */
#ifndef WW_CPU_QUANT_H
#define WW_CPU_QUANT_H

#include <stdint.h>
#include <string.h>

#include "cpu/cpu.h"
#include "device/quant_jobs.h"
#include "kernels/blocks.h"

extern const quant_backend cpu_quants;

typedef struct quant_coder {
    /* Encodes `count` blocks of floats one behind the other; returns the first that cannot be, or count. */
    int64_t (*encode)(const float *from, void *to, int64_t count);
    void (*decode)(const void *from, float *to, int64_t count);
} quant_coder;

/* Some rows of weights times some rows of activations, all coded. */
typedef struct quant_product_piece {
    const char *weights;
    int64_t weights_stride; /* bytes from row to row, here and below */
    int64_t rows, blocks;   /* blocks of a row */
    const char *activations;
    int64_t activations_stride, columns;
    float *out; /* out[column * out_stride + row] */
    int64_t out_stride;
} quant_product_piece;

/* `scratch` has quant_product_scratch() bytes. */
typedef void (*quant_product)(const quant_product_piece *piece, void *scratch);

/* Eight floats for each column, and what is known before of eight blocks of activations, 64 bytes for each eight begun. */
static inline int64_t quant_product_scratch(int64_t columns, int64_t blocks)
{
    return columns * 32 + columns * ((blocks + 7) / 8) * 64;
}

extern const quant_product quant_products_scalar[BLOCK_TYPES], quant_products_avx2[BLOCK_TYPES],
    quant_products_avx512[BLOCK_TYPES], quant_products_vnni[BLOCK_TYPES], quant_products_neon[BLOCK_TYPES];

/* The tables of the set that a device uses. */
typedef struct quant_set {
    const quant_coder *coders;
    const quant_product *products;
} quant_set;
quant_set quant_set_of(const cpu_device *cpu);

ww_status cpu_quant_product(ww_device *device, const quant_product_job *job);

/* By format; entries that are no format are empty. */
extern const quant_coder quant_coders_scalar[BLOCK_TYPES], quant_coders_avx2[BLOCK_TYPES], quant_coders_avx512[BLOCK_TYPES],
    quant_coders_neon[BLOCK_TYPES];

#endif
