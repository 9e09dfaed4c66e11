/* Lists the tiles of rows that a block scores: those of its part that have an admitted row.
 *
 * Finding a tile takes a chain of reads from global memory (the segment, then its mask): a microsecond, too long to spend on
 * each. So one wave checks 32 tiles at once, one per lane, and appends those with admitted rows to a ring in shared memory:
 * tile n of the block is in place n % TILES_KEPT. The next 32 are checked when the last listed one is needed.
 */
#ifndef WW_KERNELS_SEARCH_TILE_LIST_H
#define WW_KERNELS_SEARCH_TILE_LIST_H

#include "kernels/simt/simt.h"

#include "kernels/search/segment_walk.h"

enum {
    TILES_LISTED = 32, /* checked together: every wave has at least this many lanes */
    TILES_KEPT = 64    /* with room for tiles in flight; a power of two */
};

/* In shared memory. */
typedef struct tile_ring {
    row_word tiles[TILES_KEPT];
    uint32_t listed;  /* tiles listed so far */
    uint32_t next;    /* the first unchecked tile, among all tiles of all parts */
    uint32_t segment; /* segment of the last checked tiles */
} tile_ring;

/* Returns part of a word: `count` rows from `first` on. */
DEVICE row_word tile_of_word(const kernel_rows *rows, row_word word, uint32_t first, uint32_t count)
{
    const uint64_t all = count == SEARCH_WORD_ROWS ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1;
    if (row_type_is_f32(ROW_TYPE(rows))) /* rows of other types are found by their place in the word, first_row % 64 */
        word.rows += (size_t)first * (size_t)(rows->chunks * CANON_LANES);
    word.norms += first;
    word.admitted = word.admitted >> first & all;
    word.first_row += first;
    return word;
}

/* Appends at least one tile, if there are more. Called by one whole wave while no other thread reads the ring. */
DEVICE void tiles_append(const kernel_rows *rows, uint32_t tile_rows, uint32_t parts, tile_ring *tiles)
{
    const uint32_t in_word = SEARCH_WORD_ROWS / tile_rows, tile_count = rows->word_count * in_word;
    uint32_t found = 0, next = AT(tiles, 0).next;
    wave_barrier(); /* all lanes have read what one writes below, even if no tile is left */
    while (found == 0 && next < tile_count) {
        const uint32_t number = next + lane() * parts;
        uint32_t segment = AT(tiles, 0).segment;
        row_word tile = {0, 0, 0, 0};
        if (lane() < TILES_LISTED && number < tile_count)
            tile = tile_of_word(rows, row_word_at(rows, number / in_word, &segment), number % in_word * tile_rows, tile_rows);
        const uint64_t ballot = wave_ballot(tile.admitted != 0);
        const uint32_t before = (uint32_t)__builtin_popcountll(ballot & (((uint64_t)1 << lane()) - 1));
        if (tile.admitted != 0)
            AT(tiles, 0).tiles[(AT(tiles, 0).listed + before) % TILES_KEPT] = tile;
        found = (uint32_t)__builtin_popcountll(ballot);
        next += TILES_LISTED * parts;
        wave_barrier();
        if (lane() == 0)
            AT(tiles, 0).segment = segment;
        wave_barrier();
    }
    if (lane() == 0) {
        AT(tiles, 0).listed += found;
        AT(tiles, 0).next = next;
    }
}

/* Called by one thread before tiles_have(). */
DEVICE void tiles_begin(tile_ring *tiles, uint32_t part)
{
    AT(tiles, 0).listed = 0;
    AT(tiles, 0).next = part;
    AT(tiles, 0).segment = 0;
}

/* Returns true if the block has a tile `number`, which is 0 or one more than in the last call. Called by all threads after a
 * barrier; may have barriers. */
DEVICE bool tiles_have(const kernel_rows *rows, uint32_t tile_rows, uint32_t parts, tile_ring *tiles, uint32_t number)
{
    if (number == AT(tiles, 0).listed) {
        barrier();
        if (wave_index() == 0)
            tiles_append(rows, tile_rows, parts, tiles);
        barrier();
    }
    return number < AT(tiles, 0).listed;
}

/* Lists tiles until there are `count`, or no more. Called like tiles_have(). */
DEVICE void tiles_list(const kernel_rows *rows, uint32_t tile_rows, uint32_t parts, tile_ring *tiles, uint32_t count)
{
    const uint32_t tile_count = rows->word_count * (SEARCH_WORD_ROWS / tile_rows);
    if (AT(tiles, 0).listed >= count || AT(tiles, 0).next >= tile_count)
        return;
    barrier();
    if (wave_index() == 0)
        do {
            tiles_append(rows, tile_rows, parts, tiles);
            wave_barrier();
        } while (AT(tiles, 0).listed < count && AT(tiles, 0).next < tile_count);
    barrier();
}

DEVICE uint32_t tiles_listed(const tile_ring *tiles)
{
    return AT(tiles, 0).listed;
}

DEVICE const row_word *tiles_at(const tile_ring *tiles, uint32_t number)
{
    return &AT(tiles, 0).tiles[number % TILES_KEPT];
}

#endif
