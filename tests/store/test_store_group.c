/* A store on a group of devices: the same answers as a store on the CPU, and a lost member, whose rows the file has. */
#include <stdlib.h>
#include <string.h>

#include "device/group/group.h"
#include "gpu/device.h"
#include "gpu/error.h"
#include "store/store_support.h"
#include "support/scratch.h"

enum { OPERATIONS = 100 }; /* leave more rows than fit in a page, so that each member has some */

static ww_device *open_even(const char *name)
{
    ww_device *device = NULL;
    CHECK_OK(ww_device_open(name, &device));
    device->tuning.group_even = true;
    return device;
}

static void a_store_on_a_group_is_a_store(void **state)
{
    (void)state;
    ww_device *group = open_even("cpu+emulator:32"), *cpu = open_even("cpu");
    ww_store *store = NULL;
    ww_collection *stored = NULL, *model = collection_make(cpu, WORK_DIM, WW_L2);
    char *path = strdup(scratch_path("group.db"));
    work_synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(work_open(path, group, &store, &stored));
    for (int64_t i = 0; i < OPERATIONS; i++) {
        CHECK_OK(work_do(stored, 4, i));
        CHECK_OK(work_do(model, 4, i));
    }
    assert_true(collections_equal(stored, model));
    CHECK_OK(ww_collection_check(stored, NULL, NULL, NULL));
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(stored, &info));
    assert_string_equal(info.device, "cpu+emulator:32");
    assert_non_null(strstr(info.members, "emulator:32 "));
    CHECK_OK(ww_collection_move(stored, group)); /* balanced or not */
    CHECK_OK(ww_collection_move(stored, cpu));
    assert_true(collections_equal(stored, model));
    CHECK_OK(ww_collection_move(stored, group));
    assert_true(collections_equal(stored, model));
    work_close(store, stored);
    CHECK_OK(work_open(path, group, &store, &stored));
    assert_true(collections_equal(stored, model));
    work_close(store, stored);
    ww_collection_destroy(model);
    ww_device_close(group);
    ww_device_close(cpu);
    free(path);
}

static void rows_of_a_lost_member_are_read_from_the_file(void **state)
{
    (void)state;
    ww_device *group = open_even("cpu+emulator:32"), *cpu = open_even("cpu");
    ww_store *store = NULL;
    ww_collection *stored = NULL, *model = collection_make(cpu, WORK_DIM, WW_L2);
    char *path = strdup(scratch_path("lost.db"));
    CHECK_OK(work_open(path, group, &store, &stored));
    test_random random = {8}, again = {8};
    collection_fill(stored, &random, 300, WORK_DIM, "k", 0);
    collection_fill(model, &again, 300, WORK_DIM, "k", 0);
    assert_true(collections_equal(stored, model));
    gpu_lose(gpu_of(group_of(group)->members[1].device), "the test wants it");
    static const float query[WORK_DIM] = {1};
    int64_t rows[3];
    float scores[3];
    ww_query search = ww_query_default();
    search.queries = query, search.query_count = 1, search.dim = WORK_DIM, search.k = 3;
    CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_search(stored, &search, rows, scores));
    assert_non_null(strstr(ww_error_message(), "emulator:32"));
    CHECK_OK(ww_device_drop(group, "emulator:32"));
    CHECK_OK(ww_collection_move(stored, group));
    assert_true(collections_equal(stored, model));
    CHECK_OK(work_do(stored, 5, 1));
    CHECK_OK(work_do(model, 5, 1));
    assert_true(collections_equal(stored, model));
    work_close(store, stored);
    ww_collection_destroy(model);
    ww_device_close(group);
    ww_device_close(cpu);
    free(path);
}

static void rows_on_the_host_are_a_matter_of_the_config(void **state)
{
    (void)state;
    ww_device *emulator = open_even("emulator:64"), *cpu = open_even("cpu");
    ww_store *store = NULL;
    ww_collection *stored = NULL, *model = collection_make(cpu, WORK_DIM, WW_L2);
    ww_collection_config config = ww_collection_config_default();
    config.name = "far", config.dim = WORK_DIM, config.metric = WW_L2, config.rows = WW_ROWS_HOST;
    CHECK_OK(ww_store_open(scratch_path("host.db"), emulator, NULL, &store));
    config.screen = WW_SCREEN_NONE;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_create(store, &config, &stored));
    config.screen = WW_SCREEN_INT8;
    CHECK_OK(ww_store_create(store, &config, &stored)); /* the name is still free */
    test_random random = {8}, again = {8};
    collection_fill(stored, &random, 200, WORK_DIM, "k", 0);
    collection_fill(model, &again, 200, WORK_DIM, "k", 0);
    assert_true(collections_equal(stored, model));
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(stored, &info));
    assert_int_equal(info.rows, WW_ROWS_HOST);
    assert_true(info.bytes_rows_host > 0);
    work_close(store, stored);
    ww_store_config opening = ww_store_config_default(); /* an existing collection is opened with the store's config */
    for (int place = 0; place <= 2; place++) {
        opening.rows = (ww_row_place)place;
        if (place == 2) {
            CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_open(scratch_path("host.db"), emulator, &opening, &store));
            break;
        }
        CHECK_OK(ww_store_open(scratch_path("host.db"), emulator, &opening, &store));
        CHECK_OK(ww_store_collection(store, "far", &stored));
        assert_true(collections_equal(stored, model));
        CHECK_OK(ww_collection_describe(stored, &info));
        assert_int_equal(info.rows, place);
        assert_int_equal(info.bytes_rows_host > 0, place == WW_ROWS_HOST);
        work_close(store, stored);
    }
    ww_collection_destroy(model);
    ww_device_close(emulator);
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_store_on_a_group_is_a_store, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rows_of_a_lost_member_are_read_from_the_file, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rows_on_the_host_are_a_matter_of_the_config, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("stores on groups", tests, NULL, NULL);
}
