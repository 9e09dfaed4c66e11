/* The arguments of the test kernels: one struct for all of them; each kernel uses what it needs. */
#ifndef TESTS_KERNELS_PROBE_H
#define TESTS_KERNELS_PROBE_H

#include <stdint.h>

typedef struct probe_args {
    const float *in;
    float *out;
    uint32_t *words;
    uint64_t *longs;
    uint32_t n;
    uint32_t parameter;
} probe_args;

#endif
