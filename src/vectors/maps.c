/* The map that a collection in memory keeps: a copy of its points. */
#include <string.h>

#include "base/memory.h"
#include "vectors/collection.h"

static ww_status copy_points(const map_point *points, int64_t count, map_point **copy)
{
    const size_t bytes = (size_t)count * sizeof **copy;
    if (!(*copy = memory_alloc(bytes)))
        return memory_failed("a map", bytes);
    if (bytes > 0)
        memcpy(*copy, points, bytes);
    return WW_OK;
}

ww_status memory_map_read(ww_collection *c, kept_map *map, int64_t *epoch)
{
    ww_status status = WW_OK;
    collection_lock_read(c);
    *epoch = c->epoch;
    *map = c->map;
    map->points = NULL;
    if (map->version > 0)
        status = copy_points(c->map.points, c->map.count, &map->points);
    collection_unlock(c);
    return status;
}

ww_status memory_map_write(ww_collection *c, const map_change *change, bool *kept)
{
    kept_map made = {0};
    if (change) {
        made = *change->map;
        const ww_status status = copy_points(change->map->points, made.count, &made.points);
        if (status != WW_OK)
            return status;
    }
    collection_lock_write(c);
    made.version = change ? c->map.version + 1 : 0;
    map_point *old = c->map.points;
    c->map = made;
    collection_unlock(c);
    memory_free(old);
    *kept = change != NULL;
    return WW_OK;
}
