/* Reading values out of JSON text that json_check() has accepted, in place: nothing is built or allocated.
 *
 * A value is the address of its first byte. The text ends with a NUL. If a key appears twice, the first one counts, as in
 * SQLite.
 */
#ifndef WW_BASE_JSON_VALUE_H
#define WW_BASE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT } json_type;

/* A number is an integer if it is written as one and fits in 64 bits; otherwise `real` is the nearest double. */
typedef struct json_number {
    bool is_integer;
    int64_t integer;
    double real;
} json_number;

/* Returns the value of a whole text, after leading white space. */
const char *json_root(const char *text);

json_type json_type_of(const char *value);

/* Returns the first byte after a value. */
const char *json_end(const char *value);

/* Walks the elements of a list, or the keys of an object:
 *     for (const char *at = json_first(list); at != NULL; at = json_next(at)) ...
 * NULL at the end. In an object `at` is the key, and json_member(at) its value. */
const char *json_first(const char *list_or_object);
const char *json_next(const char *at);
const char *json_member(const char *key);

/* Returns the value of a key of `length` bytes, or NULL if the object does not have it. */
const char *json_find(const char *object, const char *key, size_t length);

/* Returns the value of the field "a.b" of a whole text: of the key "b" in the object of the key "a". NULL if there is no such
 * field, or no text. */
const char *json_find_field(const char *text, const char *field);

json_number json_number_of(const char *value);

/* Returns how many elements a list has if the first is a number and none is a text, a list or an object; else -1, also for an
 * empty list. */
int64_t json_numbers_count(const char *list);

/* Reads the elements of such a list into `values`, each rounded once to the nearest f32, in one pass. Returns false if one is
 * not a number. */
bool json_numbers_read(const char *list, float *values);

/* Returns less than, equal to or greater than 0, exactly, even if only one of them is an integer. */
int json_number_compare(const json_number *a, const json_number *b);

/* Writes a text without its escapes and without a NUL to `out`, which needs json_end(value) - value bytes. Returns the
 * length. */
size_t json_text_read(const char *value, char *out);

/* Returns true if the text, with its escapes resolved, equals these bytes. */
bool json_text_is(const char *value, const char *bytes, size_t length);

/* For the files of this folder: the first byte after a list of numbers and words, NULL for other lists; and the nearest f32 of
 * a number, by the C library. */
const char *json_numbers_end(const char *list);
float json_real_f32(const char *value);

#endif
