/* Separating operands from options. */
#include "cli/operands.h"

#include <string.h>

/* "-" alone stands for standard input or output. */
static bool is_operand(const char *argument)
{
    return argument[0] != '-' || argument[1] == '\0';
}

/* Does the option that `argument` names take the next argument for its value? */
static bool takes_next(const syntax *takes, const char *argument)
{
    for (size_t i = 0; i < takes->option_count; i++)
        if (strcmp(takes->options[i].name, argument) == 0)
            return takes->options[i].kind != OPTION_FLAG;
    return false;
}

exit_code operands_parse(const command *self, const syntax *takes, argument_list given, const char **operands, void *settings)
{
    const char *rest[ARGUMENTS_MAX], *const *arguments = given.arguments, *names = takes->operands;
    size_t rest_count = 0, found = 0;
    if (given.count > ARGUMENTS_MAX)
        return command_misused(self, "too many arguments");
    for (size_t i = 0; i < given.count; i++) {
        if (is_operand(arguments[i]) && found++ < takes->operand_count) {
            operands[found - 1] = arguments[i];
            continue;
        }
        if (is_operand(arguments[i]))
            return command_misused(self, "unexpected argument '%s'%s%s", arguments[i], *names ? "; expected: " : "", names);
        rest[rest_count++] = arguments[i];
        if (takes_next(takes, arguments[i]) && i + 1 < given.count)
            rest[rest_count++] = arguments[++i];
    }
    if (options_parse(takes->options, takes->option_count, rest, rest_count, settings) != WW_OK)
        return command_misused(self, "%s", ww_error_message());
    if (found < takes->operand_count)
        return command_misused(self, "expected: %s; %zu of %zu given", names, found, takes->operand_count);
    return EXIT_CODE_OK;
}
