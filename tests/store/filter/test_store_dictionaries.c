/* Filters as dictionaries on whole collections: in memory, in a store and by a program that looks at the fields itself, all
 * three find the same rows. */
#include "store/store_support.h"

#include "support/devices.h"
#include "support/filters.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { ROWS = 700, DIM = 8, K = 20 };

/* The fields that a filter is compared with, as a program reads them. */
typedef struct book {
    int year;
    const char *lang;
    bool has_lang;
    char payload[160];
} book;

static book books[ROWS];

static void make_books(void)
{
    static const char *const langs[] = {"en", "de", "fr"};
    for (int i = 0; i < ROWS; i++) {
        book *b = &books[i];
        b->year = 1900 + i * 7 % 150;
        b->lang = langs[i % 3];
        b->has_lang = i % 5 != 0;
        if (b->has_lang)
            snprintf(b->payload, sizeof b->payload, "{\"year\": %d, \"lang\": \"%s\", \"tags\": [\"t%d\", %d]}", b->year,
                     b->lang, i % 4, i % 6);
        else
            snprintf(b->payload, sizeof b->payload, "{\"year\": %d.5, \"tags\": []}", b->year);
    }
}

static bool recent(const book *b)
{
    return b->year + (b->has_lang ? 0.0 : 0.5) > 2000;
}
static bool english_or_french(const book *b)
{
    return b->has_lang && strcmp(b->lang, "de") != 0;
}
static bool not_german(const book *b)
{
    return !b->has_lang || strcmp(b->lang, "de") != 0;
}
static bool either(const book *b)
{
    return b->year < 1920 || (b->has_lang && strcmp(b->lang, "fr") == 0);
}
static bool without_lang(const book *b)
{
    return !b->has_lang;
}
static bool nothing(const book *b)
{
    (void)b;
    return false;
}

static const struct {
    const char *filter;
    bool (*admits)(const book *b);
} cases[] = {
    {"{\"year\": {\"$gt\": 2000}}", recent},
    {"{\"lang\": {\"$in\": [\"en\", \"fr\"]}}", english_or_french},
    {"{\"lang\": {\"$ne\": \"de\"}}", not_german},
    {"{\"$or\": [{\"year\": {\"$lt\": 1920}}, {\"lang\": \"fr\"}]}", either},
    {"{\"lang\": null}", without_lang},
    {"{\"tags\": {\"$contains\": \"t9\"}}", nothing},
};

typedef struct pair {
    ww_device *device;
    ww_store *store;
    ww_collection *memory, *stored;
    char *path;
    float vectors[ROWS * DIM];
} pair;

static void pair_make(pair *p, ww_device *device)
{
    test_random random = {11};
    const char *payloads[ROWS];
    ww_store_config store_config = ww_store_config_default();
    ww_collection_config config = ww_collection_config_default();
    ww_rows rows = ww_rows_default();
    make_books();
    random_normals(&random, p->vectors, ROWS * DIM);
    for (int i = 0; i < ROWS; i++)
        payloads[i] = books[i].payload;
    p->device = device;
    p->path = strdup(scratch_path("books.db"));
    assert_non_null(p->path);
    remove(p->path);
    CHECK_OK(ww_store_open(p->path, device, &store_config, &p->store));
    config.dim = DIM;
    config.metric = WW_L2;
    config.name = "books";
    CHECK_OK(ww_store_create(p->store, &config, &p->stored));
    CHECK_OK(ww_collection_create(device, &config, &p->memory));
    rows.count = ROWS;
    rows.dim = DIM;
    rows.vectors = p->vectors;
    rows.payloads = payloads;
    CHECK_OK(ww_collection_add(p->stored, &rows));
    CHECK_OK(ww_collection_add(p->memory, &rows));
}

static void pair_free(pair *p)
{
    ww_collection_destroy(p->memory);
    ww_collection_destroy(p->stored);
    ww_store_close(p->store);
    free(p->path);
}

static ww_query query_of(const pair *p, const char *filter, int64_t count)
{
    ww_query query = ww_query_default();
    query.queries = p->vectors;
    query.query_count = count;
    query.dim = DIM;
    query.k = K;
    query.filter = filter_of(filter);
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    return query;
}

static void check_both(const pair *p, const ww_query *query, bool (*admits)(const book *b))
{
    ww_results *memory = NULL, *stored = NULL;
    CHECK_OK(ww_collection_query(p->memory, query, &memory));
    CHECK_OK(ww_collection_query(p->stored, query, &stored));
    assert_true(results_equal(memory, stored, DIM));
    int64_t admitted = 0;
    for (int i = 0; i < ROWS; i++)
        admitted += admits(&books[i]);
    for (int64_t q = 0; q < query->query_count; q++) {
        assert_int_equal(ww_results_count(memory, q), admitted < K ? admitted : K);
        for (int64_t i = 0; i < ww_results_count(memory, q); i++)
            assert_true(admits(&books[ww_results_rows(memory, q)[i]]));
    }
    ww_results_destroy(memory);
    ww_results_destroy(stored);
}

static void memory_and_store_admit_the_same_rows(void **state)
{
    pair p;
    pair_make(&p, *state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ww_query query = query_of(&p, cases[i].filter, 3);
        check_both(&p, &query, cases[i].admits);
    }
    pair_free(&p);
}

static bool recent_and_even(const book *b)
{
    return recent(b) && (b - books) % 2 == 0 && b - books < 500;
}

static void a_filter_and_a_mask_must_both_hold(void **state)
{
    pair p;
    uint64_t mask[ROWS / 64 + 1];
    pair_make(&p, *state);
    memset(mask, 0x55, sizeof mask);
    ww_query query = query_of(&p, cases[0].filter, 2);
    query.mask = mask;
    query.mask_rows = 500;
    check_both(&p, &query, recent_and_even);
    pair_free(&p);
}

static void a_filter_and_a_where_must_both_hold(void **state)
{
    pair p;
    ww_results *found = NULL;
    pair_make(&p, *state);
    const ww_parameter year = {.name = NULL, .type = WW_VALUE_INTEGER, .integer = 2010};
    ww_query query = query_of(&p, "{\"lang\": \"en\"}", 1);
    query.where = "payload->>'$.year' > ? -- years";
    query.parameters = &year;
    query.parameter_count = 1;
    CHECK_OK(ww_collection_query(p.stored, &query, &found));
    assert_true(ww_results_count(found, 0) > 0);
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        const book *b = &books[ww_results_rows(found, 0)[i]];
        assert_true(b->has_lang && strcmp(b->lang, "en") == 0 && b->year > 2010);
    }
    ww_results_destroy(found);
    query.where = "1) OR (1";
    query.parameter_count = 0;
    query.parameters = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(p.stored, &query, &found));
    assert_non_null(strstr(ww_error_message(), "closes nothing"));
    pair_free(&p);
}

static void a_filter_with_an_open_group_is_refused_in_both_even_without_rows(void **state)
{
    pair p;
    ww_filter *open = NULL;
    ww_results *found = NULL;
    pair_make(&p, *state);
    CHECK_OK(ww_collection_clear(p.memory));
    CHECK_OK(ww_collection_clear(p.stored));
    CHECK_OK(ww_filter_create(&open));
    CHECK_OK(ww_filter_begin(open, WW_FILTER_ANY, 0));
    ww_query query = query_of(&p, "{}", 1);
    query.filter = open;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(p.memory, &query, &found));
    assert_non_null(strstr(ww_error_message(), "1 open group"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(p.stored, &query, &found));
    assert_non_null(strstr(ww_error_message(), "1 open group"));
    ww_filter_destroy(open);
    pair_free(&p);
}

static bool third(const book *b)
{
    return b == &books[3] || b == &books[40];
}

/* The store keeps the rows of the last filters: another filter with equal conditions finds them, a changed one does not. */
static void a_filter_can_be_changed_and_used_again(void **state)
{
    static const char *const ids[] = {"40", "3"};
    pair p;
    ww_filter *changing = NULL;
    pair_make(&p, *state);
    ww_query query = query_of(&p, "{}", 1);
    CHECK_OK(ww_filter_create(&changing));
    query.filter = changing;
    CHECK_OK(ww_filter_add(changing, "year", WW_FILTER_GREATER, &(ww_filter_value){WW_FILTER_REAL, .real = 1900.5}, 1));
    for (int i = 0; i < 2; i++) {
        ww_results *found = NULL;
        CHECK_OK(ww_collection_query(p.stored, &query, &found));
        assert_int_equal(ww_results_count(found, 0), K);
        ww_results_destroy(found);
    }
    CHECK_OK(ww_filter_add_ids(changing, ids, 2));
    check_both(&p, &query, third);
    ww_filter_destroy(changing);
    pair_free(&p);
}

static ww_status read_and_query(ww_collection *c, ww_query *query, ww_results **found)
{
    static const char text[] = "{\"$or\": [{\"lang\": \"e\\u006e\"}, {\"tags\": {\"$in\": [1, \"t2\"]}}]}";
    ww_filter *filter = NULL;
    ww_status status = ww_filter_read(text, &filter);
    query->filter = filter;
    if (status == WW_OK)
        status = ww_collection_query(c, query, found);
    ww_filter_destroy(filter);
    return status;
}

static void every_allocation_of_a_filtered_search_may_fail(void **state)
{
    pair p;
    pair_make(&p, *state);
    ww_query query = query_of(&p, "{}", 2);
    for (int stored = 0; stored < 2; stored++) {
        ww_collection *c = stored ? p.stored : p.memory;
        ww_results *found = NULL;
        CHECK_OK(read_and_query(c, &query, &found)); /* opens the stored collection */
        ww_results_destroy(found);
        ww_status status = WW_OUT_OF_MEMORY;
        int64_t n = 0;
        while (status != WW_OK && n < 2000) {
            fail_allocation_at(++n);
            status = read_and_query(c, &query, &found);
            fail_allocation_at(0);
            assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        }
        assert_true(n > 5 && status == WW_OK);
        ww_results_destroy(found);
    }
    pair_free(&p);
}

#define SCRATCHED(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCHED(memory_and_store_admit_the_same_rows),
        SCRATCHED(a_filter_and_a_mask_must_both_hold),
        SCRATCHED(a_filter_and_a_where_must_both_hold),
        SCRATCHED(a_filter_with_an_open_group_is_refused_in_both_even_without_rows),
        SCRATCHED(a_filter_can_be_changed_and_used_again),
        SCRATCHED(every_allocation_of_a_filtered_search_may_fail),
    };
    return RUN_ON_EVERY_DEVICE("filters as dictionaries", tests);
}
