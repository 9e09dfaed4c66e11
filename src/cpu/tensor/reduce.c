/* Reductions on the CPU, in the canonical order of arithmetic/reduce.h: a round computes one element from every chunk of 4096,
 * and rounds follow until one element is left. Threads share chunks, so their number does not change the bits. Which way when:
 *
 *   sums of rows   sums of dense floats, on sets with `sum_rows`: many chunks in one call, without leaving registers
 *   rows           the reduced dimension is dense, or no other way applies: a chunk at a time into 64 accumulators, directly if
 *                  the set has a loop for the type, otherwise widened and gathered in blocks
 *   columns        the kept dimension is dense and has at least 8 elements: whole rows are added to whole rows of accumulators
 *   argmin/argmax  finds the first best element of each piece of 65536, then compares the pieces in order
 */
#include "cpu/tensor/tensor.h"

#include <string.h>

#include "arithmetic/convert.h"
#include "base/integers.h"
#include "base/memory.h"
#include "cpu/tensor/row_loops.h"

enum {
    COLUMNS_MIN = 8,      /* with fewer columns, rows are faster */
    COLUMNS_MAX = 1024,   /* columns at a time, of four bytes each: a page of memory */
    COLUMNS_SHARED = 256, /* the same if all threads would not get enough columns otherwise */
    COLUMNS_HERE = 64,    /* the same, of any kind, on the caller's thread, whose stack may be small */
    COLUMNS_BYTES = 4096, /* bytes of sums: 64 times that fits in the second-level cache */
    ROWS_TOGETHER = 64,
    GRAIN_ELEMENTS = 1 << 16,
    ARG_PIECE = 1 << 16
};

typedef struct block {
    uint8_t bits[LOOP_BLOCK * 8] __attribute__((aligned(64)));
    uint8_t widened[LOOP_BLOCK * 8] __attribute__((aligned(64)));
} block;

typedef struct reduce_round {
    const reduce_job *job;
    const element_loops *loops;
    const row_loops *rows;
    int32_t op; /* sum, for a mean */
    int32_t type;
    int64_t n, chunks;
    reduce_dims kept, reduced;
    const char *x;
    void *partial;   /* in the kind; NULL in the last round */
    int64_t columns; /* columns that are reduced together */
} reduce_round;

typedef struct arg_best {
    int64_t value; /* the bits of the value, in its kind */
    int64_t index;
} arg_best;

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

static void gather(const reduce_round *r, const char *from, int64_t first, int64_t count, char *to)
{
    const int32_t size = type_size(r->type);
    const int64_t inner = r->reduced.shape[r->reduced.rank - 1];
    const int64_t stride = r->reduced.strides[r->reduced.rank - 1] * size;
    for (int64_t done = 0, span; done < count; done += span) {
        const int64_t i = first + done;
        const char *x = from + reduce_place_64(&r->reduced, i) * size;
        span = min_i64(inner - i % inner, count - done);
        for (int64_t j = 0; j < span; j++, x += stride, to += size)
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

/* Returns elements [first, first + count) of a result as their kind: in place, or in `space`. */
static const void *elements_of(const reduce_round *r, int64_t out, int64_t first, int64_t count, block *space)
{
    const bool dense = r->reduced.rank == 0 || (r->reduced.rank == 1 && r->reduced.strides[0] == 1);
    const int32_t size = type_size(r->type);
    const char *x = r->x + reduce_place_64(&r->kept, out) * size;
    if (dense)
        x += first * size;
    else {
        gather(r, x, first, count, (char *)space->bits);
        x = (const char *)space->bits;
    }
    if (r->type == TYPE_F32 || r->type == TYPE_F64 || r->type == TYPE_I64)
        return x;
    if (type_kind(r->type) == KIND_F32)
        r->loops->widen_f32(r->type, (float *)space->widened, x, count);
    else
        r->loops->widen_i64(r->type, (int64_t *)space->widened, x, count);
    return space->widened;
}

/* Returns the address of element `first` of a result if its elements are adjacent, otherwise NULL. */
static const char *dense_at(const reduce_round *r, int64_t out, int64_t first)
{
    if (r->reduced.rank > 1 || (r->reduced.rank == 1 && r->reduced.strides[0] != 1))
        return NULL;
    return r->x + (reduce_place_64(&r->kept, out) + first) * type_size(r->type);
}

/* Joins adjacent elements at once. Returns false if the set has no loop for their type. */
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

/* Rows [rows.first, rows.end) of some columns. */
typedef struct row_span {
    int64_t first, end;
} row_span;

static bool columns_direct_f32(const reduce_round *r, float *sums, const char *x, row_span rows, int64_t columns)
{
    if (r->reduced.rank != 1 || !r->rows->each_row_direct)
        return false;
    const int64_t stride = r->reduced.strides[0];
    return r->rows->each_row_direct(r->op, r->type, sums, x + rows.first * stride * type_size(r->type), stride,
                                    rows.end - rows.first, columns);
}

#define NO_COLUMNS_DIRECT(T, kind)                                                                                             \
    static bool columns_direct_##kind(const reduce_round *r, const T *sums, const char *x, row_span rows, int64_t columns)     \
    {                                                                                                                          \
        (void)r, (void)sums, (void)x, (void)rows, (void)columns;                                                               \
        return false;                                                                                                          \
    }
NO_COLUMNS_DIRECT(double, f64)
NO_COLUMNS_DIRECT(int64_t, i64)

static const float *widened_f32(const reduce_round *r, float *to, const void *x, int64_t count)
{
    if (r->type == TYPE_F32)
        return x;
    r->loops->widen_f32(r->type, to, x, count);
    return to;
}

static const double *widened_f64(const reduce_round *r, const double *to, const void *x, int64_t count)
{
    (void)r;
    (void)to;
    (void)count;
    return x;
}

static const int64_t *widened_i64(const reduce_round *r, int64_t *to, const void *x, int64_t count)
{
    if (r->type == TYPE_I64)
        return x;
    r->loops->widen_i64(r->type, to, x, count);
    return to;
}

/* ---- the kinds ----------------------------------------------------------------------------------------------------------- */

#define T        float
#define OF(name) name##_f32
#include "cpu/tensor/reduce_by_kind.h"
#undef T
#undef OF
#define T        double
#define OF(name) name##_f64
#include "cpu/tensor/reduce_by_kind.h"
#undef T
#undef OF
#define T        int64_t
#define OF(name) name##_i64
#include "cpu/tensor/reduce_by_kind.h"
#undef T
#undef OF

/* ---- rounds -------------------------------------------------------------------------------------------------------------- */

/* Returns the distance between chunks of the same length, in elements, or -1 if there is no such distance or their elements are
 * not dense. */
static int64_t chunks_apart(const reduce_round *r)
{
    const bool one = r->kept.rank == 0, dense = r->reduced.rank == 0 || (r->reduced.rank == 1 && r->reduced.strides[0] == 1);
    if (!dense || r->kept.rank > 1)
        return -1;
    if (r->chunks == 1)
        return one ? 0 : r->kept.strides[0];
    return r->n % REDUCE_CHUNK == 0 && (one || r->kept.strides[0] == r->n) ? REDUCE_CHUNK : -1;
}

/* Sums many chunks in one call. Returns false, having done nothing, if the set has no loop for them. */
static bool sum_together(const reduce_round *r, int64_t begin, int64_t end)
{
    const int64_t apart = chunks_apart(r), chunk_length = min_i64(r->n, REDUCE_CHUNK);
    if (apart < 0 || r->op != REDUCE_SUM || !r->rows->sum_rows)
        return false;
    for (int64_t first = begin; first < end; first += ROWS_TOGETHER) {
        float sums[ROWS_TOGETHER];
        const int64_t rows = min_i64(end - first, ROWS_TOGETHER);
        if (!r->rows->sum_rows(r->type, sums, r->x + first * apart * type_size(r->type), apart, rows, chunk_length))
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
            reduce_row_chunk_f32(r, item / r->chunks, item % r->chunks);
        else if (kind == KIND_F64)
            reduce_row_chunk_f64(r, item / r->chunks, item % r->chunks);
        else
            reduce_row_chunk_i64(r, item / r->chunks, item % r->chunks);
    }
}

static void reduce_columns(const reduce_round *r, int64_t begin, int64_t end, void *sums)
{
    const int32_t kind = type_kind(r->type);
    const int64_t inner = r->kept.shape[r->kept.rank - 1];
    const int64_t blocks = divide_up_i64(inner, r->columns);
    for (int64_t item = begin; item < end; item++) {
        const int64_t chunk = item % r->chunks;
        const int64_t column = item / r->chunks % blocks * r->columns;
        const int64_t out = item / r->chunks / blocks * inner + column;
        const int64_t columns = min_i64(inner - column, r->columns);
        if (kind == KIND_F32)
            reduce_columns_chunk_f32(r, out, columns, chunk, sums);
        else if (kind == KIND_F64)
            reduce_columns_chunk_f64(r, out, columns, chunk, sums);
        else
            reduce_columns_chunk_i64(r, out, columns, chunk, sums);
    }
}

static void columns_range(void *context, int64_t begin, int64_t end)
{
    int64_t sums[REDUCE_LANES * COLUMNS_BYTES / 8] __attribute__((aligned(64))); /* 256 KiB of a worker's stack */
    reduce_columns(context, begin, end, sums);
}

/* Returns the number of blocks of columns, over all rows and chunks. */
static int64_t column_blocks(const reduce_round *r)
{
    const int64_t inner = r->kept.shape[r->kept.rank - 1];
    return r->job->outs / inner * r->chunks * divide_up_i64(inner, r->columns);
}

static void reduce_columns_here(reduce_round *r)
{
    int64_t sums[REDUCE_LANES * COLUMNS_HERE] __attribute__((aligned(64)));
    r->columns = COLUMNS_HERE;
    reduce_columns(r, 0, column_blocks(r), sums);
}

/* Joins whole rows to whole rows, as many columns at a time as memory handles well, or fewer so that each thread has some. */
static void reduce_columns_round(ww_device *device, reduce_round *r)
{
    const int64_t chunk_length = min_i64(r->n, REDUCE_CHUNK), enough = 2 * (int64_t)pool_threads(((cpu_device *)device)->pool);
    r->columns = type_kind(r->type) == KIND_F32 ? COLUMNS_MAX : COLUMNS_BYTES / 8;
    while (r->columns > COLUMNS_SHARED && column_blocks(r) < enough)
        r->columns /= 2;
    const int64_t grain = GRAIN_ELEMENTS / (chunk_length * r->columns), blocks = column_blocks(r);
    if (blocks <= max_i64(grain, 1))
        reduce_columns_here(r);
    else
        cpu_run_ranges(device, blocks, grain, columns_range, r);
}

static void do_round(ww_device *device, reduce_round *r)
{
    const int32_t last = r->kept.rank - 1;
    const int64_t chunk_length = min_i64(r->n, REDUCE_CHUNK);
    const bool beside = last >= 0 && r->kept.strides[last] == 1 && r->kept.shape[last] >= COLUMNS_MIN;
    const bool dense = r->reduced.rank == 0 || r->reduced.strides[r->reduced.rank - 1] == 1;
    if (beside && !dense) {
        reduce_columns_round(device, r);
    } else {
        const int64_t grain = GRAIN_ELEMENTS / chunk_length;
        cpu_run_ranges(device, r->job->outs * r->chunks, grain, rows_range, r);
    }
}

static ww_status reduce_in_rounds(ww_device *device, reduce_round *r)
{
    static const int32_t kind_types[] = {[KIND_F32] = TYPE_F32, [KIND_F64] = TYPE_F64, [KIND_I64] = TYPE_I64};
    const int32_t kind_type = kind_types[type_kind(r->type)];
    void *before = NULL;
    ww_status status = WW_OK;
    for (bool more = true; more && status == WW_OK;) {
        r->chunks = divide_up_i64(r->n, REDUCE_CHUNK);
        more = r->chunks > 1;
        const size_t bytes = (size_t)(r->job->outs * r->chunks) * (size_t)type_size(kind_type);
        r->partial = more ? memory_alloc(bytes) : NULL;
        if (more && !r->partial)
            status = memory_failed("a reduction", bytes);
        else
            do_round(device, r);
        memory_free(before);
        before = r->partial;
        r->x = before;
        r->type = kind_type;
        r->n = r->chunks;
        r->kept = (reduce_dims){.rank = 1, .shape = {r->job->outs}, .strides = {r->chunks}};
        r->reduced = (reduce_dims){.rank = 1, .shape = {r->chunks}, .strides = {1}};
    }
    return status;
}

/* ---- the first best element ---------------------------------------------------------------------------------------------- */

typedef struct arg_work {
    reduce_round round;
    int64_t pieces;
    arg_best *bests; /* one per piece of each result */
} arg_work;

static void arg_range(void *context, int64_t begin, int64_t end)
{
    const arg_work *w = context;
    const reduce_round *r = &w->round;
    const int32_t kind = type_kind(r->type);
    for (int64_t item = begin; item < end; item++) {
        const int64_t out = item / w->pieces;
        const int64_t first = item % w->pieces * ARG_PIECE;
        const int64_t last = min_i64(first + ARG_PIECE, r->n);
        if (kind == KIND_F32)
            best_of_f32(r, out, first, last, &w->bests[item]);
        else if (kind == KIND_F64)
            best_of_f64(r, out, first, last, &w->bests[item]);
        else
            best_of_i64(r, out, first, last, &w->bests[item]);
    }
}

static ww_status reduce_to_index(ww_device *device, const reduce_round *r)
{
    arg_work work = {.round = *r, .pieces = divide_up_i64(r->n, ARG_PIECE)};
    const int32_t kind = type_kind(r->type);
    const int64_t of_item = min_i64(r->n, ARG_PIECE);
    work.bests = memory_alloc_zeroed((size_t)(r->job->outs * work.pieces), sizeof *work.bests);
    if (!work.bests)
        return memory_failed("a reduction", (size_t)(r->job->outs * work.pieces) * sizeof *work.bests);
    cpu_run_ranges(device, r->job->outs * work.pieces, GRAIN_ELEMENTS / of_item, arg_range, &work);
    for (int64_t out = 0; out < r->job->outs; out++) {
        const arg_best *bests = work.bests + out * work.pieces;
        ((uint32_t *)r->job->out)[out] = kind == KIND_F32   ? best_of_bests_f32(r->job->op, bests, work.pieces)
                                         : kind == KIND_F64 ? best_of_bests_f64(r->job->op, bests, work.pieces)
                                                            : best_of_bests_i64(r->job->op, bests, work.pieces);
    }
    memory_free(work.bests);
    return WW_OK;
}

ww_status cpu_reduce(ww_device *device, const reduce_job *job)
{
    reduce_round r = {.job = job,
                      .loops = cpu_loops(device),
                      .rows = ((cpu_device *)device)->isa->row_loops,
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
