/* `warpwave search --radius` and `--min-score`: all rows within a bound instead of the k nearest. */
#ifndef CLI_SEARCH_SEARCH_RANGE_H
#define CLI_SEARCH_SEARCH_RANGE_H

#include "cli/search/search.h"

/* Reads the bound, if there is one. Refuses both at once, one that does not go with the metric, and what is not a number. */
ww_status search_range_read(search_settings *settings);

/* Searches once. The results are kept as a search's are, with the k of the query that has the most: rows, scores, k and
 * totals of the run are set, in place of those before. */
ww_status search_range_once(search_run *run, ww_progress progress, void *user);

#endif
