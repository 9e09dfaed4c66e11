/* The loops over rows of tensors for AVX-512. */
#define ROW_LOOPS row_loops_avx512
#include "cpu/avx512/functions.h"

static inline void exponentials_direct(float *to, const float *x, int64_t count, float less)
{
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 mask = wide_mask(count - i);
        const wide moved = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), WIDE(less));
        _mm512_mask_storeu_ps(to + i, mask, wide_exponential(moved));
    }
}

#define EXPONENTIALS_f32(to, x, count, less) exponentials_direct(to, x, count, less)
#include "cpu/row_kernels.h"
