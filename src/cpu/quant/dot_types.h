/* The vectors for products of codes: eight lanes for block groups, sixteen for tiles.
 *
 * Each instruction set defines the operations on eight lanes in its quant_dot.h: dot_unsigned, dot_signed, dot_pairs, dot_fma,
 * dot_halves and dot_lookup. Codes of activations are never -128.
 *
 * Code that uses them does not call base/integers.h for minima and rounding up: even inlined, such calls make gcc order the
 * surrounding instructions differently.
 */
#ifndef WW_CPU_QUANT_DOT_TYPES_H
#define WW_CPU_QUANT_DOT_TYPES_H

#include <stdint.h>
#include <string.h>

#define DOT_FUNCTION static inline __attribute__((always_inline))
#include "arithmetic/blocks/dot.h"

typedef int32_t dot_lanes __attribute__((vector_size(32)));
typedef uint32_t dot_words __attribute__((vector_size(32)));
typedef float dot_floats __attribute__((vector_size(32)));

typedef int32_t tile_lanes __attribute__((vector_size(64)));
typedef float tile_floats __attribute__((vector_size(64)));

DOT_FUNCTION dot_lanes dot_load_lanes(const void *from)
{
    dot_lanes taken;
    memcpy(&taken, from, sizeof taken);
    return taken;
}

DOT_FUNCTION dot_floats dot_load_floats(const void *from)
{
    dot_floats taken;
    memcpy(&taken, from, sizeof taken);
    return taken;
}

/* Folds eight accumulators to one number. */
DOT_FUNCTION float dot_fold(const float *acc)
{
    return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

#endif
