/* Operands apart from options. */
#include "cli/operands.h"

#include <string.h>

/* Does the option that `argument` names take the next argument for its value? */
static bool takes_next(const option *options, size_t count, const char *argument)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(options[i].name, argument) == 0)
            return options[i].kind != OPTION_FLAG;
    return false;
}

exit_code operands_parse(const command *self, const option *options, size_t option_count, const char *const *arguments,
                         size_t count, const char *names, size_t wanted, const char **operands, void *settings)
{
    const char *rest[ARGUMENTS_MAX];
    size_t rest_count = 0, found = 0;
    if (count > ARGUMENTS_MAX)
        return command_misused(self, "too many arguments");
    for (size_t i = 0; i < count; i++) {
        if (arguments[i][0] != '-' && found++ < wanted) {
            operands[found - 1] = arguments[i];
            continue;
        }
        if (arguments[i][0] != '-')
            return command_misused(self, "unexpected argument '%s'%s%s", arguments[i], *names ? "; expected: " : "", names);
        rest[rest_count++] = arguments[i];
        if (takes_next(options, option_count, arguments[i]) && i + 1 < count)
            rest[rest_count++] = arguments[++i];
    }
    if (options_parse(options, option_count, rest, rest_count, settings) != WW_OK)
        return command_misused(self, "%s", ww_error_message());
    if (found < wanted)
        return command_misused(self, "expected: %s; %zu of %zu given", names, found, wanted);
    return EXIT_CODE_OK;
}
