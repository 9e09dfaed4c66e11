/* Compacting a store whose index has tiny lists, which are merged: every allocation and every call to a file fails in turn, and
 * the process is killed. Rows and lists are as before or as after it, and always in step. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <warpwave/ivf.h>

#include "store/faulty_vfs.h"
#include "store/store_support.h"
#include "support/data/indexed.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/process.h"
#include "support/scratch.h"

enum { DIM = 6, COUNT = 400, LISTS = 60, KEPT = 5 };

static char *path, *original;
static ww_device *device;
static int64_t lists_before, lists_after;

static void open_docs(ww_store **store, ww_collection **docs)
{
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_store_open(path, device, &how, store));
    CHECK_OK(ww_store_collection(*store, "docs", docs));
}

static void close_docs(ww_store *store, ww_collection *docs)
{
    ww_collection_destroy(docs);
    ww_store_close(store);
}

static int64_t lists_of(ww_collection *docs)
{
    ww_ivf_info info = ww_ivf_info_default();
    CHECK_OK(ww_collection_describe_ivf(docs, &info));
    assert_int_equal(info.rows, ww_collection_count(docs));
    return info.nlist;
}

static void copy_file(const char *from, const char *to)
{
    char text[8192];
    ssize_t some;
    const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && out >= 0);
    while ((some = read(in, text, sizeof text)) > 0)
        assert_int_equal(write(out, text, (size_t)some), some);
    close(in);
    close(out);
}

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* Makes the initial state: an index most of whose rows were removed. Counts its lists before and after compacting. */
static void make_original(void)
{
    static float rows[COUNT * DIM];
    test_random random = {12};
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs", config.dim = DIM, config.metric = WW_L2;
    clustered_rows(&random, rows, COUNT, DIM, LISTS, WW_VECTOR_F32);
    CHECK_OK(ww_store_open(path, device, NULL, &store));
    CHECK_OK(ww_store_create(store, &config, &docs));
    ww_rows all = ww_rows_default();
    all.count = COUNT, all.dim = DIM, all.vectors = rows;
    CHECK_OK(ww_collection_add(docs, &all));
    index_build(docs, LISTS);
    for (int i = 0; i < COUNT; i++) {
        char id[16];
        const char *const ids[] = {id};
        snprintf(id, sizeof id, "%d", i);
        if (i % KEPT != 0 && i > COUNT / 4)
            CHECK_OK(ww_collection_remove(docs, ids, 1));
    }
    lists_before = lists_of(docs);
    close_docs(store, docs); /* the folder contains nothing besides the file */
    copy_file(path, original);
    open_docs(&store, &docs);
    CHECK_OK(ww_collection_compact(docs, NULL, NULL));
    lists_after = lists_of(docs);
    close_docs(store, docs);
    assert_true(lists_after < lists_before);
}

static int setup(void **state)
{
    scratch_setup(state);
    path = strdup(scratch_path("merge.db"));
    original = strdup(scratch_path("original.db"));
    CHECK_OK(ww_device_open("cpu", &device));
    make_original();
    return 0;
}

static int teardown(void **state)
{
    ww_device_close(device);
    free(path);
    free(original);
    return scratch_teardown(state);
}

static void begin(ww_store **store, ww_collection **docs)
{
    remove_files();
    copy_file(original, path);
    open_docs(store, docs);
}

/* With the handle that has met the fault, and with a new one. */
static void verify(ww_store *store, ww_collection *docs)
{
    for (int i = 0; i < 2; i++) {
        static const float zeros[DIM] = {0};
        const int64_t lists = lists_of(docs);
        assert_true(lists == lists_before || lists == lists_after);
        ww_results *all = query_lists(docs, zeros, 1, 9, lists), *exact = query_lists(docs, zeros, 1, 9, 0);
        check_same_results(all, exact);
        ww_results_destroy(all);
        ww_results_destroy(exact);
        CHECK_OK(ww_store_check(store, NULL, NULL));
        close_docs(store, docs);
        if (i == 0)
            open_docs(&store, &docs);
    }
}

static void an_allocation_that_fails_leaves_the_lists_in_step(void **state)
{
    (void)state;
    long n = 1;
    for (bool failed = true; failed; n = fault_next(n)) {
        ww_store *store = NULL;
        ww_collection *docs = NULL;
        begin(&store, &docs);
        fail_allocation_at(n);
        const ww_status status = ww_collection_compact(docs, NULL, NULL);
        fail_allocation_at(0);
        failed = status != WW_OK;
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        verify(store, docs);
    }
    assert_true(n > 20);
}

static void a_call_to_a_file_that_fails_leaves_the_lists_in_step(void **state)
{
    (void)state;
    static const vfs_fault faults[] = {VFS_IO_ERROR, VFS_FULL, VFS_SHORT_WRITE};
    for (int i = 0; i < 3; i++) {
        long n = 1;
        for (bool tripped = true; tripped; n = fault_next(n)) {
            ww_store *store = NULL;
            ww_collection *docs = NULL;
            begin(&store, &docs);
            vfs_arm(faults[i], n);
            const ww_status status = ww_collection_compact(docs, NULL, NULL);
            tripped = vfs_disarm();
            assert_true(tripped || status == WW_OK);
            verify(store, docs);
        }
        assert_true(n > 20);
    }
}

static void a_process_that_is_killed_leaves_the_lists_in_step(void **state)
{
    test_random random = {99};
    (void)state;
    for (int i = 0; i < 20; i++) {
        ww_store *store = NULL;
        ww_collection *docs = NULL;
        remove_files();
        copy_file(original, path);
        const pid_t child = fork_when_idle();
        if (child == 0) {
            if (ww_device_open("cpu", &device) != WW_OK) /* one of its own */
                _exit(1);
            open_docs(&store, &docs);
            (void)ww_collection_compact(docs, NULL, NULL);
            pause();
        }
        const struct timespec moment = {.tv_nsec = (long)random_below(&random, 40 * 1000 * 1000)};
        nanosleep(&moment, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        open_docs(&store, &docs);
        verify(store, docs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_allocation_that_fails_leaves_the_lists_in_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_to_a_file_that_fails_leaves_the_lists_in_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_process_that_is_killed_leaves_the_lists_in_step, setup, teardown),
    };
    vfs_install();
    const int failed = cmocka_run_group_tests_name("store: lists that are merged", tests, NULL, NULL);
    vfs_forget();
    return failed;
}
