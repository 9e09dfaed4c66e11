/* The file of a store and what happens to it from outside: removed, replaced, in a read-only folder, used exclusively by one
 * process, and a process that changes its working directory. */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store_support.h"
#include "support/process.h"
#include "support/scratch.h"

static ww_device *cpu;
static char *path;

static int setup(void **state)
{
    work_synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    path = strdup(scratch_path("file.db"));
    return ww_device_open("cpu", &cpu) == WW_OK ? 0 : -1;
}

static int teardown(void **state)
{
    ww_device_close(cpu);
    free(path);
    return scratch_teardown(state);
}

/* A name next to `file`, in a buffer that is reused. */
static const char *beside(const char *file, const char *suffix)
{
    static char name[4200];
    snprintf(name, sizeof name, "%s%s", file, suffix);
    return name;
}

static ww_status search(ww_collection *collection)
{
    static const float zeros[WORK_DIM] = {0};
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 3, query.fetch = WW_FETCH_IDS;
    const ww_status status = ww_collection_query(collection, &query, &found);
    ww_results_destroy(found);
    return status;
}

static void fill(const char *file, int64_t operations)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(file, cpu, &store, &collection));
    for (int64_t i = 0; i < operations; i++)
        CHECK_OK(work_do(collection, 41, i));
    work_close(store, collection);
}

/* Every kind of write is refused with a message that says what happened to the file. */
static void check_refused(ww_store *store, ww_collection *collection, const char *what)
{
    test_random random = {8};
    test_rows rows = test_rows_make(&random, 3, WORK_DIM, "new", 0);
    ww_collection_config config = ww_collection_config_default();
    config.name = "other", config.dim = 4;
    const int64_t before = ww_collection_count(collection);
    CHECK_FAILS(WW_IO_ERROR, ww_collection_add(collection, &rows.rows));
    if (!strstr(ww_error_message(), what))
        fail_msg("%s", ww_error_message());
    CHECK_FAILS(WW_IO_ERROR, ww_collection_clear(collection));
    CHECK_FAILS(WW_IO_ERROR, ww_collection_compact(collection, NULL, NULL));
    CHECK_FAILS(WW_IO_ERROR, ww_store_create(store, &config, NULL));
    CHECK_FAILS(WW_IO_ERROR, ww_store_drop(store, "work"));
    CHECK_FAILS(WW_IO_ERROR, ww_store_backup(store, scratch_path("backup.db"), NULL, NULL));
    assert_int_equal(ww_collection_count(collection), before); /* through the open connection */
    CHECK_OK(search(collection));
    test_rows_free(&rows);
}

static void writes_to_a_file_that_was_removed_are_refused(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    fill(path, 5);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    CHECK_OK(search(collection));
    assert_int_equal(unlink(path), 0);
    check_refused(store, collection, "was removed");
    assert_int_not_equal(access(path, F_OK), 0); /* and no empty file was created */
    work_close(store, collection);
}

static void writes_to_a_file_that_was_replaced_are_refused(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    char *other = strdup(scratch_path("other.db"));
    fill(path, 5);
    fill(other, 9);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    CHECK_OK(search(collection));
    assert_int_equal(rename(other, path), 0);
    check_refused(store, collection, "was replaced");
    work_close(store, collection);
    free(other);
}

static void a_process_that_goes_to_another_folder_keeps_its_file(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_path("")), 0);
    CHECK_OK(work_open("here.db", cpu, &store, &collection));
    assert_int_equal(mkdir("folder", 0755), 0);
    assert_int_equal(chdir("folder"), 0);
    for (int64_t i = 0; i < 5; i++)
        CHECK_OK(work_do(collection, 41, i));
    CHECK_OK(search(collection)); /* a new connection */
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_int_not_equal(access("here.db", F_OK), 0);
    work_close(store, collection);
    assert_int_equal(chdir(before), 0);
}

/* ---- one process alone --------------------------------------------------------------------------------------------------- */

static bool is_mapped(const char *name)
{
    char line[8192];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

static int told, heard; /* ends of pipes */

/* In a process that existed before the file was opened here: a later child would have SQLite's record of our locks. */
static void open_elsewhere(void)
{
    ww_device *device = NULL;
    char byte;
    EXPECT(read(heard, &byte, 1) == 1);
    ww_store *store = NULL;
    ww_store_config config = ww_store_config_default();
    config.busy_ms = 30;
    EXPECT(ww_device_open("cpu", &device) == WW_OK);
    EXPECT(ww_store_open(path, device, &config, &store) == WW_BUSY);
    sqlite3 *db = NULL;
    EXPECT(sqlite3_open(path, &db) == SQLITE_OK);
    EXPECT(sqlite3_exec(db, "SELECT count(*) FROM work_rows", NULL, NULL, NULL) == SQLITE_BUSY);
    sqlite3_close(db);
    ww_device_close(device);
    _exit(0);
}

static void an_exclusive_store_maps_nothing_and_keeps_other_processes_out(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL, *second = NULL;
    fill(path, 5);
    int down[2], ended = 0;
    assert_int_equal(pipe(down), 0);
    heard = down[0];
    const pid_t child = fork_when_idle();
    if (child == 0)
        open_elsewhere();
    ww_store_config config = ww_store_config_default();
    config.exclusive = 1;
    CHECK_OK(ww_store_open(path, cpu, &config, &store));
    CHECK_OK(ww_store_collection(store, "work", &collection));
    CHECK_OK(ww_store_collection(store, "work", &second));
    ww_collection *model = collection_make(cpu, WORK_DIM, WW_L2);
    for (int64_t i = 0; i < 5; i++)
        CHECK_OK(work_do(model, 41, i));
    for (int64_t i = 5; i < 20; i++) { /* several connections of this process */
        CHECK_OK(work_do(i % 2 ? collection : second, 41, i));
        CHECK_OK(work_do(model, 41, i));
        assert_true(collections_equal(collection, model));
        assert_true(collections_equal(second, model));
    }
    assert_int_not_equal(access(beside(path, "-shm"), F_OK), 0);
    assert_false(is_mapped("file.db"));
    assert_int_equal(write(down[1], "x", 1), 1);
    waitpid(child, &ended, 0);
    assert_int_equal(ended, 0);
    close(down[0]), close(down[1]);
    CHECK_OK(work_do(collection, 41, 20));
    ww_collection_destroy(second);
    work_close(store, collection);
    (void)work_verify(path, cpu, model, 41, 20);
    ww_collection_destroy(model);
    /* SQLite would share the mapping of an existing connection, and lock out no other process. */
    ww_store *shared = NULL;
    CHECK_OK(work_open(path, cpu, &shared, &collection));
    CHECK_FAILS(WW_BUSY, ww_store_open(path, cpu, &config, &store));
    assert_non_null(strstr(ww_error_message(), "open in this process already"));
    work_close(shared, collection);
    CHECK_OK(ww_store_open(path, cpu, &config, &store));
    CHECK_OK(work_open(path, cpu, &shared, &collection)); /* the other way round all of them are kept to this process */
    CHECK_OK(search(collection));
    assert_false(is_mapped("file.db"));
    work_close(shared, collection);
    ww_store_close(store);
    char *fresh = strdup(scratch_path("fresh.db")); /* a new one */
    ww_collection_config made = ww_collection_config_default();
    made.name = "new", made.dim = 3;
    CHECK_OK(ww_store_open(fresh, cpu, &config, &store));
    CHECK_OK(ww_store_create(store, &made, NULL));
    assert_int_not_equal(access(beside(fresh, "-shm"), F_OK), 0);
    ww_store_close(store);
    free(fresh);
    config.read_only = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_open(path, cpu, &config, &store));
}

static void an_exclusive_store_waits_for_other_processes(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_store_config config = ww_store_config_default();
    int ready[2], done[2];
    char byte = 0;
    fill(path, 5);
    assert_int_equal(pipe(ready) | pipe(done), 0);
    const pid_t child = fork_when_idle();
    if (child == 0) { /* reads, and keeps its transaction */
        sqlite3 *db = NULL;
        close(done[1]);
        const bool reads = sqlite3_open(path, &db) == SQLITE_OK &&
                           sqlite3_exec(db, "BEGIN; SELECT count(*) FROM work_rows", NULL, NULL, NULL) == SQLITE_OK;
        _exit(!reads || write(ready[1], "x", 1) != 1 || read(done[0], &byte, 1) != 0);
    }
    close(ready[1]);
    close(done[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    config.exclusive = 1, config.busy_ms = 30;
    CHECK_FAILS(WW_BUSY, ww_store_open(path, cpu, &config, &store));
    close(done[1]);
    config.busy_ms = 5000;
    CHECK_OK(ww_store_open(path, cpu, &config, &store)); /* the other one ends meanwhile, or has */
    ww_store_close(store);
    close(ready[0]);
    int ended = 0;
    waitpid(child, &ended, 0);
    assert_int_equal(ended, 0);
}

/* What SECURITY.md excepts: a store that several processes may use shares memory with them through its -shm. The database
 * itself is never mapped. */
static void a_shared_store_maps_only_its_shm(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    fill(path, 5);
    CHECK_OK(work_open(path, cpu, &store, &collection));
    CHECK_OK(search(collection));
    assert_true(is_mapped("file.db-shm"));
    assert_false(is_mapped("file.db\n"));
    work_close(store, collection);
}

/* ---- a folder that cannot be written ------------------------------------------------------------------------------------- */

static char *folder, *kept; /* and the store in it */

static ww_status open_read_only(const char *file, ww_store **store, ww_collection **collection)
{
    ww_store_config config = ww_store_config_default();
    config.read_only = 1;
    const ww_status status = ww_store_open(file, cpu, &config, store);
    return status == WW_OK ? ww_store_collection(*store, "work", collection) : status;
}

/* In a separate process, which gives up the right to write everywhere. */
static void become_unprivileged(void)
{
    enum { NOBODY = 65534 };
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
        printf("SKIP: this process is root and cannot become another user\n");
        _exit(PROCESS_SKIPPED);
    }
    EXPECT(ww_device_open("cpu", &cpu) == WW_OK);
    EXPECT(access(folder, W_OK) != 0);
}

static void read_as_nobody(void)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    become_unprivileged();
    EXPECT(open_read_only(kept, &store, &collection) == WW_OK);
    EXPECT(search(collection) == WW_OK);
    EXPECT(ww_store_check(store, NULL, NULL) == WW_OK);
    EXPECT(ww_collection_clear(collection) == WW_INVALID_ARGUMENT);
    ww_collection *model = collection_make(cpu, WORK_DIM, WW_L2);
    for (int64_t i = 0; i < 5; i++)
        EXPECT(work_do(model, 41, i) == WW_OK);
    EXPECT(collections_equal(collection, model));
    _exit(0);
}

static void read_what_is_in_the_wal_as_nobody(void)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    become_unprivileged();
    EXPECT(open_read_only(kept, &store, &collection) == WW_IO_ERROR);
    EXPECT(strstr(ww_error_message(), "-wal") != NULL);
    _exit(0);
}

/* Another user, who may write there, changes the file while it is open here. */
static void read_what_changes_as_nobody(void)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    char byte;
    become_unprivileged();
    EXPECT(open_read_only(kept, &store, &collection) == WW_OK);
    EXPECT(search(collection) == WW_OK);
    EXPECT(write(told, "x", 1) == 1 && read(heard, &byte, 1) == 1);
    EXPECT(search(collection) == WW_IO_ERROR);
    EXPECT(strstr(ww_error_message(), "was changed") != NULL);
    _exit(0);
}

static void a_store_in_a_folder_that_cannot_be_written_is_read(void **state)
{
    (void)state;
    char name[] = "/tmp/warpwave-folder-XXXXXX"; /* where everybody may look */
    folder = mkdtemp(name);
    assert_non_null(folder);
    char *file = malloc(sizeof name + 32);
    snprintf(file, sizeof name + 32, "%s/50%% a?b#c.db", folder); /* characters that mean something in a URI */
    kept = file;
    fill(kept, 5);
    assert_int_not_equal(access(beside(kept, "-wal"), F_OK), 0);
    assert_int_equal(chmod(kept, 0444) | chmod(folder, 0555), 0);
    in_a_process(read_as_nobody, 20);

    /* A writer that was killed leaves its last writes in the -wal. */
    assert_int_equal(chmod(kept, 0644) | chmod(folder, 0755), 0);
    const pid_t child = fork_when_idle();
    if (child == 0) {
        ww_store *store = NULL;
        ww_collection *collection = NULL;
        ww_device *device = NULL;
        if (ww_device_open("cpu", &device) != WW_OK || work_open(kept, device, &store, &collection) != WW_OK ||
            work_do(collection, 41, 5) != WW_OK)
            _exit(1);
        _exit(0); /* without closing it */
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    assert_int_equal(ended, 0);
    assert_int_equal(unlink(beside(kept, "-shm")), 0);
    assert_int_equal(chmod(kept, 0444) | chmod(beside(kept, "-wal"), 0444) | chmod(folder, 0555), 0);
    in_a_process(read_what_is_in_the_wal_as_nobody, 20);
    assert_int_equal(chmod(kept, 0644) | chmod(beside(kept, "-wal"), 0644) | chmod(folder, 0755), 0);
    unlink(beside(kept, "-wal"));
    unlink(kept);
    rmdir(folder);
    free(file);
}

static void a_store_in_such_a_folder_that_changes_is_refused(void **state)
{
    (void)state;
    char name[] = "/tmp/warpwave-folder-XXXXXX";
    int up[2], down[2];
    char byte;
    folder = mkdtemp(name);
    assert_non_null(folder);
    char *file = malloc(sizeof name + 32);
    snprintf(file, sizeof name + 32, "%s/changes.db", folder);
    kept = file;
    fill(kept, 5);
    assert_int_equal(chmod(folder, 0555), 0);
    if (geteuid() != 0) {
        chmod(folder, 0755), unlink(kept), rmdir(folder), free(file);
        print_message("SKIP: only root can write to a folder that another user cannot write to\n");
        skip();
    }
    assert_int_equal(pipe(up) | pipe(down), 0);
    told = up[1], heard = down[0];
    const pid_t child = fork_when_idle();
    if (child == 0)
        read_what_changes_as_nobody();
    assert_int_equal(read(up[0], &byte, 1), 1);
    fill(kept, 2); /* root may, and cleans up afterwards: only the file shows it */
    assert_int_equal(write(down[1], "x", 1), 1);
    int ended = 0;
    waitpid(child, &ended, 0);
    assert_int_equal(ended, 0);
    for (int i = 0; i < 2; i++)
        close(up[i]), close(down[i]);
    chmod(folder, 0755), unlink(kept), rmdir(folder), free(file);
}

/* The write-ahead log and the file, in bytes. */
static int64_t bytes_of(ww_store *store)
{
    ww_store_info info = ww_store_info_default();
    CHECK_OK(ww_store_describe(store, &info));
    return info.bytes_file + info.bytes_wal;
}

/* Removed rows are neither found nor removed again. The row of place 0 is one of them; rows 1 and 2 are not. */
static void check_gone(ww_collection *collection, const test_rows *rows, const char **gone, int64_t count)
{
    const char *twice[] = {rows->ids[1], rows->ids[2], rows->ids[1]};
    char text[64];
    int64_t missing = 0, row = 0;
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_remove(collection, gone, 1));
    CHECK_OK(ww_collection_discard(collection, gone, count, &missing));
    assert_int_equal(missing, count);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(collection, gone[0], &row));
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_remove(collection, twice, 3));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_id(collection, 0, text, sizeof text, NULL));
}

static void removing_rows_grows_the_file_by_less_than_a_tenth_and_compacting_shrinks_it(void **state)
{
    (void)state;
    enum { MANY = 3000, WIDE = 384, GONE = MANY * 3 / 10 };
    ww_store *store = NULL;
    ww_collection *both[2] = {NULL, collection_make(cpu, WIDE, WW_L2)};
    ww_collection_config config = ww_collection_config_default();
    config.name = "wide", config.dim = WIDE, config.metric = WW_L2;
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    CHECK_OK(ww_store_create(store, &config, &both[0]));
    test_random random = {3};
    test_rows rows = test_rows_make(&random, MANY, WIDE, "row", 0);
    const char **gone = malloc(GONE * sizeof *gone);
    for (int i = 0; i < GONE; i++)
        gone[i] = rows.ids[(int64_t)i * 7919 % GONE * 10 / 3]; /* in no order */
    for (int k = 0; k < 2; k++)
        CHECK_OK(ww_collection_add(both[k], &rows.rows));
    ww_collection_destroy(both[0]);
    ww_store_close(store); /* the log is in the file */
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    CHECK_OK(ww_store_collection(store, "wide", &both[0]));
    const int64_t before = bytes_of(store);
    for (int k = 0; k < 2; k++)
        CHECK_OK(ww_collection_remove(both[k], gone, GONE));
    if (bytes_of(store) > before + before / 10)
        fail_msg("%lld bytes became %lld", (long long)before, (long long)bytes_of(store));
    check_gone(both[0], &rows, gone, GONE);
    for (int reopened = 0; reopened < 3; reopened++) {
        float queries[WIDE];
        ww_results *found[2];
        ww_query query = ww_query_default();
        random_normals(&random, queries, WIDE);
        query.queries = queries, query.query_count = 1, query.dim = WIDE, query.k = 50;
        query.fetch = WW_FETCH_IDS | WW_FETCH_VECTORS | WW_FETCH_PAYLOADS;
        for (int k = 0; k < 2; k++)
            CHECK_OK(ww_collection_query(both[k], &query, &found[k]));
        assert_true(results_equal(found[0], found[1], WIDE));
        assert_int_equal(ww_collection_count(both[0]), MANY - GONE);
        assert_int_equal(ww_collection_next(both[0], -1), reopened == 2 ? 0 : 1);
        ww_results_destroy(found[0]);
        ww_results_destroy(found[1]);
        CHECK_OK(ww_store_check(store, NULL, NULL));
        if (reopened == 1)
            CHECK_OK(ww_collection_compact(both[0], NULL, NULL));
        ww_collection_destroy(both[0]);
        ww_store_close(store);
        CHECK_OK(ww_store_open(path, cpu, NULL, &store));
        CHECK_OK(ww_store_collection(store, "wide", &both[0]));
    }
    assert_true(bytes_of(store) < before * 8 / 10);
    ww_collection_destroy(both[0]);
    ww_collection_destroy(both[1]);
    ww_store_close(store);
    test_rows_free(&rows);
    free(gone);
}

static void removed_vectors_leave_the_file_when_there_are_too_many(void **state)
{
    (void)state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_store_open(path, cpu, &how, &store));
    ww_collection_config config = ww_collection_config_default();
    config.name = "few", config.dim = WORK_DIM, config.metric = WW_L2;
    CHECK_OK(ww_store_create(store, &config, &collection));
    test_random random = {4};
    test_rows rows = test_rows_make(&random, 100, WORK_DIM, "row", 0);
    for (int i = 0; i < 100; i++)
        CHECK_OK(ww_collection_upsert(collection, &rows.rows));
    ww_collection_destroy(collection);
    ww_store_close(store);
    sqlite3 *db = NULL;
    sqlite3_stmt *asked = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT count(*), (SELECT count(*) FROM few_removed) FROM few_vectors", -1, &asked, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(asked), SQLITE_ROW);
    const int vectors = sqlite3_column_int(asked, 0), log = sqlite3_column_int(asked, 1);
    sqlite3_finalize(asked);
    sqlite3_close(db);
    if (vectors != 100 + log || log > 2500)
        fail_msg("%d vectors, %d in the log", vectors, log);
    CHECK_OK(ww_store_open(path, cpu, &how, &store));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_store_close(store);
    test_rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_to_a_file_that_was_removed_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_to_a_file_that_was_replaced_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_process_that_goes_to_another_folder_keeps_its_file, setup, teardown),
        cmocka_unit_test_setup_teardown(an_exclusive_store_maps_nothing_and_keeps_other_processes_out, setup, teardown),
        cmocka_unit_test_setup_teardown(an_exclusive_store_waits_for_other_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_shared_store_maps_only_its_shm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_in_a_folder_that_cannot_be_written_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_in_such_a_folder_that_changes_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(removing_rows_grows_the_file_by_less_than_a_tenth_and_compacting_shrinks_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(removed_vectors_leave_the_file_when_there_are_too_many, setup, teardown),
    };
    return cmocka_run_group_tests_name("store: the file", tests, NULL, NULL);
}
