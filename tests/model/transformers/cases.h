/* Models with random weights whose numbers a script has computed by the transformers package: the script finds the models by
 * their names, and the test the numbers. What both tests of this room share. */
#ifndef TESTS_MODEL_TRANSFORMERS_CASES_H
#define TESTS_MODEL_TRANSFORMERS_CASES_H

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "support/devices.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, TOKENS_LONG = 300 };

/* A list of models. `check` compares a model with its `texts`: numbers of tokens, and of each what transformers gives. */
typedef struct case_list {
    const char *title, *file;
    int count;
    const char *(*name)(int number);
    void (*write)(int number, const char *path);
    void (*check)(ww_device *device, int number, const json_t *texts);
} case_list;

static const case_list *tested;

/* Tokens as the scripts have them. */
static inline void make_tokens(int32_t *ids, int count)
{
    for (int t = 0; t < count; t++)
        ids[t] = (7 * t * t + 13 * t + 5) % VOCABULARY;
}

/* Compares every each-th of `count` numbers. */
static inline void check_numbers(const float *numbers, int count, int each, const json_t *expected, double tolerance)
{
    assert_int_equal(json_array_size(expected), count / each);
    for (int i = 0; i < count / each; i++) {
        const double right = json_number_value(json_array_get(expected, (size_t)i));
        if (!(fabs((double)numbers[each * i] - right) <= tolerance))
            fail_msg("number %d is %g, not %g", each * i, (double)numbers[each * i], right);
    }
}

static void models_give_the_numbers_of_transformers(void **state)
{
    char path[1024];
    json_error_t error;
    snprintf(path, sizeof path, "%s/tests/model/transformers/%s", SOURCE_DIR, tested->file);
    json_t *expected = json_load_file(path, 0, &error);
    if (!expected)
        fail_msg("%s: %s", tested->file, error.text);
    for (int i = 0; i < tested->count; i++) {
        json_t *texts = json_object_get(expected, tested->name(i));
        assert_true(json_object_size(texts) > 0);
        print_message("%s\n", tested->name(i));
        tested->write(i, scratch_path("model.gguf"));
        tested->check(*state, i, texts);
    }
    json_decref(expected);
}

/* Runs the test, or writes the models for the script: WARPWAVE_WRITE_MODELS names the folder. */
static inline int run_cases(const case_list *list)
{
    const char *folder = getenv("WARPWAVE_WRITE_MODELS");
    for (int i = 0; folder && i < list->count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, list->name(i));
        list->write(i, path);
    }
    if (folder)
        return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_give_the_numbers_of_transformers)};
    void *scratch;
    tested = list;
    if (scratch_setup(&scratch) != 0)
        return 1;
    const int failed = RUN_ON_EVERY_DEVICE(list->title, tests);
    return scratch_teardown(&scratch) != 0 || failed;
}

#endif
