/* Products of blocks with NEON. */
#include "cpu/isa/neon/neon.h"
#include "cpu/isa/neon/quant_dot.h"
#include "cpu/isa/neon/quant_gemv.h"
#include "cpu/isa/neon/quant_tiles.h"

#include "cpu/quant/product_template.h"

const quant_product quant_products_neon[BLOCK_TYPES] = QUANT_PRODUCTS;
