/* What several threads may share while a writer changes a collection with an index: the index, a filter, cursors, a token that
 * another thread asks to cancel, and the log of failures.
 */
#include <string.h>
#include <unistd.h>

#include <warpwave/filter.h>
#include <warpwave/hooks.h>
#include <warpwave/ivf.h>
#include <warpwave/selection.h>

#include "support/devices.h"
#include "support/scene.h"

enum { DIM = 8, ROWS = 600, CHANGED = 30, K = 10, READERS = 3, LISTS = 12, PAGE = 100 };

static ww_filter *even; /* rows with an even number */
static ww_cancel *token;
static atomic_int cancelled, failures;

/* Row `number` has its number in its id, its payload and the first element of its vector. */
static ww_status put_rows(ww_collection *collection, int first, int count)
{
    static const char *const parity[] = {"{\"even\":true}", "{\"even\":false}"};
    float vectors[CHANGED * DIM];
    char texts[CHANGED][16];
    const char *ids[CHANGED], *payloads[CHANGED];
    ww_rows rows = ww_rows_default();
    for (int i = 0; i < count; i++) {
        const int number = (first + i) % ROWS;
        for (int d = 0; d < DIM; d++)
            vectors[i * DIM + d] = d == 0 ? (float)number : (float)((number * 7 + d * 13) % 11);
        snprintf(texts[i], sizeof texts[i], "%d", number);
        ids[i] = texts[i];
        payloads[i] = parity[number % 2];
    }
    rows.count = count, rows.dim = DIM, rows.vectors = vectors, rows.ids = ids, rows.payloads = payloads;
    return ww_collection_upsert(collection, &rows);
}

static void check_hits(scene *s, const ww_results *found, bool only_even)
{
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        const int number = (int)ww_results_vector(found, 0, i)[0];
        char id[16];
        snprintf(id, sizeof id, "%d", number);
        if (strcmp(ww_results_id(found, 0, i), id) != 0 || (only_even && number % 2 != 0))
            blame(s, "another row", number);
    }
}

static void ask(scene *s, bool filtered)
{
    const float query[DIM] = {300.0f, 1, 2, 3, 4, 5, 6, 7};
    ww_query asked = ww_query_default();
    ww_results *found = NULL;
    asked.queries = query, asked.query_count = 1, asked.dim = DIM, asked.k = K;
    asked.nprobe = 3, asked.cancel = token, asked.filter = filtered ? even : NULL;
    asked.fetch = WW_FETCH_IDS | WW_FETCH_VECTORS;
    const ww_status status = ww_collection_query(s->collection, &asked, &found);
    if (status == WW_OK)
        check_hits(s, found, filtered);
    else if (status == WW_CANCELLED)
        atomic_fetch_add(&cancelled, 1);
    else
        blame(s, "query", (double)status);
    ww_results_destroy(found);
}

/* Every row once, although rows are replaced meanwhile. */
static void walk(scene *s)
{
    static const uint32_t fetch = WW_FETCH_IDS | WW_FETCH_VECTORS;
    bool seen[ROWS] = {false};
    ww_cursor *cursor = NULL;
    ww_results *page = NULL;
    int64_t count = 0, rows = 0;
    if (ww_cursor_create(s->collection, NULL, fetch, &cursor) != WW_OK)
        blame(s, "cursor", 0);
    do {
        if (ww_cursor_next(cursor, PAGE, &page) != WW_OK) {
            blame(s, "page", (double)rows);
            break;
        }
        count = ww_results_count(page, 0);
        check_hits(s, page, false);
        for (int64_t i = 0; i < count; i++) {
            bool *const was = &seen[(int)ww_results_vector(page, 0, i)[0]];
            if (*was)
                blame(s, "a row that came before", (double)i);
            *was = true;
        }
        rows += count;
        ww_results_destroy(page);
        page = NULL;
    } while (count > 0);
    if (rows != ROWS)
        blame(s, "rows of a cursor", (double)rows);
    ww_cursor_destroy(cursor);
}

static void *reader(void *user)
{
    scene *s = user;
    int64_t number = 0;
    while (!atomic_load(&s->done)) {
        ask(s, false);
        ask(s, true);
        if (number++ % 8 == 0)
            walk(s);
        ww_ivf_info info = ww_ivf_info_default();
        if (ww_collection_describe_ivf(s->collection, &info) != WW_OK || info.nlist < 1)
            blame(s, "index", (double)info.nlist);
        atomic_fetch_add(&s->answers, 1);
    }
    return NULL;
}

/* Replaces rows, and now and then all lists; readers are told to stop for a moment. */
static void *writer(void *user)
{
    scene *s = user;
    ww_ivf_config lists = ww_ivf_config_default();
    lists.nlist = LISTS;
    for (int round = 0; round < s->rounds; round++) {
        if (put_rows(s->collection, round * CHANGED, CHANGED) != WW_OK)
            blame(s, "write", round);
        if (round % 10 == 9 && ww_collection_build_ivf(s->collection, &lists) != WW_OK)
            blame(s, "index", round);
        if (round % 4 == 1)
            ww_cancel_ask(token);
        usleep(200);
        ww_cancel_reset(token);
        if (round % 25 == 24 && ww_collection_compact(s->collection, NULL, NULL) != WW_OK)
            blame(s, "compact", round);
    }
    while (atomic_load(&s->answers) <= s->rounds / 10 && atomic_load(&s->faults) == 0)
        usleep(100);
    atomic_store(&s->done, true);
    return NULL;
}

static void an_index_a_filter_and_a_token_are_shared_by_all_threads(void **state)
{
    scene s = {.collection = collection_make(*state, DIM, WW_L2), .rounds = device_is_slow(*state) ? 4 : 150};
    ww_ivf_config lists = ww_ivf_config_default();
    lists.nlist = LISTS;
    for (int first = 0; first < ROWS; first += CHANGED)
        CHECK_OK(put_rows(s.collection, first, CHANGED));
    CHECK_OK(ww_collection_build_ivf(s.collection, &lists));
    scene_play(&s, READERS, reader, writer);
}

/* ---- failures --------------------------------------------------------------------------------------------------------------
 */

static void note_failure(ww_status status, const char *message, void *user)
{
    (void)user;
    if (status == WW_INVALID_ARGUMENT && strstr(message, "NULL"))
        atomic_fetch_add(&failures, 1);
}

enum { CALLERS = 4, CALLS = 200 };

static void *fail_often(void *user)
{
    for (int i = 0; i < CALLS; i++)
        if (ww_filter_create(NULL) == WW_OK || !strstr(ww_error_message(), "NULL"))
            *(int *)user = 1;
    return NULL;
}

static void failures_of_all_threads_are_heard_and_each_keeps_its_message(void **state)
{
    (void)state;
    ww_hooks hooks = ww_hooks_default();
    pthread_t threads[CALLERS];
    int wrong[CALLERS] = {0};
    hooks.failed = note_failure;
    CHECK_OK(ww_set_hooks(&hooks));
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_often, &wrong[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
    CHECK_OK(ww_set_hooks(NULL));
    assert_int_equal(atomic_load(&failures), CALLERS * CALLS);
}

int main(void)
{
    const struct CMUnitTest on_devices[] = {
        cmocka_unit_test(an_index_a_filter_and_a_token_are_shared_by_all_threads),
    };
    const struct CMUnitTest once[] = {
        cmocka_unit_test(failures_of_all_threads_are_heard_and_each_keeps_its_message),
    };
    CHECK_OK(ww_filter_read("{\"even\": true}", &even));
    CHECK_OK(ww_cancel_create(&token));
    const int failed = RUN_ON_EVERY_DEVICE("an index and threads", on_devices);
    ww_filter_destroy(even);
    ww_cancel_destroy(token);
    return failed + cmocka_run_group_tests(once, NULL, NULL);
}
