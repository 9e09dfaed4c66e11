/* How a search of one query waits for its answer, and in which direction it reads the rows.
 *
 * The emulator does nothing before the host waits. To imitate a GPU that is faster than the host, this test wraps its driver so
 * that launches are waited for at once; to imitate one that hangs for a while, it wraps it so that the driver claims that there
 * is nothing to wait for.
 */
#include <stdatomic.h>
#include <string.h>

#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "gpu/open.h"
#include "support/check.h"
#include "support/collections.h"
#include "support/pretend/pretend.h"
#include "vectors/collection.h"

enum { DIM = 24, BATCH = 150, BATCHES = 5, K = 7, SEARCHES = 4 };

static atomic_int waits;

static int counting_synchronize(driver_stream stream)
{
    atomic_fetch_add(&waits, 1);
    return emulated_driver.stream_synchronize(stream);
}

static int eager_launch(driver_function function, driver_stream stream, const driver_launch *launch)
{
    const int number = emulated_driver.launch(function, stream, launch);
    return number != 0 ? number : emulated_driver.stream_synchronize(stream);
}

/* The emulator's table, claiming that kernels run without being waited for, which is true if it is `eager`. */
static gpu_driver unwaited(bool eager)
{
    gpu_driver driver = emulated_driver;
    driver.kernels_run_unwaited = true;
    driver.stream_synchronize = counting_synchronize;
    if (eager)
        driver.launch = eager_launch;
    return driver;
}

/* In several segments; the second has a removed row. */
static ww_collection *make_and_fill(ww_device *device, bool screen)
{
    test_random random = {31};
    ww_collection_config config = ww_collection_config_default();
    ww_collection *collection = NULL;
    config.name = "await";
    config.dim = DIM;
    config.metric = WW_L2;
    config.screen = screen ? WW_SCREEN_INT8 : WW_SCREEN_NONE;
    CHECK_OK(ww_collection_create(device, &config, &collection));
    for (int32_t i = 0; i < BATCHES; i++)
        collection_fill(collection, &random, BATCH, DIM, "row", (int64_t)i * BATCH);
    const char *removed = "row200";
    CHECK_OK(ww_collection_remove(collection, &removed, 1));
    assert_true(store_segments_used(&collection->store) > 2);
    return collection;
}

typedef struct found {
    int64_t rows[K];
    float scores[K];
} found;

static found search(ww_collection *collection, uint64_t seed)
{
    float query[DIM];
    found best;
    test_random random = {seed};
    ww_query asked = ww_query_default();
    random_normals(&random, query, DIM);
    asked.queries = query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = K;
    CHECK_OK(ww_collection_search(collection, &asked, best.rows, best.scores));
    return best;
}

/* Searches several times, in both directions, and compares with the CPU. Counts in `waits` the waits of all searches except the
 * first, which makes what searches need. */
static void check_searches(ww_collection *collection, ww_collection *truth)
{
    for (uint64_t seed = 1; seed <= SEARCHES; seed++) {
        const found expected = search(truth, seed), best = search(collection, seed);
        assert_memory_equal(best.rows, expected.rows, sizeof best.rows);
        assert_memory_equal(best.scores, expected.scores, sizeof best.scores);
        if (seed == 1)
            atomic_store(&waits, 0);
    }
}

/* Returns the waits of SEARCHES - 1 searches. A stream that was not waited for then is when the device is closed. */
static int32_t waits_of(bool eager, bool screen, int32_t index)
{
    const gpu_driver driver = unwaited(eager);
    ww_device *device = NULL, *cpu = NULL;
    CHECK_OK(gpu_open(&backend_emulator, &driver, index, &device));
    pretend_screen(device, true);
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_collection *collection = make_and_fill(device, screen), *truth = make_and_fill(cpu, false);
    check_searches(collection, truth);
    const int32_t waited = atomic_exchange(&waits, 0);
    ww_collection_destroy(collection);
    ww_collection_destroy(truth);
    ww_device_close(device);
    ww_device_close(cpu);
    assert_int_equal(atomic_load(&waits) > 0, eager);
    return waited;
}

static void an_answer_that_is_there_is_not_waited_for(void **state)
{
    (void)state;
    for (int32_t index = 0; index < 2; index++)
        for (int32_t screen = 0; screen < 2; screen++)
            assert_int_equal(waits_of(true, screen != 0, index), 0);
}

static void an_answer_that_does_not_come_is_waited_for(void **state)
{
    (void)state;
    for (int32_t index = 0; index < 2; index++)
        for (int32_t screen = 0; screen < 2; screen++)
            assert_int_equal(waits_of(false, screen != 0, index), SEARCHES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_is_there_is_not_waited_for),
        cmocka_unit_test(an_answer_that_does_not_come_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
