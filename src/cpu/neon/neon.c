/* The kernels for NEON. */
#include "cpu/neon/vec.h"

#include "cpu/kernels.h"
