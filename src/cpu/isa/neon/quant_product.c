/* Products of blocks with neon. */
#include "cpu/quant/quant_product.h"

const quant_product quant_products_neon[BLOCK_TYPES] = QUANT_PRODUCTS;
