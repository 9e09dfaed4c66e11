/* Options of a command as a table: their names, their values, and where the values go.
 *
 * Nothing is parsed and ignored. These are mistakes, and the message names the option: an unknown option, a missing or
 * malformed value, a number out of range, an option given twice, a required option left out.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum option_kind {
    OPTION_FLAG,    /* takes no value; sets a bool */
    OPTION_TEXT,    /* sets a const char *, not empty */
    OPTION_INTEGER, /* sets an int64_t between min and max */
    OPTION_NUMBER,  /* sets a double between min and max */
    OPTION_CHOICE,  /* sets an int: the index of the word in `argument`, "cosine|l2|dot" */
    OPTION_LIST     /* adds to a text_list; may be given several times */
} option_kind;

enum { TEXT_LIST_MAX = 32 };

typedef struct text_list {
    const char *texts[TEXT_LIST_MAX];
    int64_t count;
} text_list;

typedef struct option {
    const char *name;     /* "--base", "-k" */
    const char *argument; /* as help shows it, "FILE"; NULL for a flag */
    const char *help;
    option_kind kind;
    bool required;
    size_t offset; /* offset of the value in the command's settings */
    int64_t min, max;
} option;

enum { OPTIONS_MAX = 64 };

/* Rows of a table, for fields of the command's settings. */
#define OPTION_IS_FLAG(settings, field, name, help) {name, NULL, help, OPTION_FLAG, false, offsetof(settings, field), 0, 0}
#define OPTION_IS_TEXT(settings, field, required, name, argument, help)                                                        \
    {name, argument, help, OPTION_TEXT, required, offsetof(settings, field), 0, 0}
#define OPTION_IS_INTEGER(settings, field, required, name, argument, min, max, help)                                           \
    {name, argument, help, OPTION_INTEGER, required, offsetof(settings, field), min, max}
#define OPTION_IS_NUMBER(settings, field, name, argument, min, max, help)                                                      \
    {name, argument, help, OPTION_NUMBER, false, offsetof(settings, field), min, max}
#define OPTION_IS_CHOICE(settings, field, required, name, words, help)                                                         \
    {name, words, help, OPTION_CHOICE, required, offsetof(settings, field), 0, 0}

#define OPTION_IS_LIST(settings, field, required, name, argument, help)                                                        \
    {name, argument, help, OPTION_LIST, required, offsetof(settings, field), 0, 0}

/* The option that `argument` names, up to its '='; NULL if there is none. */
const option *option_named(const option *options, size_t count, const char *argument);

/* Reads `name value`, `name=value` and flags into `settings`. Refuses the mistakes listed at the top of this file with
 * WW_INVALID_ARGUMENT and a message. Texts in `settings` point into the arguments. */
ww_status options_parse(const option *options, size_t option_count, const char *const *arguments, size_t count, void *settings);

#endif
