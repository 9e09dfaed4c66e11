/* NEON, with SDOT and SMMLA where the processor has them. */
#include "cpu/isa/neon/neon.h"

#include <stddef.h>
#include <sys/auxv.h>

#include "cpu/isa/neon/vec.h"
#include "cpu/isa/score_template.h"

enum { HWCAP_DOTPROD = 1 << 20, HWCAP2_INT8_MATMUL = 1 << 13 };

bool neon_has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_DOTPROD) != 0;
}

bool neon_has_i8mm(void)
{
    return neon_has_dotprod() && (getauxval(AT_HWCAP2) & HWCAP2_INT8_MATMUL) != 0;
}

static const screen_products *const products[] = {&products_i8mm, &products_dotprod, &products_neon, NULL};

static const quant_set quants[] = {
    {.name = "i8mm",
     .present = neon_has_i8mm,
     .coders = quant_coders_neon,
     .products = quant_products_i8mm,
     .gemv_columns_max = 4,
     .gemv_columns_max_kblock = 8},
    {.name = "dotprod",
     .present = neon_has_dotprod,
     .coders = quant_coders_neon,
     .products = quant_products_dotprod,
     .gemv_columns_max = 8,
     .gemv_columns_max_kblock = 16},
    {.name = "neon",
     .coders = quant_coders_neon,
     .products = quant_products_neon,
     .gemv_columns_max = 8,
     .gemv_columns_max_kblock = 16},
    {0},
};

const instruction_set instruction_set_neon = {.name = "neon",
                                              .present = vec_present,
                                              VEC_KERNELS,
                                              .element_loops = &element_loops_neon,
                                              .row_loops = &row_loops_neon,
                                              .attention = &attention_loops_neon,
                                              .matmul = &matmul_tiles_neon,
                                              .products = products,
                                              .quants = quants};
