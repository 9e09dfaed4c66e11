/* What the activations of a quantized product are made of before they are coded, where a product does that itself: with the
 * roundings of the calls that would do it before (ww_tensor_rms_norm(); ww_tensor_unary() and ww_tensor_binary()).
 */
#ifndef WW_ARITHMETIC_BLOCKS_INPUT_H
#define WW_ARITHMETIC_BLOCKS_INPUT_H

#include "arithmetic/math/f32.h"

enum {
    INPUT_PLAIN, /* x */
    INPUT_NORM,  /* x behind an rms norm with weights */
    INPUT_GATED, /* silu(x) * up */
};

/* An element behind a norm: `scale` is of the whole column (input_scale). */
MATH_FUNCTION float input_normed(float x, float scale, float weight)
{
    return x * scale * weight;
}

/* What a norm multiplies with: `squares` is the sum over n elements as arithmetic/reduce.h has it. */
MATH_FUNCTION float input_scale(float squares, float n, float eps)
{
    return canon_rsqrt_f32(squares / n + eps);
}

MATH_FUNCTION float input_gated(float gate, float up)
{
    return canon_silu_f32(gate) * up;
}

#endif
