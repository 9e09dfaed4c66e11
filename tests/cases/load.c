/* Files of cases come from programs that write NaN and Infinity into JSON, and integers of any size. A strict reader refuses a
 * whole file for one of them, so they are rewritten in a form that it accepts. */
#include "cases/load.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct text {
    char *bytes;
    size_t length;
} text;

static void put(text *to, const char *bytes, size_t length)
{
    memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
}

/* Copies a string up to its closing quote or the end. */
static const char *copy_string(const char *at, const char *end, text *to)
{
    const char *begin = at++;
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    at += at < end ? 1 : 0;
    put(to, begin, (size_t)(at - begin));
    return at;
}

/* Copies a number: one that does not fit in 64 bits becomes a real, and one that is too large for that a word. */
static void copy_number(const char *begin, size_t length, text *to)
{
    char number[400];
    if (length >= sizeof number) {
        put(to, begin, length);
        return;
    }
    memcpy(number, begin, length);
    number[length] = '\0';
    const bool whole = strcspn(number, ".eE") == length;
    const double value = strtod(number, NULL);
    errno = 0;
    if (whole)
        (void)strtoll(number, NULL, 10);
    if (isinf(value)) {
        put(to, value > 0.0 ? "\"inf\"" : "\"-inf\"", value > 0.0 ? 5 : 6);
        return;
    }
    put(to, number, length);
    if (whole && errno == ERANGE)
        put(to, ".0", 2);
}

/* A name or a number: one after the other, as far as their letters go. */
static const char *copy_word(const char *at, const char *end, text *to)
{
    const char *begin = at;
    while (at < end && (isalnum((unsigned char)*at) || *at == '-' || *at == '+' || *at == '.'))
        at++;
    const size_t length = (size_t)(at - begin), sign = *begin == '-' ? 1 : 0;
    if ((length - sign == 8 && memcmp(begin + sign, "Infinity", 8) == 0) || (length == 3 && memcmp(begin, "NaN", 3) == 0)) {
        put(to, "\"", 1);
        put(to, begin, length);
        put(to, "\"", 1);
    } else if (length > sign && isdigit((unsigned char)begin[sign])) {
        copy_number(begin, length, to);
    } else {
        put(to, begin, length);
    }
    return at;
}

/* The file in words that the reader takes: at most twice as long, since NaN grows most, and by two. */
static void reword(const text *from, text *to)
{
    const char *at = from->bytes, *end = from->bytes + from->length;
    while (at < end) {
        if (*at == '"')
            at = copy_string(at, end, to);
        else if (isalnum((unsigned char)*at) || *at == '-')
            at = copy_word(at, end, to);
        else
            put(to, at++, 1);
    }
}

static ww_status read_file(const char *path, text *to)
{
    enum { PIECE = 1 << 20 };
    FILE *file = fopen(path, "rb");
    if (!file)
        return ww_fail(WW_CORRUPT_FILE, "%s: %s", path, strerror(errno));
    ww_status status = WW_OK;
    while (status == WW_OK && !feof(file) && !ferror(file)) {
        char *more = memory_resize(to->bytes, to->length + PIECE);
        if (!more) {
            status = memory_failed("a file of cases", to->length + PIECE);
            break;
        }
        to->bytes = more;
        to->length += fread(to->bytes + to->length, 1, PIECE, file);
    }
    if (status == WW_OK && ferror(file))
        status = ww_fail(WW_CORRUPT_FILE, "%s: %s", path, strerror(errno));
    fclose(file);
    return status;
}

/* Finds the list of cases in a file; `all` is freed or becomes the list. */
static ww_status list_in(const char *path, json_t *all, json_t **cases)
{
    json_t *list = json_object_get(all, "cases");
    if (json_is_array(all)) {
        *cases = all;
        return WW_OK;
    }
    if (json_is_array(list))
        *cases = json_incref(list);
    else if (json_object_get(all, "op"))
        *cases = json_pack("[O]", all);
    json_decref(all);
    return *cases ? WW_OK : ww_fail(WW_CORRUPT_FILE, "%s: not a list of cases", path);
}

ww_status cases_load(const char *path, json_t **cases)
{
    text file = {0};
    text words = {0};
    json_error_t error;
    *cases = NULL;
    ww_status status = read_file(path, &file);
    if (status == WW_OK) {
        words.bytes = memory_alloc(2 * file.length + 16);
        status = words.bytes ? WW_OK : memory_failed("a file of cases", 2 * file.length + 16);
    }
    if (status == WW_OK) {
        reword(&file, &words);
        json_t *all = json_loadb(words.bytes, words.length, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
        status = all ? list_in(path, all, cases)
                     : ww_fail(WW_CORRUPT_FILE, "%s: line %d, column %d: %s", path, error.line, error.column, error.text);
    }
    memory_free(words.bytes);
    memory_free(file.bytes);
    return status;
}
