/* Colours a map's points by a payload field: one colour for each of the commonest values. If a field has more different numbers
 * than there are colours, one colour for each part of their range. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "warpwave/store/map.h"

enum { ROWS_AT_ONCE = 4096, COLOURS = PICTURE_CLASSES - 1 };

/* The value of a row's field. Texts are equal if the bytes that fit in the label are. */
typedef struct field_value {
    int64_t point;
    double number;
    bool is_number;
    char label[PICTURE_LABEL_BYTES]; /* "": no value */
} field_value;

typedef struct group {
    const char *label;
    int64_t first, count; /* range of the sorted values */
} group;

/* Copies as much of a text as fits, without cutting a character. */
static ww_status read_text(const char *json, field_value *value)
{
    const size_t bytes = (size_t)(json_end(json) - json);
    char *text = memory_alloc(bytes);
    if (!text)
        return memory_failed("the value of a field", bytes);
    size_t length = json_text_read(json, text);
    if (length >= sizeof value->label) {
        length = sizeof value->label - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    memcpy(value->label, text, length);
    value->label[length] = '\0';
    memory_free(text);
    return WW_OK;
}

static ww_status read_value(const char *payload, const char *field, field_value *value)
{
    const char *json = json_find_field(payload, field);
    const json_type type = json ? json_type_of(json) : JSON_NULL;
    value->label[0] = '\0';
    value->is_number = type == JSON_NUMBER;
    if (type == JSON_TEXT)
        return read_text(json, value);
    if (type == JSON_NUMBER) {
        const json_number number = json_number_of(json);
        value->number = number.is_integer ? (double)number.integer : number.real;
        snprintf(value->label, sizeof value->label, "%.15g", value->number);
    } else if (type == JSON_TRUE || type == JSON_FALSE) {
        snprintf(value->label, sizeof value->label, "%s", type == JSON_TRUE ? "true" : "false");
    }
    return WW_OK;
}

static ww_status read_values(ww_collection *collection, const ww_map *map, const char *field, field_value *values)
{
    const int64_t count = ww_map_count(map);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < count; first += ROWS_AT_ONCE) {
        ww_results *rows = NULL;
        ww_get get = ww_get_default();
        get.handles = ww_map_handles(map) + first;
        get.count = min_i64(ROWS_AT_ONCE, count - first);
        get.fetch = WW_FETCH_PAYLOADS;
        status = ww_collection_get(collection, &get, &rows);
        for (int64_t i = 0; status == WW_OK && i < get.count; i++) {
            values[first + i].point = first + i;
            status = read_value(ww_results_payload(rows, 0, i), field, &values[first + i]);
        }
        ww_results_destroy(rows);
    }
    return status;
}

static int by_label(const void *a, const void *b)
{
    const field_value *x = a, *y = b;
    const int order = strcmp(x->label, y->label);
    return order ? order : (x->point > y->point) - (x->point < y->point);
}

static int by_count(const void *a, const void *b)
{
    const group *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : strcmp(x->label, y->label);
}

/* Sorts the values and groups equal ones. Skips rows without a value. */
static int64_t group_values(field_value *values, int64_t count, group *groups)
{
    int64_t made = 0;
    qsort(values, (size_t)count, sizeof *values, by_label);
    for (int64_t i = 0; i < count; i++) {
        if (!values[i].label[0])
            continue;
        if (made > 0 && strcmp(groups[made - 1].label, values[i].label) == 0)
            groups[made - 1].count++;
        else
            groups[made++] = (group){values[i].label, i, 1};
    }
    return made;
}

static void set_class(picture *p, uint8_t *classes, int64_t point, int which)
{
    classes[point] = (uint8_t)which;
    p->legend[which].count++;
}

static void colour_by_value(picture *p, uint8_t *classes, const field_value *values, group *groups, int64_t count)
{
    qsort(groups, (size_t)count, sizeof *groups, by_count);
    for (int64_t g = 0; g < count; g++) {
        const int which = g < COLOURS ? (int)g + 1 : 0;
        if (which > 0)
            snprintf(p->legend[which].label, sizeof p->legend[which].label, "%s", groups[g].label);
        for (int64_t i = 0; i < groups[g].count; i++)
            set_class(p, classes, values[groups[g].first + i].point, which);
    }
}

static void colour_by_range(picture *p, uint8_t *classes, const field_value *values)
{
    double low = 0.0, high = 0.0;
    bool begun = false;
    for (int64_t i = 0; i < p->count; i++) {
        if (!values[i].label[0])
            continue;
        low = !begun || values[i].number < low ? values[i].number : low;
        high = !begun || values[i].number > high ? values[i].number : high;
        begun = true;
    }
    const double step = (high - low) / COLOURS;
    for (int which = 1; which <= COLOURS; which++)
        snprintf(p->legend[which].label, sizeof p->legend[which].label, "%.4g to %.4g", low + step * (which - 1),
                 which == COLOURS ? high : low + step * which);
    for (int64_t i = 0; i < p->count; i++) {
        const double part = values[i].label[0] && step > 0.0 ? (values[i].number - low) / step : -1.0;
        if (part >= 0.0)
            set_class(p, classes, values[i].point, 1 + (part < COLOURS - 1 ? (int)part : COLOURS - 1));
    }
}

ww_status map_colours(ww_collection *collection, const ww_map *map, const char *field, picture *p, uint8_t *classes)
{
    const size_t count = (size_t)p->count;
    field_value *values = memory_alloc_zeroed(count, sizeof *values);
    group *groups = memory_alloc(count * sizeof *groups);
    ww_status status = values && groups ? WW_OK : memory_failed("the colours of a map", count * sizeof *values);
    bool numbers = true;
    if (status == WW_OK)
        status = read_values(collection, map, field, values);
    for (int64_t i = 0; status == WW_OK && i < p->count; i++)
        numbers = numbers && (values[i].is_number || !values[i].label[0]);
    if (status == WW_OK) {
        const int64_t different = group_values(values, p->count, groups);
        memset(classes, 0, count);
        p->ordered = numbers && different > COLOURS;
        if (p->ordered)
            colour_by_range(p, classes, values);
        else
            colour_by_value(p, classes, values, groups, different);
        int64_t rest = p->count;
        for (int which = 1; which <= COLOURS; which++)
            rest -= p->legend[which].count;
        p->legend[0].count = rest;
        snprintf(p->legend[0].label, sizeof p->legend[0].label, "other");
        if (different == 0)
            status =
                ww_fail(WW_NOT_FOUND, "no row has a field '%s' with a text, a number, true or false in its payload", field);
    }
    memory_free(groups);
    memory_free(values);
    return status;
}
