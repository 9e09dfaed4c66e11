/* Scores several queries against all rows of any length, on chips with a copy engine. Like search_tile_* (tile_8x8.h), but no
 * thread waits for a whole block.
 *
 * A block keeps its queries in shared memory, and a few waves only fill a ring of stages with rows (ring.h); one would not be
 * enough, because starting a copy takes 40 ns. Eight teams work, each on its own strip of queries and rows. A team takes a
 * stage when it is filled and releases it when it is done, up to a few stages ahead of another team. Each wave has its own
 * lists, so that no wave needs another; waves learn from each other through the thresholds that all blocks share.
 *
 * The engine copies a row in one piece, so its two chunks stay interleaved as in memory (packed_layout.h). Lanes that read one
 * chunk of one row would only use half of the banks and conflict. So half of the lanes read the neighbouring row, which is
 * shifted by 16 bytes and uses the other half: a lane has row r ^ (its fourth bit) in place r.
 */
#define ROW_TYPE(rows) ROW_F32
#include "kernels/search/tile_8x8.h"
#include "kernels/search/tile_list.h"
#include "kernels/search/topk_lists.h"
#include "kernels/simt/ring.h"

enum {
    STREAM_FEEDERS = SEARCH_STREAM_FEEDERS,
    STREAM_TILE_RINGS = STREAM_FEEDERS / TILE8_LANES, /* at most */
    STREAM_QUERIES_MAX = SEARCH_THREADS / TILE8_LANES * TILE8_SIDE,
    STREAM_SPAN = SEARCH_STREAM_SPAN,      /* pairs of chunks in a stage */
    STREAM_ROW = SEARCH_STREAM_ROW_FLOATS, /* floats of a row in a stage */
    STREAM_PAIR_FLOATS = 2 * CANON_LANES,
    STREAM_REFRESH = 16 /* after at most this many tiles a wave checks what the others have found */
};

/* The number of threads of the block that score. */
DEVICE uint32_t stream_workers(void)
{
    return block_size() - STREAM_FEEDERS;
}

/* What the waves of a block share. */
typedef struct stream_shared {
    float *queries;   /* pairs of chunks x strips x TILE8_QUERIES */
    float *stages;    /* rows x STREAM_ROW each, and as many norms */
    tile_ring *tiles; /* one for each feeding wave; all list the same tiles */
    uint32_t *end;    /* the number of tiles, once it is known */
    ring rows;
    int32_t chunks, pairs;
    int32_t row_strips, query_strips;
    int32_t stage_floats;
} stream_shared;

DEVICE int32_t stream_tile_rows(const stream_shared *at)
{
    return at->row_strips * TILE8_SIDE;
}

/* ---- feeding: by a few waves --------------------------------------------------------------------------------------------- */

/* This wave's number among the feeding waves. */
DEVICE int32_t stream_feeder(void)
{
    return (int32_t)(wave_index() - stream_workers() / wave_size());
}

typedef struct stream_feed {
    uint32_t tile;
    int32_t pair; /* the first pair of chunks of the next stage */
    ring_cursor at;
    bool ended;
} stream_feed;

/* Copies the next chunks of this wave's rows, one lane per row, and with the last of them the norms of the tile. */
DEVICE void stream_copy(int32_t metric, const stream_shared *at, const tile_ring *tiles, const stream_feed *feed)
{
    const row_word *tile = tiles_at(tiles, feed->tile);
    const int32_t rows = stream_tile_rows(at), first = feed->pair * STREAM_PAIR_FLOATS;
    const int32_t waves = STREAM_FEEDERS / (int32_t)wave_size(), own = stream_feeder();
    const int32_t left = at->chunks * CANON_LANES - first, max = STREAM_SPAN * STREAM_PAIR_FLOATS,
                  floats = left < max ? left : max;
    const bool norms = own == 0 && metric == CANON_COSINE && feed->pair + STREAM_SPAN >= at->pairs;
    float *stage = at->stages + feed->at.stage * (uint32_t)at->stage_floats;
    if (lane() == 0) {
        ring_acquire(&at->rows, feed->at);
        ring_expect(&at->rows, feed->at, (uint32_t)(floats * ((rows - own + waves - 1) / waves) + (norms ? rows : 0)) * 4);
    }
    wave_barrier();
    for (int32_t row = own + (int32_t)lane() * waves; row < rows; row += STREAM_FEEDERS)
        ring_copy(&at->rows, feed->at, AT_RANGE(stage, row * STREAM_ROW, floats),
                  IN_GLOBAL(const float, tile->rows) + (row * at->chunks * CANON_LANES + first), (uint32_t)floats * 4);
    if (norms && lane() == 0)
        ring_copy(&at->rows, feed->at, AT_RANGE(stage, rows * STREAM_ROW, rows), IN_GLOBAL(const float, tile->norms),
                  (uint32_t)rows * 4);
}

/* Fills this wave's share of the next stage. After the last tile it fills one empty stage and then no more. Returns true if it
 * filled a stage. Called by a whole wave. */
DEVICE bool stream_fetch(int32_t metric, const search_args *args, const stream_shared *at, stream_feed *feed)
{
    tile_ring *tiles = AT_RANGE(at->tiles, stream_feeder(), 1);
    if (feed->ended)
        return false;
    if (feed->pair == 0 && feed->tile == tiles_listed(tiles)) {
        wave_barrier();
        tiles_append(&args->rows, (uint32_t)stream_tile_rows(at), block_count(), tiles);
        wave_barrier();
        feed->ended = feed->tile == tiles_listed(tiles);
    }
    if (feed->ended) {
        if (lane() == 0) {
            AT(at->end, 0) = feed->tile;
            ring_acquire(&at->rows, feed->at);
            ring_expect(&at->rows, feed->at, 0);
        }
        return true;
    }
    stream_copy(metric, at, tiles, feed);
    ring_next(&at->rows, &feed->at);
    feed->pair += STREAM_SPAN;
    if (feed->pair >= at->pairs) {
        feed->pair = 0;
        feed->tile++;
    }
    return true;
}

/* Feeds this wave's share of all tiles of the block. */
DEVICE void stream_feed_all(int32_t metric, const search_args *args, const stream_shared *at)
{
    stream_feed feed;
    __builtin_memset(&feed, 0, sizeof feed);
    uint32_t begun = 0;
    for (uint32_t i = 1; i < at->rows.stages; i++)
        begun += stream_fetch(metric, args, at, &feed) ? 1 : 0;
    for (uint32_t passed = 0; passed < begun; passed++) {
        begun += stream_fetch(metric, args, at, &feed) ? 1 : 0;
        ring_pass(&at->rows);
    }
}

/* ---- working ------------------------------------------------------------------------------------------------------------- */

/* Adds both chunks of a pair, or the last odd one. */
DEVICE void stream_pair(int32_t metric, bool first, const stream_shared *at, const float *rows, int32_t pair,
                        const tile8_places *places, f32x2 *acc)
{
    const float *queries = at->queries + pair * at->query_strips * TILE8_QUERIES;
    const bool two = 2 * pair + 1 < at->chunks;
    tile8_places here = *places;
    here.rows[0] -= two ? 0 : tile8_lane() / 2 * 4; /* an odd chunk is not interleaved with another */
    here.rows[1] -= two ? 0 : tile8_lane() / 2 * 4;
    tile8_chunk(metric, first, rows, STREAM_ROW, queries, &here, acc);
    if (two)
        tile8_chunk(metric, false, rows + 4, STREAM_ROW, queries + TILE8_QUERIES_ODD, places, acc);
}

/* The places of a lane's share of a pair of chunks: two accumulators of group lane / 2. */
DEVICE tile8_places stream_places(const stream_shared *at)
{
    const int32_t lane = tile8_lane(), row = tile8_team() / at->query_strips * TILE8_SIDE;
    const int32_t queries = tile8_team() % at->query_strips * TILE8_QUERIES + lane * 2;
    const int32_t within = lane / 2 * 8 + lane % 2 * 2, other = lane / 8 % 2;
    tile8_places places;
    places.rows[0] = (row + other) * STREAM_ROW + within;
    places.rows[1] = (row + 1 - other) * STREAM_ROW + within;
    places.queries[0] = queries + lane % 2 * CANON_LANES;
    places.queries[1] = queries + (1 - lane % 2) * CANON_LANES;
    return places;
}

/* Offers this lane's two final sums if they pass the gate. Returns true if a list is longer than its trigger. */
DEVICE bool stream_offer(int32_t metric, const search_args *args, const topk *top, const stream_shared *at, uint32_t number,
                         const float *query_norms, const float *row_norms, const float *totals)
{
    const uint32_t strips = top->queries / TILE8_SIDE; /* strips of the wave's queries: one or two */
    const uint32_t query = ((uint32_t)tile8_team() & (strips - 1)) * TILE8_SIDE + (uint32_t)tile8_lane() % TILE8_SIDE;
    const float gate = AT(top->gate, query), norm = metric == CANON_COSINE ? AT(query_norms, query) : 0.0f;
    bool crowded = false;
    UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const uint32_t row = (uint32_t)(tile8_team() / at->query_strips * TILE8_SIDE + tile8_lane() / TILE8_SIDE + 4 * i);
        if (topk_gate_open(metric, gate, totals[i], norm, row_norms[i])) {
            const row_word *tile = tiles_at(at->tiles, number);
            if (tile->admitted >> row & 1)
                crowded |= topk_offer(top, &args->lists, query, totals[i], norm, row_norms[i], tile->first_row + row) >
                           args->lists.trigger;
        }
    }
    return crowded;
}

/* Computes the sums of a tile from its stages. */
DEVICE void stream_tile(int32_t metric, const stream_shared *at, const tile8_places *places, ring_cursor *cursor,
                        float *row_norms, float *totals)
{
    f32x2 acc[TILE8_PAIRS];
    const float *stage = at->stages + cursor->stage * (uint32_t)at->stage_floats;
    stream_pair(metric, true, at, stage, 0, places, acc);
    UNROLL_BY(1)
    for (int32_t pair = 1; pair < at->pairs; pair++) {
        if (pair % STREAM_SPAN == 0) {
            ring_release(&at->rows, *cursor);
            ring_next(&at->rows, cursor);
            ring_await(&at->rows, *cursor);
            stage = at->stages + cursor->stage * (uint32_t)at->stage_floats;
        }
        stream_pair(metric, false, at, stage + pair % STREAM_SPAN * STREAM_PAIR_FLOATS, pair, places, acc);
    }
    if (metric == CANON_COSINE) {
        const int32_t row = tile8_team() / at->query_strips * TILE8_SIDE + tile8_lane() / TILE8_SIDE;
        row_norms[0] = AT(stage, stream_tile_rows(at) * STREAM_ROW + row);
        row_norms[1] = AT(stage, stream_tile_rows(at) * STREAM_ROW + row + 4);
    }
    ring_release(&at->rows, *cursor);
    ring_next(&at->rows, cursor);
    tile8_fold(acc, true, totals);
}

/* Scores all tiles with one wave; `top` and `query_norms` belong to it. */
DEVICE void stream_work(int32_t metric, const search_args *args, const topk *top, const stream_shared *at,
                        const float *query_norms)
{
    ring_cursor cursor = {0, 0};
    const tile8_places places = stream_places(at);
    for (uint32_t number = 0;; number++) {
        float totals[2], row_norms[2] = {0.0f, 0.0f};
        ring_await(&at->rows, cursor);
        if (number == AT(at->end, 0))
            break;
        stream_tile(metric, at, &places, &cursor, row_norms, totals);
        const bool crowded = stream_offer(metric, args, top, at, number, query_norms, row_norms, totals);
        if (wave_any(crowded) || (number & (number + 1)) == 0 || number % STREAM_REFRESH == STREAM_REFRESH - 1) {
            wave_barrier();
            topk_tend_by(top, &args->lists, 0, 1, args->lists.trigger, args->lists.kept_max);
            wave_barrier();
        }
    }
    ring_release(&at->rows, cursor);
}

/* The lists of a wave. */
DEVICE topk stream_lists(int32_t metric, const search_args *args, const stream_shared *at, uint64_t *threshold,
                         uint32_t *length, float *gate, uint32_t *first_query)
{
    const uint32_t teams = wave_size() / TILE8_LANES, strips = (uint32_t)at->query_strips,
                   waves = stream_workers() / wave_size();
    const uint32_t own = teams < strips ? teams : strips, place = wave_index() * teams * TILE8_SIDE;
    const uint32_t first = (block_index_y() * strips + wave_index() * teams % strips) * TILE8_SIDE;
    const uint32_t left = first < args->queries.count ? args->queries.count - first : 0;
    const size_t list = ((size_t)block_index() * waves + wave_index()) * args->queries.slots + first;
    topk top;
    top.threshold = AT_RANGE(threshold, place, own * TILE8_SIDE);
    top.length = AT_RANGE(length, place, own * TILE8_SIDE);
    top.gate = AT_RANGE(gate, place, own * TILE8_SIDE);
    top.keys = args->lists.keys + list * args->lists.capacity;
    top.worst = args->queries.worst + first;
    top.queries = own * TILE8_SIDE;
    top.admitted = left < top.queries ? left : top.queries;
    top.metric = metric;
    *first_query = first;
    return top;
}

DEVICE void stream_search(const search_args *args)
{
    SHARED_DYNAMIC(float, dynamic);
    SHARED(tile_ring, tiles, STREAM_TILE_RINGS);
    SHARED(uint64_t, threshold, STREAM_QUERIES_MAX);
    SHARED(uint64_t, full, SEARCH_STREAM_STAGES_MAX);
    SHARED(uint64_t, empty, SEARCH_STREAM_STAGES_MAX);
    SHARED(uint32_t, length, STREAM_QUERIES_MAX);
    SHARED(float, gate, STREAM_QUERIES_MAX);
    SHARED(float, norms, STREAM_QUERIES_MAX);
    SHARED(uint32_t, end, 1);
    const int32_t metric = args->rows.metric, teams = (int32_t)stream_workers() / TILE8_LANES;
    stream_shared at;
    at.chunks = args->rows.chunks;
    at.pairs = (at.chunks + 1) / 2;
    at.query_strips = (int32_t)(args->queries.slots / block_count_y()) / TILE8_SIDE;
    at.row_strips = teams / at.query_strips;
    at.stage_floats = stream_tile_rows(&at) * (STREAM_ROW + 1);
    at.queries = dynamic;
    at.stages = dynamic + at.pairs * at.query_strips * TILE8_QUERIES;
    at.tiles = tiles;
    at.end = end;
    at.rows.full = full;
    at.rows.empty = empty;
    at.rows.stages = args->stages;
    const float *queries =
        args->queries.packed + (size_t)block_index_y() * (size_t)(at.query_strips * TILE8_SIDE * at.chunks * CANON_LANES);
    for (int32_t pair = 0; thread_index() < stream_workers() && pair < at.pairs; pair++)
        tile8_copy_queries(dynamic + pair * at.query_strips * TILE8_QUERIES, queries + pair * STREAM_PAIR_FLOATS,
                           at.query_strips, at.chunks, teams, 2 * pair + 1 < at.chunks);
    copies_commit();
    copies_wait(0);
    if (thread_index() < STREAM_TILE_RINGS)
        tiles_begin(AT_RANGE(tiles, thread_index(), 1), block_index());
    if (thread_index() == 0)
        AT(end, 0) = UINT32_MAX;
    ring_begin(&at.rows, STREAM_FEEDERS / wave_size(), stream_workers() / wave_size());
    if (thread_index() >= stream_workers()) {
        RING_REGISTERS_FEWER(56);
        stream_feed_all(metric, args, &at);
        return;
    }
    RING_REGISTERS_MORE(224);
    uint32_t first_query;
    const topk top = stream_lists(metric, args, &at, threshold, length, gate, &first_query);
    float *own_norms = AT_RANGE(norms, wave_index() * (wave_size() / TILE8_LANES) * TILE8_SIDE, top.queries);
    topk_begin_by(&top, lane(), wave_size());
    if (lane() < top.queries)
        AT(own_norms, lane()) = args->queries.norms[first_query + lane()];
    wave_barrier();
    /* Distances have their own loop; dot and cosine share one. */
    if (metric == CANON_L2)
        stream_work(CANON_L2, args, &top, &at, own_norms);
    else
        stream_work(metric, args, &top, &at, own_norms);
    topk_tend_by(&top, &args->lists, 0, 1, args->lists.trigger, args->lists.kept_max);
    wave_barrier();
    topk_hand_over_by(&top, &args->lists, 0, 1, first_query);
}

KERNEL_RESIDENT(search_stream, search_args, SEARCH_STREAM_THREADS, 1)
{
    stream_search(&args);
}
