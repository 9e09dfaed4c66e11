/* The map that a collection in a store keeps (vectors/operations.h). */
#ifndef WW_STORE_MAPS_MAPS_H
#define WW_STORE_MAPS_MAPS_H

#include "vectors/operations.h"

ww_status stored_map_read(ww_collection *base, kept_map *map, int64_t *epoch);
ww_status stored_map_write(ww_collection *base, const map_change *change, bool *kept);

#endif
