/* Matrix products for AVX-512: tiles of 14 rows by two vectors use 28 of the 32 registers for sums. */
#include "cpu/isa/avx512/matmul_vectors.h"

MATMUL_TILES(matmul_tiles_avx512, 14, 2, 16, .fast_present = NULL)
