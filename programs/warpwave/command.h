/* What a command of `warpwave` is, and how it ends.
 *
 * Each command has its own file with one `const command`: a table of its options, which parsing and help use. Functions inside
 * a command return ww_status like the library; command_end() turns that into a message and an exit code, once.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>
#include <stdio.h>

#include <warpwave/device.h>

#include "base/status.h"
#include "warpwave/options.h"

typedef enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_OTHER = 1,
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_DATA = 3,
    EXIT_CODE_DEVICE = 4,
    EXIT_CODE_MEMORY = 5,
    EXIT_CODE_INTERRUPTED = 130 /* what shells report for a program that ctrl-C ended */
} exit_code;

/* One of the actions of a command: `warpwave store create STORE NAME`. */
typedef struct action {
    const char *name;
    const char *operands; /* "STORE NAME" */
    const char *summary;  /* one line */
    const option *options;
    size_t option_count;
    const void *way; /* how the action runs; its type is the command's own affair */
} action;

/* A command has options, or actions that have options. cmake/Reference.cmake makes the manual page, the
 * lists of the reference and the completions of shells from these tables. */
typedef struct command {
    const char *name;
    const char *summary; /* one line, for the list of commands */
    const char *notes;   /* what the options' lines do not say; ends with a newline */
    const char *operand; /* arguments that may follow the options, "[COMMAND]"; NULL if there are none */
    const option *options;
    size_t option_count;
    const action *actions;
    size_t action_count;
    exit_code (*run)(const char *const *arguments, size_t count); /* `arguments` starts after the command's name */
} command;

extern const command command_devices, command_search, command_demo, command_bench, command_gguf, command_safetensors,
    command_quant, command_store, command_model, command_serve, command_cluster, command_key, command_version;

/* Fills `settings`, which holds the defaults, from the arguments. Prints a mistake and returns EXIT_CODE_USAGE. */
exit_code command_parse(const command *self, const char *const *arguments, size_t count, void *settings);

/* Prints "warpwave NAME: the library's message" to stderr unless the status is WW_OK; returns the exit code for it. Also checks
 * that everything printed has reached stdout: a full disk is a failure, too. */
exit_code command_end(const command *self, ww_status status);

/* The name of the program in messages and help; "warpwave" by default. */
void command_program_set(const char *name);
const char *command_program(void);

/* Fails because this build lacks what `what` needs: stores, models or the server. */
ww_status command_left_out(const char *what);

/* Marks a failure as a mistake in the command line or the environment, whatever the library calls it: command_end() then
 * returns EXIT_CODE_USAGE. Returns `status`. Does nothing if that is WW_OK. */
ww_status command_line_wrong(ww_status status);

/* Reads the number of --recall: above 0 and at most 1. NULL leaves `recall` as it is. */
ww_status command_read_recall(const char *text, float *recall);

/* Opens a device. An invalid WARPWAVE_ISA or WARPWAVE_THREADS counts as a mistake in the command line. */
ww_status command_open_device(const char *name, ww_device **device);

/* If --json is among the arguments, a failure is also printed to stdout as a JSON object, even if it is in the arguments
 * themselves: {"error": true, "status", "exit_code", "message"}. */
void command_watch_json(const char *const *arguments, size_t count);

/* Prints "warpwave NAME: message" and how to get help to stderr; returns EXIT_CODE_USAGE. `self` may be NULL. */
__attribute__((format(printf, 2, 3))) exit_code command_misused(const command *self, const char *format, ...);

/* Finds the action that the first argument names. Prints a message and returns NULL if there is no argument or no such action.
 */
const action *command_action(const command *self, const char *const *arguments, size_t count);
const action *action_named(const command *c, const char *name); /* the same without a message */

/* Print to stdout: the help of a command, or of one of its actions if `a` is not NULL; all commands, actions and options as
 * JSON; the list of all commands with exit codes and environment. */
void command_help_print(const command *c, const action *a);
void command_table_print(const command *const *commands, size_t count);
void command_overview_print(const command *const *commands, size_t count);

/* Prints "cpu: Arm Neoverse V1" and ends the line. The name comes from the driver. */
void command_print_device(FILE *to, const ww_device_info *info);

#endif
