/* Threads that search a collection while a test changes where its rows are. Every result must equal the first one. */
#ifndef TESTS_THREADS_SEARCHING_H
#define TESTS_THREADS_SEARCHING_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "support/collections.h"

enum { DIM = 33, K = 5, SEARCHERS = 3 };

typedef struct searching {
    ww_collection *collection;
    ww_device *device; /* is described all the time, like the collection */
    float query[DIM];
    int64_t rows[K]; /* of the first answer */
    float scores[K];
    pthread_t threads[SEARCHERS];
    atomic_bool stop;
    atomic_int searches, wrong;
} searching;

static inline ww_status search(const searching *s, int64_t *rows, float *scores)
{
    ww_query asked = ww_query_default();
    asked.queries = s->query, asked.query_count = 1, asked.dim = DIM, asked.k = K;
    return ww_collection_search(s->collection, &asked, rows, scores);
}

static inline void *search_until_told(void *argument)
{
    searching *s = argument;
    while (!atomic_load(&s->stop)) {
        int64_t rows[K];
        float scores[K];
        ww_collection_info info = ww_collection_info_default();
        ww_device_info where = ww_device_info_default();
        const bool fine = search(s, rows, scores) == WW_OK && memcmp(rows, s->rows, sizeof rows) == 0 &&
                          memcmp(scores, s->scores, sizeof scores) == 0 &&
                          ww_collection_describe(s->collection, &info) == WW_OK &&
                          ww_device_describe(s->device, &where) == WW_OK;
        atomic_fetch_add(&s->searches, 1);
        atomic_fetch_add(&s->wrong, !fine);
    }
    return NULL;
}

/* Takes the first answer, to a query that `random` gives, and starts the threads. The collection and the device are set. */
static inline void searching_start(searching *s, test_random *random)
{
    random_normals(random, s->query, DIM);
    CHECK_OK(search(s, s->rows, s->scores));
    for (int i = 0; i < SEARCHERS; i++)
        assert_int_equal(pthread_create(&s->threads[i], NULL, search_until_told, s), 0);
}

/* Ends them once each may have had its turn, and fails if an answer was wrong. */
static inline void searching_end(searching *s)
{
    while (atomic_load(&s->searches) < SEARCHERS)
        sched_yield();
    atomic_store(&s->stop, true);
    for (int i = 0; i < SEARCHERS; i++)
        pthread_join(s->threads[i], NULL);
    assert_int_equal(atomic_load(&s->wrong), 0);
}

#endif
