/* Writes JSON value by value. */
#include "warpwave/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static void break_line(const json_writer *w)
{
    if (!w->compact)
        fprintf(w->to, "\n%*s", 2 * w->level, "");
}

/* Escapes one character: anything outside ASCII becomes a \u escape, an invalid byte the replacement character. Returns the
 * number of bytes read. */
static size_t print_escaped(FILE *to, const char *text, size_t length)
{
    uint32_t c = 0xfffd;
    const size_t bytes = utf8_read(text, length, &c);
    if (c >= 0x10000)
        fprintf(to, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
    else
        fprintf(to, "\\u%04x", c);
    return bytes > 0 ? bytes : 1;
}

static void print_text(FILE *to, const char *text, size_t length)
{
    putc('"', to);
    for (size_t at = 0; at < length;) {
        const unsigned char c = (unsigned char)text[at];
        if (c < 0x20 || c > 0x7e) {
            at += print_escaped(to, text + at, length - at);
            continue;
        }
        if (c == '"' || c == '\\')
            putc('\\', to);
        putc(c, to);
        at++;
    }
    putc('"', to);
}

/* Writes what precedes a value: a comma, a new line, the key. */
static void begin_value(json_writer *w, const char *key)
{
    if (w->begun)
        fputs(w->compact ? ", " : ",", w->to);
    if (w->level > 0)
        break_line(w);
    w->begun = true;
    if (key) {
        print_text(w->to, key, strlen(key));
        fputs(": ", w->to);
    }
}

void json_open(json_writer *w, const char *key, char kind)
{
    begin_value(w, key);
    putc(kind, w->to);
    w->close[w->level++ % JSON_LEVELS_MAX] = kind == '{' ? '}' : ']';
    w->begun = false;
}

void json_close(json_writer *w)
{
    w->level--;
    if (w->begun)
        break_line(w);
    putc(w->close[w->level % JSON_LEVELS_MAX], w->to);
    w->begun = true;
    if (w->level == 0)
        putc('\n', w->to);
}

void json_put_null(json_writer *w, const char *key)
{
    begin_value(w, key);
    fputs("null", w->to);
}

/* Outside its strings JSON is ASCII, so any other character can be escaped in place; so can a DEL. Line breaks between values
 * are left out, because they would look odd. */
void json_put_json(json_writer *w, const char *key, const char *json)
{
    if (!json) {
        json_put_null(w, key);
        return;
    }
    begin_value(w, key);
    for (size_t at = 0, length = strlen(json); at < length;) {
        const unsigned char c = (unsigned char)json[at];
        if (c > 0x7e) {
            at += print_escaped(w->to, json + at, length - at);
            continue;
        }
        putc(c < 0x20 ? ' ' : c, w->to);
        at++;
    }
}

void json_put_bytes(json_writer *w, const char *key, const char *text, size_t length)
{
    if (!utf8_check(text, length)) {
        json_put_null(w, key);
        return;
    }
    begin_value(w, key);
    print_text(w->to, text, length);
}

void json_put_text(json_writer *w, const char *key, const char *text)
{
    if (text)
        json_put_bytes(w, key, text, strlen(text));
    else
        json_put_null(w, key);
}

void json_put_id(json_writer *w, const char *key, const char *id)
{
    char spelt[4 * WW_ID_BYTES_MAX + 1];
    const bool whole = !id || utf8_check(id, strlen(id));
    if (!whole)
        text_plain_copy(spelt, sizeof spelt, id);
    json_put_text(w, key, whole ? id : spelt);
}

void json_put_integer(json_writer *w, const char *key, int64_t value)
{
    begin_value(w, key);
    fprintf(w->to, "%lld", (long long)value);
}

void json_put_real(json_writer *w, const char *key, double value)
{
    char text[40];
    if (!isfinite(value)) {
        json_put_null(w, key);
        return;
    }
    snprintf(text, sizeof text, "%.*g", w->digits, value);
    begin_value(w, key);
    fputs(text, w->to);
    if (!strpbrk(text, ".e"))
        fputs(".0", w->to); /* keeps a decimal point, for readers that distinguish reals from integers */
}

void json_put_bool(json_writer *w, const char *key, bool value)
{
    begin_value(w, key);
    fputs(value ? "true" : "false", w->to);
}

void json_put_statistics(json_writer *w, const char *key, ww_screen screen, const ww_search_stats *stats)
{
    json_open(w, key, '{');
    json_put_text(w, "screen", ww_screen_name(screen));
    json_put_bool(w, "exact", stats->certificate >= 0.0f && stats->lists_read == 0); /* NaN: nothing is proven */
    json_put_integer(w, "rows_screened", stats->rows_screened);
    json_put_integer(w, "rows_kept", stats->rows_kept);
    json_put_integer(w, "rows_scored", stats->rows_scored);
    json_put_integer(w, "fallback_queries", stats->fallback_queries);
    json_put_real(w, "certificate", (double)stats->certificate);
    json_put_integer(w, "repeated_queries", stats->repeated_queries);
    json_close(w);
}

ww_status json_keep(json_kept *kept, int digits)
{
    *kept = (json_kept){.writer = {.digits = digits}};
    kept->writer.to = open_memstream(&kept->text, &kept->length);
    return kept->writer.to ? WW_OK : memory_failed("the JSON report", 0);
}

ww_status json_kept_check(json_kept *kept)
{
    return fflush(kept->writer.to) == 0 && !ferror(kept->writer.to) ? WW_OK : memory_failed("the JSON report", kept->length);
}

void json_kept_print(const json_kept *kept)
{
    fwrite(kept->text, 1, kept->length, stdout);
}

void json_kept_free(json_kept *kept)
{
    if (kept->writer.to)
        fclose(kept->writer.to);
    free(kept->text);
    *kept = (json_kept){0};
}
