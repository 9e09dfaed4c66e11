/* Failures inside a group: every call of each member failing in turn, every call of a member's driver, every allocation. The
 * call that fails says so, the collection is as it was, nothing leaks, and the group goes on. */
#include <string.h>

#include "device/group/group.h"
#include "emulated/parts.h"
#include "gpu/device.h"
#include "gpu/error.h"
#include "support/calls/calls.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"
#include "vectors/collection.h"

enum { ATTEMPTS_MAX = 3000, DRIVER_STEP = TEST_INSTRUMENTED ? 7 : 3 };

static ww_device *open_group(void)
{
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("cpu+emulator:32", &device));
    device->tuning.group_even = true;
    return device;
}

/* What devices keep from one call to the next is made by the first of them. */
static void warm_up(ww_device *device)
{
    ww_collection *c = collection_for_calls_of(device, WW_VECTOR_F32);
    for (const collection_call *call = collection_calls; call->name; call++)
        CHECK_OK(call->call(c));
    ww_collection_destroy(c);
}

static void check_as_before(ww_collection *c, const snapshot *before, const char *call, long n)
{
    snapshot now = snapshot_take(c);
    if (!snapshot_equal(before, &now))
        fail_msg("%s, failure %ld: the collection has changed", call, n);
    snapshot_free(&now);
}

/* If one member runs out of memory, another one may have enough: so the call may succeed, but then a failure was injected. */
static void every_allocation_of_a_group_may_fail(void **state)
{
    (void)state;
    ww_device *device = open_group();
    warm_up(device);
    for (const collection_call *call = collection_calls; call->name; call++) {
        ww_collection *c = collection_for_calls_of(device, WW_VECTOR_F32);
        snapshot before = snapshot_take(c);
        for (int64_t n = 1; n < ATTEMPTS_MAX; n = fault_next(n)) {
            const int64_t blocks = blocks_held();
            fail_allocation_at(n);
            const ww_status status = call->call(c);
            fail_allocation_at(0);
            if (status == WW_OK)
                break;
            if (status != WW_OUT_OF_MEMORY || blocks_held() != blocks)
                fail_msg("%s, allocation %lld: %s, %lld blocks more", call->name, (long long)n, ww_error_message(),
                         (long long)(blocks_held() - blocks));
            check_as_before(c, &before, call->name, (long)n);
        }
        snapshot_free(&before);
        ww_collection_destroy(c);
    }
    ww_device_close(device);
}

static void opening_a_group_survives_a_failure_of_every_allocation(void **state)
{
    (void)state;
    ww_device_close(open_group());
    const int64_t blocks = blocks_held();
    int64_t n = 1;
    for (; n < ATTEMPTS_MAX; n = fault_next(n)) {
        ww_device *device = NULL;
        fail_allocation_at(n);
        const ww_status status = ww_device_open("cpu+emulator:32+cpu", &device);
        fail_allocation_at(0);
        if (status == WW_OK) {
            ww_device_close(device);
            break;
        }
        assert_null(device);
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_int_equal(blocks_held(), blocks);
    }
    assert_true(n > 3);
    assert_int_equal(blocks_held(), blocks);
}

static void every_call_of_each_member_may_fail(void **state)
{
    (void)state;
    ww_device *device = open_group();
    warm_up(device);
    for (int32_t m = 0; m < 2; m++) {
        ww_device *member = group_of(device)->members[m].device;
        long failures = 0;
        for (const collection_call *call = collection_calls; call->name; call++) {
            ww_collection *c = collection_for_calls_of(device, WW_VECTOR_F32);
            snapshot before = snapshot_take(c);
            for (long n = 1; n < ATTEMPTS_MAX; n = fault_next(n)) {
                faulty_attach(member);
                faults = (fault_plan){.first = n, .count = 1, .after_work = n % 2};
                const ww_status status = call->call(c);
                faults = (fault_plan){0};
                faulty_detach(member);
                if (status == WW_OK)
                    break;
                failures++;
                if (status != WW_DRIVER_ERROR ||
                    (!strstr(call->name, "tensor") && !strstr(ww_error_message(), member->info.id)))
                    fail_msg("%s, call %ld of %s: %s", call->name, n, member->info.id, ww_error_message());
                check_as_before(c, &before, call->name, n);
            }
            snapshot_free(&before);
            ww_collection_destroy(c);
        }
        assert_true(failures > 20);
    }
    ww_device_close(device);
}

/* Errors that do not mean a lost device: the member continues. */
static void calls_of_a_members_driver_may_fail(void **state)
{
    (void)state;
    ww_device *device = open_group();
    warm_up(device);
    gpu_device *member = gpu_of(group_of(device)->members[1].device);
    const gpu_driver *driver = member->driver;
    long failures = 0;
    for (const collection_call *call = collection_calls; call->name; call++) {
        ww_collection *c = collection_for_calls_of(device, WW_VECTOR_F32);
        snapshot before = snapshot_take(c);
        for (int64_t n = 1; n < ATTEMPTS_MAX; n += DRIVER_STEP) {
            member->driver = &faulty_driver;
            faulty_arm(driver, n, EMULATED_INVALID_VALUE, NULL);
            const ww_status status = call->call(c);
            const char *victim = faulty_victim();
            faulty_arm(driver, 0, 0, NULL);
            member->driver = driver;
            if (!victim)
                break;
            failures += status != WW_OK;
            if (status == WW_OK) { /* the failing call only freed something: continue with the next calls */
                snapshot_free(&before);
                ww_collection_destroy(c);
                c = collection_for_calls_of(device, WW_VECTOR_F32);
                before = snapshot_take(c);
                continue;
            }
            if (!strstr(ww_error_message(), "emulator:32"))
                fail_msg("%s, driver call %lld (%s): %s", call->name, (long long)n, victim, ww_error_message());
            check_as_before(c, &before, call->name, (long)n);
        }
        snapshot_free(&before);
        ww_collection_destroy(c);
    }
    assert_true(failures > 20);
    ww_device_close(device);
}

/* A collection on two members. The first is lost, and the second has no room for all rows besides its own. */
static ww_collection *make_tight(ww_device **device)
{
    enum { WIDE = 256, MANY = 768 }; /* 0.75 MiB of rows and 0.2 of codes */
    emulated_set_memory((size_t)11 << 17);
    CHECK_OK(ww_device_open("emulator:32+emulator:64", device));
    (*device)->tuning.group_even = true;
    ww_collection_config config = ww_collection_config_default();
    config.name = "tight", config.dim = WIDE, config.metric = WW_DOT, config.keep_host_copy = 1;
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(*device, &config, &c));
    test_random random = {3};
    for (int64_t i = 0; i < 4; i++)
        collection_fill(c, &random, MANY / 4, WIDE, "t", i * MANY / 4);
    gpu_lose(gpu_of(group_of(*device)->members[0].device), "the test wants it");
    CHECK_OK(ww_device_drop(*device, "emulator:32"));
    return c;
}

/* If writing the lost rows again fails, segment by segment, the next attempt moves the rest. */
static void writing_lost_rows_again_may_fail_and_go_on(void **state)
{
    (void)state;
    long failures[2] = {0, 0};
    for (int kind = 0; kind < 2; kind++)
        for (long n = 1; n < ATTEMPTS_MAX; n = fault_next(n)) {
            ww_device *device = NULL;
            ww_collection *c = make_tight(&device);
            ww_device *member = group_of(device)->members[1].device;
            if (kind == 0) {
                fail_allocation_at(n);
            } else {
                faulty_attach(member);
                faults = (fault_plan){.first = n, .count = 1, .after_work = n % 2};
            }
            const ww_status status = ww_collection_move(c, device);
            fail_allocation_at(0);
            faults = (fault_plan){0};
            if (kind == 1)
                faulty_detach(member);
            failures[kind] += status != WW_OK;
            if (status != WW_OK && status != (kind == 0 ? WW_OUT_OF_MEMORY : WW_DRIVER_ERROR))
                fail_msg("kind %d, failure %ld: %s", kind, n, ww_error_message());
            CHECK_OK(ww_collection_move(c, device));
            emulated_set_memory(0);
            CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
            assert_int_equal(ww_collection_count(c), 768);
            ww_collection_destroy(c);
            ww_device_close(device);
            if (status == WW_OK && n > 40)
                break;
        }
    assert_true(failures[0] > 1 && failures[1] > 5);
}

/* A norm that changes in the memory of any member is found, and the row is named. */
static void damage_on_any_member_is_found(void **state)
{
    (void)state;
    ww_device *device = open_group();
    test_random random = {1};
    ww_collection *c = collection_make(device, 16, WW_DOT);
    collection_fill(c, &random, 256, 16, "d", 0);
    CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
    for (int64_t s = 0; s < c->store.segment_count; s++) {
        const segment *part = &c->store.segments[s];
        const buffer_range norm = {&part->norms, 5 * sizeof(float), sizeof(float)};
        float right = 0, wrong = 1e6f;
        ww_damage_report report = ww_damage_report_default();
        CHECK_OK(device->backend->copy_out(device, c->stream, &right, norm));
        CHECK_OK(device->backend->copy_in(device, c->stream, norm, &wrong));
        CHECK_OK(device->backend->stream_synchronize(device, c->stream));
        CHECK_FAILS(WW_DAMAGED, ww_collection_check(c, &report, NULL, NULL));
        assert_int_equal(report.first_row, part->first_row + 5);
        assert_int_equal(report.damage, WW_DAMAGE_NORM);
        CHECK_OK(device->backend->copy_in(device, c->stream, norm, &right));
        CHECK_OK(device->backend->stream_synchronize(device, c->stream));
        CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
    }
    assert_true(c->store.segment_count >= 2);
    ww_collection_destroy(c);
    ww_device_close(device);
}

/* Rows on the host: taking and giving back pinned memory, packing into it, gathering from it. */
static ww_status live_with_rows_on_host(ww_device *device)
{
    test_random random = {2};
    ww_collection *c = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.name = "far";
    config.dim = 9;
    config.type = WW_VECTOR_F16;
    config.rows = WW_ROWS_HOST;
    ww_status status = ww_collection_create(device, &config, &c);
    test_rows rows = test_rows_make(&random, 200, 9, "f", 0);
    static const char *const gone[] = {"f3", "f70"};
    int64_t found[5];
    float scores[5];
    ww_query search = ww_query_default();
    search.queries = rows.vectors;
    search.query_count = 1;
    search.dim = 9;
    search.k = 5;
    if (status == WW_OK)
        status = ww_collection_add(c, &rows.rows);
    if (status == WW_OK)
        status = ww_collection_search(c, &search, found, scores);
    if (status == WW_OK)
        status = ww_collection_remove(c, gone, 2);
    if (status == WW_OK)
        status = ww_collection_compact(c, NULL, NULL);
    ww_collection_destroy(c);
    test_rows_free(&rows);
    return status;
}

static void rows_on_the_host_survive_every_failure_of_the_driver(void **state)
{
    (void)state;
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("emulator:32", &device));
    CHECK_OK(live_with_rows_on_host(device));
    CHECK_OK(ww_device_trim(device));
    emulated_counts before, after;
    emulated_count(&before);
    gpu_device *gpu = gpu_of(device);
    const gpu_driver *driver = gpu->driver;
    long failures = 0;
    for (int64_t n = 1; n < ATTEMPTS_MAX; n += TEST_INSTRUMENTED ? 3 : 1) {
        gpu->driver = &faulty_driver;
        faulty_arm(driver, n, n % 2 ? EMULATED_INVALID_VALUE : EMULATED_OUT_OF_MEMORY, NULL);
        const ww_status status = live_with_rows_on_host(device);
        const char *victim = faulty_victim();
        faulty_arm(driver, 0, 0, NULL);
        gpu->driver = driver;
        if (!victim)
            break;
        failures += status != WW_OK;
        if (status != WW_OK && status != WW_DRIVER_ERROR && status != WW_OUT_OF_MEMORY)
            fail_msg("driver call %lld (%s): %s", (long long)n, victim, ww_error_message());
        CHECK_OK(ww_device_trim(device));
        emulated_count(&after);
        if (after.pinned != before.pinned)
            fail_msg("driver call %lld (%s): %lld pieces of pinned memory more", (long long)n, victim,
                     (long long)(after.pinned - before.pinned));
    }
    assert_true(failures > 10);
    ww_device_close(device);
}

static ww_collection *make_far(ww_device *device, ww_vector_type type)
{
    test_random random = {4};
    ww_collection *c = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.name = "far";
    config.dim = 40;
    config.type = type;
    config.rows = WW_ROWS_HOST;
    CHECK_OK(ww_collection_create(device, &config, &c));
    collection_fill(c, &random, 600, 40, "f", 0);
    collection_fill(c, &random, 400, 40, "f", 600);
    static const char *const gone[] = {"f7", "f650"};
    CHECK_OK(ww_collection_remove(c, gone, 2));
    return c;
}

/* Rows on the host outlive the member that searched them, both a lost GPU and a dropped CPU. */
static void rows_on_the_host_come_back_when_their_member_is_dropped(void **state)
{
    (void)state;
    static const struct {
        const char *group, *dropped;
        bool lost;
    } cases[] = {{"emulator:32+emulator:64", "emulator:32", true}, {"emulator:32+emulator:64", "emulator:64", false},
                 {"emulator:32+cpu", "emulator:32", true},         {"emulator:32+cpu", "cpu", false},
                 {"cpu+emulator:32+emulator:64", "cpu", false},    {"cpu+emulator:32+emulator:64", "emulator:64", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (ww_vector_type type = WW_VECTOR_F32; type <= WW_VECTOR_BF16; type++) {
            ww_device *device = NULL;
            CHECK_OK(ww_device_open(cases[i].group, &device));
            device->tuning.group_even = true;
            ww_collection *c = make_far(device, type);
            snapshot before = snapshot_take(c);
            for (int32_t m = 0; cases[i].lost && m < group_of(device)->count; m++)
                if (strcmp(group_of(device)->members[m].device->info.id, cases[i].dropped) == 0)
                    gpu_lose(gpu_of(group_of(device)->members[m].device), "the test wants it");
            CHECK_OK(ww_device_drop(device, cases[i].dropped));
            const ww_status status = ww_collection_move(c, device);
            if (status != WW_OK)
                fail_msg("%s without %s: %s", cases[i].group, cases[i].dropped, ww_error_message());
            snapshot after = snapshot_take(c);
            if (!snapshot_equal_but_figures(&before, &after))
                fail_msg("%s without %s: the collection has changed", cases[i].group, cases[i].dropped);
            CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
            snapshot_free(&before);
            snapshot_free(&after);
            ww_collection_destroy(c);
            ww_device_close(device);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_group_may_fail),
        cmocka_unit_test(opening_a_group_survives_a_failure_of_every_allocation),
        cmocka_unit_test(every_call_of_each_member_may_fail),
        cmocka_unit_test(calls_of_a_members_driver_may_fail),
        cmocka_unit_test(writing_lost_rows_again_may_fail_and_go_on),
        cmocka_unit_test(damage_on_any_member_is_found),
        cmocka_unit_test(rows_on_the_host_survive_every_failure_of_the_driver),
        cmocka_unit_test(rows_on_the_host_come_back_when_their_member_is_dropped),
    };
    return cmocka_run_group_tests_name("failures inside a group", tests, NULL, NULL);
}
