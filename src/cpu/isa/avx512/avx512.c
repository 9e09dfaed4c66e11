/* AVX-512, with VNNI if the processor has it. Without VNNI, products are those of AVX2. */
#include "cpu/isa/avx512/avx512.h"

#include <stddef.h>

#include "cpu/isa/avx2/avx2.h"
#include "cpu/isa/avx512/vec.h"
#include "cpu/isa/score_template.h"

static bool has_vnni(void)
{
    return __builtin_cpu_supports("avx512vnni") != 0;
}

static const screen_products *const products[] = {&products_avx512_vnni, &products_avx2, NULL};

static const quant_set quants[] = {
    {.name = "vnni",
     .present = has_vnni,
     .coders = quant_coders_avx512,
     .products = quant_products_vnni,
     .gemv_columns_max = 12,
     .gemv_columns_max_kblock = 16},
    {.name = "avx512",
     .coders = quant_coders_avx512,
     .products = quant_products_avx2,
     .gemv_columns_max = 8,
     .gemv_columns_max_kblock = 16},
    {0},
};

const instruction_set instruction_set_avx512 = {.name = "avx512",
                                                .present = vec_present,
                                                VEC_KERNELS,
                                                .element_loops = &element_loops_avx512,
                                                .row_loops = &row_loops_avx512,
                                                .attention = &attention_loops_avx512,
                                                .matmul = &matmul_tiles_avx512,
                                                .products = products,
                                                .quants = quants};
