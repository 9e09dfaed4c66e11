/* Matrix products of f16 in fast mode (matmul_fast.h): by AMD's matrix units, MFMA on gfx908, gfx90a and gfx942, WMMA on gfx11
 * and gfx12, which bind them, and on gfx906 and gfx10.3 by instructions of two products each, which bind them there.
 */
#include "kernels/matmul/matmul_fast.h"

MATMUL_FAST(matmul_fast_f16, TYPE_F16)
