/* Searching from several threads while the collection moves to and fro: every answer is the same. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

enum { DIM = 33, ROWS = 300, K = 5, SEARCHERS = 3, MOVES = 20 };

typedef struct searching {
    ww_collection *collection;
    float query[DIM];
    int64_t rows[K];
    float scores[K];
    atomic_bool stop;
    atomic_int searches;
    atomic_int wrong;
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
        ww_collection_info info = ww_collection_info_default();
        const bool fine = search(s, rows, scores) == WW_OK && memcmp(rows, s->rows, sizeof rows) == 0 &&
                          memcmp(scores, s->scores, sizeof scores) == 0 &&
                          ww_collection_describe(s->collection, &info) == WW_OK;
        atomic_fetch_add(&s->searches, 1);
        atomic_fetch_add(&s->wrong, !fine);
    }
    return NULL;
}

static void searches_while_it_moves_are_all_right(void **state)
{
    static searching s;
    memset(&s, 0, sizeof s);
    test_random random = {3};
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    s.collection = collection_make(*state, DIM, WW_L2);
    collection_fill(s.collection, &random, ROWS, DIM, "a", 0);
    random_normals(&random, s.query, DIM);
    CHECK_OK(search(&s, s.rows, s.scores));
    pthread_t threads[SEARCHERS];
    for (int i = 0; i < SEARCHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, search_until_told, &s), 0);
    for (int i = 0; i < MOVES; i++)
        CHECK_OK(ww_collection_move(s.collection, i % 2 ? *state : cpu));
    while (atomic_load(&s.searches) < SEARCHERS)
        sched_yield();
    atomic_store(&s.stop, true);
    for (int i = 0; i < SEARCHERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s.wrong), 0);
    ww_collection_destroy(s.collection);
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(searches_while_it_moves_are_all_right)};
    return RUN_ON_EVERY_DEVICE("moving among searches", tests);
}
