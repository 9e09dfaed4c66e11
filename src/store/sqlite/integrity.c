/* PRAGMA integrity_check of a virtual table (SQLite 3.44 and later): do the tables behind it agree with each other? */
#include "store/ivf/follow.h"
#include "store/sqlite/table.h"

/* Queries that must return 0, and what another number counts. Each takes the database and the collection two or three times. */
static const struct {
    const char *question;
    const char *meaning;
} QUESTIONS[] = {
    {"SELECT count(*) FROM \"%w\".\"%w_rows\" AS r LEFT JOIN \"%w\".\"%w_vectors\" AS v ON v.place = r.place WHERE v.handle IS "
     "NOT r.handle",
     "rows without a vector"},
    {"SELECT count(*) FROM \"%w\".\"%w_vectors\" AS v LEFT JOIN \"%w\".\"%w_rows\" AS r ON r.handle = v.handle WHERE r.place "
     "IS NOT v.place AND v.place NOT IN (SELECT place FROM \"%w\".\"%w_removed\")",
     "vectors without a row"},
    {"SELECT count(*) FROM \"%w\".\"%w_rows\" WHERE payload IS NOT NULL AND NOT json_valid(payload) AND EXISTS (SELECT 1 FROM "
     "\"%w\".\"%w_rows\")",
     "payloads that are not JSON"},
};

static ww_status ask(const table *t, sqlite3_stmt *statement, int64_t *number)
{
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    const ww_status status = code == SQLITE_ROW ? WW_OK : sqlite_failed(t->db, code, t->name);
    sqlite3_finalize(statement);
    return status;
}

static ww_status tell(const table *t, int64_t number, const char *meaning, char **problem)
{
    if (number == 0)
        return WW_OK;
    *problem = sqlite3_mprintf("warpwave table %s: %lld %s", t->name, (long long)number, meaning);
    return *problem ? WW_OK : ww_fail(WW_OUT_OF_MEMORY, "out of memory");
}

static ww_status check_lengths(const table *t, const collection_record *record, char **problem)
{
    sqlite3_stmt *statement = NULL;
    int64_t wrong = 0, rows = 0;
    ww_status status =
        schema_statement(t->db, &statement, "SELECT count(*) FROM \"%w\".\"%w_vectors\" WHERE length(vector) IS NOT %lld",
                         t->schema, t->name, (long long)record_vector_bytes(record));
    if (status == WW_OK)
        status = ask(t, statement, &wrong);
    if (status == WW_OK)
        status = tell(t, wrong, "vectors of a wrong length", problem);
    if (status == WW_OK && !*problem)
        status = schema_statement(t->db, &statement, "SELECT count(*) FROM \"%w\".\"%w_rows\"", t->schema, t->name);
    if (status == WW_OK && !*problem)
        status = ask(t, statement, &rows);
    if (status == WW_OK && !*problem)
        status = tell(t, rows - record->live, "rows more than its record counts", problem);
    return status;
}

/* The first fault is reported. */
static void tell_index(void *user, const char *reason)
{
    char **problem = user;
    if (!*problem)
        *problem = sqlite3_mprintf("warpwave %s", reason);
}

ww_status table_check(const table *t, bool quick, char **problem)
{
    collection_record record;
    ww_status status = schema_find(t->db, t->schema, t->name, &record);
    if (status == WW_OK)
        status = check_lengths(t, &record, problem);
    for (size_t i = 0; !quick && status == WW_OK && !*problem && i < sizeof QUESTIONS / sizeof *QUESTIONS; i++) {
        sqlite3_stmt *statement = NULL;
        int64_t number = 0;
        status = schema_statement(t->db, &statement, QUESTIONS[i].question, t->schema, t->name, t->schema, t->name, t->schema,
                                  t->name);
        if (status == WW_OK)
            status = ask(t, statement, &number);
        if (status == WW_OK)
            status = tell(t, number, QUESTIONS[i].meaning, problem);
    }
    const ivf_tables tables = {t->db, t->schema, &record};
    if (!quick && status == WW_OK && !*problem && ivf_is_there(&record))
        status = ivf_check(&tables, tell_index, problem);
    return status;
}
