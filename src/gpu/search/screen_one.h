/* A screened search for one query: one copy to the device, two launches, one wait. It does the work of a round (screen_round.h)
 * with fewer driver calls, for plans that are `one` (screen_plan.h). */
#ifndef WW_GPU_SEARCH_SCREEN_ONE_H
#define WW_GPU_SEARCH_SCREEN_ONE_H

#include "gpu/search/screen_round.h"
#include "gpu/search/segment_table.h"

/* Searches. `round` is set as for screen_round_begin(), except for rows.segments: the table is copied with the query. Writes
 * the k keys, the threshold and the count to `results`, as a round does. Waits. */
ww_status screen_one_run(screen_round *round, const screen_input *input, const segment_table *table, void *results);

#endif
