/* Eight rows and eight queries by 32 lanes: what search_tile_* and search_stream_* have in common.
 *
 * A lane has two of the 64 accumulators of each of the 64 pairs, 128 registers; for that many multiply-adds it loads 8 bytes of
 * sixteen vectors, which takes shared memory as long as the multiply-adds take. In the end the sums are folded across the
 * lanes: at each step a lane adds the neighbour's share of those it keeps and hands over its share of the others, so that it
 * ends with two. At the first step, which has half of the work, it is always the even place that it keeps: a lane has query
 * i ^ (its lowest bit) in place i. The order of additions is the canonical one: a sum of two is the same from either side.
 */
#ifndef WW_KERNELS_SEARCH_OCTETS_H
#define WW_KERNELS_SEARCH_OCTETS_H

#include "kernels/simt/simt.h"

#include "kernels/search/pack.h"
#include "kernels/search/search.h"

enum {
    OCTET_SIDE = SEARCH_TILE_SIDE,
    OCTET_PAIRS = OCTET_SIDE * OCTET_SIDE,
    OCTET_LANES = SEARCH_TILE_LANES,
    OCTET_QUERIES = SEARCH_TILE_QUERIES_FLOATS, /* floats of two runs of eight queries in shared memory; ... */
    OCTET_QUERIES_ODD = OCTET_QUERIES / 2       /* ... where their second runs begin */
};

/* Where a lane finds its shares, in floats from where the runs of the rows begin, or of the queries. */
typedef struct octet_places {
    int32_t rows[2];    /* of the first two; the others are behind them */
    int32_t queries[2]; /* the same; these differ from lane to lane */
} octet_places;

DEVICE int32_t octet_lane(void)
{
    return (int32_t)(thread_index() % OCTET_LANES);
}

/* Who works on an octet of rows and one of queries together: number so and so of the block. */
DEVICE int32_t octet_team(void)
{
    return (int32_t)thread_index() / OCTET_LANES;
}

/* Begins to copy two runs of `octets` octets of queries, or their last odd one, which `teams` teams do together: 32 threads a
 * query, 16 bytes a thread. `from` is where the runs of the first query begin. Two runs, interleaved in memory (packed.h), are
 * taken apart. */
DEVICE void octet_copy_queries(float *to, const float *from, int32_t octets, int32_t runs, int32_t teams, bool two)
{
    const int32_t piece = octet_lane(), at = two ? piece % 2 * OCTET_QUERIES_ODD + piece / 2 * 4 : piece * 4;
    if (!two && piece >= PACKED_GROUPS)
        return;
    for (int32_t v = octet_team(); v < octets * OCTET_SIDE; v += teams)
        copy_16((uint32_t *)AT_RANGE(to, v / OCTET_SIDE * OCTET_QUERIES + v % OCTET_SIDE * CANON_LANES + at, 4),
                (const uint32_t *)(from + (v * runs * CANON_LANES + piece * 4))); /* 2^21 floats at most */
}

DEVICE f32x2 octet_step(int32_t metric, f32x2 q, f32x2 x, f32x2 acc)
{
    const bool l2 = metric == CANON_L2;
    const float qx = l2 ? q.x - x.x : q.x, qy = l2 ? q.y - x.y : q.y;
    acc.x = fma_f32(qx, l2 ? qx : x.x, acc.x);
    acc.y = fma_f32(qy, l2 ? qy : x.y, acc.y);
    return acc;
}

/* One run of all pairs, the rows `row_floats` apart. */
DEVICE void octet_run(int32_t metric, bool first, const float *rows, int32_t row_floats, const float *queries,
                      const octet_places *places, f32x2 *acc)
{
    const f32x2 zero = {0.0f, 0.0f};
    f32x2 x[OCTET_SIDE];
    UNROLL
    for (int32_t r = 0; r < OCTET_SIDE; r++)
        x[r] = load_f32x2(AT_RANGE(rows, places->rows[r % 2] + r / 2 * 2 * row_floats, 2));
    UNROLL
    for (int32_t i = 0; i < OCTET_SIDE; i++) {
        const f32x2 q = load_f32x2(AT_RANGE(queries, places->queries[i % 2] + i / 2 * (2 * CANON_LANES), 2));
        UNROLL
        for (int32_t r = 0; r < OCTET_SIDE; r++)
            acc[r * OCTET_SIDE + i] = octet_step(metric, q, x[r], first ? zero : acc[r * OCTET_SIDE + i]);
    }
}

/* A lane whose bit of `mask` is set keeps the second sum and gives its share of the first away, the others the other way round.
 */
DEVICE float octet_choose(float first, float second, uint32_t mask)
{
    const bool upper = ((uint32_t)octet_lane() & mask) != 0;
    const float keep = upper ? second : first, give = upper ? first : second;
    return keep + wave_shuffle_xor_f32(give, mask);
}

/* From a lane's shares of all sums to two whole ones: of query lane % 8, and of rows lane / 8 and four behind it. Rows may be
 * `exchanged` as the queries are: the lane has row r ^ (its fourth bit) in place r. */
DEVICE void octet_fold(const f32x2 *acc, bool exchanged, float *totals)
{
    float sums[OCTET_SIDE];
    UNROLL
    for (int32_t r = 0; r < OCTET_SIDE; r++) {
        float places[OCTET_SIDE];
        UNROLL
        for (int32_t i = 0; i < OCTET_SIDE; i++)
            places[i] = acc[r * OCTET_SIDE + i].x + acc[r * OCTET_SIDE + i].y;
        UNROLL
        for (int32_t i = 0; i < OCTET_SIDE; i += 2)
            places[i] += wave_shuffle_xor_f32(places[i + 1], 1);
        sums[r] = octet_choose(octet_choose(places[0], places[2], 2), octet_choose(places[4], places[6], 2), 4);
    }
    UNROLL
    for (int32_t r = 0; r < OCTET_SIDE; r += 2)
        sums[r] = exchanged ? sums[r] + wave_shuffle_xor_f32(sums[r + 1], 8) : octet_choose(sums[r], sums[r + 1], 8);
    totals[0] = octet_choose(sums[0], sums[2], 16);
    totals[1] = octet_choose(sums[4], sums[6], 16);
}

#endif
