/* Queries beside a writer that keeps removing and compacting: every id, payload and vector belongs to the row found.
 *
 * A row's vector has its number in one element, so the score identifies the row, and the id and the payload must match it.
 * Looking up ids after a search would return those of rows that took over the number meanwhile.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/devices.h"
#include "support/scene.h"

enum { DIM = 3, ROWS = 200, REMOVED = 20, K = 10, READERS = 3 };

static ww_status add_row(ww_collection *collection, int number)
{
    char id[32], payload[32];
    const char *ids[] = {id}, *payloads[] = {payload};
    const float vector[DIM] = {(float)number, 0, 0};
    snprintf(id, sizeof id, "row%d", number);
    snprintf(payload, sizeof payload, "%d", number);
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = DIM;
    rows.vectors = vector;
    rows.ids = ids;
    rows.payloads = payloads;
    return ww_collection_add(collection, &rows);
}

static void check_hit(scene *s, const ww_results *results, int64_t query, int64_t hit)
{
    char id[32];
    const int number = (int)ww_results_scores(results, query)[hit];
    snprintf(id, sizeof id, "row%d", number);
    if (strcmp(ww_results_id(results, query, hit), id) != 0)
        blame(s, "another row's id", number);
    if (strcmp(ww_results_payload(results, query, hit), id + strlen("row")) != 0)
        blame(s, "another row's payload", number);
    if (ww_results_vector(results, query, hit)[0] != (float)number)
        blame(s, "another row's vector", number);
}

static void *reader(void *user)
{
    scene *s = user;
    const float queries[2 * DIM] = {1.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f};
    ww_query query = ww_query_default();
    query.queries = queries;
    query.query_count = 2;
    query.dim = DIM;
    query.k = K;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    while (!atomic_load(&s->done)) {
        ww_results *results = NULL;
        if (ww_collection_query(s->collection, &query, &results) != WW_OK)
            blame(s, "query", 0);
        for (int64_t q = 0; q < ww_results_query_count(results); q++)
            for (int64_t i = 0; i < ww_results_count(results, q); i++)
                check_hit(s, results, q, i);
        ww_results_destroy(results);
        atomic_fetch_add(&s->answers, 1);
    }
    return NULL;
}

/* Rows go from the front and come back at the end, so that compact gives every row another number. */
static void *writer(void *user)
{
    scene *s = user;
    for (int round = 0; round < s->rounds; round++) {
        for (int i = 0; i < REMOVED; i++) {
            char id[32];
            const char *ids[] = {id};
            const int number = (round * REMOVED + i) % ROWS;
            snprintf(id, sizeof id, "row%d", number);
            if (ww_collection_remove(s->collection, ids, 1) != WW_OK || add_row(s->collection, number) != WW_OK)
                blame(s, "write", number);
        }
        if (ww_collection_compact(s->collection, NULL, NULL) != WW_OK)
            blame(s, "compact", round);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    atomic_store(&s->done, true);
    return NULL;
}

static void every_id_is_that_of_the_row_that_was_found(void **state)
{
    scene s = {.collection = collection_make(*state, DIM, WW_DOT), .rounds = device_is_slow(*state) ? 5 : 200};
    for (int i = 0; i < ROWS; i++)
        CHECK_OK(add_row(s.collection, i));
    scene_play(&s, READERS, reader, writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_id_is_that_of_the_row_that_was_found),
    };
    return RUN_ON_EVERY_DEVICE("queries and threads", tests);
}
