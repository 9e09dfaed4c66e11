/* Scores of several queries against all rows of any length: 32 lanes take eight rows and eight queries at a time.
 *
 * How that is done, and why so, tile_8x8.h says.
 *
 * A block has four or eight such teams: each has its own strip of the block's queries, and those that share one have different
 * rows. The queries are in shared memory whole where they fit, or come with the rows, which go through it in stages of two
 * chunks, several of them on their way. Blocks of four are better where a unit has room for two: while one waits the other
 * works.
 */
#include "kernels/search/tile_8x8.h"
#include "kernels/search/tile_list.h"
#include "kernels/search/topk_lists.h"

enum {
    TILE_QUERIES_MAX = SEARCH_THREADS / TILE8_LANES * TILE8_SIDE,
    TILE_ROW = 2 * CANON_LANES + 16, /* floats of a row in a stage: as in memory, with 16 spare bytes behind each 128 */
    TILE_ROWS_STRIP = SEARCH_TILE_ROWS_FLOATS,
    TILE_REFRESH = 16 /* after so many tiles at most, a block asks what the others have found */
};

/* What a block works on, and how far its copies are. */
typedef struct tile_feed {
    const float *queries; /* in global memory, the block's */
    float *shared;
    int32_t next; /* in it: where the next stage goes */
    int32_t here; /* the stage to be worked on */
    int32_t chunks;
    int32_t pair; /* of chunks, of the next stage */
    int32_t row_strips, query_strips;
    uint32_t tile; /* of the next stage, among the block's */
} tile_feed;

/* A block's lists, out of shared memory: they are looked at between tiles only, and not worth registers in between. */
DEVICE topk tile_lists(int32_t metric, const topk *kept)
{
    topk lists = AT(kept, 0);
    lists.metric = metric; /* known when this is compiled */
    return lists;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

/* Begins to copy two chunks of `strips` strips of rows, or their last odd one: 32 threads a row, 16 bytes a thread. `from` is
 * where the chunks of the first row begin. Two chunks stay interleaved as in memory (packed_layout.h): only then are the copies
 * of neighbours made together. The spare bytes put what 16 lanes read into different banks. */
DEVICE void tile_copy_rows(float *to, const float *from, int32_t strips, int32_t chunks, int32_t teams, bool two)
{
    const int32_t piece = tile8_lane(), place = two ? piece : 2 * piece, at = place * 4 + place / 8 * 4;
    if (!two && piece >= PACKED_GROUPS)
        return;
    for (int32_t v = tile8_team(); v < strips * TILE8_SIDE; v += teams)
        copy_16((uint32_t *)AT_RANGE(to, v * TILE_ROW + at, 4),
                (const uint32_t *)(from + (v * chunks * CANON_LANES + piece * 4))); /* 2^21 floats at most */
}

/* Where the stages begin in shared memory: behind the queries, if they are whole. */
DEVICE int32_t tile_begin(const search_args *args, const tile_feed *feed)
{
    return args->whole ? (feed->chunks + 1) / 2 * feed->query_strips * TILE8_QUERIES : 0;
}

/* The stage behind another. */
DEVICE int32_t tile_behind(const search_args *args, const tile_feed *feed, int32_t stage)
{
    const int32_t floats = feed->row_strips * TILE_ROWS_STRIP + (args->whole ? 0 : feed->query_strips * TILE8_QUERIES);
    const int32_t begin = tile_begin(args, feed);
    return stage + floats == begin + (int32_t)args->stages * floats ? begin : stage + floats;
}

/* Sees to it that the tiles which can be begun before tile `number` is done are listed, if there are so many. By all threads,
 * now and then with barriers: not while a lane's registers are full of sums. */
DEVICE void tile_look_ahead(const search_args *args, const tile_feed *feed, tile_ring *ring, uint32_t number)
{
    tiles_list(&args->rows, (uint32_t)feed->row_strips * TILE8_SIDE, args->lists.parts, ring, number + SEARCH_STAGES_MAX);
}

/* Begins the next stage, if there is one. By all threads. */
DEVICE void tile_fetch(const search_args *args, tile_feed *feed, tile_ring *ring)
{
    if (feed->tile < tiles_listed(ring)) {
        const bool two = 2 * feed->pair + 1 < feed->chunks;
        const int32_t teams = feed->row_strips * feed->query_strips, at = feed->pair * (2 * CANON_LANES);
        const float *rows = IN_GLOBAL(const float, tiles_at(ring, feed->tile)->rows);
        tile_copy_rows(feed->shared + feed->next, rows + at, feed->row_strips, feed->chunks, teams, two);
        if (!args->whole)
            tile8_copy_queries(feed->shared + (feed->next + feed->row_strips * TILE_ROWS_STRIP), feed->queries + at,
                               feed->query_strips, feed->chunks, teams, two);
        feed->next = tile_behind(args, feed, feed->next);
        if (2 * ++feed->pair >= feed->chunks) {
            feed->pair = 0;
            feed->tile++;
        }
    }
    copies_commit();
}

/* Waits for the next stage. By all threads; those behind it are done with the one before. */
DEVICE void tile_wait(const search_args *args)
{
    copies_wait((int32_t)args->stages - 2);
    barrier();
}

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

/* The chunks of pair `pair`, from the stage that is there, which is left then; and begins another stage. */
DEVICE void tile_pair(int32_t metric, bool first, const search_args *args, tile_feed *feed, tile_ring *ring, int32_t pair,
                      const tile8_places *places, f32x2 *acc)
{
    tile_fetch(args, feed, ring);
    const float *rows = feed->shared + feed->here;
    const float *queries =
        args->whole ? feed->shared + pair * feed->query_strips * TILE8_QUERIES : rows + feed->row_strips * TILE_ROWS_STRIP;
    feed->here = tile_behind(args, feed, feed->here);
    tile8_chunk(metric, first, rows, TILE_ROW, queries, places, acc);
    if (2 * pair + 1 < feed->chunks)
        tile8_chunk(metric, false, rows + 4, TILE_ROW, queries + TILE8_QUERIES_ODD, places, acc);
}

/* Offers the two sums that end with this lane if they pass the gate. Says whether a list is longer than its trigger. */
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

/* Scores the tiles of the block's part, one after the other. Tile i leaves word of crowded lists in crowded[i % 2]: its number,
 * which all threads find there behind the next barrier. */
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
            topk_tend(&top, &args->lists, args->lists.trigger, args->lists.kept_max);
            barrier();
        }
        tile_pair(metric, true, args, feed, ring, 0, places, acc);
        UNROLL_BY(1)
        for (int32_t pair = 1; 2 * pair < feed->chunks; pair++) {
            tile_wait(args);
            tile_pair(metric, false, args, feed, ring, pair, places, acc);
        }
        if (tile_offer(metric, args, kept, norms, feed, tiles_at(ring, number), acc))
            AT(crowded, number % 2) = number;
        tile_look_ahead(args, feed, ring, number + 1);
    }
    copies_wait(0);
    barrier();
}

DEVICE tile8_places tile_places_of(int32_t row_strip, int32_t query_strip)
{
    const int32_t lane = tile8_lane(), queries = query_strip * TILE8_QUERIES + lane * 2;
    tile8_places places;
    places.rows[0] = row_strip * TILE_ROWS_STRIP + lane / 2 * 8 + lane / 8 * 4 + lane % 2 * 2;
    places.rows[1] = places.rows[0] + TILE_ROW;
    places.queries[0] = queries + lane % 2 * CANON_LANES;
    places.queries[1] = queries + (1 - lane % 2) * CANON_LANES;
    return places;
}

DEVICE void search_tile(int32_t metric, const search_args *args)
{
    SHARED_DYNAMIC(float, dynamic);
    SHARED(tile_ring, ring, 1);
    SHARED(uint64_t, threshold, TILE_QUERIES_MAX);
    SHARED(uint32_t, length, TILE_QUERIES_MAX);
    SHARED(float, gate, TILE_QUERIES_MAX);
    SHARED(uint32_t, crowded, 2);
    SHARED(topk, kept, 1);
    SHARED(uint32_t, numbers, 1); /* the first query's, which waits here for the end */
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
    const topk last = tile_lists(metric, kept);
    topk_end(&last, &args->lists, AT(numbers, 0));
}

/* A kernel for each metric, so that none carries the registers of another. */
#define SEARCH_TILE(name, metric)                                                                                              \
    KERNEL_RESIDENT(name, search_args, SEARCH_THREADS, 1)                                                                      \
    {                                                                                                                          \
        search_tile(metric, &args);                                                                                            \
    }

SEARCH_TILE(search_tile_cosine, CANON_COSINE)
SEARCH_TILE(search_tile_l2, CANON_L2)
SEARCH_TILE(search_tile_dot, CANON_DOT)
