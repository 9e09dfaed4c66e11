/* Every call to a file fails in turn, and the power fails at every sync: the call returns a status, nothing is lost or half
 * done, and the handle that failed works again afterwards. */
#include "store/faulty_vfs.h"
#include "store/store_state.h"
#include "store/store_support.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/scratch.h"

enum { OPERATIONS = 6, SEED = 21 };

typedef struct trial {
    ww_device *device;
    char *path;
    ww_store *store;
    ww_collection *collection;
    int64_t done; /* acknowledged */
} trial;

/* The workload until something fails. */
static ww_status trial_run(trial *t)
{
    const float zeros[WORK_DIM] = {0};
    ww_query query = ww_query_default();
    query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 3, query.fetch = WW_FETCH_IDS;
    ww_status status = work_open(t->path, t->device, &t->store, &t->collection);
    for (t->done = 0; status == WW_OK && t->done < OPERATIONS;) {
        ww_results *found = NULL;
        status = work_do(t->collection, SEED, t->done);
        t->done += status == WW_OK;
        if (status == WW_OK)
            status = ww_collection_query(t->collection, &query, &found);
        ww_results_destroy(found);
    }
    return status;
}

static void remove_files(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static ww_collection *model_make(ww_device *device, int64_t done)
{
    ww_collection *model = collection_make(device, WORK_DIM, WW_L2);
    for (int64_t i = 0; i < done; i++)
        CHECK_OK(work_do(model, SEED, i));
    return model;
}

/* One trial with the fault at call `n`; false if it never came to that. */
static bool trial_with(ww_device *device, vfs_fault fault, int64_t n)
{
    trial t = {.device = device, .path = strdup(scratch_path("vfs.db"))};
    remove_files(t.path);
    vfs_forget();
    vfs_arm(fault, n);
    const ww_status status = trial_run(&t);
    const bool tripped = vfs_disarm();
    if (!tripped && status != WW_OK)
        fail_msg("without a fault: %s", ww_error_message());
    if (status != WW_OK && (status == WW_INTERNAL || ww_error_message()[0] == '\0'))
        fail_msg("fault %d at call %lld: %s: %s", (int)fault, (long long)n, ww_status_name(status), ww_error_message());
    ww_collection *model = model_make(device, t.done);
    int64_t next = t.done;
    if (t.collection && fault != VFS_POWER && !collections_equal(t.collection, model)) {
        CHECK_OK(work_do(model, SEED, next++)); /* it came to the file all the same */
        if (!collections_equal(t.collection, model))
            fail_msg("fault %d at call %lld: what is in memory is neither before nor after it", (int)fault, (long long)n);
    }
    work_close(t.store, t.collection);
    if (fault == VFS_POWER && tripped)
        vfs_power_back(t.path);
    (void)work_verify(t.path, device, model, SEED, next);
    ww_collection_destroy(model);
    free(t.path);
    return tripped;
}

static void every_call_in_turn(vfs_fault fault, int64_t step)
{
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    int64_t n = 1;
    while (trial_with(device, fault, n))
        n = test_is_short() ? fault_next(n) : n + step;
    assert_true(n > 5);
    print_message("%lld calls\n", (long long)n);
    ww_device_close(device);
}

static void an_io_error_at_every_call(void **state)
{
    (void)state;
    every_call_in_turn(VFS_IO_ERROR, 1);
}

static void a_full_disk_at_every_call(void **state)
{
    (void)state;
    every_call_in_turn(VFS_FULL, 1);
}

static void a_short_write_at_every_call(void **state)
{
    (void)state;
    every_call_in_turn(VFS_SHORT_WRITE, 1);
}

static void a_power_failure_at_every_sync(void **state)
{
    (void)state;
    every_call_in_turn(VFS_POWER, 1);
}

/* One upgrade of a store of an earlier version with the fault at call `n`; false if it never came to that. */
static bool upgrade_with(ww_device *device, vfs_fault fault, int64_t n)
{
    trial t = {.device = device, .path = strdup(scratch_path("upgrade.db"))};
    ww_store *store = NULL;
    remove_files(t.path);
    vfs_forget();
    vfs_arm(fault, INT64_MAX); /* from here on syncs count: a power failure keeps what they wrote */
    CHECK_OK(trial_run(&t));
    work_close(t.store, t.collection);
    work_make_old(t.path);
    vfs_arm(fault, n);
    ww_status status = ww_store_open(t.path, device, NULL, &store);
    if (status == WW_OK)
        status = ww_store_upgrade(store, NULL, NULL);
    const bool tripped = vfs_disarm();
    if (status != WW_OK && (!tripped || status == WW_INTERNAL || ww_error_message()[0] == '\0'))
        fail_msg("fault %d at call %lld: %s: %s", (int)fault, (long long)n, ww_status_name(status), ww_error_message());
    ww_store_close(store);
    if (fault == VFS_POWER && tripped)
        vfs_power_back(t.path);
    ww_collection *model = model_make(device, t.done);
    assert_int_equal(work_verify(t.path, device, model, SEED, t.done), t.done);
    ww_collection_destroy(model);
    free(t.path);
    return tripped;
}

static void an_upgrade_is_whole_or_not_at_all_whatever_fails(void **state)
{
    (void)state;
    static const vfs_fault faults[] = {VFS_IO_ERROR, VFS_FULL, VFS_SHORT_WRITE, VFS_POWER};
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int64_t n = 1;
        while (upgrade_with(device, faults[i], n))
            n++;
        assert_true(n > 2);
    }
    ww_device_close(device);
}

enum { LARGE_DIM = 32768, LARGE_ROWS = LARGE_WRITE_BYTES / (LARGE_DIM * 4) + 1 };

/* One large write with the fault at call `n`, with few rows before it; false if it never came to that. */
static bool large_with(ww_device *device, const float *vectors, vfs_fault fault, int64_t n)
{
    char *path = strdup(scratch_path("large.db"));
    ww_collection_config config = ww_collection_config_default();
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    ww_rows rows = ww_rows_default();
    config.name = "docs", config.dim = LARGE_DIM;
    rows.vectors = vectors, rows.dim = LARGE_DIM, rows.count = 2;
    remove_files(path);
    vfs_forget();
    vfs_arm(fault, INT64_MAX);
    CHECK_OK(ww_store_open(path, device, NULL, &store));
    CHECK_OK(ww_store_create(store, &config, &docs));
    CHECK_OK(ww_collection_add(docs, &rows));
    vfs_arm(fault, n);
    rows.count = LARGE_ROWS;
    const ww_status status = ww_collection_add(docs, &rows);
    const bool tripped = vfs_disarm();
    if (status != WW_OK && (!tripped || status == WW_INTERNAL || ww_error_message()[0] == '\0'))
        fail_msg("fault %d at call %lld: %s: %s", (int)fault, (long long)n, ww_status_name(status), ww_error_message());
    rows.count = 1;
    if (fault != VFS_POWER) /* the handle works again */
        CHECK_OK(ww_collection_add(docs, &rows));
    ww_collection_destroy(docs);
    ww_store_close(store);
    if (fault == VFS_POWER && tripped)
        vfs_power_back(path);
    CHECK_OK(ww_store_open(path, device, NULL, &store));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    const int64_t more = ww_collection_count(docs) - 2 - (fault != VFS_POWER);
    if (more != LARGE_ROWS && (more != 0 || status == WW_OK))
        fail_msg("fault %d at call %lld: %lld rows of a write are there", (int)fault, (long long)n, (long long)more);
    ww_collection_destroy(docs);
    ww_store_close(store);
    free(path);
    return tripped;
}

static void a_large_write_is_whole_or_not_at_all_whatever_fails(void **state)
{
    (void)state;
    static const vfs_fault faults[] = {VFS_IO_ERROR, VFS_FULL, VFS_SHORT_WRITE, VFS_POWER};
    ww_device *device = NULL;
    float *vectors = malloc((size_t)LARGE_ROWS * LARGE_DIM * sizeof *vectors);
    test_random random = {31};
    random_normals(&random, vectors, (int64_t)LARGE_ROWS * LARGE_DIM);
    CHECK_OK(ww_device_open("cpu", &device));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int64_t n = 1;
        while (large_with(device, vectors, faults[i], n))
            n = faults[i] == VFS_POWER || n < 16 ? n + 1 : fault_next(n);
        assert_true(n > 8);
    }
    ww_device_close(device);
    free(vectors);
}

/* Fewer of more calls: building, splitting and following an index. */
static void an_io_error_while_there_is_an_index(void **state)
{
    (void)state;
    work_indexed = true;
    every_call_in_turn(VFS_IO_ERROR, 3);
    every_call_in_turn(VFS_POWER, 1);
    work_indexed = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_io_error_at_every_call, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_at_every_call, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_short_write_at_every_call, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_power_failure_at_every_sync, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_upgrade_is_whole_or_not_at_all_whatever_fails, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_large_write_is_whole_or_not_at_all_whatever_fails, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_io_error_while_there_is_an_index, scratch_setup, scratch_teardown),
    };
    vfs_install();
    const int failed = cmocka_run_group_tests_name("store: files that fail", tests, NULL, NULL);
    vfs_forget();
    return failed;
}
