/* Products of blocks with AVX2. */
#include "cpu/isa/avx2/avx2.h"
#include "cpu/isa/avx2/quant_dot.h"

#include "cpu/quant/product_template.h"

const quant_product quant_products_avx2[BLOCK_TYPES] = QUANT_PRODUCTS;
