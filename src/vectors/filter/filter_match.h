/* The conditions of filters: whether one value of a payload meets a test. */
#ifndef WW_VECTORS_FILTER_MATCH_H
#define WW_VECTORS_FILTER_MATCH_H

#include "vectors/filter/filter.h"

/* The condition that is tested, and what was found out so far. */
typedef struct filter_testing {
    const ww_filter *filter;
    const filter_node *node;
    bool found; /* one of the values meets it */
    bool any;   /* there was at least one value */
    ww_status status;
} filter_testing;

/* Test one value, and set `found` if it meets the condition: comparisons; conditions on words, prefixes and substrings
 * (filter_words.c); on places (filter_geo.c). */
void filter_test_equal(filter_testing *t, const char *value);
void filter_test_text(filter_testing *t, const char *value);
void filter_test_place(filter_testing *t, const char *value);

/* Why these reals are not a circle, a box or a polygon; NULL: they are. */
const char *filter_place_wrong(ww_filter_test test, const filter_operand *operands, int64_t count);

#endif
