/* The types of quantized matrices: checks, and the bytes of a row. */
#ifndef WW_QUANT_TYPES_H
#define WW_QUANT_TYPES_H

#include <stdbool.h>

#include <warpwave/quant.h>

#include "arithmetic/blocks/blocks.h"
#include "base/status.h"

enum { QUANT_PADDING = 512 }; /* elements after the last row that kernels may read */

#define QUANT_COLS_MAX INT64_C(2147483647)

/* Returns true if it is a number of ww_quant_type. */
bool quant_type_known(int64_t type);

#endif
