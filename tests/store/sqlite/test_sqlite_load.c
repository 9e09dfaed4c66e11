/* Loading the extension: a SQLite that is too old, or a second one in the process, gets a message and nothing else. The test
 * passes a changed copy of the host's table of functions. */
#include "store/sqlite/sql.h"

#include <dlfcn.h>
#define SQLITE_CORE 1 /* only the type of the table is needed; calls stay calls */
#include <sqlite3ext.h>

typedef int entry(sqlite3 *db, char **message, const sqlite3_api_routines *api);

static sqlite3_api_routines table; /* as the host's SQLite has it */

static int take_table(sqlite3 *db, const char **message, const sqlite3_api_routines *api)
{
    (void)db, (void)message;
    table = *api;
    return SQLITE_OK;
}

static int old_number(void)
{
    return 3037002;
}

static const char *old_name(void)
{
    return "3.37.2";
}

/* The host's table of functions, which SQLite passes to callbacks for new connections. */
static int setup(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    void (*const asks)(void) = (void (*)(void))take_table;
    assert_int_equal(sqlite3_auto_extension(asks), SQLITE_OK);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    sqlite3_cancel_auto_extension(asks);
    sqlite3_close(db);
    return table.libversion_number ? 0 : -1;
}

static entry *entry_of_extension(void)
{
    void *extension = dlopen(EXTENSION_PATH, RTLD_NOW);
    if (!extension)
        fail_msg("%s", dlerror());
    entry *found = NULL;
    *(void **)&found = dlsym(extension, "sqlite3_warpwave_init");
    assert_non_null(found);
    return found;
}

static void an_older_sqlite_is_refused_with_its_version(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    char *message = NULL;
    sqlite3_api_routines old = table;
    old.libversion_number = old_number;
    old.libversion = old_name;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(entry_of_extension()(db, &message, &old), SQLITE_ERROR);
    assert_string_equal(message, "warpwave needs SQLite 3.38 or later; this is 3.37.2");
    sqlite3_free(message);
    sql_fails(db, "SELECT ww_version()", "no such function");
    sql_fails(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2)", "no such module");
    sqlite3_close(db);
}

static void the_second_sqlite_of_a_process_is_refused(void **state)
{
    (void)state;
    static sqlite3_api_routines another;
    char *message = NULL;
    sqlite3 *db = sql_open(":memory:"), *second = NULL; /* the first is this one */
    another = table;
    assert_int_equal(sqlite3_open(":memory:", &second), SQLITE_OK);
    assert_int_equal(entry_of_extension()(second, &message, &another), SQLITE_ERROR);
    assert_non_null(strstr(message, "in use by another SQLite"));
    sqlite3_free(message);
    sql_fails(second, "SELECT ww_version()", "no such function");
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2)");
    sqlite3_close(second);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_sqlite_is_refused_with_its_version),
        cmocka_unit_test(the_second_sqlite_of_a_process_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
