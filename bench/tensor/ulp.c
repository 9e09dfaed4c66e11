/* How exact the element functions are (src/arithmetic/math/f32.h, f64.h): f32 over all 2^32 inputs against libm in
 * double, f64 and functions of two arguments over a large sample against libm in long double. Writes the table
 * docs/evidence/accuracy.md.
 *
 * usage: ulp [--stride N] [--only NAME] [--output FILE]   every N-th input (a prime is best), one function, the table as a file
 * Ends with 1 where a function exceeds its bound or treats a NaN, an infinity or a zero otherwise than the reference does.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor/math_functions.h"

enum { BLOCK = 4096, THREADS_MAX = 64 };

/* ---- the functions over a block ------------------------------------------------------------------------------------------ */

#define UNARY_LOOPS(name, ...)                                                                                                 \
    static void name##_of_f32(const float *restrict x, const float *restrict y, float *restrict out)                           \
    {                                                                                                                          \
        (void)y;                                                                                                               \
        for (int i = 0; i < BLOCK; i++)                                                                                        \
            out[i] = canon_##name##_f32(x[i]);                                                                                 \
    }                                                                                                                          \
    static void name##_of_f64(const double *restrict x, const double *restrict y, double *restrict out)                        \
    {                                                                                                                          \
        (void)y;                                                                                                               \
        for (int i = 0; i < BLOCK; i++)                                                                                        \
            out[i] = canon_##name##_f64(x[i]);                                                                                 \
    }
UNARIES(UNARY_LOOPS)

#define BINARY_LOOPS(name, ...)                                                                                                \
    static void name##_of_f32(const float *restrict x, const float *restrict y, float *restrict out)                           \
    {                                                                                                                          \
        for (int i = 0; i < BLOCK; i++)                                                                                        \
            out[i] = canon_##name##_f32(x[i], y[i]);                                                                           \
    }                                                                                                                          \
    static void name##_of_f64(const double *restrict x, const double *restrict y, double *restrict out)                        \
    {                                                                                                                          \
        for (int i = 0; i < BLOCK; i++)                                                                                        \
            out[i] = canon_##name##_f64(x[i], y[i]);                                                                           \
    }
BINARIES(BINARY_LOOPS)

typedef struct function {
    const char *name;
    void (*f32)(const float *, const float *, float *);
    void (*f64)(const double *, const double *, double *);
    double (*reference)(double);
    long double (*reference_long)(long double);
    double (*reference_two)(double, double);
    long double (*reference_two_long)(long double, long double);
    double bound_f32;
    double bound_f64;
} function;

static const function functions[] = {
#define UNARY_ROW(name, plain, lengthy, f32, f64) {#name, name##_of_f32, name##_of_f64, plain, lengthy, NULL, NULL, f32, f64},
    UNARIES(UNARY_ROW)
#define BINARY_ROW(name, plain, lengthy, f32, f64) {#name, name##_of_f32, name##_of_f64, NULL, NULL, plain, lengthy, f32, f64},
        BINARIES(BINARY_ROW)};

/* ---- measuring ----------------------------------------------------------------------------------------------------------- */

typedef struct job {
    const function *function;
    bool f64;
    bool whole;
    uint64_t stride;
    uint64_t first; /* blocks first, first + threads, ... are this job's */
    uint64_t threads;
    uint64_t blocks;
    measure measure;
} job;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

/* Returns the n-th number of a sample: alternately any bit pattern, a number in a range where functions change, or one near
 * 1. */
static double sample(uint64_t n, uint64_t turn, bool f64)
{
    const uint64_t bits = mix(n * 2 + 1);
    const double unit = (double)(int64_t)bits * 0x1p-63;
    if (turn == 0 && f64)
        return canon_bits_double(bits);
    if (turn == 0)
        return canon_bits_float((uint32_t)bits);
    if (turn == 1)
        return unit * 4;
    if (turn == 2)
        return unit * (f64 ? 700 : 90);
    return 1 + unit * 0.01;
}

static void run_block_f32(job *j, uint64_t block)
{
    float x[BLOCK];
    float y[BLOCK];
    float got[BLOCK];
    for (uint64_t i = 0; i < BLOCK; i++) {
        const uint64_t n = block * BLOCK + i;
        if (j->function->reference_two) {
            x[i] = (float)sample(n, n % 4, false);
            y[i] = (float)(sample(~n, n / 4 % 4, false) * (n % 4 == 3 ? 1000 : 1));
        } else {
            x[i] = canon_bits_float((uint32_t)(n * j->stride));
            y[i] = 0;
        }
    }
    j->function->f32(x, y, got);
    for (int i = 0; i < BLOCK; i++)
        compare_f32(&j->measure, got[i],
                    j->function->reference ? j->function->reference(x[i]) : j->function->reference_two(x[i], y[i]), x[i], y[i]);
}

/* Compares all inputs of a block with the f64 function. It has no branches, so that compilers vectorize it: errors are integers
 * in units of 2^-16, and the block is checked again if an error is the largest so far or a result is NaN. */
static void run_block_whole(job *j, uint64_t block)
{
    enum { UNIT = 65536, HUGE_ERROR = 1 << 30 };
    float x[BLOCK];
    float got[BLOCK];
    double x_long[BLOCK];
    double exact[BLOCK];
    for (uint32_t i = 0; i < BLOCK; i++) {
        x[i] = canon_bits_float((uint32_t)(block * BLOCK * j->stride) + i * (uint32_t)j->stride);
        x_long[i] = x[i];
    }
    j->function->f32(x, x, got);
    j->function->f64(x_long, x_long, exact);
    int32_t worst = 0;
    for (int i = 0; i < BLOCK; i++) {
        const int32_t exponent = (int32_t)(canon_double_bits(exact[i]) >> 52 & 2047) - 1023 - 23;
        const double per_unit = math_power_f64(exponent < -149 ? 149 : -exponent);
        const double error = canon_abs_f64((double)got[i] - exact[i]) * per_unit * UNIT;
        const int same =
            (canon_float_bits((float)exact[i]) == canon_float_bits(got[i])) | ((got[i] != got[i]) & (exact[i] != exact[i]));
        const double wrong = error > 0 ? error : HUGE_ERROR; /* NaN on one side, infinities, the sign of zero */
        const double other = wrong < HUGE_ERROR ? wrong : HUGE_ERROR;
        const int32_t counted = (int32_t)math_choose_f64(same, 0.0, other);
        worst = counted > worst ? counted : worst;
    }
    if (worst <= (int32_t)(j->measure.worst * UNIT)) {
        j->measure.inputs += BLOCK;
        return;
    }
    for (int i = 0; i < BLOCK; i++)
        compare_f32(&j->measure, got[i], exact[i], x[i], 0);
}

static void run_block_f64(job *j, uint64_t block)
{
    double x[BLOCK];
    double y[BLOCK];
    double got[BLOCK];
    for (uint64_t i = 0; i < BLOCK; i++) {
        const uint64_t n = block * BLOCK + i;
        x[i] = sample(n, n % 4, true);
        y[i] = sample(~n, n / 4 % 4, true) * (n % 4 == 3 ? 10000 : 1);
    }
    j->function->f64(x, y, got);
    for (int i = 0; i < BLOCK; i++)
        compare_f64(&j->measure, got[i],
                    j->function->reference_long ? j->function->reference_long(x[i])
                                                : j->function->reference_two_long(x[i], y[i]),
                    x[i], y[i]);
}

static void *run_job(void *context)
{
    job *j = context;
    for (uint64_t block = j->first; block < j->blocks; block += j->threads) {
        if (j->f64)
            run_block_f64(j, block);
        else if (j->whole)
            run_block_whole(j, block);
        else
            run_block_f32(j, block);
    }
    return NULL;
}

static void join(measure *all, const measure *m)
{
    if (m->worst > all->worst) {
        all->worst = m->worst;
        all->worst_x = m->worst_x;
        all->worst_y = m->worst_y;
    }
    if (m->wrong) {
        all->wrong_x = m->wrong_x;
        all->wrong_y = m->wrong_y;
    }
    all->inputs += m->inputs;
    all->wrong += m->wrong;
}

/* One job, as many threads as there are cores. */
static measure measure_job(job model)
{
    static job jobs[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t n = online < 1 ? 1 : online > THREADS_MAX ? THREADS_MAX : (uint64_t)online;
    model.threads = n;
    for (uint64_t i = 0; i < n; i++) {
        jobs[i] = model;
        jobs[i].first = i;
        if (pthread_create(&threads[i], NULL, run_job, &jobs[i]) != 0) {
            fprintf(stderr, "ulp: a thread could not be started\n");
            exit(2);
        }
    }
    measure all = {0};
    for (uint64_t i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        join(&all, &jobs[i].measure);
    }
    return all;
}

static measure measure_function(const function *f, bool f64, uint64_t stride)
{
    const uint64_t sampled = ((uint64_t)1 << 25) / stride;
    if (f64 || f->reference_two)
        return measure_job((job){.function = f, .f64 = f64, .blocks = sampled / BLOCK});
    measure m =
        measure_job((job){.function = f, .whole = true, .stride = stride, .blocks = ((uint64_t)1 << 32) / stride / BLOCK});
    const measure beside =
        measure_job((job){.function = f, .stride = 257 * stride, .blocks = ((uint64_t)1 << 32) / (257 * stride) / BLOCK});
    const uint64_t inputs = m.inputs;
    join(&m, &beside); /* the worst of both; the counts are those of the whole */
    m.inputs = inputs;
    return m;
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static void print_heading(FILE *file)
{
    fprintf(file, "# Accuracy of the element functions\n\n"
                  "Errors of the element functions of src/arithmetic/math/f32.h and f64.h, measured by bench/tensor/ulp.c. "
                  "Every backend compiles these\n"
                  "files, so the figures hold for all of them. Errors are in units in the last place of the exact value; "
                  "correct rounding has at most 0.5.\n"
                  "NaN, infinities, zeros and their signs agree with the reference everywhere.\n"
                  "\n"
                  "- f32, one argument: all 2^32 inputs, or every n-th where the table counts fewer, compared with the same "
                  "function of f64; every 257th\n"
                  "  also with libm in double.\n"
                  "- f64, and f32 with two arguments: samples of all bit patterns, of the range where the functions bend, and "
                  "around 1, compared with libm\n"
                  "  in long double.\n"
                  "- f16, bf16 and f8 are computed in f32 and rounded once. GPUs have shorter forms for f16 and bf16, which "
                  "give the same bits for all 65536\n"
                  "  inputs (tests/arithmetic/test_math_half.c). pow and atan2 use bounds around the f32 result, and compute "
                  "that result where the bounds\n"
                  "  round to different 16-bit values (src/arithmetic/math/half_bounds_f32.h).\n\n"
                  "| function | inputs in f32 | worst error | inputs in f64 | worst error |\n|---|--:|--:|--:|--:|\n");
}

/* Says on standard error what is wrong: a special value, or an error beyond the function's bound. */
static bool within_bounds(const function *f, bool f64, const measure *m)
{
    const double bound = f64 ? f->bound_f64 : f->bound_f32;
    if (m->wrong)
        fprintf(stderr, "%s %s: %" PRIu64 " special values are wrong, such as at %a, %a\n", f->name, f64 ? "f64" : "f32",
                m->wrong, m->wrong_x, m->wrong_y);
    if (m->worst > bound)
        fprintf(stderr, "%s %s: %.3f exceeds %.1f, at %a, %a\n", f->name, f64 ? "f64" : "f32", m->worst, bound, m->worst_x,
                m->worst_y);
    return m->wrong == 0 && m->worst <= bound;
}

int main(int argc, char **argv)
{
    uint64_t stride = 1;
    const char *only = NULL;
    const char *output = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--stride") == 0)
            stride = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--output") == 0)
            output = argv[i + 1];
    }
    FILE *file = stride == 0 ? NULL : output ? fopen(output, "w") : stdout;
    if (!file) {
        fprintf(stderr, "ulp: cannot write %s\n", stride == 0 ? "with a stride of 0" : output);
        return 2;
    }
    bool good = true;
    print_heading(file);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        if (only && strcmp(only, f->name) != 0)
            continue;
        const measure f32 = measure_function(f, false, stride), f64 = measure_function(f, true, stride);
        fprintf(file, "| %s | %" PRIu64 " | %.3f | %" PRIu64 " | %.3f |\n", f->name, f32.inputs, f32.worst, f64.inputs,
                f64.worst);
        fflush(file);
        const bool f32_good = within_bounds(f, false, &f32);
        good = within_bounds(f, true, &f64) && f32_good && good;
    }
    if (output)
        fclose(file);
    return good ? 0 : 1;
}
