/* Separates operands from options. */
#include "warpwave/operands.h"

#include <string.h>

/* "-" alone means standard input or output. */
static bool is_operand(const char *argument)
{
    return argument[0] != '-' || argument[1] == '\0';
}

/* Does the option take the next argument as its value? */
static bool takes_next(const option *o, const char *argument)
{
    return o->kind != OPTION_FLAG && !strchr(argument, '=');
}

static size_t count_words(const char *text)
{
    size_t count = 0;
    for (const char *at = text; *at; at++)
        count += *at != ' ' && (at == text || at[-1] == ' ');
    return count;
}

exit_code operands_parse(const command *self, const action *takes, argument_list given, const char **operands, void *settings)
{
    const char *rest[ARGUMENTS_MAX], *const *arguments = given.arguments;
    const size_t wanted = count_words(takes->operands);
    size_t rest_count = 0, found = 0;
    if (given.count > ARGUMENTS_MAX)
        return command_misused(self, "too many arguments");
    for (size_t i = 0; i < given.count; i++) {
        if (is_operand(arguments[i]) && found++ < wanted) {
            operands[found - 1] = arguments[i];
            continue;
        }
        if (is_operand(arguments[i]))
            return command_misused(self, "unexpected argument '%s'; expected: %s %s", arguments[i], takes->name,
                                   takes->operands);
        /* Report an unknown option first, because the argument after it may be its value and not an operand. */
        const option *o = option_named(takes->options, takes->option_count, arguments[i]);
        if (!o)
            return command_misused(self, "unknown option '%s'", arguments[i]);
        rest[rest_count++] = arguments[i];
        if (takes_next(o, arguments[i]) && i + 1 < given.count)
            rest[rest_count++] = arguments[++i];
    }
    if (options_parse(takes->options, takes->option_count, rest, rest_count, settings) != WW_OK)
        return command_misused(self, "%s", ww_error_message());
    if (found < wanted)
        return command_misused(self, "expected: %s %s; %zu of %zu given", takes->name, takes->operands, found, wanted);
    return EXIT_CODE_OK;
}
