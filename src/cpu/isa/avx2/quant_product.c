/* Products of blocks with avx2. */
#include "cpu/quant/product_template.h"

const quant_product quant_products_avx2[BLOCK_TYPES] = QUANT_PRODUCTS;
