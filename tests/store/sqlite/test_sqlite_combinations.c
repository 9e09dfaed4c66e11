/* Searches with every combination of terms that SQLite may plan in its own ways: lists of rowids, twice and more; single
 * rowids; OR; ranges; other columns; joins, subqueries and changes. Each answer is that of plain SQL over a plain table, where
 * what admits rows stands within a subquery with the order and the limit, and everything else outside. */
#include "store/sqlite/sql.h"

#include <stdio.h>

#include "support/data/random.h"

enum { ROWS = 40, CASES = 3000, TEXT = 4096 };

static sqlite3 *db;
static test_random dice = {7};

static unsigned below(unsigned bound)
{
    return (unsigned)random_below(&dice, bound);
}

static int setup(void **state)
{
    (void)state;
    db = sql_open(":memory:");
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu);" SQL_FROM_0
                "CREATE TABLE p(h INTEGER PRIMARY KEY, id TEXT, d REAL, payload TEXT);"
                "CREATE TABLE a(h); CREATE TABLE b(h INTEGER PRIMARY KEY); CREATE TABLE q(name TEXT, v TEXT, n INTEGER)");
    for (int i = 0; i < ROWS; i++) {
        const int d = i * 17 % 41; /* every distance once */
        char sql[400];
        snprintf(sql, sizeof sql,
                 "INSERT INTO docs(id, vector, payload) VALUES ('r%d', '[%d,0]', '{\"n\":%d}');"
                 "INSERT INTO p VALUES (%d, 'r%d', %d, '{\"n\":%d}')",
                 i, d, i % 7, i, i, d, i % 7);
        sql_run(db, sql);
    }
    sql_run(db,
            "INSERT INTO a SELECT h FROM p WHERE h % 3 <> 0 UNION ALL SELECT NULL UNION ALL SELECT 'x' UNION ALL SELECT 7.5;"
            "INSERT INTO b SELECT h + 5 FROM p; INSERT INTO q VALUES ('x', '[0,0]', 3), ('y', '[0,0]', 5), ('z', '[0,0]', 1)");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return 0;
}

static void append(char *text, const char *more)
{
    assert_true(strlen(text) + strlen(more) + 1 < TEXT);
    strcat(text, more);
}

/* A term that admits rows before the search; `%s` is the name of the rowid. */
static void admitting(char *term, size_t bytes, const char *rowid)
{
    switch (below(8)) {
    case 0:
        snprintf(term, bytes, "%s IN (%u, %u, %u, NULL)", rowid, below(ROWS), below(ROWS), below(ROWS + 9));
        break;
    case 1:
        snprintf(term, bytes, "%s IN (SELECT h FROM a)", rowid);
        break;
    case 2:
        snprintf(term, bytes, "%s IN (SELECT h FROM b)", rowid);
        break;
    case 3:
        snprintf(term, bytes, "%s IN (SELECT h FROM p WHERE h %% %u = 1)", rowid, 2 + below(4));
        break;
    case 4:
        snprintf(term, bytes, "(%s = %u OR %s = %u OR %s = %u)", rowid, below(ROWS), rowid, below(ROWS), rowid, below(ROWS));
        break;
    case 5:
        snprintf(term, bytes, "%s = %u", rowid, below(ROWS));
        break;
    case 6:
        snprintf(term, bytes, "%s = (SELECT max(h) - %u FROM p)", rowid, below(6));
        break;
    default:
        snprintf(term, bytes, "%s IN (SELECT value FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12,%u]'))", rowid, below(ROWS));
        break;
    }
}

/* A condition that is applied to the found rows. */
static void remaining(char *term, size_t bytes, const char *rowid, const char *distance)
{
    switch (below(9)) {
    case 0:
        snprintf(term, bytes, "id IN ('r%u', 'r%u', 'r%u')", below(ROWS), below(ROWS), below(ROWS));
        break;
    case 1:
        snprintf(term, bytes, "id > 'r%u'", below(ROWS));
        break;
    case 2:
        snprintf(term, bytes, "%s > %u", rowid, below(ROWS));
        break;
    case 3:
        snprintf(term, bytes, "%s BETWEEN %u AND %u", rowid, below(ROWS), 20 + below(ROWS));
        break;
    case 4:
        snprintf(term, bytes, "(%s = %u OR id = 'r%u' OR %s > 30)", rowid, below(ROWS), below(ROWS), rowid);
        break;
    case 5:
        snprintf(term, bytes, "payload->>'$.n' <> %u", below(7));
        break;
    case 6:
        snprintf(term, bytes, "%s <= %u", distance, below(45));
        break;
    case 7:
        snprintf(term, bytes, "%s NOT IN (%u, %u)", rowid, below(ROWS), below(ROWS));
        break;
    default:
        snprintf(term, bytes, "NOT EXISTS (SELECT 1 FROM b WHERE b.h = %s AND b.h > %u)", rowid, below(ROWS));
        break;
    }
}

/* A search as a SELECT of h, id and d, and the same in plain SQL. */
static void make_search(char *search, char *plain)
{
    const int lists = (int)below(4), others = (int)below(3);
    const bool has_k = below(4) != 0, has_filter = below(3) == 0, has_radius = below(4) == 0;
    const unsigned k = 1 + below(12), radius = below(45), least = below(7);
    char text[512], where[TEXT] = "", admitted[TEXT] = "1", rest[TEXT] = "1";
    append(where, "vector MATCH '[0,0]'");
    for (int i = 0; i < lists; i++) {
        const uint64_t seed = dice.state;
        admitting(text, sizeof text, "docs.rowid");
        append(where, " AND "), append(where, text);
        dice.state = seed;
        admitting(text, sizeof text, "p.h");
        append(admitted, " AND "), append(admitted, text);
    }
    for (int i = 0; i < others; i++) {
        const uint64_t seed = dice.state;
        remaining(text, sizeof text, "docs.rowid", "distance");
        append(where, " AND "), append(where, text);
        dice.state = seed;
        remaining(text, sizeof text, "s.h", "d");
        append(rest, " AND "), append(rest, text);
    }
    if (has_k) {
        snprintf(text, sizeof text, " AND k = %u", k);
        append(where, text);
    }
    if (has_radius) {
        snprintf(text, sizeof text, " AND radius = %u", radius);
        append(where, text);
        snprintf(text, sizeof text, " AND d <= %u", radius);
        append(admitted, text);
    }
    if (has_filter) {
        snprintf(text, sizeof text, " AND filter = 'payload->>''$.n'' >= ?' AND parameters = '[%u]'", least);
        append(where, text);
        snprintf(text, sizeof text, " AND payload->>'$.n' >= %u", least);
        append(admitted, text);
    }
    snprintf(search, 3 * TEXT, "SELECT docs.rowid AS h, id, distance AS d FROM docs WHERE %s", where);
    snprintf(plain, 3 * TEXT, "SELECT h, id, d FROM (SELECT * FROM p WHERE %s ORDER BY d LIMIT %d) AS s WHERE %s", admitted,
             has_k ? (int)k : -1, rest);
}

static void same(const char *sql, const char *plain)
{
    char *found = sql_text(db, sql);
    if (!found)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    char *expected = sql_text(db, plain);
    if (!expected)
        fail_msg("%s: %s", plain, sqlite3_errmsg(db));
    if (strcmp(found, expected) != 0)
        fail_msg("%s\n    gives \"%s\"\n    not   \"%s\"\n    as %s", sql, found, expected, plain);
    free(found), free(expected);
}

/* The places where a search can appear. */
static const char *const FRAMES[] = {
    "SELECT h, id, CAST(d AS INTEGER) FROM (%s) ORDER BY d",
    "SELECT h FROM (%s) ORDER BY h DESC",
    "SELECT count(*), min(d), max(h) FROM (%s)",
    "SELECT s.h, a.rowid FROM (%s) AS s LEFT JOIN a ON a.h = s.h ORDER BY s.h",
    "SELECT s.h, b.h FROM b JOIN (%s) AS s ON s.h = b.h ORDER BY b.h",
    "SELECT name, s.h FROM q, (%s) AS s ORDER BY name, s.h",
    "SELECT name, s.h FROM q LEFT JOIN (%s) AS s ON +s.h = q.n ORDER BY name, s.h",
    "WITH s AS MATERIALIZED (%s) SELECT x.h, y.h FROM s x JOIN s y ON x.h <= y.h ORDER BY x.h, y.h",
    "SELECT h FROM p WHERE h IN (SELECT h FROM (%s)) ORDER BY h",
    "SELECT h FROM p WHERE EXISTS (SELECT 1 FROM (%s) AS s WHERE +s.h = p.h) ORDER BY h",
    "SELECT h FROM (%s) ORDER BY d LIMIT 3 OFFSET 1",
    "SELECT h FROM (%s) UNION ALL SELECT -1 ORDER BY h",
};

static void searches_answer_as_plain_sql_does(void **state)
{
    (void)state;
    static char search[3 * TEXT], plain[3 * TEXT], sql[4 * TEXT], expected[4 * TEXT];
    for (int i = 0; i < CASES; i++) {
        const char *frame = FRAMES[below(sizeof FRAMES / sizeof *FRAMES)];
        make_search(search, plain);
        sqlite3_snprintf(sizeof sql, sql, frame, search);
        sqlite3_snprintf(sizeof expected, expected, frame, plain);
        same(sql, expected);
    }
}

static void changes_by_a_search_change_the_rows_it_finds(void **state)
{
    (void)state;
    static char search[3 * TEXT], plain[3 * TEXT], sql[4 * TEXT];
    for (int i = 0; i < CASES / 10; i++) {
        make_search(search, plain);
        const char *where = strstr(search, "WHERE");
        const bool removes = below(2);
        sql_run(db, "BEGIN");
        sqlite3_snprintf(sizeof sql, sql, removes ? "DELETE FROM docs %s" : "UPDATE docs SET payload = '7' %s", where);
        sql_run(db, sql);
        sqlite3_snprintf(sizeof sql, sql,
                         removes ? "DELETE FROM p WHERE h IN (SELECT h FROM (%s))"
                                 : "UPDATE p SET payload = '7' WHERE h IN (SELECT h FROM (%s))",
                         plain);
        sql_run(db, sql);
        same("SELECT docs.rowid, id, payload FROM docs ORDER BY docs.rowid", "SELECT h, id, payload FROM p ORDER BY h");
        same("SELECT docs.rowid FROM docs WHERE vector MATCH '[0,0]' AND k = 100", "SELECT h FROM p ORDER BY d");
        sql_run(db, "ROLLBACK");
    }
}

/* A search for each row of a table that says how. */
static void joins_and_correlated_subqueries_search_for_each_row(void **state)
{
    (void)state;
    same(
        "SELECT name, group_concat(h) FROM (SELECT name, docs.rowid AS h FROM q JOIN docs ON vector MATCH v AND k = n ORDER BY "
        "name, distance) GROUP BY name",
        "SELECT name, group_concat(h) FROM (SELECT name, h FROM q, p WHERE (SELECT count(*) FROM p z WHERE z.d < p.d) < n "
        "ORDER "
        "BY name, d) GROUP BY name");
    same("SELECT name, (SELECT group_concat(docs.rowid) FROM docs WHERE vector MATCH v AND k = n) FROM q ORDER BY name",
         "SELECT name, (SELECT group_concat(h) FROM (SELECT h FROM p WHERE (SELECT count(*) FROM p z WHERE z.d < p.d) < n "
         "ORDER BY "
         "d)) FROM q ORDER BY name");
    same("SELECT name, docs.rowid FROM q LEFT JOIN docs ON vector MATCH v AND k = n AND docs.rowid IN (SELECT h FROM b) ORDER "
         "BY "
         "name, distance",
         "SELECT name, p.h FROM q LEFT JOIN p ON h IN (SELECT h FROM p y WHERE h IN (SELECT h FROM b) AND (SELECT count(*) "
         "FROM p "
         "z WHERE z.d < y.d AND z.h IN (SELECT h FROM b)) < n) ORDER BY name, d");
    same(
        "SELECT (SELECT count(*) FROM docs WHERE vector MATCH '[0,0]' AND k = 9 AND docs.rowid IN (SELECT h FROM a WHERE a.h > "
        "q.n)) FROM q ORDER BY name",
        "SELECT min(9, (SELECT count(*) FROM p WHERE h IN (SELECT h FROM a WHERE a.h > q.n))) FROM q ORDER BY name");
}

static void meaningless_arguments_are_refused(void **state)
{
    (void)state;
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k IN (2, 3)", "one value");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND (k = 2 OR k = 3)", "one value");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND filter IN ('1', '0')", "one value");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND (k = 2 OR rowid = 7)", "must stand beside MATCH");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k + 0 = 2", "must stand beside MATCH");
    sql_fails(db, "SELECT id FROM docs WHERE k = 2", "need a query");
    sql_fails(db, "SELECT id FROM docs WHERE k = 2 AND (rowid = 1 OR rowid = 2)", "need a query");
    sql_gives(db, "SELECT id FROM docs WHERE (vector MATCH '[0,0]' AND k = 2) OR (vector MATCH '[40,0]' AND k = 1)",
              "r0 r29 r12");
    /* SQLite does not tell which of more than 32 terms are lists. */
    char sql[TEXT] = "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 2";
    for (int i = 0; i < 40; i++) {
        char term[64];
        snprintf(term, sizeof term, " AND distance < %d", 100000 + i);
        append(sql, term);
    }
    append(sql, " AND rowid IN (SELECT h FROM a)");
    sql_fails(db, sql, "more than 31 terms on rowid, or 32 terms before one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches_answer_as_plain_sql_does),
        cmocka_unit_test(changes_by_a_search_change_the_rows_it_finds),
        cmocka_unit_test(joins_and_correlated_subqueries_search_for_each_row),
        cmocka_unit_test(meaningless_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
