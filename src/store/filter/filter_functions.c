/* Functions for filters that replace SQLite's own, with the same results.
 *
 * SQLite compares the whole needle of instr() at every place, and every character of trim()'s text with its whole set: a few
 * hundred bytes of SQL could run for minutes, and a function cannot be interrupted. Here instr() is linear, and a set has at
 * most 64 characters.
 */
#include <stdbool.h>
#include <string.h>

#include "store/filter/filter.h"

/* Is it a UTF-8 continuation byte? */
static bool continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The position of the needle in the haystack, starting at 1, in characters, or in bytes if both are blobs; 0 if not found. */
static void instr(sqlite3_context *context, int count, sqlite3_value **values)
{
    const int type = sqlite3_value_type(values[0]), needle_type = sqlite3_value_type(values[1]);
    (void)count;
    if (type == SQLITE_NULL || needle_type == SQLITE_NULL)
        return;
    const bool bytes = type == SQLITE_BLOB && needle_type == SQLITE_BLOB;
    const unsigned char *hay = bytes ? sqlite3_value_blob(values[0]) : sqlite3_value_text(values[0]);
    const unsigned char *needle = bytes ? sqlite3_value_blob(values[1]) : sqlite3_value_text(values[1]);
    const size_t length = (size_t)sqlite3_value_bytes(values[0]), needle_length = (size_t)sqlite3_value_bytes(values[1]);
    if (needle_length == 0 || length == 0) {
        sqlite3_result_int(context, needle_length == 0);
        return;
    }
    if (!hay || !needle) {
        sqlite3_result_error_nomem(context);
        return;
    }
    /* A text is compared where a character begins, and always at its first byte. */
    const bool at_first_byte_only = !bytes && continues(needle[0]);
    const unsigned char *found =
        memmem(hay, at_first_byte_only && needle_length < length ? needle_length : length, needle, needle_length);
    int64_t place = found ? 1 : 0;
    for (const unsigned char *at = hay + 1; found && at <= found; at++)
        place += bytes || !continues(*at);
    sqlite3_result_int64(context, place);
}

enum { SET_MAX = 64, TRIM_LEFT = 1, TRIM_RIGHT = 2 };

typedef struct character_set {
    const unsigned char *start[SET_MAX];
    size_t length[SET_MAX];
    int count;
} character_set;

/* Splits a text into characters; false if there are too many. */
static bool set_read(const unsigned char *text, size_t length, character_set *set)
{
    set->count = 0;
    for (size_t at = 0; at < length; set->count++) {
        if (set->count == SET_MAX)
            return false;
        const size_t first = at++;
        if (text[first] >= 0xc0)
            while (at < length && continues(text[at]))
                at++;
        set->start[set->count] = text + first;
        set->length[set->count] = at - first;
    }
    return true;
}

/* Bytes of the character of the set that text[0..length) begins or ends with; 0: none. */
static size_t set_match(const character_set *set, const unsigned char *text, size_t length, bool at_end)
{
    for (int i = 0; i < set->count; i++) {
        const size_t bytes = set->length[i];
        if (bytes <= length && memcmp(at_end ? text + length - bytes : text, set->start[i], bytes) == 0)
            return bytes;
    }
    return 0;
}

/* trim(), ltrim() and rtrim() with a set of characters. */
static void trim(sqlite3_context *context, int count, sqlite3_value **values)
{
    const int sides = (int)(intptr_t)sqlite3_user_data(context);
    character_set set;
    (void)count;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL || sqlite3_value_type(values[1]) == SQLITE_NULL)
        return;
    const unsigned char *text = sqlite3_value_text(values[0]), *characters = sqlite3_value_text(values[1]);
    size_t length = (size_t)sqlite3_value_bytes(values[0]);
    if (!text || !characters) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (!set_read(characters, (size_t)sqlite3_value_bytes(values[1]), &set)) {
        sqlite3_result_error(context, "trim: more than 64 characters to remove", -1);
        return;
    }
    for (size_t bytes; sides & TRIM_LEFT && (bytes = set_match(&set, text, length, false)) > 0;) {
        text += bytes;
        length -= bytes;
    }
    for (size_t bytes; sides & TRIM_RIGHT && (bytes = set_match(&set, text, length, true)) > 0;)
        length -= bytes;
    sqlite3_result_text64(context, (const char *)text, length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

int filter_functions_register(sqlite3 *db)
{
    static const struct {
        const char *name;
        intptr_t sides;
        void (*function)(sqlite3_context *, int, sqlite3_value **);
    } FUNCTIONS[] = {
        {"instr", 0, instr}, {"trim", TRIM_LEFT | TRIM_RIGHT, trim}, {"ltrim", TRIM_LEFT, trim}, {"rtrim", TRIM_RIGHT, trim}};
    int code = SQLITE_OK;
    for (size_t i = 0; code == SQLITE_OK && i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        code = sqlite3_create_function_v2(db, FUNCTIONS[i].name, 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                          (void *)FUNCTIONS[i].sides, FUNCTIONS[i].function, NULL, NULL, NULL);
    return code == SQLITE_OK ? filter_dictionary_register(db) : code;
}
