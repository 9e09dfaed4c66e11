/* Maps when memory or the driver fails, at every allocation and call in turn: a failed call leaves the kept map and the rows as
 * they were, nothing leaks, and the call can be made again. */
#include "support/collections.h"
#include "support/devices.h"
#include "support/faults/collection_faults.h"

enum { DIM = 20, ROWS = 90, STEPS = 10 };

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

/* With a map, a row that was removed since, and a new one. */
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

static const faulty_operation operations[] = {{make_again, false}, {grow, false}, {drop, true}, {NULL, false}};
static const collection_faults faults = {.operations = operations, .make = make, .check_unchanged = check_kept};

static void every_operation_survives_a_failure_of_every_allocation(void **state)
{
    fail_every_allocation(&faults, *state);
}

static void every_operation_survives_a_failure_of_every_driver_call(void **state)
{
    (void)state;
    fail_every_driver_call(&faults);
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
