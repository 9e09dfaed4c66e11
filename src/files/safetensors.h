/* A .safetensors over bytes in memory (how the fuzzer reaches the reader), and the names of its types. */
#ifndef WW_FILES_SAFETENSORS_H
#define WW_FILES_SAFETENSORS_H

#include <stddef.h>

#include <warpwave/arrays.h>

#define SAFETENSORS_METADATA         "__metadata__" /* the one name that is no tensor's */
#define SAFETENSORS_HEADER_BYTES_MAX INT64_C(100000000)

/* As ww_safetensors_open(), of bytes that stay the caller's and must outlive the file. */
ww_status safetensors_open_bytes(const char *name, const void *bytes, size_t size, ww_safetensors **file);

/* The same of a file, or of what is none and of "-", standard input, read to its end into memory. */
ww_status safetensors_open_stream(const char *path, ww_safetensors **file);

/* The name of a type in a file: "BF16" and the like. NULL for what has no counterpart. */
const char *safetensors_type_name(ww_element element);

#endif
