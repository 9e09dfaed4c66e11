/* The loops of attention in plain C: vectors of one float. */
#include <stdint.h>

#include "arithmetic/convert.h"
#include "arithmetic/rows.h"

#define VEC_LANES 1

typedef float vec;

static inline vec vec_zero(void)
{
    return 0.0f;
}

static inline vec vec_set(float value)
{
    return value;
}

static inline vec vec_load(const float *from)
{
    return *from;
}

static inline vec vec_load_f16(const uint16_t *from)
{
    return widen_f16(*from);
}

static inline void vec_store(float *to, vec v)
{
    *to = v;
}

static inline vec vec_add(vec a, vec b)
{
    return a + b;
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return canon_fma_f32(a, b, c);
}

static inline vec vec_max(vec a, vec b)
{
    return row_larger_f32(a, b);
}

static inline float vec_largest(vec v)
{
    return v;
}

#define ATTENTION_LOOPS attention_loops_scalar
#include "cpu/attention/attention_template.h"
