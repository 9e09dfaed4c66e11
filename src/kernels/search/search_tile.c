/* Scores several queries against all rows of any length and type, and finds the k best: the tiles of tile_feed.h, with the
 * lists of topk_lists.h.
 */
#include "kernels/search/tile_feed.h"
#include "kernels/search/topk_lists.h"

enum { TILE_REFRESH = 16 /* after at most this many tiles a block checks what the others have found */ };

/* Reads a block's lists from shared memory. They are used only between tiles, so they take no registers in the meantime. */
DEVICE topk tile_lists(int32_t metric, const topk *kept)
{
    topk lists = AT(kept, 0);
    lists.metric = metric; /* in a register, or a compile-time constant */
    return lists;
}

/* Offers this lane's two final sums if they pass the gate. Returns true if a list is longer than its trigger. */
DEVICE bool tile_offer(int32_t metric, const search_args *args, const topk *kept, const float *norms, const tile_feed *feed,
                       const row_word *tile, const f32x2 *acc)
{
    float totals[2];
    tile8_fold(acc, false, totals);
    const topk top = tile_lists(metric, kept);
    const int32_t strip = tile8_team() % feed->query_strips, row_strip = tile8_team() / feed->query_strips;
    const uint32_t query = (uint32_t)(strip * TILE8_SIDE + tile8_lane() % TILE8_SIDE);
    const float gate = AT(top.gate, query), norm = metric == CANON_COSINE ? AT(norms, query) : 0.0f;
    bool crowded = false;
    UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const uint32_t row = (uint32_t)(row_strip * TILE8_SIDE + tile8_lane() / TILE8_SIDE + 4 * i);
        const float row_norm = metric == CANON_COSINE ? IN_GLOBAL(const float, tile->norms)[row] : 0.0f;
        if (topk_gate_open(metric, gate, totals[i], norm, row_norm) && (tile->admitted >> row & 1))
            crowded |=
                topk_offer(&top, &args->lists, query, totals[i], norm, row_norm, tile->first_row + row) > args->lists.trigger;
    }
    return crowded;
}

/* Scores the tiles of the block's part, one after the other. If tile i filled a list beyond its trigger, it writes its number
 * to crowded[i % 2], which all threads read after the next barrier. Arguments that are used only between tiles are read there,
 * because the sums of a tile leave no scalar registers for them. */
DEVICE void tile_score(int32_t metric, const search_args *args, const topk *kept, const float *norms,
                       const tile8_places *places, tile_feed *feed, tile_ring *ring, uint32_t *crowded)
{
    for (uint32_t i = 1; i < args->stages; i++)
        tile_fetch(args, feed, ring);
    for (uint32_t number = 0; number < tiles_listed(ring); number++) {
        f32x2 acc[TILE8_PAIRS];
        tile_wait(args);
        const uint32_t before = number - 1;
        if (number > 0 && (AT(crowded, before % 2) == before || (number & before) == 0 || number % TILE_REFRESH == 0)) {
            const topk top = tile_lists(metric, kept);
            const search_lists *lists = &((const search_args *)arguments_again(args))->lists;
            topk_tend(&top, lists, lists->trigger, lists->kept_max);
            barrier();
        }
        tile_pair(metric, true, args, feed, ring, 0, places, acc);
        UNROLL_BY(1)
        for (int32_t pair = 1; 2 * pair < feed->chunks; pair++) {
            tile_wait(args);
            tile_pair(metric, false, args, feed, ring, pair, places, acc);
        }
        const search_args *again = (const search_args *)arguments_again(args);
        if (tile_offer(metric, again, kept, norms, feed, tiles_at(ring, number), acc))
            AT(crowded, number % 2) = number;
        tile_look_ahead(again, feed, ring, number + 1);
    }
    copies_wait(0);
    barrier();
}

DEVICE void tile_search(int32_t metric, const search_args *args)
{
    SHARED_DYNAMIC(float, dynamic);
    SHARED(tile_ring, ring, 1);
    SHARED(uint64_t, threshold, TILE_QUERIES_MAX);
    SHARED(uint32_t, length, TILE_QUERIES_MAX);
    SHARED(float, gate, TILE_QUERIES_MAX);
    SHARED(uint32_t, crowded, 2);
    SHARED(topk, kept, 1);
    SHARED(uint32_t, numbers, 1); /* the first query's number, stored here until the end */
    SHARED(float, norms, TILE_QUERIES_MAX);
    const uint32_t block_queries = args->queries.slots / block_count_y(), first_query = block_index_y() * block_queries;
    const int32_t teams = (int32_t)block_size() / TILE8_LANES, strips = (int32_t)block_queries / TILE8_SIDE;
    const int32_t row_strip = tile8_team() / strips, query_strip = tile8_team() % strips, pairs = (args->rows.chunks + 1) / 2;
    const size_t first_list = (size_t)block_index() * args->queries.slots + first_query;
    const uint32_t queries_left = args->queries.count - first_query;
    const topk top = {threshold,
                      length,
                      gate,
                      args->lists.keys + first_list * args->lists.capacity,
                      args->queries.worst + first_query,
                      block_queries,
                      queries_left < block_queries ? queries_left : block_queries,
                      metric};
    tile_feed feed;
    feed.chunks = args->rows.chunks;
    feed.row_strips = teams / strips;
    feed.query_strips = strips;
    feed.shared = dynamic;
    feed.next = tile_begin(args, &feed);
    feed.here = feed.next;
    feed.queries = args->queries.packed + (size_t)first_query * (size_t)(feed.chunks * CANON_LANES);
    feed.pair = 0;
    feed.tile = 0;
    topk_begin(&top);
    if (thread_index() < block_queries)
        AT(norms, thread_index()) = args->queries.norms[first_query + thread_index()];
    if (thread_index() < 2)
        AT(crowded, thread_index()) = UINT32_MAX;
    if (thread_index() == 0) {
        AT(kept, 0) = top;
        AT(numbers, 0) = first_query;
        tiles_begin(ring, block_index());
    }
    for (int32_t pair = 0; args->whole && pair < pairs; pair++)
        tile8_copy_queries(dynamic + pair * strips * TILE8_QUERIES, feed.queries + pair * (2 * CANON_LANES), strips,
                           feed.chunks, teams, 2 * pair + 1 < feed.chunks);
    barrier();
    tile_look_ahead(args, &feed, ring, 0);
    const tile8_places places = tile_places_of(row_strip, query_strip);
    tile_score(metric, args, kept, norms, &places, &feed, ring, crowded);
    const topk last = AT(kept, 0);
    topk_end(&last, &((const search_args *)arguments_again(args))->lists, AT(numbers, 0));
}

KERNEL_RESIDENT(search_tile, search_args, SEARCH_THREADS, 1)
{
    tile_search(args.rows.metric == CANON_COSINE ? CANON_COSINE : CANON_DOT, &args);
}

/* Distances have their own kernel, because two such loops in one kernel make it 7% slower on an H200. */
KERNEL_RESIDENT(search_tile_l2, search_args, SEARCH_THREADS, 1)
{
    tile_search(CANON_L2, &args);
}
