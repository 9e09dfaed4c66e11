/* Scores of several queries against all rows of any length: 32 lanes take four rows and eight queries at a time.
 *
 * Arithmetic is bound by how fast operands come out of shared memory. A lane has two of the 64 accumulators of each of the 32
 * pairs; for 64 multiply-adds it loads 8 bytes of twelve vectors. More pairs would need fewer bytes, but so many registers that
 * too few waves are left to work while others wait. In the end the sums are folded across the lanes: at each step a lane adds
 * the neighbour's share of those it keeps and hands over its share of the others. Which those are differs from lane to lane,
 * but not where they are: a lane has query i ^ (its low three bits) in place i and row r ^ (its next two bits) in place r, so
 * that it always keeps the even place and gives the odd one, and ends with one sum. The order of additions is the canonical
 * one: a sum of two is the same from either side.
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
    TILE_OCTET = SEARCH_TILE_OCTET, /* vectors that are together in shared memory, and queries of a team */
    TILE_ROWS = 4,                  /* of a team: half an octet */
    TILE_PAIRS = TILE_ROWS * TILE_OCTET,
    TILE_LANES = 32,
    TILE_TEAMS = SEARCH_THREADS / TILE_LANES,
    TILE_QUERIES_MAX = TILE_TEAMS * TILE_ROWS,
    TILE_FLOATS = SEARCH_TILE_OCTET_FLOATS,
    TILE_ODD =
        TILE_FLOATS - TILE_OCTET * 64, /* where an octet's second runs begin: 16 spare floats put them into other banks */
    TILE_REFRESH = 16                  /* after so many tiles at most, a block asks what the others have found */
};

/* Where a lane finds its shares of the runs that it works on, in shared memory: they move with it. */
typedef struct tile_places {
    int32_t rows[TILE_ROWS / 2];     /* and TILE_ROWS / 2 rows behind each another */
    int32_t queries[TILE_OCTET / 2]; /* likewise */
} tile_places;

/* What a block works on, and how far its copies are. */
typedef struct tile_feed {
    float *shared;
    int32_t here; /* in it: the stage that is worked on, or was last: the next is begun where that was */
    int32_t runs;
    int32_t pair; /* of runs, of the next stage */
    int32_t row_octets, query_octets;
    uint32_t tile;  /* of the next stage, among the block's */
    uint32_t known; /* how many tiles the block is known to have: all, or more than it can reach before it asks again */
} tile_feed;

DEVICE int32_t tile_lane(void)
{
    return (int32_t)(thread_index() % TILE_LANES);
}

DEVICE f32x2 tile_step(int32_t metric, f32x2 q, f32x2 x, f32x2 acc)
{
    const bool l2 = metric == CANON_L2;
    const float qx = l2 ? q.x - x.x : q.x, qy = l2 ? q.y - x.y : q.y;
    acc.x = fma_f32(qx, l2 ? qx : x.x, acc.x);
    acc.y = fma_f32(qy, l2 ? qy : x.y, acc.y);
    return acc;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

DEVICE int32_t tile_team(void)
{
    return (int32_t)thread_index() / TILE_LANES;
}

/* Begins to copy two runs of `octets` octets of vectors, or their last odd one: 32 threads a vector, 16 bytes a thread. `from`
 * is where the runs of the first vector begin. In memory two runs are interleaved (packed.h), here they are not. */
DEVICE void tile_copy(float *to, const float *from, int32_t octets, int32_t runs, bool two)
{
    const int32_t piece = tile_lane(), at = two ? piece % 2 * TILE_ODD + piece / 2 * 4 : piece * 4;
    if (!two && piece >= PACKED_GROUPS)
        return;
    for (int32_t i = 0; i < octets; i++) /* a vector a team; 2^21 floats at most */
        copy_16((uint32_t *)AT_RANGE(to, i * TILE_FLOATS + tile_team() * CANON_LANES + at, 4),
                (const uint32_t *)(from + ((i * TILE_TEAMS + tile_team()) * runs * CANON_LANES + piece * 4)));
}

/* Where the stages begin in shared memory: behind the queries, if they are whole. */
DEVICE int32_t tile_begin(const search_args *args, const tile_feed *feed)
{
    return args->whole ? (feed->runs + 1) / 2 * feed->query_octets * TILE_FLOATS : 0;
}

/* The block's queries in global memory. */
DEVICE const float *tile_queries(const search_args *args, const tile_feed *feed)
{
    return args->queries.packed +
           (size_t)(block_index_y() * (uint32_t)feed->query_octets * TILE_OCTET) * (size_t)(feed->runs * CANON_LANES);
}

DEVICE int32_t tile_stage_floats(const search_args *args, const tile_feed *feed)
{
    return (feed->row_octets + (args->whole ? 0 : feed->query_octets)) * TILE_FLOATS;
}

/* Sees to it that the tiles which can be begun before tile `number` is done are known. By all threads, now and then with
 * barriers: not while a lane's registers are full of sums. */
DEVICE void tile_look_ahead(const search_args *args, tile_feed *feed, tile_ring *ring, uint32_t number)
{
    while (feed->known < number + SEARCH_STAGES_MAX &&
           tiles_have(&args->rows, (uint32_t)feed->row_octets * TILE_OCTET, args->lists.parts, ring, feed->known))
        feed->known++;
}

/* Begins the next stage, if there is one, at `stage` in shared memory. By all threads. */
DEVICE void tile_fetch(const search_args *args, tile_feed *feed, tile_ring *ring, int32_t stage)
{
    if (feed->tile < feed->known) {
        const bool two = 2 * feed->pair + 1 < feed->runs;
        const int32_t at = feed->pair * (2 * CANON_LANES);
        const float *rows = IN_GLOBAL(const float, tiles_at(ring, feed->tile)->rows);
        tile_copy(feed->shared + stage, rows + at, feed->row_octets, feed->runs, two);
        if (!args->whole)
            tile_copy(feed->shared + (stage + feed->row_octets * TILE_FLOATS), tile_queries(args, feed) + at,
                      feed->query_octets, feed->runs, two);
        if (2 * ++feed->pair >= feed->runs) {
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

/* One run of all pairs. */
DEVICE void tile_run(int32_t metric, bool first, const float *shared, const tile_places *places, f32x2 *acc)
{
    const f32x2 zero = {0.0f, 0.0f};
    f32x2 x[TILE_ROWS];
    UNROLL
    for (int32_t r = 0; r < TILE_ROWS; r++)
        x[r] = load_f32x2(AT_RANGE(shared, places->rows[r % 2] + r / 2 * (2 * CANON_LANES), 2));
    UNROLL
    for (int32_t i = 0; i < TILE_OCTET; i++) {
        const f32x2 q = load_f32x2(AT_RANGE(shared, places->queries[i % 4] + i / 4 * (4 * CANON_LANES), 2));
        UNROLL
        for (int32_t r = 0; r < TILE_ROWS; r++)
            acc[r * TILE_OCTET + i] = tile_step(metric, q, x[r], first ? zero : acc[r * TILE_OCTET + i]);
    }
}

/* Goes on by so many floats. */
DEVICE void tile_move(tile_places *places, int32_t rows, int32_t queries)
{
    UNROLL
    for (int32_t i = 0; i < TILE_ROWS / 2; i++)
        places->rows[i] += rows;
    UNROLL
    for (int32_t i = 0; i < TILE_OCTET / 2; i++)
        places->queries[i] += queries;
}

/* The runs of pair `pair`, from the stage that has come; and begins another where the one before was. */
DEVICE void tile_pair(int32_t metric, bool first, const search_args *args, tile_feed *feed, tile_ring *ring, int32_t pair,
                      tile_places *places, f32x2 *acc)
{
    const int32_t floats = tile_stage_floats(args, feed), count = (int32_t)args->stages;
    const int32_t on = feed->here == tile_begin(args, feed) + (count - 1) * floats ? (1 - count) * floats : floats;
    tile_fetch(args, feed, ring, feed->here);
    feed->here += on;
    tile_move(places, on, args->whole ? feed->query_octets * TILE_FLOATS : on);
    tile_run(metric, first, feed->shared, places, acc);
    if (2 * pair + 1 < feed->runs)
        tile_run(metric, false, feed->shared + TILE_ODD, places, acc);
}

/* A lane whose bit of `mask` is set keeps the second sum and gives its share of the first away, the others the other way round.
 */
DEVICE float tile_choose(float first, float second, uint32_t mask)
{
    const bool upper = ((uint32_t)tile_lane() & mask) != 0;
    const float keep = upper ? second : first, give = upper ? first : second;
    return keep + wave_shuffle_xor_f32(give, mask);
}

/* From a lane's shares of all sums to a whole one: of its query and its row. */
DEVICE float tile_fold(const f32x2 *acc)
{
    float sums[TILE_ROWS];
    UNROLL
    for (int32_t r = 0; r < TILE_ROWS; r++) {
        float places[TILE_OCTET];
        UNROLL
        for (int32_t i = 0; i < TILE_OCTET; i++)
            places[i] = acc[r * TILE_OCTET + i].x + acc[r * TILE_OCTET + i].y;
        UNROLL
        for (int32_t i = 0; i < TILE_OCTET; i += 2)
            places[i] += wave_shuffle_xor_f32(places[i + 1], 1);
        places[0] += wave_shuffle_xor_f32(places[2], 2);
        places[4] += wave_shuffle_xor_f32(places[6], 2);
        sums[r] = tile_choose(places[0], places[4], 4);
    }
    sums[0] += wave_shuffle_xor_f32(sums[1], 8);
    sums[2] += wave_shuffle_xor_f32(sums[3], 8);
    return tile_choose(sums[0], sums[2], 16);
}

/* Offers the sum that ends with this lane if it passes the gate. Says whether its list is longer than the trigger. */
DEVICE bool tile_offer(int32_t metric, const search_args *args, const topk *top, const tile_feed *feed, const row_word *tile,
                       const f32x2 *acc)
{
    const int32_t octet = tile_team() % feed->query_octets, quad = tile_team() / feed->query_octets;
    const uint32_t query = (uint32_t)(octet * TILE_OCTET + tile_lane() % TILE_OCTET);
    const uint32_t row = (uint32_t)(quad * TILE_ROWS + tile_lane() / TILE_OCTET);
    const uint32_t first_query = block_index_y() * (uint32_t)feed->query_octets * TILE_OCTET;
    const float row_norm = metric == CANON_COSINE ? IN_GLOBAL(const float, tile->norms)[row] : 0.0f;
    const float norm = metric == CANON_COSINE ? args->queries.norms[first_query + query] : 0.0f;
    const float sum = tile_fold(acc);
    return topk_gate_open(metric, AT(top->gate, query), sum, norm, row_norm) && (tile->admitted >> row & 1) &&
           topk_offer(top, &args->lists, query, sum, norm, row_norm, tile->first_row + row) > args->lists.trigger;
}

/* Scores the tiles of the block's part, one after the other. Tile i leaves word of crowded lists in crowded[i % 2]: its number,
 * which all threads find there behind the next barrier. */
DEVICE void tile_score(int32_t metric, const search_args *args, const topk *top, tile_places *places, tile_feed *feed,
                       tile_ring *ring, uint32_t *crowded)
{
    for (int32_t i = 0; i < (int32_t)args->stages - 1; i++)
        tile_fetch(args, feed, ring, tile_begin(args, feed) + i * tile_stage_floats(args, feed));
    for (uint32_t number = 0; number < feed->known; number++) {
        f32x2 acc[TILE_PAIRS];
        tile_wait(args);
        const uint32_t before = number - 1;
        if (number > 0 && (AT(crowded, before % 2) == before || (number & before) == 0 || number % TILE_REFRESH == 0)) {
            topk_tend(top, &args->lists, args->lists.trigger, args->lists.kept_max);
            barrier();
        }
        tile_pair(metric, true, args, feed, ring, 0, places, acc);
        UNROLL_BY(1)
        for (int32_t pair = 1; 2 * pair < feed->runs; pair++) {
            tile_wait(args);
            tile_pair(metric, false, args, feed, ring, pair, places, acc);
        }
        if (args->whole)
            tile_move(places, 0, -tile_begin(args, feed)); /* to their first runs again */
        if (tile_offer(metric, args, top, feed, tiles_at(ring, number), acc))
            AT(crowded, number % 2) = number;
        tile_look_ahead(args, feed, ring, number + 1);
    }
    copies_wait(0);
    barrier();
}

/* A step before the first stage. */
DEVICE tile_places tile_places_of(const search_args *args, const tile_feed *feed)
{
    const int32_t lane = tile_lane(), octet = tile_team() % feed->query_octets, quad = tile_team() / feed->query_octets;
    const int32_t rows = feed->here + quad / 2 * TILE_FLOATS + quad % 2 * (TILE_ROWS * CANON_LANES);
    const int32_t queries = octet * TILE_FLOATS + (args->whole ? -feed->query_octets : feed->row_octets) * TILE_FLOATS +
                            (args->whole ? 0 : feed->here);
    tile_places places;
    UNROLL
    for (int32_t r = 0; r < 2; r++)
        places.rows[r] = rows + (r ^ lane / 8 % 2) * CANON_LANES + lane * 2;
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        places.queries[i] = queries + (i ^ lane % 4) * CANON_LANES + lane * 2;
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
    SHARED(topk, kept, 1); /* looked at between tiles only: not worth a register each */
    const uint32_t block_queries = args->queries.slots / block_count_y(), first_query = block_index_y() * block_queries;
    const int32_t octets = (int32_t)block_queries / TILE_OCTET, pairs = (args->rows.runs + 1) / 2;
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
    feed.runs = args->rows.runs;
    feed.row_octets = TILE_TEAMS / octets / 2;
    feed.query_octets = octets;
    feed.shared = dynamic;
    feed.here = tile_begin(args, &feed) + ((int32_t)args->stages - 1) * tile_stage_floats(args, &feed);
    feed.pair = 0;
    feed.tile = 0;
    feed.known = 0;
    topk_begin(&top);
    if (thread_index() < 2)
        AT(crowded, thread_index()) = UINT32_MAX;
    if (thread_index() == 0) {
        AT(kept, 0) = top;
        tiles_begin(ring, block_index());
    }
    for (int32_t pair = 0; args->whole && pair < pairs; pair++)
        tile_copy(dynamic + pair * octets * TILE_FLOATS, tile_queries(args, &feed) + pair * (2 * CANON_LANES), octets,
                  feed.runs, 2 * pair + 1 < feed.runs);
    barrier();
    tile_look_ahead(args, &feed, ring, 0);
    tile_places places = tile_places_of(args, &feed);
    tile_score(metric, args, kept, &places, &feed, ring, crowded);
    topk_end(kept, &args->lists, first_query);
}

/* A kernel for each metric, so that none carries the registers of another. */
#define SEARCH_TILE(name, metric)                                                                                              \
    KERNEL_RESIDENT(name, search_args, SEARCH_THREADS, 2)                                                                      \
    {                                                                                                                          \
        search_tile(metric, &args);                                                                                            \
    }

SEARCH_TILE(search_tile_cosine, CANON_COSINE)
SEARCH_TILE(search_tile_l2, CANON_L2)
SEARCH_TILE(search_tile_dot, CANON_DOT)
