/* A function of foreign.c that dlpack.c uses. */
#ifndef WW_TENSOR_FOREIGN_H
#define WW_TENSOR_FOREIGN_H

#include <warpwave/tensor_foreign.h>

#include "tensor/tensor.h"

/* ww_tensor_wrap() for a complete struct, after `out` and its type were checked. */
ww_status wrap_memory(const char *operation, ww_device *device, const ww_foreign *foreign, ww_tensor *out);

#endif
