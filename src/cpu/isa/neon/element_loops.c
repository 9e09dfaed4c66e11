/* The loops over elements for NEON. */
#define ELEMENT_LOOPS element_loops_neon
#include "cpu/tensor/element_loops_template.h"
