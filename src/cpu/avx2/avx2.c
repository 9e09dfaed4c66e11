/* The kernels for AVX2 with FMA. */
#include "cpu/avx2/vec.h"

#include <stddef.h>

#include "cpu/products.h"

static const screen_products *const vec_products[] = {&products_avx_vnni, &products_avx2, NULL};

#include "cpu/kernels.h"
