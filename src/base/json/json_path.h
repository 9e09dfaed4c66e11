/* Paths to values in JSON text: "a.b", "a[].b", "a[0]", "\"a.b\".c".
 *
 * A key of letters, digits, "_", "-" and any non-ASCII characters stands as it is; any other key needs double quotes around it.
 * "[]" leads to every element of a list, "[7]" to one of them.
 */
#ifndef WW_BASE_JSON_PATH_H
#define WW_BASE_JSON_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/json_value.h"

enum { JSON_PATH_PARTS_MAX = 16 };

typedef enum json_step { JSON_KEY, JSON_EACH, JSON_INDEX } json_step; /* "a", "[]" and "[7]" */

typedef struct json_part {
    const char *text; /* of a key; not terminated */
    size_t length;
    json_step step;
    int64_t index;
} json_part;

typedef struct json_path {
    json_part parts[JSON_PATH_PARTS_MAX];
    int32_t count;
} json_path;

/* Reads a path, whose parts then point into `text`. Returns NULL, or what is wrong, for messages. */
const char *json_path_read(const char *text, size_t length, json_path *path);

/* Calls `tell` for each value that the parts lead to from `value`, until it returns false. With `flat`, the elements of a list
 * instead of a list at the end of the path. Returns false if `tell` did. */
typedef bool (*json_teller)(void *user, const char *value);
typedef struct json_visit {
    json_teller tell;
    void *user;
    bool flat;
} json_visit;
bool json_path_visit(const json_part *parts, int32_t count, const char *value, const json_visit *visit);

#endif
