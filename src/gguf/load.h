/* A check of the bytes of a tensor that is being loaded. */
#ifndef WW_GGUF_LOAD_H
#define WW_GGUF_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/quant.h>

/* Returns true if all weights of these whole blocks are finite. It only checks factors, so false is not certain: mxfp4 weights
 * near the end of the range are not computed. */
bool gguf_finite(ww_quant_type type, const unsigned char *blocks, size_t bytes);

#endif
