/* Coding, decoding and multiplying blocks with no instruction set in particular. */
#include "cpu/quant_kernels.h"
#include "cpu/quant_product.h"

const quant_coder quant_coders_scalar[BLOCK_TYPES] = QUANT_CODERS;
const quant_product quant_products_scalar[BLOCK_TYPES] = QUANT_PRODUCTS;
