/* The host packs and codes the query, exactly as screen_prepare does on the device, and copies it in one block with the table
 * of segments. The block is in pinned memory, and the kernel writes the results to pinned memory, so nothing is copied
 * twice. */
#include "gpu/search/screen_one.h"

#include <math.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "gpu/error.h"
#include "kernels/search/packed_layout.h"

/* Offsets of the block's parts, in bytes. The packed query is at 0. */
typedef struct one_block {
    size_t codes, numbers, ready, table, threshold, count, end;
} one_block;

static one_block lay_out(int32_t dim, size_t table_bytes)
{
    const size_t padded = (size_t)canon_padded(dim);
    one_block at = {.codes = padded * sizeof(float)};
    at.numbers = at.codes + padded;
    at.ready = at.numbers + sizeof(screen_query);
    at.table = at.ready + 4 * sizeof(uint32_t);
    at.threshold = at.table + (table_bytes + 7) / 8 * 8;
    at.count = at.threshold + sizeof(uint64_t);
    at.end = at.count + sizeof(uint32_t);
    return at;
}

static float fold(float *acc)
{
    for (int32_t s = CANON_LANES / 2; s > 0; s /= 2)
        for (int32_t j = 0; j < s; j++)
            acc[j] += acc[j + s];
    return acc[0];
}

/* Packs and codes a query of `dim` elements. */
static screen_query code_query(const float *x, int32_t dim, float *packed, int8_t *codes)
{
    static const int32_t offsets[4] = {0, 32, 16, 48};
    const int32_t chunks = packed_chunks(dim);
    float squares[CANON_LANES] = {0}, rests[CANON_LANES] = {0}, largest = 0.0f;
    for (int32_t i = 0; i < dim; i++) {
        squares[i % CANON_LANES] = fmaf(x[i], x[i], squares[i % CANON_LANES]);
        largest = fmaxf(largest, fabsf(x[i]));
    }
    const float scale = screen_scale(largest), inverse = screen_inverse(largest);
    for (int32_t chunk = 0; chunk < chunks; chunk++)
        for (int32_t group = 0; group < PACKED_GROUPS; group++)
            for (int32_t i = 0; i < 4; i++) {
                const int32_t lane = packed_first(group) + offsets[i], element = chunk * CANON_LANES + lane;
                const float value = element < dim ? x[element] : 0.0f;
                const int32_t code = screen_code(value, inverse);
                const float rest = screen_rest(value, scale, code);
                packed[packed_at(chunks, chunk, group) + i] = value;
                codes[chunk * CANON_LANES + group * 4 + i] = (int8_t)code;
                rests[lane] = fmaf(rest, rest, rests[lane]);
            }
    return (screen_query){
        .scale = scale, .residual = screen_residual(fold(rests), chunks * CANON_LANES), .norm = sqrtf(fold(squares))};
}

/* Fills the block and queues its copy to the device. The stream owns the pinned memory, and the search waits for the stream at
 * the end. */
static ww_status send(const screen_round *round, const screen_input *input, const segment_table *table, const one_block *at,
                      void *to)
{
    void *pinned = NULL;
    ww_status status = gpu_pinned(round->stream, PINNED_BLOCK, at->end, &pinned);
    if (status != WW_OK)
        return status;
    char *block = pinned;
    const screen_query numbers = code_query(input->queries, round->job->dim, pinned, (int8_t *)block + at->codes);
    const uint64_t threshold = input->thresholds ? input->thresholds[0] : CANON_KEY_WORST;
    memcpy(block + at->numbers, &numbers, sizeof numbers);
    memset(block + at->ready, 0, at->table - at->ready);
    memcpy(block + at->table, table->segments, table->bytes);
    memcpy(block + at->threshold, &threshold, sizeof threshold);
    memset(block + at->count, 0, at->end - at->count);
    atomic_store(&round->stream->state, STREAM_BUSY);
    return gpu_check(round->device, round->device->driver->copy_in(round->stream->handle, to, block, at->end),
                     "copying %zu bytes to the device", at->end);
}

ww_status screen_one_run(screen_round *round, const screen_input *input, const segment_table *table, void *results)
{
    const one_block at = lay_out(round->job->dim, table->bytes);
    const size_t best_bytes = ((size_t)round->job->k + 2) * sizeof(uint64_t);
    void *block = NULL, *samples = NULL, *lists = NULL, *best = NULL;
    ww_status status = gpu_workspace(round->stream, WORKSPACE_QUERIES, at.end, &block);
    if (status == WW_OK)
        status =
            gpu_workspace(round->stream, WORKSPACE_SAMPLES, (size_t)round->plan->sample_tiles * 4 * sizeof(uint64_t), &samples);
    if (status == WW_OK)
        status = gpu_workspace(round->stream, WORKSPACE_LISTS, (size_t)round->plan->capacity * sizeof(uint64_t), &lists);
    if (status == WW_OK)
        status = gpu_pinned(round->stream, PINNED_BEST, best_bytes, &best);
    if (status == WW_OK)
        status = send(round, input, table, &at, block);
    if (status != WW_OK)
        return status;
    char *base = block;
    round->shape = SCREEN_SHAPE_ONE;
    round->samples = samples;
    round->lists = lists;
    round->best = best;
    round->rows.segments = (const kernel_segment *)(const void *)(base + at.table);
    round->queries = (screen_queries){.packed = block,
                                      .codes = (uint32_t *)(void *)(base + at.codes),
                                      .numbers = (screen_query *)(void *)(base + at.numbers),
                                      .thresholds = (uint64_t *)(void *)(base + at.threshold),
                                      .counts = (uint32_t *)(void *)(base + at.count),
                                      .blocks_ready = (uint32_t *)(void *)(base + at.ready),
                                      .count = 1,
                                      .slots = 1};
    round->backward = gpu_alternate_direction(round->stream);
    memset(best, 0, best_bytes); /* 0 means not written yet */
    if (!input->thresholds)
        status = screen_round_scan(round, true);
    if (status == WW_OK)
        status = screen_round_scan(round, false);
    if (status == WW_OK)
        status = gpu_await(round->stream, best, round->job->k + 2);
    if (status == WW_OK) {
        memcpy(results, best, best_bytes);
        ((uint64_t *)results)[round->job->k + 1] &= ~SCREEN_ANSWERED;
    }
    return status;
}
