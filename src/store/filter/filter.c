/* Checking a `where`, and running it. */
#include "store/filter/filter.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "store/filter/filter_text.h"
#include "vectors/filter/filter.h"

/* Sorted. Pure functions, without side effects, whose time and memory are about linear in the length of their arguments. Left
 * out: random, date and time; printf, zeroblob and replace, whose results can be far longer than their arguments; unhex, which
 * is quadratic; functions that look at the connection. */
static const char *const FUNCTIONS[] = {
    "->",           "->>",          "abs",        "acos",      "acosh",      "asin",
    "asinh",        "atan",         "atan2",      "atanh",     "avg",        "ceil",
    "ceiling",      "char",         "coalesce",   "cos",       "cosh",       "count",
    "degrees",      "exp",          "floor",      "glob",      "hex",        "if",
    "ifnull",       "iif",          "instr",      "json",      "json_array", "json_array_length",
    "json_extract", "json_object",  "json_quote", "json_type", "json_valid", "length",
    "like",         "likelihood",   "likely",     "ln",        "log",        "log10",
    "log2",         "lower",        "ltrim",      "max",       "min",        "mod",
    "nullif",       "octet_length", "pi",         "pow",       "power",      "quote",
    "radians",      "round",        "rtrim",      "sign",      "sin",        "sinh",
    "sqrt",         "substr",       "substring",  "sum",       "tan",        "tanh",
    "total",        "trim",         "trunc",      "typeof",    "unicode",    "unlikely",
    "upper",        "ww_filter",
};

static bool function_is_allowed(const char *name)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (sqlite3_stricmp(name, FUNCTIONS[i]) == 0)
            return true;
    return false;
}

/* Is `table` the collection's table of rows? */
static bool is_rows_table(const char *table, const char *collection)
{
    const size_t length = strlen(collection);
    return sqlite3_strnicmp(table, collection, (int)length) == 0 && sqlite3_stricmp(table + length, "_rows") == 0;
}

/* Allows the columns that a filter is about, and the table-valued functions that look into a payload: filter_run() has made
 * sure that no table has their names. SQLite passes no database and no column when it only counts rows of the statement's
 * own docs_rows. */
static bool read_is_allowed(const filter_guard *guard, const char *table, const char *column, const char *schema)
{
    if (sqlite3_stricmp(table, "json_each") == 0 || sqlite3_stricmp(table, "json_tree") == 0)
        return true;
    if (!is_rows_table(table, guard->collection))
        return false;
    if (!schema)
        return column[0] == '\0';
    return sqlite3_stricmp(schema, guard->schema) == 0 &&
           (column[0] == '\0' || sqlite3_stricmp(column, "id") == 0 || sqlite3_stricmp(column, "handle") == 0 ||
            sqlite3_stricmp(column, "place") == 0 || sqlite3_stricmp(column, "payload") == 0);
}

static int refuse(filter_guard *guard, int action, const char *first, const char *second)
{
    const size_t room = sizeof guard->refused;
    if (guard->refused[0])
        return SQLITE_DENY; /* the first reason is reported */
    if (guard->calls > FILTER_CALLS_MAX || guard->selects > FILTER_SELECTS_MAX)
        snprintf(guard->refused, room, "more than %d function calls or %d SELECTs", FILTER_CALLS_MAX, FILTER_SELECTS_MAX);
    else if (action == SQLITE_FUNCTION)
        snprintf(guard->refused, room, "the function %s is not allowed in a filter", second ? second : "");
    else if (action == SQLITE_READ)
        snprintf(guard->refused, room, "%s%s%s cannot be read; a filter reads id, handle and payload, and does not recurse",
                 first ? first : "", second && second[0] ? "." : "", second ? second : "");
    else if (action == SQLITE_RECURSIVE)
        snprintf(guard->refused, room, "recursion is not allowed");
    else
        snprintf(guard->refused, room, "only reading is allowed");
    return SQLITE_DENY;
}

/* Between filters the store itself reads data versions, ids and vectors. When FTS5 opens its table, SQLite asks for permission
 * to update the schema but updates nothing: the connection cannot write (connect.c). */
static bool reading_is_allowed(int action, const char *first)
{
    const bool declares = action == SQLITE_UPDATE && first && strcmp(first, "sqlite_master") == 0;
    return declares || action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ||
           action == SQLITE_TRANSACTION || action == SQLITE_PRAGMA;
}

static int authorize(void *user, int action, const char *first, const char *second, const char *schema, const char *inner)
{
    filter_guard *guard = user;
    (void)inner;
    if (!guard->collection)
        return reading_is_allowed(action, first) ? SQLITE_OK : SQLITE_DENY;
    guard->calls += action == SQLITE_FUNCTION;
    guard->selects += action == SQLITE_SELECT;
    if (guard->calls > FILTER_CALLS_MAX || guard->selects > FILTER_SELECTS_MAX)
        return refuse(guard, action, first, second);
    if (action == SQLITE_SELECT || (action == SQLITE_FUNCTION && second && function_is_allowed(second)))
        return SQLITE_OK;
    if (action == SQLITE_READ && first && second && read_is_allowed(guard, first, second, schema))
        return SQLITE_OK;
    return refuse(guard, action, first, second);
}

/* SQLite creates the table of a table-valued function at its first use, which the authorizer would refuse. So each function is
 * used once before the authorizer is installed. */
int filter_guard_install(sqlite3 *db, filter_guard *guard)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, "SELECT 1 FROM json_each('[]'), json_tree('[]')", -1, &statement, NULL);
    sqlite3_finalize(statement);
    if (code == SQLITE_OK)
        code = filter_functions_register(db);
    if (code != SQLITE_OK)
        return code;
    return sqlite3_set_authorizer(db, authorize, guard);
}

void filter_places_free(filter_places *places)
{
    memory_free(places->places);
    *places = (filter_places){0};
}

ww_status filter_places_append(filter_places *places, int64_t place)
{
    const ww_status grown = array_reserve(&places->places, &places->capacity, places->count + 1, sizeof *places->places,
                                          "the places that a filter admits");
    if (grown != WW_OK)
        return grown;
    places->places[places->count++] = place;
    return WW_OK;
}

static ww_status fail_sqlite(sqlite3 *db, int code, const filter_guard *guard)
{
    if (code == SQLITE_NOMEM)
        return ww_fail(WW_OUT_OF_MEMORY, "where: out of memory");
    if (code == SQLITE_INTERRUPT)
        return ww_fail(WW_CANCELLED, "where: interrupted");
    if (guard && guard->refused[0])
        return ww_fail(WW_INVALID_ARGUMENT, "where: %s", guard->refused);
    if (code == SQLITE_TOOBIG && guard)
        return ww_fail(WW_OUT_OF_RANGE, "where: a payload or another value has more than %d bytes", FILTER_VALUE_BYTES_MAX);
    const ww_status status = (code & 0xff) == SQLITE_IOERR     ? WW_IO_ERROR
                             : (code & 0xff) == SQLITE_CORRUPT ? WW_CORRUPT_FILE
                                                               : WW_INVALID_ARGUMENT;
    return ww_fail(status, "where: %s", sqlite3_errmsg(db));
}

#define FILTER_PARAMETER ":warpwave_filter"

/* Prepares the text, which stands for where->text, as one statement; refuses anything after it. */
static ww_status prepare(const filter_target *target, const filter_where *where, const char *text, sqlite3_stmt **statement)
{
    const char *also = where->filter ? " AND ww_filter(payload, " FILTER_PARAMETER ", id)" : "";
    const char *name = target->collection, *schema = target->schema;
    const filter_page *page = target->page;
    char end[96] = "";
    if (page)
        snprintf(end, sizeof end, " AND handle >= %lld ORDER BY handle LIMIT %lld", (long long)page->first_handle,
                 (long long)page->limit);
    char *sql =
        sqlite3_mprintf("WITH \"%w_rows\" AS NOT MATERIALIZED (SELECT handle, place, id, payload FROM \"%w\".\"%w_rows\") "
                        "SELECT %s FROM \"%w\".\"%w_rows\" AS \"%w_rows\" WHERE (%s\n)%s%s",
                        name, schema, name, page ? "handle" : "place", schema, name, name, text ? text : "1", also, end);
    if (!sql)
        return ww_fail(WW_OUT_OF_MEMORY, "where: out of memory");
    const char *rest = NULL;
    const int code = sqlite3_prepare_v2(target->db, sql, -1, statement, &rest);
    const int64_t behind = (int64_t)strlen(sql) - (int64_t)(strlen(also) + strlen(end) + strlen("\n)")); /* the text's end */
    ww_status status = WW_OK;
    if (code == SQLITE_ERROR && sqlite3_error_offset(target->db) >= behind) /* SQLite would name the bracket that is ours */
        status = ww_fail(WW_INVALID_ARGUMENT, "where: syntax error: the expression is empty or not complete");
    else if (code != SQLITE_OK)
        status = fail_sqlite(target->db, code, target->guard);
    else if (!*statement || (rest && *rest))
        status = ww_fail(WW_INVALID_ARGUMENT, "where: it is not one expression");
    sqlite3_free(sql);
    return status;
}

static ww_status bind_one(sqlite3_stmt *statement, int place, const ww_parameter *value)
{
    int code = SQLITE_OK;
    switch (value->type) {
    case WW_VALUE_NULL:
        code = sqlite3_bind_null(statement, place);
        break;
    case WW_VALUE_INTEGER:
        code = sqlite3_bind_int64(statement, place, value->integer);
        break;
    case WW_VALUE_REAL:
        code = sqlite3_bind_double(statement, place, value->real);
        break;
    case WW_VALUE_TEXT:
    case WW_VALUE_LIST:
        if (!value->text)
            return ww_fail(WW_INVALID_ARGUMENT,
                           "where: the text of parameter %d is NULL; a parameter without a value needs the type null", place);
        code = sqlite3_bind_text64(statement, place, value->text, strlen(value->text), SQLITE_TRANSIENT, SQLITE_UTF8);
        break;
    default:
        return ww_fail(WW_INVALID_ARGUMENT,
                       "where: parameter %d has type %d; it must be WW_VALUE_NULL, _INTEGER, _REAL, _TEXT or _LIST", place,
                       (int)value->type);
    }
    return code == SQLITE_OK ? WW_OK : fail_sqlite(sqlite3_db_handle(statement), code, NULL);
}

enum { PARAMETERS_MAX = 1000 };

/* Every parameter gets a value, and every value goes to a parameter. */
static ww_status bind(sqlite3_stmt *statement, const filter_where *where)
{
    int count = sqlite3_bind_parameter_count(statement);
    bool has_value[PARAMETERS_MAX + 1] = {false};
    if (where->filter && sqlite3_bind_parameter_index(statement, FILTER_PARAMETER) == count) /* the text does not have it */
        sqlite3_bind_pointer(statement, count--, (void *)where->filter, FILTER_POINTER, NULL);
    if (count > PARAMETERS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "where: %d parameters; the maximum is %d", count, PARAMETERS_MAX);
    for (int64_t i = 0; i < where->value_count; i++) {
        const ww_parameter *value = &where->values[i];
        if (!value->name && i >= count)
            return ww_fail(WW_INVALID_ARGUMENT, "where: %lld values for %d parameters", (long long)where->value_count, count);
        const int place = value->name ? sqlite3_bind_parameter_index(statement, value->name) : (int)i + 1;
        if (place == 0)
            return ww_fail(WW_INVALID_ARGUMENT, "where: a value for %s, which is not one of its parameters", value->name);
        const ww_status status = bind_one(statement, place, value);
        if (status != WW_OK)
            return status;
        has_value[place] = true;
    }
    for (int place = 1; place <= count; place++)
        if (!has_value[place]) {
            const char *name = sqlite3_bind_parameter_name(statement, place);
            return ww_fail(WW_INVALID_ARGUMENT, "where: parameter %s (%d of %d) has no value", name ? name : "?", place, count);
        }
    return WW_OK;
}

enum { PRIVATE_NAME_BYTES = 33 };

/* An empty database with the table that the text is about, under a name that the text cannot know. */
static ww_status private_database(const char *collection, sqlite3 **db, char name[PRIVATE_NAME_BYTES])
{
    unsigned char bytes[(PRIVATE_NAME_BYTES - 1) / 2];
    sqlite3_randomness(sizeof bytes, bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(name + 2 * i, 3, "%02x", bytes[i]);
    int code = sqlite3_open_v2(":memory:", db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL);
    char *sql = sqlite3_mprintf("ATTACH ':memory:' AS \"%w\"; CREATE TABLE \"%w\".\"%w_rows\"(handle INTEGER PRIMARY KEY, "
                                "place INTEGER, id TEXT UNIQUE, payload TEXT)",
                                name, name, collection);
    if (code == SQLITE_OK)
        code = sql ? sqlite3_exec(*db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (code == SQLITE_OK)
        return WW_OK;
    return *db ? fail_sqlite(*db, code, NULL) : ww_fail(WW_OUT_OF_MEMORY, "where: out of memory");
}

static const struct {
    int limit, value;
} LIMITS[] = {{SQLITE_LIMIT_LENGTH, FILTER_VALUE_BYTES_MAX},
              {SQLITE_LIMIT_FUNCTION_ARG, FILTER_ARGUMENTS_MAX},
              {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, FILTER_PATTERN_BYTES_MAX}};
enum { LIMIT_COUNT = sizeof LIMITS / sizeof *LIMITS };

/* Tells the guard which filter runs while its statement is prepared and stepped (SQLite may prepare it again), and sets the
 * limits for that time. */
static void guard_begin(const filter_target *target, int before[LIMIT_COUNT])
{
    if (!target->guard)
        return;
    *target->guard = (filter_guard){.collection = target->collection, .schema = target->schema};
    for (int i = 0; i < LIMIT_COUNT; i++)
        before[i] = sqlite3_limit(target->db, LIMITS[i].limit, LIMITS[i].value);
}

static void guard_end(const filter_target *target, const int before[LIMIT_COUNT])
{
    if (!target->guard)
        return;
    target->guard->collection = NULL;
    for (int i = 0; i < LIMIT_COUNT; i++)
        sqlite3_limit(target->db, LIMITS[i].limit, before[i]);
}

ww_status filter_check(const filter_where *where, const char *collection)
{
    filter_guard guard = {0};
    char name[PRIVATE_NAME_BYTES] = "";
    filter_target target = {.schema = name, .collection = collection, .guard = &guard};
    sqlite3_stmt *statement = NULL;
    char *expanded = NULL;
    int before[LIMIT_COUNT];
    const filter_where alone = {where->text, where->values, where->value_count, NULL};
    if (!where->text)
        return WW_OK;
    ww_status status = filter_text_check(where->text);
    if (status == WW_OK)
        status = filter_text_expand(where, &expanded);
    if (status == WW_OK)
        status = private_database(collection, &target.db, name);
    const int code = status == WW_OK ? filter_guard_install(target.db, &guard) : SQLITE_OK;
    if (code != SQLITE_OK)
        status = fail_sqlite(target.db, code, NULL);
    if (status == WW_OK) {
        guard_begin(&target, before);
        status = prepare(&target, &alone, expanded ? expanded : where->text, &statement);
    }
    if (status == WW_OK)
        status = bind(statement, &alone);
    sqlite3_finalize(statement);
    sqlite3_free(expanded);
    sqlite3_close(target.db);
    return status;
}

/* Does the text contain the word, in any case? */
static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (; *text; text++)
        if (sqlite3_strnicmp(text, word, (int)length) == 0)
            return true;
    return false;
}

static ww_status refuse_name_in(sqlite3 *db, const char *schema, const char *name)
{
    char *sql = sqlite3_mprintf("SELECT type, name FROM \"%w\".sqlite_schema WHERE lower(name) = %Q", schema, name);
    sqlite3_stmt *found = NULL;
    int code = sql ? sqlite3_prepare_v2(db, sql, -1, &found, NULL) : SQLITE_NOMEM;
    ww_status status = WW_OK;
    if (code == SQLITE_OK && (code = sqlite3_step(found)) == SQLITE_ROW)
        status =
            ww_fail(WW_INVALID_ARGUMENT, "where: a %s of database %s is called %s, so the function of that name is not found",
                    (const char *)sqlite3_column_text(found, 0), schema, name);
    else if (code != SQLITE_DONE)
        status = fail_sqlite(db, code, NULL);
    sqlite3_finalize(found);
    sqlite3_free(sql);
    return status;
}

/* Refuses a text that names a table-valued function if any database of the connection has a table or view of that name, because
 * SQLite would use the table. */
static ww_status check_names(sqlite3 *db, const char *text)
{
    static const char *const NAMES[] = {"json_each", "json_tree"};
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof NAMES / sizeof *NAMES; i++) {
        if (!has_word(text, NAMES[i]))
            continue;
        sqlite3_stmt *databases = NULL;
        int code = sqlite3_prepare_v2(db, "PRAGMA database_list", -1, &databases, NULL);
        while (code == SQLITE_OK && status == WW_OK && (code = sqlite3_step(databases)) == SQLITE_ROW) {
            status = refuse_name_in(db, (const char *)sqlite3_column_text(databases, 1), NAMES[i]);
            code = SQLITE_OK;
        }
        if (status == WW_OK && code != SQLITE_DONE)
            status = fail_sqlite(db, code, NULL);
        sqlite3_finalize(databases);
    }
    return status;
}

/* Instructions of SQLite's virtual machine between two looks at the clock: about a microsecond, except for calls with long
 * arguments. */
enum { INSTRUCTIONS_BETWEEN_LOOKS = 100 };

/* Until when a filter may run, in nanoseconds; 0: without a limit. */
static bool past_deadline(const int64_t *deadline)
{
    return *deadline > 0 && clock_nanoseconds() > *deadline;
}

/* Is called by SQLite: also ends it when the caller has cancelled the call. */
static int look(void *deadline)
{
    return past_deadline(deadline) || cancel_asked();
}

void filter_watch(sqlite3 *db)
{
    static const int64_t never = 0;
    sqlite3_progress_handler(db, INSTRUCTIONS_BETWEEN_LOOKS, look, (void *)(uintptr_t)&never);
}

static ww_status collect(sqlite3_stmt *statement, const filter_target *target, filter_places *places, int64_t *deadline)
{
    ww_status status = WW_OK;
    int code = SQLITE_DONE;
    while (status == WW_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        status = filter_places_append(places, sqlite3_column_int64(statement, 0));
    if (status != WW_OK || code == SQLITE_DONE)
        return status;
    if (code == SQLITE_INTERRUPT && past_deadline(deadline))
        return ww_fail(WW_CANCELLED, "where: not done in %g s; make an index for it, or allow more time", target->seconds_max);
    return fail_sqlite(target->db, code, target->guard);
}

ww_status filter_run(const filter_where *where, const filter_target *target, filter_places *places)
{
    sqlite3_stmt *statement = NULL;
    int64_t deadline = target->seconds_max > 0 ? clock_nanoseconds() + (int64_t)(target->seconds_max * 1e9) : 0;
    int before[LIMIT_COUNT];
    char *expanded = NULL;
    ww_status status = filter_text_expand(where, &expanded);
    const char *text = expanded ? expanded : where->text;
    if (status == WW_OK && text)
        status = check_names(target->db, text);
    if (status != WW_OK) {
        sqlite3_free(expanded);
        return status;
    }
    if (target->guard || deadline > 0)
        sqlite3_progress_handler(target->db, INSTRUCTIONS_BETWEEN_LOOKS, look, &deadline);
    guard_begin(target, before);
    status = prepare(target, where, text, &statement);
    if (status == WW_OK)
        status = bind(statement, where);
    if (status == WW_OK)
        status = collect(statement, target, places, &deadline);
    sqlite3_finalize(statement);
    guard_end(target, before);
    sqlite3_free(expanded);
    if (target->guard)
        filter_watch(target->db);
    else if (deadline > 0)
        sqlite3_progress_handler(target->db, 0, NULL, NULL);
    return status;
}

struct filter_key {
    filter_where where;
    ww_filter *filter;
    ww_parameter *values;
    char *text; /* the where, then names and texts of the values, each with its NUL */
};

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *put_text(char **at, const char *text)
{
    if (!text)
        return NULL;
    const size_t bytes = strlen(text) + 1;
    const char *put = memcpy(*at, text, bytes);
    *at += bytes;
    return put;
}

filter_key *filter_key_copy(const filter_where *where)
{
    size_t bytes = text_bytes(where->text);
    for (int64_t i = 0; i < where->value_count; i++)
        bytes += text_bytes(where->values[i].name) + text_bytes(where->values[i].text);
    filter_key *key = memory_alloc_zeroed(1, sizeof *key);
    if (!key)
        return NULL;
    const ww_status status = where->filter ? filter_copy(where->filter, &key->filter) : WW_OK;
    key->values = memory_alloc_zeroed((size_t)where->value_count, sizeof *key->values);
    key->text = memory_alloc(bytes);
    if (status != WW_OK || !key->values || !key->text) {
        filter_key_free(key);
        return NULL;
    }
    char *at = key->text;
    key->where = (filter_where){put_text(&at, where->text), key->values, where->value_count, key->filter};
    for (int64_t i = 0; i < where->value_count; i++) {
        key->values[i] = where->values[i];
        key->values[i].name = put_text(&at, where->values[i].name);
        key->values[i].text = put_text(&at, where->values[i].text);
    }
    return key;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_value(const ww_parameter *a, const ww_parameter *b)
{
    return a->type == b->type && same_text(a->name, b->name) && (a->type != WW_VALUE_INTEGER || a->integer == b->integer) &&
           (a->type != WW_VALUE_REAL || a->real == b->real) &&
           ((a->type != WW_VALUE_TEXT && a->type != WW_VALUE_LIST) || same_text(a->text, b->text));
}

bool filter_key_is(const filter_key *key, const filter_where *where)
{
    if (!same_text(key->where.text, where->text) || key->where.value_count != where->value_count ||
        !ww_filter_equal(key->filter, where->filter))
        return false;
    for (int64_t i = 0; i < where->value_count; i++)
        if (!same_value(&key->where.values[i], &where->values[i]))
            return false;
    return true;
}

void filter_key_free(filter_key *key)
{
    if (!key)
        return;
    memory_free(key->values);
    memory_free(key->text);
    filter_destroy(key->filter);
    memory_free(key);
}
