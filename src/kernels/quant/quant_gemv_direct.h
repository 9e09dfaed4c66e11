/* A gemv of one column whose rows are loaded by threads (quant_gemv_one.c). Thread blocks quantize the column as they go.
 *
 * On AMD chips no kernel starts before the previous one has ended, so a separate kernel that quantizes the column costs more
 * than quantizing it in every thread block. Each thread block quantizes all of it, chunk by chunk: it loads a chunk's floats
 * before its rows, and quantizes them into the stage, after a norm or gate if wanted, while the rows are being loaded. Nothing
 * goes through global memory, and no thread waits except for the sum of a norm.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_DIRECT_H
#define WW_KERNELS_QUANT_QUANT_GEMV_DIRECT_H

#include "kernels/quant/quant_gemv.h"
#include "kernels/quant/quant_gemv_activations.h"

/* A chunk of the column is work for QUANT_THREADS threads. With twice as many threads, the two halves take turns, so that all
 * waves have the same work. */
DEVICE bool direct_has_column(uint32_t chunk)
{
    return (uint32_t)GEMV_THREADS == QUANT_THREADS || stage_thread() / QUANT_THREADS == chunk % 2;
}

DEVICE uint32_t direct_thread(void)
{
    return (uint32_t)GEMV_THREADS == QUANT_THREADS ? stage_thread() : stage_thread() % QUANT_THREADS;
}

/* Words of a chunk of the column, four elements each, that a thread has. */
DEVICE uint32_t direct_words(int32_t type)
{
    return stage_blocks(type) * (uint32_t)block_length(type) / (4 * QUANT_THREADS);
}

/* Index in a chunk of word `h` of thread `thread`. Neighbouring threads have adjacent words, for K blocks within a team. */
DEVICE uint32_t direct_word(int32_t type, uint32_t thread, uint32_t h)
{
    if (block_length(type) == BLOCK32_ELEMENTS)
        return h * QUANT_THREADS + thread;
    return thread / QUANT_TEAM * (KBLOCK_ELEMENTS / 4) + h * QUANT_TEAM + thread % QUANT_TEAM;
}

/* The column's next chunk, held in registers. */
typedef struct direct_column {
    const float *x, *beside; /* beside: the weights of a norm, or the other factor of a gate */
    uint32_t words;          /* of the column */
    int32_t kind;            /* INPUT_ */
    float scale;             /* with a norm */
    four_elements of_x[2], of_beside[2];
} direct_column;

/* Past the end, the last word is read again. */
DEVICE void direct_hold(int32_t type, direct_column *c, uint32_t chunk)
{
    if (!direct_has_column(chunk))
        return;
    const uint32_t before = chunk * direct_words(type) * QUANT_THREADS, last = c->words - before - 1;
    const float *x = c->x + (uint64_t)before * 4, *beside = c->beside + (uint64_t)before * 4;
    UNROLL
    for (uint32_t h = 0; h < direct_words(type); h++) {
        const uint32_t word = direct_word(type, direct_thread(), h), at = (word < last ? word : last) * 4;
        c->of_x[h] = *(const four_elements *)(x + at);
        if (c->kind != INPUT_PLAIN)
            c->of_beside[h] = *(const four_elements *)(beside + at);
    }
}

/* The arguments for quantizing this stage's part of the column. Scalar registers are few, so values that are rarely used are
 * read again. */
DEVICE quant_gemv_activations_args direct_coding(int32_t type, const quant_gemv_args *args, uint32_t chunk, uint32_t *stage)
{
    const quant_gemv_args *late = (const quant_gemv_args *)arguments_again(args);
    quant_gemv_activations_args coding =
        one_coding(type, late, stage + stage_codes_at(type) / 4, stage + stage_sums_at(type) / 4,
                   (float *)(void *)(stage + stage_factors_at(type) / 4));
    coding.first_block += (uint64_t)chunk * stage_blocks(type);
    coding.blocks -= chunk * stage_blocks(type);
    coding.blocks_padded = coding.blocks;
    return coding;
}

/* Quantizes the held part of the column into its stage. It also writes blocks past the column's end, which nobody reads,
 * because a wave handles several blocks. */
DEVICE void direct_code(int32_t type, const quant_gemv_args *args, const direct_column *c, uint32_t chunk, uint32_t *stage)
{
    const quant_gemv_activations_args coding = direct_coding(type, args, chunk, stage);
    four_elements four[2] = {{{0.0f}}, {{0.0f}}};
    UNROLL
    for (uint32_t h = 0; h < direct_words(type); h++) {
        four[h] = c->of_x[h];
        if (c->kind == INPUT_NORM)
            four[h] = normed_four(four[h], c->scale, c->of_beside[h]);
        else if (c->kind == INPUT_GATED)
            four[h] = gated_four(four[h], c->of_beside[h]);
    }
    const uint32_t thread = direct_thread();
    code_place to = {0, 0, 0, thread / QUANT_TEAM, dot_has_min(type) != 0};
    if (block_length(type) == BLOCK32_ELEMENTS) {
        to.block = thread / 8;
        code_block32(&coding, to, direct_words(type), QUANT_THREADS / 8, thread, four);
    } else {
        code_kblock(&coding, to, thread % QUANT_TEAM, four);
    }
}

/* Stores the column and the rows. */
DEVICE void direct_put(int32_t type, const quant_gemv_args *args, const stage_ring *r, const direct_column *c, uint32_t chunk,
                       uint32_t number)
{
    uint32_t *stage = AT_RANGE(r->shared, number * r->bytes / 4, r->bytes / 4);
    if (direct_has_column(chunk))
        direct_code(type, args, c, chunk, stage);
    stage_put_rows(type, r, stage);
}

/* Loads the first chunk, its floats before its rows, and computes the sum of a norm while rows are in flight. The accumulators
 * of that sum are in shared memory where codes will be. */
DEVICE void direct_begin(int32_t type, const quant_gemv_args *args, uint32_t *shared, stage_ring *r, direct_column *c)
{
    c->x = args->x;
    c->beside = args->input.kind == INPUT_NORM    ? args->input.weight
                : args->input.kind == INPUT_GATED ? args->input.up
                                                  : args->x;
    c->kind = args->input.kind;
    c->scale = 0.0f;
    c->words = args->blocks * (uint32_t)block_length(type) / 4;
    direct_hold(type, c, 0);
    stages_rows(type, r);
    if (c->kind == INPUT_NORM)
        c->scale = norm_scale(args->x, args->blocks * (uint32_t)block_length(type), args->input.eps,
                              (float *)(void *)AT_RANGE(shared, stage_codes_at(type) / 4, QUANT_NORM_LANES));
    direct_put(type, args, r, c, 0, 0);
}

/* Multiplies all chunks, like gemv_chunks(). */
DEVICE void direct_chunks(int32_t type, const quant_gemv_args *args, const uint8_t *staged, gemv_thread here, stage_ring *r,
                          direct_column *c, float *acc)
{
    const gemv_rows rows = {stage_row(type, args, 0, GEMV_MFMA ? lane() % 16 : here.thread / 4),
                            GEMV_MFMA ? 0 : stage_row(type, args, 0, here.thread / 4 + 8)};
    UNROLL_BY(1)
    while (r->chunk < r->chunks) {
        const uint32_t next = r->chunk + 1 < r->chunks ? r->chunk + 1 : r->chunk, to = r->stages == 1 ? 0 : 1 - r->now;
        const uint32_t left = args->blocks - r->chunk * stage_blocks(type);
        barrier();
        direct_hold(type, c, next);
        stage_hold_rows(type, r, next);
        gemv_rounds(type, args, AT_RANGE(staged, r->now * r->bytes & ~15u, r->bytes), left, rows, here, acc);
        if (r->stages == 1)
            barrier();
        if (next > r->chunk)
            direct_put(type, args, r, c, next, to);
        r->chunk++;
        r->now = to;
    }
}

DEVICE void direct_run(int32_t type, const quant_gemv_args *args, uint32_t *shared, const uint8_t *staged, uint32_t *ticket)
{
    float acc[GEMV_CLASSES * GEMV_LANE_SUMS];
    stage_ring stages;
    direct_column column;
    gemv_thread here = gemv_thread_of(args);
    here.column = 0;
    here.width = 1;
    here.alignment = gemv_alignment(type);
    here.single = true;
    here.unrolled = true;
    gemv_clear(acc);
    stages_begin(type, args, 0, (args->blocks + stage_blocks(type) - 1) / stage_blocks(type), shared, NULL, &stages);
    direct_begin(type, args, shared, &stages, &column);
    direct_chunks(type, args, staged, here, &stages, &column, acc);
    barrier();
    gemv_finish(type, (const quant_gemv_args *)arguments_again(args), 0, (float *)(void *)shared, ticket, acc);
}

#endif
