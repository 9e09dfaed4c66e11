/* Products of blocks with no instruction set in particular. */
#include "cpu/quant_product.h"

const quant_product quant_products_scalar[BLOCK_TYPES] = QUANT_PRODUCTS;
