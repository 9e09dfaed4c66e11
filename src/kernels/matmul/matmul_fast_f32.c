/* Matrix products of f32 in fast mode (matmul_fast.h) by the MFMA that CDNA has for it: all bits of f32 on gfx908 and gfx90a,
 * 10 bits of its fraction on gfx942. Bound by the matrix units.
 */
#include "kernels/matmul/matmul_fast.h"

MATMUL_FAST(matmul_fast_f32, TYPE_F32)
