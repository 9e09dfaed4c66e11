/* Runs the built command from a test and checks its output. */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <jansson.h>
#include <stddef.h>

#include "support/check.h"
#include "support/scratch.h"

typedef struct command_result {
    int code; /* the exit code; 128 + the signal if one ended it */
    char *out, *err;
} command_result;

/* Runs `warpwave ARGUMENTS...` with stdin empty, stdout and stderr kept apart. Free it with command_free(). */
#define COMMAND_RUN(...) command_run((const char *[]){__VA_ARGS__, NULL})
command_result command_run(const char *const *arguments);                   /* ends with NULL */
command_result program_run(const char *path, const char *const *arguments); /* the same, with the name in front */
void command_free(command_result *result);

/* Programs that are started from now on run with this rounding mode, as if a preloaded library had called fesetround();
 * FE_TONEAREST: as usual. The test must depend on the target preload_rounding. */
void command_round(int mode);

/* For a test that sets the command's environment: no leak check, which may take seconds. */
#define NO_LEAK_CHECK "ASAN_OPTIONS=detect_leaks=0"

/* Runs, checks the exit code and that stderr (or, for code 0, stdout) contains `text`, and frees. */
#define COMMAND_SAYS(expected, text, ...) command_says(__FILE__, __LINE__, expected, text, (const char *[]){__VA_ARGS__, NULL})
void command_says(const char *file, int line, int expected, const char *text, const char *const *arguments);

/* Runs `warpwave ARGUMENTS...`, which must succeed and print one JSON value; the caller decrefs it. */
#define COMMAND_JSON(...) command_json(__FILE__, __LINE__, (const char *[]){__VA_ARGS__, NULL})
json_t *command_json(const char *file, int line, const char *const *arguments);

#endif
