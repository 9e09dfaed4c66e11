/* Scores every row for several queries, by the tiles of tile_feed.h, and lists the keys within the bound. All queries share one
 * gate, because they share the bound.
 */
#include "kernels/search/range_list.h"
#include "kernels/search/tile_feed.h"
#include "kernels/search/topk_lists.h"

/* What a lane needs to list a key. */
typedef struct range_lane {
    float gate, norm;
    uint32_t query; /* of the search */
    bool real;      /* the slot has a query */
} range_lane;

/* Lists this lane's two final sums if they are within the bound. Called by a whole wave. */
DEVICE void range_offer(int32_t metric, const range_tile_args *args, const range_lane *mine, const tile_feed *feed,
                        const row_word *tile, const f32x2 *acc)
{
    float totals[2];
    tile8_fold(acc, false, totals);
    const int32_t row_strip = tile8_team() / feed->query_strips;
    UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const uint32_t row = (uint32_t)(row_strip * TILE8_SIDE + tile8_lane() / TILE8_SIDE + 4 * i);
        const float row_norm = metric == CANON_COSINE ? IN_GLOBAL(const float, tile->norms)[row] : 0.0f;
        const bool open = mine->real && (tile->admitted >> row & 1) != 0 &&
                          topk_gate_open(metric, mine->gate, totals[i], mine->norm, row_norm);
        canon_key key = CANON_KEY_WORST;
        if (open)
            key = canon_make_key(metric, canon_score(metric, totals[i], mine->norm, row_norm), tile->first_row + row);
        range_add(&args->list, open, mine->query, key);
    }
}

/* Scores the tiles of the block's part, one after the other. Arguments that are used only between tiles are read there, so they
 * take no registers. */
DEVICE void range_score(int32_t metric, const range_tile_args *args, const range_lane *mine, const tile8_places *places,
                        tile_feed *feed, tile_ring *ring)
{
    for (uint32_t i = 1; i < args->search.stages; i++)
        tile_fetch(&args->search, feed, ring);
    for (uint32_t number = 0; number < tiles_listed(ring); number++) {
        f32x2 acc[TILE8_PAIRS];
        tile_wait(&args->search);
        tile_pair(metric, true, &args->search, feed, ring, 0, places, acc);
        UNROLL_BY(1)
        for (int32_t pair = 1; 2 * pair < feed->chunks; pair++) {
            tile_wait(&args->search);
            tile_pair(metric, false, &args->search, feed, ring, pair, places, acc);
        }
        const range_tile_args *again = (const range_tile_args *)arguments_again(args);
        range_offer(metric, again, mine, feed, tiles_at(ring, number), acc);
        tile_look_ahead(&again->search, feed, ring, number + 1);
    }
    copies_wait(0);
    barrier();
}

DEVICE void tile_range(const range_tile_args *args)
{
    SHARED_DYNAMIC(float, dynamic);
    SHARED(tile_ring, ring, 1);
    const int32_t metric = args->search.rows.metric;
    const search_queries *queries = &args->search.queries;
    const uint32_t block_queries = queries->slots / block_count_y(), first_query = block_index_y() * block_queries;
    const int32_t teams = (int32_t)block_size() / TILE8_LANES, strips = (int32_t)block_queries / TILE8_SIDE;
    const int32_t row_strip = tile8_team() / strips, query_strip = tile8_team() % strips;
    tile_feed feed;
    feed.chunks = args->search.rows.chunks;
    feed.row_strips = teams / strips;
    feed.query_strips = strips;
    feed.shared = dynamic;
    feed.next = tile_begin(&args->search, &feed);
    feed.here = feed.next;
    feed.queries = queries->packed + (size_t)first_query * (size_t)(feed.chunks * CANON_LANES);
    feed.pair = 0;
    feed.tile = 0;
    range_lane mine;
    mine.query = first_query + (uint32_t)(query_strip * TILE8_SIDE + tile8_lane() % TILE8_SIDE);
    mine.real = mine.query < queries->count;
    mine.norm = metric == CANON_COSINE && mine.real ? queries->norms[mine.query] : 0.0f;
    mine.gate = topk_gate_for(metric, args->list.last);
    if (thread_index() == 0)
        tiles_begin(ring, block_index());
    for (int32_t pair = 0; args->search.whole && pair < (feed.chunks + 1) / 2; pair++)
        tile8_copy_queries(dynamic + pair * strips * TILE8_QUERIES, feed.queries + pair * (2 * CANON_LANES), strips,
                           feed.chunks, teams, 2 * pair + 1 < feed.chunks);
    barrier();
    tile_look_ahead(&args->search, &feed, ring, 0);
    const tile8_places places = tile_places_of(row_strip, query_strip);
    /* Distances have their own loop; dot and cosine share one. */
    if (metric == CANON_L2)
        range_score(CANON_L2, args, &mine, &places, &feed, ring);
    else
        range_score(metric, args, &mine, &places, &feed, ring);
}

KERNEL_RESIDENT(range_tile, range_tile_args, SEARCH_THREADS, 1)
{
    tile_range(&args);
}
