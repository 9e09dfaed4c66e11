/* An open GGUF file, for the files of this room. */
#ifndef WW_GGUF_GGUF_H
#define WW_GGUF_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/gguf.h>

#include "base/files/map.h"
#include "base/files/source.h"
#include "files/copies.h"

enum {
    GGUF_MAGIC = 0x46554747, /* "GGUF" */
    GGUF_KEY_BYTES_MAX = 65535,
    GGUF_NAME_BYTES_MAX = 63, /* other programs keep names in 64 bytes with a NUL */
    GGUF_ALIGNMENT = 32,
    GGUF_ALIGNMENT_MAX = 1 << 20,
    GGUF_FILES_MAX = 1024
};
/* The maximum size of the metadata, which is held in memory. Large vocabularies take about 20 MiB. */
#define GGUF_HEADER_BYTES_MAX (INT64_C(256) << 20)

typedef struct gguf_entry { /* an entry of the metadata */
    const char *key;
    size_t key_bytes;
    int64_t offset;        /* of the entry in its file, for messages */
    int32_t kind, element; /* a ww_gguf_kind */
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

/* The header of one file. */
typedef struct gguf_part {
    file_source source;
    file_map *map;         /* NULL: loading copies */
    unsigned char *header; /* a copy in which names are followed by a NUL */
    int64_t header_bytes, header_room;
    int32_t version;
    int64_t alignment;
    gguf_entry *entries;
    int64_t entry_count, entry_room;
    gguf_tensor *tensors;
    int64_t tensor_count, tensor_room;
} gguf_part;

struct ww_gguf {
    char *path; /* of the first part; NULL: bytes in memory */
    gguf_part *parts;
    int64_t part_count;
    gguf_tensor *tensors; /* all tensors of all parts */
    int64_t tensor_count;
    int64_t *keys_sorted, *names_sorted; /* indices of entries and of tensors, sorted by name */
    file_copies copies;                  /* of tensors */
};

/* Reads and checks the header of an open source into `part`, which is zero except for the source. Call part_close() afterwards,
 * also after a failure. */
ww_status part_read(gguf_part *part);
void part_close(gguf_part *part);

/* Sorts numbers 0..count-1 into `order`, by the results of `compare`. Takes n log n steps for any input. */
typedef int (*gguf_compare)(const void *context, int64_t a, int64_t b);
void gguf_sort_numbers(int64_t *order, int64_t count, gguf_compare compare, const void *context);
void gguf_sort(int64_t *order, int64_t count, gguf_compare compare, const void *context);

/* Compares texts by bytes, then by length. */
int gguf_compare_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes);
int gguf_compare_entries(const void *context, int64_t a, int64_t b); /* of a gguf_part */
int gguf_compare_tensors(const void *context, int64_t a, int64_t b); /* of gguf_tensors */

/* Returns the bytes of a value of a kind; 0 for strings, arrays and invalid kinds. */
int64_t gguf_kind_bytes(int64_t kind);

/* Sets `bytes` to the bytes of a tensor, or to GGUF_BYTES_UNKNOWN for an unknown type. Returns NULL, or a text that says why
 * its type and shape are invalid. */
#define GGUF_BYTES_UNKNOWN INT64_C(-1)
const char *gguf_tensor_size(int64_t type, int64_t rank, const int64_t *shape, int64_t *bytes);

/* Maps the files, so that plain matrices (f32, f16, bf16) that are loaded to a CPU from now on are views of them, which stay
 * valid after ww_gguf_close(). Files that cannot be mapped are read as before. */
ww_status gguf_map(ww_gguf *gguf);

/* Opens bytes in memory under a name, like ww_gguf_open() opens a file. Refuses a split model. */
ww_status gguf_open_bytes(const char *name, const void *bytes, size_t size, ww_gguf **out);

#endif
