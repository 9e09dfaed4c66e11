/* Matrix products of f32 in fast mode (matmul_fast.h) by the MFMA that CDNA has for it: all bits of f32 on gfx908 and gfx90a,
 * 10 bits of its fraction on gfx942. Bound by the matrix units.
 */
#include "kernels/matmul/conv_im2col.h"
#include "kernels/matmul/matmul_fast.h"
#include "kernels/matmul/matmul_pack.h"

MATMUL_FAST_LAYOUTS(matmul_fast_f32, TYPE_F32)

MATMUL_PACK(matmul_pack_32, 4)
CONV_IM2COL(conv_im2col_32, 4)
