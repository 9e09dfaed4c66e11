/* Running sums along a dimension, in one order on every device.
 *
 * A line is divided into chunks of 64. Elements within a chunk are added one after the other, starting at the first. The sums
 * of whole chunks form a line of their own, with running sums P computed the same way: element i of chunk c > 0 is P[c - 1] +
 * (x[64 c] + ... + x[i]). So the chunks of a line are independent, and a line of n elements takes log n / log 64 rounds. f16,
 * bf16 and f8e4m3 are added in f32, including chunk sums, and rounded once; integers wrap.
 */
#ifndef WW_ARITHMETIC_CUMSUM_H
#define WW_ARITHMETIC_CUMSUM_H

#include <stdint.h>

#include "arithmetic/canon.h"
#include "arithmetic/element.h"

enum { CUMSUM_CHUNK = 64, CUMSUM_THREADS = 256 };

/* Dense lines along the second dimension of [outer, n, inner]; their chunks are [outer, chunks, inner]. */
typedef struct cumsum_args {
    const void *in;
    void *out;           /* same type and shape; or the sums of the chunks, in the kind of the type */
    const void *carries; /* running sums over the chunks, in the kind; NULL if a line has one chunk, and when `sums` is set */
    int64_t count;       /* total number of chunks */
    int64_t n, inner, chunks;
    int32_t type;
    int32_t sums; /* compute only the sums of chunks */
} cumsum_args;

/* Where a chunk lies. */
typedef struct cumsum_place {
    int64_t at, carry; /* carry: -1 for the first of a line */
    int32_t length;
} cumsum_place;

CANON_FUNCTION cumsum_place cumsum_place_of(const cumsum_args *args, int64_t chunk)
{
    cumsum_place place;
    const int64_t rest = chunk / args->inner, line = rest / args->chunks, number = rest - line * args->chunks;
    const int64_t first = number * CUMSUM_CHUNK, left = args->n - first;
    place.at = (line * args->n + first) * args->inner + (chunk - rest * args->inner);
    place.carry = number > 0 ? chunk - args->inner : -1;
    place.length = left < CUMSUM_CHUNK ? (int32_t)left : CUMSUM_CHUNK;
    return place;
}

CANON_FUNCTION float cumsum_add_f32(float x, float y)
{
    return x + y;
}
CANON_FUNCTION double cumsum_add_f64(double x, double y)
{
    return x + y;
}
CANON_FUNCTION int64_t cumsum_add_i64(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

#define CUMSUM_OF(kind, ctype)                                                                                                 \
    CANON_FUNCTION void cumsum_chunk_##kind(const cumsum_args *args, int64_t chunk)                                            \
    {                                                                                                                          \
        const cumsum_place place = cumsum_place_of(args, chunk);                                                               \
        const ctype carry = args->carries && place.carry >= 0 ? ((const ctype *)args->carries)[place.carry] : (ctype)0;        \
        int64_t at = place.at;                                                                                                 \
        ctype sum = (ctype)0;                                                                                                  \
        for (int32_t i = 0; i < place.length; i++, at += args->inner) {                                                        \
            const ctype x = element_load_##kind(args->in, args->type, at);                                                     \
            sum = i == 0 ? x : cumsum_add_##kind(sum, x);                                                                      \
            if (!args->sums)                                                                                                   \
                element_store_##kind(args->out, args->type, at, place.carry >= 0 ? cumsum_add_##kind(carry, sum) : sum);       \
        }                                                                                                                      \
        if (args->sums)                                                                                                        \
            ((ctype *)args->out)[chunk] = sum;                                                                                 \
    }

CUMSUM_OF(f32, float)
CUMSUM_OF(f64, double)
CUMSUM_OF(i64, int64_t)
#undef CUMSUM_OF

#endif
