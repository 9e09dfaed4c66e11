/* An open GGUF file, as the files that read it share it. */
#ifndef WW_GGUF_GGUF_H
#define WW_GGUF_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/gguf.h>

#include "files/copies.h"
#include "files/source.h"

enum {
    GGUF_MAGIC = 0x46554747, /* "GGUF" */
    GGUF_KEY_BYTES_MAX = 65535,
    GGUF_NAME_BYTES_MAX = 63, /* others keep names in 64 bytes with a NUL */
    GGUF_ALIGNMENT = 32,
    GGUF_ALIGNMENT_MAX = 1 << 20,
    GGUF_FILES_MAX = 1024
};
#define GGUF_HEADER_BYTES_MAX (INT64_C(256) << 20) /* of metadata, held in memory; large vocabularies have some 20 MiB */

typedef struct gguf_entry { /* of the metadata */
    const char *key;
    size_t key_bytes;
    int64_t offset;        /* of the entry in its file, for messages */
    int32_t kind, element; /* of ww_gguf_kind */
    int64_t count;
    int64_t data; /* offset of the value's bytes in the header */
    int64_t data_bytes;
} gguf_entry;

typedef struct gguf_tensor {
    const char *name;
    size_t name_bytes;
    int64_t described_at; /* offset of the description in its file, for messages */
    int32_t type, rank, file;
    int64_t shape[WW_GGUF_RANK_MAX];
    int64_t offset; /* in the file; while the header is read, in the data */
    int64_t bytes;
} gguf_tensor;

/* What one file says. */
typedef struct gguf_part {
    file_source source;
    unsigned char *header; /* a copy, in which names have got a NUL behind them */
    int64_t header_bytes, header_room;
    int32_t version;
    int64_t alignment;
    gguf_entry *entries;
    int64_t entry_count, entry_room;
    gguf_tensor *tensors;
    int64_t tensor_count, tensor_room;
} gguf_part;

struct ww_gguf {
    gguf_part *parts;
    int64_t part_count;
    gguf_tensor *tensors; /* of all parts */
    int64_t tensor_count;
    int64_t *keys_sorted, *names_sorted; /* numbers of entries and of tensors by name */
    file_copies copies;                  /* of tensors */
};

/* Reads and checks the header of an open source into `part`, which is zero except for that. What was taken is given back by
 * part_close(), also after a failure. */
ww_status part_read(gguf_part *part);
void part_close(gguf_part *part);

/* Sorts numbers 0..count-1 into `order`, or those that are there: by what `compare` says of two of them. In n log n steps
 * whatever comes. */
typedef int (*gguf_compare)(const void *context, int64_t a, int64_t b);
void gguf_sort_numbers(int64_t *order, int64_t count, gguf_compare compare, const void *context);
void gguf_sort(int64_t *order, int64_t count, gguf_compare compare, const void *context);

/* Compares texts by bytes, then by length. */
int gguf_compare_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes);
int gguf_compare_entries(const void *context, int64_t a, int64_t b); /* of a gguf_part */
int gguf_compare_tensors(const void *context, int64_t a, int64_t b); /* of gguf_tensors */

/* Bytes of a value of a kind; 0 for strings, arrays and what is no kind. */
int64_t gguf_kind_bytes(int64_t kind);

/* The bytes of a tensor, in `bytes`, or GGUF_BYTES_UNKNOWN for a type that is not known here; or why its type and shape cannot
 * be, a text. */
#define GGUF_BYTES_UNKNOWN INT64_C(-1)
const char *gguf_tensor_size(int64_t type, int64_t rank, const int64_t *shape, int64_t *bytes);

/* Opens a file as ww_gguf_open() does; what is no regular file, and "-", standard input, is read to its end into memory, and is
 * then refused if it is part of a split model. */
ww_status gguf_open_stream(const char *path, ww_gguf **out);

/* Opens bytes in memory under a name, as ww_gguf_open() opens a file; a split model is refused. */
ww_status gguf_open_bytes(const char *name, const void *bytes, size_t size, ww_gguf **out);

#endif
