/* A screened search of one query: one copy up, two launches, one wait. It does the same as a round (screen_round.h), with fewer
 * calls to the driver. */
#ifndef WW_GPU_SEARCH_SCREEN_ONE_H
#define WW_GPU_SEARCH_SCREEN_ONE_H

#include "gpu/search/screen_round.h"
#include "gpu/search/segment_table.h"

/* Is the query short enough for the host to pack and code it in less time than a launch takes? */
bool screen_one_pays(const search_job *job, int64_t count);

/* Asks; round is as screen_round_begin() wants it except for rows.segments: the table goes up with the query. Leaves the k
 * keys, the threshold and the count in `results`, as a round does. Waits. */
ww_status screen_one_ask(screen_round *round, const screen_asked *asked, const segment_table *table, void *results);

#endif
