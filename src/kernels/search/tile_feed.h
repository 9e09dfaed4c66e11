/* Moves tiles of rows and queries through shared memory and sums a tile: shared by the kernels that score 8 x 8.
 *
 * 32 lanes, a team, handle eight rows and eight queries at a time (tile_8x8.h explains how and why). A block has four or eight
 * teams. Each has its strip of the block's queries, and teams that share a strip have different rows. Shared memory holds the
 * queries in full if they fit; otherwise they come with the rows, which pass through it in stages of two chunks, several of
 * them in flight. Blocks of four teams are better if a unit has room for two blocks: one works while the other waits.
 */
#ifndef WW_KERNELS_SEARCH_TILE_FEED_H
#define WW_KERNELS_SEARCH_TILE_FEED_H

#include "kernels/search/search_args.h"
#include "kernels/search/tile_8x8.h"
#include "kernels/search/tile_list.h"

enum {
    TILE_QUERIES_MAX = SEARCH_THREADS / TILE8_LANES * TILE8_SIDE,
    TILE_ROW = 2 * CANON_LANES + 16, /* floats of a row in a stage: as in memory, with 16 spare bytes after each 128 */
    TILE_ROWS_STRIP = SEARCH_TILE_ROWS_FLOATS
};

/* What a block works on, and how far its copies are. */
typedef struct tile_feed {
    const float *queries; /* the block's queries in global memory */
    float *shared;
    int32_t next; /* the stage to fill next */
    int32_t here; /* the stage to use next */
    int32_t chunks;
    int32_t pair; /* the pair of chunks of the next stage */
    int32_t row_strips, query_strips;
    uint32_t tile; /* the tile of the next stage, among the block's */
} tile_feed;

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

/* Starts copying two chunks of `strips` strips of rows, or their last odd chunk: 32 threads per row, 16 bytes per thread.
 * `from` is the start of the first row's chunks. Two chunks stay interleaved as in memory (packed_layout.h): only then are
 * copies of neighbours combined. The spare bytes put what 16 lanes read into different banks. */
DEVICE void tile_copy_rows(float *to, const float *from, int32_t strips, int32_t chunks, int32_t teams, bool two)
{
    const int32_t piece = tile8_lane(), place = two ? piece : 2 * piece, at = place * 4 + place / 8 * 4;
    if (!two && piece >= PACKED_GROUPS)
        return;
    for (int32_t v = tile8_team(); v < strips * TILE8_SIDE; v += teams)
        copy_16((uint32_t *)AT_RANGE(to, v * TILE_ROW + at, 4),
                (const uint32_t *)(from + (v * chunks * CANON_LANES + piece * 4))); /* at most 2^21 floats */
}

/* Like tile_copy_rows() for rows of another type, which become floats on the way. */
DEVICE void tile_copy_typed(float *to, const kernel_rows *rows, const row_word *tile, int32_t strips, int32_t pair,
                            int32_t teams)
{
    const int32_t type = ROW_TYPE(rows), piece = tile8_lane();
    const bool two = 2 * pair + 1 < rows->chunks;
    const int32_t place = two ? piece : 2 * piece, at = place * 4 + place / 8 * 4;
    const int32_t chunk = 2 * pair + (two ? piece % 2 : 0), group = two ? piece / 2 : piece;
    if (!two && piece >= PACKED_GROUPS)
        return;
    const uint32_t *from = IN_GLOBAL(const uint32_t, (const uint32_t *)tile->rows);
    for (int32_t v = tile8_team(); v < strips * TILE8_SIDE; v += teams) {
        const uint32_t row = tile->first_row % SEARCH_WORD_ROWS + (uint32_t)v;
        store_f32x4(AT_RANGE(to, v * TILE_ROW + at, 4),
                    typed_floats(type, typed_load(type, from + typed_at(type, rows->chunks, row, chunk, group))));
    }
}

/* Offset of the first stage in shared memory: after the queries, if they are held in full. */
DEVICE int32_t tile_begin(const search_args *args, const tile_feed *feed)
{
    return args->whole ? (feed->chunks + 1) / 2 * feed->query_strips * TILE8_QUERIES : 0;
}

/* The stage after another one. */
DEVICE int32_t tile_behind(const search_args *args, const tile_feed *feed, int32_t stage)
{
    const int32_t floats = feed->row_strips * TILE_ROWS_STRIP + (args->whole ? 0 : feed->query_strips * TILE8_QUERIES);
    const int32_t begin = tile_begin(args, feed);
    return stage + floats == begin + (int32_t)args->stages * floats ? begin : stage + floats;
}

/* Lists the tiles that can start before tile `number` is done, if the block has that many. All threads call it; it sometimes
 * has barriers, so do not call it while a lane's registers are full of sums. */
DEVICE void tile_look_ahead(const search_args *args, const tile_feed *feed, tile_ring *ring, uint32_t number)
{
    tiles_list(&args->rows, (uint32_t)feed->row_strips * TILE8_SIDE, args->lists.parts, ring, number + SEARCH_STAGES_MAX);
}

/* Starts filling the next stage, if there is one. Called by all threads. */
DEVICE void tile_fetch(const search_args *args, tile_feed *feed, tile_ring *ring)
{
    if (feed->tile < tiles_listed(ring)) {
        const bool two = 2 * feed->pair + 1 < feed->chunks;
        const int32_t teams = feed->row_strips * feed->query_strips, at = feed->pair * (2 * CANON_LANES);
        const row_word *tile = tiles_at(ring, feed->tile);
        if (row_type_is_f32(ROW_TYPE(&args->rows)))
            tile_copy_rows(feed->shared + feed->next, IN_GLOBAL(const float, tile->rows) + at, feed->row_strips, feed->chunks,
                           teams, two);
        else
            tile_copy_typed(feed->shared + feed->next, &args->rows, tile, feed->row_strips, feed->pair, teams);
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

/* Waits for the next stage. Called by all threads; when it returns, all are done with the previous stage. */
DEVICE void tile_wait(const search_args *args)
{
    copies_wait((int32_t)args->stages - 2);
    barrier();
}

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

/* Adds the chunks of pair `pair` from the current stage, releases it and starts filling another. */
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

#endif
