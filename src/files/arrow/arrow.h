/* Arrow's columns as this folder sees them: the structs of the C data interface, whose layout Arrow's specification fixes, and
 * a column with its checked type. */
#ifndef WW_FILES_ARROW_ARROW_H
#define WW_FILES_ARROW_ARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/arrow.h>

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

typedef enum column_kind {
    COLUMN_NULL,
    COLUMN_BOOL,
    COLUMN_INTEGER,
    COLUMN_REAL,
    COLUMN_DECIMAL,
    COLUMN_TEXT,      /* with offsets */
    COLUMN_TEXT_VIEW, /* 16 bytes per element: length, and the text or where it is */
    COLUMN_DATE,
    COLUMN_TIME,
    COLUMN_TIMESTAMP,
    COLUMN_LIST,
    COLUMN_LIST_FIXED,
    COLUMN_STRUCT,
    COLUMN_DICTIONARY
} column_kind;

typedef struct column {
    column_kind kind;
    int32_t bytes; /* of an element, or of an offset */
    bool is_signed;
    int64_t per_second; /* of times, and of dates of 64 bits: units */
    int64_t scale;      /* of decimals */
    int64_t list_size;
    bool has_zone;
    int32_t zone_minutes; /* east of UTC */
    bool is_map;          /* a list whose elements are pairs */
    const char *name;     /* of the field, UTF-8 */
    char *key;            /* the name in JSON, with its colon */
    size_t key_bytes;
    const struct ArrowArray *array;
    struct column *children; /* of a list: its elements; of a dictionary: its values */
    int64_t child_count;
} column;

/* Fills `c`, whose fields are zero, from a schema and its array. After a failure column_free() is needed, too. */
ww_status column_read(column *c, const struct ArrowSchema *schema, const struct ArrowArray *array, int depth);
void column_free(column *c);
/* Fail with a message that has the column's name and what is wrong with it or, in a row, with its element. */
ww_status column_refuse(const column *c, ww_status status, const char *reason);
ww_status column_refuse_row(const column *c, int64_t row, ww_status status, const char *reason);
bool column_is_null(const column *c, int64_t index);
/* The element's integer, index of a dictionary, or number of days or units. `index` includes the array's offset. */
int64_t column_integer(const column *c, int64_t index);

/* The first byte of a text, and its length. */
typedef struct text_span {
    const char *bytes;
    int64_t count;
} text_span;

/* Bytes that grow. */
typedef struct text_builder {
    char *bytes;
    int64_t count, room;
    int64_t row; /* for messages */
} text_builder;

/* ---- text.c ---- */
ww_status text_build(text_builder *to, const char *bytes, int64_t count);
/* Appends a text in quotes. Its bytes are UTF-8. */
ww_status text_build_quoted(text_builder *to, const char *bytes, int64_t count);
/* Appends an element that is not null: as a text, if it is one or an integer; as JSON. `index` includes the array's offset. */
ww_status column_write_plain(const column *c, int64_t index, text_builder *to);
ww_status column_write_json(const column *c, int64_t index, text_builder *to);

/* ---- numbers.c ---- */
/* Append a number, date or time, without quotes. */
ww_status column_write_integer(const column *c, int64_t index, text_builder *to);
ww_status column_write_real(const column *c, int64_t index, text_builder *to);
ww_status column_write_decimal(const column *c, int64_t index, text_builder *to);
ww_status column_write_instant(const column *c, int64_t index, text_builder *to);

#endif
