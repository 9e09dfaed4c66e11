/* The loops over elements for NEON. */
#define TENSOR_LOOPS tensor_loops_neon
#include "cpu/tensor/element_loops_template.h"
