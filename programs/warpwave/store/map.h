/* The parts of `warpwave store map`. */
#ifndef CLI_STORE_MAP_H
#define CLI_STORE_MAP_H

#include <warpwave/map.h>

#include "warpwave/store/picture.h"

/* Fills in the classes of all points and the legend. WW_NOT_FOUND if no row has the field. */
ww_status map_colours(ww_collection *collection, const ww_map *map, const char *field, picture *p, uint8_t *classes);

#endif
