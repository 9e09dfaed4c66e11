/* The loops over rows of tensors for AVX-512. */
#define ROW_LOOPS row_loops_avx512
#include "cpu/row_kernels.h"
