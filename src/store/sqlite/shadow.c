/* The tables behind a virtual table, on a host's connection.
 *
 * Our statements on them must do what they say and nothing else. A trigger on one of them would run the host's statements
 * inside ours, and a view in place of one could read anything. On our own connections SQLite is configured to run neither. On
 * the host's we look for them and refuse to write.
 */
#include <string.h>

#include "store/sqlite/table.h"

/* Looks through one database's schema for triggers, and in the table's own database for views, that would interfere. */
static ww_status look(const table *t, const char *schema, bool triggers, bool views)
{
    sqlite3_stmt *found = NULL;
    ww_status status = schema_statement(
        t->db, &found,
        "WITH own(name) AS (VALUES('_rows'), ('_vectors'), ('_removed'), ('_ivf'), ('_ivf_lists'), ('_ivf_centroids'), "
        "('_ivf_rows'), ('_ivf_rules'), ('_sparse'), ('_sparse_blocks'), ('_sparse_pending'), ('_multi')), words(name) AS "
        "(VALUES('_fts_content'), ('_fts_data'), ('_fts_idx'), "
        "('_fts_docsize'), ('_fts_config')) "
        "SELECT type, name, tbl_name FROM \"%w\".sqlite_schema AS s WHERE "
        "(?3 AND type = 'trigger' AND (lower(tbl_name) = 'warpwave_collections' OR lower(tbl_name) IN (SELECT lower(?1 || "
        "name) FROM own UNION ALL SELECT lower(?1 || name) FROM words))) OR "
        "(?2 AND (type = 'view' OR type = 'table' AND rootpage = 0) AND (lower(s.name) = 'warpwave_collections' OR "
        "lower(s.name) IN (SELECT lower(?1 || own.name) FROM own)))",
        schema);
    if (status != WW_OK)
        return status;
    sqlite3_bind_text(found, 1, t->name, -1, SQLITE_STATIC);
    sqlite3_bind_int(found, 2, views);
    sqlite3_bind_int(found, 3, triggers);
    const int code = sqlite3_step(found);
    if (code == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(found, 0), *name = (const char *)sqlite3_column_text(found, 1);
        const char *table_name = (const char *)sqlite3_column_text(found, 2);
        if (type && strcmp(type, "trigger") == 0)
            status =
                ww_fail(WW_INVALID_ARGUMENT,
                        "there is a trigger '%s' on %s, a table of the collection's own; drop it; nothing is written while "
                        "it exists",
                        name ? name : "", table_name ? table_name : "");
        else
            status = ww_fail(WW_CORRUPT_FILE, "%s is a %s; it should be a table of the collection's own", name ? name : "",
                             type && strcmp(type, "view") == 0 ? "view" : "virtual table");
    } else if (code != SQLITE_DONE) {
        status = sqlite_failed(t->db, code, t->name);
    }
    sqlite3_finalize(found);
    return status;
}

ww_status shadow_check(const table *t, bool to_write)
{
    const ww_status status = look(t, t->schema, to_write, true);
    return status == WW_OK && to_write ? look(t, "temp", true, false)
                                       : status; /* TEMP triggers may be on tables of any database */
}
