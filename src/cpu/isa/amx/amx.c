/* AVX-512 with products by AMX: the same as avx512/avx512.c except for those. */
#include "cpu/isa/amx/amx.h"

#include <stddef.h>

#include "cpu/isa/avx512/avx512.h"
#include "cpu/isa/avx512/vec.h"
#include "cpu/isa/score_template.h"

static bool present(void)
{
    return vec_present() && products_avx512_vnni.present() && products_amx.present();
}

static const screen_products *const products[] = {&products_amx, &products_avx512_vnni, NULL};

static const quant_set quants[] = {
    {.name = "amx",
     .coders = quant_coders_avx512,
     .products = quant_products_amx,
     .gemv_columns_max = 12,
     .gemv_columns_max_kblock = 16,
     .tiles_begin = quant_amx_begin,
     .tiles_end = quant_amx_end},
    {0},
};

const instruction_set instruction_set_amx = {.name = "amx",
                                             .present = present,
                                             VEC_KERNELS,
                                             .element_loops = &element_loops_avx512,
                                             .row_loops = &row_loops_avx512,
                                             .attention = &attention_loops_avx512,
                                             .matmul = &matmul_tiles_amx,
                                             .products = products,
                                             .quants = quants};
