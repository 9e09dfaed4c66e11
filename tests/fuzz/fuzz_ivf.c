/* Any values in the tables of an index: the store is opened, searched by the index, written to, checked and repaired. Every
 * fault in the tables is a status, and exact searches are unaffected.
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave.h>
#include <warpwave/ivf.h>
#include <warpwave/store.h>

#include "fuzz/storing.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { DIM = 4, ROWS = 320, K = 5, QUERIES = 3 };

static ww_device *device;
static float rows[ROWS * DIM];
static char *whole; /* the original file */
static size_t whole_size;
static int64_t exact_rows[QUERIES * K];
static float exact_scores[QUERIES * K];

static void must(int condition)
{
    if (!condition)
        abort();
}

static ww_store *store_open(void)
{
    ww_store *store = NULL;
    ww_store_config config = ww_store_config_default();
    config.synchronous = WW_SYNCHRONOUS_OFF;
    config.busy_ms = 0;
    must(ww_store_open(storing_path, device, &config, &store) == WW_OK);
    return store;
}

static ww_query query_of(void)
{
    ww_query query = ww_query_default();
    query.queries = rows, query.query_count = QUERIES, query.dim = DIM, query.k = K;
    return query;
}

static void make(void)
{
    ww_collection *c = NULL;
    ww_ivf_config index = ww_ivf_config_default();
    ww_rows added = ww_rows_default();
    ww_collection_config config = ww_collection_config_default();
    storing_begin("ivf");
    must(ww_device_open("cpu", &device) == WW_OK);
    for (int i = 0; i < ROWS * DIM; i++)
        rows[i] = (float)(i / DIM % 8 * 20 + i * 7 % 11);
    storing_remove();
    ww_store *store = store_open();
    config.name = "docs", config.dim = DIM, config.metric = WW_L2;
    added.count = ROWS, added.dim = DIM, added.vectors = rows;
    index.nlist = 8, index.iterations = 3;
    must(ww_store_create(store, &config, &c) == WW_OK && ww_collection_add(c, &added) == WW_OK);
    must(ww_collection_build_ivf(c, &index) == WW_OK && ww_collection_calibrate(c, NULL) == WW_OK);
    const ww_query query = query_of();
    must(ww_collection_search(c, &query, exact_rows, exact_scores) == WW_OK);
    ww_collection_destroy(c);
    ww_store_close(store);
    FILE *file = fopen(storing_path, "rb");
    must(file && fseek(file, 0, SEEK_END) == 0);
    whole_size = (size_t)ftell(file);
    whole = malloc(whole_size);
    must(whole && fseek(file, 0, SEEK_SET) == 0 && fread(whole, 1, whole_size, file) == whole_size);
    fclose(file);
}

/* The value of an edit: a small or a large integer, a float, NULL, a text or a blob. */
static void bind(sqlite3_stmt *s, const uint8_t *bytes, size_t size)
{
    double real;
    int64_t integer;
    memcpy(&real, bytes, sizeof real);
    memcpy(&integer, bytes, sizeof integer);
    switch (bytes[0] % 6) {
    case 0:
        sqlite3_bind_int64(s, 1, bytes[1]);
        break;
    case 1:
        sqlite3_bind_int64(s, 1, integer);
        break;
    case 2:
        sqlite3_bind_double(s, 1, real);
        break;
    case 3:
        sqlite3_bind_null(s, 1);
        break;
    case 4:
        sqlite3_bind_text(s, 1, (const char *)bytes, (int)size, SQLITE_STATIC);
        break;
    default:
        sqlite3_bind_blob(s, 1, bytes, (int)(size < 16 ? size : 16), SQLITE_STATIC);
        break;
    }
}

static void edit(const uint8_t *bytes, size_t size)
{
    static const char *const statements[] = {
        "UPDATE docs_ivf SET built = ?1",
        "UPDATE docs_ivf SET changed = ?1",
        "UPDATE docs_ivf SET version = ?1",
        "UPDATE docs_ivf SET nlist = ?1",
        "UPDATE docs_ivf SET loss = ?1",
        "UPDATE docs_ivf SET rows_added = ?1",
        "UPDATE docs_ivf SET first_place = ?1",
        "UPDATE docs_ivf SET calibration_k = ?1",
        "UPDATE docs_ivf SET calibration_rows_added = ?1",
        "UPDATE docs_ivf_lists SET rows = ?1 WHERE list = 3",
        "UPDATE docs_ivf_lists SET rows = rows + 1, changed = ?1 WHERE list = 2",
        "UPDATE docs_ivf_lists SET farthest = ?1 WHERE list = 3",
        "UPDATE docs_ivf_lists SET nearest = ?1 WHERE list = 4",
        "UPDATE docs_ivf_lists SET unbounded = ?1, was_split = ?1",
        "UPDATE docs_ivf_lists SET equal_rows = ?1",
        "UPDATE docs_ivf_lists SET changed = ?1",
        "UPDATE OR IGNORE docs_ivf_lists SET list = ?1 WHERE list = 7 AND typeof(?1) = 'integer'",
        "UPDATE docs_ivf_centroids SET centroid = ?1 WHERE list = 1",
        "UPDATE docs_ivf_centroids SET centroid = (SELECT centroid FROM docs_ivf_centroids WHERE list = ?1) WHERE list = 5",
        "UPDATE docs_ivf_rows SET list = ?1 WHERE place = 9",
        "UPDATE docs_ivf_rows SET list = 1 WHERE place % 8 = ?1",
        "UPDATE OR IGNORE docs_ivf_rows SET place = ?1 WHERE place = 10 AND typeof(?1) = 'integer'",
        "DELETE FROM docs_ivf_rows WHERE place = ?1",
        "UPDATE docs_ivf_rules SET nprobe = ?1",
        "UPDATE docs_ivf_rules SET factor = ?1",
        "DELETE FROM docs_ivf_lists WHERE list = ?1",
        "DELETE FROM docs_ivf_centroids WHERE list >= ?1",
        "INSERT INTO docs_ivf SELECT * FROM docs_ivf WHERE ?1",
        "DELETE FROM docs_ivf WHERE ?1",
        "UPDATE docs_ivf SET calibration_rows = ?1",
        "UPDATE docs_ivf SET calibration_time = ?1",
    };
    sqlite3 *db = NULL;
    must(sqlite3_open(storing_path, &db) == SQLITE_OK);
    must(sqlite3_exec(db, "PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL) == SQLITE_OK);
    for (; size >= 9; bytes += 9, size -= 9) {
        sqlite3_stmt *s = NULL;
        must(sqlite3_prepare_v2(db, statements[bytes[0] % (sizeof statements / sizeof *statements)], -1, &s, NULL) ==
             SQLITE_OK);
        bind(s, bytes + 1, 8);
        (void)sqlite3_step(s);
        sqlite3_finalize(s);
    }
    must(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

/* The rows are unchanged, so an exact search must be, too. */
static void check_exact(ww_collection *c)
{
    int64_t found[QUERIES * K];
    float scores[QUERIES * K];
    const ww_query query = query_of();
    must(ww_collection_search(c, &query, found, scores) == WW_OK);
    must(memcmp(found, exact_rows, sizeof found) == 0 && memcmp(scores, exact_scores, sizeof scores) == 0);
}

static void use(ww_store *store, ww_collection *c)
{
    ww_ivf_info info = ww_ivf_info_default();
    ww_query query = query_of();
    ww_results *results = NULL;
    (void)ww_collection_describe_ivf(c, &info);
    query.nprobe = 2;
    (void)ww_collection_query(c, &query, &results);
    ww_results_destroy(results);
    results = NULL;
    query.nprobe = 0, query.recall = 0.9f;
    (void)ww_collection_query(c, &query, &results);
    ww_results_destroy(results);
    results = NULL;
    (void)ww_store_check(store, NULL, NULL);
    check_exact(c);
    float same[100 * DIM];
    for (int i = 0; i < 100 * DIM; i++)
        same[i] = 300.0f + (float)(i % 7); /* a list is split */
    ww_rows added = ww_rows_default();
    added.count = 100, added.dim = DIM, added.vectors = same;
    (void)ww_collection_add(c, &added);
    char texts[ROWS][8];
    const char *ids[ROWS];
    int64_t count = 0;
    for (int i = 0; i < ROWS; i++) { /* leaves tiny lists, which are merged */
        snprintf(texts[i], sizeof texts[i], "%d", i);
        if (i % 8 == 5 || (i % 8 == 2 && i > 8))
            ids[count++] = texts[i];
    }
    (void)ww_collection_discard(c, ids, count, NULL);
    (void)ww_collection_compact(c, NULL, NULL);
    query.nprobe = 2, query.recall = 0.0f;
    (void)ww_collection_query(c, &query, &results);
    ww_results_destroy(results);
    (void)ww_store_check(store, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (!device)
        make();
    storing_remove();
    FILE *file = fopen(storing_path, "wb");
    must(file && fwrite(whole, 1, whole_size, file) == whole_size && fclose(file) == 0);
    edit(bytes, size);
    ww_collection *c = NULL;
    ww_store *store = store_open();
    must(ww_store_collection(store, "docs", &c) == WW_OK);
    check_exact(c);
    use(store, c);
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = 4, config.iterations = 1;
    must(ww_collection_build_ivf(c, &config) == WW_OK); /* repairs everything */
    must(ww_store_check(store, NULL, NULL) == WW_OK);
    ww_collection_destroy(c);
    ww_store_close(store);
    storing_remove();
    return 0;
}
