/* The index of the first best element of a row. A block finds it for a segment; if a row has several segments, another launch
 * compares them.
 *
 * Adjacent floats of up to 32 bits are loaded by quads, and 32 lanes handle a segment. For 16-bit types the kernel first finds
 * the best value, with one comparison per element; then the lanes that have it search their elements again for its index. A
 * thread reads its elements in increasing order, so the first of equals stays; between threads the smaller index wins.
 */
#include "kernels/elementwise/elements.h"

#include "kernels/reduce/row_arguments.h"

#define kept_bits_f32(value) ((int64_t)canon_float_bits(value))
#define kept_bits_f64(value) ((int64_t)canon_double_bits(value))
#define kept_bits_i64(value) (value)
#define value_of_f32(bits)   canon_bits_float((uint32_t)(bits))
#define value_of_f64(bits)   canon_bits_double((uint64_t)(bits))
#define value_of_i64(bits)   (bits)

/* The better of (a, i) and (b, j); the smaller index if they are equal. -1 is not an index. */
#define TAKE_BETTER(kind, a, i, b, j)                                                                                          \
    if ((j) >= 0 && ((i) < 0 || reduce_better_##kind(args.op, a, b) || (!reduce_better_##kind(args.op, b, a) && (j) < (i)))) { \
        a = b;                                                                                                                 \
        i = j;                                                                                                                 \
    }

#define REDUCE_ARG(T, kind)                                                                                                    \
    KERNEL(tensor_reduce_arg_##kind, reduce_arg_args, REDUCE_THREADS)                                                          \
    {                                                                                                                          \
        SHARED(int64_t, values, REDUCE_THREADS);                                                                               \
        SHARED(int64_t, places, REDUCE_THREADS);                                                                               \
        const int32_t thread = (int32_t)thread_index();                                                                        \
        const int64_t steps = args.out ? 1 : args.parts;                                                                       \
        const int64_t out = (int64_t)block_index() / steps;                                                                    \
        const int64_t part = (int64_t)block_index() - out * steps;                                                             \
        const int32_t bytes = type_bytes(args.type);                                                                           \
        T best = 0;                                                                                                            \
        int64_t place = -1;                                                                                                    \
        if (args.out) {                                                                                                        \
            for (int64_t i = thread; i < args.parts; i += REDUCE_THREADS) {                                                    \
                const T next = value_of_##kind(args.best_values[out * args.parts + i]);                                        \
                const int64_t at = args.best_places[out * args.parts + i];                                                     \
                TAKE_BETTER(kind, best, place, next, at)                                                                       \
            }                                                                                                                  \
        } else {                                                                                                               \
            const char *x = (const char *)args.x + reduce_place(&args.kept, out) * bytes;                                      \
            const int64_t each = (args.n + args.parts - 1) / args.parts;                                                       \
            const int64_t end = (part + 1) * each < args.n ? (part + 1) * each : args.n;                                       \
            for (int64_t i = part * each + thread; i < end; i += REDUCE_THREADS) {                                             \
                const T next = bits_to_##kind(bits_at(x, reduce_place(&args.reduced, i), bytes), args.type);                   \
                TAKE_BETTER(kind, best, place, next, i)                                                                        \
            }                                                                                                                  \
        }                                                                                                                      \
        AT(values, thread) = kept_bits_##kind(best);                                                                           \
        AT(places, thread) = place;                                                                                            \
        barrier();                                                                                                             \
        for (int32_t s = REDUCE_THREADS / 2; s > 0; s /= 2) {                                                                  \
            if (thread < s) {                                                                                                  \
                const T next = value_of_##kind(AT(values, thread + s));                                                        \
                const int64_t at = AT(places, thread + s);                                                                     \
                TAKE_BETTER(kind, best, place, next, at)                                                                       \
                AT(values, thread) = kept_bits_##kind(best);                                                                   \
                AT(places, thread) = place;                                                                                    \
            }                                                                                                                  \
            barrier();                                                                                                         \
        }                                                                                                                      \
        if (thread == 0 && args.out)                                                                                           \
            args.out[out] = (uint32_t)place;                                                                                   \
        if (thread == 0 && !args.out) {                                                                                        \
            args.best_values[block_index()] = kept_bits_##kind(best);                                                          \
            args.best_places[block_index()] = place;                                                                           \
        }                                                                                                                      \
    }

REDUCE_ARG(float, f32)
REDUCE_ARG(double, f64)
REDUCE_ARG(int64_t, i64)

/* ---- by quads ------------------------------------------------------------------------------------------------------------ */

/* Same as reduce_better, in two comparisons: false if a is NaN, true if only b is. */
DEVICE bool quad_better(int32_t op, float a, float b)
{
    return (op == REDUCE_ARGMAX ? !(b <= a) : !(b >= a)) && a == a;
}

/* Elements are numbered from the start of the segment; -1 means none. */
typedef struct arg_best {
    float value;
    int32_t place;
} arg_best;

/* Whether the value is as good as `best`, the best of all. */
DEVICE bool arg_is_best(float value, float best)
{
    return value == best || (value != value && best != best);
}

/* The best value of the lanes that have one. A zero can have either sign. */
DEVICE float arg_best_value(int32_t op, arg_best mine)
{
    float best = mine.place >= 0 ? mine.value : op == REDUCE_ARGMAX ? -MATH_INF_F32 : MATH_INF_F32;
    UNROLL for (uint32_t mask = ARG_GROUP / 2; mask > 0; mask /= 2)
    {
        const float other = wave_shuffle_xor_f32(best, mask);
        best = op == REDUCE_ARGMAX ? canon_max_f32(best, other) : canon_min_f32(best, other);
    }
    return best;
}

enum { ARG_AHEAD = 8, ARG_STEP = 4 * ARG_GROUP };

/* Loads up to eight of the lane's quads in [first, end). */
DEVICE void arg_load(int32_t type, const char *x, int32_t first, int32_t end, quad_bits *loaded)
{
    UNROLL for (int32_t a = 0; a < ARG_AHEAD; a++) if (first + a * ARG_STEP < end) loaded[a] =
        quad_load(x, first + a * ARG_STEP, bytes_f32(type));
}

/* Returns the best value of the lane's quads in [first, end), and where the first group of eight quads with it starts. A zero
 * can have either sign. The next eight quads are in flight meanwhile. Waits for the previous launch halfway. */
DEVICE arg_best arg_of_quads(int32_t op, int32_t type, const char *x, int32_t first, int32_t end, bool *met)
{
    arg_best best = {0.0f, -1};
    quad_bits now[ARG_AHEAD], next[ARG_AHEAD];
    arg_load(type, x, first, end, next);
    UNROLL_BY(1) for (int32_t i = first; i < end; i += ARG_AHEAD * ARG_STEP)
    {
        float value = op == REDUCE_ARGMAX ? -MATH_INF_F32 : MATH_INF_F32;
        UNROLL for (int32_t a = 0; a < ARG_AHEAD; a++) now[a] = next[a];
        arg_load(type, x, i + ARG_AHEAD * ARG_STEP, end, next);
        UNROLL for (int32_t a = 0; a < ARG_AHEAD; a++) if (i + a * ARG_STEP < end)
        {
            const quad_f32 v = quad_to_f32(now[a], type);
            EACH value = op == REDUCE_ARGMAX ? canon_max_f32(value, v.v[j]) : canon_min_f32(value, v.v[j]);
        }
        if (best.place < 0 || quad_better(op, best.value, value)) {
            best.value = value;
            best.place = i;
        }
        if (2 * i >= end)
            launches_meet(met);
    }
    return best;
}

/* The first element equal to `best` in the eight quads from `begin` on, below `end`. */
DEVICE int32_t arg_find(int32_t type, const char *x, int32_t begin, int32_t end, float best)
{
    int32_t place = begin;
    quad_bits loaded[ARG_AHEAD];
    arg_load(type, x, begin, end, loaded);
    UNROLL for (int32_t a = ARG_AHEAD - 1; a >= 0; a--) if (begin + a * ARG_STEP < end)
    {
        const quad_f32 v = quad_to_f32(loaded[a], type);
        UNROLL for (int32_t j = 3; j >= 0; j--) if (arg_is_best(v.v[j], best)) place = begin + a * ARG_STEP + j;
    }
    return place;
}

DEVICE int32_t arg_find_type(int32_t type, const char *x, arg_best found, int32_t end, float best)
{
    return type == TYPE_F32    ? found.place
           : type == TYPE_F16  ? arg_find(TYPE_F16, x, found.place, end, best)
           : type == TYPE_BF16 ? arg_find(TYPE_BF16, x, found.place, end, best)
                               : arg_find(TYPE_F8E4M3, x, found.place, end, best);
}

/* The best of f32 elements. They are twice as many bytes, so nothing is read again: each element is compared with the best so
 * far. */
DEVICE arg_best arg_of_words(int32_t op, const char *x, int32_t first, int32_t end, bool *met)
{
    enum { PREFETCH = 4 };
    arg_best best = {0.0f, -1};
    quad_bits loaded[PREFETCH] = {{{0, 0, 0, 0}}};
    UNROLL_BY(1) for (int32_t i = first; i < end; i += PREFETCH * ARG_STEP)
    {
        UNROLL for (int32_t a = 0; a < PREFETCH; a++) if (i + a * ARG_STEP < end) loaded[a] = quad_load(x, i + a * ARG_STEP, 4);
        if (best.place < 0) {
            best.value = canon_bits_float(loaded[0].word[0]);
            best.place = i;
        }
        UNROLL for (int32_t a = 0; a < PREFETCH; a++) if (i + a * ARG_STEP < end)
        {
            const quad_f32 v = quad_to_f32(loaded[a], TYPE_F32);
            EACH if (quad_better(op, best.value, v.v[j]))
            {
                best.value = v.v[j];
                best.place = i + a * ARG_STEP + j;
            }
        }
        if (2 * i >= end)
            launches_meet(met);
    }
    return best;
}

DEVICE arg_best arg_of_type(int32_t op, int32_t type, const char *x, int32_t first, int32_t end, bool *met)
{
    return type == TYPE_F32    ? arg_of_words(op, x, first, end, met)
           : type == TYPE_F16  ? arg_of_quads(op, TYPE_F16, x, first, end, met)
           : type == TYPE_BF16 ? arg_of_quads(op, TYPE_BF16, x, first, end, met)
                               : arg_of_quads(op, TYPE_F8E4M3, x, first, end, met);
}

/* 32 lanes per segment. */
KERNEL(tensor_reduce_arg_quads, reduce_arg_args, REDUCE_THREADS)
{
    const int64_t item = (int64_t)block_index() * (REDUCE_THREADS / ARG_GROUP) + thread_index() / ARG_GROUP;
    int64_t out = item, each = args.n;
    if (args.parts > 1) { /* 64-bit divisions would take longer than a short row */
        out = item / args.parts;
        each = (args.n / 4 + args.parts - 1) / args.parts * 4;
    }
    const int64_t part = item - out * args.parts;
    const int64_t end = args.n - part * each < each ? args.n - part * each : each;
    const bool here = out < args.outs;
    const char *x = (const char *)args.x + (here ? reduce_place(&args.kept, out) + part * each : 0) * bytes_f32(args.type);
    const int32_t first = 4 * (int32_t)(thread_index() % ARG_GROUP), limit = here ? (int32_t)end : 0;
    bool met = args.apart;
    launches_meet(&met);
    met = !args.apart;
    arg_best best = args.op == REDUCE_ARGMAX ? arg_of_type(REDUCE_ARGMAX, args.type, x, first, limit, &met)
                                             : arg_of_type(REDUCE_ARGMIN, args.type, x, first, limit, &met);
    const float value = arg_best_value(args.op, best);
    uint32_t place = UINT32_MAX; /* larger than any index */
    if (best.place >= 0 && arg_is_best(best.value, value))
        place = (uint32_t)arg_find_type(args.type, x, best, limit, value);
    UNROLL for (uint32_t mask = ARG_GROUP / 2; mask > 0; mask /= 2)
    {
        const uint32_t other = wave_shuffle_xor_u32(place, mask);
        place = other < place ? other : place;
    }
    best.value = value;
    best.place = (int32_t)place;
    launches_meet(&met);
    if (!here || thread_index() % ARG_GROUP != 0)
        return;
    if (args.out) {
        args.out[out] = (uint32_t)best.place;
    } else {
        args.best_values[item] = (int64_t)canon_float_bits(best.value);
        args.best_places[item] = best.place < 0 ? -1 : part * each + best.place;
    }
}
