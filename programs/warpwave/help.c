/* Prints `warpwave help` from the tables of commands and options, so the help cannot disagree with them. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/json.h"

enum { HELP_COLUMNS = 96, ENTRY_COLUMN = 24 };

static const char exit_codes[] = "Exit codes:\n"
                                 "  0    done\n"
                                 "  1    any other failure; the message says what\n"
                                 "  2    wrong command line: an option, a value, a range\n"
                                 "  3    a bad file: missing, malformed, values that are not finite, duplicate ids\n"
                                 "  4    no such device, or its driver failed\n"
                                 "  5    out of memory, on the host or on the device\n"
                                 "  130  interrupted by Ctrl-C; files that were being written are unchanged\n";

static const char environment[] =
    "Environment:\n"
    "  WARPWAVE_DEVICE  the device that 'auto' stands for: cpu, cuda:0, ...\n"
    "  WARPWAVE_ISA     the CPU's instruction set: scalar, avx2, avx512, amx, neon; default: the best it has\n"
    "  WARPWAVE_THREADS the number of CPU threads; default: one per core\n"
    "  WARPWAVE_MODELS  the folder of models that are given by their names; default: ~/.cache/warpwave\n"
    "  HF_ENDPOINT, HF_TOKEN  another hub to fetch models from, and a key for it\n"
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

/* Prints words, broken into lines that start at column `indent`, and ends the line. */
static void print_words(const char *text, size_t indent, size_t column)
{
    while (*text) {
        const size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + length > HELP_COLUMNS) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        }
        column += (size_t)printf("%s%.*s", column > indent ? " " : "", (int)length, text);
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

static void print_usage(const command *c, const action *a)
{
    const option *options = a ? a->options : c->options;
    const size_t count = a ? a->option_count : c->option_count;
    size_t column = (size_t)printf("usage: %s %s", command_program(), c->name);
    const size_t indent = column;
    if (c->actions)
        print_piece(a ? a->name : "ACTION ...", indent, &column);
    if (a && *a->operands)
        print_piece(a->operands, indent, &column);
    for (size_t i = 0; i < count; i++) {
        const option *o = &options[i];
        char piece[96];
        snprintf(piece, sizeof piece, "%s%s%s%s%s", o->required ? "" : "[", o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "", o->required ? "" : "]");
        print_piece(piece, indent, &column);
    }
    if (c->operand)
        print_piece(c->operand, indent, &column);
    printf("\n");
}

/* Prints a line of a list: the name, then its explanation in a second column. */
static void print_entry(const char *what, const char *help)
{
    const int width = printf("  %s", what);
    if (width >= ENTRY_COLUMN)
        printf("\n%*s", ENTRY_COLUMN, "");
    else
        printf("%*s", ENTRY_COLUMN - width, "");
    print_words(help, ENTRY_COLUMN, ENTRY_COLUMN);
}

static void print_option(const option *o, const char *actions)
{
    char what[96], help[1024];
    snprintf(what, sizeof what, "%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    snprintf(help, sizeof help, "%s%s%s", actions, *actions ? ": " : "", o->help);
    print_entry(what, help);
}

static bool same_option(const option *a, const option *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->help, b->help) == 0 &&
           strcmp(a->argument ? a->argument : "", b->argument ? b->argument : "") == 0;
}

static bool has_option(const action *a, const option *wanted)
{
    for (size_t i = 0; i < a->option_count; i++)
        if (same_option(&a->options[i], wanted))
            return true;
    return false;
}

/* Prints an option of action `first`, with the actions that have it unless all do. Prints nothing if an earlier action has it,
 * because it was printed there. */
static void print_shared_option(const command *c, size_t first, const option *o)
{
    char names[256] = "";
    size_t having = 0;
    for (size_t i = 0; i < c->action_count; i++) {
        if (!has_option(&c->actions[i], o))
            continue;
        if (i < first)
            return;
        text_append(names, sizeof names, having++ ? ", " : "");
        text_append(names, sizeof names, c->actions[i].name);
    }
    print_option(o, having == c->action_count ? "" : names);
}

static void print_actions(const command *c)
{
    printf("\nActions:\n");
    for (size_t i = 0; i < c->action_count; i++) {
        char what[96];
        snprintf(what, sizeof what, "%s%s%s", c->actions[i].name, *c->actions[i].operands ? " " : "", c->actions[i].operands);
        print_entry(what, c->actions[i].summary);
    }
    printf("\nOptions, with the actions that take them (`%s help %s ACTION` lists those of one):\n", command_program(),
           c->name);
    for (size_t i = 0; i < c->action_count; i++)
        for (size_t j = 0; j < c->actions[i].option_count; j++)
            print_shared_option(c, i, &c->actions[i].options[j]);
}

void command_help_print(const command *c, const action *a)
{
    const option *options = a ? a->options : c->options;
    const size_t count = a ? a->option_count : c->option_count;
    print_usage(c, a);
    if (a) {
        putchar('\n');
        print_words(a->summary, 0, 0);
    } else {
        printf("\n%s.\n", c->summary);
    }
    if (c->actions && !a)
        print_actions(c);
    if (count > 0)
        printf("\nOptions:\n");
    for (size_t i = 0; i < count; i++)
        print_option(&options[i], "");
    if (c->notes && !a)
        printf("\n%s", c->notes);
}

/* ---- as JSON --------------------------------------------------------------------------------------------------------------
 */

static void put_options(json_writer *w, const option *options, size_t count)
{
    static const char *const kinds[] = {[OPTION_FLAG] = "flag",     [OPTION_TEXT] = "text",     [OPTION_INTEGER] = "integer",
                                        [OPTION_NUMBER] = "number", [OPTION_CHOICE] = "choice", [OPTION_LIST] = "list"};
    json_open(w, "options", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(w, NULL, '{');
        json_put_text(w, "name", options[i].name);
        json_put_text(w, "argument", options[i].argument);
        json_put_text(w, "kind", kinds[options[i].kind]);
        json_put_bool(w, "required", options[i].required);
        json_put_text(w, "help", options[i].help);
        json_close(w);
    }
    json_close(w);
}

static void put_command(json_writer *w, const command *c)
{
    json_open(w, NULL, '{');
    json_put_text(w, "name", c->name);
    json_put_text(w, "summary", c->summary);
    json_put_text(w, "operand", c->operand);
    put_options(w, c->options, c->option_count);
    json_open(w, "actions", '[');
    for (size_t i = 0; i < c->action_count; i++) {
        json_open(w, NULL, '{');
        json_put_text(w, "name", c->actions[i].name);
        json_put_text(w, "operands", c->actions[i].operands);
        json_put_text(w, "summary", c->actions[i].summary);
        put_options(w, c->actions[i].options, c->actions[i].option_count);
        json_close(w);
    }
    json_close(w);
    json_close(w);
}

void command_table_print(const command *const *commands, size_t count)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_open(&w, "commands", '[');
    for (size_t i = 0; i < count; i++)
        put_command(&w, commands[i]);
    json_close(&w);
    json_close(&w);
}

void command_overview_print(const command *const *commands, size_t count)
{
    printf("warpwave: search vectors exactly, with the same bits on CPUs, NVIDIA and AMD GPUs\n\nCommands:\n");
    for (size_t i = 0; i < count; i++)
        printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n`warpwave help COMMAND` or `warpwave COMMAND --help` explains one command. To start: warpwave demo\n\n%s\n%s",
           exit_codes, environment);
}
