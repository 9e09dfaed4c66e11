/* The kernels for AVX-512 with products by AMX: the same as avx512/avx512.c but for that. */
#define VEC_SET_NAME  "amx"
#define VEC_SET_TABLE instruction_set_amx
#define VEC_MATMUL    matmul_tiles_amx
#define vec_present   vec_present_without_tiles
#include "cpu/isa/avx512/vec.h"
#undef vec_present

#include <stddef.h>

#include "cpu/isa/screen_products.h"

static const screen_products *const vec_products[] = {&products_amx, &products_avx512_vnni, NULL};

static inline bool vec_present(void)
{
    return vec_present_without_tiles() && products_avx512_vnni.present() && products_amx.present();
}

#include "cpu/isa/score_template.h"
