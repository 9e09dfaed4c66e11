/* The loops over elements for AVX-512; the set with AMX uses them, too. */
#define TENSOR_LOOPS tensor_loops_avx512
#include "cpu/tensor_kernels.h"
