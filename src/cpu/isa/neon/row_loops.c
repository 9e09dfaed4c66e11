/* The loops over rows of tensors for NEON. */
#define ROW_LOOPS row_loops_neon
#include "cpu/tensor/row_loops_template.h"
