/* Scores of several queries against all rows of any length: 32 lanes take eight rows and eight queries at a time.
 *
 * Arithmetic is bound by how fast operands come out of shared memory. A lane has two of the 64 accumulators of each of the 64
 * pairs, 128 registers; for that many multiply-adds it loads 8 bytes of sixteen vectors, which takes shared memory as long as
 * the multiply-adds take. In the end the sums are folded across the lanes: at each step a lane adds the neighbour's share of
 * those it keeps and hands over its share of the others, so that it ends with two. At the first step, which has half of the
 * work, it is always the even place that it keeps: a lane has query i ^ (its lowest bit) in place i. The order of additions is
 * the canonical one: a sum of two is the same from either side.
 *
 * A block has four or eight such teams: each has its own octet of the block's queries, and those that share one have different
 * rows. The queries are in shared memory whole where they fit, or come with the rows, which go through it in stages of two
 * runs, several of them on their way. Blocks of four are better where a unit has room for two: while one waits the other works.
 */
#include "kernels/simt.h"

#include "kernels/pack.h"
#include "kernels/tiles.h"
#include "kernels/topk.h"

enum {
    TILE_SIDE = SEARCH_TILE_SIDE,
    TILE_PAIRS = TILE_SIDE * TILE_SIDE,
    TILE_LANES = SEARCH_TILE_LANES,
    TILE_QUERIES_MAX = SEARCH_THREADS / TILE_LANES * TILE_SIDE,
    TILE_ROW = 2 * CANON_LANES + 16, /* floats of a row in a stage: as in memory, with 16 spare bytes behind each 128 */
    TILE_ROWS_OCTET = SEARCH_TILE_ROWS_FLOATS,
    TILE_QUERIES_OCTET = SEARCH_TILE_QUERIES_FLOATS,
    TILE_QUERIES_ODD = TILE_QUERIES_OCTET / 2, /* in an octet of queries: where their second runs begin */
    TILE_REFRESH = 16                          /* after so many tiles at most, a block asks what the others have found */
};

/* Where a lane finds its shares, in floats from the beginning of a stage's rows, or of its queries. */
typedef struct tile_places {
    int32_t rows;       /* of the first; the others are behind it */
    int32_t queries[2]; /* of the first two, which differ from lane to lane; the others are behind them */
} tile_places;

/* What a block works on, and how far its copies are. */
typedef struct tile_feed {
    const float *queries; /* in global memory, the block's */
    float *shared;
    int32_t next; /* in it: where the next stage goes */
    int32_t here; /* the stage to be worked on */
    int32_t runs;
    int32_t pair; /* of runs, of the next stage */
    int32_t row_octets, query_octets;
    uint32_t tile; /* of the next stage, among the block's */
} tile_feed;

/* A block's lists, out of shared memory: they are looked at between tiles only, and not worth registers in between. */
DEVICE topk tile_lists(int32_t metric, const topk *kept)
{
    topk lists = AT(kept, 0);
    lists.metric = metric; /* known when this is compiled */
    return lists;
}

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

/* Begins to copy two runs of `octets` octets of rows, or their last odd one: 32 threads a row, 16 bytes a thread. `from` is
 * where the runs of the first row begin. Two runs stay interleaved as in memory (packed.h): only then are the copies of
 * neighbours made together. The spare bytes put what 16 lanes read into different banks. */
DEVICE void tile_copy_rows(float *to, const float *from, int32_t octets, int32_t runs, int32_t teams, bool two)
{
    const int32_t piece = tile_lane(), place = two ? piece : 2 * piece, at = place * 4 + place / 8 * 4;
    if (!two && piece >= PACKED_GROUPS)
        return;
    for (int32_t v = tile_team(); v < octets * TILE_SIDE; v += teams)
        copy_16((uint32_t *)AT_RANGE(to, v * TILE_ROW + at, 4),
                (const uint32_t *)(from + (v * runs * CANON_LANES + piece * 4))); /* 2^21 floats at most */
}

/* The same for queries, whose two runs are taken apart: they are copied once, as a rule. */
DEVICE void tile_copy_queries(float *to, const float *from, int32_t octets, int32_t runs, int32_t teams, bool two)
{
    const int32_t piece = tile_lane(), at = two ? piece % 2 * TILE_QUERIES_ODD + piece / 2 * 4 : piece * 4;
    if (!two && piece >= PACKED_GROUPS)
        return;
    for (int32_t v = tile_team(); v < octets * TILE_SIDE; v += teams)
        copy_16((uint32_t *)AT_RANGE(to, v / TILE_SIDE * TILE_QUERIES_OCTET + v % TILE_SIDE * CANON_LANES + at, 4),
                (const uint32_t *)(from + (v * runs * CANON_LANES + piece * 4)));
}

/* Where the stages begin in shared memory: behind the queries, if they are whole. */
DEVICE int32_t tile_begin(const search_args *args, const tile_feed *feed)
{
    return args->whole ? (feed->runs + 1) / 2 * feed->query_octets * TILE_QUERIES_OCTET : 0;
}

/* The stage behind another. */
DEVICE int32_t tile_behind(const search_args *args, const tile_feed *feed, int32_t stage)
{
    const int32_t floats = feed->row_octets * TILE_ROWS_OCTET + (args->whole ? 0 : feed->query_octets * TILE_QUERIES_OCTET);
    const int32_t begin = tile_begin(args, feed);
    return stage + floats == begin + (int32_t)args->stages * floats ? begin : stage + floats;
}

/* Sees to it that the tiles which can be begun before tile `number` is done are listed, if there are so many. By all threads,
 * now and then with barriers: not while a lane's registers are full of sums. */
DEVICE void tile_look_ahead(const search_args *args, const tile_feed *feed, tile_ring *ring, uint32_t number)
{
    tiles_list(&args->rows, (uint32_t)feed->row_octets * TILE_SIDE, args->lists.parts, ring, number + SEARCH_STAGES_MAX);
}

/* Begins the next stage, if there is one. By all threads. */
DEVICE void tile_fetch(const search_args *args, tile_feed *feed, tile_ring *ring)
{
    if (feed->tile < tiles_listed(ring)) {
        const bool two = 2 * feed->pair + 1 < feed->runs;
        const int32_t teams = feed->row_octets * feed->query_octets, at = feed->pair * (2 * CANON_LANES);
        const float *rows = IN_GLOBAL(const float, tiles_at(ring, feed->tile)->rows);
        tile_copy_rows(feed->shared + feed->next, rows + at, feed->row_octets, feed->runs, teams, two);
        if (!args->whole)
            tile_copy_queries(feed->shared + (feed->next + feed->row_octets * TILE_ROWS_OCTET), feed->queries + at,
                              feed->query_octets, feed->runs, teams, two);
        feed->next = tile_behind(args, feed, feed->next);
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

/* One run of all pairs. `rows` and `queries` are the lane's own, whose places differ from lane to lane. */
DEVICE void tile_run(int32_t metric, bool first, const float *rows, const float *queries, const tile_places *places, f32x2 *acc)
{
    const f32x2 zero = {0.0f, 0.0f};
    f32x2 x[TILE_SIDE];
    UNROLL
    for (int32_t r = 0; r < TILE_SIDE; r++)
        x[r] = load_f32x2(AT_RANGE(rows, places->rows + r * TILE_ROW, 2));
    UNROLL
    for (int32_t i = 0; i < TILE_SIDE; i++) {
        const f32x2 q = load_f32x2(AT_RANGE(queries, places->queries[i % 2] + i / 2 * (2 * CANON_LANES), 2));
        UNROLL
        for (int32_t r = 0; r < TILE_SIDE; r++)
            acc[r * TILE_SIDE + i] = tile_step(metric, q, x[r], first ? zero : acc[r * TILE_SIDE + i]);
    }
}

/* The runs of pair `pair`, from the stage that is there, which is left then; and begins another stage. */
DEVICE void tile_pair(int32_t metric, bool first, const search_args *args, tile_feed *feed, tile_ring *ring, int32_t pair,
                      const tile_places *places, f32x2 *acc)
{
    tile_fetch(args, feed, ring);
    const float *rows = feed->shared + feed->here;
    const float *queries =
        args->whole ? feed->shared + pair * feed->query_octets * TILE_QUERIES_OCTET : rows + feed->row_octets * TILE_ROWS_OCTET;
    feed->here = tile_behind(args, feed, feed->here);
    tile_run(metric, first, rows, queries, places, acc);
    if (2 * pair + 1 < feed->runs)
        tile_run(metric, false, rows + 4, queries + TILE_QUERIES_ODD, places, acc);
}

/* A lane whose bit of `mask` is set keeps the second sum and gives its share of the first away, the others the other way round.
 */
DEVICE float tile_choose(float first, float second, uint32_t mask)
{
    const bool upper = ((uint32_t)tile_lane() & mask) != 0;
    const float keep = upper ? second : first, give = upper ? first : second;
    return keep + wave_shuffle_xor_f32(give, mask);
}

/* From a lane's shares of all sums to two whole ones: of its query, and of rows that are four apart. */
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
        sums[r] = tile_choose(tile_choose(places[0], places[2], 2), tile_choose(places[4], places[6], 2), 4);
    }
    UNROLL
    for (int32_t i = 0; i < 2; i++)
        totals[i] =
            tile_choose(tile_choose(sums[4 * i], sums[4 * i + 1], 8), tile_choose(sums[4 * i + 2], sums[4 * i + 3], 8), 16);
}

/* Offers the two sums that end with this lane if they pass the gate. Says whether a list is longer than its trigger. */
DEVICE bool tile_offer(int32_t metric, const search_args *args, const topk *kept, const float *norms, const tile_feed *feed,
                       const row_word *tile, const f32x2 *acc)
{
    float totals[2];
    tile_fold(acc, totals);
    const topk top = tile_lists(metric, kept);
    const int32_t octet = tile_team() % feed->query_octets, row_octet = tile_team() / feed->query_octets;
    const uint32_t query = (uint32_t)(octet * TILE_SIDE + tile_lane() % TILE_SIDE);
    const float gate = AT(top.gate, query), norm = metric == CANON_COSINE ? AT(norms, query) : 0.0f;
    bool crowded = false;
    UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const uint32_t row = (uint32_t)(row_octet * TILE_SIDE + tile_lane() / TILE_SIDE + 4 * i);
        const float row_norm = metric == CANON_COSINE ? IN_GLOBAL(const float, tile->norms)[row] : 0.0f;
        if (topk_gate_open(metric, gate, totals[i], norm, row_norm) && (tile->admitted >> row & 1))
            crowded |=
                topk_offer(&top, &args->lists, query, totals[i], norm, row_norm, tile->first_row + row) > args->lists.trigger;
    }
    return crowded;
}

/* Scores the tiles of the block's part, one after the other. Tile i leaves word of crowded lists in crowded[i % 2]: its number,
 * which all threads find there behind the next barrier. */
DEVICE void tile_score(int32_t metric, const search_args *args, const topk *kept, const float *norms, const tile_places *places,
                       tile_feed *feed, tile_ring *ring, uint32_t *crowded)
{
    for (uint32_t i = 1; i < args->stages; i++)
        tile_fetch(args, feed, ring);
    for (uint32_t number = 0; number < tiles_listed(ring); number++) {
        f32x2 acc[TILE_PAIRS];
        tile_wait(args);
        const uint32_t before = number - 1;
        if (number > 0 && (AT(crowded, before % 2) == before || (number & before) == 0 || number % TILE_REFRESH == 0)) {
            const topk top = tile_lists(metric, kept);
            topk_tend(&top, &args->lists, args->lists.trigger, args->lists.kept_max);
            barrier();
        }
        tile_pair(metric, true, args, feed, ring, 0, places, acc);
        UNROLL_BY(1)
        for (int32_t pair = 1; 2 * pair < feed->runs; pair++) {
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

DEVICE tile_places tile_places_of(int32_t row_octet, int32_t query_octet)
{
    const int32_t lane = tile_lane(), queries = query_octet * TILE_QUERIES_OCTET + lane * 2;
    tile_places places;
    places.rows = row_octet * TILE_ROWS_OCTET + lane / 2 * 8 + lane / 8 * 4 + lane % 2 * 2;
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
    const int32_t teams = (int32_t)block_size() / TILE_LANES, octets = (int32_t)block_queries / TILE_SIDE;
    const int32_t row_octet = tile_team() / octets, query_octet = tile_team() % octets, pairs = (args->rows.runs + 1) / 2;
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
    feed.row_octets = teams / octets;
    feed.query_octets = octets;
    feed.shared = dynamic;
    feed.next = tile_begin(args, &feed);
    feed.here = feed.next;
    feed.queries = args->queries.packed + (size_t)first_query * (size_t)(feed.runs * CANON_LANES);
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
        tile_copy_queries(dynamic + pair * octets * TILE_QUERIES_OCTET, feed.queries + pair * (2 * CANON_LANES), octets,
                          feed.runs, teams, 2 * pair + 1 < feed.runs);
    barrier();
    tile_look_ahead(args, &feed, ring, 0);
    const tile_places places = tile_places_of(row_octet, query_octet);
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
