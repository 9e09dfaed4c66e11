/* Columns of Arrow as texts: ids, and payloads in JSON, for ww_rows.
 *
 * Arrow's C data interface passes a column as two structs, ArrowSchema and ArrowArray, which pyarrow, polars, DuckDB and others
 * export. A table is a column of structs, and each row of it becomes one JSON object.
 *
 * Threads: any number may create, read and destroy texts at once; the texts themselves never change.
 */
#ifndef WARPWAVE_ARROW_H
#define WARPWAVE_ARROW_H

#include <stdint.h>

#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ww_arrow_form {
    WW_ARROW_PLAIN = 0, /* texts as they are, integers in decimal digits: ids */
    WW_ARROW_JSON = 1   /* JSON: payloads */
} ww_arrow_form;

typedef struct ww_arrow_texts ww_arrow_texts;

/* Takes the addresses of an ArrowSchema and of its ArrowArray; returns in `texts` a text for each element, and none where the
 * element is null. Both stay the caller's and may be released afterwards; they must be as Arrow's specification says, because
 * they do not tell how long their buffers are. In JSON, dates and times are texts in ISO 8601, decimals are numbers, lists and
 * maps are arrays, structs are objects, and null elements inside are null. WW_UNSUPPORTED, which names the field, for binary
 * data, durations, unions, extension types, decimals of more than 128 bits and time zones that are neither UTC nor an offset;
 * WW_INVALID_ARGUMENT for a number that is not finite, a text that is not UTF-8, and a NUL in a plain text. Does not block. */
WW_API ww_status ww_arrow_texts_create(const void *schema, const void *array, ww_arrow_form form, ww_arrow_texts **texts);
WW_API void ww_arrow_texts_destroy(ww_arrow_texts *texts); /* accepts NULL */

/* Returns the number of elements, and in `list`, which may be NULL, their texts: NULL for no text. They are valid until the
 * texts are destroyed. For NULL it returns 0. */
WW_API int64_t ww_arrow_texts_list(const ww_arrow_texts *texts, const char *const **list);

#ifdef __cplusplus
}
#endif

#endif
