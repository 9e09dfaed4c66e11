/* GGUF files: models with their metadata, as other tools write and read them.
 *
 * Versions 2 and 3 are read, 3 is written, little-endian. To open a model that is split into several files, name the first.
 * Readers trust nothing: every number is checked against the file before it is used, and an error names the file, the offset
 * and the reason. An open file does not change, so any number of threads may read it.
 */
#ifndef WARPWAVE_GGUF_H
#define WARPWAVE_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/quant.h>
#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_GGUF_RANK_MAX 4

typedef struct ww_gguf ww_gguf;
typedef struct ww_gguf_writer ww_gguf_writer;

/* What a value of the metadata is; the numbers are those of the files. */
typedef enum ww_gguf_kind {
    WW_GGUF_U8 = 0,
    WW_GGUF_I8 = 1,
    WW_GGUF_U16 = 2,
    WW_GGUF_I16 = 3,
    WW_GGUF_U32 = 4,
    WW_GGUF_I32 = 5,
    WW_GGUF_F32 = 6,
    WW_GGUF_BOOL = 7,
    WW_GGUF_STRING = 8,
    WW_GGUF_ARRAY = 9,
    WW_GGUF_U64 = 10,
    WW_GGUF_I64 = 11,
    WW_GGUF_F64 = 12
} ww_gguf_kind;

typedef struct ww_gguf_info {
    size_t struct_size;
    int32_t version;
    int32_t alignment;  /* of tensors in the file */
    int64_t keys;       /* of metadata */
    int64_t tensors;    /* in all files */
    int64_t files;      /* 1, or more of a split model */
    int64_t data_bytes; /* of all tensors, without the padding between them */
} ww_gguf_info;

/* A value is in the file's memory and valid until the file is closed. */
typedef struct ww_gguf_value {
    size_t struct_size;
    const char *key; /* ends with a NUL */
    ww_gguf_kind kind;
    ww_gguf_kind element; /* of an array: its elements' kind, never another array; else the same as kind */
    int64_t count;        /* of an array: its elements; of a string: its bytes; else 1 */
    const void *data; /* little-endian, not aligned; of an array of strings: for each, its length in 8 bytes and its bytes */
    size_t data_bytes;
} ww_gguf_value;

typedef struct ww_gguf_tensor {
    size_t struct_size;
    const char *name;
    int32_t type; /* a ww_quant_type, one of 24..28: i8 i16 i32 i64 f64, or a number that is not known here */
    int32_t rank; /* 1..WW_GGUF_RANK_MAX */
    int64_t shape[WW_GGUF_RANK_MAX]; /* the first runs fastest: a row's length; those past the rank are 1 */
    int32_t file;                    /* number among the files of a split model */
    int64_t offset;                  /* in that file */
    int64_t bytes; /* of a type that is not known here: up to the next tensor or the end of the file, padding and all */
} ww_gguf_tensor;

/* Empty structs to be filled in; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_gguf_info_init(void *value, size_t struct_size);
WW_API ww_status ww_gguf_value_init(void *value, size_t struct_size);
WW_API ww_status ww_gguf_tensor_init(void *value, size_t struct_size);
static inline ww_gguf_info ww_gguf_info_default(void)
{
    ww_gguf_info value;
    ww_gguf_info_init(&value, sizeof value);
    return value;
}
static inline ww_gguf_value ww_gguf_value_default(void)
{
    ww_gguf_value value;
    ww_gguf_value_init(&value, sizeof value);
    return value;
}
static inline ww_gguf_tensor ww_gguf_tensor_default(void)
{
    ww_gguf_tensor value;
    ww_gguf_tensor_init(&value, sizeof value);
    return value;
}

/* Take a kind, or a tensor's type; return "u32", "q4_K", "i16", ..., or NULL for other numbers. */
WW_API const char *ww_gguf_kind_name(ww_gguf_kind kind);
WW_API const char *ww_gguf_type_name(int32_t type);

/* Opens the file at `path`, checks all of it except the tensors' data, and returns it in `gguf`. Refuses anything malformed,
 * and a part of a split model that is not its first. A tensor of a type that is not known here is listed, and its bytes can be
 * read. Blocks on the disk. */
WW_API ww_status ww_gguf_open(const char *path, ww_gguf **gguf);

/* The same, but anything other than a regular file, including "-", standard input, is read to its end into memory, and refused
 * if it is part of a split model. Blocks until the writer has closed it. */
WW_API ww_status ww_gguf_open_stream(const char *path, ww_gguf **gguf);

/* Writes the path of file number `file`: the one that was opened, or that of another part of a split model. Refuses a number
 * out of range, a capacity that is too small, and with WW_NOT_FOUND a model that was read from a stream. Does not block. */
WW_API ww_status ww_gguf_file_path(const ww_gguf *gguf, int64_t file, char *path, size_t capacity);

/* Closes it; matrices that were loaded from it stay valid. Accepts NULL. */
WW_API void ww_gguf_close(ww_gguf *gguf);

/* Describe the file, its value number `index` and its tensor number `index` into a struct from ..._default(). Refuse NULL and a
 * number out of range. Do not block. */
WW_API ww_status ww_gguf_describe(const ww_gguf *gguf, ww_gguf_info *info);
WW_API ww_status ww_gguf_value_at(const ww_gguf *gguf, int64_t index, ww_gguf_value *value);
WW_API ww_status ww_gguf_tensor_at(const ww_gguf *gguf, int64_t index, ww_gguf_tensor *tensor);

/* Find a value or a tensor by its name. WW_NOT_FOUND if there is none. Do not block. */
WW_API ww_status ww_gguf_find_value(const ww_gguf *gguf, const char *key, int64_t *index);
WW_API ww_status ww_gguf_find_tensor(const ww_gguf *gguf, const char *name, int64_t *index);

/* ---- metadata by name -----------------------------------------------------------------------------------------------------
 * A value is given exactly as it is in the file or not at all: integers of any kind, and whole floats, as u64 or i64 if they
 * fit; any number as f64 if that is exact; a bool, or an integer 0 or 1, as a bool. WW_NOT_FOUND if there is no such key,
 * WW_UNSUPPORTED for another kind, WW_OUT_OF_RANGE for a number that would change; the message names the file, the key and the
 * value. A failed call leaves `value` alone. Do not block. */

WW_API ww_status ww_gguf_u64(const ww_gguf *gguf, const char *key, uint64_t *value);
WW_API ww_status ww_gguf_i64(const ww_gguf *gguf, const char *key, int64_t *value);
WW_API ww_status ww_gguf_f64(const ww_gguf *gguf, const char *key, double *value);
WW_API ww_status ww_gguf_bool(const ww_gguf *gguf, const char *key, int32_t *value); /* 0 or 1 */

/* A text in the file's memory, with a NUL after it, valid until close; `bytes` may be NULL, and then a text with a NUL inside
 * is refused. */
WW_API ww_status ww_gguf_text(const ww_gguf *gguf, const char *key, const char **text, size_t *bytes);

/* A text of an array, in the file's memory, without a NUL. */
typedef struct ww_gguf_span {
    const char *text;
    size_t bytes;
} ww_gguf_span;

/* Arrays, each element as above. `count` gets the number of elements, also if `values` is NULL and `capacity` 0, and if the
 * capacity is too small (WW_OUT_OF_RANGE). */
WW_API ww_status ww_gguf_i64s(const ww_gguf *gguf, const char *key, int64_t *values, int64_t capacity, int64_t *count);
WW_API ww_status ww_gguf_f64s(const ww_gguf *gguf, const char *key, double *values, int64_t capacity, int64_t *count);
WW_API ww_status ww_gguf_texts(const ww_gguf *gguf, const char *key, ww_gguf_span *values, int64_t capacity, int64_t *count);

/* Returns a tensor's bytes in memory, valid until close. The first call for a tensor reads them. NULL with a message if that
 * fails, for lack of memory or because the file was cut short. Blocks on the disk the first time. */
WW_API const void *ww_gguf_view(const ww_gguf *gguf, int64_t index);

/* Reads `bytes` of a tensor's data from its byte `offset` on. Refuses a range outside the tensor. Blocks on the disk. */
WW_API ww_status ww_gguf_read(const ww_gguf *gguf, int64_t index, int64_t offset, void *to, size_t bytes);

/* Loads tensor number `index` to a device, as a matrix of shape[0] columns; several pieces are read and copied at a time.
 * Refuses the integer types, f64 and types that are not known here, by name. `progress`, in bytes, may be NULL. Blocks. */
WW_API ww_status ww_gguf_load(const ww_gguf *gguf, int64_t index, ww_device *device, ww_progress progress, void *user,
                              ww_quant **matrix);

/* Loads `count` tensors of one type and one number of columns as one matrix, one tensor's rows after the other's. Otherwise as
 * ww_gguf_load(). */
WW_API ww_status ww_gguf_load_joined(const ww_gguf *gguf, const int64_t *indices, int64_t count, ww_device *device,
                                     ww_progress progress, void *user, ww_quant **matrix);

/* Loads all tensors: matrices[i] gets tensor i, or NULL if it has a type that ww_gguf_load() refuses. On failure none is
 * loaded. `progress` counts the bytes of all tensors. Blocks. */
WW_API ww_status ww_gguf_load_all(const ww_gguf *gguf, ww_device *device, ww_progress progress, void *user,
                                  ww_quant **matrices);

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

/* First add the metadata and announce the tensors, then call ..._open(), then write the tensors' data in that order, then call
 * ..._finish(). Until then the path has no file, or the old one. One thread at a time may use a writer. */

/* Makes a writer. Refuses NULL. */
WW_API ww_status ww_gguf_writer_create(ww_gguf_writer **writer);

/* Adds a value: key, kind, element, count and data as ww_gguf_value has them. Refuses what a reader would refuse, a key that
 * exists already, and general.alignment, which the writer sets. */
WW_API ww_status ww_gguf_writer_value(ww_gguf_writer *writer, const ww_gguf_value *value);

/* The same for the most common kinds. */
WW_API ww_status ww_gguf_writer_u32(ww_gguf_writer *writer, const char *key, uint32_t value);
WW_API ww_status ww_gguf_writer_string(ww_gguf_writer *writer, const char *key, const char *text);

/* Announces a tensor by its name, type, rank and shape, and bytes if the type is unknown. Refuses what a reader would refuse.
 */
WW_API ww_status ww_gguf_writer_tensor(ww_gguf_writer *writer, const ww_gguf_tensor *tensor);

/* Begins the file. Blocks on the disk. */
WW_API ww_status ww_gguf_writer_open(ww_gguf_writer *writer, const char *path);

/* Appends bytes of tensors, in pieces of any size; the writer adds the padding. Refuses more than was announced. Blocks on the
 * disk. */
WW_API ww_status ww_gguf_writer_data(ww_gguf_writer *writer, const void *bytes, size_t size);

/* Completes the file and gives it its name. Refuses while data is missing. Blocks on the disk. */
WW_API ww_status ww_gguf_writer_finish(ww_gguf_writer *writer);

/* Frees the writer, and removes its file if that is not finished. Accepts NULL. */
WW_API void ww_gguf_writer_destroy(ww_gguf_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
