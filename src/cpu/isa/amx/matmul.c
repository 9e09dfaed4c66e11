/* Matrix products for AVX-512 with AMX: the same as avx512/matmul.c, and fast products of bf16 by its tiles.
 *
 * Two tiles of a and two of b give four tiles of sums, so no product waits for the previous one. The unit treats denormals as
 * zero and adds two products at a time, so its sums are not canonical.
 */
#include "cpu/isa/avx512/matmul_vectors.h"

#include "cpu/isa/amx/tiles.h"

enum { TILE_BYTES = 64, TILE_ELEMENTS = 16 * 32, EDX_BF16 = 1 << 22 };

static bool fast_present(void)
{
    return tiles_present(EDX_BF16);
}

static void fast_bf16(const uint16_t *a, const uint16_t *b, int64_t k, float *c, int64_t stride, int32_t which)
{
    const int64_t bytes = stride * (int64_t)sizeof *c;
    float *below = c + 16 * stride;
    if (which & MATMUL_FIRST) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, c, bytes);
        _tile_loadd(1, c + 16, bytes);
        _tile_loadd(2, below, bytes);
        _tile_loadd(3, below + 16, bytes);
    }
    for (int64_t i = 0; i < k; i += MATMUL_FAST_DEPTH, a += 2 * TILE_ELEMENTS, b += 2 * TILE_ELEMENTS) {
        _tile_loadd(4, a, TILE_BYTES);
        _tile_loadd(6, b, TILE_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + TILE_ELEMENTS, TILE_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + TILE_ELEMENTS, TILE_BYTES);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, bytes);
    _tile_stored(1, c + 16, bytes);
    _tile_stored(2, below, bytes);
    _tile_stored(3, below + 16, bytes);
}

MATMUL_TILES(matmul_tiles_amx, 14, 2, 16, .fast_present = fast_present, .fast_begin = tiles_begin, .fast_end = tiles_end,
             .fast_bf16 = fast_bf16)
