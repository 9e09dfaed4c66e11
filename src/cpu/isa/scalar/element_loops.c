/* The loops over elements for any machine: what the compiler makes of them without being told more. */
#define ELEMENT_LOOPS element_loops_scalar
#include "cpu/tensor/element_loops_template.h"
