/* Products of blocks with the byte products of AVX-512 VNNI. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512vnni,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512vnni,f16c")
#endif
#define QUANT_VNNI
#include "cpu/isa/avx2/quant_dot.h"
#include "cpu/isa/avx512/avx512.h"
#include "cpu/isa/avx512/quant_gemv.h"
#include "cpu/isa/avx512/quant_tile_vectors.h"

#include "cpu/quant/product_template.h"

const quant_product quant_products_vnni[BLOCK_TYPES] = QUANT_PRODUCTS;

#if defined(__clang__)
#pragma clang attribute pop
#endif
