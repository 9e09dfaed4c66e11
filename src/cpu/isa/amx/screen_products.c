/* Products of codes by AMX: tiles of 16 rows by 64 codes against tiles of 64 codes by 16 queries.
 *
 * Rows are tiles as stored in memory, and stay in the first-level cache while the groups stream from the second. Four sums are
 * computed at a time, so no product waits for the previous one, and each loaded tile serves two sums. Only a thread that has
 * loaded a tile configuration may use the instructions; the process must have requested them from the system first.
 */
#include <immintrin.h>
#include <string.h>

#include "cpu/isa/amx/amx.h"
#include "cpu/isa/amx/tiles.h"
#include "cpu/isa/avx512/avx512.h"
#include "cpu/isa/avx512/vec.h"
#include "cpu/isa/screen_filter.h"

enum {
    TILE_ROWS = 16,
    TILE_BYTES = 64, /* bytes per row of a tile */
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

static void one_high(const int8_t *query, const uint8_t *highs, int32_t row_count, int32_t padded, int32_t *out)
{
    products_avx512_vnni.one_high(query, highs, row_count, padded, out);
}

static void pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    for (int32_t i = 0; i < padded; i += 4)
        for (int32_t q = 0; q < GROUP; q++, packed += 4)
            memcpy(packed, codes + q * padded + i, 4);
}

/* ---- one group ------------------------------------------------------------------------------------------------------------
 * The numbers of tiles must be literals: some compilers paste them into assembler. */

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

static void groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                   int32_t *out)
{
    for (int32_t g = 0; g < group_count; g++)
        for (int32_t r = 0; r < row_count; r += TILE_ROWS)
            one_row_tile(packed + g * packed_group_bytes(&products_amx, padded), prepared + r * padded, padded,
                         out + (g * UNIT_ROWS + r) * GROUP);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------
 * A block is two row tiles by two groups. Its sums are in tiles 0..3, rows in 4 and 5, groups in 6 and 7. A store waits for the
 * last product of its tile, and the multiplier would be idle meanwhile. So a block's sums are stored while the next block is
 * multiplied, and tested while the one after that is, by other units of the processor. Blocks follow each other without a gap:
 * all rows for two groups, then all rows for the next two. The products of a pair of groups replace those of the last pair but
 * one. */

enum { BLOCK_ROWS = 2 * TILE_ROWS, BLOCK_GROUPS = 2, TILE_PRODUCTS = TILE_ROWS * GROUP, GROUP_PRODUCTS = UNIT_ROWS * GROUP };

typedef struct work {
    const filtered_groups *job;
    int64_t group_bytes;
    uint16_t candidates[GROUPS_MAX][SCREEN_STRIPS];
} work;

/* The first group and the first row of a block. */
typedef struct place {
    int32_t group, row;
} place;

static inline int32_t *sums_of(const work *w, place at)
{
    return w->job->out + (at.group % GROUPS_MAX * UNIT_ROWS + at.row) * GROUP;
}

static inline void store_block(int32_t *out)
{
    _tile_stored(0, out, TILE_BYTES);
    _tile_stored(1, out + TILE_PRODUCTS, TILE_BYTES);
    _tile_stored(2, out + GROUP_PRODUCTS, TILE_BYTES);
    _tile_stored(3, out + GROUP_PRODUCTS + TILE_PRODUCTS, TILE_BYTES);
}

/* Starts the products of a block and stores the sums of the block before. */
static inline void begin_block(const work *w, place at, int32_t *before)
{
    const int8_t *packed = w->job->packed + at.group * w->group_bytes, *rows = w->job->prepared + at.row * w->job->padded;
    _tile_loadd(4, rows, w->job->padded);
    _tile_loadd(6, packed, TILE_BYTES);
    _tile_stored(0, before, TILE_BYTES);
    _tile_zero(0);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(5, rows + TILE_ROWS * w->job->padded, w->job->padded);
    _tile_stored(1, before + TILE_PRODUCTS, TILE_BYTES);
    _tile_zero(1);
    _tile_dpbssd(1, 5, 6);
    _tile_loadd(7, packed + w->group_bytes, TILE_BYTES);
    _tile_stored(2, before + GROUP_PRODUCTS, TILE_BYTES);
    _tile_zero(2);
    _tile_dpbssd(2, 4, 7);
    _tile_stored(3, before + GROUP_PRODUCTS + TILE_PRODUCTS, TILE_BYTES);
    _tile_zero(3);
    _tile_dpbssd(3, 5, 7);
}

static inline void go_on_with_block(const work *w, place at)
{
    const int8_t *packed = w->job->packed + at.group * w->group_bytes, *rows = w->job->prepared + at.row * w->job->padded;
    for (int32_t i = TILE_BYTES; i < w->job->padded; i += TILE_BYTES) {
        _tile_loadd(4, rows + i, w->job->padded);
        _tile_loadd(6, packed + i * GROUP, TILE_BYTES);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(5, rows + TILE_ROWS * w->job->padded + i, w->job->padded);
        _tile_dpbssd(1, 5, 6);
        _tile_loadd(7, packed + w->group_bytes + i * GROUP, TILE_BYTES);
        _tile_dpbssd(2, 4, 7);
        _tile_dpbssd(3, 5, 7);
    }
}

/* Tests both row tiles of a block for one of its groups. */
static inline void filter_tiles(work *w, int32_t group, int32_t row)
{
    const int32_t strip = row / SCREEN_STRIP, *products = sums_of(w, (place){group, row});
    uint16_t *candidates = w->candidates[group % GROUPS_MAX];
    candidates[strip] = filter_strip(products, w->job->bounds, strip, w->job->limits + group);
    candidates[strip + 1] = filter_strip(products + TILE_PRODUCTS, w->job->bounds, strip + 1, w->job->limits + group);
}

/* Calls `ready` after the last rows of a pair of groups. */
static inline void pass_on(const work *w, place at)
{
    if (at.row + BLOCK_ROWS < w->job->row_count)
        return;
    for (int32_t g = at.group; g < at.group + BLOCK_GROUPS; g++)
        w->job->ready(w->job->context, g, sums_of(w, (place){g, 0}), w->candidates[g % GROUPS_MAX]);
}

static inline void filter_block(work *w, place at)
{
    filter_tiles(w, at.group, at.row);
    filter_tiles(w, at.group + 1, at.row);
    pass_on(w, at);
}

static inline place place_after(const work *w, place at)
{
    if (at.row + BLOCK_ROWS < w->job->row_count)
        return (place){at.group, at.row + BLOCK_ROWS};
    return (place){at.group + BLOCK_GROUPS, 0};
}

/* Needs an even number of groups, at least two, and rows for whole blocks. */
static void filtered_blocks(work *w, int32_t group_count)
{
    place at = {0, 0}, before = at, older = at;
    for (int32_t made = 0; at.group < group_count; made++) {
        begin_block(w, at, sums_of(w, before));
        if (made > 1)
            filter_tiles(w, older.group, older.row);
        go_on_with_block(w, at);
        if (made > 1) {
            filter_tiles(w, older.group + 1, older.row);
            pass_on(w, older);
        }
        older = before;
        before = at;
        at = place_after(w, at);
    }
    store_block(sums_of(w, before));
    if (older.group != before.group || older.row != before.row)
        filter_block(w, older);
    filter_block(w, before);
}

static void filtered_group(work *w, int32_t group)
{
    for (int32_t r = 0; r < w->job->row_count; r += TILE_ROWS) {
        const int32_t strip = r / SCREEN_STRIP;
        one_row_tile(w->job->packed + group * w->group_bytes, w->job->prepared + r * w->job->padded, w->job->padded,
                     w->job->out + r * GROUP);
        w->candidates[0][strip] = filter_strip(w->job->out + r * GROUP, w->job->bounds, strip, w->job->limits + group);
    }
    w->job->ready(w->job->context, group, w->job->out, w->candidates[0]);
}

static void groups_filtered(const filtered_groups *job)
{
    work w = {.job = job, .group_bytes = packed_group_bytes(&products_amx, job->padded)};
    const int32_t in_blocks = job->row_count % BLOCK_ROWS == 0 ? job->group_count / BLOCK_GROUPS * BLOCK_GROUPS : 0;
    if (in_blocks > 0)
        filtered_blocks(&w, in_blocks);
    for (int32_t g = in_blocks; g < job->group_count; g++)
        filtered_group(&w, g);
}

const screen_products products_amx = {.name = "amx",
                                      .present = present,
                                      .code_bytes = 1,
                                      .begin = tiles_begin,
                                      .end = tiles_end,
                                      .one = one,
                                      .one_high = one_high,
                                      .pack = pack,
                                      .groups = groups,
                                      .groups_filtered = groups_filtered};
