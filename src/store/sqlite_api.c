/* SQLite's failures as statuses, with what the user can do about each. */
#include "store/sqlite_api.h"

#include "base/status.h"

/* Set once, while the library is loaded, by a build that brings its own SQLite. */
ww_status (*sqlite_file_check)(const char *path);

ww_status sqlite_check_file(const char *path)
{
    return sqlite_file_check ? sqlite_file_check(path) : WW_OK;
}

int64_t sqlite_preparations(sqlite3_stmt *statement)
{
    return statement ? 1 + sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_REPREPARE, 0) : 0;
}

const void *sqlite_identity(void)
{
    return sqlite3_sourceid(); /* a text in the memory of that copy of SQLite */
}

typedef struct code_meaning {
    int code; /* the primary error code */
    ww_status status;
    const char *advice;
} code_meaning;

/* Statements over a store's tables are ours and correct. If SQLite does not understand one, or it violates a constraint, the
 * tables are not as they were created. */
#define NOT_AS_MADE                                                                                                            \
    "; the tables of the store are not as they were made: the file is damaged or was edited. Take the last backup, or what "   \
    "'warpwave store check' finds to be sound"

static const code_meaning MEANINGS[] = {
    {SQLITE_ERROR, WW_CORRUPT_FILE, NOT_AS_MADE},
    {SQLITE_SCHEMA, WW_CORRUPT_FILE, NOT_AS_MADE},
    {SQLITE_CONSTRAINT, WW_CORRUPT_FILE, NOT_AS_MADE},
    {SQLITE_MISMATCH, WW_CORRUPT_FILE, NOT_AS_MADE},
    {SQLITE_BUSY, WW_BUSY, "; another connection has the lock: try again, or raise busy_ms"},
    {SQLITE_LOCKED, WW_BUSY, "; a statement of the same connection is still reading: finish it first"},
    {SQLITE_PROTOCOL, WW_BUSY, "; SQLite failed to get a lock too often: try again"},
    {SQLITE_NOMEM, WW_OUT_OF_MEMORY, ""},
    {SQLITE_CORRUPT, WW_CORRUPT_FILE, "; the file is damaged: take the last backup"},
    {SQLITE_NOTADB, WW_CORRUPT_FILE, "; it is not an SQLite database"},
    {SQLITE_FULL, WW_IO_ERROR, "; there is no space left on the disk, and nothing was changed"},
    {SQLITE_IOERR, WW_IO_ERROR, ""},
    {SQLITE_CANTOPEN, WW_IO_ERROR, ""},
    {SQLITE_READONLY, WW_IO_ERROR, "; the file or its folder cannot be written"},
    {SQLITE_PERM, WW_IO_ERROR, ""},
    {SQLITE_INTERRUPT, WW_CANCELLED, ""},
    {SQLITE_TOOBIG, WW_OUT_OF_RANGE, ""},
    {SQLITE_AUTH, WW_INVALID_ARGUMENT, ""},
};

ww_status sqlite_failed(sqlite3 *db, int code, const char *what)
{
    const char *text = db && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db) : sqlite3_errstr(code);
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        if (MEANINGS[i].code == (code & 0xff))
            return ww_fail(MEANINGS[i].status, "%s: SQLite: %s (%d)%s", what, text, code, MEANINGS[i].advice);
    return ww_fail(WW_INTERNAL, "%s: SQLite: %s (%d)", what, text, code);
}
