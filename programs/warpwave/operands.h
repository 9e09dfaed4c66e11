/* Operands: arguments that are not options. `gguf quantize IN OUT --type q4_K` has three. */
#ifndef CLI_OPERANDS_H
#define CLI_OPERANDS_H

#include "warpwave/command.h"

enum { ARGUMENTS_MAX = 64 };

typedef struct argument_list {
    const char *const *arguments;
    size_t count;
} argument_list;

/* Separates operands from options: writes the operands of the action to `operands`, in order, and parses the options into
 * `settings`. Prints a mistake and returns EXIT_CODE_USAGE. */
exit_code operands_parse(const command *self, const action *takes, argument_list given, const char **operands, void *settings);

#endif
