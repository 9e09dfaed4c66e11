/* The kernels for NEON. */
#include "cpu/neon/vec.h"

#include <stddef.h>

#include "cpu/products.h"

static const screen_products *const vec_products[] = {&products_i8mm, &products_dotprod, &products_neon, NULL};

#include "cpu/kernels.h"
