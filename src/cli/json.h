/* JSON, written value by value.
 *
 * No tree is built, so a report of any length takes no memory and cannot lose a part when there is none. A write that fails is
 * remembered by stdout, and command_end() makes a failure of it. Texts are ASCII: everything else is escaped by JSON's rules.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <warpwave/vectors.h>

#include "base/status.h"

enum { JSON_LEVELS_MAX = 32, JSON_DIGITS_F32 = 9, JSON_DIGITS_F64 = 17 }; /* digits that read back as the same number */

typedef struct json_writer {
    FILE *to;
    int digits;   /* of real numbers */
    bool compact; /* all on one line from here on */
    int level;
    bool begun;                  /* has the innermost object or array a value? */
    char close[JSON_LEVELS_MAX]; /* '}' or ']' */
} json_writer;

/* Begins an object or an array, by '{' or '['; json_close() ends the innermost and, when that was the outermost, the line. */
void json_open(json_writer *w, const char *key, char kind);
void json_close(json_writer *w);

/* A value. The key is NULL in an array. A number that is not finite is null, and so is a text that is no UTF-8 or NULL. */
void json_put_text(json_writer *w, const char *key, const char *text);
void json_put_bytes(json_writer *w, const char *key, const char *text, size_t length);
/* The id of a row. Stores of earlier versions have ids that are no UTF-8: their bytes are spelt as for a terminal, r\xff. */
void json_put_id(json_writer *w, const char *key, const char *id);
void json_put_integer(json_writer *w, const char *key, int64_t value);
void json_put_real(json_writer *w, const char *key, double value);
void json_put_bool(json_writer *w, const char *key, bool value);
void json_put_null(json_writer *w, const char *key);

/* A value that is JSON already; what is not ASCII in it is escaped. NULL is null. */
void json_put_json(json_writer *w, const char *key, const char *json);

/* What a search did, as an object; an infinite certificate is null. */
void json_put_statistics(json_writer *w, const char *key, ww_screen screen, const ww_search_stats *stats);

/* A report that is kept back until it is whole, where what it tells of may still fail: then the failure is all that stdout
 * has. json_kept_check() is WW_OUT_OF_MEMORY if a part was lost; free it in any case. */
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
