/* Products of codes by AMX: tiles of 16 rows by 64 codes against tiles of 64 codes by 16 queries.
 *
 * Rows are tiles as they lie in memory, and stay in the first-level cache while the groups pass by from the second. Four sums
 * are under way at a time, so that none waits for itself, and each tile that is loaded serves two of them. The instructions
 * belong to a thread that has loaded a tile configuration; the process must have asked the system for them first.
 */
#include <immintrin.h>
#include <string.h>

#include "cpu/amx/tiles.h"
#include "cpu/avx512/vec.h"
#include "cpu/sieve.h"

enum {
    TILE_ROWS = 16,
    TILE_BYTES = 64, /* of a row of a tile */
    EDX_INT8 = 1 << 25
};

static bool present(void)
{
    return tiles_present(EDX_INT8);
}

static void one(const int8_t *query, const int8_t *rows, int32_t row_count, int32_t padded, int32_t *out)
{
    products_avx512_vnni.one(query, rows, row_count, padded, out);
}

static void pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    for (int32_t i = 0; i < padded; i += 4)
        for (int32_t q = 0; q < GROUP; q++, packed += 4)
            memcpy(packed, codes + q * padded + i, 4);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------
 * Two row tiles by two groups in the tiles 0..3, rows in 4 and 5, groups in 6 and 7. The numbers of tiles must be written out:
 * some compilers paste them into assembler. Sums are stored when the next block is under way: a store waits for the last
 * product of its tile, and would leave the multiplier idle. */

enum { BLOCK_ROWS = 2 * TILE_ROWS, BLOCK_GROUPS = 2, TILE_SUMS = TILE_ROWS * GROUP, GROUP_SUMS = UNIT_ROWS * GROUP };

static inline void store_block(int32_t *out)
{
    _tile_stored(0, out, TILE_BYTES);
    _tile_stored(1, out + TILE_SUMS, TILE_BYTES);
    _tile_stored(2, out + GROUP_SUMS, TILE_BYTES);
    _tile_stored(3, out + GROUP_SUMS + TILE_SUMS, TILE_BYTES);
}

/* The sums of a block; on the way, stores those of the block before, which go to `before`. */
static inline void block(const int8_t *packed, int64_t group_bytes, const int8_t *rows, int32_t padded, int32_t *before)
{
    const int8_t *below = rows + TILE_ROWS * padded;
    _tile_loadd(4, rows, padded);
    _tile_loadd(6, packed, TILE_BYTES);
    _tile_stored(0, before, TILE_BYTES);
    _tile_zero(0);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(5, below, padded);
    _tile_stored(1, before + TILE_SUMS, TILE_BYTES);
    _tile_zero(1);
    _tile_dpbssd(1, 5, 6);
    _tile_loadd(7, packed + group_bytes, TILE_BYTES);
    _tile_stored(2, before + GROUP_SUMS, TILE_BYTES);
    _tile_zero(2);
    _tile_dpbssd(2, 4, 7);
    _tile_stored(3, before + GROUP_SUMS + TILE_SUMS, TILE_BYTES);
    _tile_zero(3);
    _tile_dpbssd(3, 5, 7);
    for (int32_t i = TILE_BYTES; i < padded; i += TILE_BYTES) {
        _tile_loadd(4, rows + i, padded);
        _tile_loadd(6, packed + i * GROUP, TILE_BYTES);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(5, below + i, padded);
        _tile_dpbssd(1, 5, 6);
        _tile_loadd(7, packed + group_bytes + i * GROUP, TILE_BYTES);
        _tile_dpbssd(2, 4, 7);
        _tile_dpbssd(3, 5, 7);
    }
}

static void one_row_tile(const int8_t *packed, const int8_t *rows, int32_t padded, int32_t *out)
{
    _tile_zero(0);
    for (int32_t i = 0; i < padded; i += TILE_BYTES) {
        _tile_loadd(4, rows + i, padded);
        _tile_loadd(6, packed + i * GROUP, TILE_BYTES);
        _tile_dpbssd(0, 4, 6);
    }
    _tile_stored(0, out, TILE_BYTES);
}

/* ---- groups ---------------------------------------------------------------------------------------------------------------
 */

/* What a call works on, and what becomes of it. */
typedef struct work {
    const int8_t *packed;
    int64_t group_bytes;
    const int8_t *rows;
    int32_t padded;
    int32_t *out;
    const screen_runs *runs; /* NULL: products alone */
    const screen_limits *limits;
    uint16_t (*candidates)[SCREEN_RUNS];
} work;

static inline void sieve_tile(const work *w, int32_t group, int32_t row)
{
    const int32_t run = row / SCREEN_RUN;
    w->candidates[group][run] = sieve_run(w->out + (group * UNIT_ROWS + row) * GROUP, w->runs, run, w->limits + group);
}

static inline void sieve_block(const work *w, int32_t group, int32_t row)
{
    sieve_tile(w, group, row);
    sieve_tile(w, group, row + TILE_ROWS);
    sieve_tile(w, group + 1, row);
    sieve_tile(w, group + 1, row + TILE_ROWS);
}

/* Whole blocks, in this order: all rows for two groups, then the next two. What the multiplier makes is tested two blocks
 * later, by units that have nothing else to do. */
static inline __attribute__((always_inline)) void blocks(const work *w, int32_t group_count, int32_t row_count, bool sieved)
{
    const int32_t in_group = row_count / BLOCK_ROWS, count = group_count / BLOCK_GROUPS * in_group;
    if (count == 0)
        return;
    int32_t group = 0, row = 0; /* of the block before */
    for (int32_t b = 0; b < count; b++) {
        const int32_t g = b / in_group * BLOCK_GROUPS, r = b % in_group * BLOCK_ROWS;
        block(w->packed + g * w->group_bytes, w->group_bytes, w->rows + r * w->padded, w->padded,
              w->out + (group * UNIT_ROWS + row) * GROUP);
        if (sieved && b > 0)
            sieve_block(w, group, row);
        group = g;
        row = r;
    }
    store_block(w->out + (group * UNIT_ROWS + row) * GROUP);
    if (sieved)
        sieve_block(w, group, row);
}

static inline __attribute__((always_inline)) void all_groups(const work *w, int32_t group_count, int32_t row_count, bool sieved)
{
    blocks(w, group_count, row_count, sieved);
    const int32_t in_blocks = group_count / BLOCK_GROUPS * BLOCK_GROUPS;
    for (int32_t g = 0; g < group_count; g++) {
        for (int32_t r = g < in_blocks ? row_count / BLOCK_ROWS * BLOCK_ROWS : 0; r < row_count; r += TILE_ROWS) {
            one_row_tile(w->packed + g * w->group_bytes, w->rows + r * w->padded, w->padded,
                         w->out + (g * UNIT_ROWS + r) * GROUP);
            if (sieved)
                sieve_tile(w, g, r);
        }
    }
}

static void groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                   int32_t *out)
{
    const work w = {packed, packed_group_bytes(&products_amx, padded), prepared, padded, out, NULL, NULL, NULL};
    all_groups(&w, group_count, row_count, false);
}

static void groups_sieved(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                          int32_t *out, const screen_runs *runs, const screen_limits *limits,
                          uint16_t (*candidates)[SCREEN_RUNS])
{
    const work w = {packed, packed_group_bytes(&products_amx, padded), prepared, padded, out, runs, limits, candidates};
    all_groups(&w, group_count, row_count, true);
}

const screen_products products_amx = {.name = "amx",
                                      .present = present,
                                      .code_bytes = 1,
                                      .begin = tiles_begin,
                                      .end = tiles_end,
                                      .one = one,
                                      .pack = pack,
                                      .groups = groups,
                                      .groups_sieved = groups_sieved};
