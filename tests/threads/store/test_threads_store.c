/* A store used by many at once: another process that writes, threads that read, a reader that keeps an old snapshot,
 * checkpoints. Every answer is a snapshot: whole batches, never a part. */
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/store_support.h"
#include "support/process.h"
#include "support/scratch.h"

enum { BATCH = 8, READERS = 4, WRITES = 40 };

/* Batch `number`: BATCH rows with ids of their own, whose first element is the number of the batch. */
static ww_status batch_write(ww_collection *collection, int64_t number)
{
    float vectors[BATCH * WORK_DIM] = {0};
    char texts[BATCH][32];
    const char *ids[BATCH];
    for (int i = 0; i < BATCH; i++) {
        vectors[i * WORK_DIM] = (float)number;
        vectors[i * WORK_DIM + 1] = (float)i;
        snprintf(texts[i], sizeof texts[i], "b%d",
                 (int)(number % 5) * BATCH + i); /* after five batches the first is replaced */
        ids[i] = texts[i];
    }
    ww_rows rows = ww_rows_default();
    rows.count = BATCH, rows.dim = WORK_DIM, rows.vectors = vectors, rows.ids = ids;
    return ww_collection_upsert(collection, &rows);
}

/* If one row of a batch is found, all its rows are, and their data is consistent. */
static bool answer_is_whole(const ww_results *found)
{
    int counts[1024] = {0};
    if (ww_results_count(found, 0) % BATCH != 0)
        return false;
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        const float *vector = ww_results_vector(found, 0, i);
        const int number = (int)vector[0];
        char id[32];
        snprintf(id, sizeof id, "b%d", number % 5 * BATCH + (int)vector[1]);
        if (strcmp(ww_results_id(found, 0, i), id) != 0)
            return false;
        counts[number]++;
    }
    for (int i = 0; i < 1024; i++)
        if (counts[i] != 0 && counts[i] != BATCH)
            return false;
    return true;
}

typedef struct reading {
    ww_collection *collection;
    atomic_bool *stop;
    int64_t answers;
    bool failed;
    char message[512];
} reading;

static void *read_until_told(void *argument)
{
    reading *r = argument;
    const float zeros[WORK_DIM] = {0};
    while (!atomic_load(r->stop) && !r->failed) {
        ww_results *found = NULL;
        ww_query query = ww_query_default();
        query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 10 * BATCH;
        query.fetch = WW_FETCH_IDS | WW_FETCH_VECTORS;
        if (ww_collection_query(r->collection, &query, &found) != WW_OK) {
            r->failed = true;
            snprintf(r->message, sizeof r->message, "%s", ww_error_message());
        } else if (!answer_is_whole(found)) {
            r->failed = true;
            snprintf(r->message, sizeof r->message, "an answer has a part of a batch");
        }
        ww_results_destroy(found);
        r->answers++;
    }
    return NULL;
}

static void start(reading *readings, pthread_t *threads, ww_collection *collection, atomic_bool *stop)
{
    for (int i = 0; i < READERS; i++) {
        readings[i] = (reading){.collection = collection, .stop = stop};
        assert_int_equal(pthread_create(&threads[i], NULL, read_until_told, &readings[i]), 0);
    }
}

static void finish(reading *readings, pthread_t *threads, atomic_bool *stop)
{
    atomic_store(stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < READERS; i++) {
        if (readings[i].failed)
            fail_msg("reader %d: %s", i, readings[i].message);
        assert_true(readings[i].answers > 0);
    }
}

/* A connection of another's for checkpoints. One that has not looked at the file yet does not know of the log, and moves
 * nothing.
 */
static sqlite3 *open_beside(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM work_rows", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void readers_see_whole_batches_of_a_writer_in_the_same_process(void **state)
{
    (void)state;
    char *path = strdup(scratch_path("threads.db"));
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    work_synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(work_open(path, device, &store, &collection));
    CHECK_OK(batch_write(collection, 0));
    atomic_bool stop = false;
    reading readings[READERS];
    pthread_t threads[READERS];
    start(readings, threads, collection, &stop);
    for (int64_t i = 1; i < WRITES; i++) {
        CHECK_OK(batch_write(collection, i));
        if (i % 16 == 0)
            CHECK_OK(ww_collection_compact(collection, NULL, NULL));
    }
    finish(readings, threads, &stop);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    work_close(store, collection);
    ww_device_close(device);
    free(path);
}

/* The other process: writes until its standard input ends. */
static void write_elsewhere(const char *path, int ready)
{
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    if (ww_device_open("cpu", &device) != WW_OK || work_open(path, device, &store, &collection) != WW_OK)
        _exit(1);
    for (int64_t i = 0; i < WRITES; i++)
        if (batch_write(collection, i) != WW_OK || (i == 0 && write(ready, "x", 1) != 1))
            _exit(2);
    work_close(store, collection);
    ww_device_close(device);
    _exit(0);
}

static void writes_of_another_process_are_seen_completely_while_a_reader_keeps_its_snapshot(void **state)
{
    (void)state;
    char *path = strdup(scratch_path("processes.db"));
    int pipes[2];
    char byte;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork_when_idle();
    if (child == 0)
        write_elsewhere(path, pipes[1]);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(work_open(path, device, &store, &collection));
    sqlite3 *old = NULL; /* a long transaction, which keeps the log from being emptied */
    assert_int_equal(sqlite3_open(path, &old), SQLITE_OK);
    assert_int_equal(sqlite3_exec(old, "BEGIN; SELECT count(*) FROM work_rows", NULL, NULL, NULL), SQLITE_OK);
    atomic_bool stop = false;
    reading readings[READERS];
    pthread_t threads[READERS];
    start(readings, threads, collection, &stop);
    sqlite3 *other = open_beside(path);
    int ended = 0, log = 0, moved = -1;
    while (waitpid(child, &ended, WNOHANG) == 0) {
        const int code = sqlite3_wal_checkpoint_v2(other, "main", SQLITE_CHECKPOINT_PASSIVE, &log, &moved);
        assert_true(code == SQLITE_OK || code == SQLITE_BUSY); /* the writer makes one of its own now and then */
        usleep(2000);
    }
    assert_int_equal(sqlite3_wal_checkpoint_v2(other, "main", SQLITE_CHECKPOINT_PASSIVE, &log, &moved), SQLITE_OK);
    assert_true(moved >= 0 && moved < log); /* what came after the long transaction began stays in the log */
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    finish(readings, threads, &stop);
    sqlite3_close(other);
    sqlite3_exec(old, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(old);
    assert_int_equal(ww_collection_count(collection), 5 * BATCH);
    int64_t row;
    CHECK_OK(ww_collection_find(collection, "b0", &row));
    float vector[WORK_DIM];
    CHECK_OK(ww_collection_vector(collection, row, vector));
    assert_true(vector[0] == (float)(WRITES - 5));
    work_close(store, collection);
    ww_device_close(device);
    close(pipes[0]);
    close(pipes[1]);
    free(path);
}

/* Checkpoints of every kind, up to the one that cuts the log to nothing, while batches are written and four threads read. */
static void checkpoints_of_every_kind_disturb_no_reader_or_writer(void **state)
{
    (void)state;
    static const int kinds[] = {SQLITE_CHECKPOINT_PASSIVE, SQLITE_CHECKPOINT_FULL, SQLITE_CHECKPOINT_RESTART,
                                SQLITE_CHECKPOINT_TRUNCATE};
    char *path = strdup(scratch_path("checkpoints.db"));
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(work_open(path, device, &store, &collection));
    CHECK_OK(batch_write(collection, 0));
    sqlite3 *other = open_beside(path);
    sqlite3_busy_timeout(other, 200);
    atomic_bool stop = false;
    reading readings[READERS];
    pthread_t threads[READERS];
    start(readings, threads, collection, &stop);
    int done[4] = {0};
    for (int64_t i = 1; i < WRITES || done[0] * done[1] * done[2] * done[3] == 0; i++) {
        assert_true(i < 1000); /* each kind gets its turn some time */
        CHECK_OK(batch_write(collection, i));
        int log = -1, moved = -1;
        const int code = sqlite3_wal_checkpoint_v2(other, "main", kinds[i % 4], &log, &moved);
        assert_true(code == SQLITE_OK || code == SQLITE_BUSY); /* readers need not wait for it */
        done[i % 4] += code == SQLITE_OK && (kinds[i % 4] == SQLITE_CHECKPOINT_TRUNCATE ? log == 0 : moved > 0);
    }
    finish(readings, threads, &stop);
    sqlite3_close(other);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_int_equal(ww_collection_count(collection), 5 * BATCH);
    work_close(store, collection);
    ww_device_close(device);
    free(path);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------- */

static void *write_until_told(void *argument)
{
    reading *r = argument;
    for (int64_t i = 1; !atomic_load(r->stop) && !r->failed; i++, r->answers++)
        if (batch_write(r->collection, i % 1000) != WW_OK) {
            r->failed = true;
            snprintf(r->message, sizeof r->message, "%s", ww_error_message());
        }
    return NULL;
}

static void a_collection_moves_while_others_write(void **state)
{
    (void)state;
    char *path = strdup(scratch_path("move.db"));
    ww_device *device = NULL;
    ww_store *store = NULL, *beside = NULL;
    ww_collection *collection = NULL, *written = NULL;
    pthread_t thread;
    work_synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(work_open(path, device, &store, &collection));
    CHECK_OK(work_open(path, device, &beside, &written));
    CHECK_OK(batch_write(collection, 0));
    atomic_bool stop = false;
    reading writing = {.collection = written, .stop = &stop};
    assert_int_equal(pthread_create(&thread, NULL, write_until_told, &writing), 0);
    int busy = 0;
    for (int i = 0; i < 60; i++)
        busy += ww_collection_move(collection, device) != WW_OK;
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    if (writing.failed || busy > 0)
        fail_msg("%d of 60 moves failed; the writer: %s", busy, writing.message);
    assert_true(writing.answers > 0);
    work_close(store, collection);
    work_close(beside, written);
    ww_device_close(device);
    free(path);
}

enum { SLOW_MS = 1500, BUSY_MS = 50 };

/* Keeps a write open, and with it the store's lock, once told to. */
static int be_slow(int64_t done, int64_t total, void *user)
{
    (void)total;
    if (done == 0) {
        atomic_store((atomic_bool *)user, true);
        usleep(SLOW_MS * 1000);
    }
    return 0;
}

typedef struct slow_write {
    ww_collection *collection;
    atomic_bool begun;
    ww_status status;
} slow_write;

static void *write_slowly(void *argument)
{
    slow_write *w = argument;
    test_random random = {3};
    test_rows rows = test_rows_make(&random, 4, WORK_DIM, "slow", 0);
    rows.rows.progress = be_slow, rows.rows.progress_user = &w->begun;
    w->status = ww_collection_add(w->collection, &rows.rows);
    test_rows_free(&rows);
    return NULL;
}

static void a_second_thread_waits_no_longer_than_its_timeout(void **state)
{
    (void)state;
    char *path = strdup(scratch_path("wait.db"));
    ww_device *device = NULL;
    ww_store *store = NULL;
    pthread_t thread;
    slow_write slow = {0};
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(work_open(path, device, &store, &slow.collection));
    work_close(store, slow.collection);
    ww_store_config config = ww_store_config_default();
    config.busy_ms = BUSY_MS;
    CHECK_OK(ww_store_open(path, device, &config, &store));
    CHECK_OK(ww_store_collection(store, "work", &slow.collection));
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, &slow), 0);
    while (!atomic_load(&slow.begun))
        usleep(1000);
    ww_results *list = NULL;
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    CHECK_FAILS(WW_BUSY, batch_write(slow.collection, 1));
    CHECK_FAILS(WW_BUSY, ww_store_list(store, &list));
    CHECK_FAILS(WW_BUSY, ww_collection_compact(slow.collection, NULL, NULL));
    CHECK_FAILS(WW_BUSY, ww_collection_move(slow.collection, device));
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double waited_ms = (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
    pthread_join(thread, NULL);
    CHECK_OK(slow.status);
    assert_true(waited_ms >= 4 * BUSY_MS && waited_ms < SLOW_MS);
    CHECK_OK(batch_write(slow.collection, 1)); /* nothing is left over */
    CHECK_OK(ww_collection_move(slow.collection, device));
    assert_int_equal(ww_collection_count(slow.collection), 4 + BATCH);
    work_close(store, slow.collection);
    ww_device_close(device);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(checkpoints_of_every_kind_disturb_no_reader_or_writer, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(writes_of_another_process_are_seen_completely_while_a_reader_keeps_its_snapshot,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(readers_see_whole_batches_of_a_writer_in_the_same_process, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_collection_moves_while_others_write, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_second_thread_waits_no_longer_than_its_timeout, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("threads: store", tests, NULL, NULL);
}
