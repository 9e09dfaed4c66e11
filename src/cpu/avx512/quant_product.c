/* Products of blocks with avx512. */
#include "cpu/quant_product.h"

const quant_product quant_products_avx512[BLOCK_TYPES] = QUANT_PRODUCTS;
