/* CSV: one row per line, numbers separated by commas, semicolons or blanks.
 *
 * Accepted: CRLF, blank lines, lines that start with '#', a byte order mark, quoted numbers, and one line of names before the
 * first row. Refused: rows of different lengths, empty fields, decimal commas, and a first line with both names and numbers,
 * because it might be a row. The first row determines the separator: a semicolon if it has one, otherwise a comma if it has
 * one, otherwise blanks. One column may have ids: texts that are neither names nor numbers.
 *
 * Memory depends on what was read, never on what the file claims: a line's buffer and the values grow by half as they fill.
 */
#include "files/csv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "files/number.h"

enum { CHUNK_BYTES = 32768, LINE_BYTES_FIRST = 1024, VALUES_FIRST = 1024, EXCERPT_BYTES = 24 };

/* One field of a line, without its quotes. */
typedef struct field {
    size_t begin, end; /* without blanks and quotes */
    size_t next;       /* where the next field starts */
    bool last;         /* this is the last field of the line */
} field;

typedef struct table {
    const file_source *source;
    locale_t c_locale;

    char chunk[CHUNK_BYTES]; /* of the file */
    size_t chunk_at, chunk_length;
    int64_t offset; /* where the next chunk starts in the file */

    char *line; /* the current line without its end; always with room for a NUL */
    size_t line_length, line_capacity;
    int64_t line_number; /* starting at 1 */

    char separator; /* ' ' means blanks; 0: not known yet */
    bool started;   /* a line that is not blank has been read */
    int64_t rows, dim, first_row_line;
    float *values;
    int64_t values_count, values_capacity;

    const char *id_name; /* the caller's name or number of the id column; NULL: none */
    int64_t id_column;   /* its index, starting at 0; -1: none, or not found yet */
    char *ids;
    size_t ids_bytes, ids_capacity;
    size_t *id_at; /* one per row */
    int64_t id_at_capacity;
} table;

__attribute__((format(printf, 4, 5))) static ww_status refuse(const table *t, ww_status status, size_t at, const char *format,
                                                              ...)
{
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return ww_fail(status, "%s: line %lld, column %zu: %s", t->source->name, (long long)t->line_number, at + 1, reason);
}

/* ---- lines --------------------------------------------------------------------------------------------------------------- */

static ww_status fill_chunk(table *t)
{
    const int64_t left = t->source->size - t->offset;
    t->chunk_at = 0;
    t->chunk_length = (size_t)min_i64(left, CHUNK_BYTES);
    const ww_status status = source_read(t->source, t->offset, t->chunk, t->chunk_length);
    t->offset += (int64_t)t->chunk_length;
    return status;
}

static ww_status append_to_line(table *t, const char *text, size_t length)
{
    const size_t need = t->line_length + length + 1;
    if (need > t->line_capacity) {
        const size_t grown = t->line_capacity + t->line_capacity / 2;
        const size_t capacity = need > grown ? need + LINE_BYTES_FIRST : grown;
        char *moved = memory_resize(t->line, capacity);
        if (!moved)
            return memory_failed("a line of a CSV file", capacity);
        t->line = moved;
        t->line_capacity = capacity;
    }
    memcpy(t->line + t->line_length, text, length);
    t->line_length += length;
    return WW_OK;
}

/* Reads the next line into t->line. Sets `more` to false at the end of the file. */
static ww_status next_line(table *t, bool *more)
{
    ww_status status = WW_OK;
    bool ended = false;
    t->line_length = 0;
    *more = false;
    while (status == WW_OK && !ended) {
        if (t->chunk_at == t->chunk_length) {
            if (t->offset == t->source->size)
                break;
            status = fill_chunk(t);
            if (status != WW_OK)
                break;
        }
        const char *first = t->chunk + t->chunk_at;
        const char *end = memchr(first, '\n', t->chunk_length - t->chunk_at);
        const size_t length = end ? (size_t)(end - first) : t->chunk_length - t->chunk_at;
        status = append_to_line(t, first, length);
        t->chunk_at += length + (end ? 1 : 0);
        ended = end != NULL;
        *more = true;
    }
    t->line_number += *more;
    if (*more && t->line_length > 0 && t->line[t->line_length - 1] == '\r')
        t->line_length--;
    return status;
}

/* ---- fields -------------------------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t skip_blanks(const table *t, size_t at)
{
    while (at < t->line_length && is_blank(t->line[at]))
        at++;
    return at;
}

static bool is_separator(const table *t, char c)
{
    return t->separator == ' ' ? is_blank(c) : c == t->separator;
}

static char find_separator(const table *t)
{
    char found = ' ';
    bool quoted = false;
    for (size_t i = 0; i < t->line_length; i++) {
        const char c = t->line[i];
        if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == ';')
            return ';';
        else if (!quoted && c == ',')
            found = ',';
    }
    return found;
}

/* Finds the field that starts at or after `at`. A quoted field ends with the next quote that is not doubled. */
static ww_status find_field(const table *t, size_t at, field *f)
{
    at = skip_blanks(t, at);
    if (at < t->line_length && t->line[at] == '"') {
        const size_t open = at++;
        f->begin = at;
        while (at < t->line_length && (t->line[at] != '"' || (at + 1 < t->line_length && t->line[at + 1] == '"')))
            at += t->line[at] == '"' ? 2 : 1;
        if (at >= t->line_length)
            return refuse(t, WW_CORRUPT_FILE, open, "a quote is not closed on its line");
        f->end = at++;
        while (f->begin < f->end && is_blank(t->line[f->begin]))
            f->begin++;
    } else {
        f->begin = at;
        while (at < t->line_length && !is_separator(t, t->line[at]))
            at++;
        f->end = at;
    }
    while (f->end > f->begin && is_blank(t->line[f->end - 1]))
        f->end--;
    const size_t after = skip_blanks(t, at);
    if (after < t->line_length && t->separator != ' ' && t->line[after] != t->separator)
        return refuse(t, WW_CORRUPT_FILE, after, "text after a quoted field; expected a separator");
    if (after < t->line_length && t->separator == ' ' && after == at)
        return refuse(t, WW_CORRUPT_FILE, after, "text after a quoted field; expected a space");
    f->last = after >= t->line_length;
    f->next = t->separator == ' ' ? after : after + 1;
    return WW_OK;
}

static ww_status not_a_number(const table *t, const field *f, const char *advice)
{
    char excerpt[EXCERPT_BYTES + 4];
    const size_t length = f->end - f->begin;
    const size_t shown = min_size(length, EXCERPT_BYTES);
    if (length == 0)
        return refuse(t, WW_CORRUPT_FILE, f->begin, "empty field; expected a number");
    for (size_t i = 0; i < shown; i++) {
        const char c = t->line[f->begin + i];
        excerpt[i] = (char)(c < ' ' || c > '~' ? '?' : c);
    }
    snprintf(excerpt + shown, sizeof excerpt - shown, shown < length ? "..." : "");
    const bool comma = memchr(t->line + f->begin, ',', length) != NULL;
    return refuse(t, WW_CORRUPT_FILE, f->begin, "'%s' is not a number%s", excerpt,
                  comma ? "; write decimals with a point" : advice);
}

/* A name starts with neither a digit nor a sign nor a point: such a field is meant as a number, and a line of invalid numbers
 * must not count as names. */
static bool is_name(const table *t, const field *f)
{
    return f->end > f->begin && !strchr("+-.0123456789", t->line[f->begin]);
}

/* Finds out whether the current line has names: at least one, and no number. A line with both is refused. */
static ww_status is_header(table *t, bool *header)
{
    size_t at = 0;
    field f = {0}, name = {0};
    int64_t names = 0, numbers = 0, column = 0;
    do {
        float ignored;
        const ww_status status = find_field(t, at, &f);
        if (status != WW_OK)
            return status;
        if (column++ == t->id_column) {
            at = f.next;
            continue;
        }
        if (number_read(t->line + f.begin, f.end - f.begin, t->c_locale, &ignored) != NUMBER_NOT)
            numbers++;
        else if (is_name(t, &f) && names++ == 0)
            name = f;
        at = f.next;
    } while (!f.last);
    if (names > 0 && numbers > 0)
        return not_a_number(t, &name, ", but others on this line are; if this is a header, remove it");
    *header = names > 0;
    return WW_OK;
}

/* ---- ids ----------------------------------------------------------------------------------------------------------------- */

/* Copies the field to `to`, which has room for the whole field: without its quotes, with doubled quotes made single. Returns
 * the length. */
static size_t field_text(const table *t, const field *f, char *to)
{
    size_t length = 0;
    const bool quoted = f->begin > 0 && memchr(t->line + f->begin, '"', f->end - f->begin) != NULL;
    for (size_t i = f->begin; i < f->end; i++) {
        to[length++] = t->line[i];
        if (quoted && t->line[i] == '"' && i + 1 < f->end && t->line[i + 1] == '"')
            i++;
    }
    return length;
}

static ww_status append_id(table *t, const field *f)
{
    const size_t need = t->ids_bytes + (f->end - f->begin) + 1;
    if (f->end == f->begin)
        return refuse(t, WW_CORRUPT_FILE, f->begin, "the id is empty; every row needs one");
    if (need > t->ids_capacity) {
        char *moved = memory_resize(t->ids, need + need / 2 + LINE_BYTES_FIRST);
        if (!moved)
            return memory_failed("the ids of a CSV file", need + need / 2 + LINE_BYTES_FIRST);
        t->ids = moved;
        t->ids_capacity = need + need / 2 + LINE_BYTES_FIRST;
    }
    if (t->rows == t->id_at_capacity) {
        const int64_t capacity = t->id_at_capacity + t->id_at_capacity / 2 + VALUES_FIRST;
        size_t *moved = memory_resize(t->id_at, (size_t)capacity * sizeof *moved);
        if (!moved)
            return memory_failed("the ids of a CSV file", (size_t)capacity * sizeof *moved);
        t->id_at = moved;
        t->id_at_capacity = capacity;
    }
    t->id_at[t->rows] = t->ids_bytes;
    t->ids_bytes += field_text(t, f, t->ids + t->ids_bytes);
    t->ids[t->ids_bytes++] = '\0';
    return WW_OK;
}

/* Sets t->id_column to column number `wanted` of the first line, or to the column with the name `name`, or fails. */
static ww_status search_columns(table *t, long long wanted, const char *name, char *text)
{
    size_t at = 0;
    field f = {0};
    for (t->id_column = 0;; t->id_column++, at = f.next) {
        const ww_status status = find_field(t, at, &f);
        if (status != WW_OK)
            return status;
        const size_t length = field_text(t, &f, text);
        if (wanted > 0 ? t->id_column + 1 == wanted : length == strlen(name) && memcmp(text, name, length) == 0)
            return WW_OK;
        if (f.last)
            break;
    }
    if (wanted > 0)
        return refuse(t, WW_INVALID_ARGUMENT, 0, "the line has %lld columns; the ids should be in column %lld",
                      (long long)t->id_column + 1, wanted);
    return refuse(t, WW_INVALID_ARGUMENT, 0, "no column is called '%.200s', which should hold the ids", name);
}

/* A number from 1 on is the index of a column; anything else is a name, which the first line must have. */
static ww_status find_id_column(table *t)
{
    char *end;
    errno = 0;
    const long long number = strtoll(t->id_name, &end, 10);
    const bool is_place = end != t->id_name && *end == '\0' && number >= 1 && errno == 0;
    char *text = memory_alloc(t->line_length + 1);
    if (!text)
        return memory_failed("a name of a CSV file", t->line_length + 1);
    const ww_status status = search_columns(t, is_place ? number : 0, t->id_name, text);
    memory_free(text);
    return status;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static ww_status append_value(table *t, float value)
{
    if (t->values_count == t->values_capacity) {
        const int64_t capacity = t->values_capacity ? t->values_capacity + t->values_capacity / 2 : VALUES_FIRST;
        float *moved = memory_resize(t->values, (size_t)capacity * sizeof *moved);
        if (!moved)
            return memory_failed("the numbers of a CSV file", (size_t)capacity * sizeof *moved);
        t->values = moved;
        t->values_capacity = capacity;
    }
    t->values[t->values_count++] = value;
    return WW_OK;
}

static ww_status read_row(table *t)
{
    size_t at = 0;
    field f = {0};
    int64_t columns = 0, column = 0;
    do {
        float value = 0.0f;
        ww_status status = find_field(t, at, &f);
        if (status != WW_OK)
            return status;
        at = f.next;
        if (column++ == t->id_column) {
            status = append_id(t, &f);
            if (status != WW_OK)
                return status;
            continue;
        }
        switch (number_read(t->line + f.begin, f.end - f.begin, t->c_locale, &value)) {
        case NUMBER_NOT:
            return not_a_number(t, &f, "");
        case NUMBER_TOO_LARGE:
            return refuse(t, WW_UNSUPPORTED, f.begin, "the number is too large for f32");
        case NUMBER_OK:
            break;
        }
        status = append_value(t, value);
        if (status != WW_OK)
            return status;
        columns++;
    } while (!f.last);
    if (t->id_column >= column)
        return refuse(t, WW_INVALID_ARGUMENT, 0, "the row has %lld columns; the ids should be in column %lld",
                      (long long)column, (long long)t->id_column + 1);
    if (t->rows == 0) {
        t->dim = columns;
        t->first_row_line = t->line_number;
    }
    if (columns == 0)
        return refuse(t, WW_CORRUPT_FILE, 0, "the row has an id and no numbers");
    if (columns != t->dim)
        return refuse(t, WW_CORRUPT_FILE, 0, "the row has %lld numbers, line %lld has %lld; all rows must have the same length",
                      (long long)columns, (long long)t->first_row_line, (long long)t->dim);
    t->rows++;
    return WW_OK;
}

static ww_status read_line(table *t)
{
    static const char mark[3] = {'\xef', '\xbb', '\xbf'}; /* UTF-8 with a byte order mark: some spreadsheets write one */
    if (t->line_number == 1 && t->line_length >= sizeof mark && memcmp(t->line, mark, sizeof mark) == 0) {
        t->line_length -= sizeof mark;
        memmove(t->line, t->line + sizeof mark, t->line_length);
    }
    const char *nul = memchr(t->line, '\0', t->line_length);
    if (nul)
        return refuse(t, WW_CORRUPT_FILE, (size_t)(nul - t->line), "NUL byte; the text must be ASCII or UTF-8");
    const size_t first = skip_blanks(t, 0);
    if (first == t->line_length || t->line[first] == '#')
        return WW_OK;
    if (!t->separator || t->rows == 0)
        t->separator = find_separator(t);
    if (!t->started) {
        bool header = false;
        t->started = true;
        ww_status status = t->id_name ? find_id_column(t) : WW_OK;
        if (status == WW_OK)
            status = is_header(t, &header);
        if (status != WW_OK || header)
            return status;
    }
    return read_row(t);
}

static ww_status read_table(table *t)
{
    ww_status status = WW_OK;
    bool more = true;
    while (status == WW_OK && more) {
        status = next_line(t, &more);
        if (status == WW_OK && more)
            status = read_line(t);
    }
    if (status == WW_OK)
        status = source_unchanged(t->source);
    if (status == WW_OK && t->rows == 0)
        status = source_refuse(t->source, WW_CORRUPT_FILE, t->source->size,
                               t->source->size == 0 ? "the file is empty" : "the file has no row of numbers");
    return status;
}

void csv_free(csv_table *of)
{
    memory_free(of->values);
    memory_free(of->ids);
    memory_free(of->id_at);
    *of = (csv_table){0};
}

ww_status csv_read(const file_source *source, const char *id_column, csv_table *out)
{
    table *t = memory_alloc_zeroed(1, sizeof *t);
    if (!t)
        return memory_failed("reading a CSV file", sizeof *t);
    ww_status status;
    t->source = source;
    t->id_name = id_column;
    t->id_column = -1;
    t->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (t->c_locale == (locale_t)0)
        status = ww_fail_errno(WW_OUT_OF_MEMORY, errno, "%s: newlocale", source->name);
    else
        status = read_table(t);
    if (t->c_locale != (locale_t)0)
        freelocale(t->c_locale);
    *out = (csv_table){t->rows, t->dim, t->values, t->ids, t->id_at};
    if (status == WW_OK) {
        /* Frees unused memory; if that fails, the larger block is used. */
        float *fitted = memory_resize(t->values, (size_t)t->values_count * sizeof *t->values);
        out->values = fitted ? fitted : t->values;
    } else {
        csv_free(out);
    }
    memory_free(t->line);
    memory_free(t);
    return status;
}
