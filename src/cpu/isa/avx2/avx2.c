/* The kernels for AVX2 with FMA. */
#include "cpu/isa/avx2/vec.h"

#include <stddef.h>

#include "cpu/isa/screen_products.h"

static const screen_products *const vec_products[] = {&products_avx_vnni, &products_avx2, NULL};

#include "cpu/isa/score_template.h"
