/* Searches for one query by high planes on several threads, while rows are added and the device gives back all memory that it
 * can: every answer is that of a search without planes. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

enum { DIM = 128, ROWS = 400, K = 5, SEARCHERS = 3, SEARCHES = 40, ADDS = 8 };

typedef struct work {
    ww_device *device;
    ww_collection *still, *growing;
    float query[DIM];
    int64_t rows[K]; /* what is found in the one that does not change */
    float scores[K];
    atomic_int wrong;
} work;

static ww_status search(ww_collection *c, const float *query, int64_t rows[K], float scores[K])
{
    ww_query asked = ww_query_default();
    asked.queries = query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = K;
    return ww_collection_search(c, &asked, rows, scores);
}

static void *search_often(void *given)
{
    work *w = given;
    for (int i = 0; i < SEARCHES; i++) {
        int64_t rows[K];
        float scores[K];
        if (search(w->growing, w->query, rows, scores) != WW_OK || search(w->still, w->query, rows, scores) != WW_OK ||
            memcmp(rows, w->rows, sizeof rows) != 0 || memcmp((void *)scores, (void *)w->scores, sizeof scores) != 0)
            atomic_fetch_add(&w->wrong, 1);
    }
    return NULL;
}

static void *add_often(void *given)
{
    work *w = given;
    for (int i = 1; i <= ADDS; i++)
        collection_fill(w->growing, &(test_random){(uint64_t)i}, 100, DIM, "row", (int64_t)i * 1000);
    return NULL;
}

static void *trim_often(void *given)
{
    work *w = given;
    for (int i = 0; i < SEARCHES; i++)
        if (ww_device_trim(w->device) != WW_OK)
            atomic_fetch_add(&w->wrong, 1);
    return NULL;
}

static void searches_by_planes_agree_while_rows_are_added_and_memory_is_freed(void **state)
{
    work w = {.device = *state};
    pthread_t threads[SEARCHERS + 2];
    pretend_screen(w.device, true);
    w.still = collection_make(w.device, DIM, WW_L2);
    w.growing = collection_make(w.device, DIM, WW_COSINE);
    collection_fill(w.still, &(test_random){90}, ROWS, DIM, "row", 0);
    collection_fill(w.growing, &(test_random){91}, ROWS, DIM, "row", 0);
    random_normals(&(test_random){92}, w.query, DIM);
    pretend_tuning(w.device)->planes = TUNING_NEVER;
    CHECK_OK(search(w.still, w.query, w.rows, w.scores));
    pretend_tuning(w.device)->planes = TUNING_ALWAYS;
    for (int i = 0; i < SEARCHERS + 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < SEARCHERS    ? search_often
                                        : i == SEARCHERS ? add_often
                                                         : trim_often,
                                        &w),
                         0);
    for (int i = 0; i < SEARCHERS + 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&w.wrong), 0);
    check_search(w.growing, w.query, 1, DIM, K, NULL, 0);
    ww_collection_destroy(w.growing);
    ww_collection_destroy(w.still);
    pretend_screen(w.device, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches_by_planes_agree_while_rows_are_added_and_memory_is_freed),
    };
    return RUN_ON_EVERY_DEVICE("planes on several threads", tests);
}
