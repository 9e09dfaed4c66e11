/* Products of blocks with neon. */
#include "cpu/quant/product_template.h"

const quant_product quant_products_neon[BLOCK_TYPES] = QUANT_PRODUCTS;
