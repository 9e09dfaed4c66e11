/* Filters of tests: read once, kept until the program ends. */
#ifndef WW_TESTS_SUPPORT_FILTERS_H
#define WW_TESTS_SUPPORT_FILTERS_H

#include <warpwave/filter.h>

#include "support/check.h"

enum { FILTERS_OF_TESTS = 64 };

static ww_filter *filters_of_tests[FILTERS_OF_TESTS];
static char *texts_of_tests[FILTERS_OF_TESTS];

static void filters_forget(void)
{
    for (int i = 0; i < FILTERS_OF_TESTS; i++) {
        ww_filter_destroy(filters_of_tests[i]);
        free(texts_of_tests[i]);
    }
}

static const ww_filter *filter_of(const char *json)
{
    int i = 0;
    while (i < FILTERS_OF_TESTS && texts_of_tests[i] && strcmp(texts_of_tests[i], json) != 0)
        i++;
    assert_true(i < FILTERS_OF_TESTS);
    if (i == 0 && !texts_of_tests[0])
        assert_int_equal(atexit(filters_forget), 0);
    if (!texts_of_tests[i]) {
        CHECK_OK(ww_filter_read(json, &filters_of_tests[i]));
        texts_of_tests[i] = strdup(json);
    }
    return filters_of_tests[i];
}

#endif
