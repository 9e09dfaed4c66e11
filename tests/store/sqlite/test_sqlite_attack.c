/* An attack by SQL: random statements of a host, many of them hostile, on connections of two processes.
 *
 * Beside the collection `docs` there is a plain table `model` in the same file. Every change of the one is made to the other in
 * the same transaction, so in every snapshot of every connection, after every commit, rollback, savepoint, reset of the schema
 * and failure, both have the same rows. After each round the file is opened and checked by the library.
 *
 * WARPWAVE_ATTACK_SECONDS sets how long it runs, 3 by default; WARPWAVE_ATTACK_SEED sets the seed.
 */
#include "store/sqlite/sql.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <warpwave/store.h>

#include "support/data/random.h"
#include "support/process.h"
#include "support/scratch.h"

enum { CONNECTIONS = 2, STEPS = 300, CURSORS = 4, IDS = 24, SQL_BYTES = 2048 };

typedef struct attacker {
    test_random random;
    uint64_t seed;
    const char *path;
    bool alone; /* no other process: then a change need not be in the same transaction as that of the model */
    sqlite3 *db[CONNECTIONS];
    sqlite3_stmt *cursors[CURSORS];
    int64_t next_x;
    char last[SQL_BYTES]; /* the last statement, for messages */
    int64_t done, failed, compared;
} attacker;

static const char DOCS[] = "CREATE VIRTUAL TABLE main.docs USING warpwave(dim=2, metric=l2, device=cpu)";

/* Statements that reset the schema, that look harmful, or that do harm elsewhere. What they leave behind stays. */
static const char *const HOSTILE[] = {
    "ATTACH '/nonexistent/folder/x.db' AS broken",
    "ATTACH ':memory:' AS extra",
    "DETACH extra",
    "CREATE VIRTUAL TABLE extra.docs USING warpwave(dim=2, metric=l2, device=cpu)",
    "INSERT INTO extra.docs(vector) VALUES ('[1,2]')",
    "SELECT id FROM extra.docs WHERE vector MATCH '[0,0]' AND k = 3 AND filter = 'id IN (SELECT id FROM main.docs_rows)'",
    "PRAGMA writable_schema = reset",
    "PRAGMA writable_schema = on",
    "PRAGMA writable_schema = off",
    "PRAGMA foreign_keys = on",
    "PRAGMA foreign_keys = off",
    "PRAGMA recursive_triggers = on",
    "PRAGMA defer_foreign_keys = on",
    "PRAGMA cache_size = 10",
    "PRAGMA integrity_check",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "CREATE TABLE IF NOT EXISTS plain(x)",
    "INSERT INTO plain VALUES (1)",
    "DROP TABLE plain",
    "ALTER TABLE plain ADD COLUMN y",
    "CREATE INDEX IF NOT EXISTS by_payload ON docs_rows(payload)",
    "DROP INDEX IF EXISTS by_payload",
    "CREATE VIEW IF NOT EXISTS seen AS SELECT id FROM docs",
    "SELECT * FROM seen",
    "DROP VIEW IF EXISTS seen",
    "CREATE TRIGGER IF NOT EXISTS t1 AFTER DELETE ON docs_rows BEGIN DELETE FROM docs; END",
    "CREATE TRIGGER IF NOT EXISTS t2 BEFORE INSERT ON docs_vectors BEGIN INSERT INTO docs(vector) VALUES ('[1,1]'); END",
    "CREATE TRIGGER IF NOT EXISTS t3 AFTER UPDATE ON warpwave_collections BEGIN DELETE FROM docs_rows; END",
    "CREATE TEMP TRIGGER IF NOT EXISTS t4 AFTER INSERT ON main.docs_rows BEGIN DELETE FROM docs_vectors; END",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "DROP TRIGGER IF EXISTS t1; DROP TRIGGER IF EXISTS t2; DROP TRIGGER IF EXISTS t3; DROP TRIGGER IF EXISTS t4",
    "CREATE TEMP TABLE docs_rows(handle, place, id, payload)",
    "DROP TABLE temp.docs_rows",
    "CREATE TEMP TABLE json_each(value)",
    "DROP TABLE temp.json_each",
    "CREATE TABLE child(h INTEGER REFERENCES docs_rows(handle) ON DELETE CASCADE)",
    "INSERT INTO child SELECT rowid FROM docs LIMIT 3",
    "DELETE FROM child",
    "DROP TABLE IF EXISTS child",
    "CREATE VIRTUAL TABLE second USING warpwave(dim=3)",
    "INSERT INTO second(vector) VALUES ('[1,2,3]')",
    "INSERT INTO second(vector) SELECT json_array(rowid, 0, 0) FROM docs",
    "DELETE FROM second",
    "DROP TABLE second",
    "CREATE VIRTUAL TABLE docs USING warpwave(dim=2)",
    "CREATE TABLE docs_vectors(x)",
    "INSERT INTO docs(rowid, vector) VALUES (9223372036854775806, '[1,2]')",
    "INSERT INTO docs(rowid, vector) VALUES (-5, '[1,2]')",
    "INSERT INTO docs(id, vector) VALUES ('x', 'nonsense')",
    "INSERT INTO docs(id, vector, payload) VALUES ('x', '[1,2]', '{')",
    "UPDATE docs SET rowid = rowid + 1",
    "UPDATE docs SET k = 3",
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k IN (1, 2)",
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 3 AND (rowid = 1 OR rowid = 2 OR id = 'i3')",
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 3 AND rowid IN (SELECT rowid FROM docs) AND rowid IN (1, 2, 3, 4)",
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 5 AND filter = 'payload->>''$.n'' > 3'",
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND filter = 'EXISTS (SELECT 1 FROM json_each(payload))' ORDER BY distance",
    "SELECT a.id FROM docs a JOIN docs b ON b.vector MATCH a.vector AND b.k = 2",
    "SELECT count(*) FROM docs LEFT JOIN plain ON plain.x = docs.rowid",
    "SELECT * FROM nowhere",
    "RELEASE nothing",
};
enum { HOSTILE_COUNT = sizeof HOSTILE / sizeof *HOSTILE };

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t below(attacker *a, uint64_t bound)
{
    return random_below(&a->random, bound);
}

__attribute__((noreturn)) static void broken(const attacker *a, sqlite3 *db, const char *what, const char *more)
{
    fprintf(stderr, "seed %llu: %s: %s\n    last: %s\n    SQLite: %s\n", (unsigned long long)a->seed, what, more ? more : "",
            a->last, db ? sqlite3_errmsg(db) : "");
    _exit(1);
}

/* Failures are part of the game; these are not: they say that something is damaged. */
static void examine(const attacker *a, sqlite3 *db, int code, const char *message)
{
    static const char *const bad[] = {"never assigned", "contradict", "other means", "is invalid",       "forgotten",
                                      "malformed",      "belong",     "says",        "was changed while"};
    if (code == SQLITE_MISUSE || (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB)
        broken(a, db, "damaged", message);
    for (size_t i = 0; message && i < sizeof bad / sizeof *bad; i++)
        if (strstr(message, bad[i]))
            broken(a, db, "damaged", message);
}

/* Runs a statement that may fail; true if it did not. */
static bool attempt(attacker *a, sqlite3 *db, const char *sql)
{
    char *message = NULL;
    snprintf(a->last, sizeof a->last, "%s", sql);
    const int code = sqlite3_exec(db, sql, NULL, NULL, &message);
    if (code != SQLITE_OK)
        examine(a, db, code, message);
    sqlite3_free(message);
    a->done += code == SQLITE_OK;
    a->failed += code != SQLITE_OK;
    return code == SQLITE_OK;
}

/* The model's side of a change that was made; it can only fail together with the transaction. */
static void follow(attacker *a, sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        broken(a, db, "the model", message);
}

static void compare(attacker *a, sqlite3 *db)
{
    static const char *const questions[][2] = {
        {"SELECT id, CAST(ww_to_json(vector) ->> '$[0]' AS INTEGER), payload FROM main.docs ORDER BY id",
         "SELECT id, x, payload FROM main.model ORDER BY id"},
        {"SELECT id FROM main.docs WHERE vector MATCH '[0,0]' AND k = 1000", "SELECT id FROM main.model ORDER BY x"},
        {"SELECT id FROM main.docs WHERE vector MATCH '[0,0]' AND k = 7 AND filter = 'payload->>''$.n'' >= 4'",
         "SELECT id FROM main.model WHERE payload->>'$.n' >= 4 ORDER BY x LIMIT 7"},
        {"SELECT count(DISTINCT rowid) FROM main.docs", "SELECT count(*) FROM main.model"},
    };
    const bool begun = sqlite3_get_autocommit(db) && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        snprintf(a->last + strnlen(a->last, SQL_BYTES / 2), SQL_BYTES / 2, "; then %s", questions[i][0]);
        char *found = sql_text(db, questions[i][0]);
        const int code = sqlite3_errcode(db);
        if (!found) { /* busy, or a filter that a table in the way forbids; never damage */
            examine(a, db, code, sqlite3_errmsg(db));
            continue;
        }
        char *expected = sql_text(db, questions[i][1]);
        if (expected && strcmp(found, expected) != 0) {
            fprintf(stderr, "found    %s\nexpected %s\n", found, expected);
            broken(a, db, "the rows are not those of the model", questions[i][0]);
        }
        free(found), free(expected);
        a->compared++;
    }
    if (begun)
        (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

/* A change to both, as a pair of statements. */
static void make_change(attacker *a, char docs[SQL_BYTES], char model[SQL_BYTES])
{
    static const char *const conflicts[] = {"", "", "OR IGNORE ", "OR REPLACE ", "OR FAIL ", "OR ABORT "};
    const unsigned id = (unsigned)below(a, IDS), other = (unsigned)below(a, IDS), n = (unsigned)below(a, 9);
    const long long x = a->next_x += 2; /* the other process has the odd ones */
    switch (below(a, 9)) {
    case 0:
    case 1:
    case 2: {
        const unsigned how = (unsigned)below(a, 6);
        snprintf(docs, SQL_BYTES, "INSERT %sINTO main.docs(id, vector, payload) VALUES ('i%u', '[%lld,0]', '{\"n\":%u}')",
                 conflicts[how], id, x, n);
        snprintf(model, SQL_BYTES,
                 "INSERT INTO main.model(id, x, payload) VALUES ('i%u', %lld, '{\"n\":%u}') ON CONFLICT(id) %s", id, x, n,
                 how == 3 ? "DO UPDATE SET x = excluded.x, payload = excluded.payload" : "DO NOTHING");
        break;
    }
    case 3: /* many rows, one of which may exist */
        snprintf(docs, SQL_BYTES, "INSERT INTO main.docs(id, vector) VALUES ('m%u', '[%lld,0]'), ('i%u', '[%lld,0]')", id, x,
                 other, x + 4000000);
        snprintf(model, SQL_BYTES, "INSERT INTO main.model(id, x) VALUES ('m%u', %lld), ('i%u', %lld)", id, x, other,
                 x + 4000000);
        break;
    case 4:
        snprintf(docs, SQL_BYTES, "DELETE FROM main.docs WHERE id = 'i%u'", id);
        snprintf(model, SQL_BYTES, "DELETE FROM main.model WHERE id = 'i%u'", id);
        break;
    case 5:
        snprintf(docs, SQL_BYTES, "DELETE FROM main.docs WHERE vector MATCH '[0,0]' AND k = %u", n % 4);
        snprintf(model, SQL_BYTES, "DELETE FROM main.model WHERE id IN (SELECT id FROM main.model ORDER BY x LIMIT %u)", n % 4);
        break;
    case 6:
        snprintf(docs, SQL_BYTES, "UPDATE main.docs SET vector = '[%lld,0]' WHERE id = 'i%u'", x, id);
        snprintf(model, SQL_BYTES, "UPDATE main.model SET x = %lld WHERE id = 'i%u'", x, id);
        break;
    case 7:
        snprintf(docs, SQL_BYTES, "UPDATE main.docs SET payload = json_object('n', %u) WHERE vector MATCH '[0,0]' AND k = 2",
                 n);
        snprintf(
            model, SQL_BYTES,
            "UPDATE main.model SET payload = json_object('n', %u) WHERE id IN (SELECT id FROM main.model ORDER BY x LIMIT 2)",
            n);
        break;
    default:
        snprintf(docs, SQL_BYTES, "UPDATE main.docs SET id = 'i%u' WHERE id = 'm%u'", other, id);
        snprintf(model, SQL_BYTES, "UPDATE main.model SET id = 'i%u' WHERE id = 'm%u'", other, id);
        break;
    }
}

static void step_change(attacker *a, sqlite3 *db)
{
    char docs[SQL_BYTES], model[SQL_BYTES];
    const bool in_transaction = !sqlite3_get_autocommit(db);
    make_change(a, docs, model);
    if (!in_transaction && !(a->alone && below(a, 2)) && !attempt(a, db, "BEGIN IMMEDIATE"))
        return;
    const bool begun = !in_transaction && !sqlite3_get_autocommit(db);
    if (attempt(a, db, docs)) {
        if (in_transaction && sqlite3_get_autocommit(db))
            broken(a, db, "a change that succeeded ended the transaction", docs);
        follow(a, db, model);
    }
    if (begun && !sqlite3_get_autocommit(db) && !attempt(a, db, below(a, 5) ? "COMMIT" : "ROLLBACK"))
        (void)attempt(a, db, "ROLLBACK");
}

static void step_transaction(attacker *a, sqlite3 *db)
{
    static const char *const statements[] = {"BEGIN",     "BEGIN IMMEDIATE", "COMMIT",       "COMMIT",
                                             "ROLLBACK",  "SAVEPOINT s",     "SAVEPOINT s",  "ROLLBACK TO s",
                                             "RELEASE s", "SAVEPOINT t",     "ROLLBACK TO t"};
    (void)attempt(a, db, statements[below(a, sizeof statements / sizeof *statements)]);
}

/* Statements that are in the middle of their rows while everything else continues. */
static void step_cursor(attacker *a, sqlite3 *db)
{
    static const char *const queries[] = {"SELECT id, payload FROM main.docs",
                                          "SELECT id FROM main.docs WHERE vector MATCH '[0,0]' ORDER BY distance",
                                          "SELECT id, vector FROM main.docs WHERE vector MATCH '[9,9]' AND k = 5"};
    sqlite3_stmt **cursor = &a->cursors[below(a, CURSORS)];
    snprintf(a->last, sizeof a->last, "a cursor");
    if (!*cursor && sqlite3_prepare_v2(db, queries[below(a, 3)], -1, cursor, NULL) != SQLITE_OK)
        return;
    for (uint64_t i = below(a, 6); i > 0; i--) {
        const int code = sqlite3_step(*cursor);
        if (code == SQLITE_ROW)
            continue;
        if (code != SQLITE_DONE)
            examine(a, db, code, sqlite3_errmsg(sqlite3_db_handle(*cursor)));
        break;
    }
    if (below(a, 3) == 0) {
        sqlite3_finalize(*cursor);
        *cursor = NULL;
    }
}

/* The whole collection dropped and made again; the model emptied. */
static void step_drop(attacker *a, sqlite3 *db)
{
    if (!sqlite3_get_autocommit(db) || !attempt(a, db, "BEGIN IMMEDIATE"))
        return;
    if (attempt(a, db, "DROP TABLE main.docs") && attempt(a, db, DOCS)) {
        follow(a, db, "DELETE FROM main.model");
        if (below(a, 2) && attempt(a, db, "COMMIT"))
            return;
    }
    if (!sqlite3_get_autocommit(db))
        (void)attempt(a, db, "ROLLBACK");
}

/* There and back again; what only went there is rolled back. */
static void step_rename(attacker *a, sqlite3 *db)
{
    const bool begun = sqlite3_get_autocommit(db) && attempt(a, db, "BEGIN IMMEDIATE");
    if (sqlite3_get_autocommit(db))
        return;
    const bool renamed = attempt(a, db, "ALTER TABLE main.docs RENAME TO papers");
    if (renamed && below(a, 2))
        (void)attempt(a, db, "SELECT id FROM papers WHERE vector MATCH '[0,0]' AND k = 5");
    const bool whole = !renamed || attempt(a, db, "ALTER TABLE main.papers RENAME TO docs");
    if ((begun || !whole) && !(whole && attempt(a, db, "COMMIT")) && !sqlite3_get_autocommit(db))
        (void)attempt(a, db, "ROLLBACK");
}

/* A number that no connection has seen: with one that it has, SQLite itself would take an old schema for the new one. */
static void step_schema_version(attacker *a, sqlite3 *db)
{
    char sql[100];
    snprintf(sql, sizeof sql, "PRAGMA schema_version = %lld", (long long)(1000000 + 1000 * (a->next_x += 2)));
    (void)attempt(a, db, sql);
}

static void step(attacker *a)
{
    sqlite3 *db = a->db[below(a, CONNECTIONS)];
    const uint64_t kind = below(a, 100);
    if (kind < 45)
        step_change(a, db);
    else if (kind < 62)
        step_transaction(a, db);
    else if (kind < 85)
        (void)attempt(a, db, HOSTILE[below(a, HOSTILE_COUNT)]);
    else if (kind < 90)
        step_cursor(a, db);
    else if (kind < 91)
        step_drop(a, db);
    else if (kind < 93)
        step_rename(a, db);
    else if (kind < 94)
        step_schema_version(a, db);
    else
        compare(a, db);
}

static void attack(attacker *a, int steps)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        a->db[i] = sql_open(a->path);
        sqlite3_busy_timeout(a->db[i], a->alone ? 0 : 20);
        (void)sqlite3_exec(a->db[i], "PRAGMA synchronous = off", NULL, NULL, NULL);
    }
    for (int i = 0; i < steps; i++)
        step(a);
    for (int i = 0; i < CURSORS; i++) {
        sqlite3_finalize(a->cursors[i]);
        a->cursors[i] = NULL;
    }
    for (int i = 0; i < CONNECTIONS; i++)
        if (sqlite3_close(a->db[i]) != SQLITE_OK)
            broken(a, a->db[i], "a connection cannot be closed", sqlite3_sql(sqlite3_next_stmt(a->db[i], NULL)));
}

static ww_device *cpu;

static void check_file(attacker *a)
{
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    if (ww_store_open(a->path, cpu, NULL, &store) != WW_OK || ww_store_check(store, NULL, NULL) != WW_OK)
        broken(a, NULL, "the file", ww_error_message());
    /* The library writes while the file has what the host left there: triggers, foreign keys, views. */
    if (ww_store_collection(store, "docs", &docs) != WW_OK)
        broken(a, NULL, "the collection", ww_error_message());
    const float vector[2] = {(float)(a->next_x += 2), 0.0f};
    ww_rows rows = ww_rows_default();
    rows.vectors = vector, rows.count = 1, rows.dim = 2, rows.ids = (const char *const[]){"from C"};
    if (ww_collection_upsert(docs, &rows) != WW_OK || ww_collection_remove(docs, rows.ids, 1) != WW_OK)
        broken(a, NULL, "writing by the library", ww_error_message());
    if (below(a, 4) == 0 && ww_collection_compact(docs, NULL, NULL) != WW_OK)
        broken(a, NULL, "compacting", ww_error_message());
    if (ww_store_check(store, NULL, NULL) != WW_OK)
        broken(a, NULL, "the file after the library wrote", ww_error_message());
    ww_collection_destroy(docs);
    ww_store_close(store);
    sqlite3 *db = sql_open(a->path);
    snprintf(a->last, sizeof a->last, "the file afterwards");
    compare(a, db);
    sqlite3_close(db);
}

/* Starts the other process: this program again, with the file, a seed and a number of steps. */
static pid_t start_other(const attacker *a, int steps)
{
    char seed[32], count[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)a->seed);
    snprintf(count, sizeof count, "%d", steps);
    const pid_t child = fork_when_idle();
    if (child == 0) {
        execl("/proc/self/exe", "attack", a->path, seed, count, (char *)NULL);
        _exit(127);
    }
    return child;
}

static void make_file(const attacker *a, bool wal)
{
    sqlite3 *db = sql_open(a->path);
    sql_run(db, wal ? "PRAGMA journal_mode = wal" : "PRAGMA journal_mode = delete");
    sql_run(db, DOCS);
    sql_run(db, "CREATE TABLE model(id TEXT PRIMARY KEY, x INTEGER, payload TEXT)");
    sqlite3_close(db);
}

static uint64_t environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void no_statement_of_a_host_damages_a_collection(void **state)
{
    (void)state;
    const double end = seconds_now() + (double)environment("WARPWAVE_ATTACK_SECONDS", 3);
    uint64_t seed = environment("WARPWAVE_ATTACK_SEED", 1);
    int64_t done = 0, failed = 0, compared = 0, rounds = 0;
    CHECK_OK(ww_device_open("cpu", &cpu));
    do {
        char name[32];
        snprintf(name, sizeof name, "attack%d.db", (int)rounds);
        char *path = strdup(scratch_path(name));
        attacker a = {.random = {seed * 2654435761u}, .seed = seed, .path = path, .alone = seed % 3 != 0, .next_x = 2};
        make_file(&a, seed % 2);
        const pid_t other = a.alone ? 0 : start_other(&a, STEPS);
        attack(&a, STEPS);
        if (other) {
            int status = 0;
            assert_int_equal(waitpid(other, &status, 0), other);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                fail_msg("seed %llu: the other process ended with status %x", (unsigned long long)seed, (unsigned)status);
        }
        check_file(&a);
        done += a.done, failed += a.failed, compared += a.compared, rounds++, seed++;
        static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
            char file[SCRATCH_PATH_BYTES];
            snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
            unlink(file);
        }
        free(path);
    } while (seconds_now() < end);
    printf("%lld rounds: %lld statements succeeded, %lld failed, %lld comparisons\n", (long long)rounds, (long long)done,
           (long long)failed, (long long)compared);
    assert_true(done > failed / 2 && compared > 0);
    ww_device_close(cpu);
}

int main(int count, char **arguments)
{
    if (count == 4) {
        attacker a = {.seed = strtoull(arguments[2], NULL, 10), .path = arguments[1], .next_x = 1};
        a.random.state = ~a.seed;
        attack(&a, atoi(arguments[3]));
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_statement_of_a_host_damages_a_collection)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
