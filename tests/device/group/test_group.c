/* Groups of devices: their names, how rows are divided among the members, and a lost member. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/group/group.h"
#include "emulated/emulated.h"
#include "gpu/device.h"
#include "gpu/error.h"
#include "support/collections.h"
#include "vectors/collection.h"

enum { DIM = 24, ROWS = 1000 };

static ww_device *open_even(const char *name)
{
    ww_device *device = NULL;
    CHECK_OK(ww_device_open(name, &device));
    device->tuning.group_even = true;
    return device;
}

static ww_collection *make(ww_device *device, int32_t keep_host_copy, ww_row_place rows)
{
    ww_collection *c = NULL;
    test_random random = {5};
    ww_collection_config config = ww_collection_config_default();
    config.name = "spread";
    config.dim = DIM;
    config.metric = WW_L2;
    config.keep_host_copy = keep_host_copy;
    config.rows = rows;
    CHECK_OK(ww_collection_create(device, &config, &c));
    collection_fill(c, &random, ROWS, DIM, "r", 0);
    return c;
}

static ww_status search_one(ww_collection *c, int64_t rows[5])
{
    static const float query[DIM] = {1, -1, 0.5f};
    float scores[5];
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 1;
    search.dim = DIM;
    search.k = 5;
    return ww_collection_search(c, &search, rows, scores);
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

static void a_name_of_several_devices_opens_a_group(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_open("cpu+emulator:32", &device));
    CHECK_OK(ww_device_describe(device, &info));
    assert_string_equal(info.id, "cpu+emulator:32");
    assert_string_equal(info.backend, "group");
    assert_int_equal(info.member_count, 2);
    assert_non_null(strstr(info.members, "cpu 50.0%, emulator:32 50.0%")); /* nothing is measured yet */
    assert_true(info.memory_total_bytes > 0);
    ww_device_close(device);

    CHECK_OK(ww_device_open("emulator:*", &device));
    CHECK_OK(ww_device_describe(device, &info));
    assert_true(info.member_count >= 2);
    ww_device_close(device);

    CHECK_OK(ww_device_open("cpu:*", &device)); /* one device is not a group */
    CHECK_OK(ww_device_describe(device, &info));
    assert_string_equal(info.id, "cpu");
    assert_int_equal(info.member_count, 0);
    ww_device_close(device);
}

static void a_device_that_is_named_twice_is_opened_once(void **state)
{
    (void)state;
    ww_device *one = NULL, *twice = NULL;
    ww_memory_info of_one = ww_memory_info_default(), of_two = ww_memory_info_default();
    CHECK_OK(ww_device_open("emulator:32", &one));
    CHECK_OK(ww_device_open("emulator:32+emulator:32", &twice));
    CHECK_OK(ww_device_memory(one, &of_one));
    CHECK_OK(ww_device_memory(twice, &of_two));
    assert_int_equal(of_one.total_bytes, of_two.total_bytes);
    ww_member_info members[3] = {ww_member_info_default(), ww_member_info_default(), ww_member_info_default()};
    size_t count = 0;
    CHECK_OK(ww_device_members(twice, members, 3, &count));
    assert_int_equal(count, 2);
    assert_true(members[0].share == 0.5 && members[1].share == 0.5);
    CHECK_OK(ww_device_members(one, members, 3, &count));
    assert_int_equal(count, 1);
    assert_string_equal(members[0].id, "emulator:32");
    ww_device_close(one);
    ww_device_close(twice);
}

static void names_that_are_no_group_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ww_status status;
        const char *says;
    } cases[] = {
        {"cpu+", WW_INVALID_ARGUMENT, "a name is missing"},
        {"+cpu", WW_INVALID_ARGUMENT, "a name is missing"},
        {"cpu+auto", WW_INVALID_ARGUMENT, "auto"},
        {"cpu+nonesuch:0", WW_NO_DEVICE, "unknown backend"},
        {"nonesuch:*", WW_NO_DEVICE, "unknown backend"},
        {"cpu+emulator:77", WW_NO_DEVICE, "no such device"},
        {"cpu*", WW_NO_DEVICE, "cpu*"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ww_device *device = NULL;
        CHECK_FAILS(cases[i].status, ww_device_open(cases[i].name, &device));
        assert_null(device);
        if (!strstr(ww_error_message(), cases[i].says))
            fail_msg("'%s' does not say '%s'", ww_error_message(), cases[i].says);
    }
}

static char *many(int32_t members, char *name)
{
    name[0] = '\0';
    for (int32_t m = 0; m < members; m++)
        strcat(name, m == 0 ? "cpu" : m % 2 ? "+emulator:32" : "+emulator:64");
    return name;
}

static void a_group_has_up_to_64_members_and_a_name_of_its_own(void **state)
{
    (void)state;
    char name[2048];
    ww_device *device = NULL, *other = NULL;
    ww_device_info info = ww_device_info_default(), shorter = ww_device_info_default();
    CHECK_OK(ww_device_open(many(64, name), &device));
    CHECK_OK(ww_device_open(many(63, name), &other));
    CHECK_OK(ww_device_describe(device, &info));
    CHECK_OK(ww_device_describe(other, &shorter));
    assert_int_equal(info.member_count, 64);
    assert_non_null(strstr(info.id, "+..."));
    assert_string_not_equal(info.id, shorter.id); /* a store tells its copies in memory apart by it */
    assert_non_null(strstr(info.members, " more"));
    ww_device_close(device);
    ww_device_close(other);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_open(many(65, name), &device));
    assert_non_null(strstr(ww_error_message(), "64"));
}

static void tensors_and_quantized_matrices_are_refused(void **state)
{
    (void)state;
    ww_device *device = open_even("cpu+emulator:32");
    ww_storage *storage = NULL;
    CHECK_FAILS(WW_UNSUPPORTED, ww_storage_create(device, WW_F32, 4, &storage));
    assert_non_null(strstr(ww_error_message(), "group"));
    static const float weights[32] = {1};
    ww_quant *quant = NULL;
    CHECK_FAILS(WW_UNSUPPORTED, ww_quant_from_f32(device, WW_QUANT_Q8_0, weights, 1, 32, 0, &quant));
    assert_non_null(strstr(ww_error_message(), "group"));
    ww_module *module = NULL;
    CHECK_FAILS(WW_UNSUPPORTED, ww_module_load(device, "x", 1, &module));
    assert_non_null(strstr(ww_error_message(), "group"));
    CHECK_OK(ww_device_synchronize(device));
    ww_device_close(device);
}

/* ---- where rows go ------------------------------------------------------------------------------------------------------- */

static int64_t rows_of(const ww_collection *c, int32_t member)
{
    int64_t rows = 0;
    for (int64_t s = 0; s < c->store.segment_count; s++)
        rows += c->store.segments[s].member == member ? c->store.segments[s].count : 0;
    return rows;
}

static void a_batch_is_cut_by_the_shares_of_the_members(void **state)
{
    (void)state;
    ww_device *device = open_even("cpu+emulator:32+emulator:64");
    ww_collection *c = make(device, 0, WW_ROWS_DEVICE);
    for (int32_t m = 0; m < 3; m++)
        assert_in_range(rows_of(c, m), ROWS / 3 - 64, ROWS / 3 + 64);
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(c, &info));
    assert_non_null(strstr(info.members, "cpu "));
    assert_non_null(strstr(info.members, ", emulator:64 "));
    assert_string_equal(info.device, "cpu+emulator:32+emulator:64");
    ww_member_info members[3] = {ww_member_info_default(), ww_member_info_default(), ww_member_info_default()};
    size_t count = 0;
    CHECK_OK(ww_device_members(device, members, 3, &count));
    int64_t room = 0;
    for (int32_t m = 0; m < 3; m++) {
        room += members[m].rows_capacity;
        assert_true(members[m].bytes > 0);
    }
    assert_int_equal(room, info.rows_capacity);
    ww_collection_destroy(c);
    CHECK_OK(ww_device_members(device, members, 3, &count));
    for (int32_t m = 0; m < 3; m++)
        assert_true(members[m].rows_capacity == 0 && members[m].bytes == 0);
    ww_device_close(device);
}

static void rows_that_come_one_by_one_are_spread_too(void **state)
{
    (void)state;
    ww_device *device = open_even("cpu+emulator:32");
    ww_collection *c = collection_make(device, DIM, WW_DOT);
    test_random random = {6};
    for (int64_t i = 0; i < 400; i++)
        collection_fill(c, &random, 1, DIM, "one", i);
    assert_in_range(rows_of(c, 0), 200 - 64, 200 + 64);
    ww_collection_destroy(c);
    ww_device_close(device);
}

/* A CPU is some thousand times as fast as an emulated GPU on it. */
static void the_faster_member_gets_more(void **state)
{
    (void)state;
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("emulator:32+cpu", &device));
    ww_collection *c = make(device, 0, WW_ROWS_DEVICE);
    assert_true(rows_of(c, 1) > 8 * rows_of(c, 0));
    ww_member_info members[2] = {ww_member_info_default(), ww_member_info_default()};
    size_t count = 0;
    CHECK_OK(ww_device_members(device, members, 2, &count));
    assert_true(members[1].share > 0.8);
    ww_collection_destroy(c);
    ww_device_close(device);
}

static void a_member_without_room_leaves_its_share_to_the_others(void **state)
{
    (void)state;
    emulated_set_memory((size_t)5 << 20);
    ww_device *device = open_even("cpu+emulator:32");
    enum { WIDE = 1024, MANY = 3000 }; /* 12 MiB of rows */
    float *numbers = calloc((size_t)MANY * WIDE, sizeof *numbers);
    for (int64_t i = 0; i < MANY; i++)
        numbers[i * WIDE + i % WIDE] = 1;
    ww_collection *c = collection_make(device, WIDE, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.count = MANY;
    rows.dim = WIDE;
    rows.vectors = numbers;
    CHECK_OK(ww_collection_add(c, &rows));
    assert_int_equal(rows_of(c, 0) + rows_of(c, 1), MANY);
    assert_true(rows_of(c, 0) > MANY * 3 / 4);
    free(numbers);
    ww_collection_destroy(c);
    ww_device_close(device);
    emulated_set_memory(0);
}

static void moving_to_the_same_group_balances_the_rows(void **state)
{
    (void)state;
    ww_device *device = open_even("cpu+emulator:32");
    group_device *group = group_of(device);
    ww_collection *c = make(device, 0, WW_ROWS_DEVICE);
    snapshot before = snapshot_take(c);
    device->tuning.group_even = false;
    atomic_store(&group->members[0].speed, 3.0);
    atomic_store(&group->members[1].speed, 1.0);
    CHECK_OK(ww_collection_move(c, device));
    assert_in_range(rows_of(c, 0), ROWS * 3 / 4 - 64, ROWS * 3 / 4 + 64);
    snapshot now = snapshot_take(c);
    assert_true(snapshot_equal_but_figures(&before, &now));
    const segment first = c->store.segments[0];
    atomic_store(&group->members[0].speed, 3.0); /* searches have corrected them */
    atomic_store(&group->members[1].speed, 1.0);
    CHECK_OK(ww_collection_move(c, device)); /* the rows are already there: nothing to do */
    assert_ptr_equal(first.rows.data, c->store.segments[0].rows.data);
    snapshot_free(&before);
    snapshot_free(&now);
    ww_collection_destroy(c);
    ww_device_close(device);
}

/* ---- a member that is lost ----------------------------------------------------------------------------------------------- */

static void lose(ww_device *device, int32_t member)
{
    gpu_lose(gpu_of(group_of(device)->members[member].device), "the test wants it");
}

static void a_lost_member_is_named_and_the_group_goes_on_without_it(void **state)
{
    (void)state;
    int64_t expected[5], rows[5];
    ww_device *device = open_even("cpu+emulator:32+emulator:64");
    ww_collection *c = make(device, 1, WW_ROWS_DEVICE);
    snapshot before = snapshot_take(c);
    CHECK_OK(search_one(c, expected));
    lose(device, 1);
    CHECK_FAILS(WW_DRIVER_ERROR, search_one(c, rows));
    assert_non_null(strstr(ww_error_message(), "member emulator:32"));
    assert_non_null(strstr(ww_error_message(), "if you drop it, the group goes on"));
    CHECK_OK(ww_device_drop(device, "emulator:32"));
    CHECK_FAILS(WW_DRIVER_ERROR, search_one(c, rows)); /* never an answer from some of the rows */
    assert_non_null(strstr(ww_error_message(), "moving the collection to the same group"));
    CHECK_OK(ww_collection_move(c, device));
    CHECK_OK(search_one(c, rows));
    assert_memory_equal(expected, rows, sizeof rows);
    assert_int_equal(rows_of(c, 1), 0);
    snapshot now = snapshot_take(c);
    assert_true(snapshot_equal_but_figures(&before, &now));
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &info));
    assert_string_equal(info.id, "cpu+emulator:64");
    assert_int_equal(info.member_count, 2);
    assert_non_null(strstr(info.members, "emulator:32 dropped"));
    test_random random = {7};
    collection_fill(c, &random, 100, DIM, "later", 0);
    assert_int_equal(rows_of(c, 1), 0);
    snapshot_free(&before);
    snapshot_free(&now);
    ww_collection_destroy(c);
    ww_device_close(device);
}

static void a_lost_members_rows_need_no_room_for_those_of_the_others(void **state)
{
    (void)state;
    enum { WIDE = 1024, MANY = 1536, LIMIT = 11 << 20 }; /* 6 MiB of rows and 1.5 of codes, half of them on each */
    emulated_set_memory(LIMIT);
    ww_device *device = open_even("emulator:32+emulator:64");
    ww_collection_config config = ww_collection_config_default();
    config.name = "tight", config.dim = WIDE, config.metric = WW_DOT, config.keep_host_copy = 1;
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(device, &config, &c));
    test_random random = {3};
    for (int i = 0; i < 4; i++)
        collection_fill(c, &random, MANY / 4, WIDE, "t", (int64_t)i * MANY / 4);
    snapshot before = snapshot_take(c);
    const int64_t kept = rows_of(c, 1);
    assert_in_range(kept, MANY / 3, MANY * 2 / 3);
    lose(device, 0);
    CHECK_OK(ww_device_drop(device, "emulator:32"));
    void *stays = NULL; /* the memory of the other member does not change */
    for (int64_t s = 0; s < c->store.segment_count && !stays; s++)
        stays = c->store.segments[s].member == 1 ? c->store.segments[s].rows.data : NULL;
    CHECK_OK(ww_collection_move(c, device));
    bool stayed = false;
    for (int64_t s = 0; s < c->store.segment_count; s++)
        stayed = stayed || c->store.segments[s].rows.data == stays;
    assert_true(stayed);
    assert_int_equal(rows_of(c, 0), 0);
    assert_int_equal(rows_of(c, 1), MANY);
    snapshot now = snapshot_take(c);
    assert_true(snapshot_equal_but_figures(&before, &now));
    emulated_set_memory(0); /* checking makes the codes again */
    CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
    snapshot_free(&before);
    snapshot_free(&now);
    ww_collection_destroy(c);
    ww_device_close(device);
}

static void without_a_host_copy_the_rows_of_a_lost_member_are_lost_and_that_is_said(void **state)
{
    (void)state;
    int64_t rows[5];
    ww_device *device = open_even("cpu+emulator:32");
    ww_collection *c = make(device, 0, WW_ROWS_DEVICE);
    lose(device, 1);
    CHECK_OK(ww_device_drop(device, "emulator:32"));
    CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_move(c, device));
    assert_non_null(strstr(ww_error_message(), "keep_host_copy"));
    CHECK_FAILS(WW_DRIVER_ERROR, search_one(c, rows));
    int64_t row = -1;
    CHECK_OK(ww_collection_find(c, "r7", &row)); /* ids can still be read */
    assert_int_equal(row, 7);
    ww_collection_destroy(c);
    ww_device_close(device);
}

static void rows_on_the_host_outlive_a_lost_member(void **state)
{
    (void)state;
    int64_t expected[5], rows[5];
    ww_device *device = open_even("emulator:64+emulator:32");
    ww_collection *c = make(device, 0, WW_ROWS_HOST);
    CHECK_OK(search_one(c, expected));
    lose(device, 0);
    CHECK_OK(ww_device_drop(device, "emulator:64"));
    CHECK_OK(ww_collection_move(c, device));
    CHECK_OK(search_one(c, rows));
    assert_memory_equal(expected, rows, sizeof rows);
    ww_collection_destroy(c);
    ww_device_close(device);
}

static void dropping_refuses_a_device_that_is_not_a_member_and_the_last_member(void **state)
{
    (void)state;
    ww_device *device = open_even("cpu+emulator:32"), *single = NULL;
    CHECK_OK(ww_device_open("cpu", &single));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_drop(NULL, "cpu"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_drop(device, NULL));
    CHECK_FAILS(WW_UNSUPPORTED, ww_device_drop(single, "cpu"));
    CHECK_FAILS(WW_NOT_FOUND, ww_device_drop(device, "emulator:64"));
    CHECK_OK(ww_device_drop(device, "emulator:32"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_drop(device, "cpu"));
    size_t count = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_members(device, NULL, 1, &count));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_members(NULL, NULL, 0, &count));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_members(device, NULL, 0, NULL));
    CHECK_OK(ww_device_members(device, NULL, 0, &count));
    assert_int_equal(count, 2);
    ww_collection *c = make(device, 0, WW_ROWS_DEVICE); /* it still works */
    ww_collection_destroy(c);
    ww_device_close(device);
    ww_device_close(single);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_of_several_devices_opens_a_group),
        cmocka_unit_test(a_device_that_is_named_twice_is_opened_once),
        cmocka_unit_test(names_that_are_no_group_are_refused),
        cmocka_unit_test(a_group_has_up_to_64_members_and_a_name_of_its_own),
        cmocka_unit_test(tensors_and_quantized_matrices_are_refused),
        cmocka_unit_test(a_batch_is_cut_by_the_shares_of_the_members),
        cmocka_unit_test(rows_that_come_one_by_one_are_spread_too),
        cmocka_unit_test(the_faster_member_gets_more),
        cmocka_unit_test(a_member_without_room_leaves_its_share_to_the_others),
        cmocka_unit_test(moving_to_the_same_group_balances_the_rows),
        cmocka_unit_test(a_lost_member_is_named_and_the_group_goes_on_without_it),
        cmocka_unit_test(a_lost_members_rows_need_no_room_for_those_of_the_others),
        cmocka_unit_test(without_a_host_copy_the_rows_of_a_lost_member_are_lost_and_that_is_said),
        cmocka_unit_test(rows_on_the_host_outlive_a_lost_member),
        cmocka_unit_test(dropping_refuses_a_device_that_is_not_a_member_and_the_last_member),
    };
    return cmocka_run_group_tests_name("groups of devices", tests, NULL, NULL);
}
