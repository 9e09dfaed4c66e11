/* Cursors, in memory and in a store alike: a snapshot of the rows, whatever is written meanwhile. */
#include "store/store_support.h"

#include <warpwave/selection.h>

#include "support/devices.h"
#include "support/filters.h"
#include "support/memory.h"
#include "support/scene.h"
#include "support/scratch.h"

enum { ROWS = 300, DIM = 8, FETCH = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS };

typedef struct pair {
    ww_store *store;
    ww_collection *both[2]; /* in memory, in the store */
} pair;

/* Row i has the vector (i + 1, round, ...) and the payload {"n": i, "round": round}. */
static ww_status put_rows(ww_collection *c, int first, int count, int round,
                          ww_status (*call)(ww_collection *, const ww_rows *))
{
    static char texts[ROWS][64], names[ROWS][16];
    const char *payloads[ROWS], *ids[ROWS];
    float vectors[ROWS * DIM] = {0};
    ww_rows rows = ww_rows_default();
    for (int i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "{\"n\": %d, \"round\": %d}", first + i, round);
        snprintf(names[i], sizeof names[i], "row%d", first + i);
        payloads[i] = texts[i];
        ids[i] = names[i];
        vectors[i * DIM] = (float)(first + i + 1);
        vectors[i * DIM + 1] = (float)round;
    }
    rows.count = count, rows.dim = DIM, rows.vectors = vectors, rows.payloads = payloads, rows.ids = ids;
    return call(c, &rows);
}

static void pair_make(pair *p, ww_device *device)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM, config.name = "rows";
    remove(scratch_path("cursor.db"));
    CHECK_OK(ww_store_open(scratch_path("cursor.db"), device, NULL, &p->store));
    CHECK_OK(ww_collection_create(device, &config, &p->both[0]));
    CHECK_OK(ww_store_create(p->store, &config, &p->both[1]));
    for (int i = 0; i < 2; i++)
        CHECK_OK(put_rows(p->both[i], 0, ROWS, 0, ww_collection_add));
}

static void pair_free(pair *p)
{
    for (int i = 0; i < 2; i++)
        ww_collection_destroy(p->both[i]);
    ww_store_close(p->store);
}

/* The next page has the rows from number `first` on, as they were before any write. */
static int64_t check_page(ww_cursor *cursor, int64_t count, int64_t first)
{
    ww_results *page = NULL;
    CHECK_OK(ww_cursor_next(cursor, count, &page));
    const int64_t found = ww_results_count(page, 0);
    for (int64_t i = 0; i < found; i++) {
        char id[32], payload[64];
        snprintf(id, sizeof id, "row%d", (int)(first + i));
        snprintf(payload, sizeof payload, "{\"n\": %d, \"round\": 0}", (int)(first + i));
        assert_string_equal(ww_results_id(page, 0, i), id);
        assert_string_equal(ww_results_payload(page, 0, i), payload);
        const float *vector = ww_results_vector(page, 0, i);
        assert_true(vector[0] == (float)(first + i + 1) && vector[1] == 0.0f);
        assert_true(ww_results_scores(page, 0)[i] == 0.0f);
    }
    ww_results_destroy(page);
    return found;
}

static int64_t check_rest(ww_cursor *cursor, int64_t first)
{
    int64_t seen = first;
    for (int64_t got = 1; got > 0; seen += got)
        got = check_page(cursor, 70, seen);
    return seen;
}

static ww_status change_rows(ww_collection *c)
{
    const char *gone[] = {"row9", "row200"};
    ww_status status = put_rows(c, 150, 60, 1, ww_collection_upsert);
    if (status == WW_OK)
        status = ww_collection_remove(c, gone, 2);
    return status == WW_OK ? put_rows(c, ROWS, 20, 1, ww_collection_add) : status;
}

static ww_status compact_rows(ww_collection *c)
{
    const char *gone[] = {"row1", "row270"};
    const ww_status status = ww_collection_remove(c, gone, 2);
    return status == WW_OK && !c->operations->texts ? ww_collection_compact(c, NULL, NULL) : status;
}

static ww_status change_payloads(ww_collection *c)
{
    const ww_selection all = ww_selection_default();
    return ww_collection_select_payload(c, &all, "{\"n\": -1}", WW_PAYLOAD_SET, NULL);
}

static void a_cursor_reads_what_was_there(void **state)
{
    ww_status (*const writes[])(ww_collection *) = {change_rows, compact_rows, change_payloads, ww_collection_clear};
    for (size_t w = 0; w < sizeof writes / sizeof *writes; w++) {
        pair p;
        pair_make(&p, *state);
        for (int i = 0; i < 2; i++) {
            ww_cursor *begun = NULL, *fresh = NULL, *after = NULL;
            CHECK_OK(ww_cursor_create(p.both[i], NULL, FETCH, &begun));
            assert_int_equal(check_page(begun, 100, 0), 100);
            CHECK_OK(ww_cursor_create(p.both[i], NULL, FETCH, &fresh));
            CHECK_OK(writes[w](p.both[i]));
            CHECK_OK(put_rows(p.both[i], 50, 30, 2, ww_collection_upsert));
            CHECK_OK(ww_cursor_create(p.both[i], NULL, 0, &after));
            assert_int_equal(check_rest(begun, 100), ROWS);
            assert_int_equal(check_rest(fresh, 0), ROWS);
            ww_results *page = NULL;
            CHECK_OK(ww_cursor_next(after, WW_ROWS_MAX, &page));
            assert_int_equal(ww_results_count(page, 0), ww_collection_count(p.both[i]));
            ww_results_destroy(page);
            ww_cursor_destroy(after);
            ww_cursor_destroy(fresh);
            ww_cursor_destroy(begun);
        }
        pair_free(&p);
    }
}

static void a_cursor_over_a_selection_reads_what_matched(void **state)
{
    pair p;
    pair_make(&p, *state);
    ww_selection late = ww_selection_default();
    late.filter = filter_of("{\"n\": {\"$gte\": 120}}");
    for (int i = 0; i < 2; i++) {
        ww_cursor *cursor = NULL;
        CHECK_OK(ww_cursor_create(p.both[i], &late, FETCH, &cursor));
        assert_int_equal(check_page(cursor, 40, 120), 40);
        CHECK_OK(change_payloads(p.both[i]));
        CHECK_OK(change_rows(p.both[i]));
        assert_int_equal(check_rest(cursor, 160), ROWS);
        ww_cursor_destroy(cursor);
        CHECK_OK(ww_cursor_create(p.both[i], &late, FETCH, &cursor));
        ww_results *page = NULL;
        CHECK_OK(
            ww_cursor_next(cursor, WW_ROWS_MAX, &page)); /* 60 that change_rows() put back, less row 200, and 20 new ones */
        assert_int_equal(ww_results_count(page, 0), 79);
        ww_results_destroy(page);
        ww_cursor_destroy(cursor);
    }
    pair_free(&p);
}

static void in_a_transaction_a_cursor_has_its_writes(void **state)
{
    pair p;
    pair_make(&p, *state);
    CHECK_OK(ww_store_begin(p.store));
    CHECK_OK(put_rows(p.both[1], ROWS, 5, 0, ww_collection_add));
    ww_cursor *cursor = NULL;
    CHECK_OK(ww_cursor_create(p.both[1], NULL, FETCH, &cursor));
    CHECK_OK(put_rows(p.both[1], 0, 10, 1, ww_collection_upsert));
    assert_int_equal(check_rest(cursor, 0), ROWS + 5);
    ww_cursor_destroy(cursor);
    CHECK_OK(ww_store_commit(p.store));
    pair_free(&p);
}

static void what_a_cursor_refuses(void **state)
{
    pair p;
    pair_make(&p, *state);
    for (int i = 0; i < 2; i++) {
        ww_cursor *cursor = NULL;
        ww_results *page = NULL;
        ww_selection bad = ww_selection_default();
        bad.limit = -1;
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_cursor_create(NULL, NULL, 0, &cursor));
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_cursor_create(p.both[i], &bad, 0, &cursor));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_cursor_create(p.both[i], NULL, 1u << 30, &cursor));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_cursor_create(p.both[i], NULL, 0, NULL));
        CHECK_OK(ww_cursor_create(p.both[i], NULL, 0, &cursor));
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_cursor_next(cursor, 0, &page));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_cursor_next(cursor, 1, NULL));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_cursor_next(NULL, 1, &page));
        ww_cursor_destroy(cursor);
        ww_cursor_destroy(NULL);
    }
    pair_free(&p);
}

static void every_allocation_of_a_cursor_may_fail(void **state)
{
    static const char *const nobody[] = {"nobody"};
    pair p;
    pair_make(&p, *state);
    ww_selection late = ww_selection_default();
    late.filter = filter_of("{\"n\": {\"$gte\": 120}}");
    for (int i = 0; i < 2; i++) {
        ww_status status = WW_OUT_OF_MEMORY;
        for (int64_t n = 1; status == WW_OUT_OF_MEMORY && n < 3000; n++) {
            ww_cursor *cursor = NULL;
            ww_results *page = NULL;
            fail_allocation_at(n);
            status = ww_cursor_create(p.both[i], &late, FETCH, &cursor);
            if (status == WW_OK)
                status = ww_collection_discard(p.both[i], nobody, 1, NULL); /* in memory the rows are copied */
            if (status == WW_OK)
                status = ww_cursor_next(cursor, 50, &page);
            fail_allocation_at(0);
            assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
            ww_results_destroy(page);
            ww_cursor_destroy(cursor);
        }
        CHECK_OK(status);
    }
    assert_true(collections_equal(p.both[0], p.both[1]));
    pair_free(&p);
}

/* ---- threads ------------------------------------------------------------------------------------------------------------- */

/* All rows of a cursor have the same round, because each write changes all of them. */
static void *reader(void *user)
{
    scene *s = user;
    while (!atomic_load(&s->done)) {
        ww_cursor *cursor = NULL;
        int64_t seen = 0, got = 1;
        float round = -1.0f;
        if (ww_cursor_create(s->collection, NULL, WW_FETCH_VECTORS, &cursor) != WW_OK)
            blame(s, "create", 0);
        for (; got > 0 && atomic_load(&s->faults) == 0; seen += got) {
            ww_results *page = NULL;
            if (ww_cursor_next(cursor, 64, &page) != WW_OK)
                blame(s, "next", (double)seen);
            got = ww_results_count(page, 0);
            for (int64_t i = 0; i < got; i++) {
                const float found = ww_results_vector(page, 0, i)[1];
                round = round < 0.0f ? found : round;
                if (found != round)
                    blame(s, "a row of another moment", found);
            }
            ww_results_destroy(page);
        }
        if (seen != ROWS)
            blame(s, "rows", (double)seen);
        ww_cursor_destroy(cursor);
        atomic_fetch_add(&s->answers, 1);
    }
    return NULL;
}

static void *writer(void *user)
{
    scene *s = user;
    for (int round = 1; round <= s->rounds; round++)
        if (put_rows(s->collection, 0, ROWS, round, ww_collection_upsert) != WW_OK)
            blame(s, "upsert", round);
    atomic_store(&s->done, true);
    return NULL;
}

static void cursors_beside_a_writer_see_one_moment(void **state)
{
    pair p;
    pair_make(&p, *state);
    for (int i = 0; i < 2; i++) {
        scene s = {.collection = p.both[i], .rounds = device_is_slow(*state) ? 5 : 60};
        scene_play(&s, 3, reader, writer); /* destroys the collection */
        p.both[i] = NULL;
    }
    pair_free(&p);
}

#define SCRATCHED(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCHED(a_cursor_reads_what_was_there),
        SCRATCHED(a_cursor_over_a_selection_reads_what_matched),
        SCRATCHED(in_a_transaction_a_cursor_has_its_writes),
        SCRATCHED(what_a_cursor_refuses),
        SCRATCHED(every_allocation_of_a_cursor_may_fail),
        SCRATCHED(cursors_beside_a_writer_see_one_moment),
    };
    return RUN_ON_EVERY_DEVICE("cursors", tests);
}
