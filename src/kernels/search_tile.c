/* Scores of several queries against all rows of any length: 32 lanes take eight rows and eight queries at a time.
 *
 * Arithmetic is bound by how fast operands come out of shared memory. A lane has two of the 64 accumulators of each of the 64
 * pairs, 128 registers; for that many multiply-adds it loads 8 bytes of sixteen vectors, which takes shared memory as long as
 * the multiply-adds take. In the end the sums are folded across the lanes: at each step a lane adds the neighbour's share of
 * those it keeps and hands over its share of the others. Which those are differs from lane to lane, but not where they are: a
 * lane has query i ^ (its low three bits) in place i and row r ^ (its next two bits) in place r, so that it always keeps
 * the even place and gives the odd one. The order of additions is the canonical one: a sum of two is the same from either side.
 *
 * A block has eight such teams: each has its own octet of the block's queries, and those that share one have different rows.
 * The queries are in shared memory whole where they fit, or come with the rows, which go through it in stages of two runs,
 * several of them on their way.
 */
#include "kernels/simt.h"

#include "kernels/pack.h"
#include "kernels/tiles.h"
#include "kernels/topk.h"

enum {
    TILE_SIDE = SEARCH_TILE_SIDE,
    TILE_PAIRS = TILE_SIDE * TILE_SIDE,
    TILE_LANES = 32,
    TILE_SWAPPED = 4, /* row places whose order differs from lane to lane; four rows behind each is another */
    TILE_OCTET = SEARCH_TILE_OCTET_FLOATS,
    TILE_ODD = TILE_OCTET / 2, /* in an octet: floats before its second runs. 16 spare ones spread the two over the banks */
    TILE_REFRESH = 16          /* after so many tiles at most, a block asks what the others have found */
};

/* Where a lane finds its shares, in floats from the beginning of a stage's rows, or of its queries. */
typedef struct tile_places {
    int32_t rows[TILE_SWAPPED];
    int32_t queries[TILE_SIDE];
} tile_places;

/* What a block works on, and how far its copies are. */
typedef struct tile_feed {
    float *queries;    /* shared: all runs of the block's queries, if they are whole */
    float *stages;     /* shared */
    const float *from; /* the block's queries in global memory */
    int32_t runs;
    uint32_t row_octets, query_octets;
    uint32_t begun; /* stages that were begun, or would have been */
    uint32_t tile;  /* of the next stage, among the block's */
    int32_t pair;   /* of runs, of the next stage */
    bool more;      /* there is a next stage */
} tile_feed;

DEVICE int32_t tile_lane(void)
{
    return (int32_t)(thread_index() % TILE_LANES);
}

DEVICE f32x2 tile_step(bool l2, f32x2 q, f32x2 x, f32x2 acc)
{
    const float qx = l2 ? q.x - x.x : q.x, qy = l2 ? q.y - x.y : q.y;
    acc.x = fma_f32(qx, l2 ? qx : x.x, acc.x);
    acc.y = fma_f32(qy, l2 ? qy : x.y, acc.y);
    return acc;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

/* Begins to copy two runs of eight vectors, or their last odd one: 32 threads a vector, 16 bytes a thread. In memory two runs
 * are interleaved (packed.h), here they are not. */
DEVICE void tile_copy(float *octet, const float *vectors, int32_t runs, int32_t pair)
{
    const int32_t vector = (int32_t)thread_index() / TILE_LANES, piece = tile_lane();
    const bool two = 2 * pair + 1 < runs;
    const int32_t at = two ? piece % 2 * TILE_ODD + piece / 2 * 4 : piece * 4;
    const float *from = vectors + (size_t)vector * (size_t)(runs * CANON_LANES) + pair * (2 * CANON_LANES) + piece * 4;
    if (two || piece < PACKED_GROUPS)
        copy_16((uint32_t *)AT_RANGE(octet, vector * CANON_LANES + at, 4), (const uint32_t *)from);
}

DEVICE uint32_t tile_stage_octets(const search_args *args, const tile_feed *feed)
{
    return feed->row_octets + (args->whole ? 0 : feed->query_octets);
}

DEVICE size_t tile_octet_floats(const tile_feed *feed)
{
    return (size_t)feed->runs * (CANON_LANES * TILE_SIDE);
}

/* Begins the next stage, if there is one. By all threads, now and then with barriers. */
DEVICE void tile_fetch(const search_args *args, tile_feed *feed, tile_ring *ring)
{
    if (feed->more) {
        float *stage = feed->stages + feed->begun % args->stages * tile_stage_octets(args, feed) * TILE_OCTET;
        const float *rows = IN_GLOBAL(const float, tiles_at(ring, feed->tile)->rows);
        for (uint32_t i = 0; i < feed->row_octets; i++)
            tile_copy(stage + i * TILE_OCTET, rows + i * tile_octet_floats(feed), feed->runs, feed->pair);
        stage += feed->row_octets * TILE_OCTET;
        for (uint32_t i = 0; !args->whole && i < feed->query_octets; i++)
            tile_copy(stage + i * TILE_OCTET, feed->from + i * tile_octet_floats(feed), feed->runs, feed->pair);
        if (2 * ++feed->pair >= feed->runs) {
            feed->pair = 0;
            feed->tile++;
            feed->more = tiles_have(&args->rows, feed->row_octets * TILE_SIDE, args->lists.parts, ring, feed->tile);
        }
    }
    feed->begun++;
    copies_commit();
}

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

/* One run of all pairs. `rows` and `queries` are the lane's own, whose places differ from lane to lane. */
DEVICE void tile_run(bool l2, bool first, const float *rows, const float *queries, const tile_places *places, f32x2 *acc)
{
    const f32x2 zero = {0.0f, 0.0f};
    f32x2 x[TILE_SIDE];
    UNROLL
    for (int32_t r = 0; r < TILE_SIDE; r++)
        x[r] = load_f32x2(AT_RANGE(rows, places->rows[r % TILE_SWAPPED] + r / TILE_SWAPPED * (TILE_SWAPPED * CANON_LANES), 2));
    UNROLL
    for (int32_t i = 0; i < TILE_SIDE; i++) {
        const f32x2 q = load_f32x2(AT_RANGE(queries, places->queries[i], 2));
        UNROLL
        for (int32_t r = 0; r < TILE_SIDE; r++)
            acc[r * TILE_SIDE + i] = tile_step(l2, q, x[r], first ? zero : acc[r * TILE_SIDE + i]);
    }
}

/* Waits for the next stage, and begins the one that takes the place of the one before. By all threads. */
DEVICE void tile_advance(const search_args *args, tile_feed *feed, tile_ring *ring)
{
    copies_wait((int32_t)args->stages - 2);
    barrier();
    tile_fetch(args, feed, ring);
}

/* The runs of stage `number`, which has pair `pair` of them. */
DEVICE void tile_pair(bool l2, bool first, const search_args *args, const tile_feed *feed, uint32_t number, int32_t pair,
                      const tile_places *places, f32x2 *acc)
{
    const float *rows = feed->stages + number % args->stages * tile_stage_octets(args, feed) * TILE_OCTET;
    const float *queries =
        args->whole ? feed->queries + (uint32_t)pair * feed->query_octets * TILE_OCTET : rows + feed->row_octets * TILE_OCTET;
    tile_run(l2, first, rows, queries, places, acc);
    if (2 * pair + 1 < feed->runs)
        tile_run(l2, false, rows + TILE_ODD, queries + TILE_ODD, places, acc);
}

/* From a lane's shares of all sums to two whole ones: of its query, and of the rows in places 0 and 4. */
DEVICE void tile_fold(const f32x2 *acc, float *totals)
{
    float sums[TILE_SIDE];
    UNROLL
    for (int32_t r = 0; r < TILE_SIDE; r++) {
        float places[TILE_SIDE];
        UNROLL
        for (int32_t i = 0; i < TILE_SIDE; i++)
            places[i] = acc[r * TILE_SIDE + i].x + acc[r * TILE_SIDE + i].y;
        UNROLL
        for (int32_t i = 0; i < TILE_SIDE; i += 2)
            places[i] += wave_shuffle_xor_f32(places[i + 1], 1);
        places[0] += wave_shuffle_xor_f32(places[2], 2);
        places[4] += wave_shuffle_xor_f32(places[6], 2);
        sums[r] = places[0] + wave_shuffle_xor_f32(places[4], 4);
    }
    UNROLL
    for (int32_t r = 0; r < TILE_SIDE; r += 2)
        sums[r] += wave_shuffle_xor_f32(sums[r + 1], 8);
    totals[0] = sums[0] + wave_shuffle_xor_f32(sums[2], 16);
    totals[1] = sums[4] + wave_shuffle_xor_f32(sums[6], 16);
}

/* What a lane knows of the pairs whose sums end with it. */
typedef struct tile_mine {
    uint32_t query; /* among the block's */
    uint32_t row;   /* in the tile; the other is TILE_SWAPPED behind it */
    float norm;     /* the query's */
} tile_mine;

/* Offers the two sums if they pass the gate. Says whether a list is longer than its trigger. */
DEVICE bool tile_offer(const search_args *args, const topk *top, const tile_mine *mine, const row_word *tile,
                       const float *row_norms, const float *totals)
{
    const float gate = AT(top->gate, mine->query);
    bool crowded = false;
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t row = mine->row + i * TILE_SWAPPED;
        if (topk_gate_open(top->metric, gate, totals[i], mine->norm, row_norms[i]) && (tile->admitted >> row & 1))
            crowded |= topk_offer(top, &args->lists, mine->query, totals[i], mine->norm, row_norms[i], tile->first_row + row) >
                       args->lists.trigger;
    }
    return crowded;
}

/* Scores the tiles of the block's part, one after the other. Tile i leaves word of crowded lists in crowded[i % 2]: its number,
 * which all threads find there behind the next barrier. */
DEVICE void tile_score(bool l2, const search_args *args, const topk *top, const tile_mine *mine, const tile_places *places,
                       tile_feed *feed, tile_ring *ring, uint32_t *crowded)
{
    uint32_t stage = 0;
    feed->more = tiles_have(&args->rows, feed->row_octets * TILE_SIDE, args->lists.parts, ring, 0);
    for (uint32_t i = 1; i < args->stages; i++)
        tile_fetch(args, feed, ring);
    for (uint32_t number = 0; feed->more || number < feed->tile; number++) {
        const row_word *tile = tiles_at(ring, number);
        f32x2 acc[TILE_PAIRS];
        float row_norms[2] = {0.0f, 0.0f}, totals[2];
        if (top->metric == CANON_COSINE) {
            row_norms[0] = IN_GLOBAL(const float, tile->norms)[mine->row];
            row_norms[1] = IN_GLOBAL(const float, tile->norms)[mine->row + TILE_SWAPPED];
        }
        tile_advance(args, feed, ring);
        const uint32_t before = number - 1;
        if (number > 0 && (AT(crowded, before % 2) == before || (number & before) == 0 || number % TILE_REFRESH == 0)) {
            topk_tend(top, &args->lists, args->lists.trigger, args->lists.kept_max);
            barrier();
        }
        tile_pair(l2, true, args, feed, stage++, 0, places, acc);
        UNROLL_BY(1)
        for (int32_t pair = 1; 2 * pair < feed->runs; pair++) {
            tile_advance(args, feed, ring);
            tile_pair(l2, false, args, feed, stage++, pair, places, acc);
        }
        tile_fold(acc, totals);
        if (tile_offer(args, top, mine, tile, row_norms, totals))
            AT(crowded, number % 2) = number;
    }
    copies_wait(0);
    barrier();
}

DEVICE tile_places tile_places_of(uint32_t row_octet, uint32_t query_octet)
{
    const int32_t lane = tile_lane();
    tile_places places;
    UNROLL
    for (int32_t r = 0; r < TILE_SWAPPED; r++)
        places.rows[r] = (int32_t)row_octet * TILE_OCTET + (r ^ lane / TILE_SIDE) * CANON_LANES + lane * 2;
    UNROLL
    for (int32_t i = 0; i < TILE_SIDE; i++)
        places.queries[i] = (int32_t)query_octet * TILE_OCTET + (i ^ lane % TILE_SIDE) * CANON_LANES + lane * 2;
    return places;
}

DEVICE void search_tile(bool l2, const search_args *args)
{
    SHARED_DYNAMIC(float, dynamic);
    SHARED(tile_ring, ring, 1);
    SHARED(uint64_t, threshold, SEARCH_TILE_OCTETS *TILE_SIDE);
    SHARED(uint32_t, length, SEARCH_TILE_OCTETS *TILE_SIDE);
    SHARED(float, gate, SEARCH_TILE_OCTETS *TILE_SIDE);
    SHARED(uint32_t, crowded, 2);
    const uint32_t block_queries = args->queries.slots / block_count_y(), first_query = block_index_y() * block_queries;
    const uint32_t octets = block_queries / TILE_SIDE, team = thread_index() / TILE_LANES;
    const uint32_t row_octet = team / octets, query_octet = team % octets, pairs = ((uint32_t)args->rows.runs + 1) / 2;
    const size_t first_list = (size_t)block_index() * args->queries.slots + first_query;
    const uint32_t queries_left = args->queries.count - first_query;
    const topk top = {threshold,
                      length,
                      gate,
                      args->lists.keys + first_list * args->lists.capacity,
                      args->queries.worst + first_query,
                      block_queries,
                      queries_left < block_queries ? queries_left : block_queries,
                      l2 ? CANON_L2 : args->rows.metric};
    tile_feed feed;
    feed.queries = dynamic;
    feed.stages = dynamic + (args->whole ? pairs * octets * TILE_OCTET : 0);
    feed.from = args->queries.packed + (size_t)first_query * (size_t)(args->rows.runs * CANON_LANES);
    feed.runs = args->rows.runs;
    feed.row_octets = SEARCH_TILE_OCTETS / octets;
    feed.query_octets = octets;
    feed.begun = 0;
    feed.tile = 0;
    feed.pair = 0;
    feed.more = false;
    topk_begin(&top);
    if (thread_index() < 2)
        AT(crowded, thread_index()) = UINT32_MAX;
    if (thread_index() == 0)
        tiles_begin(ring, block_index());
    for (uint32_t pair = 0; args->whole && pair < pairs; pair++)
        for (uint32_t i = 0; i < octets; i++)
            tile_copy(dynamic + (pair * octets + i) * TILE_OCTET, feed.from + i * tile_octet_floats(&feed), feed.runs,
                      (int32_t)pair);
    barrier();
    tile_mine mine;
    mine.query = query_octet * TILE_SIDE + (uint32_t)tile_lane() % TILE_SIDE;
    mine.row = row_octet * TILE_SIDE + (uint32_t)tile_lane() / TILE_SIDE;
    mine.norm = args->queries.norms[first_query + mine.query];
    const tile_places places = tile_places_of(row_octet, query_octet);
    tile_score(l2, args, &top, &mine, &places, &feed, ring, crowded);
    topk_end(&top, &args->lists, first_query);
}

KERNEL_RESIDENT(search_tile_dot, search_args, SEARCH_THREADS, 1)
{
    search_tile(false, &args);
}

KERNEL_RESIDENT(search_tile_l2, search_args, SEARCH_THREADS, 1)
{
    search_tile(true, &args);
}
