/* Any bytes as the words of a search: FTS5 accepts the resulting expression, which names no column and has no operator except
 * OR, so it finds only rows that one of the words finds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/texts/texts.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static sqlite3 *connection(void)
{
    static sqlite3 *db;
    if (!db && (sqlite_host_ready() != WW_OK || sqlite3_open(":memory:", &db) != SQLITE_OK || texts_register(db) != SQLITE_OK ||
                sqlite3_exec(db,
                             "CREATE TABLE docs_rows(handle INTEGER PRIMARY KEY, place INTEGER, id TEXT, payload TEXT);"
                             "CREATE VIRTUAL TABLE docs_fts USING fts5(text, tokenize='unicode61 remove_diacritics 2');"
                             "INSERT INTO docs_rows VALUES (1, 1, 'a', NULL), (2, 2, 'b', NULL);"
                             "INSERT INTO docs_fts(rowid, text) VALUES (1, 'a red fox AND a dog'), (2, 'text NEAR or NOT');",
                             NULL, NULL, NULL) != SQLITE_OK))
        abort();
    return db;
}

/* Outside of quotes there are only spaces and OR. */
static void check_expression(const char *expression)
{
    bool quoted = false;
    for (; *expression; expression++) {
        if (*expression == '"')
            quoted = !quoted;
        else if (!quoted && *expression != ' ' && *expression != 'O' && *expression != 'R')
            abort();
    }
    if (quoted)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int64_t handles[2], places[2];
    float scores[2];
    text_hits hits = {handles, places, scores, 0};
    (void)connection(); /* before the words are read with SQLite's memory */
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    char *expression = texts_expression(text);
    if (!expression)
        abort();
    check_expression(expression);
    const text_search search = {.text = text, .limit = 2};
    if (texts_search(&(text_tables){connection(), "main", "docs"}, &search, &hits) != WW_OK)
        abort();
    sqlite3_free(expression);
    free(text);
    return 0;
}
