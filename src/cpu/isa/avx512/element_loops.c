/* The loops over elements for AVX-512. The set with AMX uses them, too. */
#define ELEMENT_LOOPS element_loops_avx512
#include "cpu/isa/avx512/unary_direct.h"
#define UNARY_DIRECT unary_direct
#include "cpu/tensor/element_loops_template.h"
