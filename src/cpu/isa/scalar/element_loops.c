/* The loops over elements for every machine: compiled without flags for an instruction set. */
#define ELEMENT_LOOPS element_loops_scalar
#include "cpu/tensor/element_loops_template.h"
