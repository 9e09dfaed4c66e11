/* The maps of collections (src/map) in the file: two tables for all of them, created with the first map.
 *
 *   warpwave_maps         what a collection's map was made with
 *   warpwave_map_points   where its rows are
 *
 * Nothing else in the file depends on them: an invalid map is ignored and made again. The next write of any map deletes the
 * maps of dropped collections.
 */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/maps/maps.h"
#include "store/store_state.h"

enum { NEIGHBOURS_MIN = 2, NEIGHBOURS_MAX = 256, STEPS_MAX = 1000000, POINTS_FIRST = 1024 }; /* warpwave/map.h */

typedef struct map_table {
    const char *name, *columns;
} map_table;

static const map_table TABLES[] = {
    {"warpwave_maps",
     "(uid INTEGER PRIMARY KEY, version INTEGER NOT NULL, epoch INTEGER NOT NULL, seed INTEGER NOT NULL, neighbours INTEGER "
     "NOT NULL, steps INTEGER NOT NULL)"},
    {"warpwave_map_points",
     "(uid INTEGER NOT NULL, handle INTEGER NOT NULL, place INTEGER NOT NULL, x REAL NOT NULL, y REAL NOT NULL, hash INTEGER "
     "NOT NULL, placed INTEGER NOT NULL, PRIMARY KEY(uid, handle)) WITHOUT ROWID"},
};
enum { TABLE_COUNT = sizeof TABLES / sizeof *TABLES };

/* Do both tables exist? The file may come from anybody, so they are used only if their declarations are ours. */
static ww_status tables_exist(sqlite3 *db, bool *exist)
{
    ww_status status = WW_OK;
    *exist = true;
    for (int i = 0; status == WW_OK && i < TABLE_COUNT; i++) {
        sqlite3_stmt *found = NULL;
        status = schema_statement(db, &found, "SELECT sql = 'CREATE TABLE %s%s' FROM main.sqlite_schema WHERE name = '%s'",
                                  TABLES[i].name, TABLES[i].columns, TABLES[i].name);
        if (status != WW_OK)
            return status;
        const int code = sqlite3_step(found);
        if (code == SQLITE_ROW && sqlite3_column_int(found, 0) != 1)
            status =
                ww_fail(WW_CORRUPT_FILE, "%s is not the table that a store makes for maps; drop it, and maps are made again",
                        TABLES[i].name);
        else if (code != SQLITE_ROW && code != SQLITE_DONE)
            status = sqlite_failed(db, code, "looking for the map of a collection");
        *exist = *exist && code == SQLITE_ROW;
        sqlite3_finalize(found);
    }
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* Reads an integer from `low` to `high`; false if the column has anything else. */
static bool column_integer(sqlite3_stmt *row, int column, int64_t low, int64_t high, int64_t *value)
{
    *value = sqlite3_column_int64(row, column);
    return sqlite3_column_type(row, column) == SQLITE_INTEGER && *value >= low && *value <= high;
}

static bool column_float(sqlite3_stmt *row, int column, float *value)
{
    *value = (float)sqlite3_column_double(row, column);
    return sqlite3_column_type(row, column) == SQLITE_FLOAT && isfinite(*value);
}

/* Reads the map without its points; version 0 if there is none. */
static ww_status read_header(sqlite3 *db, int64_t uid, kept_map *map)
{
    sqlite3_stmt *found = NULL;
    int64_t neighbours = 0, steps = 0;
    ww_status status = schema_statement(
        db, &found, "SELECT version, epoch, seed, neighbours, steps FROM main.warpwave_maps WHERE uid = %lld", (long long)uid);
    if (status != WW_OK)
        return status;
    const int code = sqlite3_step(found);
    if (code == SQLITE_ROW) {
        const bool sound = column_integer(found, 0, 1, INT64_MAX - 1, &map->version) &&
                           column_integer(found, 1, INT64_MIN, INT64_MAX, &map->epoch) &&
                           column_integer(found, 2, 0, INT64_MAX, &map->seed) &&
                           column_integer(found, 3, NEIGHBOURS_MIN, NEIGHBOURS_MAX, &neighbours) &&
                           column_integer(found, 4, 1, STEPS_MAX, &steps);
        map->neighbours = (int32_t)neighbours;
        map->steps = (int32_t)steps;
        map->version = sound ? map->version : 0;
    } else if (code != SQLITE_DONE) {
        status = sqlite_failed(db, code, "reading the map of a collection");
    }
    sqlite3_finalize(found);
    return status;
}

static bool read_point(sqlite3_stmt *row, map_point *point)
{
    int64_t hash, placed;
    const bool sound = column_integer(row, 0, 0, INT64_MAX, &point->handle) &&
                       column_integer(row, 1, 0, INT64_MAX, &point->row) && column_float(row, 2, &point->x) &&
                       column_float(row, 3, &point->y) && column_integer(row, 4, 0, UINT32_MAX, &hash) &&
                       column_integer(row, 5, 0, 1, &placed);
    point->hash = sound ? (uint32_t)hash : 0;
    point->placed = sound ? (uint32_t)placed : 0;
    return sound;
}

/* Reads the points in order of handles. An invalid point makes the whole map invalid. */
static ww_status read_points(sqlite3 *db, int64_t uid, kept_map *map)
{
    sqlite3_stmt *found = NULL;
    int64_t capacity = 0;
    int code = SQLITE_DONE;
    ww_status status = schema_statement(db, &found,
                                        "SELECT handle, place, x, y, hash, placed FROM main.warpwave_map_points WHERE uid = "
                                        "%lld ORDER BY handle",
                                        (long long)uid);
    while (status == WW_OK && map->version > 0 && (code = sqlite3_step(found)) == SQLITE_ROW) {
        status = array_reserve(&map->points, &capacity, map->count + 1, sizeof *map->points, "a map");
        if (status == WW_OK && !read_point(found, &map->points[map->count++]))
            map->version = 0;
    }
    if (status == WW_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(db, code, "reading the map of a collection");
    sqlite3_finalize(found);
    return status;
}

static ww_status read_map(sqlite3 *db, int64_t uid, kept_map *map)
{
    bool exist = false;
    ww_status status = tables_exist(db, &exist);
    if (status == WW_OK && exist)
        status = read_header(db, uid, map);
    if (status == WW_OK && map->version > 0)
        status = read_points(db, uid, map);
    return status;
}

ww_status stored_map_read(ww_collection *base, kept_map *map, int64_t *epoch)
{
    const stored *c = stored_of(base);
    collection_record record;
    *map = (kept_map){0};
    ww_status status = store_find_record(c->store, base->name, &record);
    if (status == WW_OK)
        status = stored_is(c, &record);
    if (status == WW_OK)
        status = store_lock(c->store);
    if (status != WW_OK)
        return status;
    *epoch = record.epoch;
    status = schema_run(c->store->writer, "BEGIN");
    if (status == WW_OK)
        status = read_map(c->store->writer, record.uid, map);
    if (!sqlite3_get_autocommit(c->store->writer)) /* nothing was written */
        (void)sqlite3_exec(c->store->writer, "ROLLBACK", NULL, NULL, NULL);
    store_unlock(c->store);
    if (status != WW_OK || map->version == 0) {
        memory_free(map->points);
        *map = (kept_map){0};
    }
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

static ww_status remove_map(sqlite3 *db, int64_t uid)
{
    const ww_status status = schema_run(db, "DELETE FROM main.warpwave_map_points WHERE uid = %lld", (long long)uid);
    return status == WW_OK ? schema_run(db, "DELETE FROM main.warpwave_maps WHERE uid = %lld", (long long)uid) : status;
}

static ww_status remove_dropped(sqlite3 *db)
{
    const ww_status status = schema_run(
        db,
        "DELETE FROM main.warpwave_map_points WHERE uid IN (SELECT uid FROM main.warpwave_maps WHERE uid NOT IN (SELECT uid "
        "FROM main.warpwave_collections))");
    return status == WW_OK ? schema_run(db, "DELETE FROM main.warpwave_maps WHERE uid NOT IN (SELECT uid FROM "
                                            "main.warpwave_collections)")
                           : status;
}

static ww_status remove_points(sqlite3 *db, int64_t uid, const map_change *change)
{
    sqlite3_stmt *remove = NULL;
    ww_status status =
        schema_statement(db, &remove, "DELETE FROM main.warpwave_map_points WHERE uid = %lld AND handle = ?1", (long long)uid);
    for (int64_t i = 0; status == WW_OK && i < change->gone_count; i++) {
        sqlite3_bind_int64(remove, 1, change->gone[i]);
        status = schema_step(remove);
    }
    sqlite3_finalize(remove);
    return status;
}

static ww_status write_points(sqlite3 *db, int64_t uid, const map_change *change, bool whole)
{
    sqlite3_stmt *write = NULL;
    const int64_t count = whole ? change->map->count : change->changed_count;
    ww_status status = schema_statement(db, &write,
                                        "INSERT OR REPLACE INTO main.warpwave_map_points(uid, handle, place, x, y, hash, "
                                        "placed) VALUES(%lld, ?1, ?2, ?3, ?4, ?5, ?6)",
                                        (long long)uid);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const map_point *point = &change->map->points[whole ? i : change->changed[i]];
        sqlite3_bind_int64(write, 1, point->handle);
        sqlite3_bind_int64(write, 2, point->row);
        sqlite3_bind_double(write, 3, (double)point->x);
        sqlite3_bind_double(write, 4, (double)point->y);
        sqlite3_bind_int64(write, 5, point->hash);
        sqlite3_bind_int64(write, 6, point->placed);
        status = schema_step(write);
    }
    sqlite3_finalize(write);
    return status;
}

static ww_status write_map(sqlite3 *db, int64_t uid, const map_change *change)
{
    kept_map now = {0};
    ww_status status = remove_dropped(db);
    if (status == WW_OK)
        status = read_header(db, uid, &now);
    const bool whole = change->whole || now.version == 0 || now.version != change->map->version;
    if (status == WW_OK)
        status = whole ? remove_map(db, uid) : remove_points(db, uid, change);
    if (status == WW_OK)
        status = write_points(db, uid, change, whole);
    if (status == WW_OK)
        status = schema_run(db,
                            "INSERT OR REPLACE INTO main.warpwave_maps(uid, version, epoch, seed, neighbours, steps) "
                            "VALUES(%lld, %lld, %lld, %lld, %d, %d)",
                            (long long)uid, (long long)now.version + 1, (long long)change->map->epoch,
                            (long long)change->map->seed, (int)change->map->neighbours, (int)change->map->steps);
    return status;
}

/* Runs in a write transaction. Dropping a map creates no tables. */
static ww_status change_map(sqlite3 *db, int64_t uid, const map_change *change)
{
    bool exist = false;
    ww_status status = tables_exist(db, &exist);
    if (status == WW_OK && !change)
        return exist ? remove_map(db, uid) : WW_OK;
    for (int i = 0; status == WW_OK && i < TABLE_COUNT; i++)
        status = schema_run(db, "CREATE TABLE IF NOT EXISTS main.%s%s", TABLES[i].name, TABLES[i].columns);
    return status == WW_OK ? write_map(db, uid, change) : status;
}

ww_status stored_map_write(ww_collection *base, const map_change *change, bool *kept)
{
    const stored *c = stored_of(base);
    collection_record record;
    *kept = false;
    if (change && c->store->config.read_only)
        return WW_OK;
    ww_status status = store_find_record(c->store, base->name, &record);
    if (status == WW_OK)
        status = stored_is(c, &record);
    if (status == WW_OK)
        status = store_begin(c->store);
    if (status == WW_OK)
        status = store_end(c->store, change_map(c->store->writer, record.uid, change));
    *kept = status == WW_OK && change;
    return status;
}
