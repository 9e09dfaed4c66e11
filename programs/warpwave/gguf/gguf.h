/* The parts of `warpwave gguf` that have a file of their own. */
#ifndef CLI_GGUF_H
#define CLI_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <warpwave/gguf.h>

enum { TYPE_TEXT_BYTES = 24 };

/* "q4_K", or "type 99" for an unknown type. */
const char *gguf_type_text(int32_t type, char text[TYPE_TEXT_BYTES]);

/* A tensor with rows that a device decodes. Its type must be a ww_quant_type. */
typedef struct gguf_rows {
    const ww_gguf *gguf;
    int64_t index;
    ww_device *device;
} gguf_rows;

/* Decodes `count` rows to floats, starting at row `first`. */
ww_status gguf_decode_rows(const gguf_rows *of, int64_t first, int64_t count, float *values);

/* Prints the contents of a file as text or as JSON. */
ww_status gguf_print(const ww_gguf *gguf, const char *path);
ww_status gguf_print_json(const ww_gguf *gguf);

/* Writes the tensors of `in` to a file, with matrices coded by a type or mix, and prints the sizes before and after. */
typedef struct gguf_quantization {
    const ww_gguf *in;
    const char *in_path, *out_path; /* for messages, "-" is standard output */
    const char *type;
    bool pure, json;
    ww_device *device;
} gguf_quantization;
ww_status gguf_quantize(const gguf_quantization *q);

/* Refuses an unknown type, before any file is opened. */
ww_status gguf_quantize_check(const char *type);

/* Writes the model of a folder with config.json, tokenizer.json and safetensors to a file, and prints a summary. */
typedef struct gguf_folder {
    const char *folder, *out_path;
    const char *type; /* for matrices; NULL: keep their types */
    int pooling;      /* a ww_pooling; none: as in the folder */
    bool json;
    ww_device *device;
} gguf_folder;
#ifdef WARPWAVE_WITH_MODEL
ww_status gguf_from_safetensors(const gguf_folder *job);
ww_status gguf_from_safetensors_check(const char *type);
#else
#define gguf_from_safetensors(job)        command_left_out("model")
#define gguf_from_safetensors_check(type) WW_OK
#endif

/* Prints the keys and tensors in which two files differ, with the error of the second's numbers. Gives the number of
 * differences. */
typedef struct gguf_comparison {
    const ww_gguf *a, *b;
    ww_device *device;
    bool json;
} gguf_comparison;
ww_status gguf_diff(const gguf_comparison *of, int64_t *differences);

/* Reads all data and counts the floats that are not finite. */
ww_status gguf_verify(const ww_gguf *gguf, ww_device *device, bool json);

#endif
