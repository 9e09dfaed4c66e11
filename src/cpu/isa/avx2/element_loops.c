/* The loops over elements for AVX2 with FMA and F16C. Unless told of a chip, gcc makes no vectors of loops that look up a
 * table. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("tune=haswell")
#endif
#define ELEMENT_LOOPS element_loops_avx2
#include "cpu/tensor/element_loops_template.h"
