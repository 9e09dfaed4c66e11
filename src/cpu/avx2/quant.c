/* Coding, decoding and multiplying blocks with avx2. */
#include "cpu/quant_kernels.h"
#include "cpu/quant_product.h"

const quant_coder quant_coders_avx2[BLOCK_TYPES] = QUANT_CODERS;
const quant_product quant_products_avx2[BLOCK_TYPES] = QUANT_PRODUCTS;
