/* Arguments of the element-wise kernels.
 *
 * Which kernel when (src/gpu/tensor/elementwise.c), fastest first:
 *   tensor_unary_table       a function of a 16-bit type, many elements: all 65536 results are looked up in shared memory
 *                            (NVIDIA, sm_80 on)
 *   tensor_tiles_...         sums, products, comparisons, signs: 16 bytes of every operand at a time, nothing else to decide
 *   tensor_unary_half        functions of 16-bit types that have a half form (arithmetic/math/half_f32.h)
 *   tensor_unary_cheap       dense f32, functions of few registers, so that more waves wait for memory together
 *   tensor_unary_costly      dense f32, the others
 *   tensor_pow_atan2_half    pow and atan2 of dense 16-bit types by bounds (half_bounds_f32.h; NVIDIA, sm_80 on)
 *   tensor_pow_atan2         pow and atan2 of dense floats
 *   tensor_unary_KIND, tensor_binary_KIND, ...   everything, any layout: also what the kernels above leave of the last tile
 * All give the bits of canon_NAME() (arithmetic/math).
 *
 * Element i of a job is its i-th in row-major order of `shape`. An operand that is dense in that order is read and written 16
 * bytes at a time; for others, i is split into coordinates by dividing by the dimensions, the last first. A quad is four
 * adjacent elements; a unit is 16 bytes of adjacent elements, one to four quads.
 */
#ifndef WW_KERNELS_ELEMENTWISE_ELEMENTWISE_H
#define WW_KERNELS_ELEMENTWISE_ELEMENTWISE_H

#include <stdint.h>

#include "arithmetic/operations.h"
#include "arithmetic/types.h"

enum {
    ELEMENTWISE_QUAD = 4,  /* adjacent elements that a thread processes at once, 16 bytes of f32 */
    ELEMENTWISE_SLOTS = 4, /* quads per thread: all loads start before the first is used */
    ELEMENTWISE_THREADS = 256,
    ELEMENTWISE_TILE = ELEMENTWISE_QUAD * ELEMENTWISE_SLOTS * ELEMENTWISE_THREADS, /* elements per block */
};

/* The layout of an operand: same as the result; one element for all; strided; strided with a dense last dimension (lines), or
 * with one element for all of that dimension (repeated). The last two are distinguished from other strided layouts only for
 * kernels that use units. */
enum { LAYOUT_DENSE, LAYOUT_SCALAR, LAYOUT_STRIDED, LAYOUT_LINES, LAYOUT_REPEATED };

/* How a kernel may use quads. Dense: every operand is dense and aligned to 16 bytes; in kernels that use units, operands may
 * also be scalar, lines or repeated if no unit crosses the end of a line. Units, in kernels that only move elements: the
 * "elements" are aligned units. */
enum { QUADS_NONE, QUADS_DENSE, QUADS_UNITS };

/* Division by a number known to the host: n / by == ((n * multiplier >> 32) + n) >> shift for n below 2^31. */
typedef struct fast_divisor {
    uint32_t by, multiplier, shift;
} fast_divisor;

typedef struct elementwise_operand {
    void *data;
    int32_t type;
    int32_t layout;
    int64_t strides[ELEMENTWISE_RANK];
} elementwise_operand;

typedef struct elementwise_args {
    elementwise_operand out, in[ELEMENTWISE_INPUTS];
    int64_t count; /* the job ends before this element; it starts at `first` */
    int64_t first;
    int32_t op;
    int32_t rank;
    int32_t indices_64; /* 2^31 elements or more: the divisors do not work */
    int32_t quads;      /* QUADS_..., for types that the kernel processes by quads */
    int32_t compares;   /* op is a comparison */
    int32_t unit_quads; /* quads per unit, in kernels that use units; a tile is larger by this factor */
    int64_t shape[ELEMENTWISE_RANK];
    fast_divisor divisors[ELEMENTWISE_RANK];
    double a, b;    /* of parametric operations on floats; rounded to f32 for types computed in f32 */
    int64_t ia, ib; /* the same for integers */
} elementwise_args;

/* Functions that need few registers on dense f32. They have their own kernel, in which more waves wait for memory together. */
#define UNARY_IS_CHEAP(op) ((op) <= UNARY_LOG || (op) == UNARY_AFFINE)

/* Functions of 16-bit types with a half form (arithmetic/math/half_f32.h): one so short that a lookup would take longer, or one
 * for chips that cannot look them up. f16 has none for sigmoid. */
#define UNARY_HAS_HALF_FORM(op, type) (UNARY_HAS_SHORT_FORM(op, type) || (op) == UNARY_GELU || (op) == UNARY_LOG)
#define UNARY_HAS_SHORT_FORM(op, type)                                                                                         \
    ((op) == UNARY_RECIP || (op) == UNARY_SQRT || (op) == UNARY_RSQRT || (op) == UNARY_EXP || (op) == UNARY_TANH ||            \
     (op) == UNARY_SILU || ((op) == UNARY_SIGMOID && (type) == TYPE_BF16))

/* Functions of 16-bit types by lookup of all results. */
enum {
    TABLE_ENTRIES = 65536,
    TABLE_BYTES = 2 * TABLE_ENTRIES,
    TABLE_THREADS = 1024,
    TABLE_SLOTS = 2, /* 16 bytes each, loaded together; four are slower */
    TABLE_PARTS = TABLE_ENTRIES / (8 * TABLE_THREADS),
};

typedef struct table_args {
    const uint16_t *x, *table;
    uint16_t *out;
    int64_t count;
} table_args;

/* For by < 2^31. With shift = the number of bits of by - 1, multiplier = 2^32 * (2^shift - by) / by + 1 (Granlund and
 * Montgomery). */
static inline fast_divisor fast_divisor_of(uint32_t by)
{
    uint32_t shift = 0;
    while (shift < 31 && (1u << shift) < by)
        shift++;
    const fast_divisor divisor = {by, (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - by)) / by + 1), shift};
    return divisor;
}

#endif
