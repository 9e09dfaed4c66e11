/* Repeatable random numbers for tests: splitmix64, seeded by the test, the same on every machine. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

typedef struct test_random {
    uint64_t state;
} test_random;

uint64_t random_bits(test_random *random);
uint64_t random_below(test_random *random, uint64_t bound);
float random_uniform(test_random *random); /* in [-1, 1) */
float random_normal(test_random *random);
void random_normals(test_random *random, float *out, int64_t count);

#endif
