/* `warpwave search --nprobe` and `--recall`: builds an index over the base rows and searches some of its lists. */
#ifndef CLI_SEARCH_SEARCH_INDEX_H
#define CLI_SEARCH_SEARCH_INDEX_H

#include "warpwave/search/search.h"

/* Reads and checks the options about an index, before any work is done. */
ww_status search_index_read(search_settings *settings);

/* Builds the index, and calibrates it for --recall. Does nothing if neither option was given. */
ww_status search_index_build(search_run *run);

#endif
