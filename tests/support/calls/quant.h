/* Quantized products through the library, for tests that compare devices. The caller frees what they return. */
#ifndef TESTS_QUANT_CALLS_H
#define TESTS_QUANT_CALLS_H

#include <stdint.h>

#include <warpwave/quant.h>
#include <warpwave/tensor.h>

float *quant_normals(uint64_t seed, int64_t count);

/* n columns of k numbers as a tensor, which is the caller's to release. */
ww_tensor quant_tensor(ww_device *device, const float *x, int64_t n, int64_t k);

/* n columns of k numbers times `rows` rows of k that become `type`: n x rows results. */
float *quant_multiply(ww_device *device, ww_quant_type type, const float *w, int64_t rows, const float *x, int64_t n,
                      int64_t k);

#endif
