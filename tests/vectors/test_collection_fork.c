/* A child of fork() and its parent's collection: every call is refused at once, whatever the parent's threads were doing.
 *
 * One of them writes all the time and others search, so in most children the lock is held by a thread that does not exist
 * there.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"
#include "support/process.h"

enum { FORKS = 12, SECONDS = 20, DIM = 3, ROWS = 100, READERS = 2 };

/* What the parent has, for the child's function, which takes no argument. */
static ww_collection *collection;
static ww_device *device;
static ww_results *results;

static ww_query query_of(const float *vector)
{
    ww_query query = ww_query_default();
    query.queries = vector;
    query.query_count = 1;
    query.dim = DIM;
    query.k = 1;
    query.fetch = WW_FETCH_IDS;
    return query;
}

static ww_status add_rows(ww_collection *c, const char *id)
{
    const float vector[DIM] = {1, 2, 3};
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = DIM;
    rows.vectors = vector;
    rows.ids = &id;
    return ww_collection_upsert(c, &rows);
}

#define REFUSED(call) EXPECT((call) == WW_OTHER_PROCESS && strstr(ww_error_message(), "opened in another process") != NULL)

static void refuse_writes(void)
{
    const char *id = "row0", *payload = "[1]";
    const float vector[DIM] = {1, 2, 3};
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = DIM;
    rows.vectors = vector;
    REFUSED(ww_collection_add(collection, &rows));
    REFUSED(ww_collection_upsert(collection, &rows));
    REFUSED(ww_collection_remove(collection, &id, 1));
    REFUSED(ww_collection_discard(collection, &id, 1, NULL));
    REFUSED(ww_collection_set_payloads(collection, &id, &payload, 1));
    REFUSED(ww_collection_clear(collection));
    REFUSED(ww_collection_compact(collection, NULL, NULL));
    REFUSED(ww_collection_check(collection, NULL, NULL, NULL));
    REFUSED(ww_collection_reserve(collection, 1000));
    REFUSED(ww_collection_move(collection, device));
}

static void refuse_reads(void)
{
    const float vector[DIM] = {1, 2, 3};
    float out[DIM], score;
    int64_t row = -1;
    char text[64];
    ww_results *found = NULL;
    ww_query search = ww_query_default();
    search.queries = vector;
    search.query_count = 1;
    search.dim = DIM;
    search.k = 1;
    const ww_query query = query_of(vector);
    const ww_get get = ww_get_default();
    ww_collection_info info = ww_collection_info_default();
    REFUSED(ww_collection_search(collection, &search, &row, &score));
    REFUSED(ww_collection_query(collection, &query, &found));
    REFUSED(ww_collection_get(collection, &get, &found));
    REFUSED(ww_collection_find(collection, "row0", &row));
    REFUSED(ww_collection_find_handle(collection, 0, &row));
    REFUSED(ww_collection_handle(collection, 0, &row));
    REFUSED(ww_collection_vector(collection, 0, out));
    REFUSED(ww_collection_id(collection, 0, text, sizeof text, NULL));
    REFUSED(ww_collection_payload(collection, 0, text, sizeof text, NULL));
    REFUSED(ww_collection_describe(collection, &info));
    EXPECT(ww_collection_count(collection) == 0);
    EXPECT(ww_collection_next(collection, -1) == -1);
}

static void make_one_here(void)
{
    const float vector[DIM] = {1, 2, 3};
    ww_collection_config config = ww_collection_config_default();
    ww_device *cpu = NULL;
    ww_collection *own = NULL;
    ww_results *found = NULL;
    config.dim = DIM;
    REFUSED(ww_collection_create(device, &config, &own));
    EXPECT(ww_device_open("cpu", &cpu) == WW_OK);
    EXPECT(ww_collection_create(cpu, &config, &own) == WW_OK);
    EXPECT(add_rows(own, "own") == WW_OK);
    const ww_query query = query_of(vector);
    EXPECT(ww_collection_query(own, &query, &found) == WW_OK);
    EXPECT(strcmp(ww_results_id(found, 0, 0), "own") == 0);
    ww_results_destroy(found);
    ww_collection_destroy(own);
    ww_device_close(cpu);
}

static void child(void)
{
    refuse_writes();
    refuse_reads();
    EXPECT(strcmp(ww_results_id(results, 0, 0), "row0") == 0); /* a copy, with nothing of the collection in it */
    ww_results_destroy(results);
    make_one_here();
    ww_collection_destroy(collection);
    ww_device_close(device);
}

static atomic_bool ending;
static atomic_int faults;

static void *write_until_told(void *unused)
{
    for (int i = 0; !atomic_load(&ending); i++) {
        char id[32];
        snprintf(id, sizeof id, "row%d", i % ROWS);
        atomic_fetch_add(&faults, add_rows(collection, id) != WW_OK);
        atomic_fetch_add(&faults, i % 10 == 9 && ww_collection_compact(collection, NULL, NULL) != WW_OK);
    }
    return unused;
}

static void *read_until_told(void *unused)
{
    const float vector[DIM] = {1, 2, 3};
    const ww_query query = query_of(vector);
    while (!atomic_load(&ending)) {
        ww_results *found = NULL;
        atomic_fetch_add(&faults, ww_collection_query(collection, &query, &found) != WW_OK);
        ww_results_destroy(found);
    }
    return unused;
}

static void every_call_is_refused_at_once(void **state)
{
    pthread_t threads[READERS + 1];
    const float vector[DIM] = {1, 2, 3};
    device = *state;
    collection = collection_make(device, DIM, WW_L2);
    CHECK_OK(add_rows(collection, "row0"));
    const ww_query query = query_of(vector);
    CHECK_OK(ww_collection_query(collection, &query, &results));
    atomic_store(&ending, false);
    for (int i = 0; i <= READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i == READERS ? write_until_told : read_until_told, NULL), 0);
    for (int i = 0; i < FORKS; i++)
        in_a_process(child, SECONDS);
    atomic_store(&ending, true);
    for (int i = 0; i <= READERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&faults), 0); /* the parent never noticed */
    CHECK_OK(add_rows(collection, "row0"));
    ww_results_destroy(results);
    ww_collection_destroy(collection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_call_is_refused_at_once)};
    return RUN_ON_EVERY_DEVICE("collections and fork", tests);
}
