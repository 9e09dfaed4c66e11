/* What a store costs beside a collection in memory and beside bare SQLite.
 *
 *     build/store_figures ROWS.npy FOLDER [ROWS_MAX]
 *
 * Adds the rows to a store in FOLDER in one call, and the same bytes to the same tables by SQLite alone; adds rows one by one
 * in both ways; opens the store anew and times its first answer; searches it and a collection in memory; removes nine rows of
 * ten and compacts. Times are medians of a few runs where a run can be repeated. Prints markdown.
 */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <warpwave/files.h>
#include <warpwave/store.h>

#include "measure.h"

enum { SINGLES = 300, QUERY_RUNS = 101, PATH_BYTES = 4096 };

typedef struct bench {
    ww_device *device;
    float *rows;
    int64_t count, dim;
    char **ids, **payloads;
    char path[PATH_BYTES], bare[PATH_BYTES];
} bench;

static void check_sql(sqlite3 *db, int code, const char *what)
{
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW)
        return;
    fprintf(stderr, "store_figures: %s: %s\n", what, sqlite3_errmsg(db));
    exit(1);
}

static int64_t file_bytes(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? (int64_t)facts.st_size : 0;
}

static void remove_store(const char *path)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char name[PATH_BYTES + 8];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        (void)unlink(name);
    }
}

/* Resident bytes of this process. */
static int64_t resident(void)
{
    long pages = 0, ignored = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &ignored, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static void load(bench *b, const char *path, int64_t rows_max)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    check(ww_matrix_open(path, &matrix), "opening the rows");
    check(ww_matrix_describe(matrix, &info), "the rows");
    b->count = info.rows < rows_max ? info.rows : rows_max;
    b->dim = info.dim;
    b->rows = malloc((size_t)(b->count * b->dim) * sizeof(float));
    b->ids = calloc((size_t)b->count, sizeof *b->ids);
    b->payloads = calloc((size_t)b->count, sizeof *b->payloads);
    if (!b->rows || !b->ids || !b->payloads)
        exit(1);
    check(ww_matrix_read_f32(matrix, 0, b->count, b->rows), "reading the rows");
    ww_matrix_close(matrix);
    for (int64_t i = 0; i < b->count; i++) {
        b->ids[i] = malloc(24);
        b->payloads[i] = malloc(64);
        if (!b->ids[i] || !b->payloads[i])
            exit(1);
        snprintf(b->ids[i], 24, "row-%lld", (long long)i);
        snprintf(b->payloads[i], 64, "{\"bucket\":%lld,\"n\":%lld}", (long long)(i % 100), (long long)i);
    }
}

/* Bytes of vectors, ids and payloads. */
static int64_t bytes_of(const bench *b, int64_t stride)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < b->count; i += stride)
        bytes += b->dim * (int64_t)sizeof(float) + (int64_t)strlen(b->ids[i]) + (int64_t)strlen(b->payloads[i]);
    return bytes;
}

static ww_rows some_rows(const bench *b, int64_t first, int64_t count)
{
    ww_rows rows = ww_rows_default();
    rows.count = count;
    rows.dim = (int32_t)b->dim;
    rows.vectors = b->rows + first * b->dim;
    rows.ids = (const char *const *)b->ids + first;
    rows.payloads = (const char *const *)b->payloads + first;
    return rows;
}

static ww_store *open_store(const bench *b)
{
    ww_store *store = NULL;
    check(ww_store_open(b->path, b->device, NULL, &store), "opening the store");
    return store;
}

static ww_collection *make_collection(const bench *b, ww_store *store, const char *name)
{
    ww_collection_config config = ww_collection_config_default();
    ww_collection *collection = NULL;
    config.name = name;
    config.dim = (int32_t)b->dim;
    config.metric = WW_L2;
    if (store)
        check(ww_store_create(store, &config, &collection), "making the collection");
    else
        check(ww_collection_create(b->device, &config, &collection), "making the collection");
    return collection;
}

/* ---- bare SQLite --------------------------------------------------------------------------------------------------------- */

typedef struct bare {
    sqlite3 *db;
    sqlite3_stmt *row, *vector;
} bare;

/* The tables of a store's collection, read from a store that has one, so that they are the same. */
static bare bare_open(const bench *b)
{
    bare s = {0};
    sqlite3 *store = NULL;
    sqlite3_stmt *tables = NULL;
    char pragma[64];
    check_sql(NULL, sqlite3_open(b->path, &store), "the store's tables");
    check_sql(s.db, sqlite3_open(b->bare, &s.db), "bare SQLite");
    check_sql(store, sqlite3_prepare_v2(store, "PRAGMA page_size", -1, &tables, NULL), "the page size");
    check_sql(store, sqlite3_step(tables), "the page size");
    snprintf(pragma, sizeof pragma, "PRAGMA page_size = %d", sqlite3_column_int(tables, 0));
    sqlite3_finalize(tables);
    check_sql(s.db, sqlite3_exec(s.db, pragma, NULL, NULL, NULL), "the page size");
    check_sql(s.db, sqlite3_exec(s.db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", NULL, NULL, NULL),
              "the journal");
    check_sql(store,
              sqlite3_prepare_v2(store,
                                 "SELECT sql FROM sqlite_schema WHERE name IN ('docs_rows', 'docs_vectors') AND sql NOTNULL",
                                 -1, &tables, NULL),
              "the tables");
    while (sqlite3_step(tables) == SQLITE_ROW)
        check_sql(s.db, sqlite3_exec(s.db, (const char *)sqlite3_column_text(tables, 0), NULL, NULL, NULL), "the tables");
    sqlite3_finalize(tables);
    sqlite3_close(store);
    check_sql(
        s.db,
        sqlite3_prepare_v2(s.db, "INSERT INTO docs_rows(handle, id, payload, place) VALUES (?1, ?2, ?3, ?1)", -1, &s.row, NULL),
        "a row");
    check_sql(
        s.db,
        sqlite3_prepare_v2(s.db, "INSERT INTO docs_vectors(place, handle, vector) VALUES (?1, ?1, ?2)", -1, &s.vector, NULL),
        "a vector");
    return s;
}

static void bare_add(const bench *b, bare *s, int64_t i, int64_t handle)
{
    sqlite3_bind_int64(s->row, 1, handle);
    sqlite3_bind_text(s->row, 2, b->ids[i], -1, SQLITE_STATIC);
    sqlite3_bind_text(s->row, 3, b->payloads[i], -1, SQLITE_STATIC);
    check_sql(s->db, sqlite3_step(s->row), "a row");
    sqlite3_reset(s->row);
    sqlite3_bind_int64(s->vector, 1, handle);
    sqlite3_bind_blob64(s->vector, 2, b->rows + i * b->dim, (sqlite3_uint64)b->dim * sizeof(float), SQLITE_STATIC);
    check_sql(s->db, sqlite3_step(s->vector), "a vector");
    sqlite3_reset(s->vector);
}

static void bare_close(bare *s)
{
    sqlite3_finalize(s->row);
    sqlite3_finalize(s->vector);
    sqlite3_close(s->db);
}

/* ---- figures ------------------------------------------------------------------------------------------------------------- */

/* All but the last SINGLES rows in one write, then those one by one. */
static void adding(const bench *b)
{
    const int64_t bulk = b->count - SINGLES;
    remove_store(b->path);
    remove_store(b->bare);
    ww_store *store = open_store(b);
    ww_collection *docs = make_collection(b, store, "docs");
    ww_rows rows = some_rows(b, 0, bulk);
    double start = seconds_now();
    check(ww_collection_add(docs, &rows), "adding");
    const double ours = seconds_now() - start;
    start = seconds_now();
    for (int64_t i = bulk; i < b->count; i++) {
        rows = some_rows(b, i, 1);
        check(ww_collection_add(docs, &rows), "adding one");
    }
    const double our_singles = seconds_now() - start;
    bare s = bare_open(b);
    start = seconds_now();
    check_sql(s.db, sqlite3_exec(s.db, "BEGIN IMMEDIATE", NULL, NULL, NULL), "begin");
    for (int64_t i = 0; i < bulk; i++)
        bare_add(b, &s, i, i + 1);
    check_sql(s.db, sqlite3_exec(s.db, "COMMIT", NULL, NULL, NULL), "commit");
    const double theirs = seconds_now() - start;
    start = seconds_now();
    for (int64_t i = bulk; i < b->count; i++) {
        check_sql(s.db, sqlite3_exec(s.db, "BEGIN IMMEDIATE", NULL, NULL, NULL), "begin");
        bare_add(b, &s, i, i + 1);
        check_sql(s.db, sqlite3_exec(s.db, "COMMIT", NULL, NULL, NULL), "commit");
    }
    const double their_singles = seconds_now() - start;
    bare_close(&s);
    printf("| add, one write, rows a second | %.0f | bare SQLite %.0f | %.2f |\n", (double)bulk / ours, (double)bulk / theirs,
           theirs / ours);
    printf("| single adds, a second | %.0f | bare SQLite %.0f | %.2f |\n", SINGLES / our_singles, SINGLES / their_singles,
           their_singles / our_singles);
    ww_collection_destroy(docs);
    ww_store_close(store);
    printf("| file, MB | %.1f | vectors, ids and payloads %.1f | %.3f |\n", (double)file_bytes(b->path) / 1e6,
           (double)bytes_of(b, 1) / 1e6, (double)file_bytes(b->path) / (double)bytes_of(b, 1));
    remove_store(b->bare);
}

static double query_once(const bench *b, ww_collection *collection, int64_t row, uint32_t fetch)
{
    ww_query query = ww_query_default();
    ww_results *results = NULL;
    query.queries = b->rows + row * b->dim;
    query.query_count = 1;
    query.dim = (int32_t)b->dim;
    query.k = 10;
    query.fetch = fetch;
    const double start = seconds_now();
    check(ww_collection_query(collection, &query, &results), "a query");
    const double taken = seconds_now() - start;
    ww_results_destroy(results);
    return taken;
}

static double query_median(const bench *b, ww_collection *collection, uint32_t fetch)
{
    double times[QUERY_RUNS];
    for (int i = 0; i < QUERY_RUNS; i++)
        times[i] = query_once(b, collection, (int64_t)i * (b->count / QUERY_RUNS), fetch) * 1e3;
    return median_of(times, QUERY_RUNS);
}

static void opening_and_searching(const bench *b)
{
    const int64_t before = resident();
    const double start = seconds_now();
    ww_store *store = open_store(b);
    ww_collection *docs = NULL;
    check(ww_store_collection(store, "docs", &docs), "opening the collection");
    (void)query_once(b, docs, 0, WW_FETCH_IDS | WW_FETCH_PAYLOADS);
    const double first = seconds_now() - start, bytes = (double)(b->count * b->dim) * 4.0;
    ww_collection *memory = make_collection(b, NULL, "memory");
    const int64_t loaded = resident();
    ww_rows rows = some_rows(b, 0, b->count);
    check(ww_collection_add(memory, &rows), "adding to memory");
    ww_collection_info info = ww_collection_info_default();
    check(ww_collection_describe(memory, &info), "the collection");
    printf("| open and first answer, s | %.3f | vectors, GB/s | %.2f |\n", first, bytes / first / 1e9);
    printf("| memory after it, MB | %.1f | rows and codes %.1f | %.3f |\n", (double)(loaded - before) / 1e6,
           (double)(info.bytes_rows + info.bytes_screen) / 1e6,
           (double)(loaded - before) / (double)(info.bytes_rows + info.bytes_screen));
    const double ours = query_median(b, docs, 0), plain = query_median(b, memory, 0);
    printf("| query, k = 10, ms | %.3f | in memory %.3f | +%.3f |\n", ours, plain, ours - plain);
    const double ours_all = query_median(b, docs, WW_FETCH_IDS | WW_FETCH_PAYLOADS),
                 plain_all = query_median(b, memory, WW_FETCH_IDS | WW_FETCH_PAYLOADS);
    printf("| the same with ids and payloads, ms | %.3f | in memory %.3f | +%.3f |\n", ours_all, plain_all,
           ours_all - plain_all);
    ww_collection_destroy(memory);
    ww_collection_destroy(docs);
    ww_store_close(store);
}

/* Removes nine of ten rows, and compares the rest with a new file of the same rows. */
static void compacting(bench *b)
{
    const char **gone = malloc((size_t)b->count * sizeof *gone);
    int64_t count = 0;
    ww_store *store = open_store(b);
    ww_collection *docs = NULL;
    if (!gone)
        exit(1);
    check(ww_store_collection(store, "docs", &docs), "opening the collection");
    for (int64_t i = 0; i < b->count; i++)
        if (i % 10 != 0)
            gone[count++] = b->ids[i];
    double start = seconds_now();
    check(ww_collection_remove(docs, gone, count), "removing");
    const double removing = seconds_now() - start;
    start = seconds_now();
    check(ww_collection_compact(docs, NULL, NULL), "compacting");
    const double taken = seconds_now() - start;
    ww_collection_destroy(docs);
    ww_store_close(store);
    const int64_t left = file_bytes(b->path);
    free(gone);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s", b->path);
    snprintf(b->path, sizeof b->path, "%s", b->bare);
    store = open_store(b);
    docs = make_collection(b, store, "docs");
    for (int64_t i = 0; i < b->count; i += 10) {
        memcpy(b->rows + i / 10 * b->dim, b->rows + i * b->dim, (size_t)b->dim * sizeof(float));
        char *const id = b->ids[i / 10], *const payload = b->payloads[i / 10];
        b->ids[i / 10] = b->ids[i];
        b->payloads[i / 10] = b->payloads[i];
        b->ids[i] = id;
        b->payloads[i] = payload;
    }
    const ww_rows rows = some_rows(b, 0, (b->count + 9) / 10);
    check(ww_collection_add(docs, &rows), "adding");
    ww_collection_destroy(docs);
    ww_store_close(store);
    printf("| compacted after 90%% removed (%.2f s, %.2f s), MB | %.2f | new file of the rest %.2f | %.3f |\n", removing, taken,
           (double)left / 1e6, (double)file_bytes(b->path) / 1e6, (double)left / (double)file_bytes(b->path));
    remove_store(b->path);
    remove_store(path);
}

int main(int argc, char **argv)
{
    bench b = {0};
    int64_t rows_max = INT64_MAX;
    if (argc < 3) {
        fprintf(stderr, "usage: store_figures ROWS.npy FOLDER [ROWS_MAX]\n");
        return 2;
    }
    if (argc > 3)
        rows_max = strtoll(argv[3], NULL, 10);
    snprintf(b.path, sizeof b.path, "%s/store_figures.db", argv[2]);
    snprintf(b.bare, sizeof b.bare, "%s/store_figures_bare.db", argv[2]);
    check(ww_device_open("cpu", &b.device), "the CPU");
    load(&b, argv[1], rows_max);
    if (b.count <= (int64_t)SINGLES * 2)
        return 2;
    printf("%lld x %lld\n\n| what | store | beside | ratio |\n|---|--:|--:|--:|\n", (long long)b.count, (long long)b.dim);
    adding(&b);
    opening_and_searching(&b);
    compacting(&b);
    ww_device_close(b.device);
    return 0;
}
