/* Products computed by definition, for tests: one chain of fused multiply-adds after the other. */
#ifndef TESTS_PRODUCTS_H
#define TESTS_PRODUCTS_H

#include "support/tensors.h"

/* A sum of products, computed step by step: chunks of 512 steps, each a chain that starts at +0, added in order to a total that
 * starts at +0. */
typedef struct plain_sum {
    ww_dtype dtype;
    int64_t steps;
    float chunk_f32, total_f32;
    double chunk_f64, total_f64;
    uint32_t total_i32;
    long double near, size; /* the sum, and the sum of the products' sizes, nearly exactly */
} plain_sum;

void plain_sum_begin(plain_sum *sum, ww_dtype dtype);
void plain_sum_step(plain_sum *sum, uint64_t a, uint64_t b); /* the bits of two elements of the type */
/* The bits of the result, in the type of the result. */
uint64_t plain_sum_end(plain_sum *sum);

/* Checks that the result is that of real numbers, except for roundings. Ignores infinite and NaN results. */
void check_near(const char *what, const plain_sum *sum, ww_dtype result_type, uint64_t got);

/* A random tensor with elements around 1 instead of extremes. */
test_tensor test_tensor_tame(ww_device *device, test_random *random, ww_dtype dtype, int32_t rank, const int64_t *shape,
                             test_layout style);

/* The bits of +0 are the same for every type. */
#define BITS_ZERO 0ull

#endif
