/* AVX2 with FMA and F16C. */
#include "cpu/isa/avx2/avx2.h"

#include <stddef.h>

#include "cpu/isa/avx2/vec.h"
#include "cpu/isa/score_template.h"

static const screen_products *const products[] = {&products_avx_vnni, &products_avx2, NULL};

static const quant_set quants[] = {
    {.name = "avx2",
     .coders = quant_coders_avx2,
     .products = quant_products_avx2,
     .gemv_columns_max = 8,
     .gemv_columns_max_kblock = 16},
    {0},
};

const instruction_set instruction_set_avx2 = {.name = "avx2",
                                              .present = vec_present,
                                              VEC_KERNELS,
                                              .element_loops = &element_loops_avx2,
                                              .row_loops = &row_loops_avx2,
                                              .attention = &attention_loops_avx2,
                                              .matmul = &matmul_tiles_avx2,
                                              .products = products,
                                              .quants = quants};
