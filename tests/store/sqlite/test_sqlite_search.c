/* Searches in SQL, compared with brute force: the same rows in the same order with the same bits, for every plan, filter and
 * join; and which plan is used. */
#include "store/sqlite/sql.h"

#include <math.h>

#include "support/data/random.h"

enum { ROWS = 700, DIM = 5 };

static float vectors[ROWS][DIM];
static sqlite3 *dbs[3]; /* by metric */

typedef struct scored {
    int64_t handle;
    float score;
} scored;

static ww_metric sorted_by;

static int compare(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return (sorted_by == WW_L2 ? x->score > y->score : x->score < y->score) ? 1 : -1;
    return (x->handle > y->handle) - (x->handle < y->handle);
}

/* All rows for which admits() is true, best first. Coarse values make many ties. */
static int64_t brute_force(ww_metric metric, const float *query, int (*admits)(int64_t handle), scored *found)
{
    int64_t count = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        if (!admits(i))
            continue;
        CHECK_OK(ww_score(metric, query, vectors[i], DIM, &found[count].score));
        found[count++].handle = i;
    }
    sorted_by = metric;
    qsort(found, (size_t)count, sizeof *found, compare);
    return count;
}

static int setup(void **state)
{
    (void)state;
    test_random random = {18};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < DIM; j++)
            vectors[i][j] = (float)random_below(&random, 9) - 4.0f;
    static const char *const places[] = {"device=cpu", "device=cpu+emulator:32", "device='emulator:64', rows=host"};
    for (int metric = 0; metric < 3; metric++) {
        sqlite3 *db = dbs[metric] = sql_open(":memory:");
        char *create = sqlite3_mprintf("CREATE VIRTUAL TABLE docs USING warpwave(dim=%d, metric=%s, %s);" SQL_FROM_0, DIM,
                                       ww_metric_name((ww_metric)metric), places[metric]);
        sql_run(db, create);
        sqlite3_free(create);
        sqlite3_stmt *insert = NULL;
        assert_int_equal(
            sqlite3_prepare_v2(
                db, "INSERT INTO docs(id, vector, payload) VALUES ('r' || ?1, ?2, json_object('n', ?1, 'odd', ?1 % 2))", -1,
                &insert, NULL),
            SQLITE_OK);
        sql_run(db, "BEGIN");
        for (int i = 0; i < ROWS; i++) {
            sqlite3_bind_int(insert, 1, i);
            sqlite3_bind_blob(insert, 2, vectors[i], sizeof vectors[i], SQLITE_STATIC);
            assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
            sqlite3_reset(insert);
        }
        sqlite3_finalize(insert);
        sql_run(db, "COMMIT");
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        sqlite3_close(dbs[i]);
    return 0;
}

/* The statement, with the query as its first parameter and `k` as its second, gives these rows: rowid, score, distance. */
static void gives_rows(ww_metric metric, const char *sql, int64_t k, const scored *expected, int64_t count)
{
    static const float query[DIM] = {1.0f, -2.0f, 0.5f, 3.0f, 0.0f};
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(dbs[metric], sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(dbs[metric]));
    sqlite3_bind_blob(statement, 1, query, sizeof query, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(statement) > 1)
        sqlite3_bind_int64(statement, 2, k);
    for (int64_t i = 0;; i++) {
        const int code = sqlite3_step(statement);
        if (code == SQLITE_DONE && i == count)
            break;
        if (code != SQLITE_ROW)
            fail_msg("%s: row %lld of %lld: %s", sql, (long long)i, (long long)count, sqlite3_errmsg(dbs[metric]));
        assert_true(i < count);
        const double score = (double)expected[i].score;
        const double distance = metric == WW_L2 ? score : metric == WW_DOT ? -score : 1.0 - score;
        if (sqlite3_column_int64(statement, 0) != expected[i].handle || sqlite3_column_double(statement, 1) != score ||
            sqlite3_column_double(statement, 2) != distance)
            fail_msg("%s: row %lld is %lld with %.9g, not %lld with %.9g", sql, (long long)i,
                     (long long)sqlite3_column_int64(statement, 0), sqlite3_column_double(statement, 1),
                     (long long)expected[i].handle, score);
    }
    sqlite3_finalize(statement);
}

static const float QUERY[DIM] = {1.0f, -2.0f, 0.5f, 3.0f, 0.0f};

static int all_rows(int64_t handle)
{
    (void)handle;
    return 1;
}

static int odd_rows(int64_t handle)
{
    return handle % 2 == 1;
}

static int one_row(int64_t handle)
{
    return handle == 77;
}

static int nine_rows(int64_t handle)
{
    return handle >= 100 && handle < 109;
}

static int no_row(int64_t handle)
{
    (void)handle;
    return 0;
}

#define SELECT "SELECT rowid, score, distance FROM docs WHERE vector MATCH ?1 "

static void the_nearest_are_those_of_brute_force(void **state)
{
    (void)state;
    static const int64_t ks[] = {1, 10, 127, ROWS, 2048};
    scored found[ROWS];
    for (int metric = 0; metric < 3; metric++) {
        const int64_t count = brute_force((ww_metric)metric, QUERY, all_rows, found);
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
            gives_rows((ww_metric)metric, SELECT "AND k = ?2", ks[i], found, ks[i] < count ? ks[i] : count);
    }
}

static void a_filter_finds_the_nearest_of_the_admitted_rows(void **state)
{
    (void)state;
    static const struct {
        int (*admits)(int64_t handle);
        const char *where, *in;
    } cases[] = {
        {no_row, "id = 'nobody'", "id = 'nobody'"},
        {one_row, "id = 'r77'", "handle = 77"},
        {nine_rows, "handle BETWEEN 100 AND 108", "payload->>'$.n' BETWEEN 100 AND 108"},
        {odd_rows, "payload->>'$.odd' = 1", "handle % 2"},
        {all_rows, "1", "1"},
    };
    scored found[ROWS];
    for (int metric = 0; metric < 3; metric++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const int64_t count = brute_force((ww_metric)metric, QUERY, cases[i].admits, found);
            char *filter = sqlite3_mprintf(SELECT "AND k = ?2 AND filter = %Q", cases[i].where);
            char *in = sqlite3_mprintf(SELECT "AND k = ?2 AND rowid IN (SELECT handle FROM docs_rows WHERE %s)", cases[i].in);
            char *both = sqlite3_mprintf("%s AND filter = %Q", in, cases[i].where);
            char *stream = sqlite3_mprintf(SELECT "AND filter = %Q ORDER BY distance", cases[i].where);
            for (int again = 0; again < 2; again++) { /* the second time the mask is kept */
                gives_rows((ww_metric)metric, filter, 10, found, count < 10 ? count : 10);
                gives_rows((ww_metric)metric, in, 10, found, count < 10 ? count : 10);
                gives_rows((ww_metric)metric, both, 10, found, count < 10 ? count : 10);
                gives_rows((ww_metric)metric, stream, 0, found, count);
            }
            sqlite3_free(filter), sqlite3_free(in), sqlite3_free(both), sqlite3_free(stream);
        }
}

/* Values are bound, by position and by name, and identify a cached mask together with the text. */
static void a_filter_takes_parameters(void **state)
{
    (void)state;
    static const struct {
        int (*admits)(int64_t handle);
        const char *where, *parameters;
    } cases[] = {
        {nine_rows, "handle BETWEEN ? AND ?", "json_array(100, 108)"},
        {nine_rows, "handle BETWEEN :from AND @to", "json_object('from', 100, '@to', 108)"},
        {nine_rows, "handle BETWEEN :from AND :to", "'{\"from\": 99.5, \":to\": 108}'"},
        {one_row, "id = ?1 OR id = ?1 || ?2", "json_array('r77', '''; DROP TABLE docs_rows; --')"},
        {one_row, "handle BETWEEN ? AND ?", "json_array(77, 77)"},
        {all_rows, "?1 IS NULL AND ?2 AND NOT ?3", "json_array(NULL, json('true'), json('false'))"},
        {no_row, "id = :id", "json_object('id', NULL)"},
        {all_rows, "1", "json_array()"},
        {one_row, "id IN :ids", "json_object('ids', json_array('r77', 'nobody', NULL))"},
        {one_row, "handle IN ( @h ) AND ':ids' = ':ids'", "'{\"@h\": [77, 100000]}'"},
        {no_row, "id IN :ids", "'{\"ids\": []}'"},
    };
    scored found[ROWS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t count = brute_force(WW_L2, QUERY, cases[i].admits, found);
        char *sql =
            sqlite3_mprintf(SELECT "AND k = ?2 AND filter = %Q AND parameters = %s", cases[i].where, cases[i].parameters);
        for (int again = 0; again < 2; again++)
            gives_rows(WW_L2, sql, 10, found, count < 10 ? count : 10);
        sqlite3_free(sql);
    }
    sql_gives(dbs[WW_L2], "SELECT count(*) FROM docs_rows", "700");
}

static void without_k_any_other_term_is_exact(void **state)
{
    (void)state;
    scored found[ROWS];
    for (int metric = 0; metric < 3; metric++) {
        const char *best_first = metric == WW_L2 ? "score" : "score DESC";
        int64_t count = brute_force((ww_metric)metric, QUERY, all_rows, found);
        gives_rows((ww_metric)metric, SELECT "ORDER BY distance", 0, found, count);
        gives_rows((ww_metric)metric, SELECT "ORDER BY distance LIMIT 200", 0, found, 200);
        char *sql = sqlite3_mprintf(SELECT "ORDER BY %s LIMIT 3 OFFSET 150", best_first);
        gives_rows((ww_metric)metric, sql, 0, found + 150, 3);
        sqlite3_free(sql);
        count = brute_force((ww_metric)metric, QUERY, nine_rows, found);
        gives_rows((ww_metric)metric, SELECT "AND payload->>'$.n' BETWEEN 100 AND 108 ORDER BY distance LIMIT 5", 0, found, 5);
        gives_rows((ww_metric)metric, SELECT "AND payload->>'$.n' BETWEEN 100 AND 108 ORDER BY distance LIMIT 50", 0, found,
                   count);
    }
}

static void a_radius_or_a_bound_finds_exactly_the_rows_within_it(void **state)
{
    (void)state;
    scored found[ROWS];
    for (int metric = 0; metric < 3; metric++) {
        const int64_t count = brute_force((ww_metric)metric, QUERY, all_rows, found);
        for (int64_t last = 0; last < count;
             last += 97) { /* the distance of a row is the radius: it belongs to it, with its ties */
            const double score = (double)found[last].score;
            const double radius = metric == WW_L2 ? score : metric == WW_DOT ? -score : 1.0 - score;
            int64_t within = last;
            while (within < count && found[within].score == found[last].score)
                within++;
            char *by_radius = sqlite3_mprintf(SELECT "AND radius = %!.17g", radius);
            char *by_term = sqlite3_mprintf(SELECT "AND distance <= %!.17g ORDER BY distance", radius);
            char *with_k = sqlite3_mprintf(SELECT "AND radius = %!.17g AND k = 3", radius);
            gives_rows((ww_metric)metric, by_radius, 0, found, within);
            gives_rows((ww_metric)metric, by_term, 0, found, within);
            gives_rows((ww_metric)metric, with_k, 0, found, within < 3 ? within : 3);
            sqlite3_free(by_radius), sqlite3_free(by_term), sqlite3_free(with_k);
        }
    }
    sql_gives(dbs[WW_L2], "SELECT count(*) FROM docs WHERE vector MATCH '[0,0,0,0,0]' AND distance < -1", "0");
    sql_gives(dbs[WW_DOT], "SELECT count(*) FROM docs WHERE vector MATCH '[0,0,0,0,0]' AND score >= 0", "700");
    sql_gives(dbs[WW_L2], "SELECT id FROM docs WHERE (vector MATCH '[9,9,9,9,9]' AND radius = 0) OR id = 'r1'", "r1");
}

static void terms_other_than_k_are_applied_after_it(void **state)
{
    (void)state;
    sqlite3 *db = dbs[WW_L2];
    char *ten = sql_text(db, "SELECT id FROM docs WHERE vector MATCH '[1,-2,0.5,3,0]' AND k = 10 AND id IN ('r0', 'r1')");
    char *stream = sql_text(db, "SELECT count(*) FROM docs WHERE vector MATCH '[1,-2,0.5,3,0]' AND id IN ('r0', 'r1')");
    assert_string_equal(ten, "");
    assert_string_equal(stream, "2");
    free(ten), free(stream);
    sql_gives(db, "SELECT count(*) FROM docs WHERE vector MATCH '[1,-2,0.5,3,0]' AND k = 10 AND rowid = 3", "1");
    sql_gives(db, "SELECT count(*) FROM docs WHERE vector MATCH '[1,-2,0.5,3,0]' AND k = 10 AND rowid IN (3)", "1");
    sql_gives(
        db, "SELECT count(*) FROM docs WHERE vector MATCH '[1,-2,0.5,3,0]' AND k = 10 AND rowid IN (3, 5, 'x', NULL, 5.5, '7')",
        "3");
}

static void joins_search_once_for_each_query(void **state)
{
    (void)state;
    sqlite3 *db = dbs[WW_COSINE];
    sql_run(db, "CREATE TEMP TABLE q(name, v, n); INSERT INTO q VALUES ('x', '[1,0,0,0,0]', 2), ('y', '[0,1,0,0,0]', 3), ('z', "
                "'[1,1,1,1,1]', 1)");
    sql_gives(db,
              "SELECT name, count(*) FROM q JOIN docs ON docs.vector MATCH q.v AND docs.k = q.n GROUP BY name ORDER BY name",
              "x|2 y|3 z|1");
    sql_gives(
        db, "SELECT name, count(docs.id) FROM q LEFT JOIN docs ON docs.vector MATCH q.v AND k = n GROUP BY name ORDER BY name",
        "x|2 y|3 z|1");
    char *joined = sql_text(
        db, "SELECT name, docs.rowid, score FROM q, docs WHERE vector MATCH v AND k = 3 AND name = 'y' ORDER BY distance");
    char *alone = sql_text(db, "SELECT 'y', rowid, score FROM docs WHERE vector MATCH '[0,1,0,0,0]' AND k = 3");
    assert_string_equal(joined, alone);
    free(joined), free(alone);
    /* A join by rowid is done with the k rows that were found, whichever table is named first. */
    sql_run(db, "CREATE TEMP TABLE meta(handle INTEGER PRIMARY KEY, word); INSERT INTO meta SELECT handle, 'w' || handle FROM "
                "docs_rows");
    sql_gives(db, "SELECT count(*) FROM docs JOIN meta ON meta.handle = docs.rowid WHERE vector MATCH '[0,1,0,0,0]' AND k = 5",
              "5");
    sql_gives(db, "SELECT count(*) FROM meta JOIN docs ON meta.handle = docs.rowid WHERE vector MATCH '[0,1,0,0,0]' AND k = 5",
              "5");
    /* Unless the statement forces the order: then each row of the other table admits one row to a search of its own. */
    sql_gives(db,
              "SELECT count(*) FROM meta CROSS JOIN docs ON meta.handle = docs.rowid "
              "WHERE vector MATCH '[0,1,0,0,0]' AND k = 5 AND meta.handle < 9",
              "9");
    sql_gives(db, "SELECT count(*) FROM docs a JOIN docs b ON b.vector MATCH a.vector AND b.k = 1 WHERE a.rowid < 20", "20");
    sql_run(db, "DROP TABLE q; DROP TABLE meta");
}

static void plans_are_the_ones_that_were_meant(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"SELECT id FROM docs WHERE vector MATCH ? AND k = 3", "nearest"},
        {"SELECT id FROM docs WHERE vector MATCH ? AND radius = 3", "range"},
        {"SELECT id FROM docs WHERE vector MATCH ? ORDER BY distance LIMIT 3", "ordered"},
        {"SELECT id FROM docs WHERE rowid = 3", "rowid"},
        {"SELECT id FROM docs WHERE rowid IN (3, 4)", "rowid"},
        {"SELECT id FROM docs WHERE id = 'r3'", ":id"},
        {"SELECT id FROM docs", "scan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", cases[i][0]);
        char *plan = sql_text(dbs[WW_L2], explain);
        if (!plan || !strstr(plan, cases[i][1]) || strstr(plan, "TEMP B-TREE"))
            fail_msg("%s: %s", cases[i][0], plan ? plan : sqlite3_errmsg(dbs[WW_L2]));
        free(plan);
        sqlite3_free(explain);
    }
    /* The order that a search does not have is SQLite's to make. */
    static const char *const sorted[] = {"SELECT id FROM docs WHERE vector MATCH ? ORDER BY distance DESC",
                                         "SELECT id FROM docs WHERE vector MATCH ? ORDER BY score DESC",
                                         "SELECT id FROM docs WHERE vector MATCH ? ORDER BY distance, id",
                                         "SELECT id FROM docs ORDER BY rowid"};
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++) {
        char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sorted[i]);
        char *plan = sql_text(dbs[WW_L2], explain);
        assert_non_null(strstr(plan, "TEMP B-TREE"));
        free(plan);
        sqlite3_free(explain);
    }
}

/* The table as a function: its arguments are query, k, radius, filter and parameters. */
static void a_table_that_is_called_with_a_vector_searches(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"SELECT id, distance FROM docs('[1,2,3,4,5]', 7)",
         "SELECT id, distance FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 7"},
        {"SELECT id FROM docs('[1,2,3,4,5]') LIMIT 40",
         "SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' ORDER BY distance LIMIT 40"},
        {"SELECT id FROM docs('[1,2,3,4,5]', 9, 1.5)",
         "SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 9 AND radius = 1.5"},
        {"SELECT id FROM docs('[1,2,3,4,5]', 4) WHERE filter = 'handle > 300'",
         "SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 4 AND filter = 'handle > 300'"},
        {"SELECT d.id FROM (SELECT '[1,2,3,4,5]' AS q) AS asked, docs(asked.q, 3) AS d",
         "SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 3"},
    };
    for (int metric = 0; metric < 3; metric++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char *expected = sql_text(dbs[metric], cases[i][1]);
            assert_non_null(expected);
            sql_gives(dbs[metric], cases[i][0], expected);
            free(expected);
        }
    assert_int_equal(sql_number(dbs[WW_L2], "SELECT count(*) FROM docs('[1,2,3,4,5]')"), ROWS);
}

/* Programs that browse tables ask which columns have values. */
static void hidden_columns_read_as_null(void **state)
{
    (void)state;
    static const char *const names[] = {"query", "k", "radius", "filter", "parameters", "score", "distance"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *not_null = sqlite3_mprintf("SELECT count(*) FROM docs WHERE %s IS NOT NULL", names[i]);
        char *null = sqlite3_mprintf("SELECT count(*) FROM docs WHERE %s IS NULL", names[i]);
        char *groups = sqlite3_mprintf("SELECT %s, count(*) FROM docs GROUP BY 1", names[i]);
        assert_int_equal(sql_number(dbs[WW_L2], not_null), 0);
        assert_int_equal(sql_number(dbs[WW_L2], null), ROWS);
        sql_gives(dbs[WW_L2], groups, "|700");
        sqlite3_free(not_null);
        sqlite3_free(null);
        sqlite3_free(groups);
    }
}

static void questions_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"SELECT id FROM docs WHERE k = 3", "need a query"},
        {"SELECT id FROM docs WHERE filter = '1'", "need a query"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k < 3", "take = and nothing else"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 3 AND k = 4", "once each"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND vector MATCH '[1,2,3,4,5]' AND k = 3",
         "the query is given twice"},
        {"SELECT id FROM docs('[1,2,3,4,5]', 3) WHERE vector MATCH '[1,2,3,4,5]'", "the query is given twice"},
        {"SELECT id FROM docs('[1,2,3,4]')", "a JSON array of 4 numbers; 5 are needed"},
        {"SELECT id FROM docs(NULL)", "NULL; a vector is"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND (query = '[1,2,3,4,5]' OR k = 3)", "not in an expression"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 16385",
         "k is 16385; the maximum is 16384; ORDER BY distance LIMIT 16385 without k"},
        {"INSERT INTO docs(id, vector, query) VALUES('new', '[1,2,3,4,5]', '[]')", "query cannot be written"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = -1", "k is -1; it must be at least 1"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 0", "k is 0; it must be at least 1"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 'ten'", "k is a text; it must be an integer"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1.5", "k is a number; it must be an integer"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = NULL", "k is NULL"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND radius = NULL", "radius is NULL"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND radius = -1", "radius is -1; a distance is not negative"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 5", "filter is an integer"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = NULL", "filter is NULL"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4]' AND k = 1", "a JSON array of 4 numbers; 5 are needed"},
        {"SELECT id FROM docs WHERE vector MATCH NULL AND k = 1", "NULL; a vector is"},
        {"SELECT id FROM docs WHERE vector MATCH x'00' AND k = 1", "a blob of 1 bytes; 5 f32 numbers take 20"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = '1); DROP TABLE docs_rows; --'",
         "closes nothing"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = '1; ATTACH ''x'' AS y'", "semicolon"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = ?'", "has no value"},
        {"SELECT id FROM docs WHERE parameters = '[]'", "need a query"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND parameters = '[]'", "but no filter"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = ?' AND parameters = '[]'",
         "no value"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = '1' AND parameters = '[1]'", "parameter"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = ?' AND parameters = '['", "JSON"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = ?' AND parameters = '7'",
         "parameters are a JSON array"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = ?' AND parameters = 7",
         "parameters is an integer"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = ?' AND parameters = '[[1]]'",
         "parameter 0 is an array"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = :a' AND parameters = '{\"b\": 1}'",
         ":b"},
        {"SELECT id FROM docs WHERE vector MATCH '[1,2,3,4,5]' AND k = 1 AND filter = 'id = :a' AND parameters = '{\"a\": "
         "[1]}'",
         "must stand alone after IN"},
        {"INSERT INTO docs(id, vector, parameters) VALUES('new', '[1,2,3,4,5]', '[]')", "parameters cannot be written"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        sql_fails(dbs[WW_L2], cases[i][0], cases[i][1]);
    sql_gives(dbs[WW_L2], "SELECT count(*) FROM docs_rows", "700");
}

static void a_statement_may_write_the_table_it_searches(void **state)
{
    (void)state;
    sqlite3 *db = dbs[WW_DOT];
    sql_run(db, "BEGIN");
    sql_run(db, "INSERT INTO docs(id, vector, payload) SELECT 'copy ' || id, vector, payload FROM docs WHERE vector MATCH "
                "'[1,1,1,1,1]' AND k = 20");
    sql_gives(db, "SELECT count(*) FROM docs WHERE id LIKE 'copy %'", "20");
    sql_run(db, "INSERT INTO docs(id, vector) SELECT 'more ' || id, vector FROM docs WHERE vector MATCH '[1,1,1,1,1]' ORDER BY "
                "distance LIMIT 300");
    sql_gives(db, "SELECT count(*) FROM docs", "1020");
    sql_run(db, "UPDATE docs SET payload = '\"seen\"' WHERE vector MATCH '[1,1,1,1,1]' AND k = 7");
    sql_gives(db, "SELECT changes(), (SELECT count(*) FROM docs WHERE payload = '\"seen\"')", "7|7");
    sql_run(db, "DELETE FROM docs WHERE vector MATCH '[1,1,1,1,1]' AND k = 50");
    sql_gives(db, "SELECT count(*) FROM docs", "970");
    sql_run(db, "ROLLBACK");
    sql_gives(db, "SELECT count(*) FROM docs", "700");
}

static void rows_that_are_read_may_be_written_between_the_steps(void **state)
{
    (void)state;
    sqlite3 *db = dbs[WW_L2];
    sqlite3_stmt *statement = NULL;
    char seen[ROWS] = {0};
    int64_t rows = 0;
    sql_run(db, "BEGIN");
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rowid, id FROM docs WHERE vector MATCH '[0,0,0,0,0]' ORDER BY distance", -1,
                                        &statement, NULL),
                     SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const int64_t handle = sqlite3_column_int64(statement, 0);
        assert_false(seen[handle]);
        seen[handle] = 1;
        char *sql = sqlite3_mprintf("DELETE FROM docs WHERE rowid = %lld", (long long)handle);
        sql_run(db, sql);
        sqlite3_free(sql);
        rows++;
    }
    sqlite3_finalize(statement);
    assert_int_equal(rows, ROWS);
    sql_run(db, "ROLLBACK");
    sql_gives(db, "SELECT count(*) FROM docs", "700");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_are_those_of_brute_force),
        cmocka_unit_test(a_filter_finds_the_nearest_of_the_admitted_rows),
        cmocka_unit_test(a_filter_takes_parameters),
        cmocka_unit_test(without_k_any_other_term_is_exact),
        cmocka_unit_test(a_radius_or_a_bound_finds_exactly_the_rows_within_it),
        cmocka_unit_test(terms_other_than_k_are_applied_after_it),
        cmocka_unit_test(joins_search_once_for_each_query),
        cmocka_unit_test(plans_are_the_ones_that_were_meant),
        cmocka_unit_test(a_table_that_is_called_with_a_vector_searches),
        cmocka_unit_test(hidden_columns_read_as_null),
        cmocka_unit_test(questions_that_make_no_sense_are_refused),
        cmocka_unit_test(a_statement_may_write_the_table_it_searches),
        cmocka_unit_test(rows_that_are_read_may_be_written_between_the_steps),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
