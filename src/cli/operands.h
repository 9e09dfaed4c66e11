/* Words that are no options: `gguf quantize IN OUT --type q4_K` has three. */
#ifndef CLI_OPERANDS_H
#define CLI_OPERANDS_H

#include "cli/command.h"

enum { ARGUMENTS_MAX = 64 };

/* Separates the operands of a command, `wanted` of them, from its options, and parses those into `settings`. `names` are what
 * the operands are called, "IN OUT", for the message when there are more or fewer. Returns EXIT_CODE_USAGE after a mistake. */
exit_code operands_parse(const command *self, const option *options, size_t option_count, const char *const *arguments,
                         size_t count, const char *names, size_t wanted, const char **operands, void *settings);

#endif
