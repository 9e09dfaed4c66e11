/* Rows of followed tables into collections: what one transaction of the database changed is one transaction of the store, with
 * the place in the log up to which everything is applied. */
#ifndef WW_SERVER_CLUSTER_APPLY_H
#define WW_SERVER_CLUSTER_APPLY_H

#include <warpwave/store.h>

#include "server/cluster/table.h"

enum { REFUSED_KEPT = 100, REFUSED_ID_BYTES = 128, REFUSED_WHY_BYTES = 200 };

/* A row that cannot be a point. */
typedef struct refused_row {
    char collection[2 * TABLE_NAME_BYTES], id[REFUSED_ID_BYTES], why[REFUSED_WHY_BYTES];
    pg_lsn lsn; /* of its transaction; 0: it came with the copy */
} refused_row;

typedef struct apply_figures {
    int64_t rows, removed, transactions, refused, copies;
} apply_figures;

typedef struct applier applier;

/* Keeps the store. `refuse` is called for each row that is left out. */
ww_status applier_create(ww_store *store, void (*refuse)(void *user, const refused_row *row), void *user, applier **made);
void applier_destroy(applier *a); /* rolls back; accepts NULL */

/* The collection of a table: opens it, or creates it empty. WW_INVALID_ARGUMENT if it exists with another dimension or metric.
 */
ww_status applier_collection(applier *a, const followed_table *table, ww_collection **collection);

/* Closes the collection of a table, which is dropped. Nothing is open. */
void applier_forget(applier *a, const followed_table *table);

/* Where rows come from: the table, where their transaction ends (for the list of refused rows), and who converts values that
 * only the database can (table_put_payload). */
typedef struct row_source {
    const followed_table *table;
    pg_lsn lsn;
    PGconn *connection;
} row_source;

/* Each begins the transaction if none is open. Rows are written in batches. */
ww_status applier_put(applier *a, const row_source *from, const table_row *row);
/* With `old` the row had another key. */
ww_status applier_change(applier *a, const row_source *from, const table_row *old, const table_row *row);
ww_status applier_remove(applier *a, const followed_table *table, const table_row *old);
ww_status applier_clear(applier *a, const followed_table *table);

/* Writes a note of the server (server/notes.h), or with a NULL value removes it. Removes all of them; notes of the follower's
 * own stay. */
ww_status applier_note(applier *a, const pg_value *name, const pg_value *value);
ww_status applier_clear_notes(applier *a);

/* Is there anything to commit? */
bool applier_is_open(const applier *a);

/* Commits what was applied, with a note that is found again by applier_read_note(). */
ww_status applier_commit(applier *a, const char *name, const char *note);
void applier_roll_back(applier *a);

/* A note's JSON (memory_free()), NULL if there is none. */
ww_status applier_read_note(applier *a, const char *name, char **note);

/* One number for the rows of all collections, as they were committed. */
ww_status applier_digest(applier *a, uint64_t *digest);

void applier_count_copy(applier *a);
const apply_figures *applier_figures(const applier *a);

#endif
