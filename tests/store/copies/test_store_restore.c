/* Single collections copied to a new file, and from a file into a store: everything that belongs to them, in one step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warpwave/ivf.h>
#include <warpwave/ranking.h>

#include "store/store_support.h"
#include "support/check.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { DIM = 4, ROWS = 600 };

static ww_device *device;
static ww_store *store;

static ww_collection *make_in(ww_store *where, const char *name, int32_t dim)
{
    ww_collection_config config = ww_collection_config_default();
    ww_collection *made = NULL;
    config.name = name, config.dim = dim;
    CHECK_OK(ww_store_create(where, &config, &made));
    return made;
}

/* Rows with vectors, payloads, texts and sparse vectors. */
static void fill(ww_collection *c, int64_t first, int64_t count)
{
    static const uint32_t indices[] = {7, 4000000000u};
    static const float values[] = {1, 2};
    const ww_sparse_vector sparse = {2, indices, values};
    for (int64_t i = first; i < first + count; i++) {
        char id[24], payload[40], text[40];
        const char *ids = id, *payloads = payload, *texts = text;
        const float vector[DIM] = {1, (float)i, (float)(i % 7), 0.5f};
        ww_rows rows = ww_rows_default();
        snprintf(id, sizeof id, "r%lld", (long long)i);
        snprintf(payload, sizeof payload, "{\"n\":%lld}", (long long)i);
        snprintf(text, sizeof text, "word%lld fox", (long long)i);
        rows.count = 1, rows.dim = DIM, rows.vectors = vector, rows.ids = &ids, rows.payloads = &payloads;
        const ww_multivector multi = {2, 2, vector};
        rows.texts = &texts, rows.sparse = &sparse, rows.multi = &multi;
        CHECK_OK(ww_collection_upsert(c, &rows));
    }
}

static int setup(void **state)
{
    ww_store_config config = ww_store_config_default();
    config.synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("live.db"), device, &config, &store));
    ww_collection *docs = make_in(store, "do'cs", DIM), *other = make_in(store, "other", 2);
    fill(docs, 0, ROWS);
    const char *gone = "r5";
    CHECK_OK(ww_collection_remove(docs, &gone, 1));
    ww_ivf_config ivf = ww_ivf_config_default();
    ivf.nlist = 4;
    CHECK_OK(ww_collection_build_ivf(docs, &ivf));
    CHECK_OK(ww_store_index(store, "do'cs", "$.n"));
    CHECK_OK(ww_store_set_note(store, "do'cs", "place", "here"));
    ww_store_model model = ww_store_model_default();
    snprintf(model.name, sizeof model.name, "m");
    snprintf(model.fingerprint, sizeof model.fingerprint, "f");
    CHECK_OK(ww_store_set_model(store, "do'cs", &model));
    ww_collection_destroy(docs);
    ww_collection_destroy(other);
    return 0;
}

static int teardown(void **state)
{
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

static uint64_t digest_of(ww_store *where, const char *name)
{
    ww_collection *c = NULL;
    uint64_t digest = 0;
    CHECK_OK(ww_store_collection(where, name, &c));
    CHECK_OK(ww_collection_digest(c, &digest));
    ww_collection_destroy(c);
    return digest;
}

/* Searches by vector, word, sparse vector and index; a handle is as before. */
static void check_searches(ww_collection *c)
{
    static const float query[DIM] = {1, 7, 0, 0.5f};
    ww_results *found = NULL;
    ww_query q = ww_query_default();
    q.queries = query, q.query_count = 1, q.dim = DIM, q.k = 1, q.fetch = WW_FETCH_IDS;
    q.where = "payload->>'$.n' > 6";
    CHECK_OK(ww_collection_query(c, &q, &found));
    assert_string_equal(ww_results_id(found, 0, 0), "r7");
    assert_int_equal(ww_results_handles(found, 0)[0], 7);
    ww_results_destroy(found);
    q.nprobe = 2;
    CHECK_OK(ww_collection_query(c, &q, &found));
    ww_results_destroy(found);
    const char *words = "word9";
    ww_match match = ww_match_default();
    match.texts = &words, match.mode = WW_MATCH_TEXT;
    q = ww_query_default();
    q.match = &match, q.query_count = 1, q.dim = DIM, q.k = 2, q.fetch = WW_FETCH_IDS;
    CHECK_OK(ww_collection_query(c, &q, &found));
    assert_int_equal(ww_results_count(found, 0), 1);
    assert_string_equal(ww_results_id(found, 0, 0), "r9");
    ww_results_destroy(found);
}

static ww_store_copy copy_of(const char *const *names, const char *const *to, int64_t count)
{
    ww_store_copy copy = ww_store_copy_default();
    copy.names = names, copy.to = to, copy.count = count;
    return copy;
}

static ww_store *open_file(const char *name)
{
    ww_store *opened = NULL;
    CHECK_OK(ww_store_open(scratch_path(name), device, NULL, &opened));
    return opened;
}

static void a_copy_has_only_the_collections_that_were_named(void **state)
{
    (void)state;
    const char *const names[] = {"DO'CS"};
    const ww_store_copy copy = copy_of(names, NULL, 1);
    char text[WW_NOTE_BYTES];
    ww_store_model model = ww_store_model_default();
    ww_results *list = NULL;
    ww_collection *docs = NULL;
    CHECK_OK(ww_store_backup_collections(store, scratch_path("copy.db"), &copy));
    ww_store *made = open_file("copy.db");
    CHECK_OK(ww_store_check(made, NULL, NULL));
    CHECK_OK(ww_store_list(made, &list));
    assert_int_equal(ww_results_count(list, 0), 1);
    ww_results_destroy(list);
    assert_int_equal(digest_of(made, "do'cs"), digest_of(store, "do'cs"));
    CHECK_OK(ww_store_get_note(made, "do'cs", "place", text));
    assert_string_equal(text, "here");
    CHECK_OK(ww_store_get_model(made, "do'cs", &model));
    assert_string_equal(model.fingerprint, "f");
    CHECK_OK(ww_store_collection(made, "do'cs", &docs));
    check_searches(docs);
    fill(docs, ROWS, 3); /* and it can be written */
    CHECK_OK(ww_store_check(made, NULL, NULL));
    ww_collection_destroy(docs);
    ww_store_close(made);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_backup_collections(store, scratch_path("copy.db"), &copy));
}

static void a_collection_that_is_restored_keeps_its_handles_good(void **state)
{
    (void)state;
    const char *const names[] = {"do'cs"};
    ww_store_copy copy = copy_of(names, NULL, 1);
    char text[WW_NOTE_BYTES];
    ww_collection *docs = NULL;
    const uint64_t before = digest_of(store, "do'cs");
    CHECK_OK(ww_store_backup_collections(store, scratch_path("copy.db"), &copy));
    CHECK_OK(ww_store_collection(store, "do'cs", &docs));
    fill(docs, 3, 20);
    fill(docs, ROWS, 50);
    check_searches(docs);
    CHECK_OK(ww_store_set_note(store, "do'cs", "later", "gone after the restore"));
    copy.note_key = "restored", copy.note = "yes";
    CHECK_OK(ww_store_restore(store, scratch_path("copy.db"), &copy));
    assert_int_equal(ww_collection_count(docs), ROWS - 1);
    check_searches(docs);
    assert_int_equal(digest_of(store, "do'cs"), before);
    CHECK_OK(ww_store_get_note(store, "do'cs", "restored", text));
    CHECK_OK(ww_store_get_note(store, "do'cs", "place", text));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_note(store, "do'cs", "later", text));
    fill(docs, 3, 20);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_collection_destroy(docs);
    assert_int_equal(access(scratch_path("copy.db-wal"), F_OK), -1);
}

static void one_of_another_shape_is_replaced_and_others_are_dropped(void **state)
{
    (void)state;
    const char *const names[] = {"do'cs", NULL, NULL}, *const to[] = {"books", "other", "nobody"};
    const char *const all[] = {"do'cs"};
    ww_collection *books = make_in(store, "books", 9), *other = NULL, *opened = NULL;
    ww_store_copy copy = copy_of(all, NULL, 1);
    CHECK_OK(ww_store_backup_collections(store, scratch_path("copy.db"), &copy));
    copy = copy_of(names, to, 3);
    CHECK_OK(ww_store_restore(store, scratch_path("copy.db"), &copy));
    uint64_t digest = 0;
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_digest(books, &digest));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_collection(store, "other", &other));
    CHECK_OK(ww_store_collection(store, "books", &opened));
    check_searches(opened);
    ww_collection_destroy(opened);
    ww_collection_destroy(books);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_store *empty = open_file("empty.db"); /* into a file that has no tables yet */
    CHECK_OK(ww_store_restore(empty, scratch_path("copy.db"), &copy));
    assert_int_equal(digest_of(empty, "books"), digest_of(store, "do'cs"));
    ww_store_close(empty);
}

static void a_damaged_file_and_nonsense_change_nothing(void **state)
{
    (void)state;
    const char *const names[] = {"do'cs"}, *const missing[] = {"nobody"};
    const uint64_t before = digest_of(store, "do'cs");
    ww_store_copy copy = copy_of(names, NULL, 1), none = copy_of(missing, NULL, 1), null = copy_of(NULL, NULL, 1);
    size_t size = 0;
    CHECK_OK(ww_store_backup_collections(store, scratch_path("copy.db"), &copy));
    char *bytes = scratch_content(scratch_path("copy.db"), &size);
    for (size_t at = size / 4; at < size; at += 97)
        bytes[at] ^= 1;
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_restore(store, scratch_write("damaged.db", bytes, size), &copy));
    free(bytes);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_restore(store, scratch_write("text", "no database, but some text", 26), &copy));
    CHECK_FAILS(WW_IO_ERROR, ww_store_restore(store, scratch_path("missing.db"), &copy));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_restore(store, scratch_path("copy.db"), &none));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_backup_collections(store, scratch_path("second.db"), &none));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_restore(store, scratch_path("copy.db"), &null));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_restore(store, scratch_path("live.db"), &copy));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_restore(NULL, scratch_path("copy.db"), &copy));
    assert_int_equal(access(scratch_path("second.db"), F_OK), -1);
    assert_int_equal(digest_of(store, "do'cs"), before);
}

static int stop_at(int64_t done, int64_t total, void *user)
{
    int *left = user;
    (void)done, (void)total;
    return (*left)-- <= 0;
}

static void a_cancelled_copy_leaves_nothing(void **state)
{
    (void)state;
    const char *const names[] = {"do'cs"};
    const uint64_t before = digest_of(store, "do'cs");
    int left = 0;
    ww_store_copy copy = copy_of(names, NULL, 1);
    copy.progress = stop_at, copy.user = &left;
    CHECK_FAILS(WW_CANCELLED, ww_store_backup_collections(store, scratch_path("copy.db"), &copy));
    assert_int_equal(access(scratch_path("copy.db"), F_OK), -1);
    left = 1000000;
    CHECK_OK(ww_store_backup_collections(store, scratch_path("copy.db"), &copy));
    ww_status status = WW_CANCELLED;
    int turns = 0;
    for (int wait = 0; status == WW_CANCELLED; wait++, turns++) {
        left = wait;
        status = ww_store_restore(store, scratch_path("copy.db"), &copy);
        assert_int_equal(digest_of(store, "do'cs"), before);
    }
    assert_int_equal(status, WW_OK);
    assert_true(turns > 1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *const names[] = {"do'cs"}, *const to[] = {"again"};
    const uint64_t before = digest_of(store, "do'cs");
    ww_store_copy copy = copy_of(names, to, 1);
    ww_status status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status != WW_OK; n = fault_next(n)) {
        fail_allocation_at(n);
        status = ww_store_backup_collections(store, scratch_path("copy.db"), &copy);
        fail_allocation_at(0);
        if (status != WW_OK) {
            CHECK_FAILS(WW_OUT_OF_MEMORY, status);
            assert_int_equal(access(scratch_path("copy.db"), F_OK), -1);
        }
    }
    copy.names = to, copy.to = names;
    status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status != WW_OK; n = fault_next(n)) {
        fail_allocation_at(n);
        status = ww_store_restore(store, scratch_path("copy.db"), &copy);
        fail_allocation_at(0);
        if (status != WW_OK)
            CHECK_FAILS(WW_OUT_OF_MEMORY, status);
        assert_int_equal(digest_of(store, "do'cs"), before);
    }
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_copy_has_only_the_collections_that_were_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_collection_that_is_restored_keeps_its_handles_good, setup, teardown),
        cmocka_unit_test_setup_teardown(one_of_another_shape_is_replaced_and_others_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_file_and_nonsense_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_copy_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
