/* How a quantized product prepares its activations before encoding them. Every step rounds exactly like the separate calls it
 * replaces: ww_tensor_rms_norm(), or ww_tensor_unary() and ww_tensor_binary().
 */
#ifndef WW_ARITHMETIC_BLOCKS_INPUT_H
#define WW_ARITHMETIC_BLOCKS_INPUT_H

#include "arithmetic/math/f32.h"

enum {
    INPUT_PLAIN, /* x */
    INPUT_NORM,  /* x after an rms norm with weights */
    INPUT_GATED, /* silu(x) * up */
};

/* An element after the norm; `scale` belongs to the whole column (input_scale). */
MATH_FUNCTION float input_normed(float x, float scale, float weight)
{
    return x * scale * weight;
}

/* The factor of a norm; `squares` is the sum over n elements in the order of arithmetic/reduce.h. */
MATH_FUNCTION float input_scale(float squares, float n, float eps)
{
    return canon_rsqrt_f32(squares / n + eps);
}

MATH_FUNCTION float input_gated(float gate, float up)
{
    return canon_silu_f32(gate) * up;
}

#endif
