/* Selections: rows by conditions, in memory and in a store alike, after all kinds of changes. */
#include "store/store_support.h"

#include <warpwave/selection.h>

#include "support/devices.h"
#include "support/filters.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { ROWS = 300, DIM = 8, PAYLOAD_BYTES = 64, FETCH = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS };

typedef struct pair {
    ww_store *store;
    ww_collection *both[2]; /* in memory, in the store */
    char *path;
} pair;

static void pair_make(pair *p, ww_device *device)
{
    static char texts[ROWS][PAYLOAD_BYTES], names[ROWS][16];
    const char *payloads[ROWS], *ids[ROWS];
    float vectors[ROWS * DIM];
    test_random random = {12};
    ww_collection_config config = ww_collection_config_default();
    ww_rows rows = ww_rows_default();
    random_normals(&random, vectors, ROWS * DIM);
    for (int i = 0; i < ROWS; i++) {
        snprintf(texts[i], sizeof texts[i], "{\"n\": %d, \"kind\": \"k%d\"}", i, i % 3);
        snprintf(names[i], sizeof names[i], "row%d", i);
        payloads[i] = texts[i];
        ids[i] = names[i];
    }
    p->path = strdup(scratch_path("select.db"));
    assert_non_null(p->path);
    remove(p->path);
    CHECK_OK(ww_store_open(p->path, device, NULL, &p->store));
    config.dim = DIM, config.name = "rows";
    rows.count = ROWS, rows.dim = DIM, rows.vectors = vectors, rows.payloads = payloads, rows.ids = ids;
    CHECK_OK(ww_collection_create(device, &config, &p->both[0]));
    CHECK_OK(ww_store_create(p->store, &config, &p->both[1]));
    for (int i = 0; i < 2; i++)
        CHECK_OK(ww_collection_add(p->both[i], &rows));
}

static void pair_free(pair *p)
{
    for (int i = 0; i < 2; i++)
        ww_collection_destroy(p->both[i]);
    ww_store_close(p->store);
    free(p->path);
}

static ww_selection filtered(const char *filter)
{
    ww_selection selection = ww_selection_default();
    selection.filter = filter_of(filter);
    return selection;
}

/* Both have the same rows of the selection; returns how many. */
static int64_t count_both(const pair *p, const ww_selection *selection)
{
    ww_results *found[2] = {NULL, NULL};
    int64_t count[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ww_collection_select(p->both[i], selection, FETCH, &found[i]));
        CHECK_OK(ww_collection_select_count(p->both[i], selection, &count[i]));
        assert_int_equal(ww_results_count(found[i], 0), count[i]);
    }
    assert_true(results_equal(found[0], found[1], DIM));
    for (int i = 0; i < 2; i++)
        ww_results_destroy(found[i]);
    return count[0];
}

/* Rows that were replaced and removed, so that handles are out of order. */
static void disturb(const pair *p)
{
    const char *ids[] = {"row7", "row290", "row64"}, *gone[] = {"row9", "row0", "row299"};
    const char *payloads[] = {"{\"n\": 7, \"kind\": \"k1\"}", "{\"n\": 290, \"kind\": \"k2\"}",
                              "{\"n\": 64, \"kind\": \"k1\"}"};
    const float vectors[3 * DIM] = {1, 2, 3};
    ww_rows rows = ww_rows_default();
    rows.count = 3, rows.dim = DIM, rows.vectors = vectors, rows.ids = ids, rows.payloads = payloads;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ww_collection_upsert(p->both[i], &rows));
        CHECK_OK(ww_collection_remove(p->both[i], gone, 3));
    }
}

static void memory_and_store_select_the_same_rows_in_order_of_handles(void **state)
{
    pair p;
    pair_make(&p, *state);
    ww_selection all = ww_selection_default(), some = filtered("{\"kind\": \"k1\"}");
    assert_int_equal(count_both(&p, &all), ROWS);
    assert_int_equal(count_both(&p, &some), 100);
    disturb(&p);
    assert_int_equal(count_both(&p, &all), ROWS - 3);
    assert_int_equal(count_both(&p, &some), 100);
    for (int i = 0; i < 2; i++) {
        ww_results *found = NULL;
        CHECK_OK(ww_collection_select(p.both[i], &all, 0, &found));
        for (int64_t r = 1; r < ww_results_count(found, 0); r++)
            assert_true(ww_results_handles(found, 0)[r - 1] < ww_results_handles(found, 0)[r]);
        ww_results_destroy(found);
    }
    pair_free(&p);
}

/* All rows by pages, in both orders of rows: before and after rows were replaced. */
static void pages_have_every_row_once(void **state)
{
    pair p;
    pair_make(&p, *state);
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        ww_selection page = filtered("{\"n\": {\"$gte\": 5}}");
        const int64_t expected = count_both(&p, &page);
        int64_t seen = 0;
        for (int64_t got = 1; got > 0; seen += got) {
            ww_results *found = NULL;
            page.limit = 7;
            got = count_both(&p, &page);
            CHECK_OK(ww_collection_select(p.both[1], &page, 0, &found));
            if (got > 0)
                page.first_handle = ww_results_handles(found, 0)[got - 1] + 1;
            ww_results_destroy(found);
        }
        assert_int_equal(seen, expected);
        if (disturbed == 0)
            disturb(&p);
    }
    pair_free(&p);
}

static void removing_a_selection_leaves_the_others(void **state)
{
    pair p;
    pair_make(&p, *state);
    const ww_selection some = filtered("{\"kind\": {\"$in\": [\"k0\", \"k2\"]}}"), all = ww_selection_default();
    for (int i = 0; i < 2; i++) {
        int64_t removed = -1;
        CHECK_OK(ww_collection_select_remove(p.both[i], &some, &removed));
        assert_int_equal(removed, 200);
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_remove(p.both[i], &all, &removed));
        assert_non_null(strstr(ww_error_message(), "clear"));
    }
    assert_int_equal(count_both(&p, &all), 100);
    assert_true(collections_equal(p.both[0], p.both[1]));
    pair_free(&p);
}

static void payloads_of_a_selection_are_set_and_merged(void **state)
{
    pair p;
    pair_make(&p, *state);
    const ww_selection some = filtered("{\"kind\": \"k1\"}"), merged = filtered("{\"new\": 2}"), set = filtered("{\"n\": 1}");
    for (int i = 0; i < 2; i++) {
        int64_t changed = -1;
        const char *fields = " {\"n\": 1, \"new\" : [1, 2], \"n\": 2}";
        CHECK_OK(ww_collection_select_payload(p.both[i], &some, fields, WW_PAYLOAD_MERGE, &changed));
        assert_int_equal(changed, 100);
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_payload(p.both[i], &some, "[1]", WW_PAYLOAD_MERGE, &changed));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_payload(p.both[i], &some, "{", WW_PAYLOAD_SET, &changed));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_payload(p.both[i], &some, NULL, WW_PAYLOAD_MERGE, &changed));
    }
    assert_int_equal(count_both(&p, &some), 100);
    assert_int_equal(count_both(&p, &merged), 100); /* a list meets a condition by its elements */
    assert_int_equal(count_both(&p, &set), 100);
    for (int i = 0; i < 2; i++)
        CHECK_OK(ww_collection_select_payload(p.both[i], &some, NULL, WW_PAYLOAD_SET, NULL));
    assert_int_equal(count_both(&p, &some), 0);
    const ww_selection bare = filtered("{\"n\": null}");
    assert_int_equal(count_both(&p, &bare), 100);
    pair_free(&p);
}

static void a_merge_that_fails_changes_nothing(void **state)
{
    pair p;
    pair_make(&p, *state);
    const char *ids[] = {"row1", "row2", "row1"}, *list = "[1]", *two = "row2";
    const char *fields[] = {"{\"a\": 1}", "{\"b\": 1}", "{\"c\": 1}"};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ww_collection_merge_payloads(p.both[i], ids, fields, 3));
        CHECK_OK(ww_collection_set_payloads(p.both[i], &two, &list, 1));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_merge_payloads(p.both[i], ids, fields, 3));
        assert_non_null(strstr(ww_error_message(), "not an object"));
    }
    const ww_selection twice = filtered("{\"a\": 1, \"c\": 1, \"n\": 1}"), all = ww_selection_default();
    assert_int_equal(count_both(&p, &twice), 1); /* the id that was named twice has both */
    assert_int_equal(count_both(&p, &all), ROWS);
    pair_free(&p);
}

static void selections_that_make_no_sense_are_refused(void **state)
{
    pair p;
    int64_t count = 0;
    pair_make(&p, *state);
    for (int i = 0; i < 2; i++) {
        ww_selection s = ww_selection_default();
        s.limit = -1;
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_select_count(p.both[i], &s, &count));
        s.limit = 0, s.first_handle = -1;
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_select_count(p.both[i], &s, &count));
        ww_filter *open = NULL;
        CHECK_OK(ww_filter_create(&open));
        CHECK_OK(ww_filter_begin(open, WW_FILTER_NONE, 0));
        s.first_handle = 0, s.filter = open;
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_count(p.both[i], &s, &count));
        ww_filter_destroy(open);
        s.filter = NULL;
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_count(p.both[i], NULL, &count));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_count(p.both[i], &s, NULL));
    }
    ww_selection where = ww_selection_default();
    where.where = "id < 'row2'";
    CHECK_OK(ww_collection_select_count(p.both[1], &where, &count));
    assert_int_equal(count, 112); /* row0, row1, row10 .. row199 */
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_select_count(p.both[0], &where, &count));
    pair_free(&p);
}

static void a_renamed_collection_has_everything(void **state)
{
    pair p;
    ww_collection *renamed = NULL;
    pair_make(&p, *state);
    CHECK_OK(ww_store_index(p.store, "rows", "$.kind"));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_rename(p.store, "nobody", "x"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_rename(p.store, "rows", "sqlite_rows"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_rename(p.store, "rows", "ROWS"));
    CHECK_OK(ww_store_rename(p.store, "rows", "rows_payload_$x"));
    CHECK_OK(ww_store_rename(p.store, "rows_payload_$x", "books"));
    CHECK_OK(ww_store_collection(p.store, "books", &renamed));
    assert_true(collections_equal(p.both[0], renamed));
    ww_collection_config config = ww_collection_config_default();
    config.name = "rows", config.dim = DIM;
    CHECK_OK(ww_store_create(p.store, &config, NULL)); /* the old name is free, its indexes too */
    CHECK_OK(ww_store_index(p.store, "rows", "$.kind"));
    CHECK_OK(ww_store_check(p.store, NULL, NULL));
    ww_collection_destroy(renamed);
    pair_free(&p);
}

/* Each allocation of each call on a selection fails in turn, and then nothing has changed. */
static ww_status select_everything(ww_collection *c)
{
    const ww_selection some = filtered("{\"kind\": \"k1\"}");
    const char *id = "row5", *fields = "{\"a\": 1}";
    ww_results *found = NULL;
    int64_t count = 0;
    ww_status status = ww_collection_select(c, &some, FETCH, &found);
    ww_results_destroy(found);
    if (status == WW_OK)
        status = ww_collection_select_count(c, &some, &count);
    if (status == WW_OK)
        status = ww_collection_select_payload(c, &some, fields, WW_PAYLOAD_MERGE, NULL);
    if (status == WW_OK)
        status = ww_collection_merge_payloads(c, &id, &fields, 1);
    if (status == WW_OK)
        status = ww_collection_select_remove(c, &some, &count);
    return status;
}

static void every_allocation_of_a_selection_may_fail(void **state)
{
    pair p;
    pair_make(&p, *state);
    for (int i = 0; i < 2; i++) {
        const ww_selection whole = filtered("{\"kind\": \"k1\", \"a\": null}");
        ww_status status = WW_OUT_OF_MEMORY;
        for (int64_t n = 1; status == WW_OUT_OF_MEMORY && n < 2000; n++) {
            fail_allocation_at(n);
            status = select_everything(p.both[i]);
            fail_allocation_at(0);
            int64_t there = -1;
            CHECK_OK(ww_collection_select_count(p.both[i], &whole, &there));
            if (status == WW_OUT_OF_MEMORY)
                assert_true(there == 100 || there == 0); /* a call did all or nothing */
        }
        CHECK_OK(status);
    }
    assert_true(collections_equal(p.both[0], p.both[1]));
    pair_free(&p);
}

static void every_allocation_of_renaming_may_fail(void **state)
{
    pair p;
    ww_collection *renamed = NULL;
    pair_make(&p, *state);
    CHECK_OK(ww_store_index(p.store, "rows", "$.kind"));
    ww_status status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status == WW_OUT_OF_MEMORY && n < 2000; n++) {
        fail_allocation_at(n);
        status = ww_store_rename(p.store, "rows", "books");
        fail_allocation_at(0);
        if (status == WW_OUT_OF_MEMORY)
            assert_true(collections_equal(p.both[0], p.both[1])); /* under its old name */
    }
    CHECK_OK(status);
    CHECK_OK(ww_store_collection(p.store, "books", &renamed));
    assert_true(collections_equal(p.both[0], renamed));
    CHECK_OK(ww_store_check(p.store, NULL, NULL));
    ww_collection_destroy(renamed);
    pair_free(&p);
}

#define SCRATCHED(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCHED(memory_and_store_select_the_same_rows_in_order_of_handles),
        SCRATCHED(pages_have_every_row_once),
        SCRATCHED(removing_a_selection_leaves_the_others),
        SCRATCHED(payloads_of_a_selection_are_set_and_merged),
        SCRATCHED(a_merge_that_fails_changes_nothing),
        SCRATCHED(selections_that_make_no_sense_are_refused),
        SCRATCHED(a_renamed_collection_has_everything),
        SCRATCHED(every_allocation_of_a_selection_may_fail),
        SCRATCHED(every_allocation_of_renaming_may_fail),
    };
    return RUN_ON_EVERY_DEVICE("selections", tests);
}
