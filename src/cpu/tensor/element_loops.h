/* Loops over elements that each instruction set compiles for itself. Tensor operations are built on them.
 *
 * An operation widens a block of each operand to the kind it computes in, computes, and narrows the result. f32, f64 and i64
 * are used in place; for other types the blocks stay in the first-level cache. Counts are at most LOOP_BLOCK elements. `type`
 * always has the kind in the function's name, unless the function says otherwise.
 */
#ifndef WW_CPU_TENSOR_ELEMENT_LOOPS_H
#define WW_CPU_TENSOR_ELEMENT_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

enum { LOOP_BLOCK = 1024 };

typedef struct element_loops {
    /* Widen elements to their kind. f64 needs no function. */
    void (*widen_f32)(int32_t type, float *to, const void *from, int64_t count);
    void (*widen_i64)(int32_t type, int64_t *to, const void *from, int64_t count);
    /* Narrow a kind to any type. */
    void (*narrow_f32)(int32_t type, void *to, const float *from, int64_t count);
    void (*narrow_f64)(int32_t type, void *to, const double *from, int64_t count);
    void (*narrow_i64)(int32_t type, void *to, const int64_t *from, int64_t count);

    /* A whole operation on floats in their own type; returns false if the set has no such loop. NULL: the set has none at
     * all. */
    bool (*unary_direct)(int32_t op, int32_t type, void *to, const void *from, int64_t count);

    /* `to` must differ from the sources, which may be the same. */
    void (*unary_f32)(int32_t op, float *to, const float *x, int64_t count, float a, float b);
    void (*unary_f64)(int32_t op, double *to, const double *x, int64_t count, double a, double b);
    void (*unary_i64)(int32_t op, int64_t *to, const int64_t *x, int64_t count, int64_t a, int64_t b);
    void (*binary_f32)(int32_t op, float *to, const float *x, const float *y, int64_t count);
    void (*binary_f64)(int32_t op, double *to, const double *x, const double *y, int64_t count);
    void (*binary_i64)(int32_t op, int64_t *to, const int64_t *x, const int64_t *y, int64_t count);
    void (*cmp_f32)(int32_t op, uint8_t *to, const float *x, const float *y, int64_t count);
    void (*cmp_f64)(int32_t op, uint8_t *to, const double *x, const double *y, int64_t count);
    void (*cmp_i64)(int32_t op, uint8_t *to, const int64_t *x, const int64_t *y, int64_t count);
    /* By the size of elements: `yes` where the condition is not 0, otherwise `no`. */
    void (*where_8)(uint8_t *to, const int64_t *condition, const uint8_t *yes, const uint8_t *no, int64_t count);
    void (*where_16)(uint16_t *to, const int64_t *condition, const uint16_t *yes, const uint16_t *no, int64_t count);
    void (*where_32)(uint32_t *to, const int64_t *condition, const uint32_t *yes, const uint32_t *no, int64_t count);
    void (*where_64)(uint64_t *to, const int64_t *condition, const uint64_t *yes, const uint64_t *no, int64_t count);
    /* LOOP_BLOCK random numbers, from block `number` of a seed on (arithmetic/philox.h). */
    void (*random_f32)(int32_t what, float *to, uint64_t seed, uint64_t number, float a, float b);
    void (*random_f64)(int32_t what, double *to, uint64_t seed, uint64_t number, double a, double b);
} element_loops;

#endif
