/* softmax and norms, one block per row, and rotary embedding, one thread per pair.
 *
 * A row that fits is kept in shared memory, in the type of the arithmetic, so memory is read once and written once; a longer
 * row is read again in each pass. Sums are canonical (reduce.h): 64 threads reduce a chunk of 4096, one accumulator each. The
 * results of chunks are kept in shared memory, or in the row's part of `results` if there are many, and further rounds reduce
 * them in the same way.
 */
#include "kernels/elementwise/elements.h"

#include "arithmetic/rows.h"
#include "kernels/reduce/row_arguments.h"

#define shuffle_f32(value, mask) wave_shuffle_xor_f32(value, mask)
#define shuffle_f64(value, mask) canon_bits_double(wave_shuffle_xor_u64(canon_double_bits(value), (mask)))

/* What is summed: the elements, their squared distances from the center, or e^(x - center), which replaces x. */
enum { SUM_PLAIN, SUM_SQUARES, SUM_EXPONENTIALS };

#define GLOBAL_ELEMENT(kind, i) bits_to_##kind(bits_at(x, i, bytes), args.type)

/* Joins 64 accumulators, one per thread, in the canonical order. Leaves the results of all groups in `folds` and returns that
 * of the thread's own group. */
#define FOLD(T, kind, accumulator)                                                                                             \
    do {                                                                                                                       \
        AT(folds, thread) = accumulator;                                                                                       \
        barrier();                                                                                                             \
        T joined_ = accumulator + AT(folds, thread ^ 32);                                                                      \
        UNROLL for (uint32_t mask = 16; mask > 0; mask /= 2) joined_ = joined_ + shuffle_##kind(joined_, mask);                \
        accumulator = joined_;                                                                                                 \
        barrier();                                                                                                             \
    } while (0)

#define RESULT(i) (*(args.chunks <= ROW_RESULTS_SHARED ? &AT(results, i) : &far_results[i]))

/* Accumulator `sum` joined with a value of the row; for a row in shared memory, the exponentials are already computed. */
#define JOINED(kind, what, in_shared, sum, value, center)                                                                      \
    ((what) == SUM_SQUARES                      ? row_square_##kind(sum, value, center)                                        \
     : (what) == SUM_EXPONENTIALS && !in_shared ? (sum) + row_exponential_##kind(value, center)                                \
                                                : (sum) + (value))

/* Joins elements first, first + 64, ... below `end` to `sum`. Eight loads are in flight together, so each addition waits for
 * the one before, but not for memory. */
#define JOIN_LANE(T, kind, what, in_shared, element, first, end, sum, center)                                                  \
    do {                                                                                                                       \
        int64_t i_ = first;                                                                                                    \
        for (; i_ + 7 * REDUCE_LANES < (end); i_ += 8 * REDUCE_LANES) {                                                        \
            T loaded_[8];                                                                                                      \
            UNROLL for (int32_t a_ = 0; a_ < 8; a_++) loaded_[a_] = element(kind, i_ + a_ * REDUCE_LANES);                     \
            UNROLL for (int32_t a_ = 0; a_ < 8; a_++) sum = JOINED(kind, what, in_shared, sum, loaded_[a_], center);           \
        }                                                                                                                      \
        for (; i_ < (end); i_ += REDUCE_LANES) {                                                                               \
            const T value_ = element(kind, i_);                                                                                \
            sum = JOINED(kind, what, in_shared, sum, value_, center);                                                          \
        }                                                                                                                      \
    } while (0)

#define SHARED_ELEMENT(kind, i) AT(row_shared, i)

/* Sums the row into `total` in all threads. */
#define SUM_ROW(T, kind, what, center, total)                                                                                  \
    do {                                                                                                                       \
        for (int64_t base_ = 0; base_ < args.chunks; base_ += groups) {                                                        \
            const int64_t run_ = base_ + group;                                                                                \
            const int64_t first_ = run_ * REDUCE_CHUNK + thread % REDUCE_LANES;                                                \
            const int64_t end_ = (run_ + 1) * REDUCE_CHUNK < args.n ? (run_ + 1) * REDUCE_CHUNK : args.n;                      \
            T sum_ = 0;                                                                                                        \
            if (args.in_shared)                                                                                                \
                JOIN_LANE(T, kind, what, 1, SHARED_ELEMENT, first_, end_, sum_, center);                                       \
            else                                                                                                               \
                JOIN_LANE(T, kind, what, 0, GLOBAL_ELEMENT, first_, end_, sum_, center);                                       \
            FOLD(T, kind, sum_);                                                                                               \
            if (thread % REDUCE_LANES == 0 && run_ < args.chunks)                                                              \
                RESULT(run_) = sum_;                                                                                           \
        }                                                                                                                      \
        barrier();                                                                                                             \
        for (int64_t count_ = args.chunks; count_ > 1;) {                                                                      \
            const int64_t runs_ = (count_ + REDUCE_CHUNK - 1) / REDUCE_CHUNK;                                                  \
            for (int64_t base_ = 0; base_ < runs_; base_ += groups) {                                                          \
                const int64_t run_ = base_ + group;                                                                            \
                const int64_t end_ = (run_ + 1) * REDUCE_CHUNK < count_ ? (run_ + 1) * REDUCE_CHUNK : count_;                  \
                T sum_ = 0;                                                                                                    \
                for (int64_t i_ = run_ * REDUCE_CHUNK + thread % REDUCE_LANES; i_ < end_; i_ += REDUCE_LANES)                  \
                    sum_ = sum_ + RESULT(i_);                                                                                  \
                FOLD(T, kind, sum_);                                                                                           \
                if (thread % REDUCE_LANES == 0 && run_ < runs_)                                                                \
                    RESULT(run_) = sum_;                                                                                       \
            }                                                                                                                  \
            barrier();                                                                                                         \
            count_ = runs_;                                                                                                    \
        }                                                                                                                      \
        total = RESULT(0);                                                                                                     \
    } while (0)

/* The largest of the threads' values, in all threads. */
#define LARGEST(T, kind, value)                                                                                                \
    do {                                                                                                                       \
        for (uint32_t mask = wave_size() / 2; mask > 0; mask /= 2) {                                                           \
            const T other_ = shuffle_##kind(value, mask);                                                                      \
            value = canon_max_##kind(value, other_);                                                                           \
        }                                                                                                                      \
        if (lane() == 0)                                                                                                       \
            AT(folds, wave_index()) = value;                                                                                   \
        barrier();                                                                                                             \
        for (uint32_t w_ = 0; w_ < waves_per_block(); w_++)                                                                    \
            value = canon_max_##kind(value, AT(folds, w_));                                                                    \
        barrier();                                                                                                             \
    } while (0)

#define ROWS(T, kind)                                                                                                          \
    KERNEL_RESIDENT(tensor_rows_##kind, row_args, ROW_THREADS, 3)                                                              \
    {                                                                                                                          \
        SHARED(T, folds, ROW_THREADS);                                                                                         \
        SHARED(T, results, ROW_RESULTS_SHARED);                                                                                \
        SHARED_DYNAMIC(T, row_shared);                                                                                         \
        const int32_t thread = (int32_t)thread_index();                                                                        \
        const int32_t threads = (int32_t)block_size();                                                                         \
        const int32_t group = thread / REDUCE_LANES;                                                                           \
        const int32_t groups = threads / REDUCE_LANES;                                                                         \
        const int32_t bytes = type_bytes(args.type);                                                                           \
        const int64_t row = block_index();                                                                                     \
        const char *x = (const char *)args.x + row * args.n * bytes;                                                           \
        char *out = (char *)args.out + row * args.n * bytes;                                                                   \
        T *far_results = (T *)args.results + row * args.chunks;                                                                \
        T highest = -__builtin_inff();                                                                                         \
        T center = 0;                                                                                                          \
        T scale = 0;                                                                                                           \
        LOAD_ROW_##kind(highest);                                                                                              \
        barrier();                                                                                                             \
        if (args.op == ROW_SOFTMAX) {                                                                                          \
            LARGEST(T, kind, highest);                                                                                         \
            center = highest;                                                                                                  \
            for (int64_t i = thread; args.in_shared && i < args.n; i += threads)                                               \
                AT(row_shared, i) = row_exponential_##kind(AT(row_shared, i), center);                                         \
            barrier();                                                                                                         \
            SUM_ROW(T, kind, SUM_EXPONENTIALS, center, scale);                                                                 \
            scale = (T)1 / scale;                                                                                              \
        } else {                                                                                                               \
            if (args.op == ROW_LAYER_NORM) {                                                                                   \
                SUM_ROW(T, kind, SUM_PLAIN, center, scale);                                                                    \
                center = scale / (T)args.n;                                                                                    \
            }                                                                                                                  \
            SUM_ROW(T, kind, SUM_SQUARES, center, scale);                                                                      \
            scale = canon_rsqrt_##kind(scale / (T)args.n + (T)args.eps);                                                       \
        }                                                                                                                      \
        STORE_ROW_##kind();                                                                                                    \
    }

/* Element i as it is stored. */
#define FINISHED(T, kind, value, i)                                                                                             \
    (args.op == ROW_SOFTMAX ? (args.in_shared ? (value) : row_exponential_##kind(value, center)) * scale                        \
     : args.bias            ? row_affine_##kind(((value) - center) * scale,                                                     \
                                     args.weight ? bits_to_##kind(bits_at(args.weight, i, bytes), args.type) : (T)1, \
                                                bits_to_##kind(bits_at(args.bias, i, bytes), args.type))                        \
     : args.weight          ? ((value) - center) * scale * bits_to_##kind(bits_at(args.weight, i, bytes), args.type)            \
                            : ((value) - center) * scale)

#define LOAD_ONE_BY_ONE(kind, highest)                                                                                         \
    for (int64_t i = thread; i < args.n; i += threads) {                                                                       \
        const __typeof__(highest) value_ = GLOBAL_ELEMENT(kind, i);                                                            \
        highest = canon_max_##kind(highest, value_);                                                                           \
        if (args.in_shared)                                                                                                    \
            AT(row_shared, i) = value_;                                                                                        \
    }

#define STORE_ONE_BY_ONE(T, kind)                                                                                              \
    for (int64_t i = thread; i < args.n; i += threads) {                                                                       \
        const T value_ = args.in_shared ? AT(row_shared, i) : GLOBAL_ELEMENT(kind, i);                                         \
        bits_put(out, i, bytes, kind##_to_bits(FINISHED(T, kind, value_, i), args.type));                                      \
    }

/* Loads by quads if the rows allow it. */
#define LOAD_ROW_f32(highest)                                                                                                  \
    if (args.quads) {                                                                                                          \
        for (int64_t first = 4 * thread; first < args.n; first += 16 * threads) {                                              \
            quad_bits loaded[4];                                                                                               \
            UNROLL for (int32_t a = 0; a < 4; a++) if (first + a * 4 * threads < args.n) loaded[a] =                           \
                quad_load(x, first + a * 4 * threads, bytes);                                                                  \
            UNROLL for (int32_t a = 0; a < 4; a++)                                                                             \
            {                                                                                                                  \
                const int64_t i = first + a * 4 * threads;                                                                     \
                if (i < args.n) {                                                                                              \
                    const quad_f32 quad = quad_to_f32(loaded[a], args.type);                                                   \
                    if (args.op == ROW_SOFTMAX)                                                                                \
                        EACH highest = canon_max_f32(highest, quad.v[j]);                                                      \
                    if (args.in_shared)                                                                                        \
                        store_f32x4(AT_RANGE(row_shared, i, 4), make_f32x4(quad.v[0], quad.v[1], quad.v[2], quad.v[3]));       \
                }                                                                                                              \
            }                                                                                                                  \
        }                                                                                                                      \
    } else                                                                                                                     \
        LOAD_ONE_BY_ONE(f32, highest)
#define STORE_ROW_f32()                                                                                                        \
    if (args.quads) {                                                                                                          \
        for (int64_t i = 4 * thread; i < args.n; i += 4 * threads) {                                                           \
            quad_f32 quad;                                                                                                     \
            if (args.in_shared) {                                                                                              \
                const f32x4 four = load_f32x4(AT_RANGE(row_shared, i, 4));                                                     \
                quad.v[0] = four.x;                                                                                            \
                quad.v[1] = four.y;                                                                                            \
                quad.v[2] = four.z;                                                                                            \
                quad.v[3] = four.w;                                                                                            \
            } else                                                                                                             \
                quad = quad_to_f32(quad_load(x, i, bytes), args.type);                                                         \
            EACH quad.v[j] = FINISHED(float, f32, quad.v[j], i + j);                                                           \
            quad_store(out, i, bytes, f32_to_quad(quad, args.type));                                                           \
        }                                                                                                                      \
    } else                                                                                                                     \
        STORE_ONE_BY_ONE(float, f32)
#define LOAD_ROW_f64(highest) LOAD_ONE_BY_ONE(f64, highest)
#define STORE_ROW_f64()       STORE_ONE_BY_ONE(double, f64)

/* Long only after macro expansion. NOLINTBEGIN(readability-function-size) */
ROWS(float, f32)
ROWS(double, f64)
/* NOLINTEND(readability-function-size) */

/* ---- rotary embedding ---------------------------------------------------------------------------------------------------- */

#define ROPE(T, kind)                                                                                                          \
    DEVICE void rope_##kind(const rope_args *args)                                                                             \
    {                                                                                                                          \
        const int64_t i = (int64_t)block_index() * ROW_THREADS + thread_index();                                               \
        const int64_t row = i / args->half;                                                                                    \
        const int64_t pair = i - row * args->half;                                                                             \
        const int32_t bytes = type_bytes(args->type);                                                                          \
        if (row >= args->rows)                                                                                                 \
            return;                                                                                                            \
        const int64_t one = row * 2 * args->half + (args->interleaved ? 2 * pair : pair);                                      \
        const int64_t other = one + (args->interleaved ? 1 : args->half);                                                      \
        const int64_t cosine_at = reduce_place_64(&args->cosines, row) + pair * args->cosine_step;                             \
        const int64_t sine_at = reduce_place_64(&args->sines, row) + pair * args->sine_step;                                   \
        const T a = bits_to_##kind(bits_at(args->x, one, bytes), args->type);                                                  \
        const T b = bits_to_##kind(bits_at(args->x, other, bytes), args->type);                                                \
        const T c = bits_to_##kind(bits_at(args->cosine, cosine_at, bytes), args->type);                                       \
        const T s = bits_to_##kind(bits_at(args->sine, sine_at, bytes), args->type);                                           \
        bits_put(args->out, one, bytes, kind##_to_bits(row_turn_first_##kind(a, b, c, s), args->type));                        \
        bits_put(args->out, other, bytes, kind##_to_bits(row_turn_second_##kind(a, b, c, s), args->type));                     \
    }

ROPE(float, f32)
ROPE(double, f64)

KERNEL(tensor_rope, rope_args, ROW_THREADS)
{
    if (args.type == TYPE_F64)
        rope_f64(&args);
    else
        rope_f32(&args);
}
