/* A sparse vector as JSON: {"indices": [3, 7], "values": [0.5, 1]}. */
#ifndef WW_BASE_JSON_SPARSE_H
#define WW_BASE_JSON_SPARSE_H

#include <stdint.h>

#include <warpwave/status.h>

typedef struct json_sparse {
    int64_t count;
    uint32_t *indices; /* memory_free() */
    float *values;     /* memory_free() */
} json_sparse;

/* Reads a value of a text that json_check() has accepted. Refuses other shapes, lists that are not equally long or have more
 * than `count_max` elements, and indices outside of 32 bits. It does not look for indices that appear twice. `read` holds
 * nothing after a failure. */
ww_status json_sparse_read(const char *value, int64_t count_max, json_sparse *read);

/* The same for a whole text, which it checks. */
ww_status json_sparse_read_text(const char *text, int64_t count_max, json_sparse *read);

void json_sparse_free(json_sparse *read);

#endif
