/* Payloads from a CSV file. */
#include "warpwave/text/csv_payloads.h"

#include <string.h>

#include "base/json/json.h"
#include "base/text.h"

typedef struct csv_value {
    const char *text; /* quotes around it are gone, those within are still doubled */
    size_t length;
} csv_value;

static ww_status wrong(const csv_payloads *csv, const char *what)
{
    return ww_fail(WW_CORRUPT_FILE, "%s, line %lld: %s", csv->lines.name, (long long)csv->lines.number, what);
}

static bool quotes_are_paired(const text_buffer *record)
{
    bool paired = true;
    for (size_t i = 0; i < record->bytes; i++)
        paired ^= record->text[i] == '"';
    return paired;
}

/* Reads lines until every quote is closed. Empty lines between records are passed over. */
static ww_status read_record(csv_payloads *csv, text_buffer *record, bool *end)
{
    record->bytes = 0;
    ww_status status = lines_next(&csv->lines, end);
    while (status == WW_OK && !*end && csv->lines.length == 0)
        status = lines_next(&csv->lines, end);
    if (status != WW_OK || *end)
        return status;
    if (!utf8_check(csv->lines.text, csv->lines.length))
        return wrong(csv, "it is not UTF-8");
    status = text_buffer_add(record, csv->lines.text, csv->lines.length);
    while (status == WW_OK && !quotes_are_paired(record)) {
        bool ended = false;
        status =
            record->bytes < JSON_BYTES_MAX ? lines_next(&csv->lines, &ended) : wrong(csv, "the record is longer than 256 MiB");
        if (status == WW_OK && ended)
            status = wrong(csv, "a quote is not closed");
        if (status == WW_OK && !utf8_check(csv->lines.text, csv->lines.length))
            status = wrong(csv, "it is not UTF-8");
        if (status == WW_OK)
            status = text_buffer_add(record, "\n", 1);
        if (status == WW_OK)
            status = text_buffer_add(record, csv->lines.text, csv->lines.length);
    }
    return status == WW_OK ? text_buffer_end(record) : status;
}

/* Reads the value that begins at `*at`, and moves `*at` behind the comma after it, or to NULL after the last one. Returns false
 * if a quote is neither the first nor the last character of a value, nor doubled. Quotes are paired and none is left before the
 * value, so each one that opens is followed by one that closes. */
static bool next_value(const char **at, csv_value *value)
{
    const char *begin = *at, *to = begin, *rest;
    if (*begin == '"') {
        for (to = ++begin; to[0] != '"' || to[1] == '"'; to += to[0] == '"' ? 2 : 1) {
        }
        rest = to + 1;
    } else {
        to += strcspn(begin, ",\"");
        rest = to;
    }
    value->text = begin;
    value->length = (size_t)(to - begin);
    *at = *rest == ',' ? rest + 1 : NULL;
    return *rest == ',' || *rest == '\0';
}

static bool values_are_equal(const csv_value *a, const csv_value *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static ww_status check_names(csv_payloads *csv)
{
    csv_value name, earlier;
    for (const char *at = csv->names.text; at; csv->fields++) {
        if (!next_value(&at, &name))
            return wrong(csv, "a quote is within a value; put quotes around the value, and double those within");
        if (name.length == 0)
            return wrong(csv, "a field has no name");
        const char *before = csv->names.text;
        for (int64_t i = 0; i < csv->fields; i++)
            if (next_value(&before, &earlier) && values_are_equal(&earlier, &name))
                return ww_fail(WW_CORRUPT_FILE, "%s, line %lld: two fields are named '%.*s'", csv->lines.name,
                               (long long)csv->lines.number, (int)name.length, name.text);
    }
    return WW_OK;
}

ww_status csv_payloads_begin(csv_payloads *csv)
{
    bool end = false;
    const ww_status status = read_record(csv, &csv->names, &end);
    if (status == WW_OK && end)
        return ww_fail(WW_CORRUPT_FILE, "%s: it is empty; its first line names the fields", csv->lines.name);
    return status == WW_OK ? check_names(csv) : status;
}

ww_status csv_payloads_open(csv_payloads *csv, const char *path)
{
    *csv = (csv_payloads){0};
    const ww_status status = lines_open(&csv->lines, path);
    return status == WW_OK ? csv_payloads_begin(csv) : status;
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------- */

static ww_status put_text(text_buffer *to, const csv_value *value)
{
    static const char hex[] = "0123456789abcdef";
    ww_status status = text_buffer_add(to, "\"", 1);
    for (size_t i = 0; status == WW_OK && i < value->length; i++) {
        const unsigned char c = (unsigned char)value->text[i];
        const char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        if (c < 0x20) {
            status = text_buffer_add(to, escape, sizeof escape);
        } else {
            if (c == '"' || c == '\\')
                status = text_buffer_add(to, "\\", 1);
            if (status == WW_OK)
                status = text_buffer_add(to, value->text + i, 1);
            i += c == '"'; /* it is doubled */
        }
    }
    return status == WW_OK ? text_buffer_add(to, "\"", 1) : status;
}

/* Is it a number, true or false in JSON? */
static bool is_plain(const csv_value *value)
{
    json_fault fault;
    const char first = value->text[0];
    return (first == '-' || (first >= '0' && first <= '9') || first == 't' || first == 'f') &&
           json_check(value->text, value->length, &fault);
}

static ww_status put_value(text_buffer *to, const csv_value *value)
{
    if (value->length == 0)
        return text_buffer_add_text(to, "null");
    return is_plain(value) ? text_buffer_add(to, value->text, value->length) : put_text(to, value);
}

static ww_status put_payload(csv_payloads *csv)
{
    text_buffer *to = &csv->payload;
    const char *at_name = csv->names.text, *at = csv->record.text;
    int64_t count = 0;
    to->bytes = 0;
    ww_status status = text_buffer_add(to, "{", 1);
    while (status == WW_OK && at) {
        csv_value name = {0}, value;
        if (!next_value(&at, &value))
            return wrong(csv, "a quote is within a value; put quotes around the value, and double those within");
        if (count++ >= csv->fields)
            continue;
        (void)next_value(&at_name, &name);
        if (count > 1)
            status = text_buffer_add(to, ",", 1);
        if (status == WW_OK)
            status = put_text(to, &name);
        if (status == WW_OK)
            status = text_buffer_add(to, ":", 1);
        if (status == WW_OK)
            status = put_value(to, &value);
    }
    if (status == WW_OK && count != csv->fields)
        return ww_fail(WW_CORRUPT_FILE, "%s, line %lld: the record has %lld values; the first line names %lld fields",
                       csv->lines.name, (long long)csv->lines.number, (long long)count, (long long)csv->fields);
    if (status == WW_OK)
        status = text_buffer_add(to, "}", 1);
    return status == WW_OK ? text_buffer_end(to) : status;
}

ww_status csv_payloads_next(csv_payloads *csv, bool *end)
{
    const ww_status status = read_record(csv, &csv->record, end);
    return status == WW_OK && !*end ? put_payload(csv) : status;
}

void csv_payloads_close(csv_payloads *csv)
{
    lines_close(&csv->lines);
    text_buffer_free(&csv->names);
    text_buffer_free(&csv->record);
    text_buffer_free(&csv->payload);
    *csv = (csv_payloads){0};
}
