/* The kernels for AVX-512. */
#include "cpu/avx512/vec.h"

#include <stddef.h>

#include "cpu/products.h"

static const screen_products *const vec_products[] = {&products_avx512_vnni, &products_avx2, NULL};

#include "cpu/kernels.h"
