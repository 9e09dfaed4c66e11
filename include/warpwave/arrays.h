/* Arrays of any rank in files: one in a .npy, many with names in a .safetensors.
 *
 * The readers look at the header and check all of it against the file's size: types, shapes, ranges that leave the file,
 * overlap or leave bytes unused are refused, and the message names the file, the offset and the reason. Data is read with
 * pread into the caller's memory, large reads by several threads at once. Elements lie as in the file: little-endian, dense,
 * the last dimension fastest. An open file does not change, so any number of threads may read it.
 */
#ifndef WARPWAVE_ARRAYS_H
#define WARPWAVE_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/files.h>
#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_ARRAY_RANK_MAX  16
#define WW_ARRAY_TYPE_TEXT 24

typedef struct ww_npy ww_npy;
typedef struct ww_safetensors ww_safetensors;

/* What an array in a file is. */
typedef struct ww_array_info {
    size_t struct_size;
    const char *name;                 /* valid until the file is closed; "" for a .npy */
    ww_element element;               /* WW_ELEMENT_UNKNOWN: a type that this library does not know; its bytes can be read */
    char type[WW_ARRAY_TYPE_TEXT];    /* as the file calls it: "<f4", "BF16" */
    int32_t rank;                     /* 0: one number */
    int64_t shape[WW_ARRAY_RANK_MAX]; /* the last dimension varies fastest; entries past the rank are 1 */
    int64_t elements;                 /* 0 if a size is 0 */
    int64_t offset;                   /* of the first byte in the file */
    int64_t bytes;
} ww_array_info;

/* An empty struct to be filled in; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_array_info_init(void *value, size_t struct_size);
static inline ww_array_info ww_array_info_default(void)
{
    ww_array_info value;
    ww_array_info_init(&value, sizeof value);
    return value;
}

/* ---- .npy ---------------------------------------------------------------------------------------------------------------- */

/* Opens the .npy at `path`, whatever its ending. Refuses big-endian, structured, complex, text and pickled elements, rank above
 * WW_ARRAY_RANK_MAX and anything malformed. An array in Fortran order is read whole now, and put in C order. Blocks on the
 * disk. */
WW_API ww_status ww_npy_open(const char *path, ww_npy **npy);

/* Closes it. Accepts NULL. */
WW_API void ww_npy_close(ww_npy *npy);

/* Describes the array into `info`, from ww_array_info_default(). Refuses NULL. Does not block. */
WW_API ww_status ww_npy_describe(const ww_npy *npy, ww_array_info *info);

/* Reads `bytes` of the array from its byte `offset` on, in C order. Refuses a range outside the array. Blocks on the disk. */
WW_API ww_status ww_npy_read(const ww_npy *npy, int64_t offset, void *to, size_t bytes);

/* ---- .safetensors -------------------------------------------------------------------------------------------------------- */

/* Opens the file at `path`, whatever its ending. Refuses a header that is not a JSON object or longer than the format allows
 * (100,000,000 bytes), a name that appears twice, a range that leaves the file, overlaps another, does not begin at a multiple
 * of its element's size, or has more or fewer bytes than the shape needs, and bytes that belong to no tensor. A tensor of an
 * unknown type is listed. Blocks on the disk. */
WW_API ww_status ww_safetensors_open(const char *path, ww_safetensors **file);

/* The same, but anything other than a regular file, including "-", standard input, is read to its end into memory. Blocks until
 * the writer has closed it. */
WW_API ww_status ww_safetensors_open_stream(const char *path, ww_safetensors **file);

/* Closes it. Accepts NULL. */
WW_API void ww_safetensors_close(ww_safetensors *file);

/* Returns how many tensors there are; they are numbered in the order of their data. 0 for NULL. */
WW_API int64_t ww_safetensors_count(const ww_safetensors *file);

/* Describes tensor number `index` into `info`, from ww_array_info_default(). Refuses a number out of range. Does not
 * block. */
WW_API ww_status ww_safetensors_at(const ww_safetensors *file, int64_t index, ww_array_info *info);

/* Finds a tensor by its name. WW_NOT_FOUND if there is none. Does not block. */
WW_API ww_status ww_safetensors_find(const ww_safetensors *file, const char *name, int64_t *index);

/* Reads `bytes` of a tensor from its byte `offset` on. Refuses a range outside the tensor. WW_CORRUPT_FILE if the file was cut
 * short. Blocks on the disk. */
WW_API ww_status ww_safetensors_read(const ww_safetensors *file, int64_t index, int64_t offset, void *to, size_t bytes);

/* Gives the address of a tensor's bytes in memory, aligned to its element; valid until close. The first call for a tensor reads
 * it into memory, where it stays until close. WW_CORRUPT_FILE if the file was cut short. Blocks on the disk the first time. */
WW_API ww_status ww_safetensors_map(ww_safetensors *file, int64_t index, const void **bytes);

/* The texts beside the tensors (`__metadata__`): their number; key and value of text number `index`; and the value of a key,
 * WW_NOT_FOUND if there is none. All texts are valid until close. */
WW_API int64_t ww_safetensors_metadata_count(const ww_safetensors *file);
WW_API ww_status ww_safetensors_metadata_at(const ww_safetensors *file, int64_t index, const char **key, const char **value);
WW_API ww_status ww_safetensors_metadata(const ww_safetensors *file, const char *key, const char **value);

/* A tensor to be written; begin with ww_array_default(). */
typedef struct ww_array {
    size_t struct_size;
    const char *name;
    ww_element element;
    int32_t rank;
    int64_t shape[WW_ARRAY_RANK_MAX];
    const void *data; /* dense, little-endian, the last dimension fastest; may be NULL if a size is 0 */
} ww_array;

/* Both fill in defaults; device.h says how ..._default() and ..._init() differ. Do not block. */
WW_API ww_status ww_array_init(void *value, size_t struct_size);
static inline ww_array ww_array_default(void)
{
    ww_array value;
    ww_array_init(&value, sizeof value);
    return value;
}

/* Writes `count` arrays to a .safetensors at `path`. `metadata` is NULL, or keys and values in turn, ended by NULL. An existing
 * file is replaced only when the new one is whole. Refuses names that are empty, appear twice or are not UTF-8, and invalid
 * shapes. Blocks on the disk. */
WW_API ww_status ww_safetensors_write(const char *path, const ww_array *arrays, int64_t count, const char *const *metadata);

#ifdef __cplusplus
}
#endif

#endif
