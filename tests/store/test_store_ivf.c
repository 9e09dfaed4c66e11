/* The index of a collection in a store: its lists are those of the same rows in memory, it follows every write in the same
 * transaction, it is there when the file is opened again, and damage to it never harms the rows. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <warpwave/ivf.h>
#include <warpwave/ranking.h>
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

static int setup(void **state)
{
    scratch_setup(state);
    path = strdup(scratch_path("ivf.db"));
    CHECK_OK(ww_device_open("cpu", &cpu));
    return 0;
}

static int teardown(void **state)
{
    ww_device_close(cpu);
    free(path);
    return scratch_teardown(state);
}

static void add(ww_collection *c, const float *rows, int64_t count)
{
    ww_rows some = ww_rows_default();
    some.count = count, some.dim = DIM, some.vectors = rows;
    CHECK_OK(ww_collection_add(c, &some));
}

static void open_store(ww_store **store)
{
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_store_open(path, cpu, &how, store));
}

static scene *scene_of(ww_metric metric, ww_vector_type type)
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

static void reopen(scene *s)
{
    ww_collection_destroy(s->stored);
    ww_store_close(s->store);
    open_store(&s->store);
    CHECK_OK(ww_store_collection(s->store, "docs", &s->stored));
}

static void scene_free(scene *s)
{
    ww_collection_destroy(s->stored);
    ww_collection_destroy(s->memory);
    ww_store_close(s->store);
    free(s);
    unlink(path);
}

static scene *indexed_scene(ww_metric metric, ww_vector_type type)
{
    scene *s = scene_of(metric, type);
    index_build(s->stored, NLIST);
    index_build(s->memory, NLIST);
    return s;
}

/* ---- comparing --------------------------------------------------------------------------------------------------------------
 */

static sqlite3_int64 ask(const char *sql)
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

static void edit(const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

/* Are the lists and centroids of the file those of the collection in memory? Its rows are the places, as none was removed. */
static void check_tables(const scene *s)
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

static void check_answers(const scene *s)
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
static void check_exact(ww_collection *c, const float *queries)
{
    ww_ivf_info info = ww_ivf_info_default();
    CHECK_OK(ww_collection_describe_ivf(c, &info));
    ww_results *all = query_lists(c, queries, QUERIES, K, info.nlist), *exact = query_lists(c, queries, QUERIES, K, 0);
    check_same_results(all, exact);
    ww_results_destroy(all);
    ww_results_destroy(exact);
}

/* ---- lists ------------------------------------------------------------------------------------------------------------------
 */

static void lists_of_a_store_are_those_of_the_same_rows_in_memory(void **state)
{
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        scene *s = indexed_scene(metrics[i % 3], types[i]);
        check_tables(s);
        check_answers(s);
        for (int64_t done = 0; done < EXTRA; done += 100) { /* lists are split */
            add(s->stored, s->rows + (COUNT + done) * DIM, 100);
            add(s->memory, s->rows + (COUNT + done) * DIM, 100);
            check_tables(s);
            check_answers(s);
        }
        assert_true(s->memory->index->lists_split > 0);
        CHECK_OK(ww_store_check(s->store, NULL, NULL));
        scene_free(s);
    }
}

static void a_file_that_is_opened_again_has_the_index(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_ivf_info before = ww_ivf_info_default(), after = ww_ivf_info_default(), memory = ww_ivf_info_default();
    CHECK_OK(ww_collection_calibrate(s->stored, NULL));
    CHECK_OK(ww_collection_calibrate(s->memory, NULL));
    add(s->stored, s->rows + COUNT * DIM, EXTRA);
    add(s->memory, s->rows + COUNT * DIM, EXTRA);
    CHECK_OK(ww_collection_describe_ivf(s->stored, &before));
    reopen(s);
    check_tables(s);
    check_answers(s);
    CHECK_OK(ww_collection_describe_ivf(s->stored, &after));
    CHECK_OK(ww_collection_describe_ivf(s->memory, &memory));
    before.bytes = after.bytes = memory.bytes;
    assert_memory_equal(&before, &after, sizeof after);
    assert_memory_equal(&memory, &after, sizeof after);
    assert_int_equal(after.rows_added, EXTRA);
    assert_int_equal(after.calibration_rows_added, EXTRA);
    scene_free(s);
}

static void a_calibration_is_kept(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_COSINE, WW_VECTOR_F32);
    ww_query query = ww_query_default();
    ww_results *found[2] = {NULL, NULL};
    query.queries = s->queries, query.query_count = QUERIES, query.dim = DIM, query.k = K, query.recall = 0.9f;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->stored, &query, &found[0]));
    CHECK_OK(ww_collection_calibrate(s->stored, NULL));
    CHECK_OK(ww_collection_calibrate(s->memory, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ww_collection_query(s->stored, &query, &found[0]));
        CHECK_OK(ww_collection_query(s->memory, &query, &found[1]));
        check_same_results(found[0], found[1]);
        ww_results_destroy(found[0]);
        ww_results_destroy(found[1]);
        reopen(s);
    }
    scene_free(s);
}

/* What one device has built and another one writes to. */
static void a_backup_has_the_index_and_its_calibration(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_calibrate_config asked = ww_calibrate_config_default();
    ww_ivf_info info = ww_ivf_info_default();
    ww_store *store = NULL;
    ww_collection *copy = NULL;
    char *copied = strdup(scratch_path("backup.db"));
    asked.query_count = 299;
    CHECK_OK(ww_collection_calibrate(s->stored, &asked));
    CHECK_OK(ww_store_backup(s->store, copied, NULL, NULL));
    CHECK_OK(ww_store_open(copied, cpu, NULL, &store));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_store_collection(store, "docs", &copy));
    CHECK_OK(ww_collection_describe_ivf(copy, &info));
    assert_true(info.nlist >= NLIST && info.calibration_queries == 299);
    for (int64_t nprobe = 1; nprobe < NLIST; nprobe += 4) {
        ww_results *here = query_lists(s->stored, s->queries, QUERIES, K, nprobe);
        ww_results *there = query_lists(copy, s->queries, QUERIES, K, nprobe);
        check_same_results(here, there);
        ww_results_destroy(here);
        ww_results_destroy(there);
    }
    add(copy, s->rows + COUNT * DIM, EXTRA); /* lists are split there, and not here */
    check_exact(copy, s->queries);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    check_tables(s);
    ww_collection_destroy(copy);
    ww_store_close(store);
    free(copied);
    scene_free(s);
}

static void a_device_reads_the_lists_of_a_store(void **state)
{
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_collection_destroy(s->stored);
    ww_store_close(s->store);
    CHECK_OK(ww_store_open(path, *state, NULL, &s->store));
    CHECK_OK(ww_store_collection(s->store, "docs", &s->stored));
    check_answers(s);
    add(s->stored, s->rows + COUNT * DIM, EXTRA);
    add(s->memory, s->rows + COUNT * DIM, EXTRA);
    assert_true(s->memory->index->lists_split > 0);
    check_answers(s);
    index_build(s->memory, NLIST / 2);
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = NLIST / 2, config.iterations = 2, config.seed = 7;
    ww_store *other = NULL;
    ww_collection *writer = NULL;
    open_store(&other);
    CHECK_OK(ww_store_collection(other, "docs", &writer));
    CHECK_OK(ww_collection_build_ivf(writer, &config)); /* by another one, which has fewer lists */
    ww_collection_destroy(writer);
    ww_store_close(other);
    check_answers(s);
    scene_free(s);
}

/* Hits of some lists that are ranked by something else are not those of an exact search in that order. */
static void hits_that_are_ranked_again_are_not_proven(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_results *some = query_lists(s->stored, s->queries, QUERIES, K, 1),
               *exact = query_lists(s->stored, s->queries, QUERIES, K, 0);
    ww_results *fused = NULL;
    assert_true(ww_results_proven(some, 0) > 0);
    CHECK_OK(ww_results_fuse(some, some, NULL, &fused));
    assert_int_equal(ww_results_proven(fused, 0), 0);
    ww_results_destroy(fused);
    CHECK_OK(ww_results_fuse(exact, exact, NULL, &fused));
    assert_int_equal(ww_results_proven(fused, 0), K);
    ww_results_destroy(fused);
    ww_results_destroy(some);
    ww_results_destroy(exact);
    scene_free(s);
}

/* ---- writes -----------------------------------------------------------------------------------------------------------------
 */

static void the_index_follows_every_write(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F16);
    test_random random = {8};
    char texts[8][16];
    const char *ids[8];
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 8; i++) {
            snprintf(texts[i], sizeof texts[i], "%d", (round * 41 + i * 7) % COUNT);
            ids[i] = texts[i];
        }
        float vectors[8 * DIM];
        clustered_rows(&random, vectors, 8, DIM, 9, WW_VECTOR_F32);
        ww_rows rows = ww_rows_default();
        rows.count = 8, rows.dim = DIM, rows.vectors = vectors, rows.ids = ids;
        if (round % 3 == 0)
            CHECK_OK(ww_collection_upsert(s->stored, &rows));
        else if (round % 3 == 1)
            CHECK_OK(ww_collection_update(s->stored, &rows));
        else
            CHECK_OK(ww_collection_discard(s->stored, ids, 8, NULL));
        if (round == 8)
            CHECK_OK(ww_collection_compact(s->stored, NULL, NULL));
        if (round == 9)
            reopen(s);
        check_exact(s->stored, s->queries);
        CHECK_OK(ww_store_check(s->store, NULL, NULL));
        assert_int_equal(ask("SELECT count(*) FROM docs_ivf_rows"), ww_collection_count(s->stored));
    }
    ww_ivf_info info = ww_ivf_info_default();
    CHECK_OK(ww_collection_describe_ivf(s->stored, &info));
    assert_int_equal(info.rows, ww_collection_count(s->stored));
    assert_int_equal(info.rows_added, 8 * 8); /* each upsert and update counts */
    scene_free(s);
}

static void rename_keeps_the_index_and_clear_and_drop_remove_it(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_collection_destroy(s->stored);
    CHECK_OK(ww_store_rename(s->store, "docs", "others"));
    CHECK_OK(ww_store_collection(s->store, "others", &s->stored));
    check_answers(s);
    ww_collection *second = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs", config.dim = DIM;
    CHECK_OK(ww_store_create(s->store, &config, &second)); /* nothing of the old name is in the way */
    add(second, s->rows, 100);
    index_build(second, 4);
    CHECK_OK(ww_store_check(s->store, NULL, NULL));
    CHECK_OK(ww_collection_clear(second));
    assert_int_equal(ask("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'docs_ivf%'"), 0);
    ww_ivf_info info = ww_ivf_info_default();
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_describe_ivf(second, &info));
    ww_collection_destroy(second);
    CHECK_OK(ww_collection_drop_ivf(s->stored));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_drop_ivf(s->stored));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_calibrate(s->stored, NULL));
    assert_int_equal(ask("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%ivf%'"), 0);
    assert_int_equal(ask("SELECT format FROM warpwave_collections WHERE name = 'others'"), 1);
    index_build(s->stored, NLIST);
    CHECK_OK(ww_store_drop(s->store, "others"));
    assert_int_equal(ask("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%ivf%'"), 0);
    scene_free(s);
}

static int stop(long long done, long long total, void *user)
{
    (void)total;
    return done >= *(const long long *)user;
}

static void a_build_that_is_cancelled_leaves_the_old_index(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    long long when = 900;
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = 5, config.progress = stop, config.progress_user = &when;
    CHECK_FAILS(WW_CANCELLED, ww_collection_build_ivf(s->stored, &config));
    check_tables(s);
    check_answers(s);
    scene_free(s);
}

/* ---- damage -----------------------------------------------------------------------------------------------------------------
 */

static void damage_to_the_index_never_harms_the_rows(void **state)
{
    static const char *const edits[] = {
        "DELETE FROM docs_ivf",
        "INSERT INTO docs_ivf SELECT * FROM docs_ivf",
        "UPDATE docs_ivf SET nlist = 1000000000",
        "UPDATE docs_ivf SET nlist = nlist - 1",
        "DROP TABLE docs_ivf_lists",
        "DROP TABLE docs_ivf_rows",
        "DELETE FROM docs_ivf_lists WHERE list = 3",
        "UPDATE docs_ivf_lists SET rows = rows + 1 WHERE list = 2",
        "UPDATE docs_ivf_lists SET farthest = NULL WHERE list = 2",
        "UPDATE docs_ivf_centroids SET centroid = x'00' WHERE list = 1",
        "UPDATE docs_ivf_centroids SET centroid = replace(zeroblob(24), x'00', x'ffffffff') WHERE list = 1",
        "DELETE FROM docs_ivf_centroids WHERE list = 1",
        "DELETE FROM docs_ivf_rows WHERE place = 9",
        "UPDATE docs_ivf_rows SET list = 99 WHERE place = 9",
        "UPDATE docs_ivf_rows SET place = 100000 WHERE place = 9",
    };
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
        ww_results *found = NULL;
        ww_query query = ww_query_default();
        query.queries = s->queries, query.query_count = QUERIES, query.dim = DIM, query.k = K;
        edit(edits[i]);
        reopen(s);
        CHECK_OK(ww_collection_query(s->stored, &query, &found));
        ww_results_destroy(found);
        found = NULL;
        query.nprobe = 3;
        CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_query(s->stored, &query, &found));
        assert_non_null(strstr(ww_error_message(), "build the index again"));
        CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(s->store, NULL, NULL));
        if (i % 2 == 0)
            index_build(s->stored, NLIST);
        else
            CHECK_OK(ww_collection_drop_ivf(s->stored));
        CHECK_OK(ww_store_check(s->store, NULL, NULL));
        add(s->stored, s->rows, 10);
        scene_free(s);
    }
}

static void wrong_bounds_are_found_by_a_check(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    edit("UPDATE docs_ivf_lists SET farthest = nearest, nearest = nearest WHERE rows > 5");
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(s->store, NULL, NULL));
    assert_non_null(strstr(ww_error_message(), "does not bound"));
    scene_free(s);
}

/* ---- processes --------------------------------------------------------------------------------------------------------------
 */

/* The other process does what the letters that it reads say, and answers each. */
static void other_process(int orders, int answers)
{
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *c = NULL;
    float rows[EXTRA * DIM];
    test_random random = {4};
    for (int64_t i = 0; i < (int64_t)EXTRA * DIM; i++) /* all near each other, so that a list is split */
        rows[i] = 90.0f + (float)random_below(&random, 9);
    char order;
    while (read(orders, &order, 1) == 1) {
        ww_ivf_config config = ww_ivf_config_default();
        ww_rows some = ww_rows_default();
        ww_status status = WW_OK;
        some.count = EXTRA, some.dim = DIM, some.vectors = rows;
        config.nlist = NLIST;
        if (order == 'o' && (ww_device_open("cpu", &device) != WW_OK || ww_store_open(path, device, NULL, &store) != WW_OK))
            _exit(1);
        if (order == 'o')
            status = ww_store_collection(store, "docs", &c);
        else if (order == 'b')
            status = ww_collection_build_ivf(c, &config);
        else if (order == 'a')
            status = ww_collection_add(c, &some);
        else
            status = ww_collection_drop_ivf(c);
        if (status != WW_OK || write(answers, &order, 1) != 1)
            _exit(2);
    }
    _exit(0);
}

static void tell(const int pipes[2], char order)
{
    char answer = 0;
    assert_int_equal(write(pipes[0], &order, 1), 1);
    assert_int_equal(read(pipes[1], &answer, 1), 1);
    assert_int_equal(answer, order);
}

static void another_process_sees_the_index_and_its_changes(void **state)
{
    (void)state;
    int orders[2], answers[2];
    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    const pid_t child = fork(); /* before the file is opened */
    if (child == 0) {
        close(orders[1]);
        other_process(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    const int pipes[2] = {orders[1], answers[0]};
    scene *s = scene_of(WW_L2, WW_VECTOR_F32);
    tell(pipes, 'o');
    ww_results *found = query_lists(s->stored, s->queries, QUERIES, K, 0);
    ww_results_destroy(found);
    tell(pipes, 'b');
    check_exact(s->stored, s->queries);
    ww_ivf_info info = ww_ivf_info_default();
    const int64_t splits = ask("SELECT lists_split FROM docs_ivf");
    tell(pipes, 'a'); /* lists are split there */
    check_exact(s->stored, s->queries);
    CHECK_OK(ww_collection_describe_ivf(s->stored, &info));
    assert_true(info.lists_split > splits && info.rows_added == EXTRA);
    ww_results *some = query_lists(s->stored, s->queries, QUERIES, K, 2);
    reopen(s); /* what follows the file step by step is what is read from it at once */
    ww_results *again = query_lists(s->stored, s->queries, QUERIES, K, 2);
    check_same_results(some, again);
    ww_results_destroy(some);
    ww_results_destroy(again);
    tell(pipes, 'd');
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_describe_ivf(s->stored, &info));
    close(pipes[0]);
    int ended = 0;
    waitpid(child, &ended, 0);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    close(pipes[1]);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_of_a_store_are_those_of_the_same_rows_in_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_opened_again_has_the_index, setup, teardown),
        cmocka_unit_test_setup_teardown(a_calibration_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_has_the_index_and_its_calibration, setup, teardown),
        cmocka_unit_test_setup_teardown(hits_that_are_ranked_again_are_not_proven, setup, teardown),
        cmocka_unit_test_setup_teardown(the_index_follows_every_write, setup, teardown),
        cmocka_unit_test_setup_teardown(rename_keeps_the_index_and_clear_and_drop_remove_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_build_that_is_cancelled_leaves_the_old_index, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_to_the_index_never_harms_the_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_bounds_are_found_by_a_check, setup, teardown),
        cmocka_unit_test_setup_teardown(another_process_sees_the_index_and_its_changes, setup, teardown),
    };
    const struct CMUnitTest on_devices[] = {cmocka_unit_test(a_device_reads_the_lists_of_a_store)};
    const int failed = cmocka_run_group_tests_name("store: ivf", tests, NULL, NULL);
    void *state = NULL;
    (void)setup(&state);
    const int failed_there = RUN_ON_EVERY_DEVICE("store: ivf", on_devices);
    (void)teardown(&state);
    return failed + failed_there;
}
