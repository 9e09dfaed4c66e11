/* A gemv of one column whose rows are loaded by a copy engine (quant_gemv_one.c): thread blocks stay resident.
 *
 * A thread block has its column in shared memory and processes one set of 16 rows after the other, every block_count()th set,
 * while the copy engine is some stages ahead, across the ends of rows. So the column is quantized once for many rows, and the
 * first rows are being loaded before the previous kernel has ended. If the product does not need what that kernel writes, it
 * also quantizes its column and multiplies meanwhile, and waits only before it writes.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_STAY_H
#define WW_KERNELS_QUANT_QUANT_GEMV_STAY_H

#include "kernels/quant/quant_gemv.h"
#include "kernels/quant/quant_gemv_activations.h"
#include "kernels/simt/ring.h"

/* The ring of rows. Two threads of each team fetch one row each. */
typedef struct step_ring {
    ring arrivals;
    uint32_t *shared;     /* the stages */
    uint32_t tiles;       /* of 16 rows */
    uint32_t chunks;      /* of a row */
    uint32_t tile, chunk; /* to fetch next */
    const uint8_t *from;  /* this thread's row of it, from a multiple of 16 bytes on */
    uint32_t left;        /* bytes of the row from there on */
    uint32_t max_bytes;   /* of a chunk */
    ring_cursor fetch, now;
} step_ring;

DEVICE const uint8_t *step_row_begin(const quant_gemv_args *args, uint32_t tile, uint32_t row)
{
    const uint64_t wanted = (uint64_t)tile * STAGE_ROWS + row, at = wanted < args->rows ? wanted : args->rows - 1;
    return args->weights + at * args->weights_stride;
}

/* Offset of a row in a stage, in bytes. */
DEVICE uint32_t step_row(int32_t type, const quant_gemv_args *args, uint32_t tile, uint32_t row)
{
    return row * stage_slot_bytes(type) + (uint32_t)((uintptr_t)step_row_begin(args, tile, row) & 15);
}

DEVICE void step_find_row(int32_t type, const quant_gemv_args *args, step_ring *r)
{
    const uint32_t row = thread_index() / QUANT_TEAM * 2 + thread_index() % 2;
    const uint8_t *begin = step_row_begin(args, r->tile, row);
    const uint32_t skew = (uint32_t)((uintptr_t)begin & 15);
    r->from = begin - skew;
    r->left = (skew + args->blocks * (uint32_t)block_bytes(type) + 15) / 16 * 16;
    r->max_bytes = stage_chunk_bytes(type) + (skew ? 16 : 0);
}

/* Starts to copy the next chunk, if there is one, as soon as all waves have released its stage. All threads call it. */
DEVICE void step_fetch(int32_t type, const quant_gemv_args *args, step_ring *r)
{
    if (r->tile >= r->tiles)
        return;
    if (thread_index() % QUANT_TEAM < 2) {
        const uint32_t row = thread_index() / QUANT_TEAM * 2 + thread_index() % 2;
        const uint32_t done = r->chunk * stage_chunk_bytes(type), left = r->left - done;
        const uint32_t bytes = left < r->max_bytes ? left : r->max_bytes;
        uint32_t *to = r->shared + (r->fetch.stage * step_stage_bytes(type) + row * stage_slot_bytes(type)) / 4;
        ring_acquire(&r->arrivals, r->fetch);
        ring_expect(&r->arrivals, r->fetch, bytes);
        ring_copy(&r->arrivals, r->fetch, to, r->from + done, bytes);
    }
    ring_next(&r->arrivals, &r->fetch);
    r->chunk++;
    if (r->chunk < r->chunks)
        return;
    r->chunk = 0;
    r->tile += block_count();
    if (r->tile < r->tiles)
        step_find_row(type, args, r);
}

/* Starts to fill all stages. All threads call it. */
DEVICE void step_begin(int32_t type, const quant_gemv_args *args, uint32_t *stages, uint64_t *arrivals, step_ring *r)
{
    const ring all = {arrivals, arrivals + STAGES_MAX, args->stages};
    const ring_cursor first = {0, 0};
    ring_begin(&all, STAGE_ROWS, QUANT_THREADS / QUANT_TEAM);
    r->arrivals = all;
    r->shared = stages;
    r->tiles = (uint32_t)((args->rows + STAGE_ROWS - 1) / STAGE_ROWS);
    r->chunks = (args->blocks + stage_blocks(type) - 1) / stage_blocks(type);
    r->tile = block_index();
    r->chunk = 0;
    r->fetch = first;
    r->now = first;
    if (r->tile < r->tiles)
        step_find_row(type, args, r);
    UNROLL_BY(1)
    for (uint32_t i = 0; i < args->stages; i++)
        step_fetch(type, args, r);
}

/* ---- the column ---------------------------------------------------------------------------------------------------------- */

DEVICE void step_copy(uint32_t *to, const uint32_t *from, uint32_t words)
{
    UNROLL_BY(4)
    for (uint32_t i = thread_index() * 4; i < words; i += QUANT_THREADS * 4)
        *(u32x4 *)AT_RANGE(to, i, 4) = load_u32x4(from + i);
}

/* Puts the column in shared memory: quantized here, or by an earlier kernel. All threads call it. */
DEVICE gemv_columns step_column(int32_t type, const quant_gemv_args *args, uint32_t *shared)
{
    const uint32_t blocks = args->blocks_padded, pieces = blocks * (uint32_t)dot_pieces(type);
    uint32_t *factors = AT_RANGE(shared, STEP_FACTORS_AT / 4, blocks * QUANT_GEMV_COLUMNS);
    uint32_t *sums = shared + step_sums_at(blocks) / 4, *codes = shared + step_codes_at(type, blocks) / 4;
    const gemv_columns columns = {codes, sums, (const float *)(const void *)factors};
    if (args->x) {
        const quant_gemv_activations_args coding = one_coding(type, args, codes, sums, (float *)(void *)factors);
        code_column(&coding, args->blocks * (uint32_t)block_length(type), 0, dot_has_min(type),
                    (float *)(void *)AT_RANGE(shared, STEP_LANES_AT / 4, QUANT_NORM_LANES));
    } else {
        step_copy(factors, (const uint32_t *)args->factors, blocks * QUANT_GEMV_COLUMNS);
        if (dot_has_min(type))
            step_copy(sums, args->sums, pieces * QUANT_GEMV_COLUMNS);
        step_copy(codes, args->codes, pieces * 8);
    }
    barrier();
    return columns;
}

/* Prefetches the weights of a norm: they never change, so it can start early, and they are not in the cache. */
DEVICE void step_prefetch(const quant_gemv_args *args, uint32_t elements)
{
    enum { LINE = 32 };
    if (args->x && args->input.kind == INPUT_NORM && thread_index() * LINE < elements)
        prefetch_line(args->input.weight + thread_index() * LINE);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* The rounds of a stage; in the last stage of a row only the blocks that exist. */
DEVICE void step_rounds(int32_t type, const uint8_t *stage, const gemv_columns *columns, uint32_t chunk, uint32_t blocks,
                        uint32_t upper, uint32_t lower, gemv_thread here, float *acc)
{
    const uint32_t team = thread_index() / QUANT_TEAM, bytes = (uint32_t)block_bytes(type), pieces = (uint32_t)dot_pieces(type);
    const uint32_t first = chunk * stage_blocks(type) + team;
    gemv_position at;
    at.upper = stage + upper + team * bytes;
    at.lower = stage + lower + team * bytes;
    at.columns.codes = columns->codes + first * pieces * 8;
    at.columns.sums = columns->sums + (dot_has_min(type) ? first * pieces * QUANT_GEMV_COLUMNS : 0);
    at.columns.factors = columns->factors + first * QUANT_GEMV_COLUMNS;
    if (blocks >= stage_blocks(type)) {
        UNROLL
        for (uint32_t o = 0; o < stage_rounds(type); o++)
            gemv_block(type, &at, o * 8, here, acc);
        return;
    }
    UNROLL_BY(1)
    for (uint32_t block = team; block < blocks; block += 8)
        gemv_block(type, &at, block - team, here, acc);
}

/* Multiplies 16 rows. `alignment` is a constant here. A stage is refilled one stage late: by then all waves have released it,
 * so waits are short. */
DEVICE void step_rows(int32_t type, const quant_gemv_args *args, const uint8_t *staged, const gemv_columns *columns,
                      uint32_t tile, gemv_thread here, int32_t alignment, step_ring *r, float *acc)
{
    const uint32_t upper = step_row(type, args, tile, here.thread / 4), lower = step_row(type, args, tile, here.thread / 4 + 8);
    here.alignment = alignment;
    here.single = true;
    here.column = 0;
    here.width = 1;
    UNROLL_BY(1)
    for (uint32_t chunk = 0; chunk < r->chunks; chunk++) {
        ring_await(&r->arrivals, r->now);
        step_rounds(type, staged + r->now.stage * step_stage_bytes(type), columns, chunk,
                    args->blocks - chunk * stage_blocks(type), upper, lower, here, acc);
        ring_release(&r->arrivals, r->now);
        if (r->arrivals.stages == 1 || r->now.stage > 0 || r->now.phase > 0)
            step_fetch(type, args, r);
        ring_next(&r->arrivals, &r->now);
    }
}

/* Collects the eight accumulators of each row in `meeting`, and one thread per row adds them up. The next rows use another
 * `meeting`. */
DEVICE void step_finish(int32_t type, const quant_gemv_args *args, uint64_t row, float before, float *meeting, const float *acc)
{
    const uint32_t team = thread_index() / QUANT_TEAM, thread = thread_index() % QUANT_TEAM;
    if (thread % 4 == 0) {
        AT(meeting, team * QUANT_GEMV_ROWS + thread / 4) = acc[0];
        AT(meeting, team * QUANT_GEMV_ROWS + thread / 4 + 8) = acc[2];
    }
    barrier();
    if (thread_index() >= QUANT_GEMV_ROWS || row >= args->rows)
        return;
    float sum[QUANT_CLASSES];
    UNROLL
    for (uint32_t c = 0; c < QUANT_CLASSES; c++)
        sum[c] = AT(meeting, c * QUANT_GEMV_ROWS + thread_index());
    UNROLL
    for (uint32_t s = 4; s > 0; s /= 2) {
        UNROLL
        for (uint32_t c = 0; c < s; c++)
            sum[c] = sum[c] + sum[c + s];
    }
    const float product = sum[0] * gemv_scale(type);
    args->y[row] = args->adds ? one_nan_f32(before + product) : product;
}

DEVICE void gemv_stay(int32_t type, const quant_gemv_args *args, uint32_t *shared, const uint8_t *staged, uint64_t *arrivals)
{
    const uint32_t columns_bytes = step_columns_bytes(type, args->blocks_padded);
    gemv_thread here = gemv_thread_of(args);
    here.unrolled = true;
    step_ring r;
    step_begin(type, args, shared + columns_bytes / 4, arrivals, &r);
    step_prefetch(args, args->blocks * (uint32_t)block_length(type));
    if (!args->independent)
        launches_wait();
    launches_next();
    const gemv_columns columns = step_column(type, args, shared);
    uint32_t meeting = 0;
    UNROLL_BY(1)
    for (uint32_t tile = block_index(); tile < r.tiles; tile += block_count()) {
        const uint64_t row = (uint64_t)tile * QUANT_GEMV_ROWS + thread_index();
        const float before = args->adds && thread_index() < QUANT_GEMV_ROWS && row < args->rows ? args->y[row] : 0.0f;
        float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (!(words_rotated(type) || type == BLOCK_Q6_K) || !args->aligned)
            step_rows(type, args, staged + columns_bytes, &columns, tile, here, WORDS_ANYWHERE, &r, acc);
        else if (here.even)
            step_rows(type, args, staged + columns_bytes, &columns, tile, here, WORDS_EVEN, &r, acc);
        else
            step_rows(type, args, staged + columns_bytes, &columns, tile, here, WORDS_ODD, &r, acc);
        if (args->independent)
            launches_wait();
        step_finish(type, args, row, before, (float *)(void *)AT_RANGE(shared, meeting, QUANT_CLASSES * QUANT_GEMV_ROWS), acc);
        meeting = QUANT_CLASSES * QUANT_GEMV_ROWS - meeting;
    }
}

#endif
