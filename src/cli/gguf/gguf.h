/* The parts of `warpwave gguf` that have a file of their own. */
#ifndef CLI_GGUF_H
#define CLI_GGUF_H

#include <warpwave/gguf.h>

/* Prints what a file is, for a person or as JSON. */
ww_status gguf_print(const ww_gguf *gguf, const char *path);
ww_status gguf_print_json(const ww_gguf *gguf);

/* Writes the tensors of `in` to the file `out_path`, matrices among them coded as `type` on a device. */
ww_status gguf_quantize(const ww_gguf *in, const char *out_path, ww_quant_type type, ww_device *device);

/* Prints in which keys and tensors two files differ, and gives the number of differences. */
ww_status gguf_compare(const ww_gguf *a, const ww_gguf *b, int64_t *differences);

/* Reads all data; of floats, counts those that are not finite. */
ww_status gguf_verify(const ww_gguf *gguf, ww_device *device);

#endif
