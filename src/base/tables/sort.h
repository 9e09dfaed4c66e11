/* Sorting that can be stopped. */
#ifndef WW_BASE_TABLES_SORT_H
#define WW_BASE_TABLES_SORT_H

#include <stddef.h>

#include <warpwave/status.h>

/* Sorts like qsort(). Fails without memory, and with WW_CANCELLED soon after the token of the call (cancel.h) asks it
 * to stop; the elements are then in no order, and some may be there twice. */
ww_status sort_elements(void *elements, size_t count, size_t bytes, int (*compare)(const void *a, const void *b));

#endif
