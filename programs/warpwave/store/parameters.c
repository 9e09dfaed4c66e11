/* Values of `--param`. */
#include "warpwave/store/parameters.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "warpwave/command.h"

/* ":lang" for "lang", "?1" for "1"; a name that starts with one of SQLite's prefixes stays unchanged. */
static bool name_read(char name[PARAMETER_NAME_BYTES], const char *text, size_t length)
{
    const bool number = length > 0 && strspn(text, "0123456789") >= length;
    const char *sign = length > 0 && strchr(":@$?", text[0]) ? "" : number ? "?" : ":";
    return length > 0 && snprintf(name, PARAMETER_NAME_BYTES, "%s%.*s", sign, (int)length, text) < PARAMETER_NAME_BYTES;
}

static void value_read(ww_parameter *p, const char *text)
{
    char *end = NULL;
    errno = 0;
    const long long integer = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0) {
        p->type = WW_VALUE_INTEGER;
        p->integer = integer;
        return;
    }
    errno = 0;
    p->real = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(p->real) && errno == 0) {
        p->type = WW_VALUE_REAL;
        return;
    }
    p->type = strcmp(text, "null") == 0 ? WW_VALUE_NULL : text[0] == '[' ? WW_VALUE_LIST : WW_VALUE_TEXT;
    p->text = text;
}

static ww_status parameter_read(parameters *ps, int64_t i, const char *given)
{
    ww_parameter *p = &ps->list[i];
    const char *equals = strchr(given, '=');
    if (!equals || !name_read(ps->names[i], given, (size_t)(equals - given)))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT,
                                          "--param '%s': it must be a name of less than %d bytes, =, and a value", given,
                                          PARAMETER_NAME_BYTES));
    const char *value = equals + 1;
    const size_t length = strlen(value);
    p->name = ps->names[i];
    if (length >= 2 && value[0] == '\'' && value[length - 1] == '\'') {
        ps->texts[i] = memory_alloc(length - 1);
        if (!ps->texts[i])
            return memory_failed("a parameter", length - 1);
        text_copy(ps->texts[i], length - 1, value + 1);
        p->type = WW_VALUE_TEXT;
        p->text = ps->texts[i];
        return WW_OK;
    }
    value_read(p, value);
    return WW_OK;
}

ww_status given_parameters_read(parameters *ps, const store_settings *s)
{
    ww_status status = WW_OK;
    if (s->params.count > 0 && !s->where)
        status = command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--param gives a value to a parameter of --where, which is missing"));
    for (int64_t i = 0; status == WW_OK && i < s->params.count; i++)
        status = parameter_read(ps, i, s->params.texts[i]);
    return status;
}

void given_parameters_free(parameters *ps)
{
    for (int64_t i = 0; i < TEXT_LIST_MAX; i++)
        memory_free(ps->texts[i]);
}
