/* `warpwave search --nprobe` and `--recall`: an index over the rows of the base, and queries that read some of its lists. */
#ifndef CLI_SEARCH_SEARCH_INDEX_H
#define CLI_SEARCH_SEARCH_INDEX_H

#include "cli/search/search.h"

/* Reads and checks what is asked about an index, before any work is done. */
ww_status search_index_read(search_settings *settings);

/* Builds the index, and calibrates it for --recall; does nothing if neither was asked for. */
ww_status search_index_build(search_run *run);

#endif
