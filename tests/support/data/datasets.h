/* Data sets for testing searches: easy, hard and adversarial ones for the screen. */
#ifndef TESTS_DATASETS_H
#define TESTS_DATASETS_H

#include "support/data/random.h"

typedef struct dataset {
    const char *name;
    /* Fills `count` rows and `query_count` queries of `dim` floats each, contiguous. */
    void (*make)(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count);
} dataset;

extern const dataset datasets[]; /* ends with a NULL name */

/* More datasets for the bound: numbers at the ends of its range, very many ties, rows that need the whole bound. Ends in the
 * same way. */
extern const dataset extreme_datasets[];

/* Returns the dataset with that name; fails the test if there is none. */
const dataset *dataset_named(const char *name);

#endif
