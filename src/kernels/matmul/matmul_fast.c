/* Matrix products of f16 and bf16 in fast mode on AMD's matrix units (matmul_fast.h): MFMA on gfx908, gfx90a and gfx942, WMMA
 * on gfx11 and gfx12. Bound by the matrix units. Those of bf16 also give f32, which products of quantized matrices want.
 */
#include "kernels/matmul/matmul_fast.h"
#include "kernels/matmul/conv_im2col.h"
#include "kernels/matmul/matmul_pack.h"

MATMUL_FAST_LAYOUTS(matmul_fast_f16, TYPE_F16)
MATMUL_FAST_LAYOUTS(matmul_fast_bf16, TYPE_BF16)

MATMUL_PACK(matmul_pack_16, 2)
CONV_IM2COL(conv_im2col_16, 2)
