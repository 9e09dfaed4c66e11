/* A .safetensors over bytes in memory, for the fuzzer of the reader; and the names of its types. */
#ifndef WW_FILES_SAFETENSORS_H
#define WW_FILES_SAFETENSORS_H

#include <stddef.h>

#include <warpwave/arrays.h>

#define SAFETENSORS_METADATA         "__metadata__" /* the only name that is not a tensor's */
#define SAFETENSORS_HEADER_BYTES_MAX INT64_C(100000000)

/* Like ww_safetensors_open(), for bytes that the caller keeps for as long as the file. */
ww_status safetensors_open_bytes(const char *name, const void *bytes, size_t size, ww_safetensors **file);

/* Returns the name of a type in a file, such as "BF16". NULL if the format has no such type. */
const char *safetensors_type_name(ww_element element);

#endif
