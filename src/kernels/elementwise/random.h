/* Arguments of the kernel for random numbers. */
#ifndef WW_KERNELS_ELEMENTWISE_RANDOM_H
#define WW_KERNELS_ELEMENTWISE_RANDOM_H

#include <stdint.h>

enum { RANDOM_THREADS = 256 };

/* tensor_random: fills `count` elements of `type` at `to`. A thread computes one block of philox.h: four elements, or two of
 * f64. */
typedef struct random_args {
    void *to;
    int64_t count;
    uint64_t seed, first_block;
    double a, b; /* low and span, or mean and deviation */
    int32_t type;
    int32_t what; /* RANDOM_UNIFORM or RANDOM_NORMAL */
} random_args;

#endif
