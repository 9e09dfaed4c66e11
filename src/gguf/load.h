/* What loading a tensor asks of its bytes. */
#ifndef WW_GGUF_LOAD_H
#define WW_GGUF_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/quant.h>

/* Are all weights of these whole blocks finite? By their factors alone, so that no is not certain: mxfp4 near the end of its
 * range is looked at no further. */
bool gguf_finite(ww_quant_type type, const unsigned char *blocks, size_t bytes);

#endif
