/* The loops over elements for AVX2 with FMA and F16C. */
#define TENSOR_LOOPS tensor_loops_avx2
#include "cpu/tensor_kernels.h"
