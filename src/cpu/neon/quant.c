/* Coding, decoding and multiplying blocks with neon. */
#include "cpu/quant_kernels.h"
#include "cpu/quant_product.h"

const quant_coder quant_coders_neon[BLOCK_TYPES] = QUANT_CODERS;
const quant_product quant_products_neon[BLOCK_TYPES] = QUANT_PRODUCTS;
