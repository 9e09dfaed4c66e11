/* Softmax, norms and rotary embedding on the CPU. Which way when:
 *
 *   softmax of rows, norms  along the last dimension: a thread handles a row, in blocks that stay in the first-level cache. f32
 *                           and f64 are used in place. 16-bit floats are widened block by block in each pass, which costs less
 *                           than memory for a whole row. Exponentials of a softmax of up to 16384 of them are kept; in longer
 *                           rows they are computed twice.
 *   softmax of columns      along another dimension: 64 adjacent columns, copied together if the second-level cache has room
 *                           for them (2 MiB), otherwise read three times.
 *   rope                    pairs of a row, 256 at a time.
 */
#include "cpu/tensor/tensor.h"

#include <stdatomic.h>
#include <string.h>

#include "arithmetic/rows.h"
#include "base/integers.h"
#include "base/memory.h"
#include "cpu/tensor/row_loops.h"

enum { SUM_PLAIN, SUM_SQUARES, SUM_EXPONENTIALS };
enum { COLUMNS_MAX = 64, ROWS_AHEAD = 16, COLUMNS_KEPT_BYTES = 2 << 20 };
enum { ROPE_BLOCK = 256, RESULTS_HERE = 256, GRAIN_ELEMENTS = 1 << 15, KEPT_HERE = 1 << 14 };

typedef struct row_space {
    uint8_t widened[LOOP_BLOCK * 8] __attribute__((aligned(64)));
} row_space;

typedef struct row_work {
    const rows_job *job;
    const element_loops *loops;
    const row_loops *rows;
    atomic_int failed; /* no memory for the results of the chunks */
} row_work;

typedef struct columns_work {
    const softmax_columns_job *job;
    const element_loops *loops;
    const row_loops *rows;
} columns_work;

typedef struct rope_work {
    const rope_job *job;
    const element_loops *loops;
    const row_loops *rows;
} rope_work;

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

static const float *row_block_f32(const row_work *w, const void *row, int64_t first, int64_t count, row_space *space)
{
    const char *x = (const char *)row + first * type_size(w->job->type);
    if (w->job->type == TYPE_F32)
        return (const float *)x;
    w->loops->widen_f32(w->job->type, (float *)space->widened, x, count);
    return (const float *)space->widened;
}

static const double *row_block_f64(const row_work *w, const void *row, int64_t first, int64_t count, row_space *space)
{
    (void)w;
    (void)count;
    (void)space;
    return (const double *)row + first;
}

static const float *widened_f32(const columns_work *w, const char *x, int64_t count, row_space *space)
{
    if (w->job->type == TYPE_F32)
        return (const float *)(const void *)x;
    w->loops->widen_f32(w->job->type, (float *)space->widened, x, count);
    return (const float *)space->widened;
}

static const double *widened_f64(const columns_work *w, const char *x, int64_t count, row_space *space)
{
    (void)w;
    (void)count;
    (void)space;
    return (const double *)(const void *)x;
}

/* Copies elements that are `step` apart to adjacent places, as their kind; and back. */
static void pick_f32(const rope_work *w, float *to, const char *from, int64_t step, int64_t count)
{
    const int32_t type = w->job->type;
    uint8_t bits[ROPE_BLOCK * sizeof(float)] __attribute__((aligned(8)));
    if (step == 1) {
        w->loops->widen_f32(type, to, from, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(bits + i * type_size(type), from + i * step * type_size(type), (size_t)type_size(type));
    w->loops->widen_f32(type, to, bits, count);
}

static void unpick_f32(const rope_work *w, char *to, int64_t step, const float *from, int64_t count)
{
    const int32_t type = w->job->type;
    uint8_t bits[ROPE_BLOCK * sizeof(float)] __attribute__((aligned(8)));
    if (step == 1) {
        w->loops->narrow_f32(type, to, from, count);
        return;
    }
    w->loops->narrow_f32(type, bits, from, count);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * step * type_size(type), bits + i * type_size(type), (size_t)type_size(type));
}

static void pick_f64(const rope_work *w, double *to, const char *from, int64_t step, int64_t count)
{
    (void)w;
    for (int64_t i = 0; i < count; i++)
        to[i] = ((const double *)from)[i * step];
}

static void unpick_f64(const rope_work *w, char *to, int64_t step, const double *from, int64_t count)
{
    (void)w;
    for (int64_t i = 0; i < count; i++)
        ((double *)to)[i * step] = from[i];
}

#define T        float
#define OF(name) name##_f32
#include "cpu/tensor/rows_by_kind.h"
#undef T
#undef OF
#define T        double
#define OF(name) name##_f64
#include "cpu/tensor/rows_by_kind.h"
#undef T
#undef OF

/* ---- jobs ---------------------------------------------------------------------------------------------------------------- */

static void do_row(const row_work *w, int64_t row, void *results, float *kept)
{
    const rows_job *job = w->job;
    const int64_t at = row * job->n * type_size(job->type);
    const void *x = (const char *)job->x + at;
    void *out = (char *)job->out + at;
    const bool f64 = type_kind(job->type) == KIND_F64;
    if (job->op == ROW_SOFTMAX && f64)
        softmax_row_f64(w, x, out, results, NULL);
    else if (job->op == ROW_SOFTMAX)
        softmax_row_f32(w, x, out, results, job->n <= KEPT_HERE ? kept : NULL);
    else if (f64)
        norm_row_f64(w, x, out, results);
    else
        norm_row_f32(w, x, out, results);
}

static void rows_range(void *context, int64_t begin, int64_t end)
{
    row_work *w = context;
    double here[RESULTS_HERE];
    float kept[KEPT_HERE] __attribute__((aligned(64)));
    const int64_t chunks = divide_up_i64(w->job->n, REDUCE_CHUNK);
    void *results = chunks <= RESULTS_HERE ? here : memory_alloc((size_t)chunks * sizeof(double));
    if (!results) {
        atomic_store(&w->failed, 1);
        return;
    }
    for (int64_t row = begin; row < end; row++)
        do_row(w, row, results, kept);
    if (results != here)
        memory_free(results);
}

ww_status cpu_rows(ww_device *device, const rows_job *job)
{
    row_work w = {.job = job, .loops = cpu_loops(device), .rows = ((cpu_device *)device)->isa->row_loops};
    const int64_t grain = GRAIN_ELEMENTS / job->n;
    cpu_run_ranges(device, job->rows, grain, rows_range, &w);
    if (atomic_load(&w.failed))
        return memory_failed("the sums of a long row", (size_t)(job->n / REDUCE_CHUNK + 1) * sizeof(double));
    return WW_OK;
}

/* Handles some blocks of columns. They are copied together if the second-level cache has room: rows of a tensor are often a
 * power of two apart, and then compete for a few sets of every cache. */
static void columns_range(void *context, int64_t begin, int64_t end)
{
    const columns_work *w = context;
    const softmax_columns_job *job = w->job;
    const int64_t blocks = divide_up_i64(job->inner, COLUMNS_MAX), size = type_size(job->type);
    const int64_t kept_bytes = job->n * COLUMNS_MAX * (type_kind(job->type) == KIND_F64 ? 8 : 4);
    void *kept = kept_bytes <= COLUMNS_KEPT_BYTES ? memory_alloc_aligned((size_t)kept_bytes) : NULL; /* NULL is only slower */
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % blocks * COLUMNS_MAX, at = (item / blocks * job->n * job->inner + first) * size;
        const int64_t columns = min_i64(job->inner - first, COLUMNS_MAX);
        if (type_kind(job->type) == KIND_F64)
            softmax_columns_f64(w, (const char *)job->x + at, (char *)job->out + at, columns, kept);
        else
            softmax_columns_f32(w, (const char *)job->x + at, (char *)job->out + at, columns, kept);
    }
    memory_free(kept);
}

ww_status cpu_softmax_columns(ww_device *device, const softmax_columns_job *job)
{
    columns_work w = {.job = job, .loops = cpu_loops(device), .rows = ((cpu_device *)device)->isa->row_loops};
    const int64_t blocks = divide_up_i64(job->inner, COLUMNS_MAX), grain = GRAIN_ELEMENTS / (job->n * COLUMNS_MAX);
    cpu_run_ranges(device, job->outer * blocks, grain, columns_range, &w);
    return WW_OK;
}

static void rope_range(void *context, int64_t begin, int64_t end)
{
    const rope_work *w = context;
    const rope_job *job = w->job;
    const int64_t size = type_size(job->type);
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * 2 * job->half * size;
        const char *x = (const char *)job->x + at;
        const char *cosine = (const char *)job->cosine + reduce_place_64(&job->cosines, row) * size;
        const char *sine = (const char *)job->sine + reduce_place_64(&job->sines, row) * size;
        if (type_kind(job->type) == KIND_F64)
            rope_row_f64(w, x, cosine, sine, (char *)job->out + at);
        else
            rope_row_f32(w, x, cosine, sine, (char *)job->out + at);
    }
}

ww_status cpu_rope(ww_device *device, const rope_job *job)
{
    rope_work w = {.job = job, .loops = cpu_loops(device), .rows = ((cpu_device *)device)->isa->row_loops};
    const int64_t grain = GRAIN_ELEMENTS / (2 * job->half);
    cpu_run_ranges(device, job->rows, grain, rope_range, &w);
    return WW_OK;
}
