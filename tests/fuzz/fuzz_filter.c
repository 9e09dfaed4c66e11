/* Any bytes as a `where`: an expression that passes the check reads only the rows of its own collection, on a connection with
 * tables of the same name in every other database. This program's authorizer verifies that.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/filter/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* SQLite passes no database and no column when it counts rows of a common table expression. */
static int judge(void *user, int action, const char *first, const char *second, const char *schema, const char *inner)
{
    (void)user, (void)inner;
    if (action == SQLITE_SELECT || action == SQLITE_FUNCTION || action == SQLITE_TRANSACTION || action == SQLITE_PRAGMA)
        return SQLITE_OK;
    if (action != SQLITE_READ || !first || !second)
        abort();
    if (strcmp(first, "json_each") == 0 || strcmp(first, "json_tree") == 0 || strcmp(first, "sqlite_master") == 0 ||
        strcmp(first, "sqlite_temp_master") == 0) /* the check itself looks for tables with the names of the functions */
        return SQLITE_OK;
    if (strcmp(first, "docs_rows") != 0 || (schema ? strcmp(schema, "other") != 0 : second[0] != '\0'))
        abort();
    return SQLITE_OK;
}

static sqlite3 *connection(void)
{
    static sqlite3 *db;
    if (db)
        return db;
    if (sqlite_host_ready() != WW_OK || sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "ATTACH ':memory:' AS other; ATTACH ':memory:' AS third; CREATE TABLE secret(word); "
                     "CREATE TABLE main.docs_rows(handle INTEGER PRIMARY KEY, place, id, payload);"
                     "CREATE TABLE third.docs_rows(handle INTEGER PRIMARY KEY, place, id, payload);"
                     "CREATE TEMP TABLE docs_rows(handle INTEGER PRIMARY KEY, place, id, payload);"
                     "CREATE TABLE other.docs_rows(handle INTEGER PRIMARY KEY, place INTEGER, id TEXT UNIQUE, payload TEXT);"
                     "INSERT INTO other.docs_rows VALUES (1, 1, 'a', '{\"n\":[1,2]}'), (2, 2, 'b', NULL);"
                     "SELECT 1 FROM json_each('[]'), json_tree('[]')",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_set_authorizer(db, judge, NULL) != SQLITE_OK)
        abort();
    return db;
}

/* As a list of places or, with a page, of handles in order. */
static void run(const filter_where *where, const filter_page *page)
{
    const filter_target target = {
        .db = connection(), .schema = "other", .collection = "docs", .page = page, .seconds_max = 0.2};
    filter_places places = {0};
    if (filter_run(where, &target, &places) == WW_OK && page)
        for (int64_t i = 0; i < places.count; i++)
            if (places.places[i] < page->first_handle || (i > 0 && places.places[i] <= places.places[i - 1]))
                abort();
    filter_places_free(&places);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    (void)connection(); /* before the check, which uses SQLite, too */
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    const ww_parameter list = {.name = ":l", .type = WW_VALUE_LIST, .text = "[1, \"a\", null, 2.5, true]"};
    const filter_where wheres[] = {{.text = text}, {.text = text, .values = &list, .value_count = 1}};
    for (int i = 0; i < 2; i++)
        if (filter_check(&wheres[i], "docs") == WW_OK) {
            run(&wheres[i], NULL);
            run(&wheres[i], &(filter_page){1, 10});
        }
    free(text);
    return 0;
}
