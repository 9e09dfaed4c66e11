/* The loops over rows of tensors for every machine. */
#define ROW_LOOPS row_loops_scalar
#include "cpu/tensor/row_loops_template.h"
