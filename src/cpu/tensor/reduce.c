/* Reductions on the CPU, in the canonical order of arithmetic/reduce.h.
 *
 * A round makes one element of every run of 4096; runs are what threads share, so that their number changes nothing. Elements
 * that are reduced are taken in blocks, gathered where they do not lie side by side; where those of neighbouring results do,
 * whole rows are joined to whole rows instead.
 */
#include "cpu/tensor/tensor.h"

#include <string.h>

#include "arithmetic/convert.h"
#include "base/memory.h"
#include "cpu/tensor/row_loops.h"

enum {
    COLUMNS_LEAST = 8,    /* fewer are not worth a row's step */
    COLUMNS_MOST = 1024,  /* together, of four bytes each: a page of memory at a time */
    COLUMNS_SHARED = 256, /* where there would be too few for all threads */
    COLUMNS_HERE = 64,    /* of any kind, on the caller's thread, whose stack may be small */
    COLUMNS_BYTES = 4096, /* of sums: 64 times that is in the second-level cache */
    ROWS_TOGETHER = 64,
    GRAIN_ELEMENTS = 1 << 16,
    ARG_STRETCH = 1 << 16
};

typedef struct block {
    uint8_t bits[LOOP_BLOCK * 8] __attribute__((aligned(64)));
    uint8_t wide[LOOP_BLOCK * 8] __attribute__((aligned(64)));
} block;

typedef struct reduce_round {
    const reduce_job *job;
    const tensor_loops *loops;
    const row_loops *rows;
    int32_t op; /* sum for a mean */
    int32_t type;
    int64_t n, runs;
    reduce_dims kept, reduced;
    const char *x;
    void *partial;   /* of the kind; NULL in the last round */
    int64_t columns; /* that are taken together */
} reduce_round;

typedef struct arg_best {
    int64_t value; /* the bits of the kind */
    int64_t index;
} arg_best;

/* ---- elements ---------------------------------------------------------------------------------------------------------------
 */

static void gather(const reduce_round *r, const char *from, int64_t first, int64_t count, char *to)
{
    const int32_t size = type_size(r->type);
    const int64_t inner = r->reduced.shape[r->reduced.rank - 1];
    const int64_t stride = r->reduced.strides[r->reduced.rank - 1] * size;
    for (int64_t done = 0, run; done < count; done += run) {
        const int64_t i = first + done;
        const char *x = from + reduce_place_wide(&r->reduced, i) * size;
        run = inner - i % inner < count - done ? inner - i % inner : count - done;
        for (int64_t j = 0; j < run; j++, x += stride, to += size)
            switch (size) {
            case 1:
                *to = *x;
                break;
            case 2:
                memcpy(to, x, 2);
                break;
            case 4:
                memcpy(to, x, 4);
                break;
            default:
                memcpy(to, x, 8);
                break;
            }
    }
}

/* Elements [first, first + count) of a result as their kind: where they are, or in `space`. */
static const void *elements_of(const reduce_round *r, int64_t out, int64_t first, int64_t count, block *space)
{
    const bool dense = r->reduced.rank == 0 || (r->reduced.rank == 1 && r->reduced.strides[0] == 1);
    const int32_t size = type_size(r->type);
    const char *x = r->x + reduce_place_wide(&r->kept, out) * size;
    if (dense)
        x += first * size;
    else {
        gather(r, x, first, count, (char *)space->bits);
        x = (const char *)space->bits;
    }
    if (r->type == TYPE_F32 || r->type == TYPE_F64 || r->type == TYPE_I64)
        return x;
    if (type_kind(r->type) == KIND_F32)
        r->loops->widen_f32(r->type, (float *)space->wide, x, count);
    else
        r->loops->widen_i64(r->type, (int64_t *)space->wide, x, count);
    return space->wide;
}

/* Where element `first` of a result is if its elements lie side by side, else NULL. */
static const char *dense_at(const reduce_round *r, int64_t out, int64_t first)
{
    if (r->reduced.rank > 1 || (r->reduced.rank == 1 && r->reduced.strides[0] != 1))
        return NULL;
    return r->x + (reduce_place_wide(&r->kept, out) + first) * type_size(r->type);
}

/* Joins elements that lie side by side, all at once; false where the set has no loop for their type. */
static bool join_dense_f32(const reduce_round *r, float *sums, const void *x, int64_t count)
{
    if (r->type != TYPE_F32)
        return r->rows->join_direct && r->rows->join_direct(r->op, r->type, sums, x, count);
    r->rows->join_f32(r->op, sums, x, count);
    return true;
}

static bool join_dense_f64(const reduce_round *r, double *sums, const void *x, int64_t count)
{
    r->rows->join_f64(r->op, sums, x, count);
    return true;
}

static bool join_dense_i64(const reduce_round *r, int64_t *sums, const void *x, int64_t count)
{
    if (r->type != TYPE_I64)
        return false;
    r->rows->join_i64(r->op, sums, x, count);
    return true;
}

static bool columns_direct_f32(const reduce_round *r, float *sums, const char *x, int64_t first, int64_t end, int64_t columns)
{
    if (r->reduced.rank != 1 || !r->rows->each_row_direct)
        return false;
    const int64_t stride = r->reduced.strides[0];
    return r->rows->each_row_direct(r->op, r->type, sums, x + first * stride * type_size(r->type), stride, end - first,
                                    columns);
}

#define NO_COLUMNS_DIRECT(T, kind)                                                                                             \
    static bool columns_direct_##kind(const reduce_round *r, const T *sums, const char *x, int64_t first, int64_t end,         \
                                      int64_t columns)                                                                         \
    {                                                                                                                          \
        (void)r, (void)sums, (void)x, (void)first, (void)end, (void)columns;                                                   \
        return false;                                                                                                          \
    }
NO_COLUMNS_DIRECT(double, f64)
NO_COLUMNS_DIRECT(int64_t, i64)

static const float *widened_f32(const reduce_round *r, float *wide, const void *x, int64_t count)
{
    if (r->type == TYPE_F32)
        return x;
    r->loops->widen_f32(r->type, wide, x, count);
    return wide;
}

static const double *widened_f64(const reduce_round *r, const double *wide, const void *x, int64_t count)
{
    (void)r;
    (void)wide;
    (void)count;
    return x;
}

static const int64_t *widened_i64(const reduce_round *r, int64_t *wide, const void *x, int64_t count)
{
    if (r->type == TYPE_I64)
        return x;
    r->loops->widen_i64(r->type, wide, x, count);
    return wide;
}

/* ---- the kinds --------------------------------------------------------------------------------------------------------------
 */

#define T        float
#define OF(name) name##_f32
#include "cpu/tensor/reduce_of.h"
#undef T
#undef OF
#define T        double
#define OF(name) name##_f64
#include "cpu/tensor/reduce_of.h"
#undef T
#undef OF
#define T        int64_t
#define OF(name) name##_i64
#include "cpu/tensor/reduce_of.h"
#undef T
#undef OF

/* ---- rounds -----------------------------------------------------------------------------------------------------------------
 */

/* How far runs, all of the same length, are from each other, in elements; -1 where they are not, or their elements are apart.
 */
static int64_t runs_apart(const reduce_round *r)
{
    const bool one = r->kept.rank == 0, dense = r->reduced.rank == 0 || (r->reduced.rank == 1 && r->reduced.strides[0] == 1);
    if (!dense || r->kept.rank > 1)
        return -1;
    if (r->runs == 1)
        return one ? 0 : r->kept.strides[0];
    return r->n % REDUCE_CHUNK == 0 && (one || r->kept.strides[0] == r->n) ? REDUCE_CHUNK : -1;
}

/* Sums of runs by a loop that takes many; false, and nothing done, where there is none for them. */
static bool sum_together(const reduce_round *r, int64_t begin, int64_t end)
{
    const int64_t apart = runs_apart(r), of_run = r->n < REDUCE_CHUNK ? r->n : REDUCE_CHUNK;
    if (apart < 0 || r->op != REDUCE_SUM || !r->rows->sum_rows)
        return false;
    for (int64_t first = begin; first < end; first += ROWS_TOGETHER) {
        float sums[ROWS_TOGETHER];
        const int64_t rows = end - first < ROWS_TOGETHER ? end - first : ROWS_TOGETHER;
        if (!r->rows->sum_rows(r->type, sums, r->x + first * apart * type_size(r->type), apart, rows, of_run))
            return false;
        put_all_f32(r, first, sums, rows);
    }
    return true;
}

static void rows_range(void *context, int64_t begin, int64_t end)
{
    const reduce_round *r = context;
    const int32_t kind = type_kind(r->type);
    if (kind == KIND_F32 && sum_together(r, begin, end))
        return;
    for (int64_t item = begin; item < end; item++) {
        if (kind == KIND_F32)
            run_row_f32(r, item / r->runs, item % r->runs);
        else if (kind == KIND_F64)
            run_row_f64(r, item / r->runs, item % r->runs);
        else
            run_row_i64(r, item / r->runs, item % r->runs);
    }
}

static void run_columns(const reduce_round *r, int64_t begin, int64_t end, void *sums)
{
    const int32_t kind = type_kind(r->type);
    const int64_t inner = r->kept.shape[r->kept.rank - 1];
    const int64_t blocks = (inner + r->columns - 1) / r->columns;
    for (int64_t item = begin; item < end; item++) {
        const int64_t run = item % r->runs;
        const int64_t column = item / r->runs % blocks * r->columns;
        const int64_t out = item / r->runs / blocks * inner + column;
        const int64_t columns = inner - column < r->columns ? inner - column : r->columns;
        if (kind == KIND_F32)
            run_columns_f32(r, out, columns, run, sums);
        else if (kind == KIND_F64)
            run_columns_f64(r, out, columns, run, sums);
        else
            run_columns_i64(r, out, columns, run, sums);
    }
}

static void columns_range(void *context, int64_t begin, int64_t end)
{
    int64_t sums[REDUCE_LANES * COLUMNS_BYTES / 8] __attribute__((aligned(64))); /* 256 KiB of a worker's stack */
    run_columns(context, begin, end, sums);
}

/* Blocks of columns, of all rows and runs. */
static int64_t column_blocks(const reduce_round *r)
{
    const int64_t inner = r->kept.shape[r->kept.rank - 1];
    return r->job->outs / inner * r->runs * ((inner + r->columns - 1) / r->columns);
}

static void run_columns_here(reduce_round *r)
{
    int64_t sums[REDUCE_LANES * COLUMNS_HERE] __attribute__((aligned(64)));
    r->columns = COLUMNS_HERE;
    run_columns(r, 0, column_blocks(r), sums);
}

/* Whole rows joined to whole rows: as many columns together as are good for memory, or as leave each thread some. */
static void run_columns_round(ww_device *device, reduce_round *r)
{
    const int64_t of_run = r->n < REDUCE_CHUNK ? r->n : REDUCE_CHUNK,
                  enough = 2 * (int64_t)pool_threads(((cpu_device *)device)->pool);
    r->columns = type_kind(r->type) == KIND_F32 ? COLUMNS_MOST : COLUMNS_BYTES / 8;
    while (r->columns > COLUMNS_SHARED && column_blocks(r) < enough)
        r->columns /= 2;
    const int64_t grain = GRAIN_ELEMENTS / (of_run * r->columns), blocks = column_blocks(r);
    if (blocks <= (grain > 1 ? grain : 1))
        run_columns_here(r);
    else
        cpu_run_ranges(device, blocks, grain > 1 ? grain : 1, columns_range, r);
}

static void run_round(ww_device *device, reduce_round *r)
{
    const int32_t last = r->kept.rank - 1;
    const int64_t of_run = r->n < REDUCE_CHUNK ? r->n : REDUCE_CHUNK;
    const bool beside = last >= 0 && r->kept.strides[last] == 1 && r->kept.shape[last] >= COLUMNS_LEAST;
    const bool dense = r->reduced.rank == 0 || r->reduced.strides[r->reduced.rank - 1] == 1;
    if (beside && !dense) {
        run_columns_round(device, r);
    } else {
        const int64_t grain = GRAIN_ELEMENTS / of_run;
        cpu_run_ranges(device, r->job->outs * r->runs, grain > 1 ? grain : 1, rows_range, r);
    }
}

static ww_status reduce_in_rounds(ww_device *device, reduce_round *r)
{
    static const int32_t kind_types[] = {[KIND_F32] = TYPE_F32, [KIND_F64] = TYPE_F64, [KIND_I64] = TYPE_I64};
    const int32_t kind_type = kind_types[type_kind(r->type)];
    void *before = NULL;
    ww_status status = WW_OK;
    for (bool more = true; more && status == WW_OK;) {
        r->runs = (r->n + REDUCE_CHUNK - 1) / REDUCE_CHUNK;
        more = r->runs > 1;
        const size_t bytes = (size_t)(r->job->outs * r->runs) * (size_t)type_size(kind_type);
        r->partial = more ? memory_alloc(bytes) : NULL;
        if (more && !r->partial)
            status = memory_failed("a reduction", bytes);
        else
            run_round(device, r);
        memory_free(before);
        before = r->partial;
        r->x = before;
        r->type = kind_type;
        r->n = r->runs;
        r->kept = (reduce_dims){.rank = 1, .shape = {r->job->outs}, .strides = {r->runs}};
        r->reduced = (reduce_dims){.rank = 1, .shape = {r->runs}, .strides = {1}};
    }
    return status;
}

/* ---- the first of the best --------------------------------------------------------------------------------------------------
 */

typedef struct arg_run {
    reduce_round round;
    int64_t stretches;
    arg_best *bests; /* stretches of each result */
} arg_run;

static void arg_range(void *context, int64_t begin, int64_t end)
{
    const arg_run *run = context;
    const reduce_round *r = &run->round;
    const int32_t kind = type_kind(r->type);
    for (int64_t item = begin; item < end; item++) {
        const int64_t out = item / run->stretches;
        const int64_t first = item % run->stretches * ARG_STRETCH;
        const int64_t last = first + ARG_STRETCH < r->n ? first + ARG_STRETCH : r->n;
        if (kind == KIND_F32)
            best_of_f32(r, out, first, last, &run->bests[item]);
        else if (kind == KIND_F64)
            best_of_f64(r, out, first, last, &run->bests[item]);
        else
            best_of_i64(r, out, first, last, &run->bests[item]);
    }
}

static ww_status reduce_to_index(ww_device *device, const reduce_round *r)
{
    arg_run run = {.round = *r, .stretches = (r->n + ARG_STRETCH - 1) / ARG_STRETCH};
    const int32_t kind = type_kind(r->type);
    const int64_t of_item = r->n < ARG_STRETCH ? r->n : ARG_STRETCH;
    run.bests = memory_alloc_zeroed((size_t)(r->job->outs * run.stretches), sizeof *run.bests);
    if (!run.bests)
        return memory_failed("a reduction", (size_t)(r->job->outs * run.stretches) * sizeof *run.bests);
    cpu_run_ranges(device, r->job->outs * run.stretches, GRAIN_ELEMENTS / of_item, arg_range, &run);
    for (int64_t out = 0; out < r->job->outs; out++) {
        const arg_best *bests = run.bests + out * run.stretches;
        ((uint32_t *)r->job->out)[out] = kind == KIND_F32   ? best_of_bests_f32(r->job->op, bests, run.stretches)
                                         : kind == KIND_F64 ? best_of_bests_f64(r->job->op, bests, run.stretches)
                                                            : best_of_bests_i64(r->job->op, bests, run.stretches);
    }
    memory_free(run.bests);
    return WW_OK;
}

ww_status cpu_reduce(ww_device *device, const reduce_job *job)
{
    reduce_round r = {.job = job,
                      .loops = cpu_loops(device),
                      .rows = ((cpu_device *)device)->isa->rows,
                      .op = job->op == REDUCE_MEAN ? REDUCE_SUM : job->op,
                      .type = job->type,
                      .n = job->n,
                      .kept = job->kept,
                      .reduced = job->reduced,
                      .x = job->x};
    if (job->op == REDUCE_ARGMIN || job->op == REDUCE_ARGMAX)
        return reduce_to_index(device, &r);
    return reduce_in_rounds(device, &r);
}
