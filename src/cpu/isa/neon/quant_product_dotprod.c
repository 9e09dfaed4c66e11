/* Products of blocks with the byte products of Arm's dotprod. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#define QUANT_DOTPROD
#include "cpu/isa/neon/neon.h"
#include "cpu/isa/neon/quant_dot.h"
#include "cpu/isa/neon/quant_gemv.h"
#include "cpu/isa/neon/quant_tiles.h"

#include "cpu/quant/product_template.h"

const quant_product quant_products_dotprod[BLOCK_TYPES] = QUANT_PRODUCTS;

#if defined(__clang__)
#pragma clang attribute pop
#endif
