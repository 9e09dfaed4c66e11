/* What the element-wise kernels take, the operations by number, and how an element's number becomes its place.
 *
 * Element i of a job is its i-th in row-major order of `shape`. An operand that is dense in that order is read and written
 * sixteen bytes at a time; for the others i is taken apart by dividing by the dimensions from the last on.
 */
#ifndef WW_KERNELS_ELEMENTWISE_ELEMENTWISE_H
#define WW_KERNELS_ELEMENTWISE_ELEMENTWISE_H

#include <stdint.h>

#include "arithmetic/types.h"

enum unary_op {
#define UNARY(NAME, name, floats, integers, which) UNARY_##NAME,
#include "arithmetic/unary.def"
#undef UNARY
    UNARY_COUNT,
    UNARY_BEFORE_PARAMETRIC = UNARY_COUNT - 1,
#define PARAMETRIC(NAME, name, floats, integers, which) UNARY_##NAME,
#include "arithmetic/parametric.def"
#undef PARAMETRIC
    UNARY_ALL_COUNT
};

enum binary_op {
#define BINARY(NAME, name, floats, integers, which) BINARY_##NAME,
#include "arithmetic/binary.def"
#undef BINARY
    BINARY_COUNT
};

enum cmp_op {
#define CMP(NAME, name, operator) CMP_##NAME,
#include "arithmetic/cmp.def"
#undef CMP
    CMP_COUNT
};

enum {
    ELEMENTWISE_RANK = 8,
    ELEMENTWISE_INPUTS = 3,
    ELEMENTWISE_CHUNK = 4, /* neighbours that a thread takes at once: 16 bytes of f32 */
    ELEMENTWISE_TURNS = 4, /* chunks of a thread: all are asked from memory before the first is used */
    ELEMENTWISE_THREADS = 256,
    ELEMENTWISE_TILE = ELEMENTWISE_CHUNK * ELEMENTWISE_TURNS * ELEMENTWISE_THREADS, /* elements of a block */
};

/* How the elements of an operand lie: as the result's do; one for all; strided; strided with a last dimension that is dense, or
 * one element of which is there for all of that dimension. The last two are told apart from other strided ones where a kernel
 * takes 16 bytes at a time. */
enum { LIES_DENSE, LIES_SINGLE, LIES_STRIDED, LIES_IN_LINES, LIES_REPEATED };

/* How a kernel may take chunks. Dense: every operand is, and is aligned to 16 bytes; in kernels that take 16 bytes of every
 * operand at a time they may be single, in lines or repeated as well, if no 16 bytes go beyond a line. Units, in kernels that
 * move elements: "elements" are 16 aligned bytes of them. */
enum { CHUNKS_NONE, CHUNKS_DENSE, CHUNKS_UNITS };

/* Division by a number that is known before: n / by == ((n * multiplier >> 32) + n) >> shift for n below 2^31. */
typedef struct known_divisor {
    uint32_t by, multiplier, shift;
} known_divisor;

typedef struct elementwise_operand {
    void *data;
    int32_t type;
    int32_t lies;
    int64_t strides[ELEMENTWISE_RANK];
} elementwise_operand;

typedef struct elementwise_args {
    elementwise_operand out, in[ELEMENTWISE_INPUTS];
    int64_t count; /* elements up to this, from `first` on */
    int64_t first;
    int32_t op;
    int32_t rank;
    int32_t wide;     /* 2^31 elements and more: the divisors are not enough */
    int32_t chunks;   /* CHUNKS_..., for types that the kernel takes by chunks */
    int32_t compares; /* op is a comparison */
    int32_t
        fours; /* elements of 16 bytes, in fours, where those are taken at a time; a block's tile is that many times larger */
    int64_t shape[ELEMENTWISE_RANK];
    known_divisor divisors[ELEMENTWISE_RANK];
    double a, b;    /* of parametric operations, on floats: rounded to f32 for those that are computed in that */
    int64_t ia, ib; /* and on integers */
} elementwise_args;

/* Functions that need few registers on dense f32 have a kernel of their own, in which more waves wait for memory together. */
#define UNARY_IS_LIGHT(op) ((op) <= UNARY_LOG || (op) == UNARY_AFFINE)

/* Functions of 16-bit types that have a short form; f16 has none of sigmoid. */
#define UNARY_IS_SHORT(op, type)                                                                                               \
    ((op) == UNARY_RECIP || (op) == UNARY_SQRT || (op) == UNARY_RSQRT || (op) == UNARY_EXP || (op) == UNARY_TANH ||            \
     (op) == UNARY_SILU || ((op) == UNARY_SIGMOID && (type) == TYPE_BF16))

/* All results of a function of a 16-bit type, looked up. */
enum {
    TABLE_ENTRIES = 65536,
    TABLE_BYTES = 2 * TABLE_ENTRIES,
    TABLE_THREADS = 1024,
    TABLE_TURNS = 2, /* 16 bytes each, asked from memory together; four are slower */
    TABLE_PARTS = TABLE_ENTRIES / (8 * TABLE_THREADS),
};

typedef struct table_args {
    const uint16_t *x, *table;
    uint16_t *out;
    int64_t count;
} table_args;

/* For by < 2^31. With shift the bits of by - 1, multiplier = 2^32 * (2^shift - by) / by + 1 (Granlund and Montgomery). */
static inline known_divisor known_divisor_of(uint32_t by)
{
    uint32_t shift = 0;
    while (shift < 31 && (1u << shift) < by)
        shift++;
    const known_divisor divisor = {by, (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - by)) / by + 1), shift};
    return divisor;
}

#endif
