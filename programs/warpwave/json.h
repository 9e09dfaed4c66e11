/* Writes JSON value by value.
 *
 * No tree is built, so a report of any length needs no memory and cannot lose a part when memory is short. stdout remembers a
 * failed write, and command_end() reports it. Output is ASCII: everything else is escaped by JSON's rules.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <warpwave/vectors.h>

#include "base/status.h"

enum { JSON_LEVELS_MAX = 32, JSON_DIGITS_F32 = 9, JSON_DIGITS_F64 = 17 }; /* enough digits to read back the same number */

typedef struct json_writer {
    FILE *to;
    int digits;   /* for real numbers */
    bool compact; /* all on one line from here on */
    int level;
    bool begun;                  /* the innermost object or array has a value */
    char close[JSON_LEVELS_MAX]; /* '}' or ']' */
} json_writer;

/* Begins an object or an array: `kind` is '{' or '['. json_close() ends the innermost one, and ends the line after the
 * outermost. */
void json_open(json_writer *w, const char *key, char kind);
void json_close(json_writer *w);

/* Writes a value. The key is NULL in an array. A number that is not finite becomes null, and so does a string that is NULL or
 * not UTF-8. */
void json_put_text(json_writer *w, const char *key, const char *text);
void json_put_bytes(json_writer *w, const char *key, const char *text, size_t length);
/* Writes the id of a row. Stores of earlier versions have ids that are not UTF-8; their bytes are escaped as on a terminal,
 * r\xff. */
void json_put_id(json_writer *w, const char *key, const char *id);
void json_put_integer(json_writer *w, const char *key, int64_t value);
void json_put_real(json_writer *w, const char *key, double value);
void json_put_bool(json_writer *w, const char *key, bool value);
void json_put_null(json_writer *w, const char *key);

/* Writes a value that is JSON already and escapes what is not ASCII in it. NULL becomes null. */
void json_put_json(json_writer *w, const char *key, const char *json);

/* Writes the stats of a search as an object; an infinite certificate becomes null. */
void json_put_statistics(json_writer *w, const char *key, ww_screen screen, const ww_search_stats *stats);

/* Keeps a report in memory until it is complete, if the work that it describes may still fail: then stdout gets only the
 * failure. json_kept_check() returns WW_OUT_OF_MEMORY if a part was lost; free the report in any case. */
typedef struct json_kept {
    json_writer writer;
    char *text;
    size_t length;
} json_kept;

ww_status json_keep(json_kept *kept, int digits);
ww_status json_kept_check(json_kept *kept);
void json_kept_print(const json_kept *kept);
void json_kept_free(json_kept *kept);

#endif
