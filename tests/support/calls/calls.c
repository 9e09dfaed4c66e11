/* Every collection call that can fail, on a collection that uses all features. */
#include "support/calls/calls.h"

#include <stdlib.h>

#include <warpwave/tensor.h>

#include "device/group/group.h"
#include "vectors/collection.h"

enum { DIM = 9, BASE = 150, QUERIES = 5, K = 6 };

void collection_for_calls_fill(ww_collection *c)
{
    test_random random = {1};
    collection_fill(c, &random, 50, DIM, "a", 0);
    collection_fill(c, &random, 78, DIM, "a", 50);
    test_rows last = test_rows_make(&random, BASE - 128, DIM, "a", 128); /* starts a page, without payloads */
    last.rows.payloads = NULL;
    CHECK_OK(ww_collection_add(c, &last.rows));
    test_rows_free(&last);
    const char *gone[] = {"a3", "a70", "a71", "a149"};
    CHECK_OK(ww_collection_remove(c, gone, 4));
    test_rows again = test_rows_make(&random, 3, DIM, "a", 10); /* rows whose handles are out of order */
    CHECK_OK(ww_collection_upsert(c, &again.rows));
    test_rows_free(&again);
}

static ww_status range_of_some(ww_collection *c);
static ww_status search_with_a_tensor(ww_collection *c);

ww_collection *collection_for_calls_of(ww_device *device, ww_vector_type type)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = DIM;
    config.metric = WW_L2;
    config.type = type;
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(device, &config, &c));
    collection_for_calls_fill(c);
    CHECK_OK(range_of_some(c)); /* so that what a device loads with the first search of a kind does not look like a leak */
    CHECK_OK(search_with_a_tensor(c)); /* the same for the first tensor */
    return c;
}

ww_collection *collection_for_calls(ww_device *device)
{
    return collection_for_calls_of(device, WW_VECTOR_F32);
}

static ww_status write_rows(ww_collection *c, int64_t count, const char *prefix, int64_t first,
                            ww_status (*call)(ww_collection *, const ww_rows *))
{
    test_random random = {2};
    test_rows rows = test_rows_make(&random, count, DIM, prefix, first);
    const ww_status status = call(c, &rows.rows);
    test_rows_free(&rows);
    return status;
}

static ww_status add_one(ww_collection *c)
{
    return write_rows(c, 1, "one", 0, ww_collection_add);
}

static ww_status add_many(ww_collection *c)
{
    return write_rows(c, 300, "many", 0, ww_collection_add);
}

static ww_status upsert_within_the_room(ww_collection *c)
{
    return write_rows(c, 20, "a", 100, ww_collection_upsert);
}

static ww_status upsert_many(ww_collection *c)
{
    return write_rows(c, 200, "a", 80, ww_collection_upsert);
}

/* Makes a tensor on the collection's device; a group has no tensors, but its members do. */
static ww_status tensor_make(ww_collection *c, ww_dtype type, int64_t count, const float *numbers, ww_tensor *made)
{
    ww_tensor f32 = {0};
    ww_device *device = c->device->backend->member_id ? group_of(c->device)->members[0].device : c->device;
    ww_status status = ww_tensor_from_host(device, WW_F32, 2, (int64_t[]){count, DIM}, numbers, &f32);
    if (status == WW_OK)
        status = ww_tensor_cast(&f32, type, made);
    ww_tensor_release(&f32);
    return status;
}

static ww_status write_tensor(ww_collection *c, ww_dtype type, ww_status (*call)(ww_collection *, const ww_rows *))
{
    test_random random = {5};
    test_rows rows = test_rows_make(&random, 90, DIM, "a", 100);
    ww_tensor tensor = {0};
    ww_status status = tensor_make(c, type, 90, rows.vectors, &tensor);
    rows.rows.vectors = NULL;
    rows.rows.tensor = &tensor;
    if (status == WW_OK)
        status = call(c, &rows.rows);
    ww_tensor_release(&tensor);
    test_rows_free(&rows);
    return status;
}

static ww_status upsert_a_tensor(ww_collection *c)
{
    return write_tensor(c, WW_F32, ww_collection_upsert);
}

/* With the collection's own type. */
static ww_status upsert_a_typed_tensor(ww_collection *c)
{
    return write_tensor(c, c->type == WW_VECTOR_F16 ? WW_F16 : WW_F32, ww_collection_upsert);
}

static ww_status search_with_a_tensor(ww_collection *c)
{
    test_random random = {6};
    float vectors[QUERIES * DIM];
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    random_normals(&random, vectors, QUERIES * DIM);
    ww_tensor tensor = {0};
    ww_query search = ww_query_default();
    ww_status status = tensor_make(c, WW_F16, QUERIES, vectors, &tensor);
    search.query_tensor = &tensor;
    search.k = K;
    if (status == WW_OK)
        status = ww_collection_search(c, &search, rows, scores);
    ww_tensor_release(&tensor);
    return status;
}

static ww_status range_with_a_tensor(ww_collection *c)
{
    float vectors[QUERIES * DIM];
    random_normals(&(test_random){78}, vectors, (int64_t)QUERIES * DIM);
    ww_tensor tensor = {0};
    ww_results *results = NULL;
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    ww_status status = tensor_make(c, WW_F32, QUERIES, vectors, &tensor);
    range.query_tensor = &tensor;
    range.bound = 3.0f;
    range.limit = 1000;
    range.fetch = WW_FETCH_IDS;
    if (status == WW_OK)
        status = ww_collection_query(c, &range, &results);
    ww_results_destroy(results);
    ww_tensor_release(&tensor);
    return status;
}

/* Updates existing rows: new vectors, and payloads that are kept or new. */
static ww_status update_some(ww_collection *c, bool payloads)
{
    test_random random = {7};
    test_rows rows = test_rows_make(&random, 40, DIM, "a", 90);
    if (!payloads)
        rows.rows.payloads = NULL;
    const ww_status status = ww_collection_update(c, &rows.rows);
    test_rows_free(&rows);
    return status;
}

static ww_status update_vectors(ww_collection *c)
{
    return update_some(c, false);
}

static ww_status update_everything(ww_collection *c)
{
    return update_some(c, true);
}

static ww_status remove_some(ww_collection *c)
{
    const char *ids[] = {"a0", "a1", "a64", "a148", "a100"};
    return ww_collection_remove(c, ids, 5);
}

static ww_status compact(ww_collection *c)
{
    return ww_collection_compact(c, NULL, NULL);
}

static ww_status check(ww_collection *c)
{
    ww_damage_report report = ww_damage_report_default();
    return ww_collection_check(c, &report, NULL, NULL);
}

static ww_status reserve(ww_collection *c)
{
    return ww_collection_reserve(c, 1000);
}

static ww_status search_with(ww_collection *c, int64_t queries, const uint64_t *mask)
{
    test_random random = {3};
    float vectors[QUERIES * DIM];
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    random_normals(&random, vectors, QUERIES * DIM);
    ww_query search = ww_query_default();
    search.queries = vectors;
    search.query_count = queries;
    search.dim = DIM;
    search.k = K;
    search.mask = mask;
    search.mask_rows = mask ? 100 : 0;
    return ww_collection_search(c, &search, rows, scores);
}

static ww_status search_one(ww_collection *c)
{
    return search_with(c, 1, NULL);
}

static ww_status search_many(ww_collection *c)
{
    const uint64_t mask[2] = {0xf0f0f0f0ff00ff00u, 0x123456789u};
    return search_with(c, QUERIES, mask);
}

static ww_status query_everything(ww_collection *c)
{
    test_random random = {4};
    float vectors[QUERIES * DIM];
    random_normals(&random, vectors, QUERIES * DIM);
    ww_query query = ww_query_default();
    query.queries = vectors;
    query.query_count = QUERIES;
    query.dim = DIM;
    query.k = K;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    ww_results *results = NULL;
    const ww_status status = ww_collection_query(c, &query, &results);
    ww_results_destroy(results);
    return status;
}

/* A range of a few rows, or of all. */
static ww_status range_within(ww_collection *c, float bound)
{
    float queries[QUERIES * DIM];
    random_normals(&(test_random){77}, queries, (int64_t)QUERIES * DIM);
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = queries;
    range.query_count = QUERIES;
    range.dim = DIM;
    range.bound = bound;
    range.limit = 100000;
    range.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    ww_results *results = NULL;
    const ww_status status = ww_collection_query(c, &range, &results);
    ww_results_destroy(results);
    return status;
}

static ww_status range_of_some(ww_collection *c)
{
    return range_within(c, 3.0f);
}

static ww_status range_of_all(ww_collection *c)
{
    return range_within(c, 1e30f);
}

static ww_status get_everything(ww_collection *c)
{
    const char *ids[] = {"a1", "a64", "nobody", "a0", "a100", "a99", "a98", "a97", "a96", "a2"};
    ww_get get = ww_get_default();
    get.count = 10;
    get.ids = ids;
    get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    ww_results *results = NULL;
    const ww_status status = ww_collection_get(c, &get, &results);
    ww_results_destroy(results);
    return status;
}

/* Rows 128 and later have no place for payloads yet. */
static ww_status set_payloads(ww_collection *c)
{
    const char *ids[] = {"a4", "a5", "a130", "a131", "a2"};
    const char *payloads[] = {"[1, 2]", NULL, "3", "4", "5"};
    return ww_collection_set_payloads(c, ids, payloads, 5);
}

static ww_status select_some(ww_collection *c)
{
    ww_selection selection = ww_selection_default();
    ww_results *results = NULL;
    int64_t count = 0;
    ww_filter *filter = NULL;
    ww_status status = ww_filter_read("{\"n\": {\"$gt\": 1}}", &filter);
    selection.filter = filter;
    if (status == WW_OK)
        status = ww_collection_select(c, &selection, WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS, &results);
    ww_results_destroy(results);
    if (status == WW_OK)
        status = ww_collection_select_count(c, &selection, &count);
    ww_filter_destroy(filter);
    return status;
}

/* Pages of a cursor, before and after a write, which changes nothing here. */
static ww_status read_by_a_cursor(ww_collection *c)
{
    enum { PAGES = 4, PAGE = 45 };
    const char *nobody = "nobody";
    ww_cursor *cursor = NULL;
    ww_status status = ww_cursor_create(c, NULL, WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS, &cursor);
    for (int i = 0; i < PAGES && status == WW_OK; i++) {
        ww_results *page = NULL;
        status = ww_cursor_next(cursor, PAGE, &page);
        ww_results_destroy(page);
        if (i == 0 && status == WW_OK)
            status = ww_collection_discard(c, &nobody, 1, NULL);
    }
    ww_cursor_destroy(cursor);
    return status;
}

static ww_status select_and_remove(ww_collection *c)
{
    ww_selection selection = ww_selection_default();
    ww_filter *filter = NULL;
    ww_status status = ww_filter_read("{\"$not\": {\"n\": 1}}", &filter);
    selection.filter = filter;
    selection.first_handle = 100;
    selection.limit = 4;
    if (status == WW_OK)
        status = ww_collection_select_remove(c, &selection, NULL);
    ww_filter_destroy(filter);
    return status;
}

static ww_status select_and_set_payloads(ww_collection *c)
{
    ww_selection selection = ww_selection_default();
    selection.limit = 140;
    return ww_collection_select_payload(c, &selection, "{\"a\": [1]}", WW_PAYLOAD_SET, NULL);
}

static ww_status discard_some(ww_collection *c)
{
    const char *ids[] = {"a7", "nobody", "a66", "a3"};
    int64_t missing = -1;
    const ww_status status = ww_collection_discard(c, ids, 4, &missing);
    return status == WW_OK && missing != 2 ? WW_INTERNAL : status;
}

static ww_status vector(ww_collection *c)
{
    float values[DIM];
    return ww_collection_vector(c, 5, values);
}

static ww_status elements(ww_collection *c)
{
    float values[DIM];
    return ww_collection_elements(c, 5, values);
}

static ww_status lookup(ww_collection *c)
{
    char text[64];
    int64_t row = -1;
    ww_status status = ww_collection_find(c, "a6", &row);
    if (status == WW_OK)
        status = ww_collection_id(c, row, text, sizeof text, NULL);
    return status == WW_OK ? ww_collection_payload(c, row, text, sizeof text, NULL) : status;
}

static ww_status describe(ww_collection *c)
{
    ww_collection_info info = ww_collection_info_default();
    return ww_collection_describe(c, &info);
}

const collection_call collection_calls[] = {
    {"add one row", add_one, true, true, false},
    {"add many rows", add_many, true, true, true},
    {"upsert within the room there is", upsert_within_the_room, true, true, false},
    {"upsert many rows", upsert_many, true, true, false},
    {"upsert a tensor of f32", upsert_a_tensor, true, true, true},
    {"upsert a tensor of the rows' type", upsert_a_typed_tensor, true, true, true},
    {"search with a tensor", search_with_a_tensor, true, true, true},
    {"range search with a tensor", range_with_a_tensor, true, true, false},
    {"update vectors", update_vectors, true, true, false},
    {"update vectors and payloads", update_everything, true, true, false},
    {"remove", remove_some, true, true, false},
    {"compact", compact, true, true, true},
    {"reserve", reserve, true, true, false},
    {"search one query", search_one, false, true, true},
    {"search many queries with a mask", search_many, false, true, true},
    {"query with everything fetched", query_everything, true, true, true},
    {"range search", range_of_some, true, true, true},
    {"range search that finds all rows", range_of_all, true, true, false},
    {"get with everything fetched", get_everything, true, true, false},
    {"set payloads", set_payloads, true, false, false},
    {"discard", discard_some, true, true, false},
    {"vector", vector, false, true, true},
    {"elements", elements, false, true, true},
    {"check", check, true, true, true},
    {"find, id and payload", lookup, false, false, false},
    {"describe", describe, false, false, false},
    {"select and count", select_some, true, true, false},
    {"read by a cursor", read_by_a_cursor, true, true, false},
    {"select and set payloads", select_and_set_payloads, true, false, false},
    {"select and remove", select_and_remove, true, true, false},
    {"clear", ww_collection_clear, false, false, false},
    {NULL, NULL, false, false, false},
};
