/* The index of a collection in a store over time: it follows every write in the same transaction, other processes see it, and
 * compacting merges lists that removals left tiny. */
#include <sys/wait.h>

#include "store/indexed_store.h"
#include "support/process.h"

/* ---- writes -------------------------------------------------------------------------------------------------------------- */

static void the_index_follows_every_write(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F16);
    test_random random = {8};
    char texts[8][16];
    const char *ids[8];
    CHECK_OK(ww_collection_calibrate(s->stored, NULL));
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
    assert_int_equal(info.calibration_rows_added, 8 * 8);
    assert_int_equal(info.calibration_rows_removed, COUNT + 8 * 8 - ww_collection_count(s->stored));
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
    assert_int_equal(ask("SELECT format FROM warpwave_collections WHERE name = 'others'"), 3);
    index_build(s->stored, NLIST);
    CHECK_OK(ww_store_drop(s->store, "others"));
    assert_int_equal(ask("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%ivf%'"), 0);
    scene_free(s);
}

static int stop(int64_t done, int64_t total, void *user)
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

/* ---- compact ------------------------------------------------------------------------------------------------------------- */

enum { MANY_LISTS = 20 };

/* Removes the rows of every third list, except for one row of every second of these, in the store and in memory. In a store,
 * removed rows leave their lists at once, and other lists could become too large; with so few rows they do not. */
static void empty_lists(scene *s)
{
    const ivf *index = s->memory->index;
    for (int64_t l = 0; l < index->nlist; l += 3)
        for (int64_t i = l % 2; i < index->lists[l].count; i++) {
            char id[32];
            const char *const ids[] = {id};
            snprintf(id, sizeof id, "%u", index->lists[l].rows[i]);
            CHECK_OK(ww_collection_remove(s->stored, ids, 1));
            CHECK_OK(ww_collection_remove(s->memory, ids, 1));
        }
}

static void compact_merges_the_tiny_lists_of_a_store(void **state)
{
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    (void)state;
    for (int m = 0; m < 3; m++) {
        scene *s = scene_of(metrics[m], m == 1 ? WW_VECTOR_F16 : WW_VECTOR_F32);
        ww_ivf_info info = ww_ivf_info_default();
        index_build(s->stored, MANY_LISTS);
        index_build(s->memory, MANY_LISTS);
        const int64_t lists = s->memory->index->nlist;
        ww_results_destroy(query_lists(s->stored, s->queries, QUERIES, K, 2)); /* has read the old lists */
        empty_lists(s);
        assert_int_equal(ask("SELECT lists_split FROM docs_ivf"), s->memory->index->lists_split);
        CHECK_OK(ww_collection_compact(s->stored, NULL, NULL));
        CHECK_OK(ww_collection_compact(s->memory, NULL, NULL));
        assert_true(s->memory->index->nlist < lists);
        check_tables(s); /* places are rows again */
        check_answers(s);
        CHECK_OK(ww_store_check(s->store, NULL, NULL));
        CHECK_OK(ww_collection_describe_ivf(s->stored, &info));
        assert_int_equal(info.nlist, s->memory->index->nlist);
        add(s->stored, s->rows + COUNT * DIM, EXTRA); /* lists grow again, and are split */
        add(s->memory, s->rows + COUNT * DIM, EXTRA);
        check_tables(s);
        reopen(s);
        check_answers(s);
        CHECK_OK(ww_store_check(s->store, NULL, NULL));
        scene_free(s);
    }
}

static void a_damaged_list_keeps_compact_from_changing_anything(void **state)
{
    (void)state;
    scene *s = scene_of(WW_L2, WW_VECTOR_F32);
    index_build(s->stored, MANY_LISTS);
    index_build(s->memory, MANY_LISTS);
    empty_lists(s);
    /* a row of a tiny list is in another one: the counts of both are wrong, and their sum is right */
    edit("UPDATE docs_ivf_rows SET list = 1 WHERE list = (SELECT min(list) FROM docs_ivf_lists WHERE rows = 1)");
    const sqlite3_int64 last = ask("SELECT max(place) FROM docs_vectors");
    CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_compact(s->stored, NULL, NULL));
    assert_non_null(strstr(ww_error_message(), "build the index again"));
    assert_int_equal(ask("SELECT max(place) FROM docs_vectors"), last);
    assert_int_equal(ask("SELECT nlist FROM docs_ivf"), ask("SELECT count(*) FROM docs_ivf_lists"));
    CHECK_OK(ww_collection_drop_ivf(s->stored));
    CHECK_OK(ww_collection_compact(s->stored, NULL, NULL));
    assert_true(ask("SELECT max(place) FROM docs_vectors") < last);
    scene_free(s);
}

/* ---- processes ----------------------------------------------------------------------------------------------------------- */

/* The other process obeys the letters that it reads, and answers each. */
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
    const pid_t child = fork_when_idle(); /* before the file is opened */
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
    reopen(s); /* following the file step by step gives the same as reading it at once */
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
        cmocka_unit_test_setup_teardown(the_index_follows_every_write, setup, teardown),
        cmocka_unit_test_setup_teardown(rename_keeps_the_index_and_clear_and_drop_remove_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_build_that_is_cancelled_leaves_the_old_index, setup, teardown),
        cmocka_unit_test_setup_teardown(compact_merges_the_tiny_lists_of_a_store, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_list_keeps_compact_from_changing_anything, setup, teardown),
        cmocka_unit_test_setup_teardown(another_process_sees_the_index_and_its_changes, setup, teardown),
    };
    return cmocka_run_group_tests_name("store: life of an index", tests, NULL, NULL);
}
