/* Eight rows and eight queries by 32 lanes: shared by search_tile_* and search_stream_*.
 *
 * A lane has two of the 64 accumulators of each of the 64 pairs, 128 registers. For that many multiply-adds it loads 8 bytes of
 * sixteen vectors, which takes shared memory as long as the multiply-adds take. At the end the sums are folded across the
 * lanes: at each step a lane adds the neighbour's share of the sums it keeps and hands over its share of the others, so it ends
 * with two. At the first step, which is half of the work, it always keeps the even place: a lane has query i ^ (its lowest bit)
 * in place i. The order of additions is canonical, because a sum of two is the same from either side.
 */
#ifndef WW_KERNELS_SEARCH_TILE_8X8_H
#define WW_KERNELS_SEARCH_TILE_8X8_H

#include "kernels/simt/simt.h"

#include "kernels/search/pack_row.h"
#include "kernels/search/search_args.h"

enum {
    TILE8_SIDE = SEARCH_TILE_SIDE,
    TILE8_PAIRS = TILE8_SIDE * TILE8_SIDE,
    TILE8_LANES = SEARCH_TILE_LANES,
    TILE8_QUERIES = SEARCH_TILE_QUERIES_FLOATS, /* floats of two chunks of eight queries in shared memory */
    TILE8_QUERIES_ODD = TILE8_QUERIES / 2       /* offset of their second chunks */
};

/* Where a lane's shares are, in floats from the start of the chunks of the rows or of the queries. */
typedef struct tile8_places {
    int32_t rows[2];    /* of the first two rows; the others follow */
    int32_t queries[2]; /* of the first two queries; they differ from lane to lane */
} tile8_places;

DEVICE int32_t tile8_lane(void)
{
    return (int32_t)(thread_index() % TILE8_LANES);
}

/* Index within the block of the team that handles this strip of rows and queries. */
DEVICE int32_t tile8_team(void)
{
    return (int32_t)thread_index() / TILE8_LANES;
}

/* Starts copying two chunks of `strips` strips of queries, or their last odd chunk, with `teams` teams: 32 threads per query,
 * 16 bytes per thread. `from` is the start of the first query's chunks. Two chunks are interleaved in memory (packed_layout.h)
 * and separated here. */
DEVICE void tile8_copy_queries(float *to, const float *from, int32_t strips, int32_t chunks, int32_t teams, bool two)
{
    const int32_t piece = tile8_lane(), at = two ? piece % 2 * TILE8_QUERIES_ODD + piece / 2 * 4 : piece * 4;
    if (!two && piece >= PACKED_GROUPS)
        return;
    for (int32_t v = tile8_team(); v < strips * TILE8_SIDE; v += teams)
        copy_16((uint32_t *)AT_RANGE(to, v / TILE8_SIDE * TILE8_QUERIES + v % TILE8_SIDE * CANON_LANES + at, 4),
                (const uint32_t *)(from + (v * chunks * CANON_LANES + piece * 4))); /* at most 2^21 floats */
}

DEVICE f32x2 tile8_step(int32_t metric, f32x2 q, f32x2 x, f32x2 acc)
{
    const bool l2 = metric == CANON_L2;
    const float qx = l2 ? q.x - x.x : q.x, qy = l2 ? q.y - x.y : q.y;
    acc.x = fma_f32(qx, l2 ? qx : x.x, acc.x);
    acc.y = fma_f32(qy, l2 ? qy : x.y, acc.y);
    return acc;
}

/* Adds one chunk of all pairs; the rows are `row_floats` apart. */
DEVICE void tile8_chunk(int32_t metric, bool first, const float *rows, int32_t row_floats, const float *queries,
                        const tile8_places *places, f32x2 *acc)
{
    const f32x2 zero = {0.0f, 0.0f};
    f32x2 x[TILE8_SIDE];
    UNROLL
    for (int32_t r = 0; r < TILE8_SIDE; r++)
        x[r] = load_f32x2(AT_RANGE(rows, places->rows[r % 2] + r / 2 * 2 * row_floats, 2));
    UNROLL
    for (int32_t i = 0; i < TILE8_SIDE; i++) {
        const f32x2 q = load_f32x2(AT_RANGE(queries, places->queries[i % 2] + i / 2 * (2 * CANON_LANES), 2));
        UNROLL
        for (int32_t r = 0; r < TILE8_SIDE; r++)
            acc[r * TILE8_SIDE + i] = tile8_step(metric, q, x[r], first ? zero : acc[r * TILE8_SIDE + i]);
    }
}

/* A lane whose bit of `mask` is set keeps the second sum and gives away its share of the first; other lanes do the opposite.
 */
DEVICE float tile8_choose(float first, float second, uint32_t mask)
{
    const bool upper = ((uint32_t)tile8_lane() & mask) != 0;
    const float keep = upper ? second : first, give = upper ? first : second;
    return keep + wave_shuffle_xor_f32(give, mask);
}

/* Folds a lane's shares of all sums to two final ones: query lane % 8 with row lane / 8 and with the row four after it. Rows
 * may be `exchanged` like the queries: then the lane has row r ^ (its fourth bit) in place r. */
DEVICE void tile8_fold(const f32x2 *acc, bool exchanged, float *totals)
{
    float sums[TILE8_SIDE];
    UNROLL
    for (int32_t r = 0; r < TILE8_SIDE; r++) {
        float places[TILE8_SIDE];
        UNROLL
        for (int32_t i = 0; i < TILE8_SIDE; i++)
            places[i] = acc[r * TILE8_SIDE + i].x + acc[r * TILE8_SIDE + i].y;
        UNROLL
        for (int32_t i = 0; i < TILE8_SIDE; i += 2)
            places[i] += wave_shuffle_xor_f32(places[i + 1], 1);
        sums[r] = tile8_choose(tile8_choose(places[0], places[2], 2), tile8_choose(places[4], places[6], 2), 4);
    }
    UNROLL
    for (int32_t r = 0; r < TILE8_SIDE; r += 2)
        sums[r] = exchanged ? sums[r] + wave_shuffle_xor_f32(sums[r + 1], 8) : tile8_choose(sums[r], sums[r + 1], 8);
    totals[0] = tile8_choose(sums[0], sums[2], 16);
    totals[1] = tile8_choose(sums[4], sums[6], 16);
}

#endif
