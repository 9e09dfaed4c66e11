/* Maps: all rows of a collection as points in the plane, with similar vectors close together.
 *
 * A map is made from the graph of each row's exact nearest neighbours: the points start at the first two principal components
 * of the rows, then neighbours attract each other and random points repel. The same rows and seed give the same bits on every
 * device, for any number of threads. docs/guide/map.md says what to read from it.
 *
 * The collection keeps its map; one in a store (store.h) keeps it in the file, where other processes find it. New rows are
 * placed at the weighted mean of their neighbours, removed rows leave, and a row whose vector was replaced is placed again.
 * Only a remake moves the others.
 *
 * Threads: any number may make, read and destroy maps at once; a map itself never changes.
 */
#ifndef WARPWAVE_MAP_H
#define WARPWAVE_MAP_H

#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_MAP_NEIGHBOURS_MAX 256
#define WW_MAP_STEPS_MAX      1000000

/* How to make a map. A kept map that was made with other numbers is made again. */
typedef struct ww_map_config {
    size_t struct_size;
    int32_t neighbours;   /* of each row, 2 to WW_MAP_NEIGHBOURS_MAX; 0: as in the kept map, 15 for a new one */
    int32_t steps;        /* of the layout, at most WW_MAP_STEPS_MAX; 0: as in the kept map, 2000 for a new one */
    int64_t seed;         /* 0 or more; -1, the default: as in the kept map, 0 for a new one */
    int32_t remake;       /* not 0: the map is made again from the rows as they are now */
    int64_t nprobe;       /* with an index (ivf.h): finds neighbours in this many lists. 0: exactly */
    ww_progress progress; /* in rows searched and steps made; may be NULL. Returning non-zero cancels */
    void *progress_user;
} ww_map_config;

typedef struct ww_map ww_map;

/* Where the map of a call came from. */
typedef enum ww_map_origin {
    WW_MAP_KEPT = 0,  /* it existed, and no row has changed */
    WW_MAP_GROWN = 1, /* it existed; some rows were added, removed or replaced */
    WW_MAP_MADE = 2   /* it was made now */
} ww_map_origin;

typedef struct ww_map_info {
    size_t struct_size; /* set by ww_map_info_default() */
    int64_t rows;
    int64_t rows_placed; /* of them, placed at the mean of their neighbours since the map was made */
    int32_t neighbours;
    int32_t steps;
    int64_t seed;
    ww_map_origin origin;
    int32_t kept; /* not 0: the collection keeps it; 0: the store is open read-only */
} ww_map_info;

/* Every default but the seed is zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_map_config_init(void *value, size_t struct_size);
WW_API ww_status ww_map_info_init(void *value, size_t struct_size);

static inline ww_map_config ww_map_config_default(void)
{
    ww_map_config value;
    ww_map_config_init(&value, sizeof value);
    return value;
}
static inline ww_map_info ww_map_info_default(void)
{
    ww_map_info value;
    ww_map_info_init(&value, sizeof value);
    return value;
}

/* Takes an origin; returns "kept", "grown", "made", or NULL for anything else. */
WW_API const char *ww_map_origin_name(ww_map_origin origin);

/* Returns the map of a collection in `map`: makes it if there is none, updates it if rows have changed, and keeps it.
 * NULL for `config`: the defaults. Rows that are written during the call may be missing until the next one. Refuses numbers out
 * of range; WW_CANCELLED if the callback stops it, and the kept map stays as it was. An invalid kept map is made again;
 * WW_CORRUPT_FILE if a store's tables for maps cannot be read, or something else made them. Needs about 1 KB of host memory per
 * row with 15 neighbours. It makes several searches, and other threads may write between them. */
WW_API ww_status ww_collection_map(ww_collection *collection, const ww_map_config *config, ww_map **map);

/* Drops the map that a collection keeps; does nothing if there is none. Waits for readers, or for a lock of the store. */
WW_API ww_status ww_collection_drop_map(ww_collection *collection);

/* Frees a map and what was read from it. Accepts NULL. */
WW_API void ww_map_destroy(ww_map *map);

/* Returns how many points a map has, 0 for NULL. */
WW_API int64_t ww_map_count(const ww_map *map);

/* Return the handles of the points' rows, in order of rows, and their positions: x and y of the first point, of the second,
 * ..., all finite. They belong to the map. NULL for NULL. ww_collection_get() leads from handles to ids and payloads. */
WW_API const int64_t *ww_map_handles(const ww_map *map);
WW_API const float *ww_map_points(const ww_map *map);

/* Describes a map. Refuses NULL. Does not block. */
WW_API ww_status ww_map_describe(const ww_map *map, ww_map_info *info);

#ifdef __cplusplus
}
#endif

#endif
