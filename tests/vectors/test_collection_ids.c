/* The table of ids from inside: crowded buckets, growth, removal, and the hash itself. */
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"
#include "support/memory.h"
#include "vectors/collection.h"
#include "vectors/ids/automatic_ids.h"

/* Random ids are added and removed around the table's full load, where buckets overflow into the next ones. In any order,
 * existing ids are found and others are not. */
static void crowded_buckets_lose_nothing(void **state)
{
    enum { IDS = 3000 };
    static float vectors[IDS];
    static bool there[IDS];
    static char texts[IDS][32];
    memset(there, 0, sizeof there);
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    const int steps = device_is_slow(*state) ? 40 : 400;
    test_random random = {1};
    for (int i = 0; i < IDS; i++)
        snprintf(texts[i], sizeof texts[i], "%s%d", i % 2 ? "k" : "a-longer-id-", i);
    for (int step = 0; step < steps; step++) {
        const char *in[200], *out[200];
        int in_count = 0, out_count = 0;
        const int first = (int)random_below(&random, IDS);
        for (int i = first; i < first + 100; i++) {
            const int n = i % IDS;
            if (there[n])
                out[out_count++] = texts[n];
            else
                in[in_count++] = texts[n];
            there[n] = !there[n];
        }
        ww_rows rows = ww_rows_default();
        rows.count = in_count;
        rows.dim = 1;
        rows.vectors = vectors;
        rows.ids = in;
        CHECK_OK(ww_collection_add(c, &rows));
        CHECK_OK(ww_collection_remove(c, out, out_count));
        if (step % 50 == 49)
            CHECK_OK(ww_collection_compact(c, NULL, NULL));
        for (int i = 0; step % 10 == 9 && i < IDS; i++) {
            int64_t row;
            CHECK_FAILS(there[i] ? WW_OK : WW_NOT_FOUND, ww_collection_find(c, texts[i], &row));
        }
    }
    ww_collection_destroy(c);
}

static void add_without_ids(ww_collection *c, const float *vectors, int64_t count)
{
    ww_rows rows = ww_rows_default();
    rows.count = count;
    rows.dim = 1;
    rows.vectors = vectors;
    CHECK_OK(ww_collection_add(c, &rows));
}

static ww_status add_one(ww_collection *c, const char *id)
{
    const float vector = 1.0f;
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = 1;
    rows.vectors = &vector;
    rows.ids = &id;
    return ww_collection_add(c, &rows);
}

/* Every row's number is its id, and no other text is one. */
static void check_row_numbers(ww_collection *c, int64_t count)
{
    static const char *const wrong[] = {"",    "01",         "00",         "-1",          "+1", "1 ",
                                        "0x1", "4294967295", "4294967296", "99999999999", "x"};
    int64_t row;
    for (int64_t i = 0; i < count; i++) {
        char text[32], id[WW_ID_BYTES_MAX + 1];
        snprintf(text, sizeof text, "%lld", (long long)i);
        CHECK_OK(ww_collection_find(c, text, &row));
        assert_int_equal(row, i);
        CHECK_OK(ww_collection_id(c, i, id, sizeof id, NULL));
        assert_string_equal(id, text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(c, wrong[i], &row));
}

static void rows_without_ids_are_found_by_number_and_store_none(void **state)
{
    enum { COUNT = 150 };
    static float vectors[COUNT];
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_without_ids(c, vectors, COUNT - 7);
    add_without_ids(c, vectors, 7);
    assert_int_equal(c->store.bytes_ids, 0);
    assert_int_equal(id_table_bytes(&c->ids), 0);
    check_row_numbers(c, COUNT);
    ww_collection_destroy(c);
}

/* The first id that is not a number makes the collection store all numbers; a failure of that changes no answer. */
static void numbers_and_other_ids_live_together(void **state)
{
    enum { COUNT = 150 };
    static float vectors[COUNT];
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    int64_t row;
    add_without_ids(c, vectors, COUNT);
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status != WW_OK; n++) {
        fail_allocation_at(n);
        status = collection_store_ids(c);
        fail_allocation_at(0);
        assert_true(status == WW_OK || (status == WW_OUT_OF_MEMORY && blocks_held() == held));
        check_row_numbers(c, COUNT);
    }
    CHECK_OK(add_one(c, "a name"));
    add_without_ids(c, vectors, 3);
    CHECK_OK(ww_collection_find(c, "a name", &row));
    assert_int_equal(row, COUNT);
    CHECK_OK(ww_collection_find(c, "152", &row));
    assert_int_equal(row, 152);
    ww_collection_destroy(c);
}

static void a_number_that_is_already_used_is_a_duplicate(void **state)
{
    enum { COUNT = 70 };
    static float vectors[COUNT];
    const char *seven = "7";
    int64_t row;
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_without_ids(c, vectors, COUNT);
    CHECK_FAILS(WW_DUPLICATE_ID, add_one(c, seven));
    CHECK_OK(ww_collection_remove(c, &seven, 1));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(c, seven, &row));
    CHECK_OK(add_one(c, seven));
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    CHECK_OK(ww_collection_find(c, "8", &row));
    assert_int_equal(row, 7);
    CHECK_OK(ww_collection_find(c, seven, &row));
    assert_int_equal(row, COUNT - 1);
    ww_collection_destroy(c);
}

/* After everything is out again, no bucket remembers that something passed it. */
static void an_emptied_table_is_clean(void **state)
{
    enum { COUNT = 2000 };
    static float vectors[COUNT];
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_without_ids(c, vectors, COUNT);
    CHECK_OK(collection_store_ids(c));
    uint64_t passed = 0;
    for (uint64_t b = 0; b < c->ids.bucket_count; b++)
        passed += c->ids.buckets[b].passed;
    assert_true(passed > 0);
    assert_int_equal(c->ids.entries, COUNT);
    assert_true(id_table_bytes(&c->ids) < COUNT * 7);
    for (int i = 0; i < COUNT; i++) {
        char text[32];
        const char *id = text;
        snprintf(text, sizeof text, "%d", i);
        CHECK_OK(ww_collection_remove(c, &id, 1));
    }
    assert_int_equal(c->ids.entries, 0);
    for (uint64_t b = 0; b < c->ids.bucket_count; b++) {
        assert_int_equal(c->ids.buckets[b].passed, 0);
        for (int i = 0; i < BUCKET_SLOTS; i++)
            assert_int_equal(c->ids.buckets[b].tags[i], 0);
    }
    ww_collection_destroy(c);
}

/* Ids that differ in one bit or one byte more spread over the buckets: none gets more than a few times its share. */
static void the_hash_spreads_similar_ids(void **state)
{
    (void)state;
    enum { BUCKETS = 256, COUNT = 25600 };
    static const char *const forms[] = {"%d", "user:%08d", "%d/a/rather/long/path/with/the/number/in/front", "%x-0000-0000",
                                        "%03o"};
    id_table table;
    id_table_create(&table);
    static const hash_key key = {.seed = 12345, .factor = 0x9fb21c651e98df25u}; /* so that a run is like the last */
    table.key = &key;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        int counts[BUCKETS] = {0};
        for (int i = 0; i < COUNT; i++) {
            char text[80];
            const char *form = forms[f];
            const int length = snprintf(text, sizeof text, form, i);
            counts[id_hash(&table, (id_text){text, (uint32_t)length}) >> 56]++;
        }
        for (int b = 0; b < BUCKETS; b++) /* 100 expected; 50 and 150 are five standard deviations away */
            assert_in_range(counts[b], 50, 150);
    }
    id_table_destroy(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crowded_buckets_lose_nothing),
        cmocka_unit_test(rows_without_ids_are_found_by_number_and_store_none),
        cmocka_unit_test(numbers_and_other_ids_live_together),
        cmocka_unit_test(a_number_that_is_already_used_is_a_duplicate),
        cmocka_unit_test(an_emptied_table_is_clean),
        cmocka_unit_test(the_hash_spreads_similar_ids),
    };
    return RUN_ON_EVERY_DEVICE("ids", tests);
}
