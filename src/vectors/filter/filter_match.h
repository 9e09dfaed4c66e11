/* Shared by the conditions of filters: comparing one value of a payload with an operand. */
#ifndef WW_VECTORS_FILTER_MATCH_H
#define WW_VECTORS_FILTER_MATCH_H

#include "vectors/filter/filter.h"

/* Finds out whether the two can be compared, and the result. */
ww_status filter_compare(const char *value, const filter_operand *operand, bool *comparable, int *order);
bool filter_order_is(filter_operation operation, int order);

/* Finds out whether the text contains the operand. */
ww_status filter_contains(const char *value, const filter_operand *operand, bool *out);

/* Test one node and all nodes below it; and one node of filter_qdrant.c, before negation. */
ww_status filter_node_matches(const filter *f, int32_t index, const filter_row *row, bool *out);
ww_status filter_qdrant_matches(const filter *f, const filter_node *node, const filter_row *row, bool *out);

#endif
