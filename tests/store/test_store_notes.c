/* Notes: short texts that a program keeps with a collection, within its transactions. */
#include <string.h>

#include "store/store_support.h"
#include "support/check.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/scratch.h"

static ww_device *device;
static ww_store *store;
static char text[WW_NOTE_BYTES];

static ww_collection *make(const char *name)
{
    ww_collection_config config = ww_collection_config_default();
    ww_collection *made = NULL;
    config.name = name;
    config.dim = 1;
    CHECK_OK(ww_store_create(store, &config, &made));
    return made;
}

static int setup(void **state)
{
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("notes.db"), device, NULL, &store));
    ww_collection_destroy(make("docs"));
    return 0;
}

static int teardown(void **state)
{
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

static void a_note_is_kept_replaced_and_removed(void **state)
{
    (void)state;
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_note(store, "docs", "place", text));
    CHECK_OK(ww_store_set_note(store, "docs", "place", "here"));
    CHECK_OK(ww_store_set_note(store, "docs", "place", "there's"));
    CHECK_OK(ww_store_set_note(store, "docs", "other", ""));
    ww_store_close(store);
    CHECK_OK(ww_store_open(scratch_path("notes.db"), device, NULL, &store));
    CHECK_OK(ww_store_get_note(store, "DOCS", "place", text));
    assert_string_equal(text, "there's");
    CHECK_OK(ww_store_get_note(store, "docs", "other", text));
    assert_string_equal(text, "");
    CHECK_OK(ww_store_set_note(store, "docs", "place", NULL));
    CHECK_OK(ww_store_set_note(store, "docs", "place", NULL));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_note(store, "docs", "place", text));
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void a_note_belongs_to_the_transaction(void **state)
{
    (void)state;
    const float one = 1;
    ww_collection *docs = NULL;
    ww_rows rows = ww_rows_default();
    rows.count = 1, rows.dim = 1, rows.vectors = &one;
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(ww_collection_add(docs, &rows));
    CHECK_OK(ww_store_set_note(store, "docs", "rows", "1"));
    CHECK_OK(ww_store_get_note(store, "docs", "rows", text));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_set_note(store, "nobody", "rows", "1")); /* undone alone */
    CHECK_OK(ww_store_rollback(store));
    assert_int_equal(ww_collection_count(docs), 0);
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_note(store, "docs", "rows", text));
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(ww_collection_add(docs, &rows));
    CHECK_OK(ww_store_set_note(store, "docs", "rows", "1"));
    CHECK_OK(ww_store_commit(store));
    assert_int_equal(ww_collection_count(docs), 1);
    CHECK_OK(ww_store_get_note(store, "docs", "rows", text));
    assert_string_equal(text, "1");
    ww_collection_destroy(docs);
}

static void notes_go_with_their_collection(void **state)
{
    (void)state;
    CHECK_OK(ww_store_set_note(store, "docs", "place", "here"));
    CHECK_OK(ww_store_rename(store, "docs", "books"));
    CHECK_OK(ww_store_get_note(store, "books", "place", text));
    CHECK_OK(ww_store_backup(store, scratch_path("copy.db"), NULL, NULL));
    CHECK_OK(ww_store_drop(store, "books"));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_note(store, "books", "place", text));
    ww_collection_destroy(make("books"));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_note(store, "books", "place", text));
    ww_store_close(store);
    CHECK_OK(ww_store_open(scratch_path("copy.db"), device, NULL, &store));
    CHECK_OK(ww_store_get_note(store, "books", "place", text));
    assert_string_equal(text, "here");
}

static void nonsensical_arguments_are_refused(void **state)
{
    (void)state;
    char longer[WW_NOTE_BYTES + 1];
    ww_store *reading = NULL;
    ww_store_config config = ww_store_config_default();
    memset(longer, 'x', WW_NOTE_BYTES);
    longer[WW_NOTE_BYTES] = '\0';
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_note(NULL, "docs", "k", "v"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_note(store, NULL, "k", "v"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_note(store, "docs", NULL, "v"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_note(store, "docs", "k", longer));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_note(store, "docs", longer, "v"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_note(store, "docs", "k", "\xff"));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_set_note(store, "nobody", "k", "v"));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_note(store, "nobody", "k", text));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_get_note(store, "docs", "k", NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_get_note(NULL, "docs", "k", text));
    longer[WW_NOTE_BYTES - 1] = '\0';
    CHECK_OK(ww_store_set_note(store, "docs", "k", longer));
    CHECK_OK(ww_store_get_note(store, "docs", "k", text));
    assert_string_equal(text, longer);
    config.read_only = 1;
    CHECK_OK(ww_store_open(scratch_path("notes.db"), device, &config, &reading));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_note(reading, "docs", "k", "v"));
    CHECK_OK(ww_store_get_note(reading, "docs", "k", text));
    ww_store_close(reading);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const int64_t held = blocks_held();
    for (int64_t n = 1;; n++) {
        fail_allocation_at(n);
        ww_status status = ww_store_set_note(store, "docs", "k", "v");
        if (status == WW_OK)
            status = ww_store_get_note(store, "docs", "k", text);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        if (status == WW_OK) {
            fault_count("allocation", (long)n - 1);
            break;
        }
        assert_int_equal(status, WW_OUT_OF_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_note_is_kept_replaced_and_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_note_belongs_to_the_transaction, setup, teardown),
        cmocka_unit_test_setup_teardown(notes_go_with_their_collection, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsensical_arguments_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
