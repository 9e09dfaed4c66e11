/* The loops over rows of tensors for AVX2 with FMA. */
#define ROW_LOOPS row_loops_avx2
#include "cpu/tensor/row_loops_template.h"
