/* Products of blocks with avx2. */
#include "cpu/quant/quant_product.h"

const quant_product quant_products_avx2[BLOCK_TYPES] = QUANT_PRODUCTS;
