/* SQL in tests: a connection with the extension loaded, statements whose answer is compared as a text, and failures by message.
 */
#ifndef TESTS_SQL_H
#define TESTS_SQL_H

#include "support/check.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* A connection that loads build/sqlite/warpwave.so as any program would. */
static inline sqlite3 *sql_open(const char *path)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_enable_load_extension(db, 1);
    if (sqlite3_load_extension(db, EXTENSION_PATH, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", EXTENSION_PATH, message ? message : "cannot be loaded");
    return db;
}

static inline void sql_run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message ? message : sqlite3_errmsg(db));
}

/* All rows, columns separated by | and rows by spaces, NULL as nothing; free(). NULL if it fails. */
static inline char *sql_text(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    size_t length = 0;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    char *text = calloc(1, 1);
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const char *value = (const char *)sqlite3_column_text(statement, i);
            const size_t bytes = value ? strlen(value) : 0;
            char *larger = realloc(text, length + bytes + 2);
            assert_non_null(larger);
            text = larger;
            if (i > 0 || length > 0)
                text[length++] = i > 0 ? '|' : ' ';
            memcpy(text + length, value ? value : "", bytes);
            length += bytes;
            text[length] = '\0';
        }
        code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    if (code == SQLITE_DONE)
        return text;
    free(text);
    return NULL;
}

/* For tests that count rows from 0. */
#define SQL_FROM_0 "UPDATE warpwave_collections SET next_handle = 0 WHERE next_handle = 1 AND next_place = 0;"

static inline void sql_gives(sqlite3 *db, const char *sql, const char *expected)
{
    char *text = sql_text(db, sql);
    if (!text)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    if (strcmp(text, expected) != 0)
        fail_msg("%s\n    gives \"%s\"\n    not   \"%s\"", sql, text, expected);
    free(text);
}

/* Expects the statement to fail with a text that contains `why`. Returns the code. */
static inline int sql_fails(sqlite3 *db, const char *sql, const char *why)
{
    char *message = NULL;
    const int code = sqlite3_exec(db, sql, NULL, NULL, &message);
    if (code == SQLITE_OK)
        fail_msg("%s: does not fail", sql);
    if (!message || !strstr(message, why))
        fail_msg("%s: fails with \"%s\", not because of \"%s\"", sql, message ? message : "", why);
    sqlite3_free(message);
    return code;
}

static inline int64_t sql_number(sqlite3 *db, const char *sql)
{
    char *text = sql_text(db, sql);
    if (!text)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    const int64_t number = strtoll(text, NULL, 10);
    free(text);
    return number;
}

#endif
