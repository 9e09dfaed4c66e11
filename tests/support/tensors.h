/* Tensors for tests: of any type, with random elements and random layouts, and their elements as plain numbers.
 *
 * This code is written for clarity and shares nothing with the library: numbers are long doubles, which hold every value of
 * every type, and conversions follow their definition.
 */
#ifndef TESTS_TENSORS_H
#define TESTS_TENSORS_H

#include <stdbool.h>

#include "support/check.h"
#include "support/data/random.h"

enum { TEST_TYPES = 11 };

typedef struct test_tensor {
    ww_tensor tensor;
    uint8_t *host; /* all bytes of the storage */
} test_tensor;

typedef enum test_layout {
    TEST_DENSE,     /* row-major from the first element on */
    TEST_VIEW,      /* dimensions in any order, with gaps, an offset */
    TEST_BROADCAST, /* and some with a stride of 0 */
} test_layout;

/* Fills `shape` with `rank` sizes whose product is at most `most`; some are 1. */
void random_shape(test_random *random, int32_t rank, int64_t most, int64_t *shape);

test_tensor test_tensor_make(ww_device *device, test_random *random, ww_dtype dtype, int32_t rank, const int64_t *shape,
                             test_layout style);
void test_tensor_free(test_tensor *x);

/* Dense, with these elements. */
test_tensor test_tensor_of(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, const void *elements);

/* The bits of element number i in row-major order, as they were when the tensor was made; below, the current bits of a whole
 * storage. */
uint64_t test_tensor_bits(const test_tensor *x, int64_t i);
int64_t test_tensor_place(const ww_layout *layout, int64_t i);
uint8_t *storage_bytes(const ww_storage *storage);
/* Has x this shape, dense in a storage of its own? */
void check_dense(const ww_tensor *x, int32_t rank, const int64_t *shape);
uint64_t bits_of(const void *bytes, ww_dtype dtype, int64_t i);

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

bool is_float(ww_dtype dtype);
bool is_unsigned(ww_dtype dtype);
bool bits_are_nan(ww_dtype dtype, uint64_t bits);

/* The value of an element, and the element nearest to a value: ties to even; floats saturate or overflow as
 * docs/guide/tensors.md says; integers are cut towards zero and saturate; a NaN is the type's one NaN, or 0. */
long double number_of(ww_dtype dtype, uint64_t bits);
uint64_t bits_nearest(ww_dtype dtype, long double value);

/* An element with many kinds of values: small whole numbers, fractions, extremes, zeros of both signs, any bits. */
uint64_t random_element(test_random *random, ww_dtype dtype);

#endif
