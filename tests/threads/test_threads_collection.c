/* Many threads search while one writes: every result matches some state between two writes.
 *
 * The vector of a row has a code in one element, so that a score identifies the row. Fifty codes are always present. The others
 * come and go in pairs, n and n + 0.5, added in one batch and removed in one list: a result with only one of a pair saw a
 * partial write.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/devices.h"
#include "support/scene.h"

enum { DIM = 3, STABLE = 50, PAIRS_MAX = 40, K = 256, SEARCHERS = 4 };

static void check_answer(scene *s, const int64_t *rows, const float *scores)
{
    int stable = 0;
    for (int i = 0; i < K && rows[i] >= 0; i++) {
        const float code = scores[i];
        if (i > 0 && scores[i - 1] <= code)
            blame(s, "codes out of order or twice", code);
        stable += code < STABLE;
        if (code < STABLE)
            continue;
        const bool half = code != (float)(int)code;
        const float partner = half ? code - 0.5f : code + 0.5f;
        const int beside = half ? i + 1 : i - 1; /* larger codes come first */
        if (beside < 0 || beside >= K || rows[beside] < 0 || scores[beside] != partner)
            blame(s, "half of a pair", code);
    }
    if (stable != STABLE)
        blame(s, "rows that are always there, found", stable);
}

/* Looks up a row that always exists. It may be renumbered between two calls, but is never missing. */
static void look_around(scene *s, unsigned number)
{
    char id[32], text[32];
    float vector[DIM];
    int64_t row = -1;
    snprintf(id, sizeof id, "s%u", number % STABLE);
    if (ww_collection_find(s->collection, id, &row) != WW_OK)
        blame(s, "a row that is always there was not found", number % STABLE);
    ww_status status = ww_collection_vector(s->collection, row, vector);
    if (status != WW_OK && status != WW_NOT_FOUND)
        blame(s, "vector", (double)row);
    status = ww_collection_payload(s->collection, row, text, sizeof text, NULL);
    if (status != WW_OK && status != WW_NOT_FOUND)
        blame(s, "payload", (double)row);
    const int64_t count = ww_collection_count(s->collection);
    if (count < STABLE || (count - STABLE) % 2 != 0)
        blame(s, "count of half a pair", (double)count);
    ww_collection_info info = ww_collection_info_default();
    if (ww_collection_describe(s->collection, &info) != WW_OK || (info.rows_live - STABLE) % 2 != 0)
        blame(s, "describe", (double)info.rows_live);
    ww_collection_next(s->collection, row);
}

static void *searcher(void *user)
{
    scene *s = user;
    const float query[2 * DIM] = {1.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f};
    int64_t rows[2 * K];
    float scores[2 * K];
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 2;
    search.dim = DIM;
    search.k = K;
    for (unsigned i = 0; !atomic_load(&s->done); i++) {
        if (ww_collection_search(s->collection, &search, rows, scores) != WW_OK)
            blame(s, "search", i);
        check_answer(s, rows, scores);
        check_answer(s, rows + K, scores + K);
        if (memcmp(rows, rows + K, sizeof *rows * K) != 0)
            blame(s, "two queries of one search saw two states", i);
        look_around(s, i);
        atomic_fetch_add(&s->answers, 1);
    }
    return NULL;
}

static ww_status write_pair(scene *s, int pair, bool upsert)
{
    char first[32], second[32];
    const char *ids[2] = {first, second};
    const char *payloads[2] = {"[1]", NULL};
    const float vectors[2 * DIM] = {(float)(STABLE + pair), 0, 0, (float)(STABLE + pair) + 0.5f, 0, 0};
    snprintf(first, sizeof first, "p%d", pair);
    snprintf(second, sizeof second, "q%d", pair);
    ww_rows rows = ww_rows_default();
    rows.count = 2;
    rows.dim = DIM;
    rows.vectors = vectors;
    rows.ids = ids;
    rows.payloads = payloads;
    return upsert ? ww_collection_upsert(s->collection, &rows) : ww_collection_add(s->collection, &rows);
}

static void *writer(void *user)
{
    scene *s = user;
    bool there[PAIRS_MAX] = {false};
    test_random random = {11};
    for (int round = 0; round < s->rounds; round++) {
        const int pair = (int)random_below(&random, PAIRS_MAX);
        char first[32], second[32];
        const char *ids[2] = {first, second};
        snprintf(first, sizeof first, "p%d", pair);
        snprintf(second, sizeof second, "q%d", pair);
        const uint64_t kind = random_below(&random, 3);
        ww_status status;
        if (there[pair] && kind > 0)
            status = ww_collection_remove(s->collection, ids, 2);
        else
            status = write_pair(s, pair, there[pair]);
        there[pair] = !there[pair] || kind == 0;
        if (status != WW_OK)
            blame(s, "write", pair);
        if (round % 40 == 39 && ww_collection_compact(s->collection, NULL, NULL) != WW_OK)
            blame(s, "compact", round);
        if (round % 100 == 99 && ww_collection_reserve(s->collection, 300) != WW_OK)
            blame(s, "reserve", round);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    atomic_store(&s->done, true);
    return NULL;
}

static void searches_see_whole_writes_only_and_do_not_keep_the_writer_out(void **state)
{
    scene s = {.collection = collection_make(*state, DIM, WW_DOT), .rounds = device_is_slow(*state) ? 60 : 600};
    float vectors[STABLE * DIM] = {0};
    char texts[STABLE][32];
    const char *ids[STABLE];
    for (int i = 0; i < STABLE; i++) {
        vectors[i * DIM] = (float)i;
        snprintf(texts[i], sizeof texts[i], "s%d", i);
        ids[i] = texts[i];
    }
    ww_rows rows = ww_rows_default();
    rows.count = STABLE;
    rows.dim = DIM;
    rows.vectors = vectors;
    rows.ids = ids;
    CHECK_OK(ww_collection_add(s.collection, &rows));
    scene_play(&s, SEARCHERS, searcher, writer);
}

typedef struct own {
    ww_device *device;
    int number;
    int faults;
} own;

static void *use_own_collection(void *user)
{
    own *o = user;
    ww_collection_config config = ww_collection_config_default();
    config.dim = 2;
    config.metric = WW_DOT;
    for (int round = 0; round < 20; round++) {
        ww_collection *c = NULL;
        const float vectors[4] = {(float)o->number, 1, 0, 0};
        const float query[2] = {1, 0};
        int64_t row = -1;
        float score = 0;
        ww_rows rows = ww_rows_default();
        rows.count = 2;
        rows.dim = 2;
        rows.vectors = vectors;
        ww_query search = ww_query_default();
        search.queries = query;
        search.query_count = 1;
        search.dim = 2;
        search.k = 1;
        o->faults += ww_collection_create(o->device, &config, &c) != WW_OK;
        o->faults += ww_collection_add(c, &rows) != WW_OK;
        o->faults += ww_collection_search(c, &search, &row, &score) != WW_OK;
        o->faults += row != 0 || score != (float)o->number;
        o->faults += ww_collection_find(c, "9", &row) != WW_NOT_FOUND; /* each thread has its own last error */
        ww_collection_destroy(c);
    }
    return NULL;
}

static void threads_with_collections_of_their_own_share_a_device(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    own owns[THREADS];
    for (int i = 0; i < THREADS; i++) {
        owns[i] = (own){.device = *state, .number = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, use_own_collection, &owns[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(owns[i].faults, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches_see_whole_writes_only_and_do_not_keep_the_writer_out),
        cmocka_unit_test(threads_with_collections_of_their_own_share_a_device),
    };
    return RUN_ON_EVERY_DEVICE("collection and threads", tests);
}
