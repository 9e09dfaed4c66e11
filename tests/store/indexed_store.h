/* Shared by the tests of an index in a store: a collection in a file, and one in memory with the same rows. */
#ifndef TESTS_STORE_INDEXED_STORE_H
#define TESTS_STORE_INDEXED_STORE_H

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warpwave/ivf.h>
#include <warpwave/store.h>

#include "support/data/indexed.h"
#include "support/devices.h"
#include "support/scratch.h"
#include "vectors/ivf/ivf.h"

enum { DIM = 24, COUNT = 640, QUERIES = 4, K = 10, NLIST = 12, EXTRA = 300 };

static char *path;
static ww_device *cpu;

typedef struct scene {
    ww_store *store;
    ww_collection *stored;
    ww_collection *memory; /* the same rows */
    float rows[(COUNT + EXTRA) * DIM];
    float queries[QUERIES * DIM];
} scene;

static inline int setup(void **state)
{
    scratch_setup(state);
    path = strdup(scratch_path("ivf.db"));
    CHECK_OK(ww_device_open("cpu", &cpu));
    return 0;
}

static inline int teardown(void **state)
{
    ww_device_close(cpu);
    free(path);
    return scratch_teardown(state);
}

static inline void add(ww_collection *c, const float *rows, int64_t count)
{
    ww_rows some = ww_rows_default();
    some.count = count, some.dim = DIM, some.vectors = rows;
    CHECK_OK(ww_collection_add(c, &some));
}

static inline void open_store(ww_store **store)
{
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_store_open(path, cpu, &how, store));
}

static inline scene *scene_of(ww_metric metric, ww_vector_type type)
{
    test_random random = {3};
    scene *s = calloc(1, sizeof *s);
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs", config.dim = DIM, config.metric = metric, config.type = type;
    clustered_rows(&random, s->rows, COUNT + EXTRA, DIM, 9, type);
    clustered_rows(&random, s->queries, QUERIES, DIM, 9, type);
    memcpy(s->queries, s->rows + 77 * DIM, 2 * DIM * sizeof *s->queries);
    for (int64_t i = 0; i < (int64_t)EXTRA * DIM; i++) /* all near one row, so that its list is split */
        s->rows[COUNT * DIM + i] = s->rows[5 * DIM + i % DIM] + (float)random_below(&random, 9);
    open_store(&s->store);
    CHECK_OK(ww_store_create(s->store, &config, &s->stored));
    CHECK_OK(ww_collection_create(cpu, &config, &s->memory));
    for (int64_t done = 0; done < COUNT; done += 200) {
        const int64_t some = COUNT - done < 200 ? COUNT - done : 200;
        add(s->stored, s->rows + done * DIM, some);
        add(s->memory, s->rows + done * DIM, some);
    }
    return s;
}

static inline void reopen(scene *s)
{
    ww_collection_destroy(s->stored);
    ww_store_close(s->store);
    open_store(&s->store);
    CHECK_OK(ww_store_collection(s->store, "docs", &s->stored));
}

static inline void scene_free(scene *s)
{
    ww_collection_destroy(s->stored);
    ww_collection_destroy(s->memory);
    ww_store_close(s->store);
    free(s);
    unlink(path);
}

static inline scene *indexed_scene(ww_metric metric, ww_vector_type type)
{
    scene *s = scene_of(metric, type);
    index_build(s->stored, NLIST);
    index_build(s->memory, NLIST);
    return s;
}

/* ---- comparing ----------------------------------------------------------------------------------------------------------- */

static inline sqlite3_int64 ask(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const sqlite3_int64 number = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return number;
}

static inline void edit(const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

/* Checks that the lists and centroids of the file equal those of the collection in memory. No row was removed, so rows equal
 * places. */
static inline void check_tables(const scene *s)
{
    const ivf *index = s->memory->index;
    sqlite3 *db = NULL;
    sqlite3_stmt *centroids = NULL, *rows = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT centroid, farthest, nearest FROM docs_ivf_centroids JOIN docs_ivf_lists "
                                        "USING(list) ORDER BY list",
                                        -1, &centroids, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT place FROM docs_ivf_rows WHERE list = ?1 ORDER BY place", -1, &rows, NULL),
                     SQLITE_OK);
    for (int64_t l = 0; l < index->nlist; l++) {
        const ivf_list *list = &index->lists[l];
        assert_int_equal(sqlite3_step(centroids), SQLITE_ROW);
        assert_int_equal(sqlite3_column_bytes(centroids, 0), DIM * sizeof(float));
        assert_memory_equal(sqlite3_column_blob(centroids, 0), index->centroids + l * DIM, DIM * sizeof(float));
        if (list->count > 0)
            assert_true((float)sqlite3_column_double(centroids, 1) == list->farthest &&
                        (float)sqlite3_column_double(centroids, 2) == list->nearest);
        sqlite3_bind_int64(rows, 1, l);
        for (int64_t i = 0; i < list->count; i++) {
            assert_int_equal(sqlite3_step(rows), SQLITE_ROW);
            assert_int_equal(sqlite3_column_int64(rows, 0), list->rows[i]);
        }
        assert_int_equal(sqlite3_step(rows), SQLITE_DONE);
        sqlite3_reset(rows);
    }
    assert_int_equal(sqlite3_step(centroids), SQLITE_DONE);
    sqlite3_finalize(centroids);
    sqlite3_finalize(rows);
    sqlite3_close(db);
}

static inline void check_answers(const scene *s)
{
    const int64_t nlist = s->memory->index->nlist;
    const int64_t probes[] = {1, 3, nlist, 0};
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        ww_results *stored = query_lists(s->stored, s->queries, QUERIES, K, probes[i]);
        ww_results *memory = query_lists(s->memory, s->queries, QUERIES, K, probes[i]);
        check_same_results(stored, memory);
        for (int64_t q = 0; q < QUERIES; q++)
            assert_int_equal(ww_results_proven(stored, q), ww_results_proven(memory, q));
        ww_results_destroy(stored);
        ww_results_destroy(memory);
    }
}

/* Reading all lists is the exact search. */
static inline void check_exact(ww_collection *c, const float *queries)
{
    ww_ivf_info info = ww_ivf_info_default();
    CHECK_OK(ww_collection_describe_ivf(c, &info));
    ww_results *all = query_lists(c, queries, QUERIES, K, info.nlist), *exact = query_lists(c, queries, QUERIES, K, 0);
    check_same_results(all, exact);
    ww_results_destroy(all);
    ww_results_destroy(exact);
}

#endif
