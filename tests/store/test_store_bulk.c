/* Many rows in one call are inserted by a few statements; they must end as the same rows would, added one at a time. */
#include <math.h>
#include <unistd.h>

#include "store/store_support.h"
#include "store/writer/writer.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { DIM = WORK_DIM, ROWS = 300 };

static ww_device *device;
static ww_store *store;
static ww_collection *bulk, *single;

static void make(ww_vector_type type)
{
    ww_collection **const both[] = {&bulk, &single};
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_store_open(scratch_path("bulk.db"), device, &how, &store));
    for (int i = 0; i < 2; i++) {
        ww_collection_config config = ww_collection_config_default();
        config.name = i == 0 ? "bulk" : "single", config.dim = DIM, config.metric = WW_L2, config.type = type;
        CHECK_OK(ww_store_create(store, &config, both[i]));
    }
}

static void unmake(void)
{
    static const char *const names[] = {"bulk.db", "bulk.db-wal", "bulk.db-shm"};
    ww_collection_destroy(bulk);
    ww_collection_destroy(single);
    ww_store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(scratch_path(names[i]));
}

static void add_each(const ww_rows *rows)
{
    for (int64_t i = 0; i < rows->count; i++) {
        ww_rows one = *rows;
        one.count = 1;
        one.vectors = rows->vectors + i * DIM;
        one.ids = rows->ids ? rows->ids + i : NULL;
        one.payloads = rows->payloads ? rows->payloads + i : NULL;
        one.texts = rows->texts ? rows->texts + i : NULL;
        CHECK_OK(ww_collection_add(single, &one));
    }
}

/* Ids, vectors, payloads and texts of both, by the sum of the rows' checksums; and the file agrees with itself. */
static void check_equal(void)
{
    uint64_t digests[2];
    CHECK_OK(ww_collection_digest(bulk, &digests[0]));
    CHECK_OK(ww_collection_digest(single, &digests[1]));
    assert_int_equal(digests[0], digests[1]);
    assert_int_equal(ww_collection_count(bulk), ww_collection_count(single));
    assert_true(collections_equal(bulk, single));
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void rows_of_each_type_end_as_if_added_one_by_one(void **state)
{
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        test_random random = {t + 1};
        make(types[t]);
        test_rows rows = test_rows_make(&random, ROWS, DIM, "id", 0);
        for (int64_t i = 0; types[t] == WW_VECTOR_I8 && i < ROWS * DIM; i++)
            rows.vectors[i] = (float)random_below(&random, 100);
        rows.rows.texts = rows.rows.payloads;
        CHECK_OK(ww_collection_add(bulk, &rows.rows));
        add_each(&rows.rows);
        check_equal();
        test_rows_free(&rows);
        unmake();
    }
}

/* Rows without ids get the next numbers, but no number that is another row's id. */
static void numbers_that_are_ids_already_are_skipped(void **state)
{
    static const char *const taken[] = {"70", "71", "150", "200", "290", "301"};
    enum { TAKEN = sizeof taken / sizeof *taken };
    test_random random = {9};
    (void)state;
    make(WW_VECTOR_F32);
    test_rows rows = test_rows_make(&random, ROWS, DIM, "id", 0);
    ww_rows first = rows.rows;
    first.count = TAKEN, first.ids = taken;
    CHECK_OK(ww_collection_add(bulk, &first));
    add_each(&first);
    rows.rows.ids = NULL;
    CHECK_OK(ww_collection_add(bulk, &rows.rows));
    add_each(&rows.rows);
    check_equal();
    test_rows_free(&rows);
    unmake();
}

static void refused(test_rows *rows, ww_status expected, const char *message)
{
    uint64_t before = 0, after = 0;
    CHECK_OK(ww_collection_digest(bulk, &before));
    CHECK_FAILS(expected, ww_collection_add(bulk, &rows->rows));
    assert_non_null(strstr(ww_error_message(), message));
    CHECK_OK(ww_collection_digest(bulk, &after));
    assert_int_equal(before, after);
}

/* Wherever the bad row is among those that are inserted together, the first one is named and nothing is added. */
static void the_first_row_that_is_refused_is_named_and_nothing_is_added(void **state)
{
    static const int64_t at[] = {1, 63, 64, 65, 127, 130, ROWS - 1};
    test_random random = {7};
    (void)state;
    make(WW_VECTOR_F32);
    collection_fill(bulk, &random, 1, DIM, "old", 0);
    test_rows rows = test_rows_make(&random, ROWS, DIM, "id", 0);
    const char **ids = malloc(ROWS * sizeof *ids);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        char message[64];
        memcpy(ids, rows.ids, ROWS * sizeof *ids);
        rows.rows.ids = ids;
        ids[at[i]] = "old0";
        refused(&rows, WW_DUPLICATE_ID, "id 'old0' already exists");
        ids[at[i]] = ids[0];
        refused(&rows, WW_DUPLICATE_ID, "id 'id0' appears twice in the batch");
        ids[at[i]] = "\xff";
        snprintf(message, sizeof message, "the id of row %lld of the batch is not UTF-8", (long long)at[i]);
        refused(&rows, WW_INVALID_ARGUMENT, message);
        ids[at[i]] = rows.ids[at[i]];
        const float kept = rows.vectors[at[i] * DIM];
        rows.vectors[at[i] * DIM] = INFINITY;
        refused(&rows, WW_INVALID_ARGUMENT, "not finite");
        rows.vectors[at[i] * DIM] = kept;
    }
    ids[40] = "old0", ids[50] = NULL;
    refused(&rows, WW_DUPLICATE_ID, "id 'old0' already exists");
    ids[40] = rows.ids[40];
    refused(&rows, WW_INVALID_ARGUMENT, "50");
    free(ids);
    rows.rows.ids = (const char *const *)rows.ids;
    CHECK_OK(ww_collection_add(bulk, &rows.rows));
    assert_int_equal(ww_collection_count(bulk), ROWS + 1);
    test_rows_free(&rows);
    unmake();
}

static void an_index_gets_all_rows(void **state)
{
    ww_ivf_config lists = ww_ivf_config_default();
    test_random random = {3};
    (void)state;
    make(WW_VECTOR_F32);
    collection_fill(bulk, &random, 50, DIM, "old", 0);
    lists.nlist = 4, lists.iterations = 2;
    CHECK_OK(ww_collection_build_ivf(bulk, &lists));
    collection_fill(bulk, &random, ROWS, DIM, "id", 0);
    ww_ivf_info info = ww_ivf_info_default();
    CHECK_OK(ww_collection_describe_ivf(bulk, &info));
    assert_int_equal(info.rows, ROWS + 50);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    unmake();
}

static void memory_that_runs_out_at_any_allocation_adds_nothing(void **state)
{
    test_random random = {5};
    int64_t failures = 0;
    (void)state;
    make(WW_VECTOR_F16);
    test_rows rows = test_rows_make(&random, 2 * WRITER_ROWS_AT_ONCE, DIM, "id", 0);
    rows.rows.texts = rows.rows.payloads;
    for (int64_t n = 1;; n++) {
        ww_collection_destroy(bulk); /* the first rows allocate most */
        CHECK_OK(ww_store_collection(store, "bulk", &bulk));
        fail_allocation_at(n);
        const ww_status status = ww_collection_add(bulk, &rows.rows);
        fail_allocation_at(0);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_int_equal(ww_collection_count(bulk), 0);
        failures++;
    }
    assert_true(failures > 0);
    add_each(&rows.rows);
    check_equal();
    test_rows_free(&rows);
    unmake();
}

static int setup(void **state)
{
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &device));
    return 0;
}

static int teardown(void **state)
{
    ww_device_close(device);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_of_each_type_end_as_if_added_one_by_one, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_ids_already_are_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_row_that_is_refused_is_named_and_nothing_is_added, setup, teardown),
        cmocka_unit_test_setup_teardown(an_index_gets_all_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_that_runs_out_at_any_allocation_adds_nothing, setup, teardown),
    };
    return cmocka_run_group_tests_name("store: many rows at once", tests, NULL, NULL);
}
