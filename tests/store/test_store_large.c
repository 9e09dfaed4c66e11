/* Large writes use a rollback journal if nobody else has the file open (store/journal.c): nothing is lost or half done, and
 * those who come meanwhile wait. */
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/store_state.h"
#include "store/store_support.h"
#include "support/process.h"
#include "support/scratch.h"

enum { DIM = 4096, ROWS = LARGE_WRITE_BYTES / (DIM * 4) + 1, KILLS = 8, BATCHES_MAX = 3, MOMENTS_NS = 60 * 1000 * 1000 };

static ww_device *device;
static float *vectors;

static int set_up(void **state)
{
    test_random random = {5};
    vectors = malloc((size_t)ROWS * DIM * sizeof *vectors);
    random_normals(&random, vectors, (int64_t)ROWS * DIM);
    return !vectors || ww_device_open("cpu", &device) != WW_OK || scratch_setup(state) != 0;
}

static int tear_down(void **state)
{
    ww_device_close(device);
    free(vectors);
    return scratch_teardown(state);
}

static ww_status open_at(const char *path, int32_t busy_ms, ww_store **store, ww_collection **collection)
{
    ww_store_config config = ww_store_config_default();
    config.busy_ms = busy_ms, config.synchronous = WW_SYNCHRONOUS_NORMAL;
    ww_status status = ww_store_open(path, device, &config, store);
    if (status == WW_OK && ww_store_collection(*store, "docs", collection) == WW_OK)
        return WW_OK;
    ww_collection_config docs = ww_collection_config_default();
    docs.name = "docs", docs.dim = DIM;
    return status == WW_OK ? ww_store_create(*store, &docs, collection) : status;
}

static void close_both(ww_store *store, ww_collection *collection)
{
    ww_collection_destroy(collection);
    ww_store_close(store);
}

static ww_status add_large(ww_collection *collection, ww_progress progress, void *user)
{
    ww_rows rows = ww_rows_default();
    rows.count = ROWS, rows.vectors = vectors, rows.dim = DIM, rows.progress = progress, rows.progress_user = user;
    return ww_collection_add(collection, &rows);
}

static ww_status search(ww_collection *collection)
{
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    query.queries = vectors, query.query_count = 1, query.dim = DIM, query.k = 1;
    const ww_status status = ww_collection_query(collection, &query, &found);
    ww_results_destroy(found);
    return status;
}

static int64_t bytes_at(const char *path, const char *suffix)
{
    struct stat file;
    char name[4200];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &file) == 0 ? (int64_t)file.st_size : -1;
}

static void check_is_wal(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *mode = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &mode, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(mode), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(mode, 0), "wal");
    sqlite3_finalize(mode);
    sqlite3_close(db);
}

/* Of pages that the writing connection keeps in memory. */
static int cache_bytes(const ww_store *store)
{
    int used = 0, peak = 0;
    assert_int_equal(sqlite3_db_status(store->writer, SQLITE_DBSTATUS_CACHE_USED, &used, &peak, 0), SQLITE_OK);
    return used;
}

/* What a write's progress callback sees and does. */
typedef struct watch {
    const char *path;
    int64_t log_bytes, journal_bytes; /* at the end of the write */
    ww_collection *reader;            /* searched meanwhile, or NULL */
    const ww_store *store;            /* or NULL */
    int cache;                        /* cache_bytes() of it, at the end of the write */
    bool cancels, opens;
    ww_status opened; /* by another connection that does not wait */
    pthread_t thread; /* another one, which waits */
} watch;

static void *open_and_count(void *argument)
{
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    watch *w = argument;
    w->opened = open_at(w->path, 60000, &store, &docs);
    const int64_t count = w->opened == WW_OK ? ww_collection_count(docs) : -1;
    close_both(store, docs);
    return (void *)(intptr_t)count;
}

static int32_t look(int64_t done, int64_t total, void *user)
{
    watch *w = user;
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    if (done == 0 && w->opens) {
        assert_int_equal(open_at(w->path, 0, &store, &docs), WW_BUSY);
        close_both(store, docs);
        assert_int_equal(pthread_create(&w->thread, NULL, open_and_count, w), 0);
    }
    if (w->reader)
        assert_int_equal(search(w->reader), WW_OK);
    if (w->store)
        w->cache = cache_bytes(w->store);
    w->log_bytes = bytes_at(w->path, "-wal");
    w->journal_bytes = bytes_at(w->path, "-journal");
    return w->cancels && done == total;
}

static void a_large_write_goes_straight_into_the_file(void **state)
{
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    char *path = strdup(scratch_path("large.db"));
    watch w = {.path = path};
    (void)state;
    CHECK_OK(open_at(path, 5000, &store, &docs));
    assert_int_equal(ww_collection_count(docs), 0); /* by a reading connection, which is not in the way */
    for (int64_t i = 1; i < 3; i++) {
        CHECK_OK(add_large(docs, look, &w));
        assert_true(w.log_bytes <= 0 && w.journal_bytes > 0 && w.journal_bytes < LARGE_WRITE_BYTES / 16);
        assert_int_equal(bytes_at(path, "-journal"), -1);
        assert_int_equal(ww_collection_count(docs), i * ROWS);
        check_is_wal(path);
    }
    w.cancels = true;
    CHECK_FAILS(WW_CANCELLED, add_large(docs, look, &w));
    assert_true(w.journal_bytes > 0);
    check_is_wal(path);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_int_equal(ww_collection_count(docs), 2 * ROWS);
    close_both(store, docs);
    free(path);
}

static void pages_of_a_large_write_leave_memory_with_it(void **state)
{
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    char *path = strdup(scratch_path("cache.db"));
    (void)state;
    CHECK_OK(open_at(path, 5000, &store, &docs));
    watch w = {.path = path, .store = store};
    CHECK_OK(add_large(docs, look, &w));
    assert_true(w.cache > LARGE_WRITE_BYTES / 2);
    assert_true(cache_bytes(store) <= LARGE_WRITE_BYTES / 2);
    close_both(store, docs);
    free(path);
}

/* Searches go on during a write, in this process and in others. */
static void it_uses_the_log_beside_readers(void **state)
{
    ww_store *stores[2] = {NULL, NULL};
    ww_collection *docs[2] = {NULL, NULL};
    char *path = strdup(scratch_path("readers.db"));
    (void)state;
    for (int i = 0; i < 2; i++)
        CHECK_OK(open_at(path, 0, &stores[i], &docs[i]));
    for (int from = 1; from >= 0; from--) { /* another connection, then this collection, alone */
        watch w = {.path = path, .reader = docs[from]};
        CHECK_OK(search(docs[from]));
        CHECK_OK(add_large(docs[0], look, &w));
        assert_true(bytes_at(path, "-wal") > LARGE_WRITE_BYTES / 4 && w.journal_bytes < 0);
        assert_int_equal(ww_collection_count(docs[from]), (2 - from) * ROWS);
        if (from == 1)
            close_both(stores[1], docs[1]);
    }
    close_both(stores[0], docs[0]);
    free(path);
}

static void whoever_opens_the_file_meanwhile_waits(void **state)
{
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    char *path = strdup(scratch_path("wait.db"));
    watch w = {.path = path, .opens = true};
    void *count = NULL;
    (void)state;
    CHECK_OK(open_at(path, 5000, &store, &docs));
    CHECK_OK(add_large(docs, look, &w));
    pthread_join(w.thread, &count);
    assert_int_equal(w.opened, WW_OK);
    assert_int_equal((intptr_t)count, ROWS);
    w.opens = false;
    CHECK_OK(add_large(docs, look, &w));
    assert_int_equal(ww_collection_count(docs), 2 * ROWS);
    check_is_wal(path);
    close_both(store, docs);
    free(path);
}

/* ---- kill -9 ------------------------------------------------------------------------------------------------------------- */

static int32_t tell_begin(int64_t done, int64_t total, void *user)
{
    (void)total;
    if (done == 0 && write(*(int *)user, "b", 1) != 1)
        _exit(4);
    return 0;
}

static void add_until_killed(const char *path, int said)
{
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    if (ww_device_open("cpu", &device) != WW_OK || open_at(path, 5000, &store, &docs) != WW_OK)
        _exit(1);
    for (;;) {
        if (ww_collection_count(docs) >= BATCHES_MAX * ROWS && (ww_collection_clear(docs) != WW_OK || write(said, "0", 1) != 1))
            _exit(2);
        if (add_large(docs, tell_begin, &said) != WW_OK || write(said, "a", 1) != 1)
            _exit(3);
    }
}

/* Whole batches: all that were acknowledged, perhaps one more, or, where they are cleared, none. */
static void check_batches(const char *path, int64_t *batches)
{
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    CHECK_OK(open_at(path, 5000, &store, &docs));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    const int64_t count = ww_collection_count(docs), found = count / ROWS;
    assert_int_equal(count % ROWS, 0);
    assert_true(found == *batches || found == *batches + 1 || (*batches == BATCHES_MAX && found == 0));
    *batches = found;
    check_is_wal(path);
    close_both(store, docs);
}

static void a_killed_process_leaves_whole_batches(void **state)
{
    const char *asked = getenv("WARPWAVE_KILLS");
    const int kills = asked ? atoi(asked) : KILLS;
    char *path = strdup(scratch_path("killed.db"));
    test_random random = {17};
    int64_t batches = 0, began = 0;
    (void)state;
    for (int i = 0; i < kills; i++) {
        int pipes[2], ended = 0;
        char said;
        assert_int_equal(pipe(pipes), 0);
        const pid_t child = fork_when_idle();
        if (child == 0) {
            close(pipes[0]);
            add_until_killed(path, pipes[1]);
        }
        close(pipes[1]);
        bool killed = false;
        while (read(pipes[0], &said, 1) == 1) {
            batches = said == '0' ? 0 : batches + (said == 'a');
            began += said == 'b';
            if (said != 'b' || killed)
                continue;
            const struct timespec moment = {.tv_nsec = (long)random_below(&random, MOMENTS_NS)};
            nanosleep(&moment, NULL);
            kill(child, SIGKILL);
            killed = true;
        }
        close(pipes[0]);
        waitpid(child, &ended, 0);
        assert_true(WIFSIGNALED(ended));
        check_batches(path, &batches);
    }
    assert_true(began >= kills);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_large_write_goes_straight_into_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pages_of_a_large_write_leave_memory_with_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_uses_the_log_beside_readers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whoever_opens_the_file_meanwhile_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_killed_process_leaves_whole_batches, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store: large writes", tests, NULL, NULL);
}
