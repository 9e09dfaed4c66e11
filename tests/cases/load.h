/* A file of cases as JSON. */
#ifndef TESTS_CASES_LOAD_H
#define TESTS_CASES_LOAD_H

#include <jansson.h>

#include "base/status.h"

/* The list of cases in a file, which is a list, an object that has one as "cases", or one case; the caller gives it back. What
 * JSON has no numbers for is read as well: NaN and Infinity, whole numbers beyond 64 bits, and reals beyond f64. Refuses what
 * cannot be read, or is no such list, with WW_CORRUPT_FILE and the place. */
ww_status cases_load(const char *path, json_t **cases);

#endif
