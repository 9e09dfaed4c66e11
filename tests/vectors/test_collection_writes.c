/* Upsert, remove, compact and cancellation; and long random sequences of everything, against a plain model. */
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

enum { DIM = 5 };

static ww_rows one_row(const float *vector, const char *const *id, const char *const *payload)
{
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = DIM;
    rows.vectors = vector;
    rows.ids = id;
    rows.payloads = payload;
    return rows;
}

/* Two collections that were written to in different ways. */
static void check_same(ww_collection *a, ww_collection *b)
{
    snapshot one = snapshot_take(a), other = snapshot_take(b);
    assert_true(snapshot_equal(&one, &other));
    snapshot_free(&one);
    snapshot_free(&other);
}

static void update_changes_the_given_fields_and_keeps_the_rest(void **state)
{
    test_random random = {20};
    ww_collection *c = collection_make(*state, 8, WW_L2), *expected = collection_make(*state, 8, WW_L2);
    test_rows rows = test_rows_make(&random, 100, 8, "row", 0), new = test_rows_make(&random, 20, 8, "row", 40);
    CHECK_OK(ww_collection_add(c, &rows.rows));
    CHECK_OK(ww_collection_add(expected, &rows.rows));
    const char *payloads[20];
    for (int i = 0; i < 20; i++)
        payloads[i] = rows.payloads[40 + i];
    ww_rows with = new.rows, without = new.rows;
    with.payloads = payloads;
    without.payloads = NULL;
    CHECK_OK(ww_collection_update(c, &without)); /* new vectors, payloads that stay */
    CHECK_OK(ww_collection_upsert(expected, &with));
    check_same(c, expected);
    CHECK_OK(ww_collection_update(c, &new.rows)); /* both */
    CHECK_OK(ww_collection_upsert(expected, &new.rows));
    check_same(c, expected);
    ww_rows texts = with;
    texts.vectors = NULL;
    CHECK_OK(ww_collection_update(c, &texts)); /* payloads alone */
    CHECK_OK(ww_collection_set_payloads(expected, with.ids, payloads, 20));
    check_same(c, expected);
    ww_collection_destroy(c);
    ww_collection_destroy(expected);
    test_rows_free(&new);
    test_rows_free(&rows);
}

static void an_update_of_missing_rows_changes_nothing(void **state)
{
    test_random random = {21};
    ww_collection *c = collection_make(*state, 8, WW_L2);
    collection_fill(c, &random, 70, 8, "row", 0);
    test_rows new = test_rows_make(&random, 30, 8, "row", 50); /* row70 and later are not there */
    snapshot before = snapshot_take(c);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_update(c, &new.rows));
    assert_non_null(strstr(ww_error_message(), "'row70'"));
    ww_rows wrong = new.rows;
    wrong.ids = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_update(c, &wrong));
    wrong = new.rows;
    wrong.vectors = NULL;
    wrong.payloads = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_update(c, &wrong));
    wrong = new.rows;
    wrong.count = 0;
    CHECK_OK(ww_collection_update(c, &wrong));
    wrong.count = 2;
    strcpy(new.ids[1], "row50");
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_update(c, &wrong));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_update(c, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_update(NULL, &wrong));
    check_unchanged(c, &before);
    ww_collection_destroy(c);
    test_rows_free(&new);
}

static void upsert_replaces_existing_rows_and_adds_new_ones(void **state)
{
    test_random random = {1};
    ww_collection *c = collection_make(*state, DIM, WW_L2);
    collection_fill(c, &random, 100, DIM, "u", 0);
    test_rows rows = test_rows_make(&random, 80, DIM, "u", 60); /* 40 known, 40 new */
    CHECK_OK(ww_collection_upsert(c, &rows.rows));
    assert_int_equal(ww_collection_count(c), 140);
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.rows_removed, 40);
    for (int64_t i = 0; i < 80; i++) {
        int64_t row = -1;
        float vector[DIM];
        CHECK_OK(ww_collection_find(c, rows.ids[i], &row));
        assert_int_equal(row, 100 + i);
        CHECK_OK(ww_collection_vector(c, row, vector));
        assert_memory_equal(vector, rows.vectors + i * DIM, sizeof vector);
    }
    float vector[DIM];
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_vector(c, 60, vector));
    check_search(c, rows.vectors, 5, 0, 200, NULL, 0);
    test_rows_free(&rows);
    ww_collection_destroy(c);
}

static void a_removed_id_is_gone_and_can_be_added_again(void **state)
{
    test_random random = {2};
    ww_collection *c = collection_make(*state, DIM, WW_DOT);
    collection_fill(c, &random, 10, DIM, "r", 0);
    const char *ids[] = {"r3", "r7"};
    CHECK_OK(ww_collection_remove(c, ids, 2));
    assert_int_equal(ww_collection_count(c), 8);
    int64_t row = -5;
    float vector[DIM] = {1, 2, 3, 4, 5};
    char text[32];
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(c, "r3", &row));
    assert_int_equal(row, -5);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_vector(c, 3, vector));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_id(c, 3, text, sizeof text, NULL));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_payload(c, 3, text, sizeof text, NULL));
    check_search(c, vector, 1, 0, 10, NULL, 0);
    const ww_rows again = one_row(vector, ids, NULL);
    CHECK_OK(ww_collection_add(c, &again));
    CHECK_OK(ww_collection_find(c, "r3", &row));
    assert_int_equal(row, 10);
    check_search(c, vector, 1, 0, 10, NULL, 0);
    ww_collection_destroy(c);
}

static void removing_is_all_or_none(void **state)
{
    test_random random = {3};
    ww_collection *c = collection_make(*state, DIM, WW_DOT);
    collection_fill(c, &random, 200, DIM, "r", 0);
    const char *unknown[] = {"r1", "r199", "nobody", "r2"};
    const char *twice[] = {"r1", "r100", "r1"};
    const char *null[] = {"r1", NULL};
    const char *empty[] = {"r1", ""};
    snapshot before = snapshot_take(c);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_remove(c, unknown, 4));
    assert_non_null(strstr(ww_error_message(), "nobody"));
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_remove(c, twice, 3));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_remove(c, null, 2));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_remove(c, empty, 2));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_remove(c, NULL, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_remove(c, unknown, -1));
    check_unchanged(c, &before);
    ww_collection_destroy(c);
}

static void compacting_renumbers_live_rows_in_order(void **state)
{
    const int64_t count = device_is_slow(*state) ? 150 : 500;
    test_random random = {4};
    ww_collection *c = collection_make(*state, DIM, WW_COSINE);
    test_rows rows = test_rows_make(&random, count, DIM, "c", 0);
    for (int64_t done = 0; done < count; done += 50) {
        ww_rows part = rows.rows;
        part.count = 50;
        part.vectors += done * DIM;
        part.ids += done;
        part.payloads += done;
        CHECK_OK(ww_collection_add(c, &part));
    }
    for (int64_t i = 0; i < count; i++)
        if (i % 3 == 1 || (i >= 64 && i < 130)) /* a whole segment among them */
            CHECK_OK(ww_collection_remove(c, (const char *const *)&rows.ids[i], 1));
    const int64_t live = ww_collection_count(c);
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.rows_live, live);
    assert_int_equal(info.rows_removed, 0);
    assert_int_equal(info.rows_capacity, (live + 63) / 64 * 64);
    int64_t row = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % 3 == 1 || (i >= 64 && i < 130))
            continue;
        char text[64];
        float vector[DIM];
        int64_t found = -1;
        CHECK_OK(ww_collection_find(c, rows.ids[i], &found));
        assert_int_equal(found, row);
        CHECK_OK(ww_collection_vector(c, row, vector));
        assert_memory_equal(vector, rows.vectors + i * DIM, sizeof vector);
        CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
        assert_string_equal(text, rows.payloads[i] ? rows.payloads[i] : "");
        row++;
    }
    check_search(c, rows.vectors, 3, 0, 20, NULL, 0);
    snapshot before = snapshot_take(c);
    CHECK_OK(ww_collection_compact(c, NULL, NULL)); /* nothing to do */
    check_unchanged(c, &before);
    test_rows_free(&rows);
    ww_collection_destroy(c);
}

static void a_compacted_collection_is_like_one_made_of_the_live_rows(void **state)
{
    enum { COUNT = 130 };
    test_random random = {40};
    ww_collection *c = collection_make(*state, DIM, WW_L2);
    ww_collection *fresh = collection_make(*state, DIM, WW_L2);
    test_rows rows = test_rows_make(&random, COUNT, DIM, "f", 0);
    collection_fill(fresh, &random, 100, DIM, "x", 0);
    CHECK_OK(ww_collection_clear(fresh)); /* so that the handles are the same, too */
    CHECK_OK(ww_collection_add(fresh, &rows.rows));
    collection_fill(c, &random, 100, DIM, "x", 0);
    for (int64_t i = 0; i < COUNT; i += 65) {
        ww_rows part = rows.rows;
        part.count = 65;
        part.vectors += i * DIM;
        part.ids += i;
        part.payloads += i;
        CHECK_OK(ww_collection_add(c, &part));
    }
    for (int i = 0; i < 100; i++) {
        char text[32];
        const char *id = text;
        snprintf(text, sizeof text, "x%d", i);
        CHECK_OK(ww_collection_remove(c, &id, 1));
    }
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    snapshot expected = snapshot_take(fresh); /* with the figures of memory in use */
    check_unchanged(c, &expected);
    test_rows_free(&rows);
    ww_collection_destroy(fresh);
    ww_collection_destroy(c);
}

static void compacting_an_emptied_collection_leaves_an_empty_one(void **state)
{
    test_random random = {5};
    ww_collection *c = collection_make(*state, DIM, WW_DOT);
    snapshot empty = snapshot_take(c);
    collection_fill(c, &random, 1, DIM, "x", 0);
    const char *id = "x0";
    CHECK_OK(ww_collection_remove(c, &id, 1));
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    check_unchanged(c, &empty);
    collection_fill(c, &random, 1, DIM, "x", 0);
    assert_int_equal(ww_collection_count(c), 1);
    ww_collection_destroy(c);
}

/* Returns non-zero when `*user` calls have been made. */
static int cancel_after(int64_t done, int64_t total, void *user)
{
    assert_true(done >= 0 && done <= total);
    return --*(int *)user == 0;
}

static int expect_order(int64_t done, int64_t total, void *user)
{
    long long *last = user;
    assert_true(done >= *last && done <= total);
    *last = done;
    return 0;
}

static void a_cancelled_write_leaves_no_trace(void **state)
{
    test_random random = {6};
    ww_collection *c = collection_make(*state, DIM, WW_DOT);
    collection_fill(c, &random, 100, DIM, "a", 0);
    const char *gone[] = {"a5", "a50"};
    CHECK_OK(ww_collection_remove(c, gone, 2));
    test_rows rows = test_rows_make(&random, 200, DIM, "a", 90);
    rows.rows.progress = cancel_after;
    for (int after = 1; after <= 2; after++) { /* before the first row, and after the last */
        int countdown = after;
        rows.rows.progress_user = &countdown;
        snapshot before = snapshot_take(c);
        CHECK_FAILS(WW_CANCELLED, ww_collection_upsert(c, &rows.rows));
        check_unchanged(c, &before);
        countdown = after;
        before = snapshot_take(c);
        CHECK_FAILS(WW_CANCELLED, ww_collection_compact(c, cancel_after, &countdown));
        check_unchanged(c, &before);
    }
    long long last = -1;
    rows.rows.progress = expect_order;
    rows.rows.progress_user = &last;
    CHECK_OK(ww_collection_upsert(c, &rows.rows));
    assert_int_equal(last, 200);
    last = -1;
    CHECK_OK(ww_collection_compact(c, expect_order, &last));
    assert_int_equal(last, ww_collection_count(c));
    test_rows_free(&rows);
    ww_collection_destroy(c);
}

/* ---- a model: what is in the collection, by id, and in which order it came ----------------------------------------------- */

enum { MODEL_IDS = 120 };

typedef struct model {
    bool there[MODEL_IDS];
    float vectors[MODEL_IDS][DIM];
    bool has_payload[MODEL_IDS];
    int stamp[MODEL_IDS]; /* order of arrival */
    int clock;
    int live;
} model;

static const char *model_id(int number)
{
    static char texts[MODEL_IDS][80];
    /* of all lengths, many of which differ only at the end */
    snprintf(texts[number], sizeof texts[number], "%.*sid%d", number % 40, "-----------------------------------------", number);
    return texts[number];
}

static void model_put(model *m, int number, const float *vector, bool payload)
{
    m->live += !m->there[number];
    m->there[number] = true;
    memcpy(m->vectors[number], vector, sizeof m->vectors[number]);
    m->has_payload[number] = payload;
    m->stamp[number] = m->clock++;
}

static void model_compare(const model *m, ww_collection *c)
{
    int last_stamp = -1;
    int seen = 0;
    assert_int_equal(ww_collection_count(c), m->live);
    for (int64_t row = ww_collection_next(c, -1); row >= 0; row = ww_collection_next(c, row), seen++) {
        char text[WW_ID_BYTES_MAX + 1];
        float vector[DIM];
        int64_t found;
        CHECK_OK(ww_collection_id(c, row, text, sizeof text, NULL));
        const int number = atoi(strstr(text, "id") + 2);
        assert_string_equal(text, model_id(number));
        assert_true(m->there[number]);
        assert_true(m->stamp[number] > last_stamp);
        last_stamp = m->stamp[number];
        CHECK_OK(ww_collection_vector(c, row, vector));
        assert_memory_equal(vector, m->vectors[number], sizeof vector);
        CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
        assert_string_equal(text, m->has_payload[number] ? "[0]" : "");
        CHECK_OK(ww_collection_find(c, model_id(number), &found));
        assert_int_equal(found, row);
    }
    assert_int_equal(seen, m->live);
    for (int number = 0; number < MODEL_IDS; number++) {
        int64_t found;
        if (!m->there[number])
            CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(c, model_id(number), &found));
    }
}

/* A batch of up to 20 ids, all different. */
static void step_write(model *m, ww_collection *c, test_random *random, bool upsert)
{
    const int count = (int)random_below(random, 20) + 1;
    const int first = (int)random_below(random, MODEL_IDS);
    const char *ids[20], *payloads[20];
    float vectors[20 * DIM];
    bool known = false;
    random_normals(random, vectors, count * DIM);
    for (int i = 0; i < count; i++) {
        ids[i] = model_id((first + i * 7) % MODEL_IDS);
        payloads[i] = random_below(random, 2) ? "[0]" : NULL;
        known |= m->there[(first + i * 7) % MODEL_IDS];
    }
    ww_rows rows = one_row(vectors, ids, payloads);
    rows.count = count;
    if (!upsert && known) {
        CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_add(c, &rows));
        return;
    }
    CHECK_OK(upsert ? ww_collection_upsert(c, &rows) : ww_collection_add(c, &rows));
    for (int i = 0; i < count; i++)
        model_put(m, (first + i * 7) % MODEL_IDS, vectors + i * DIM, payloads[i] != NULL);
}

static void step_remove(model *m, ww_collection *c, test_random *random)
{
    const char *ids[5];
    int numbers[5];
    bool all = true;
    const int count = (int)random_below(random, 5) + 1;
    const int first = (int)random_below(random, MODEL_IDS);
    for (int i = 0; i < count; i++) {
        numbers[i] = (first + i * 11) % MODEL_IDS;
        ids[i] = model_id(numbers[i]);
        all &= m->there[numbers[i]];
    }
    if (!all) {
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_remove(c, ids, count));
        return;
    }
    CHECK_OK(ww_collection_remove(c, ids, count));
    for (int i = 0; i < count; i++)
        m->there[numbers[i]] = false;
    m->live -= count;
}

static void step(model *m, ww_collection *c, test_random *random)
{
    const uint64_t kind = random_below(random, 100);
    if (kind < 40) {
        step_write(m, c, random, true);
    } else if (kind < 55) {
        step_write(m, c, random, false);
    } else if (kind < 94) {
        step_remove(m, c, random);
    } else if (kind < 97) {
        CHECK_OK(ww_collection_compact(c, NULL, NULL));
    } else if (kind < 99) {
        CHECK_OK(ww_collection_reserve(c, (int64_t)random_below(random, 300)));
    } else {
        CHECK_OK(ww_collection_clear(c));
        *m = (model){0};
    }
}

static void any_sequence_of_writes_agrees_with_a_model(void **state)
{
    const int steps = device_is_slow(*state) ? 60 : 600;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        test_random random = {seed * 77};
        static model m;
        m = (model){0};
        ww_collection *c = collection_make(*state, DIM, (ww_metric)(seed % 3));
        for (int i = 0; i < steps; i++) {
            float query[DIM];
            step(&m, c, &random);
            random_normals(&random, query, DIM);
            if (i % 10 == 0) {
                model_compare(&m, c);
                check_search(c, query, 1, 0, 25, NULL, 0);
            }
        }
        ww_collection_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_changes_the_given_fields_and_keeps_the_rest),
        cmocka_unit_test(an_update_of_missing_rows_changes_nothing),
        cmocka_unit_test(upsert_replaces_existing_rows_and_adds_new_ones),
        cmocka_unit_test(a_removed_id_is_gone_and_can_be_added_again),
        cmocka_unit_test(removing_is_all_or_none),
        cmocka_unit_test(compacting_renumbers_live_rows_in_order),
        cmocka_unit_test(a_compacted_collection_is_like_one_made_of_the_live_rows),
        cmocka_unit_test(compacting_an_emptied_collection_leaves_an_empty_one),
        cmocka_unit_test(a_cancelled_write_leaves_no_trace),
        cmocka_unit_test(any_sequence_of_writes_agrees_with_a_model),
    };
    return RUN_ON_EVERY_DEVICE("collection writes", tests);
}
