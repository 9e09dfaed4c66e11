/* Parses options by a table. Help is printed from the same table, so the two cannot disagree. */
#include "warpwave/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const option *option_named(const option *options, size_t count, const char *argument)
{
    const size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, argument, length) == 0)
            return &options[i];
    return NULL;
}

static ww_status integer_parse(const option *o, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0')
        return ww_fail(WW_INVALID_ARGUMENT, "%s takes an integer, not '%s'", o->name, text);
    if (errno == ERANGE || number < o->min || number > o->max)
        return ww_fail(WW_INVALID_ARGUMENT, "%s must be between %lld and %lld, not %s", o->name, (long long)o->min,
                       (long long)o->max, text);
    *value = number;
    return WW_OK;
}

static ww_status number_parse(const option *o, const char *text, double *value)
{
    char *end;
    const double number = strtod(text, &end);
    if (end == text || *end != '\0')
        return ww_fail(WW_INVALID_ARGUMENT, "%s takes a number, not '%s'", o->name, text);
    if (!(number >= (double)o->min && number <= (double)o->max))
        return ww_fail(WW_INVALID_ARGUMENT, "%s must be between %lld and %lld, not %s", o->name, (long long)o->min,
                       (long long)o->max, text);
    *value = number;
    return WW_OK;
}

static ww_status choice_parse(const option *o, const char *text, int *value)
{
    const char *word = o->argument;
    for (int place = 0;; place++) {
        const size_t length = strcspn(word, "|");
        if (strlen(text) == length && memcmp(word, text, length) == 0) {
            *value = place;
            return WW_OK;
        }
        if (word[length] == '\0')
            return ww_fail(WW_INVALID_ARGUMENT, "%s takes %s, not '%s'", o->name, o->argument, text);
        word += length + 1;
    }
}

static ww_status list_add(const option *o, const char *text, text_list *list)
{
    if (*text == '\0')
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the %s is empty", o->name, o->argument);
    if (list->count == TEXT_LIST_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s is given more than %d times", o->name, TEXT_LIST_MAX);
    list->texts[list->count++] = text;
    return WW_OK;
}

static ww_status value_set(const option *o, const char *text, void *settings)
{
    void *value = (char *)settings + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)value = true;
        return WW_OK;
    case OPTION_TEXT:
        if (*text == '\0')
            return ww_fail(WW_INVALID_ARGUMENT, "%s: the %s is empty", o->name, o->argument);
        *(const char **)value = text;
        return WW_OK;
    case OPTION_INTEGER:
        return integer_parse(o, text, value);
    case OPTION_NUMBER:
        return number_parse(o, text, value);
    case OPTION_CHOICE:
        return choice_parse(o, text, value);
    case OPTION_LIST:
        return list_add(o, text, value);
    }
    return ww_fail(WW_INTERNAL, "option %s has an unknown kind", o->name);
}

/* Reads the option at arguments[*at]; moves *at past it and its value. */
static ww_status option_take(const option *o, const char *const *arguments, size_t count, size_t *at, void *settings)
{
    const char *equals = strchr(arguments[*at], '=');
    const char *text = equals ? equals + 1 : NULL;
    ++*at;
    if (o->kind == OPTION_FLAG && text)
        return ww_fail(WW_INVALID_ARGUMENT, "%s takes no value", o->name);
    if (o->kind != OPTION_FLAG && !text) {
        if (*at == count)
            return ww_fail(WW_INVALID_ARGUMENT, "%s needs a value: %s", o->name, o->argument);
        if (strncmp(arguments[*at], "--", 2) == 0)
            return ww_fail(WW_INVALID_ARGUMENT, "%s needs a value (%s), but '%s' follows; if that is the value, write %s=%s",
                           o->name, o->argument, arguments[*at], o->name, arguments[*at]);
        text = arguments[(*at)++];
    }
    return value_set(o, text, settings);
}

ww_status options_parse(const option *options, size_t option_count, const char *const *arguments, size_t count, void *settings)
{
    bool given[OPTIONS_MAX] = {false};
    if (option_count > OPTIONS_MAX)
        return ww_fail(WW_INTERNAL, "a command has %zu options; the maximum is %d", option_count, OPTIONS_MAX);
    for (size_t at = 0; at < count;) {
        if (arguments[at][0] != '-')
            return ww_fail(WW_INVALID_ARGUMENT, "unexpected argument '%s'", arguments[at]);
        const option *o = option_named(options, option_count, arguments[at]);
        if (!o)
            return ww_fail(WW_INVALID_ARGUMENT, "unknown option '%s'", arguments[at]);
        if (given[o - options] && o->kind != OPTION_LIST)
            return ww_fail(WW_INVALID_ARGUMENT, "%s is given twice", o->name);
        given[o - options] = true;
        const ww_status status = option_take(o, arguments, count, &at, settings);
        if (status != WW_OK)
            return status;
    }
    for (size_t i = 0; i < option_count; i++)
        if (options[i].required && !given[i])
            return ww_fail(WW_INVALID_ARGUMENT, "%s %s is missing", options[i].name, options[i].argument);
    return WW_OK;
}
