/* Matrix products of f16 in fast mode (matmul_fast.h) on AMD chips: MFMA on gfx908, gfx90a and gfx942, WMMA on gfx11 and gfx12,
 * and instructions of two products each on gfx906 and gfx10.3. Bound by these instructions.
 */
#include "kernels/matmul/matmul_fast.h"

MATMUL_FAST(matmul_fast_f16, TYPE_F16)
