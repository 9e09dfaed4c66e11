/* One query that reads high planes when memory or the driver fails, at every allocation and call in turn: a failed search
 * leaves the collection unchanged, leaks nothing, and can be repeated. Without memory for planes it reads codes. */
#include "support/collections.h"
#include "support/devices.h"
#include "support/faults/collection_faults.h"
#include "support/memory.h"
#include "support/pretend/pretend.h"

enum { DIM = 130, ROWS = 300, K = 5 };

static ww_status search_for_one(ww_collection *c)
{
    float query[DIM];
    int64_t rows[K];
    float scores[K];
    ww_query asked = ww_query_default();
    random_normals(&(test_random){7}, query, DIM);
    asked.queries = query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = K;
    return ww_collection_search(c, &asked, rows, scores);
}

static ww_device *device_of_collection; /* of the last one that was made */

static ww_collection *make(ww_device *device)
{
    device_of_collection = device;
    pretend_screen(device, true);
    ww_collection *c = collection_make(device, DIM, WW_L2);
    collection_fill(c, &(test_random){6}, ROWS, DIM, "row", 0);
    return c;
}

static ww_collection *make_and_search(ww_device *device)
{
    static const char *const removed[] = {"row3", "row70", "row200"};
    ww_collection *c = make(device);
    CHECK_OK(search_for_one(c)); /* makes the planes */
    CHECK_OK(ww_collection_remove(c, removed, 3));
    return c;
}

static ww_status replace_some(ww_collection *c)
{
    test_rows rows = test_rows_make(&(test_random){5}, 100, DIM, "row", ROWS - 50);
    const ww_status status = ww_collection_upsert(c, &rows.rows);
    test_rows_free(&rows);
    return status;
}

static ww_status compact(ww_collection *c)
{
    return ww_collection_compact(c, NULL, NULL);
}

/* A search finds the right rows with and without planes. */
static void check_answers(ww_collection *c)
{
    float query[DIM];
    random_normals(&(test_random){7}, query, DIM);
    pretend_tuning(device_of_collection)->planes = TUNING_NEVER;
    check_search(c, query, 1, DIM, K, NULL, 0);
    pretend_tuning(device_of_collection)->planes = TUNING_ALWAYS;
    check_search(c, query, 1, DIM, K, NULL, 0);
}

static const faulty_operation operations[] = {{search_for_one, false}, {replace_some, false}, {compact, false}, {NULL, false}};

static const faulty_operation first_search[] = {{search_for_one, false}, {NULL, false}};

static void every_operation_survives_a_failure_of_every_allocation(void **state)
{
    fail_every_allocation(&(collection_faults){operations, make_and_search, check_answers, check_answers}, *state);
}

/* The first planes of a device, at every allocation. */
static void planes_are_made_whole_or_not_at_all(void **state)
{
    (void)state;
    ww_status status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status != WW_OK; n++) {
        const int64_t blocks = blocks_held();
        ww_device *device = NULL;
        CHECK_OK(ww_device_open("emulator:32", &device));
        ww_collection *c = make(device);
        fail_allocation_at(n);
        status = search_for_one(c);
        fail_allocation_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        check_answers(c);
        ww_collection_destroy(c);
        ww_device_close(device);
        assert_int_equal(blocks_held(), blocks);
        assert_true(status != WW_OK || n > 4);
    }
}

static void every_operation_survives_a_failure_of_every_driver_call(void **state)
{
    (void)state;
    fail_every_driver_call(&(collection_faults){first_search, make, check_answers, check_answers});
    fail_every_driver_call(&(collection_faults){operations, make_and_search, check_answers, check_answers});
}

int main(void)
{
    const struct CMUnitTest memory[] = {
        cmocka_unit_test(every_operation_survives_a_failure_of_every_allocation),
    };
    const struct CMUnitTest driver[] = {
        cmocka_unit_test(planes_are_made_whole_or_not_at_all),
        cmocka_unit_test(every_operation_survives_a_failure_of_every_driver_call),
    };
    const int failures = cmocka_run_group_tests_name("planes and the driver", driver, NULL, NULL);
    return failures + RUN_ON_EVERY_DEVICE("planes and memory", memory);
}
