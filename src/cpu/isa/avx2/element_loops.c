/* The loops over elements for AVX2 with FMA and F16C. Without the name of a chip, gcc does not vectorize loops that look
 * up a table. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("tune=haswell")
#endif
#define ELEMENT_LOOPS element_loops_avx2
#include "cpu/tensor/element_loops_template.h"
