/* Vectors in SQL are read, scored and printed in the same way under every rounding mode, which a host sets by fesetround(). */
#include "store/sqlite/sql.h"

#include "support/calls/rounding.h"

/* The statement's answer under a mode; free(). The numbers in it are texts, blobs or exact: SQLite's own conversions are the
 * host's. */
static char *under(sqlite3 *db, int mode, const char *sql)
{
    rounding = mode;
    rounding_begin();
    char *text = sql_text(db, sql);
    rounding_end();
    if (!text)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    return text;
}

static void check_alike(sqlite3 *db, const char *sql)
{
    char *right = under(db, FE_TONEAREST, sql);
    assert_true(*right != '\0');
    for (int i = 1; i < ROUNDING_COUNT; i++) {
        char *text = under(db, ROUNDINGS[i], sql);
        if (strcmp(text, right) != 0)
            fail_msg("%.60s...\n    gives \"%.200s\"\n    not   \"%.200s\" under rounding mode %x", sql, text, right,
                     (unsigned)ROUNDINGS[i]);
        free(text);
    }
    free(right);
}

/* [number, number, ...] of `count` hard numbers, from `first` on. */
static char *hard_vector(int first, int count)
{
    static char text[HARD_NUMBERS * HARD_NUMBER_BYTES];
    size_t length = 0;
    for (int i = 0; i < count; i++) {
        char number[HARD_NUMBER_BYTES];
        hard_number((first + i) % HARD_NUMBERS, number);
        length += (size_t)snprintf(text + length, sizeof text - length, "%c%s", i == 0 ? '[' : ',', number);
    }
    snprintf(text + length, sizeof text - length, "]");
    return text;
}

static void texts_are_read_and_printed_alike(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(":memory:");
    static const char *const calls[] = {"hex(ww_vector(%Q))", "hex(ww_vector(%Q, 'f16'))", "hex(ww_vector(%Q, 'bf16'))",
                                        "ww_to_json(%Q)"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char *call = sqlite3_mprintf(calls[i], hard_vector(0, i == 1 ? 2 : HARD_NUMBERS)); /* f16 ends at 65504 */
        char *sql = sqlite3_mprintf("SELECT %s", call);
        check_alike(db, sql);
        sqlite3_free(sql);
        sqlite3_free(call);
    }
    sqlite3_close(db);
}

static void scores_are_alike(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(":memory:");
    static const char *const names[] = {"ww_dot", "ww_l2", "ww_cosine"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *a = sqlite3_mprintf("%s", hard_vector(0, 60));
        /* Times a power of two and as an integer: SQLite prints it exactly. */
        char *sql = sqlite3_mprintf("SELECT CAST(%s(%Q, %Q) * 1048576.0 AS INTEGER)", names[i], a, hard_vector(61, 60));
        check_alike(db, sql);
        sqlite3_free(sql);
        sqlite3_free(a);
    }
    sqlite3_close(db);
}

/* A table that is created, filled, changed and searched under the mode. */
static void tables_are_alike(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(":memory:");
    char *right = NULL;
    for (int i = 0; i < ROUNDING_COUNT; i++) {
        rounding = ROUNDINGS[i];
        rounding_begin();
        int failed = sqlite3_exec(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=30, metric=l2)", NULL, NULL, NULL);
        for (int row = 0; failed == SQLITE_OK && row < 20; row++) {
            fesetround(FE_TONEAREST); /* the texts are the test's own */
            char *sql = sqlite3_mprintf("INSERT INTO docs(vector) VALUES (%Q)", hard_vector(row * 7, 30));
            fesetround(rounding);
            failed = sqlite3_exec(db, sql, NULL, NULL, NULL);
            sqlite3_free(sql);
        }
        rounding_end();
        if (failed != SQLITE_OK)
            fail_msg("%s", sqlite3_errmsg(db));
        char *sql = sqlite3_mprintf(
            "SELECT rowid, CAST(score * 1048576.0 AS INTEGER), CAST(distance * 1048576.0 AS INTEGER), hex(vector) "
            "FROM docs WHERE vector MATCH %Q AND k = 9",
            hard_vector(3, 30));
        char *text = under(db, ROUNDINGS[i], sql);
        sqlite3_free(sql);
        if (i == 0)
            right = text;
        else if (strcmp(text, right) != 0)
            fail_msg("a search gives \"%.200s\"\n    not   \"%.200s\" under rounding mode %x", text, right, (unsigned)rounding);
        if (i > 0)
            free(text);
        sql_run(db, "DROP TABLE docs");
    }
    free(right);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_and_printed_alike),
        cmocka_unit_test(scores_are_alike),
        cmocka_unit_test(tables_are_alike),
    };
    return cmocka_run_group_tests_name("SQL under every rounding mode", tests, NULL, NULL);
}
