/* Reading the arguments of the virtual table. */
#include "store/sqlite/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { NAME_BYTES = 32, VALUE_BYTES = 64 };

/* text[from..to) without the spaces around it. */
static void trim(const char *text, size_t *from, size_t *to)
{
    while (*from < *to && isspace((unsigned char)text[*from]))
        ++*from;
    while (*to > *from && isspace((unsigned char)text[*to - 1]))
        --*to;
}

static ww_status copy_part(const char *text, size_t from, size_t to, char *part, size_t capacity)
{
    trim(text, &from, &to);
    if (to - from >= 2 && (text[from] == '\'' || text[from] == '"') && text[to - 1] == text[from])
        from++, to--;
    if (to - from >= capacity)
        return ww_fail(WW_INVALID_ARGUMENT, "argument \"%.60s\": too long", text);
    memcpy(part, text + from, to - from);
    part[to - from] = '\0';
    return WW_OK;
}

static ww_status read_dim(const char *value, table_arguments *arguments)
{
    char *end = NULL;
    errno = 0;
    const long dim = strtol(value, &end, 10);
    if (arguments->dim != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "dim is given twice");
    if (end == value || *end || errno || dim < 1 || dim > WW_DIM_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "dim is %s; it must be 1 to %d", value, WW_DIM_MAX);
    arguments->dim = (int32_t)dim;
    return WW_OK;
}

static ww_status read_metric(const char *value, table_arguments *arguments)
{
    if (arguments->metric_given)
        return ww_fail(WW_INVALID_ARGUMENT, "metric is given twice");
    static const ww_metric METRICS[] = {WW_COSINE, WW_L2, WW_DOT};
    for (size_t i = 0; i < sizeof METRICS / sizeof *METRICS; i++)
        if (strcasecmp(value, ww_metric_name(METRICS[i])) == 0) {
            arguments->metric = METRICS[i];
            arguments->metric_given = true;
            return WW_OK;
        }
    return ww_fail(WW_INVALID_ARGUMENT, "metric is %s; it must be cosine, l2 or dot", value);
}

static ww_status read_type(const char *value, table_arguments *arguments)
{
    if (arguments->type_given)
        return ww_fail(WW_INVALID_ARGUMENT, "type is given twice");
    if (!value_type_find(value, &arguments->type))
        return ww_fail(WW_INVALID_ARGUMENT, "type is %s; it must be f32, f16, bf16, i8 or u8", value);
    arguments->type_given = true;
    return WW_OK;
}

static ww_status read_device(const char *value, table_arguments *arguments)
{
    if (arguments->device_given)
        return ww_fail(WW_INVALID_ARGUMENT, "device is given twice");
    if (value[0] == '\0' || strlen(value) >= sizeof arguments->device)
        return ww_fail(WW_INVALID_ARGUMENT, "device is \"%s\"; write auto, cpu, cuda:0 or rocm:0", value);
    text_copy(arguments->device, sizeof arguments->device, value);
    arguments->device_given = true;
    return WW_OK;
}

static ww_status read_rows(const char *value, table_arguments *arguments)
{
    if (arguments->rows_given)
        return ww_fail(WW_INVALID_ARGUMENT, "rows is given twice");
    for (ww_row_place place = WW_ROWS_DEVICE; place <= WW_ROWS_HOST; place++)
        if (strcasecmp(value, ww_row_place_name(place)) == 0) {
            arguments->rows = place;
            arguments->rows_given = true;
            return WW_OK;
        }
    return ww_fail(WW_INVALID_ARGUMENT, "rows is %s; it must be device or host", value);
}

static ww_status read_vectors(const char *value, table_arguments *arguments)
{
    if (arguments->vectors_given)
        return ww_fail(WW_INVALID_ARGUMENT, "vectors is given twice");
    arguments->vectors_given = true;
    arguments->vectors_as_json = strcasecmp(value, "json") == 0;
    if (arguments->vectors_as_json || strcasecmp(value, "blob") == 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "vectors is %s; it must be blob or json", value);
}

static ww_status read_one(const char *text, table_arguments *arguments)
{
    static const struct {
        const char *name;
        ww_status (*read)(const char *value, table_arguments *arguments);
    } KNOWN[] = {{"dim", read_dim},       {"metric", read_metric}, {"type", read_type},
                 {"device", read_device}, {"rows", read_rows},     {"vectors", read_vectors}};
    char name[NAME_BYTES], value[VALUE_BYTES];
    const char *equals = strchr(text, '=');
    if (!equals)
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "argument \"%.60s\" has no value; write dim=384, metric=cosine, type=f32, device=auto, rows=device, vectors=blob",
            text);
    ww_status status = copy_part(text, 0, (size_t)(equals - text), name, sizeof name);
    if (status == WW_OK)
        status = copy_part(equals + 1, 0, strlen(equals + 1), value, sizeof value);
    if (status != WW_OK)
        return status;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strcasecmp(name, KNOWN[i].name) == 0)
            return KNOWN[i].read(value, arguments);
    return ww_fail(WW_INVALID_ARGUMENT, "unknown argument %s; the arguments are dim, metric, type, device, rows and vectors",
                   name);
}

ww_status arguments_read(const char *const *texts, int count, table_arguments *arguments)
{
    *arguments = (table_arguments){.metric = WW_COSINE, .type = WW_VECTOR_F32};
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < count; i++) {
        size_t from = 0, to = strlen(texts[i]);
        trim(texts[i], &from, &to);
        if (from < to) /* USING warpwave() has one empty argument */
            status = read_one(texts[i], arguments);
    }
    if (!arguments->device_given)
        text_copy(arguments->device, sizeof arguments->device, "auto");
    return status;
}
