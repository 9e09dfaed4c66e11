/* The kernels for AVX2 with FMA. */
#include "cpu/avx2/vec.h"

#include "cpu/kernels.h"
