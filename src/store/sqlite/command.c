/* Commands to a table, as in FTS5: INSERT INTO docs(docs) VALUES ('build-ivf nlist=1024').
 *
 *   build-ivf   builds the index of the collection: nlist, sample_rows, iterations, seed
 *   calibrate   learns what a recall needs: k, queries, seed, recall
 *   drop-ivf    removes the index
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/ivf/tables.h"
#include "store/sqlite/table.h"

static const char WHITE[] = " \t\n\v\f\r";
enum { COMMAND_BYTES_MAX = 512 };

/* A number that a command takes, and where it goes: a whole number, or a fraction. */
typedef struct command_number {
    const char *name;
    int64_t *value;
    float *fraction;
} command_number;

static ww_status wrong(const char *word)
{
    return ww_fail(
        WW_INVALID_ARGUMENT,
        "'%s' is not a command: build-ivf (nlist=, sample_rows=, iterations=, seed=), calibrate (k=, queries=, seed=, recall=) "
        "or drop-ivf",
        word);
}

/* NAME=NUMBER. */
static ww_status read_number(char *word, const command_number *numbers, size_t count)
{
    char *const equals = strchr(word, '='), *end = NULL;
    const size_t length = equals ? (size_t)(equals - word) : 0;
    for (size_t i = 0; equals && i < count; i++) {
        if (strlen(numbers[i].name) != length || strncmp(numbers[i].name, word, length) != 0)
            continue;
        if (numbers[i].fraction) {
            *numbers[i].fraction = strtof(equals + 1, &end);
            if (end != equals + 1 && *end == '\0')
                return WW_OK;
            return ww_fail(WW_INVALID_ARGUMENT, "%s: '%s' is not a number", numbers[i].name, equals + 1);
        }
        *numbers[i].value = strtoll(equals + 1, &end, 10);
        if (end != equals + 1 && *end == '\0' && *numbers[i].value >= 0 && *numbers[i].value < INT64_MAX)
            return WW_OK;
        return ww_fail(WW_INVALID_ARGUMENT, "%s: '%s' is not a whole number, 0 or more", numbers[i].name, equals + 1);
    }
    return wrong(word);
}

static ww_status read_numbers(char **rest, const command_number *numbers, size_t count)
{
    ww_status status = WW_OK;
    for (char *word; status == WW_OK && (word = strtok_r(NULL, WHITE, rest));)
        status = read_number(word, numbers, count);
    return status;
}

static ww_status check_int32(const char *name, int64_t value)
{
    return value <= INT32_MAX ? WW_OK
                              : ww_fail(WW_OUT_OF_RANGE, "%s is %lld; the maximum is %d", name, (long long)value, INT32_MAX);
}

static ww_status build(view *v, writer *w, char **rest)
{
    ww_ivf_config config = ww_ivf_config_default();
    int64_t iterations = 0, seed = 0;
    const command_number numbers[] = {{"nlist", &config.nlist, NULL},
                                      {"sample_rows", &config.sample_rows, NULL},
                                      {"iterations", &iterations, NULL},
                                      {"seed", &seed, NULL}};
    ww_status status = read_numbers(rest, numbers, sizeof numbers / sizeof *numbers);
    if (status == WW_OK)
        status = check_int32("iterations", iterations);
    config.iterations = (int32_t)iterations;
    config.seed = (uint64_t)seed;
    if (status == WW_OK)
        status = view_begin_whole(v);
    if (status == WW_OK)
        status = view_build_index(v, &config, w);
    view_end(v);
    return status;
}

static ww_status calibrate(view *v, writer *w, char **rest)
{
    ww_calibrate_config config = ww_calibrate_config_default();
    int64_t k = 0, seed = 0;
    const command_number numbers[] = {
        {"k", &k, NULL}, {"queries", &config.query_count, NULL}, {"seed", &seed, NULL}, {"recall", NULL, &config.recall}};
    ww_status status = read_numbers(rest, numbers, sizeof numbers / sizeof *numbers);
    if (status == WW_OK)
        status = check_int32("k", k);
    config.k = (int32_t)k;
    config.seed = (uint64_t)seed;
    if (status == WW_OK)
        status = view_begin_whole(v);
    if (status == WW_OK)
        status = view_calibrate_index(v, &config, w);
    view_end(v);
    return status;
}

static ww_status drop(writer *w, char **rest)
{
    const ww_status status = read_numbers(rest, NULL, 0);
    if (status != WW_OK || ivf_is_there(writer_record(w)))
        return status == WW_OK ? writer_drop_index(w) : status;
    return ww_fail(WW_NOT_FOUND, "there is no index to drop");
}

ww_status table_command(table *t, writer *w, const char *text)
{
    char words[COMMAND_BYTES_MAX], *rest = NULL;
    view *v = NULL;
    if (strlen(text) >= sizeof words)
        return ww_fail(WW_INVALID_ARGUMENT, "a command has at most %d bytes", COMMAND_BYTES_MAX - 1);
    text_copy(words, sizeof words, text);
    const char *verb = strtok_r(words, WHITE, &rest);
    ww_status status = table_view(t, &v);
    if (status != WW_OK)
        return status;
    if (verb && strcmp(verb, "build-ivf") == 0)
        status = build(v, w, &rest);
    else if (verb && strcmp(verb, "calibrate") == 0)
        status = calibrate(v, w, &rest);
    else if (verb && strcmp(verb, "drop-ivf") == 0)
        status = drop(w, &rest);
    else
        status = wrong(verb ? verb : "");
    view_index_changed(v);
    return table_reading_ended(t, status);
}
