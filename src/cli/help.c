/* What `warpwave help` prints: made from the tables of commands and options, so that it says what the command does. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

enum { HELP_COLUMNS = 96, OPTION_COLUMN = 24 };

static const char exit_codes[] = "Exit codes:\n"
                                 "  0    done\n"
                                 "  1    any other failure; the message says what\n"
                                 "  2    wrong command line: an option, a value, a range\n"
                                 "  3    a bad file: missing, malformed, values that are not finite, duplicate ids\n"
                                 "  4    no such device, or its driver failed\n"
                                 "  5    out of memory, on the host or on the device\n"
                                 "  130  interrupted by ctrl-C; files that were being written are unchanged\n";

static const char environment[] =
    "Environment:\n"
    "  WARPWAVE_DEVICE  the device that 'auto' stands for: cpu, cuda:0, ...\n"
    "  WARPWAVE_ISA     the CPU's instruction set: scalar, avx2, avx512, amx, neon; default: the best it has\n"
    "  WARPWAVE_THREADS the number of CPU threads; default: one per core\n"
    "  NO_COLOR         set to anything to turn off colours\n";

static void print_piece(const char *piece, size_t indent, size_t *column)
{
    const size_t width = strlen(piece) + 1;
    if (*column + width > HELP_COLUMNS) {
        printf("\n%*s", (int)indent, "");
        *column = indent;
    }
    printf(" %s", piece);
    *column += width;
}

static void print_usage(const command *c)
{
    size_t column = (size_t)printf("usage: %s %s", command_program(), c->name);
    const size_t indent = column;
    for (size_t i = 0; i < c->option_count; i++) {
        const option *o = &c->options[i];
        char piece[96];
        snprintf(piece, sizeof piece, "%s%s%s%s%s", o->required ? "" : "[", o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "", o->required ? "" : "]");
        print_piece(piece, indent, &column);
    }
    if (c->operand)
        print_piece(c->operand, indent, &column);
    printf("\n");
}

void command_help_print(const command *c)
{
    print_usage(c);
    printf("\n%s.\n", c->summary);
    if (c->option_count > 0)
        printf("\nOptions:\n");
    for (size_t i = 0; i < c->option_count; i++) {
        const option *o = &c->options[i];
        const int width = printf("  %s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        if (width >= OPTION_COLUMN)
            printf("\n%*s", OPTION_COLUMN, "");
        else
            printf("%*s", OPTION_COLUMN - width, "");
        printf("%s\n", o->help);
    }
    if (c->notes)
        printf("\n%s", c->notes);
}

void command_overview_print(const command *const *commands, size_t count)
{
    printf("warpwave: search vectors exactly, with the same bits on CPUs, NVIDIA and AMD GPUs\n\nCommands:\n");
    for (size_t i = 0; i < count; i++)
        printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n`warpwave help COMMAND` or `warpwave COMMAND --help` explains one command. To start: warpwave demo\n\n%s\n%s",
           exit_codes, environment);
}
