/* Maps in a store: kept in the file, found by other processes, brought up to date; tables that were damaged; files that fail.
 */
#include <math.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <warpwave/map.h>

#include "store/faulty_vfs.h"
#include "store/store_support.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/process.h"
#include "support/scratch.h"

enum { ROWS = 80, STEPS = 20, DAMAGES = 150 };

static ww_device *device;
static char *path;
static ww_store *store;
static ww_collection *collection;

static void reopen(void)
{
    work_close(store, collection);
    store = NULL;
    collection = NULL;
    CHECK_OK(work_open(path, device, &store, &collection));
}

static void add_rows(ww_collection *c, int64_t first, int64_t count)
{
    test_random random = {31 + (uint64_t)first};
    collection_fill(c, &random, count, WORK_DIM, "r", first);
}

static int setup(void **state)
{
    work_synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    path = strdup(scratch_path("maps.db"));
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(work_open(path, device, &store, &collection));
    add_rows(collection, 0, ROWS);
    return 0;
}

static int teardown(void **state)
{
    work_close(store, collection);
    store = NULL;
    collection = NULL;
    ww_device_close(device);
    free(path);
    return scratch_teardown(state);
}

static ww_status try_map(ww_collection *c, ww_map **map)
{
    ww_map_config config = ww_map_config_default();
    config.steps = STEPS;
    return ww_collection_map(c, &config, map);
}

static ww_map *map_of(ww_collection *c, ww_map_origin origin)
{
    ww_map *map = NULL;
    ww_map_info info = ww_map_info_default();
    CHECK_OK(try_map(c, &map));
    CHECK_OK(ww_map_describe(map, &info));
    assert_string_equal(ww_map_origin_name(info.origin), ww_map_origin_name(origin));
    return map;
}

static bool is_same_map(const ww_map *a, const ww_map *b)
{
    const size_t count = (size_t)ww_map_count(a);
    return ww_map_count(a) == ww_map_count(b) && memcmp(ww_map_handles(a), ww_map_handles(b), count * sizeof(int64_t)) == 0 &&
           memcmp(ww_map_points(a), ww_map_points(b), count * 2 * sizeof(float)) == 0;
}

/* Runs SQL on the file, as anybody could; gives the number that it finds. */
static int64_t edit(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    const int64_t found = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found;
}

/* ---- what is kept -------------------------------------------------------------------------------------------------------- */

static void a_map_is_kept_with_the_bits_of_one_in_memory(void **state)
{
    (void)state;
    ww_collection *memory = collection_make(device, WORK_DIM, WW_L2);
    add_rows(memory, 0, ROWS);
    ww_map *expected = map_of(memory, WW_MAP_MADE), *made = map_of(collection, WW_MAP_MADE);
    assert_true(is_same_map(expected, made));
    reopen();
    ww_map *kept = map_of(collection, WW_MAP_KEPT);
    assert_true(is_same_map(expected, kept));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_map_destroy(kept);
    ww_map_destroy(made);
    ww_map_destroy(expected);
    ww_collection_destroy(memory);
}

static void another_process_finds_it(void **state)
{
    (void)state;
    ww_map *made = map_of(collection, WW_MAP_MADE);
    work_close(store, collection);
    store = NULL;
    collection = NULL;
    const pid_t child = fork_when_idle();
    if (child == 0) {
        ww_device *own = NULL;
        ww_map *kept = NULL;
        ww_map_info info = ww_map_info_default();
        const bool same = ww_device_open("cpu", &own) == WW_OK && work_open(path, own, &store, &collection) == WW_OK &&
                          try_map(collection, &kept) == WW_OK && ww_map_describe(kept, &info) == WW_OK &&
                          info.origin == WW_MAP_KEPT && is_same_map(made, kept);
        _exit(same ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    ww_map_destroy(made);
    CHECK_OK(work_open(path, device, &store, &collection));
}

static void it_follows_the_rows(void **state)
{
    (void)state;
    const char *const gone[] = {"r3", "r4"};
    ww_map *before = map_of(collection, WW_MAP_MADE);
    add_rows(collection, ROWS, 5);
    CHECK_OK(ww_collection_remove(collection, gone, 2));
    ww_map *after = map_of(collection, WW_MAP_GROWN);
    assert_int_equal(ww_map_count(after), ROWS + 3);
    assert_int_equal(edit("SELECT count(*) FROM warpwave_map_points"), ROWS + 3);
    assert_int_equal(edit("SELECT sum(placed) FROM warpwave_map_points"), 5);
    reopen();
    ww_map *kept = map_of(collection, WW_MAP_KEPT);
    assert_true(is_same_map(after, kept));
    CHECK_OK(ww_collection_compact(collection, NULL, NULL)); /* places are renumbered, vectors are the same */
    ww_map *compacted = map_of(collection, WW_MAP_GROWN);
    assert_true(is_same_map(after, compacted));
    ww_map *again = map_of(collection, WW_MAP_KEPT);
    ww_map *const all[] = {before, after, kept, compacted, again};
    for (int i = 0; i < 5; i++)
        ww_map_destroy(all[i]);
}

/* Each has read the map before the other wrote it: the last one written is complete. */
static void two_stores_do_not_mix_their_maps(void **state)
{
    (void)state;
    ww_store *other_store = NULL;
    ww_collection *other = NULL;
    ww_map_config config = ww_map_config_default();
    ww_map *map = NULL;
    ww_map_destroy(map_of(collection, WW_MAP_MADE));
    CHECK_OK(work_open(path, device, &other_store, &other));
    config.steps = STEPS;
    config.seed = 9;
    config.remake = 1;
    CHECK_OK(ww_collection_map(other, &config, &map));
    add_rows(collection, ROWS, 1);
    ww_map *here = map_of(collection, WW_MAP_GROWN), *there = map_of(other, WW_MAP_KEPT);
    assert_true(is_same_map(here, there));
    assert_memory_equal(ww_map_points(here), ww_map_points(map), ROWS * 2 * sizeof(float));
    ww_map_destroy(there);
    ww_map_destroy(here);
    ww_map_destroy(map);
    work_close(other_store, other);
}

static void renaming_keeps_it_and_dropping_forgets_it(void **state)
{
    (void)state;
    ww_collection *other = NULL;
    ww_map *made = map_of(collection, WW_MAP_MADE);
    ww_collection_destroy(collection);
    collection = NULL;
    CHECK_OK(ww_store_rename(store, "work", "other"));
    CHECK_OK(ww_store_collection(store, "other", &other));
    ww_map *kept = map_of(other, WW_MAP_KEPT);
    assert_true(is_same_map(made, kept));
    ww_collection_destroy(other);
    CHECK_OK(ww_store_drop(store, "other"));
    reopen();
    add_rows(collection, 0, 10);
    ww_map *fresh = map_of(collection, WW_MAP_MADE);
    assert_int_equal(ww_map_count(fresh), 10);
    assert_int_equal(edit("SELECT count(*) FROM warpwave_map_points"), 10); /* those of the dropped one are deleted, too */
    CHECK_OK(ww_collection_drop_map(collection));
    assert_int_equal(edit("SELECT count(*) FROM warpwave_map_points"), 0);
    ww_map_destroy(fresh);
    ww_map_destroy(kept);
    ww_map_destroy(made);
}

static void a_backup_has_it_and_a_store_to_be_read_keeps_none(void **state)
{
    (void)state;
    ww_store *reading = NULL;
    ww_collection *read = NULL;
    ww_map *map = NULL;
    ww_map_info info = ww_map_info_default();
    ww_store_config config = ww_store_config_default();
    ww_map *made = map_of(collection, WW_MAP_MADE);
    char *copy = strdup(scratch_path("copy.db"));
    CHECK_OK(ww_store_backup(store, copy, NULL, NULL));
    config.read_only = 1;
    CHECK_OK(ww_store_open(copy, device, &config, &reading));
    CHECK_OK(ww_store_collection(reading, "work", &read));
    CHECK_OK(try_map(read, &map));
    assert_true(is_same_map(made, map));
    ww_map_destroy(map);
    ww_map_config other = ww_map_config_default();
    other.seed = 4;
    other.steps = STEPS;
    CHECK_OK(ww_collection_map(read, &other, &map));
    CHECK_OK(ww_map_describe(map, &info));
    assert_int_equal(info.kept, 0);
    assert_false(is_same_map(made, map));
    ww_map_destroy(map);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_drop_map(read));
    work_close(reading, read);
    free(copy);
    ww_map_destroy(made);
}

/* ---- damage -------------------------------------------------------------------------------------------------------------- */

static void check_collection(void)
{
    ww_collection *memory = collection_make(device, WORK_DIM, WW_L2);
    add_rows(memory, 0, ROWS);
    assert_true(collections_equal(collection, memory));
    ww_collection_destroy(memory);
}

static void a_map_that_makes_no_sense_is_made_again(void **state)
{
    (void)state;
    static const char *const edits[] = {
        "UPDATE warpwave_map_points SET x = 9e999 WHERE handle = 7",
        "UPDATE warpwave_map_points SET y = 'far away' WHERE handle = 7",
        "UPDATE warpwave_map_points SET x = x'00' WHERE handle = 7",
        "UPDATE warpwave_map_points SET x = 1e300",
        "UPDATE warpwave_map_points SET hash = -1 WHERE handle = 7",
        "UPDATE warpwave_map_points SET place = -1 WHERE handle = 7",
        "UPDATE warpwave_map_points SET handle = 'seven' WHERE handle = 7",
        "UPDATE warpwave_map_points SET handle = -7 WHERE handle = 7",
        "UPDATE warpwave_map_points SET placed = 2 WHERE handle = 7",
        "UPDATE warpwave_maps SET neighbours = 1000000",
        "UPDATE warpwave_maps SET steps = 0",
        "UPDATE warpwave_maps SET seed = -5",
        "UPDATE warpwave_maps SET version = 'old'",
        "DELETE FROM warpwave_map_points",
        "DELETE FROM warpwave_maps",
        "DROP TABLE warpwave_map_points",
        "DROP TABLE warpwave_maps",
    };
    ww_map *made = map_of(collection, WW_MAP_MADE);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        edit(edits[i]);
        ww_map *again = map_of(collection, WW_MAP_MADE);
        if (!is_same_map(made, again))
            fail_msg("%s: another map", edits[i]);
        ww_map_destroy(again);
        check_collection();
    }
    edit("DELETE FROM warpwave_map_points WHERE handle = 7"); /* only that row is placed again */
    ww_map *grown = map_of(collection, WW_MAP_GROWN);
    assert_int_equal(ww_map_count(grown), ROWS);
    ww_map_destroy(grown);
    ww_map_destroy(made);
}

static void tables_of_other_programs_are_not_changed(void **state)
{
    (void)state;
    static const char *const edits[] = {"CREATE TABLE warpwave_maps(uid)", "CREATE VIEW warpwave_map_points AS SELECT 1",
                                        "CREATE VIRTUAL TABLE warpwave_map_points USING fts5(x)"};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        ww_map *map = NULL;
        edit(edits[i]);
        CHECK_FAILS(WW_CORRUPT_FILE, try_map(collection, &map));
        CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_drop_map(collection));
        assert_null(map);
        check_collection();
        edit(i == 0 ? "DROP TABLE warpwave_maps" : i == 1 ? "DROP VIEW warpwave_map_points" : "DROP TABLE warpwave_map_points");
    }
    ww_map_destroy(map_of(collection, WW_MAP_MADE));
}

/* Any value in any place gives a map with finite points, and unchanged rows. */
static void any_damage_gives_a_map(void **state)
{
    (void)state;
    static const char *const columns[] = {"handle", "place", "x", "y", "hash", "placed"};
    static const char *const header[] = {"version", "epoch", "seed", "neighbours", "steps"};
    static const char *const values[] = {"0",
                                         "-1",
                                         "1",
                                         "17",
                                         "255",
                                         "1e38",
                                         "-1e39",
                                         "4294967296",
                                         "'x'",
                                         "x'ff'",
                                         "2.5e-46",
                                         "9223372036854775807",
                                         "-9223372036854775808"};
    test_random random = {2};
    ww_map_destroy(map_of(collection, WW_MAP_MADE));
    for (int i = 0; i < DAMAGES; i++) {
        char sql[256];
        const char *value = values[random_below(&random, sizeof values / sizeof *values)];
        if (random_below(&random, 4) == 0)
            snprintf(sql, sizeof sql, "UPDATE OR REPLACE warpwave_maps SET %s = %s", header[random_below(&random, 5)], value);
        else
            snprintf(sql, sizeof sql, "UPDATE OR REPLACE warpwave_map_points SET %s = %s WHERE handle %% 7 = %d",
                     columns[random_below(&random, 6)], value, (int)random_below(&random, 7));
        edit(sql);
        ww_map *map = NULL;
        ww_map_config config = ww_map_config_default();
        config.neighbours = 3;
        config.steps = STEPS;
        const ww_status status = ww_collection_map(collection, &config, &map);
        if (status != WW_OK)
            fail_msg("%s: %s", sql, ww_error_message());
        assert_int_equal(ww_map_count(map), ROWS);
        for (int64_t p = 0; p < 2 * ROWS; p++)
            assert_true(isfinite(ww_map_points(map)[p]));
        ww_map_destroy(map);
    }
    check_collection();
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

/* ---- faults -------------------------------------------------------------------------------------------------------------- */

/* Grows, makes and drops the map. */
static ww_status work_on_maps(void)
{
    ww_map_config config = ww_map_config_default();
    ww_map *map = NULL;
    config.steps = STEPS;
    ww_status status = ww_collection_map(collection, &config, &map);
    ww_map_destroy(map);
    map = NULL;
    config.seed = 8;
    if (status == WW_OK)
        status = ww_collection_map(collection, &config, &map);
    ww_map_destroy(map);
    return status == WW_OK ? ww_collection_drop_map(collection) : status;
}

/* A stored map, and rows that are not on it yet. */
static void prepare(void)
{
    const char *const more[] = {"r80", "r81"};
    ww_map *map = NULL;
    CHECK_OK(ww_collection_discard(collection, more, 2, NULL));
    CHECK_OK(ww_collection_drop_map(collection));
    CHECK_OK(try_map(collection, &map));
    ww_map_destroy(map);
    add_rows(collection, ROWS, 2);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int64_t n = 1;; n = fault_next(n)) {
        prepare();
        const int64_t held = blocks_held();
        fail_allocation_at(n);
        const ww_status status = work_on_maps();
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        if (status == WW_OK) {
            fault_count("allocation", (long)n - 1);
            break;
        }
        assert_int_equal(status, WW_OUT_OF_MEMORY);
    }
}

static void every_call_to_the_file_may_fail(void **state)
{
    (void)state;
    static const vfs_fault faults[] = {VFS_IO_ERROR, VFS_FULL, VFS_SHORT_WRITE};
    int64_t n = 1;
    for (;; n = fault_next(n)) {
        prepare();
        reopen(); /* so that pages are read */
        vfs_arm(faults[n % 3], n);
        const ww_status status = work_on_maps();
        const bool tripped = vfs_disarm();
        if (!tripped) {
            CHECK_OK(status);
            break;
        }
        if (status != WW_OK && (status == WW_INTERNAL || ww_error_message()[0] == '\0'))
            fail_msg("fault at call %lld: %s: %s", (long long)n, ww_status_name(status), ww_error_message());
        reopen();
        CHECK_OK(work_on_maps());
        CHECK_OK(ww_store_check(store, NULL, NULL));
    }
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_map_is_kept_with_the_bits_of_one_in_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(another_process_finds_it, setup, teardown),
        cmocka_unit_test_setup_teardown(it_follows_the_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(two_stores_do_not_mix_their_maps, setup, teardown),
        cmocka_unit_test_setup_teardown(renaming_keeps_it_and_dropping_forgets_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_has_it_and_a_store_to_be_read_keeps_none, setup, teardown),
        cmocka_unit_test_setup_teardown(a_map_that_makes_no_sense_is_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(tables_of_other_programs_are_not_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(any_damage_gives_a_map, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(every_call_to_the_file_may_fail, setup, teardown),
    };
    vfs_install();
    const int failed = cmocka_run_group_tests_name("store: maps", tests, NULL, NULL);
    vfs_forget();
    return failed;
}
