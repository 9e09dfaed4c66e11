/* The kernels for AVX-512. */
#include "cpu/avx512/vec.h"

#include "cpu/kernels.h"
