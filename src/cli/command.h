/* What a command of `warpwave` is, and how it ends.
 *
 * Each command has a file of its own with one `const command`: its options as a table, from which parsing and help are made.
 * Work inside a command returns ww_status like the library; command_end() turns that into a message and an exit code, once.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>
#include <stdio.h>

#include <warpwave/device.h>

#include "base/status.h"
#include "cli/options.h"

typedef enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_OTHER = 1,
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_DATA = 3,
    EXIT_CODE_DEVICE = 4,
    EXIT_CODE_MEMORY = 5,
    EXIT_CODE_INTERRUPTED = 130 /* as a shell says of a program that ctrl-C ended */
} exit_code;

/* One of several things that a command does: `warpwave store create STORE NAME`. */
typedef struct action {
    const char *name;
    const char *operands; /* "STORE NAME" */
    const char *summary;  /* one line */
    const option *options;
    size_t option_count;
    const void *way; /* how it is done: what the command itself makes of it */
} action;

/* A command has options, or actions with options of their own. Help, the manual page, the reference page and the completions
 * are made from these tables: scripts/command-reference.py. */
typedef struct command {
    const char *name;
    const char *summary; /* one line, for the list of commands */
    const char *notes;   /* what the options' own lines do not say; ends with a newline */
    const char *operand; /* those that may follow the options, "[COMMAND]"; NULL if there are none */
    const option *options;
    size_t option_count;
    const action *actions;
    size_t action_count;
    exit_code (*run)(const char *const *arguments, size_t count); /* what follows the command's name */
} command;

extern const command command_devices, command_search, command_demo, command_bench, command_gguf, command_safetensors,
    command_quant, command_store, command_model, command_serve, command_version;

/* Fills `settings`, which holds the defaults, from the arguments; on a mistake says so and returns EXIT_CODE_USAGE. */
exit_code command_parse(const command *self, const char *const *arguments, size_t count, void *settings);

/* Says "warpwave NAME: the library's message" on stderr unless the status is WW_OK; returns the exit code for it.
 * Also makes sure that what was printed has reached stdout: a full disk is a failure, too. */
exit_code command_end(const command *self, ww_status status);

/* The name of the program in messages and help; "warpwave" by default. */
void command_program_set(const char *name);
const char *command_program(void);

/* Says of a failure that the command line, or a variable of the environment, is what is wrong, whatever the library calls it:
 * command_end() then gives EXIT_CODE_USAGE. Returns `status`, also WW_OK, of which it says nothing. */
ww_status command_line_wrong(ww_status status);

/* Opens a device. A WARPWAVE_ISA or WARPWAVE_THREADS that cannot be is a wrong command line. */
ww_status command_open_device(const char *name, ww_device **device);

/* If --json is among the arguments, a failure, also of reading them, is printed on stdout, too, as a JSON object:
 * {"error": true, "status", "exit_code", "message"}. */
void command_watch_json(const char *const *arguments, size_t count);

/* Says "warpwave NAME: message" on stderr and where help is; returns EXIT_CODE_USAGE. `self` may be NULL. */
__attribute__((format(printf, 2, 3))) exit_code command_misused(const command *self, const char *format, ...);

/* The action that the first argument names. NULL after a message if it names none, or there is none. */
const action *command_action(const command *self, const char *const *arguments, size_t count);
const action *action_named(const command *c, const char *name); /* the same without a message */

/* Prints the help of a command on stdout, or of an action of it if that is not NULL; the list of all commands, in their order,
 * with exit codes and environment; or all commands, actions and options as JSON. */
void command_help_print(const command *c, const action *a);
void command_table_print(const command *const *commands, size_t count);
void command_overview_print(const command *const *commands, size_t count);

/* "cpu: Arm Neoverse V1" and the end of the line. The name is what a driver says. */
void command_print_device(FILE *to, const ww_device_info *info);

#endif
