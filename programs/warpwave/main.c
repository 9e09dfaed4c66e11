/* `warpwave`: finds the command that was asked for and runs it. `help` is here, because it knows all commands. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "warpwave/command.h"
#include "warpwave/terminal.h"

static const command command_help;

static const command *const commands[] = {
    &command_devices, &command_search,
#ifdef WARPWAVE_WITH_TEXT
    &command_store,
#endif
    &command_demo,    &command_bench,
#ifdef WARPWAVE_WITH_MODEL
    &command_model,
#endif
#ifdef WARPWAVE_WITH_SERVER
    &command_serve,   &command_cluster,     &command_key,
#endif
    &command_gguf,    &command_safetensors, &command_quant, &command_version, &command_help,
};

static const command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static exit_code unknown(const command *self, const char *name)
{
    if (strcmp(name, "store") == 0 || strcmp(name, "model") == 0 || strcmp(name, "serve") == 0 ||
        strcmp(name, "cluster") == 0 || strcmp(name, "key") == 0)
        return command_end(self, command_left_out(name));
    if (strcmp(name, "import") == 0)
        return command_misused(self,
                               "import reads other stores by their Python packages; run python3 -m warpwave import --help");
    return command_misused(self, "unknown %s '%s'", name[0] == '-' ? "option" : "command", name);
}

static exit_code help_run(const char *const *arguments, size_t count)
{
    if (count == 1 && strcmp(arguments[0], "--json") == 0) {
        command_table_print(commands, sizeof commands / sizeof *commands);
        return command_end(&command_help, WW_OK);
    }
    if (count == 0) {
        command_overview_print(commands, sizeof commands / sizeof *commands);
        return command_end(&command_help, WW_OK);
    }
    const command *wanted = find(arguments[0]);
    if (!wanted)
        return unknown(&command_help, arguments[0]);
    if (count > (wanted->actions ? 2 : 1))
        return command_misused(&command_help, "help takes one command%s, %zu words were given",
                               wanted->actions ? " and one action of it" : "", count);
    const action *of_it = count == 2 ? command_action(wanted, arguments + 1, 1) : NULL;
    if (count == 2 && !of_it)
        return EXIT_CODE_USAGE;
    command_help_print(wanted, of_it);
    return command_end(&command_help, WW_OK);
}

typedef struct help_settings {
    bool json;
} help_settings;

static const option help_options[] = {
    OPTION_IS_FLAG(help_settings, json, "--json", "print all commands, actions and options as one JSON object"),
};

static const command command_help = {
    .name = "help",
    .summary = "Explain a command or an action of it, or list all of them with exit codes and environment variables",
    .operand = "[COMMAND [ACTION]]",
    .options = help_options,
    .option_count = sizeof help_options / sizeof *help_options,
    .run = help_run,
};

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* If a standard stream were closed, the next file opened would take its descriptor, and a report would be written into that
 * file. The replacement is open in the wrong direction, so a report that goes nowhere is a failure. */
static void keep_standard_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0)
            (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    const char *const *arguments = (const char *const *)argv + 2;
    const size_t count = argc > 2 ? (size_t)argc - 2 : 0;
    fesetenv(FE_DFL_ENV);    /* undo what a loaded library may have set: numbers are read and printed in round-to-nearest */
    setlocale(LC_CTYPE, ""); /* learn whether the terminal uses UTF-8; numbers stay in the C locale */
    keep_standard_streams();
    interrupts_catch();
    signal(SIGPIPE, SIG_IGN); /* a reader that left and a file at its size limit become failed writes, */
    signal(SIGXFSZ, SIG_IGN); /* which print a message and remove the unfinished file */

    command_watch_json(arguments, count);
    if (argc < 2)
        return (int)command_misused(NULL,
                                    "no command given; the commands are devices, search, store, demo, bench, model, serve, "
                                    "cluster, key, gguf, safetensors, quant, version and help");
    if (asks_for_help(argv[1]))
        return (int)command_help.run(NULL, 0);
    if (strcmp(argv[1], "--version") == 0)
        return (int)command_version.run(arguments, count);
    const command *wanted = find(argv[1]);
    if (!wanted)
        return (int)unknown(NULL, argv[1]);
    for (size_t i = 0; i < count; i++) {
        if (asks_for_help(arguments[i])) {
            command_help_print(wanted, wanted->actions ? action_named(wanted, arguments[0]) : NULL);
            return (int)command_end(wanted, WW_OK);
        }
    }
    return (int)wanted->run(arguments, count);
}
