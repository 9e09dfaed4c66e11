/* Searches of a group from several threads, while rows are added, moved among the members, and a member is dropped: every
 * answer is that of the rows that were there all the time. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "device/group/group.h"
#include "support/collections.h"

enum { DIM = 33, ROWS = 400, K = 5, SEARCHERS = 3, MOVES = 8 };

typedef struct searching {
    ww_collection *collection;
    ww_device *device;
    float query[DIM];
    int64_t rows[K];
    float scores[K];
    atomic_bool stop;
    atomic_int searches, wrong;
} searching;

static ww_status search(const searching *s, int64_t *rows, float *scores)
{
    ww_query asked = ww_query_default();
    asked.queries = s->query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = K;
    return ww_collection_search(s->collection, &asked, rows, scores);
}

static void *search_until_told(void *argument)
{
    searching *s = argument;
    while (!atomic_load(&s->stop)) {
        int64_t rows[K];
        float scores[K];
        ww_device_info info = ww_device_info_default();
        const bool fine = search(s, rows, scores) == WW_OK && memcmp(rows, s->rows, sizeof rows) == 0 &&
                          memcmp(scores, s->scores, sizeof scores) == 0 && ww_device_describe(s->device, &info) == WW_OK;
        atomic_fetch_add(&s->searches, 1);
        atomic_fetch_add(&s->wrong, !fine);
    }
    return NULL;
}

/* Far from the query: they are never among the nearest. */
static void add_far(ww_collection *c, int64_t number)
{
    float far[DIM];
    char text[32];
    const char *id = text;
    for (int32_t d = 0; d < DIM; d++)
        far[d] = 1000;
    snprintf(text, sizeof text, "far%lld", (long long)number);
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = DIM;
    rows.vectors = far;
    rows.ids = &id;
    CHECK_OK(ww_collection_add(c, &rows));
}

static void searches_while_a_group_changes_are_all_right(void **state)
{
    (void)state;
    static searching s;
    test_random random = {3};
    CHECK_OK(ww_device_open("cpu+emulator:32+cpu", &s.device));
    s.device->tuning.group_even = true;
    ww_collection_config config = ww_collection_config_default();
    config.name = "busy";
    config.dim = DIM;
    config.metric = WW_L2;
    config.keep_host_copy = 1;
    CHECK_OK(ww_collection_create(s.device, &config, &s.collection));
    collection_fill(s.collection, &random, ROWS, DIM, "a", 0);
    random_normals(&random, s.query, DIM);
    CHECK_OK(search(&s, s.rows, s.scores));
    pthread_t threads[SEARCHERS];
    for (int i = 0; i < SEARCHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, search_until_told, &s), 0);
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int i = 0; i < MOVES; i++) {
        add_far(s.collection, i);
        CHECK_OK(ww_collection_move(s.collection, i % 2 ? s.device : cpu));
    }
    while (atomic_load(&s.searches) < 2 * SEARCHERS)
        sched_yield();
    atomic_store(&s.stop, true);
    for (int i = 0; i < SEARCHERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s.wrong), 0);
    CHECK_OK(ww_device_drop(s.device, "emulator:32"));
    CHECK_OK(ww_collection_move(s.collection, s.device));
    int64_t rows[K];
    float scores[K];
    CHECK_OK(search(&s, rows, scores));
    assert_memory_equal(rows, s.rows, sizeof rows);
    ww_collection_destroy(s.collection);
    ww_device_close(s.device);
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(searches_while_a_group_changes_are_all_right)};
    return cmocka_run_group_tests_name("a group among threads", tests, NULL, NULL);
}
