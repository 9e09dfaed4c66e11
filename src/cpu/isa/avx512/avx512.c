/* The kernels for AVX-512. */
#include "cpu/isa/avx512/vec.h"

#include <stddef.h>

#include "cpu/isa/screen_products.h"

static const screen_products *const vec_products[] = {&products_avx512_vnni, &products_avx2, NULL};

#include "cpu/isa/score_template.h"
