/* Attention on the CPU.
 *
 * The unit of work is a tile: some adjacent tokens of one sequence, all query heads of one head of keys, and one chunk. A few
 * queries read the keys and values in place, even f16; otherwise they are widened to f32 once, in the second-level cache, for
 * up to TILE_ROWS queries. Chunks are independent, so one query over a long context keeps all threads busy; their results are
 * merged per query, in order. The parts of all queries at once may need too much memory, so tokens are processed in pieces of
 * PARTS_BYTES_MAX.
 */
#include "cpu/attention/attention_loops.h"

#include "arithmetic/attention_window.h"
#include "base/integers.h"
#include "base/memory.h"
#include "cpu/tensor/tensor.h"

enum {
    TILE_ROWS = 64,
    DIRECT_ROWS = 8 /* rows that convert f16 themselves; for more, widening once is less work */
};
static const int64_t parts_bytes_max = 32 << 20;

/* Tokens [first, first + count) of one sequence. */
typedef struct token_run {
    int64_t first;
    int32_t count;
    int32_t unused;
} token_run;

typedef struct attention_work {
    const attention_job *job;
    const attention_loops *loops;
    int32_t group;    /* query heads of a head of keys */
    int32_t chunks;   /* maximum number of chunks of a query */
    int64_t begin;    /* the first token of the piece */
    int64_t tokens;   /* of the piece */
    token_run *tiles; /* of the piece */
    int64_t tile_count;
    float *parts;           /* tokens x heads x chunks, part_floats each */
    int64_t part_floats;    /* of a chunk of a query */
    float *scratch;         /* of each worker */
    int64_t scratch_floats; /* of one */
} attention_work;

static attention_range seen_by(const attention_work *w, int64_t token)
{
    const attention_batch *batch = &w->job->batch;
    return attention_seen_around(&w->job->mask, batch->positions[token], batch->lengths[batch->sequences[token]],
                                 w->job->keys_max);
}

static float *part_of(const attention_work *w, int64_t token, int32_t head, int32_t chunk)
{
    return w->parts + (((token - w->begin) * w->job->heads + head) * w->chunks + chunk) * w->part_floats;
}

static float *result_of(const attention_work *w, int64_t token, int32_t head)
{
    const int64_t size = w->job->batch.layer.head_size;
    return w->job->out + (token * w->job->heads + head) * size;
}

static const float *sink_of(const attention_work *w, int32_t head)
{
    return w->job->sinks ? w->job->sinks + head : NULL;
}

/* ---- one tile ------------------------------------------------------------------------------------------------------------ */

/* The rows of a tile: the queries that see a key of the chunk. */
typedef struct tile_rows {
    const float *q[TILE_ROWS];
    float *out[TILE_ROWS];
    attention_range seen[TILE_ROWS];
    float largest[TILE_ROWS], sums[TILE_ROWS];
    float slope[TILE_ROWS];       /* NULL: no slopes; otherwise scores fall with the distance from `position` */
    int32_t position[TILE_ROWS];  /* counted from the first key of the chunk */
    const float *sink[TILE_ROWS]; /* NULL: none */
    float *part[TILE_ROWS];       /* NULL: the query has only this chunk, and its result goes to `out` */
    int32_t count;
    int32_t chunk; /* the chunk of this head of keys that the rows read */
    int32_t kv_head;
} tile_rows;

/* Widens keys [0, end) of the tile's head and chunk, in whole groups, and the values, to floats. */
static void widen_chunk(const attention_work *w, const tile_rows *rows, const char *part, int32_t end, float *keys)
{
    const int32_t head = rows->kv_head;
    float *values = keys + ATTENTION_CHUNK * w->job->batch.layer.head_size;
    const attention_layer *layer = &w->job->batch.layer;
    const int32_t size = layer->head_size, blocks = size / ATTENTION_BLOCK;
    const int32_t groups = (end + ATTENTION_GROUP - 1) / ATTENTION_GROUP;
    w->loops->widen(layer->type, keys, part + attention_keys_at(layer, head), (int64_t)groups * ATTENTION_GROUP * size);
    w->loops->widen(layer->type, values, part + attention_values_at(layer, head), (int64_t)end * size);
    if (layer->type != ATTENTION_Q8_0)
        return;
    const uint16_t *scales = (const uint16_t *)(const void *)(part + attention_key_scales_at(layer, head));
    for (int32_t j = 0; j < end; j++)
        for (int32_t i = 0; i < size; i += ATTENTION_LANES) {
            const float scale = widen_f16(scales[attention_key_scale_place(size, j, i)]);
            float *piece = keys + attention_key_place(size, j, i);
            for (int32_t a = 0; a < ATTENTION_LANES; a++)
                piece[a] *= scale;
        }
    scales = (const uint16_t *)(const void *)(part + attention_value_scales_at(layer, head));
    for (int32_t block = 0; block < end * blocks; block++) {
        const float scale = widen_f16(scales[block]);
        for (int32_t i = 0; i < ATTENTION_BLOCK; i++)
            values[block * ATTENTION_BLOCK + i] *= scale;
    }
}

/* Adds the query of a token and a head to the tile, if it sees a key of the chunk. */
static void add_row(const attention_work *w, tile_rows *rows, int64_t token, int32_t head)
{
    const attention_range seen = seen_by(w, token), chunks = attention_chunks(seen);
    const int32_t at = rows->count;
    if (rows->chunk < chunks.first || rows->chunk >= chunks.end)
        return;
    const bool alone = chunks.end - chunks.first == 1;
    rows->q[at] = w->job->q + token * w->job->q_stride + (int64_t)head * w->job->batch.layer.head_size;
    rows->seen[at] = attention_in_chunk(seen, rows->chunk);
    rows->part[at] = alone ? NULL : part_of(w, token, head, rows->chunk);
    rows->slope[at] = w->job->slopes ? w->job->slopes[head] : 0.0f;
    rows->position[at] = w->job->batch.positions[token] - rows->chunk * ATTENTION_CHUNK;
    rows->sink[at] = sink_of(w, head);
    rows->out[at] = alone ? result_of(w, token, head) : rows->part[at] + ATTENTION_PART_SUMS;
    rows->count++;
}

static void finish_rows(const tile_rows *rows, int32_t head_size)
{
    for (int32_t r = 0; r < rows->count; r++) {
        if (rows->part[r]) {
            rows->part[r][0] = rows->largest[r];
            rows->part[r][1] = rows->sums[r];
            continue;
        }
        for (int32_t i = 0; i < head_size; i++)
            rows->out[r][i] = rows->sink[r] ? attention_result_with_sink(rows->out[r][i] + 0.0f, rows->sums[r],
                                                                         rows->largest[r], *rows->sink[r])
                                            : attention_result_of_one(rows->out[r][i], rows->sums[r]);
    }
}

/* Items are numbered with the chunk fastest, then the head of keys, then the tile of tokens. */
static void run_tile(void *context, int64_t item, int32_t worker)
{
    const attention_work *w = context;
    const attention_layer *layer = &w->job->batch.layer;
    const token_run *run = &w->tiles[item / w->chunks / layer->kv_heads];
    tile_rows rows;
    int32_t end = 0;
    rows.count = 0;
    rows.chunk = (int32_t)(item % w->chunks);
    rows.kv_head = (int32_t)(item / w->chunks % layer->kv_heads);
    float *scratch = w->scratch + worker * w->scratch_floats;
    attention_tile tile = {.head_size = layer->head_size,
                           .scale = w->job->scale,
                           .cap = w->job->cap,
                           .q = rows.q,
                           .seen = rows.seen,
                           .slopes = w->job->slopes ? rows.slope : NULL,
                           .positions = rows.position,
                           .p = scratch + (int64_t)2 * ATTENTION_CHUNK * layer->head_size,
                           .out = rows.out,
                           .largest = rows.largest,
                           .sums = rows.sums};
    for (int32_t t = 0; t < run->count; t++)
        end = max_i32(end, attention_in_chunk(seen_by(w, run->first + t), rows.chunk).end);
    if (end <= 0)
        return;
    const attention_batch *batch = &w->job->batch;
    const uint64_t page = batch->pages[batch->sequences[run->first] * batch->pages_stride + rows.chunk];
    const char *part = (const char *)(uintptr_t)page + layer->offset;
    tile.half = layer->type == ATTENTION_F16 && run->count * w->group <= DIRECT_ROWS;
    tile.keys = part + attention_keys_at(layer, rows.kv_head);
    tile.values = part + attention_values_at(layer, rows.kv_head);
    if (!tile.half && layer->type != ATTENTION_F32) {
        widen_chunk(w, &rows, part, end, scratch);
        tile.keys = scratch;
        tile.values = scratch + (int64_t)ATTENTION_CHUNK * layer->head_size;
    }
    for (int32_t i = 0; i < run->count * w->group; i++) {
        add_row(w, &rows, run->first + i / w->group, rows.kv_head * w->group + i % w->group);
        if (rows.count > 0 && (rows.count == TILE_ROWS || i == run->count * w->group - 1)) {
            tile.rows = rows.count;
            w->loops->scores(&tile);
            w->loops->values(&tile);
            finish_rows(&rows, layer->head_size);
            rows.count = 0;
        }
    }
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static void merge_range(void *context, int64_t begin, int64_t end)
{
    const attention_work *w = context;
    const int32_t size = w->job->batch.layer.head_size;
    for (int64_t query = begin; query < end; query++) {
        const int64_t token = w->begin + query / w->job->heads;
        const int32_t head = (int32_t)(query % w->job->heads);
        const attention_range chunks = attention_chunks(seen_by(w, token));
        const int32_t count = chunks.end - chunks.first;
        float *out = result_of(w, token, head);
        const attention_parts parts = {.first = part_of(w, token, head, chunks.first),
                                       .apart = w->part_floats,
                                       .count = count,
                                       .head_size = size,
                                       .out = out,
                                       .sink = sink_of(w, head)};
        if (count > 1)
            w->loops->merge(&parts);
        for (int32_t i = 0; count <= 0 && i < size; i++)
            out[i] = 0.0f;
    }
}

/* Groups adjacent tokens of one sequence, as many as a tile has room for. */
static void cut_into_tiles(attention_work *w)
{
    const int32_t *sequences = w->job->batch.sequences;
    const int32_t tokens_max = max_i32(TILE_ROWS / w->group, 1);
    w->tile_count = 0;
    for (int64_t token = w->begin; token < w->begin + w->tokens; token++) {
        token_run *last = w->tile_count > 0 ? &w->tiles[w->tile_count - 1] : NULL;
        if (last && last->count < tokens_max && sequences[token] == sequences[last->first])
            last->count++;
        else
            w->tiles[w->tile_count++] = (token_run){.first = token, .count = 1};
    }
}

static void run_piece(ww_device *device, attention_work *w)
{
    pool *threads = ((cpu_device *)device)->pool;
    cut_into_tiles(w);
    const int64_t items = w->tile_count * w->job->batch.layer.kv_heads * w->chunks;
    if (items > 1)
        pool_run(threads, items, run_tile, NULL, w);
    else
        pool_run_here(items, run_tile, w);
    cpu_run_ranges(device, w->tokens * w->job->heads, 64, merge_range, w);
}

ww_status cpu_attention(ww_device *device, const attention_job *job)
{
    const int64_t tokens = job->batch.tokens, size = job->batch.layer.head_size;
    const int32_t workers = pool_threads(((cpu_device *)device)->pool);
    attention_work w = {.job = job,
                        .loops = ((cpu_device *)device)->isa->attention,
                        .group = job->heads / job->batch.layer.kv_heads,
                        .chunks = (int32_t)divide_up_i64(max_i32(job->keys_max, 1), ATTENTION_CHUNK),
                        .part_floats = ATTENTION_PART_SUMS + size,
                        .scratch_floats = 2 * ATTENTION_CHUNK * size + TILE_ROWS * ATTENTION_CHUNK};
    const int64_t query_bytes = w.chunks > 1 ? w.chunks * w.part_floats * (int64_t)sizeof(float) : 0;
    const int64_t piece = min_i64(tokens, max_i64(parts_bytes_max / max_i64(query_bytes * job->heads, 1), 1));
    const size_t parts_bytes = (size_t)(query_bytes * job->heads * piece), tiles_bytes = (size_t)piece * sizeof *w.tiles;
    const size_t scratch_bytes = (size_t)(w.scratch_floats * workers) * sizeof(float);
    buffer memory;
    ww_status status = job->store ? cpu_attention_store(device, job->store) : WW_OK;
    if (status == WW_OK)
        status = cpu_tensor_alloc(device, scratch_bytes + parts_bytes + tiles_bytes, &memory);
    if (status != WW_OK)
        return status;
    w.scratch = memory.data;
    w.parts = w.scratch + w.scratch_floats * workers;
    w.tiles = (token_run *)(void *)((char *)memory.data + scratch_bytes + parts_bytes);
    for (w.begin = 0; w.begin < tokens; w.begin += w.tokens) {
        w.tokens = min_i64(piece, tokens - w.begin);
        run_piece(device, &w);
    }
    cpu_tensor_free(device, &memory);
    return WW_OK;
}
