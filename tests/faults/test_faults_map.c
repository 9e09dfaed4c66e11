/* Maps when memory or the driver fails, at every allocation and call in turn: a failed call leaves the kept map and the rows as
 * they were, nothing leaks, and the call can be made again. */
#include <string.h>

#include "base/memory.h"
#include "gpu/backend.h"
#include "gpu/driver/emulated/emulated.h"
#include "gpu/driver/emulated/parts.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/fault_counts.h"
#include "support/faulty_driver.h"

enum { CALLS_MAX = 5000, DIM = 20, ROWS = 90, STEPS = 10 };

static ww_status map_with(ww_collection *c, int64_t seed)
{
    ww_map_config config = ww_map_config_default();
    ww_map *map = NULL;
    config.steps = STEPS;
    config.seed = seed;
    const ww_status status = ww_collection_map(c, &config, &map);
    ww_map_destroy(map);
    return status;
}

static ww_status make_again(ww_collection *c)
{
    return map_with(c, 5);
}

static ww_status grow(ww_collection *c)
{
    return map_with(c, -1);
}

static ww_status drop(ww_collection *c)
{
    return ww_collection_drop_map(c);
}

typedef ww_status (*operation)(ww_collection *collection);
static const operation operations[] = {make_again, grow, drop};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* With a map, a row that went since and one that came. */
static ww_collection *make(ww_device *device)
{
    test_random random = {8};
    const char *removed = "row5";
    ww_collection *c = collection_make(device, DIM, WW_COSINE);
    collection_fill(c, &random, ROWS, DIM, "row", 0);
    CHECK_OK(map_with(c, 0));
    CHECK_OK(ww_collection_remove(c, &removed, 1));
    collection_fill(c, &random, 1, DIM, "new", 0);
    CHECK_OK(ww_collection_compact(c, NULL, NULL)); /* so that vectors are compared */
    return c;
}

/* Is the kept map the one that there was? Growing it gives the same then. */
static void check_kept(ww_collection *c)
{
    ww_device *cpu = NULL;
    ww_map *maps[2] = {NULL, NULL};
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_collection *untouched = make(cpu);
    CHECK_OK(ww_collection_map(c, NULL, &maps[0]));
    CHECK_OK(ww_collection_map(untouched, NULL, &maps[1]));
    assert_int_equal(ww_map_count(maps[0]), ROWS);
    assert_int_equal(ww_map_count(maps[1]), ROWS);
    assert_memory_equal(ww_map_points(maps[0]), ww_map_points(maps[1]), ROWS * 2 * sizeof(float));
    ww_map_destroy(maps[0]);
    ww_map_destroy(maps[1]);
    ww_collection_destroy(untouched);
    ww_device_close(cpu);
}

/* Fails the n-th allocation of the operation; true if there was none to fail. */
static bool fail_allocation(ww_device *device, operation work, int64_t n)
{
    ww_collection *c = make(device);
    snapshot before = snapshot_take(c);
    const int64_t blocks = memory_blocks_held();
    memory_fail_at(n);
    const ww_status status = work(c);
    memory_fail_at(0);
    if (status == WW_OK) {
        snapshot_free(&before);
    } else {
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_int_equal(memory_blocks_held(), blocks);
        check_unchanged(c, &before);
        check_kept(c);
        CHECK_OK(work(c));
    }
    ww_collection_destroy(c);
    return status == WW_OK;
}

static void every_operation_survives_a_failure_of_every_allocation(void **state)
{
    for (int i = 0; i < OPERATIONS; i++) {
        int64_t n = 1;
        while (n < CALLS_MAX && !fail_allocation(*state, operations[i], n))
            n = device_is_slow(*state) && !test_is_long() ? n * 2 : fault_next(n);
        fault_count("allocation", (long)n - 1);
        assert_true(n > 1 || operations[i] == drop);
    }
}

/* Fails the n-th call of the operation; true if there was such a call. */
static bool fail_call(operation work, int64_t n, int number)
{
    ww_device *device = NULL;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, (int32_t)(n % 2), &device));
    ww_collection *c = make(device);
    snapshot before = snapshot_take(c);
    faulty_arm(&emulated_driver, n, number, NULL);
    const ww_status status = work(c);
    const bool failed = faulty_victim() != NULL;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    if (status == WW_OK) {
        snapshot_free(&before);
    } else {
        check_unchanged(c, &before);
        check_kept(c);
        CHECK_OK(work(c));
    }
    ww_collection_destroy(c);
    ww_device_close(device);
    return failed;
}

static void every_operation_survives_a_failure_of_every_driver_call(void **state)
{
    (void)state;
    static const int numbers[] = {EMULATED_OUT_OF_MEMORY, EMULATED_INVALID_VALUE};
    for (int i = 0; i < OPERATIONS; i++) {
        int64_t n = 1;
        while (n < CALLS_MAX && fail_call(operations[i], n, numbers[n % 2]))
            n = test_is_long() ? n + 1 : n * 3 + 1;
        fault_count("driver call", (long)n - 1);
        assert_true((n > 2 || operations[i] == drop) && n < CALLS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest memory[] = {
        cmocka_unit_test(every_operation_survives_a_failure_of_every_allocation),
    };
    const struct CMUnitTest driver[] = {
        cmocka_unit_test(every_operation_survives_a_failure_of_every_driver_call),
    };
    const int failures = cmocka_run_group_tests_name("maps and the driver", driver, NULL, NULL);
    return failures + RUN_ON_EVERY_DEVICE("maps and memory", memory);
}
