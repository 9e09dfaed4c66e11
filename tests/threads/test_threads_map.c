/* Maps are made and updated while a writer works: each map is complete, finite and without duplicate rows; the last one has
 * every row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/devices.h"
#include "support/scene.h"

enum { DIM = 6, ROWS = 120, MAKERS = 2, STEPS = 3 };

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void check_map(scene *s, const ww_map *map)
{
    const int64_t count = ww_map_count(map);
    int64_t *handles = malloc((size_t)(count + 1) * sizeof *handles);
    memcpy(handles, ww_map_handles(map), (size_t)count * sizeof *handles);
    qsort(handles, (size_t)count, sizeof *handles, by_number);
    for (int64_t i = 1; i < count; i++)
        if (handles[i] == handles[i - 1])
            blame(s, "a row is on the map twice", (double)handles[i]);
    for (int64_t i = 0; i < 2 * count; i++)
        if (!isfinite(ww_map_points(map)[i]))
            blame(s, "a point is nowhere", (double)i);
    free(handles);
}

static void *maker(void *user)
{
    scene *s = user;
    for (int64_t n = 0; !atomic_load(&s->done); n++) {
        ww_map_config config = ww_map_config_default();
        ww_map *map = NULL;
        config.steps = STEPS;
        config.remake = n % 3 == 0;
        if (ww_collection_map(s->collection, &config, &map) != WW_OK)
            blame(s, "map", (double)n);
        else
            check_map(s, map);
        ww_map_destroy(map);
        atomic_fetch_add(&s->answers, 1);
    }
    return NULL;
}

/* Rows are replaced, removed, added again and numbered anew; now and then all of them go. */
static void *writer(void *user)
{
    scene *s = user;
    test_random random = {3};
    for (int round = 0; round < s->rounds; round++) {
        test_rows rows = test_rows_make(&random, 10, DIM, "row", (int64_t)random_below(&random, ROWS));
        ww_status status = ww_collection_discard(s->collection, rows.rows.ids, 5, NULL);
        if (status == WW_OK)
            status = ww_collection_upsert(s->collection, &rows.rows);
        if (status == WW_OK && round % 7 == 0)
            status = ww_collection_compact(s->collection, NULL, NULL);
        if (status == WW_OK && round % 31 == 30)
            status = ww_collection_clear(s->collection);
        if (status == WW_OK && round % 13 == 0)
            status = ww_collection_drop_map(s->collection);
        if (status != WW_OK)
            blame(s, "write", round);
        test_rows_free(&rows);
        do /* a map takes long on a busy machine, so the makers are waited for */
            nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
        while (atomic_load(&s->answers) <= round / 10);
    }
    ww_map *last = NULL;
    if (ww_collection_map(s->collection, NULL, &last) != WW_OK || ww_map_count(last) != ww_collection_count(s->collection))
        blame(s, "the last map", (double)ww_map_count(last));
    ww_map_destroy(last);
    atomic_store(&s->done, true);
    return NULL;
}

static void maps_made_while_others_write_are_complete(void **state)
{
    test_random random = {9};
    scene s = {.collection = collection_make(*state, DIM, WW_L2), .rounds = device_is_slow(*state) ? 8 : 150};
    collection_fill(s.collection, &random, ROWS, DIM, "row", 0);
    scene_play(&s, MAKERS, maker, writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_made_while_others_write_are_complete),
    };
    return RUN_ON_EVERY_DEVICE("maps and threads", tests);
}
