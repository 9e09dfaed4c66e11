/* Products of blocks with AMX by tiles, and with AVX-512 VNNI by gemv. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512vnni,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512vnni,f16c")
#endif
#define QUANT_VNNI
#define TILE_FLIP 0u /* tiles multiply signed weights as they are */
#include "cpu/isa/amx/amx.h"
#include "cpu/isa/amx/tiles.h"
#include "cpu/isa/avx2/quant_dot.h"
#include "cpu/isa/avx512/quant_gemv.h"
#include "cpu/isa/avx512/quant_tile_vectors.h"

#include "cpu/isa/amx/quant_tiles.h"

#include "cpu/quant/product_template.h"

const quant_product quant_products_amx[BLOCK_TYPES] = QUANT_PRODUCTS;

/* Tiles 0..3 are sums, 4 and 5 activations, 6 and 7 weights: of 32 codes, or of 64. Not on the stack, as in tiles.h. */
void quant_amx_begin(int32_t type)
{
    static const tile_config small = {
        .palette = 1, .bytes = {64, 64, 64, 64, 32, 32, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 8, 8}};
    if (block_elements(type) == BLOCK32_ELEMENTS)
        _tile_loadconfig(&small);
    else
        tiles_begin();
}

void quant_amx_end(void)
{
    tiles_end();
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
