/* Moving a collection: what it keeps, its state after a failure, and the use of a host copy when a device is lost. */
#include <string.h>

#include "base/text.h"
#include "device/backend.h"
#include "support/calls/calls.h"
#include "support/devices.h"
#include "support/faults/faulty.h"
#include "support/memory.h"

enum { ATTEMPTS_MAX = 5000, FOREVER = 1000000, DIM = 9, DEVICES_MAX = 16 };

static ww_device *open_device(const char *name)
{
    ww_device *device = NULL;
    CHECK_OK(ww_device_open(name, &device));
    return device;
}

static ww_collection *make_copied(ww_device *device, int32_t dim, ww_metric metric)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "copied";
    config.dim = dim;
    config.metric = metric;
    config.keep_host_copy = 1;
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(device, &config, &c));
    return c;
}

/* Lets a CPU pass for a device with memory of its own, so that a host copy is kept and needed. */
static ww_device *open_as_gpu(const char *name)
{
    static backend other;
    ww_device *device = open_device(name);
    other = *device->backend;
    other.on_host = false;
    device->backend = &other;
    text_copy(device->info.backend, sizeof device->info.backend, "other");
    return device;
}

static ww_collection_info info_of(ww_collection *c)
{
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(c, &info));
    return info;
}

static void change_everything(ww_collection *c, int32_t dim)
{
    test_random random = {5};
    test_rows rows = test_rows_make(&random, 90, dim, "a", 60);
    CHECK_OK(ww_collection_upsert(c, &rows.rows));
    test_rows_free(&rows);
    const char *gone[] = {"a1", "a64", "a149"};
    CHECK_OK(ww_collection_remove(c, gone, 3));
    collection_fill(c, &random, 77, dim, "later", 0);
}

static void check_twins(ww_collection *a, ww_collection *b)
{
    snapshot left = snapshot_take(a), right = snapshot_take(b);
    assert_true(snapshot_equal_but_figures(&left, &right));
    snapshot_free(&left);
    snapshot_free(&right);
}

/* The CPU and the emulated devices that are here, so that a journey over all of them comes to this. */
static size_t list_journey(char names[DEVICES_MAX][32])
{
    ww_device_info infos[DEVICES_MAX];
    size_t found = 0, count = 0;
    for (int i = 0; i < DEVICES_MAX; i++)
        infos[i] = ww_device_info_default();
    CHECK_OK(ww_devices(infos, DEVICES_MAX, &found));
    for (size_t i = 0; i < found && i < DEVICES_MAX; i++)
        if (strcmp(infos[i].backend, "cpu") == 0 || strcmp(infos[i].backend, "emulator") == 0)
            text_copy(names[count++], 32, infos[i].id);
    return count;
}

static void a_journey_over_all_devices_keeps_every_bit(void **state)
{
    char names[DEVICES_MAX][32];
    const size_t count = list_journey(names);
    for (int copied = 0; copied < 2; copied++) {
        ww_collection *stays = collection_for_calls(*state);
        ww_collection *moves = copied ? make_copied(*state, DIM, WW_L2) : collection_make(*state, DIM, WW_L2);
        collection_for_calls_fill(moves);
        for (size_t i = 0; i <= count; i++) {
            ww_device *next = open_device(names[i % count]);
            CHECK_OK(ww_collection_move(moves, next));
            assert_string_equal(info_of(moves).device, names[i % count]);
            ww_device_close(next); /* the collection has it open for itself */
            check_twins(stays, moves);
        }
        CHECK_OK(ww_collection_move(moves, *state));
        change_everything(stays, DIM);
        change_everything(moves, DIM);
        check_twins(stays, moves);
        CHECK_OK(ww_collection_compact(stays, NULL, NULL));
        CHECK_OK(ww_collection_compact(moves, NULL, NULL));
        check_twins(stays, moves);
        ww_collection_destroy(stays);
        ww_collection_destroy(moves);
    }
}

static void changes_between_moves_are_kept(void **state)
{
    ww_device *cpu = open_device("cpu");
    ww_collection *stays = collection_for_calls(*state), *moves = collection_for_calls(cpu);
    change_everything(stays, DIM);
    CHECK_OK(ww_collection_move(moves, *state));
    change_everything(moves, DIM);
    CHECK_OK(ww_collection_move(moves, cpu));
    check_twins(stays, moves);
    ww_collection_destroy(stays);
    ww_collection_destroy(moves);
    ww_device_close(cpu);
}

static void rows_that_are_many_pieces_arrive_whole(void **state)
{
    test_random random = {6};
    ww_device *cpu = open_device("cpu");
    ww_collection *stays = collection_make(cpu, WW_DIM_MAX, WW_DOT), *moves = collection_make(cpu, WW_DIM_MAX, WW_DOT);
    collection_fill(stays, &random, 70, WW_DIM_MAX, "wide", 0);
    random.state = 6;
    collection_fill(moves, &random, 70, WW_DIM_MAX, "wide", 0);
    CHECK_OK(ww_collection_move(moves, *state));
    check_twins(stays, moves);
    ww_collection_destroy(stays);
    ww_collection_destroy(moves);
    ww_device_close(cpu);
}

static void the_old_devices_memory_is_freed_and_the_reserved_room_stays(void **state)
{
    ww_device *cpu = open_device("cpu");
    ww_memory_info before = ww_memory_info_default(), after = ww_memory_info_default();
    CHECK_OK(ww_device_memory(*state, &before));
    ww_collection *c = collection_for_calls(*state);
    CHECK_OK(ww_collection_reserve(c, 5000));
    const ww_collection_info there = info_of(c);
    const int users = atomic_load(&((ww_device *)*state)->users);
    CHECK_OK(ww_collection_move(c, cpu));
    assert_int_equal(atomic_load(&((ww_device *)*state)->users), users - 1);
    CHECK_OK(ww_device_memory(*state, &after));
    assert_int_equal(before.ours_bytes, after.ours_bytes);
    const ww_collection_info here = info_of(c);
    assert_int_equal(here.rows_capacity, there.rows_capacity);
    assert_int_equal(here.rows_removed, there.rows_removed);
    assert_int_equal(here.bytes_ids, there.bytes_ids);
    assert_int_equal(here.bytes_payloads, there.bytes_payloads);
    ww_device_close(cpu);
    ww_collection_destroy(c);
}

static void an_empty_collection_and_the_device_it_is_on(void **state)
{
    ww_device *cpu = open_device("cpu");
    ww_collection *c = collection_make(*state, DIM, WW_COSINE);
    CHECK_OK(ww_collection_move(c, *state));
    CHECK_OK(ww_collection_move(c, cpu));
    assert_int_equal(ww_collection_count(c), 0);
    test_random random = {7};
    collection_fill(c, &random, 5, DIM, "a", 0);
    CHECK_OK(ww_collection_move(c, *state));
    assert_int_equal(ww_collection_count(c), 5);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_move(c, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_move(NULL, cpu));
    ww_collection_destroy(c);
    ww_device_close(cpu);
}

static void check_failed_move(ww_collection *c, const snapshot *before, int64_t blocks, const char *what, int64_t n)
{
    if (blocks_held() != blocks)
        fail_msg("%s %lld: %lld blocks more than before", what, (long long)n, (long long)(blocks_held() - blocks));
    snapshot now = snapshot_take(c);
    if (!snapshot_equal(before, &now))
        fail_msg("%s %lld: the collection has changed", what, (long long)n);
    snapshot_free(&now);
}

static void when_any_allocation_fails_it_stays_on_its_device(void **state)
{
    ww_device *other = open_as_gpu("cpu");
    for (int copied = 0; copied < 2; copied++) {
        const int64_t at_first = blocks_held();
        ww_collection *c = copied ? make_copied(*state, DIM, WW_L2) : collection_make(*state, DIM, WW_L2);
        collection_for_calls_fill(c);
        snapshot before = snapshot_take(c);
        int64_t n = 1;
        for (; n < ATTEMPTS_MAX; n++) {
            const int64_t blocks = blocks_held();
            fail_allocation_at(n);
            const ww_status status = ww_collection_move(c, other);
            fail_allocation_at(0);
            if (status == WW_OK)
                break;
            assert_int_equal(status, WW_OUT_OF_MEMORY);
            assert_true(strstr(ww_error_message(), "asked") ||
                        strstr(ww_error_message(), "OUT_OF_MEMORY")); /* ours, a driver's */
            check_failed_move(c, &before, blocks, "allocation", n);
        }
        assert_true(n > 6);
        snapshot_free(&before);
        ww_collection_destroy(c);
        assert_int_equal(blocks_held(), at_first);
    }
    ww_device_close(other);
}

/* Makes each call of `faulty` fail in turn while the collection moves from `from` to `to`; `faulty` is one of these two. */
static void fail_each_call(ww_device *faulty, ww_device *from, ww_device *to, long count, bool after_work)
{
    faulty_attach(faulty);
    ww_collection *c = collection_for_calls(from);
    snapshot before = snapshot_take(c);
    long first = 1;
    for (; first < ATTEMPTS_MAX; first++) {
        const int64_t blocks = blocks_held();
        faults = (fault_plan){.first = first, .count = count, .after_work = after_work};
        const ww_status status = ww_collection_move(c, to);
        faults = (fault_plan){0};
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_DRIVER_ERROR);
        assert_non_null(strstr(ww_error_message(), "injected failure"));
        check_failed_move(c, &before, blocks, "device call", first);
    }
    assert_true(first > 3 && first < ATTEMPTS_MAX);
    assert_string_equal(info_of(c).device, to->info.id);
    snapshot_free(&before);
    ww_collection_destroy(c);
    faulty_detach(faulty);
}

static void when_any_call_of_either_device_fails_it_stays_on_its_device(void **state)
{
    ww_device *other = open_device("cpu");
    for (int i = 0; i < 4; i++) {
        fail_each_call(*state, *state, other, i / 2 ? FOREVER : 1, i % 2);
        fail_each_call(*state, other, *state, i / 2 ? FOREVER : 1, i % 2);
    }
    ww_device_close(other);
}

static void without_a_host_copy_a_lost_device_keeps_the_rows_and_says_so(void **state)
{
    ww_device *other = open_device("cpu");
    faulty_attach(*state);
    ww_collection *c = collection_for_calls(*state);
    snapshot before = snapshot_take(c);
    char text[64];
    int64_t row = -1;
    faults = (fault_plan){.first = 1, .count = FOREVER};
    CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_move(c, other));
    assert_non_null(strstr(ww_error_message(), "injected failure"));
    assert_non_null(strstr(ww_error_message(), "keep_host_copy"));
    assert_int_equal(info_of(c).bytes_host_copy, 0);
    assert_int_equal(ww_collection_count(c), info_of(c).rows_live);
    CHECK_OK(ww_collection_find(c, "a6", &row));
    CHECK_OK(ww_collection_id(c, row, text, sizeof text, NULL));
    CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
    assert_string_equal(text, "{\"n\": 6}");
    faults = (fault_plan){0};
    check_unchanged(c, &before);
    ww_collection_destroy(c);
    faulty_detach(*state);
    ww_device_close(other);
}

static void with_a_host_copy_a_lost_device_can_be_left(void **state)
{
    (void)state;
    ww_device *lost = open_as_gpu("cpu"), *cpu = open_device("cpu");
    faulty_attach(lost);
    ww_collection *stays = collection_for_calls(cpu), *moves = make_copied(lost, DIM, WW_L2);
    collection_for_calls_fill(moves);
    assert_int_equal(info_of(moves).bytes_host_copy, info_of(moves).rows_capacity * DIM * 4);
    change_everything(stays, DIM);
    change_everything(moves, DIM);
    CHECK_OK(ww_collection_compact(moves, NULL, NULL));
    CHECK_OK(ww_collection_compact(stays, NULL, NULL));
    const char *gone = "later3";
    CHECK_OK(ww_collection_remove(moves, &gone, 1));
    CHECK_OK(ww_collection_remove(stays, &gone, 1));
    faults = (fault_plan){.first = 1, .count = FOREVER};
    float vector[DIM];
    CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_remove(moves, (const char *const[]){"later4"}, 1));
    CHECK_OK(ww_collection_vector(moves, ww_collection_next(moves, 100), vector));
    CHECK_OK(ww_collection_move(moves, cpu));
    check_twins(stays, moves);
    assert_int_equal(info_of(moves).bytes_host_copy, 0); /* the CPU's rows are the host's */
    faults = (fault_plan){0};
    CHECK_OK(ww_collection_move(moves, lost));
    assert_true(info_of(moves).bytes_host_copy > 0);
    check_twins(stays, moves);
    ww_collection_destroy(moves);
    ww_collection_destroy(stays);
    faulty_detach(lost);
    ww_device_close(lost);
    ww_device_close(cpu);
}

static void a_failed_add_with_a_host_copy_changes_nothing(void **state)
{
    (void)state;
    ww_device *device = open_as_gpu("cpu");
    ww_collection *c = make_copied(device, DIM, WW_L2);
    collection_for_calls_fill(c);
    snapshot before = snapshot_take(c);
    test_random random = {8};
    test_rows rows = test_rows_make(&random, 200, DIM, "new", 0);
    for (int64_t n = 1; n < ATTEMPTS_MAX; n++) {
        const int64_t blocks = blocks_held();
        fail_allocation_at(n);
        const ww_status status = ww_collection_add(c, &rows.rows);
        fail_allocation_at(0);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        check_failed_move(c, &before, blocks, "allocation", n);
    }
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_collection_reserve(c, WW_ROWS_MAX));
    snapshot_free(&before);
    test_rows_free(&rows);
    ww_collection_destroy(c);
    ww_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_journey_over_all_devices_keeps_every_bit),
        cmocka_unit_test(changes_between_moves_are_kept),
        cmocka_unit_test(rows_that_are_many_pieces_arrive_whole),
        cmocka_unit_test(the_old_devices_memory_is_freed_and_the_reserved_room_stays),
        cmocka_unit_test(an_empty_collection_and_the_device_it_is_on),
        cmocka_unit_test(when_any_allocation_fails_it_stays_on_its_device),
        cmocka_unit_test(when_any_call_of_either_device_fails_it_stays_on_its_device),
        cmocka_unit_test(without_a_host_copy_a_lost_device_keeps_the_rows_and_says_so),
        cmocka_unit_test(with_a_host_copy_a_lost_device_can_be_left),
        cmocka_unit_test(a_failed_add_with_a_host_copy_changes_nothing),
    };
    return RUN_ON_EVERY_DEVICE("move", tests);
}
