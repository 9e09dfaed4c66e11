/* Matrix products of bf16 in fast mode on AMD's matrix units (matmul_fast.h): MFMA on gfx908, gfx90a and gfx942, WMMA on gfx11
 * and gfx12. Bound by the matrix units. Results can also be f32, for products of quantized matrices.
 */
#include "kernels/matmul/matmul_fast.h"

MATMUL_FAST(matmul_fast_bf16, TYPE_BF16)
