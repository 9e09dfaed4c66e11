/* The public calls about maps: read the stored map, compare it with the rows, make or update it, and write it back. */
#include "map/map.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "map/making.h"

STRUCT_INIT(ww_map_config, {.seed = -1})
STRUCT_INIT(ww_map_info, {0})

struct ww_map {
    ww_map_info info;
    int64_t *handles;
    float *points;
};

const char *ww_map_origin_name(ww_map_origin origin)
{
    static const char *const NAMES[] = {[WW_MAP_KEPT] = "kept", [WW_MAP_GROWN] = "grown", [WW_MAP_MADE] = "made"};
    return (unsigned)origin < sizeof NAMES / sizeof *NAMES ? NAMES[origin] : NULL;
}

static ww_status check_config(const ww_map_config *config, const char *function)
{
    if (config->neighbours != 0 && (config->neighbours < 2 || config->neighbours > WW_MAP_NEIGHBOURS_MAX))
        return ww_fail(WW_OUT_OF_RANGE, "%s: neighbours is %d; it must be 2 to %d, or 0 for the default", function,
                       config->neighbours, WW_MAP_NEIGHBOURS_MAX);
    if (config->steps < 0 || config->steps > WW_MAP_STEPS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: steps is %d; it must be 1 to %d, or 0 for the default", function, config->steps,
                       WW_MAP_STEPS_MAX);
    if (config->seed < -1)
        return ww_fail(WW_OUT_OF_RANGE, "%s: seed is %lld; it must be 0 or more, or -1 for the default", function,
                       (long long)config->seed);
    return WW_OK;
}

/* ---- a map for the caller ------------------------------------------------------------------------------------------------ */

static ww_status map_create(const map_job *job, ww_map **made)
{
    ww_map *map = memory_alloc_zeroed(1, sizeof *map);
    int64_t *handles = memory_alloc((size_t)job->count * sizeof *handles);
    float *points = memory_alloc((size_t)job->count * 2 * sizeof *points);
    if (!map || !handles || !points) {
        memory_free(points);
        memory_free(handles);
        memory_free(map);
        return memory_failed("a map", (size_t)job->count * 16);
    }
    *map = (ww_map){{.neighbours = job->neighbours, .steps = job->steps, .seed = job->seed}, handles, points};
    for (int64_t i = 0; i < job->count; i++) {
        if (job->gone[i])
            continue;
        const int64_t at = map->info.rows++;
        handles[at] = job->handles[i];
        points[2 * at] = job->x[i];
        points[2 * at + 1] = job->y[i];
        map->info.rows_placed += job->late[i];
    }
    *made = map;
    return WW_OK;
}

void ww_map_destroy(ww_map *map)
{
    if (!map)
        return;
    memory_free(map->points);
    memory_free(map->handles);
    memory_free(map);
}

int64_t ww_map_count(const ww_map *map)
{
    return map ? map->info.rows : 0;
}

const int64_t *ww_map_handles(const ww_map *map)
{
    return map ? map->handles : NULL;
}

const float *ww_map_points(const ww_map *map)
{
    return map ? map->points : NULL;
}

ww_status ww_map_describe(const ww_map *map, ww_map_info *info)
{
    FLOAT_GUARD();
    if (!map || !info)
        return fail_null("ww_map_describe", map ? "info" : "map");
    return struct_write(info, &map->info, sizeof map->info, "ww_map_describe", "ww_map_info");
}

/* ---- the map of a collection --------------------------------------------------------------------------------------------- */

/* Called when the rows are read and the device is held. */
static ww_status find_map(making *m, ww_map **map)
{
    bool kept = true;
    ww_map *made = NULL;
    ww_status status = m->again ? map_make(m) : map_grow(m);
    if (status == WW_OK)
        status = map_create(&m->job, &made);
    if (status == WW_OK && m->origin != WW_MAP_KEPT)
        status = map_keep(m, &kept);
    if (status != WW_OK) {
        ww_map_destroy(made);
        return status;
    }
    made->info.origin = m->origin;
    made->info.kept = kept;
    *map = made;
    return WW_OK;
}

ww_status ww_collection_map(ww_collection *collection, const ww_map_config *config, ww_map **map)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_map";
    ww_map_config asked = {.seed = -1};
    ww_status status = collection_check(collection, function);
    if (status == WW_OK && !map)
        return fail_null(function, "map");
    if (status == WW_OK && config)
        status = struct_read(&asked, sizeof asked, config, function, "ww_map_config");
    if (status == WW_OK)
        status = check_config(&asked, function);
    if (status != WW_OK)
        return status;
    making m = {.job = {.collection = collection, .config = &asked}};
    status = making_begin(&m);
    if (status == WW_OK)
        status = find_map(&m, map);
    making_end(&m);
    return status;
}

ww_status ww_collection_drop_map(ww_collection *collection)
{
    FLOAT_GUARD();
    bool kept = false;
    const ww_status status = collection_check(collection, "ww_collection_drop_map");
    return status == WW_OK ? collection->operations->map_write(collection, NULL, &kept) : status;
}
