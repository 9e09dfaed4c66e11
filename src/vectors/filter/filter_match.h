/* What the conditions of filters share: comparing one value of a payload with an operand. */
#ifndef WW_VECTORS_FILTER_MATCH_H
#define WW_VECTORS_FILTER_MATCH_H

#include "vectors/filter/filter.h"

/* Can the two be compared, and how do they? */
ww_status filter_compare(const char *value, const filter_operand *operand, bool *comparable, int *order);
bool filter_order_is(filter_operation operation, int order);

/* Does the text have the operand as a part? */
ww_status filter_contains(const char *value, const filter_operand *operand, bool *out);

/* Test one node with all nodes below it; and one node of filter_qdrant.c, before negation. */
ww_status filter_node_matches(const filter *f, int32_t index, const filter_row *row, bool *out);
ww_status filter_qdrant_matches(const filter *f, const filter_node *node, const filter_row *row, bool *out);

#endif
