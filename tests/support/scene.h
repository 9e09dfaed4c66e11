/* Threads that read a collection while another writes to it. Failures are counted and reported once. */
#ifndef TESTS_SUPPORT_SCENE_H
#define TESTS_SUPPORT_SCENE_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/collections.h"

enum { SCENE_READERS_MAX = 8 };

typedef struct scene {
    ww_collection *collection;
    atomic_bool done; /* set by the writer when it ends; readers end then */
    atomic_int faults;
    atomic_int answers; /* number of answers that readers have received */
    int rounds;         /* number of writes */
} scene;

static inline void blame(scene *s, const char *what, double number)
{
    if (atomic_fetch_add(&s->faults, 1) == 0)
        printf("%s (%g): %s\n", what, number, ww_error_message());
}

/* Runs them to the end: no fault, readers were not kept out, and the collection is destroyed. */
static inline void scene_play(scene *s, int readers, void *(*reader)(void *), void *(*writer)(void *))
{
    pthread_t threads[SCENE_READERS_MAX + 1];
    assert_true(readers <= SCENE_READERS_MAX);
    for (int i = 0; i < readers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, s), 0);
    assert_int_equal(pthread_create(&threads[readers], NULL, writer, s), 0);
    for (int i = 0; i <= readers; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s->faults), 0);
    assert_true(atomic_load(&s->answers) > s->rounds / 10);
    ww_collection_destroy(s->collection);
}

#endif
