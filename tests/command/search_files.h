/* Files that tests of `warpwave search` search. */
#ifndef TESTS_COMMAND_SEARCH_FILES_H
#define TESTS_COMMAND_SEARCH_FILES_H

#include <string.h>

#include "support/command.h"
#include "support/data/random.h"

enum { ROWS = 300, QUERIES = 7, DIM = 37, K = 9 };

static float base[ROWS][DIM], queries[QUERIES][DIM];

static inline int make_files(void **state)
{
    test_random random = {20};
    if (scratch_setup(state) != 0)
        return -1;
    random_normals(&random, base[0], (int64_t)ROWS * DIM);
    random_normals(&random, queries[0], (int64_t)QUERIES * DIM);
    memcpy(base[250], base[100], sizeof base[0]); /* a tie, if a query is near it: */
    memcpy(queries[2], base[100], sizeof base[0]);
    CHECK_OK(ww_matrix_write_f32(scratch_path("base.npy"), base[0], ROWS, DIM));
    CHECK_OK(ww_matrix_write_f32(scratch_path("base.fbin"), base[0], ROWS, DIM));
    CHECK_OK(ww_matrix_write_f32(scratch_path("queries.fbin"), queries[0], QUERIES, DIM));
    return 0;
}

/* The number of a neighbour's row in a report. */
static inline int64_t row_of(const json_t *neighbour)
{
    return json_integer_value(json_object_get(neighbour, "row"));
}

#endif
