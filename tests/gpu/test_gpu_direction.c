/* Consecutive searches of one query on a GPU read the rows alternately forward and backward, with and without the screen, which
 * the arguments of kernels show. The answer is the same in both directions. */
#include <string.h>

#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "kernels/screen/screen_args.h"
#include "kernels/search/search_args.h"
#include "support/collections.h"
#include "support/pretend/pretend.h"

enum { DIM = 20, ROWS = 3000, BEST = 5, SEARCHES = 6 };

static gpu_driver watching; /* the emulator's, except for its launches */
static struct {
    uint32_t plain[SEARCHES], screened[2 * SEARCHES]; /* backward, of each launch: not 0 if it was so */
    int32_t plain_count, screened_count;
} seen;

static int watch_launch(driver_function function, driver_stream stream, const driver_launch *launch)
{
    if (launch->arguments_bytes == sizeof(search_one_args) && seen.plain_count < SEARCHES)
        seen.plain[seen.plain_count++] = ((const search_one_args *)launch->arguments)->backward;
    if (launch->arguments_bytes == sizeof(screen_scan_args) && seen.screened_count < 2 * SEARCHES)
        seen.screened[seen.screened_count++] = ((const screen_scan_args *)launch->arguments)->backward;
    return emulated_driver.launch(function, stream, launch);
}

/* Searches for rows at both ends and in the middle, each in both directions: the row is found, and both answers are equal. */
static void search_again_and_again(int32_t index, ww_screen screen)
{
    ww_device *device = NULL;
    test_random random = {3};
    float query[DIM], scores[2][BEST];
    int64_t rows[2][BEST];
    memset(&seen, 0, sizeof seen);
    CHECK_OK(gpu_open(&backend_emulator, &watching, index, &device));
    pretend_screen(device, true);
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.metric = WW_L2;
    config.screen = screen;
    ww_collection *collection = NULL;
    CHECK_OK(ww_collection_create(device, &config, &collection));
    collection_fill(collection, &random, ROWS, DIM, "row", 0);
    ww_query asked = ww_query_default();
    asked.queries = query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = BEST;
    for (int i = 0; i < SEARCHES; i++) {
        const int64_t wanted = i / 2 * (int64_t)(ROWS - 1) / 2;
        CHECK_OK(ww_collection_vector(collection, wanted, query));
        CHECK_OK(ww_collection_search(collection, &asked, rows[i % 2], scores[i % 2]));
        assert_int_equal(rows[i % 2][0], wanted);
        if (i % 2 == 1) {
            assert_memory_equal(rows[1], rows[0], sizeof rows[0]);
            assert_memory_equal(scores[1], scores[0], sizeof scores[0]);
        }
    }
    ww_collection_destroy(collection);
    ww_device_close(device);
}

static void plain_searches_take_turns(void **state)
{
    (void)state;
    for (int32_t index = 0; index < 2; index++) {
        search_again_and_again(index, WW_SCREEN_NONE);
        assert_int_equal(seen.plain_count, SEARCHES);
        for (int i = 1; i < SEARCHES; i++)
            assert_int_equal(seen.plain[i] != 0, seen.plain[i - 1] == 0);
    }
}

static void screened_searches_take_turns(void **state)
{
    (void)state;
    for (int32_t index = 0; index < 2; index++) {
        search_again_and_again(index, WW_SCREEN_INT8);
        assert_int_equal(seen.screened_count, 2 * SEARCHES); /* a sample each time, then all rows, the same way */
        for (int i = 0; i < 2 * SEARCHES; i++)
            assert_int_equal(seen.screened[i] != 0, (seen.screened[0] != 0) ^ (i / 2 % 2));
    }
}

int main(void)
{
    watching = emulated_driver;
    watching.launch = watch_launch;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_searches_take_turns),
        cmocka_unit_test(screened_searches_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
