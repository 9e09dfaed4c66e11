/* Whether a test runs in its long form (tests/long.cmake). Otherwise it tries a sample, so that `make test` stays within ten
 * minutes. */
#ifndef TESTS_LONG_H
#define TESTS_LONG_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool test_is_long(void)
{
    return getenv("WARPWAVE_TEST_LONG") != NULL;
}

#endif
