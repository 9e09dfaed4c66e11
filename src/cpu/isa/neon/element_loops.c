/* The loops over elements for NEON. */
#define ELEMENT_LOOPS element_loops_neon
#include "cpu/isa/neon/unary_direct.h"
#define UNARY_DIRECT unary_direct
#include "cpu/tensor/element_loops_template.h"
