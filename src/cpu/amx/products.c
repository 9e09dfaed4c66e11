/* Products of codes by AMX: tiles of 16 rows by 64 codes against tiles of 64 codes by 16 queries.
 *
 * Rows are tiles as they lie in memory, and stay in the first-level cache while the groups pass by from the second: two row
 * tiles for each tile of a group are what its bandwidth allows. The instructions belong to a thread that has loaded a tile
 * configuration; the process must have asked the system for them first.
 */
#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/products.h"

enum {
    TILE_ROWS = 16,
    TILE_BYTES = 64, /* of a row of a tile */
    ARCH_REQ_XCOMP_PERM = 0x1023,
    XFEATURE_TILE_DATA = 18,
    LEAF_EXTENDED_FEATURES = 7,
    EDX_TILE = 1 << 24,
    EDX_INT8 = 1 << 25
};

/* The system has the state switched off for every process that has not asked; asking twice is no harm. */
static bool present(void)
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __asm__ volatile("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(0), "c"(0));
    if (eax < LEAF_EXTENDED_FEATURES)
        return false;
    __asm__ volatile("cpuid" : "=a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx) : "a"(LEAF_EXTENDED_FEATURES), "c"(0));
    return (edx & EDX_TILE) && (edx & EDX_INT8) && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0;
}

typedef struct tile_config {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t bytes[16]; /* of a row, for each tile */
    uint8_t rows[16];
} tile_config;

/* All eight tiles alike. Not on the stack: compilers have been seen to leave out what the instruction reads of it. */
static const tile_config config = {
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

static void begin(void)
{
    _tile_loadconfig(&config);
}

static void end(void)
{
    _tile_release();
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

/* The sums of two row tiles and a group. The numbers of tiles must be written out: some compilers paste them into assembler. */
#define TWO_ROW_TILES(first, second)                                                                                           \
    do {                                                                                                                       \
        _tile_zero(first);                                                                                                     \
        _tile_zero(second);                                                                                                    \
        for (int32_t i = 0; i < padded; i += TILE_BYTES) {                                                                     \
            _tile_loadd(6, packed + i * GROUP, TILE_BYTES);                                                                    \
            _tile_loadd(4, rows + i, padded);                                                                                  \
            _tile_dpbssd(first, 4, 6);                                                                                         \
            _tile_loadd(5, rows + TILE_ROWS * padded + i, padded);                                                             \
            _tile_dpbssd(second, 5, 6);                                                                                        \
        }                                                                                                                      \
    } while (0)

static void sums_in_0(const int8_t *packed, const int8_t *rows, int32_t padded)
{
    TWO_ROW_TILES(0, 1);
}

static void sums_in_2(const int8_t *packed, const int8_t *rows, int32_t padded)
{
    TWO_ROW_TILES(2, 3);
}

static void store_0(int32_t *out)
{
    _tile_stored(0, out, TILE_BYTES);
    _tile_stored(1, out + TILE_ROWS * GROUP, TILE_BYTES);
}

static void store_2(int32_t *out)
{
    _tile_stored(2, out, TILE_BYTES);
    _tile_stored(3, out + TILE_ROWS * GROUP, TILE_BYTES);
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

/* Sums are stored only when the next ones are under way: a store waits for the last product of its tile, and would leave the
 * multiplier idle. */
static void groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                   int32_t *out)
{
    const int64_t group_bytes = packed_group_bytes(&products_amx, padded);
    const int32_t pairs = row_count / (2 * TILE_ROWS), tiles = pairs * group_count;
    int32_t *waiting = NULL;
    for (int32_t t = 0; t < tiles; t++) {
        const int32_t g = t % group_count, r = t / group_count * 2 * TILE_ROWS;
        if (t % 2 == 0)
            sums_in_0(packed + g * group_bytes, prepared + r * padded, padded);
        else
            sums_in_2(packed + g * group_bytes, prepared + r * padded, padded);
        if (waiting && t % 2 == 0)
            store_2(waiting);
        else if (waiting)
            store_0(waiting);
        waiting = out + (g * UNIT_ROWS + r) * GROUP;
    }
    if (waiting && tiles % 2 == 0)
        store_2(waiting);
    else if (waiting)
        store_0(waiting);
    for (int32_t r = pairs * 2 * TILE_ROWS; r < row_count; r += TILE_ROWS)
        for (int32_t g = 0; g < group_count; g++)
            one_row_tile(packed + g * group_bytes, prepared + r * padded, padded, out + (g * UNIT_ROWS + r) * GROUP);
}

const screen_products products_amx = {
    .name = "amx", .present = present, .code_bytes = 1, .begin = begin, .end = end, .one = one, .pack = pack, .groups = groups};
