/* For tests of stores: a workload that can be interrupted anywhere, and a collection in memory to compare with. */
#ifndef TESTS_STORE_SUPPORT_H
#define TESTS_STORE_SUPPORT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/ivf.h>
#include <warpwave/store.h>

#include "support/collections.h"
#include "vectors/collection.h"

enum { WORK_DIM = 8, WORK_ROWS_MAX = 12, WORK_IDS = 60, WORK_ROWS_MANY = 70, WORK_QUERIES = 2 };

/* The workload builds indexes, too, and adds rows that have their lists split. Answers do not show them, but a check of the
 * store does. */
static bool work_indexed;

/* The store may not load the rows: they are searched in the file. */
static bool work_streams;

/* Builds an index every fourth time, if there are rows. */
static inline bool work_builds(ww_collection *collection, int64_t number, ww_status *status)
{
    ww_collection_info info = ww_collection_info_default();
    ww_ivf_config config = ww_ivf_config_default();
    if (!work_indexed || number % 4 != 1)
        return false;
    *status = ww_collection_describe(collection, &info);
    if (*status == WW_OK && info.rows_live == 0)
        return false;
    config.nlist = info.rows_live < 16 ? info.rows_live : 16;
    config.iterations = 2;
    if (*status == WW_OK)
        *status = ww_collection_build_ivf(collection, &config);
    return true;
}

/* Writes the first half of the rows and removes the others: in one transaction where rows are in a store. */
static inline ww_status work_replace(ww_collection *collection, ww_rows rows)
{
    const int64_t written = (rows.count + 1) / 2, rest = rows.count - written;
    ww_status status = WW_OK;
    rows.count = written;
    if (collection->operations->texts)
        rows.discard_ids = rows.ids + written, rows.discard_count = rest;
    else
        status = ww_collection_discard(collection, rows.ids + written, rest, NULL);
    return status == WW_OK ? ww_collection_upsert(collection, &rows) : status;
}

enum { WORK_ENTRIES = 6, WORK_TERMS = 20 };

/* The sparse vector of a row, which follows from its dense one; every fourth has none. */
typedef struct work_sparse {
    ww_sparse_vector vector;
    uint32_t indices[WORK_ENTRIES];
    float values[WORK_ENTRIES];
} work_sparse;

static inline void work_sparse_make(const float *dense, work_sparse *made)
{
    uint32_t bits;
    memcpy(&bits, dense, sizeof bits);
    made->vector = (ww_sparse_vector){bits % 4 == 0 ? 0 : WORK_ENTRIES, made->indices, made->values};
    for (uint32_t i = 0; i < WORK_ENTRIES; i++) {
        made->indices[i] = (bits / 4 + 3 * i) % WORK_TERMS; /* in any order, each once */
        made->values[i] = dense[i];
    }
}

/* Those of all rows of a batch, to free(). */
static inline void work_sparse_add(test_rows *rows, ww_sparse_vector **vectors, work_sparse **held)
{
    *held = malloc((size_t)rows->rows.count * sizeof **held);
    *vectors = malloc((size_t)rows->rows.count * sizeof **vectors);
    for (int64_t i = 0; i < rows->rows.count; i++) {
        work_sparse_make(rows->vectors + i * WORK_DIM, &(*held)[i]);
        (*vectors)[i] = (*held)[i].vector;
    }
    rows->rows.sparse = *vectors;
}

/* Operation `number` of a workload: always the same one, whatever was done before. It never fails because of its arguments. */
static inline ww_status work_do(ww_collection *collection, uint64_t seed, int64_t number)
{
    test_random random = {seed * 1000003 + (uint64_t)number};
    const uint64_t kind = random_below(&random, 20);
    /* Enough, in some operations, that a store inserts them together. */
    const int64_t count = 1 + (int64_t)random_below(&random, WORK_ROWS_MAX) + (kind == 8 ? WORK_ROWS_MANY : 0);
    const int64_t first = (int64_t)random_below(&random, WORK_IDS);
    ww_status built = WW_OK;
    if (work_builds(collection, number, &built))
        return built;
    test_rows rows = test_rows_make(&random, count, WORK_DIM, "id", first);
    ww_status status;
    for (int64_t i = 0; work_indexed && number % 4 == 3 && i < count * WORK_DIM; i++)
        rows.vectors[i] += 50.0f;
    if (collection->operations->texts) /* in a store, a row's payload is also its text */
        rows.rows.texts = rows.rows.payloads;
    ww_sparse_vector *vectors = NULL;
    work_sparse *held = NULL;
    if (collection->operations->texts)
        work_sparse_add(&rows, &vectors, &held);
    if (kind == 0) {
        status = ww_collection_clear(collection);
    } else if (kind == 1) {
        status = ww_collection_compact(collection, NULL, NULL);
    } else if (kind < 7) {
        status = ww_collection_discard(collection, rows.rows.ids, count, NULL);
    } else if (kind < 9) {
        rows.rows.ids = NULL; /* numbers of their own */
        status = ww_collection_add(collection, &rows.rows);
    } else if (kind < 12) {
        status = work_replace(collection, rows.rows);
    } else {
        status = ww_collection_upsert(collection, &rows.rows);
    }
    test_rows_free(&rows);
    free(vectors);
    free(held);
    return status;
}

static inline bool texts_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* All but the rows' numbers, which are a matter of where rows are kept. */
static inline bool results_equal(const ww_results *a, const ww_results *b, int32_t dim)
{
    if (ww_results_query_count(a) != ww_results_query_count(b))
        return false;
    for (int64_t q = 0; q < ww_results_query_count(a); q++) {
        if (ww_results_count(a, q) != ww_results_count(b, q) || ww_results_total(a, q) != ww_results_total(b, q))
            return false;
        for (int64_t i = 0; i < ww_results_count(a, q); i++)
            if (ww_results_handles(a, q)[i] != ww_results_handles(b, q)[i] ||
                memcmp(&ww_results_scores(a, q)[i], &ww_results_scores(b, q)[i], sizeof(float)) != 0 ||
                !texts_equal(ww_results_id(a, q, i), ww_results_id(b, q, i)) ||
                !texts_equal(ww_results_payload(a, q, i), ww_results_payload(b, q, i)) ||
                memcmp(ww_results_vector(a, q, i), ww_results_vector(b, q, i), (size_t)dim * sizeof(float)) != 0)
                return false;
    }
    return true;
}

/* Do both have the same rows in the same order, and answer queries with the same bits? */
static inline bool collections_equal(ww_collection *a, ww_collection *b)
{
    ww_collection *const both[2] = {a, b};
    ww_results *all[2] = {NULL, NULL}, *found[2] = {NULL, NULL};
    test_random random = {99};
    float queries[WORK_QUERIES * WORK_DIM];
    random_normals(&random, queries, WORK_QUERIES * WORK_DIM);
    for (int i = 0; i < 2; i++) {
        ww_get get = ww_get_default();
        get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
        CHECK_OK(ww_collection_get(both[i], &get, &all[i]));
        ww_query query = ww_query_default();
        query.queries = queries, query.query_count = WORK_QUERIES, query.dim = WORK_DIM, query.k = 10, query.fetch = get.fetch;
        CHECK_OK(ww_collection_query(both[i], &query, &found[i]));
    }
    const bool equal = results_equal(all[0], all[1], WORK_DIM) && results_equal(found[0], found[1], WORK_DIM);
    for (int i = 0; i < 2; i++) {
        ww_results_destroy(all[i]);
        ww_results_destroy(found[i]);
    }
    return equal;
}

/* Is the text of every row its payload, and is each found by a word of it? */
static inline bool texts_are_in_step(ww_collection *collection)
{
    ww_results *all = NULL;
    ww_get get = ww_get_default();
    bool equal = true;
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_PAYLOADS | WW_FETCH_TEXTS;
    CHECK_OK(ww_collection_get(collection, &get, &all));
    int64_t texts = 0;
    for (int64_t i = 0; i < ww_results_count(all, 0); i++) {
        texts += ww_results_text(all, 0, i) != NULL;
        equal = equal && texts_equal(ww_results_payload(all, 0, i), ww_results_text(all, 0, i));
    }
    for (int64_t i = 0; equal && texts > 0 && i < ww_results_count(all, 0); i++) {
        const char *text = ww_results_text(all, 0, i);
        ww_results *found = NULL;
        ww_match match = ww_match_default();
        ww_query query = ww_query_default();
        match.texts = &text, match.mode = WW_MATCH_TEXT;
        query.match = &match, query.query_count = 1, query.dim = WORK_DIM, query.k = WW_K_MAX;
        if (!text)
            continue;
        CHECK_OK(ww_collection_query(collection, &query, &found));
        bool has = false;
        for (int64_t j = 0; j < ww_results_count(found, 0); j++)
            has = has || ww_results_handles(found, 0)[j] == ww_results_handles(all, 0)[i];
        equal = has;
        ww_results_destroy(found);
    }
    ww_results_destroy(all);
    return equal;
}

/* Does every row have the sparse vector that follows from its dense one, and does a search find the rows that it should, with
 * their scores? */
static inline bool sparse_is_in_step(ww_collection *collection)
{
    ww_results *all = NULL, *found = NULL;
    ww_get get = ww_get_default();
    const uint32_t indices[] = {1, 7, 13, 19};
    const float values[] = {1.0f, -0.5f, 2.0f, 0.25f};
    const ww_sparse_vector asked = {4, indices, values};
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    int64_t hits = 0;
    bool equal = true;
    sparse.vectors = &asked;
    query.sparse = &sparse, query.query_count = 1, query.k = WW_K_MAX;
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_VECTORS | WW_FETCH_SPARSE;
    CHECK_OK(ww_collection_get(collection, &get, &all));
    CHECK_OK(ww_collection_query(collection, &query, &found));
    for (int64_t i = 0; i < ww_results_count(all, 0); i++) {
        work_sparse expected;
        ww_sparse_vector is;
        float own = 0.0f, score = 0.0f, same = 0.0f;
        int64_t common = 0, both = 0;
        work_sparse_make(ww_results_vector(all, 0, i), &expected);
        equal = equal && ww_results_sparse(all, 0, i, &is) == (expected.vector.count > 0) && is.count == expected.vector.count;
        CHECK_OK(ww_sparse_score(&asked, &expected.vector, &score, &common));
        CHECK_OK(ww_sparse_score(&is, &expected.vector, &own, &both));
        CHECK_OK(ww_sparse_score(&expected.vector, &expected.vector, &same, NULL));
        equal = equal && both == expected.vector.count && own == same;
        bool there = false;
        for (int64_t j = 0; j < ww_results_count(found, 0); j++)
            there = there || (ww_results_handles(found, 0)[j] == ww_results_handles(all, 0)[i] &&
                              ww_results_scores(found, 0)[j] == score);
        equal = equal && there == (common > 0);
        hits += common > 0;
    }
    equal = equal && hits == ww_results_count(found, 0);
    ww_results_destroy(all);
    ww_results_destroy(found);
    return equal;
}

static ww_synchronous work_synchronous; /* off for tests of other things */

/* SQL that makes of its file what a version without checksums would have written. */
#define WORK_MADE_OLD                                                                                                          \
    "DELETE FROM work_vectors WHERE place IN (SELECT place FROM work_removed);"                                                \
    "ALTER TABLE work_rows DROP COLUMN checksum; ALTER TABLE work_rows DROP COLUMN text_checksum;"                             \
    "ALTER TABLE work_vectors DROP COLUMN checksum; ALTER TABLE warpwave_collections DROP COLUMN digest;"                      \
    "UPDATE warpwave_collections SET format = format - 2;"

/* Opens the store and its collection "work", which is created if it does not exist. */
static inline ww_status work_open(const char *path, ww_device *device, ww_store **store, ww_collection **collection)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "work", config.dim = WORK_DIM, config.metric = WW_L2;
    ww_store_config how = ww_store_config_default();
    how.synchronous = work_synchronous;
    how.memory_bytes = work_streams;
    ww_status status = ww_store_open(path, device, &how, store);
    if (status == WW_OK)
        status = ww_store_collection(*store, "work", collection);
    if (status == WW_NOT_FOUND)
        status = ww_store_create(*store, &config, collection);
    return status;
}

static inline void work_close(ww_store *store, ww_collection *collection)
{
    ww_collection_destroy(collection);
    ww_store_close(store);
}

/* Makes of a closed store what a version without checksums would have written. */
static inline void work_make_old(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, WORK_MADE_OLD, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* The file must equal `model`, or `model` after operation `next`, whatever happened to the file. In the second case the
 * operation is done on the model, too. Returns the number of operations in the file. */
static inline int64_t work_verify(const char *path, ww_device *device, ww_collection *model, uint64_t seed, int64_t next)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(path, device, &store, &collection));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_true(texts_are_in_step(collection));
    assert_true(sparse_is_in_step(collection));
    bool equal = collections_equal(collection, model);
    if (!equal) {
        CHECK_OK(work_do(model, seed, next++));
        equal = collections_equal(collection, model);
    }
    work_close(store, collection);
    if (!equal)
        fail_msg("after operation %lld the file is neither as before nor as after it", (long long)next);
    return next;
}

#endif
