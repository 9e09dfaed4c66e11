/* `warpwave search --radius` and `--min-score`: all rows within a bound instead of the k nearest. */
#ifndef CLI_SEARCH_SEARCH_RANGE_H
#define CLI_SEARCH_SEARCH_RANGE_H

#include "warpwave/search/search.h"

/* Reads the bound, if one was given. Refuses both options together, one that does not fit the metric, and text that is not a
 * number. */
ww_status search_range_read(search_settings *settings);

/* Searches once. Replaces rows, scores, k and totals of the run; k is the number of hits of the query that has the most. */
ww_status search_range_once(search_run *run, ww_progress progress, void *user);

#endif
