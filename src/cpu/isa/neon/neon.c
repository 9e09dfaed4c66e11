/* The kernels for NEON. */
#include "cpu/isa/neon/vec.h"

#include <stddef.h>

#include "cpu/isa/screen_products.h"

static const screen_products *const vec_products[] = {&products_i8mm, &products_dotprod, &products_neon, NULL};

#include "cpu/isa/score_template.h"
