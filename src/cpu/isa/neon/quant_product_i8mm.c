/* Products of blocks with Arm's i8mm by tiles, and with dotprod by gemv. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod,i8mm"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")
#endif
#define QUANT_DOTPROD
#define QUANT_I8MM
#include "cpu/isa/neon/neon.h"
#include "cpu/isa/neon/quant_dot.h"
#include "cpu/isa/neon/quant_gemv.h"
#include "cpu/isa/neon/quant_tiles.h"

#include "cpu/quant/product_template.h"

const quant_product quant_products_i8mm[BLOCK_TYPES] = QUANT_PRODUCTS;

#if defined(__clang__)
#pragma clang attribute pop
#endif
