/* Numbers of the element-wise operations. One line in a .def file adds an operation to every kernel, to the CPU and to the
 * names. */
#ifndef WW_ARITHMETIC_OPERATIONS_H
#define WW_ARITHMETIC_OPERATIONS_H

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

/* Maximum number of dimensions and inputs of an operation. */
enum { ELEMENTWISE_RANK = 8, ELEMENTWISE_INPUTS = 3 };

/* How a scatter combines elements: it keeps the last one, or adds them all and rounds each sum. */
enum { INDEX_SET, INDEX_ADD };

#endif
