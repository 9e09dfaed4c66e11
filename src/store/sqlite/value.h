/* Vectors as SQL values: blobs of numbers, and JSON texts.
 *
 * A vector comes in as a blob of f32, as a blob of the collection's own type, or as a JSON array of numbers; the length of a
 * blob tells the first two apart. In memory it is always f32, because scores are computed from f32.
 */
#ifndef WW_STORE_SQLITE_VALUE_H
#define WW_STORE_SQLITE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/vectors.h>

#include "base/status.h"
#include "store/sqlite_api.h"

enum { VALUE_TYPES = WW_VECTOR_U8 + 1 };

const char *value_type_name(ww_vector_type type);
size_t value_type_bytes(ww_vector_type type);
/* Finds the type by its name, in any case; false if there is none. */
bool value_type_find(const char *name, ww_vector_type *type);

/* Memory for one vector at a time. Starts zeroed. */
typedef struct vector_buffer {
    float *values;
    int32_t dim;
    int32_t capacity;
} vector_buffer;

void vector_buffer_free(vector_buffer *buffer);

/* Reads a value as a vector of `dim` numbers, or of any number of them if `dim` is 0. A blob has f32 elements or, if only that
 * fits its length, elements of `type`; with `dim` 0 it has elements of `type`. Refuses NULL, numbers, other lengths, values
 * that are not finite, and texts that are not a JSON array of numbers. The message does not name the value. */
ww_status vector_read(sqlite3_value *value, ww_vector_type type, int32_t dim, vector_buffer *buffer);

/* Can rows of `type` have these values? f16 and bf16 take what does not become infinite, i8 and u8 integers in their range. */
ww_status vector_check(const float *values, int32_t dim, ww_vector_type type);

/* Writes `dim` checked numbers to `bytes` as elements of `type`, rounded to nearest for f16 and bf16. */
void vector_write(const float *values, int32_t dim, ww_vector_type type, void *bytes);

/* A JSON array of the shortest numbers that read back as the same f32, from sqlite3_malloc(); NULL if out of memory. */
char *vector_to_json(const float *values, int32_t dim);

/* What a value is, for messages: "NULL", "an integer", "a text", ... */
const char *value_kind(sqlite3_value *value);

/* The SQLite code for a failure of this library. */
int value_result_code(ww_status status);

#endif
