/* A view: a collection as one connection sees it, searched in memory.
 *
 * Between view_begin() and view_end() a view stands for the snapshot of the connection's read transaction. It answers from
 *   the mirror           if the mirror (vectors/internal/mirror.h) is at the snapshot's sequence; if it is behind, it is first
 *                        brought there with the changes since, read through this connection;
 *   mirror and overlay   if the transaction has uncommitted changes: the mirror stays where it was before them, new vectors are
 *                        in a small mirror of this view, and removed ones are masked;
 *   a private mirror     if the snapshot is older than the mirror, or the database has no file: read whole through this
 *                        connection.
 * So shared memory is never ahead of a commit, and a rollback only drops the overlay.
 *
 * A view belongs to its connection and, like it, is used by one thread at a time.
 */
#ifndef WW_STORE_VIEW_VIEW_H
#define WW_STORE_VIEW_VIEW_H

#include <warpwave/ivf.h>

#include "store/schema.h"
#include "store/writer/writer.h"
#include "vectors/internal/mirror.h"

typedef struct view view;

typedef struct view_config {
    sqlite3 *db;
    const char *schema;      /* copied */
    const char *name;        /* copied */
    ww_device *device;       /* retained; NULL: the first search opens "auto" */
    const char *device_name; /* opened instead of "auto"; may be NULL; copied */
    ww_screen screen;
    bool keep_host_copy;
    ww_row_place rows;
    int64_t memory_bytes; /* of all collections of the file; 0: no limit. One that needs more alone is not loaded */
    bool restarts;        /* the caller can begin a new transaction, so an old snapshot is not read (view_is_outdated()) */
    ww_progress progress; /* of loading, in rows; may be NULL */
    void *progress_user;
} view_config;

/* A list of places, in any order. A search finds only these rows, and only if the query's mask admits them. */
typedef struct view_places {
    const int64_t *places;
    int64_t count;
    int64_t number; /* not 0: lists with the same number are equal at the same sequence, so the mask may be kept */
} view_places;

/* Does not read the file. WW_UNSUPPORTED if another SQLite of this process has it open. */
ww_status view_open(const view_config *config, view **opened);
void view_close(view *v); /* accepts NULL */

/* What a call needs of a view. */
typedef enum view_need {
    VIEW_RECORD, /* only view_record() and what reads the file; nothing is loaded */
    VIEW_GLANCE, /* as VIEW_SEARCH, for few queries: the first one of a process leaves a large collection in the file, too */
    VIEW_SEARCH, /* view_query(), view_match() and view_ranked(), without an index; rows that do not fit into memory_bytes
                    stay in the file */
    VIEW_MEMORY, /* all rows in memory */
} view_need;

/* Reads the record and gets ready for what the call needs (load, catch up, overlay). The caller has begun a read transaction
 * that lasts until view_end(). WW_NOT_FOUND if the collection is gone. After WW_OK the mirror is locked for reading: call
 * view_end() soon. */
ww_status view_begin(view *v, view_need need);
void view_end(view *v);

const collection_record *view_record(const view *v);

/* Number of times that its statements have been prepared (sqlite_preparations()). */
int64_t view_preparations(const view *v);
/* Finalizes its statements; they are prepared again when needed. Not between view_begin() and view_end(). */
void view_finalize(view *v);

/* Searches with a checked query (vectors/query/query.c). Results have places as rows, handles, scores and what `fetch` names.
 * The query's mask is over places; `where` is ignored. `only` may be NULL: all rows. */
ww_status view_query(view *v, const ww_query *query, const view_places *only, ww_results **results);

/* Searches with a query that has a `match`. With WW_MATCH_TEXT the view need not be ready to search. */
ww_status view_match(view *v, const ww_query *query, const view_places *only, ww_results **results);

/* Counts what the scores of a search by words depend on. */
ww_status view_count_words(view *v, const char *text, ww_word_counts *counts);

/* Searches with a query that has `sparse`. The view need not be ready to search. */
ww_status view_sparse(view *v, const ww_query *query, const view_places *only, ww_results **results);

/* Searches with a query that has `multi`. */
ww_status view_multi(view *v, const ww_query *query, const view_places *only, ww_results **results);

/* Streams the rows in order of score, best first, for searches whose end is not known beforehand: up to query->limit rows,
 * starting at number `first` of that order, as results of one query. Each call doubles the work. */
ww_status view_ranked(view *v, const ww_query *query, const view_places *only, int64_t first, ww_results **results);

/* Looks rows up in the snapshot. The results have one query with one hit per entry, in the order of the list; row -1 if not
 * found. */
typedef enum view_by { VIEW_BY_PLACE, VIEW_BY_HANDLE, VIEW_BY_ID, VIEW_ALL } view_by;
typedef struct view_list {
    view_by by;
    int64_t count;          /* VIEW_ALL: the maximum number of rows */
    const int64_t *numbers; /* places or handles */
    const char *const *ids;
    int64_t after; /* VIEW_ALL: those with a larger place; -1: from the beginning */
    uint32_t fetch;
} view_list;
ww_status view_get(view *v, const view_list *list, ww_results **results);

/* The caller reports the transactions of a host's connection to its view, because the host begins and ends them:
 *   changed_first    before the first change of a transaction (xBegin): everything in the file now is committed
 *   rolled_back      a full rollback or one to a savepoint (xRollback, xRollbackTo): the overlay is dropped
 *   ended            the transaction is over (xCommit, xRollback). */
ww_status view_changed_first(view *v);
/* Call this if the view was opened in the middle of a write transaction, so that what the connection sees may be uncommitted.
 * Until the transaction ends, nothing that the view reads goes into the shared mirror, and view_changed_first() is not
 * called. */
void view_uncertain(view *v);
void view_rolled_back(view *v);
void view_ended(view *v);

/* A committed write whose rows are still in memory. */
typedef struct view_commit {
    const collection_record *before; /* before and after its transaction */
    const collection_record *after;
    mirror_rows added;
    const int64_t *removed; /* places */
    int64_t removed_count;
} view_commit;

/* Makes room in the shared mirror, if it is loaded, for rows that are about to be written, so that nothing can fail after the
 * commit. `record` is what the file has now; `loaded` says whether view_committed() will use the rows. */
ww_status view_reserve(view *v, const collection_record *record, int64_t rows_more, bool *loaded);

/* Applies the write to the shared mirror if the mirror is loaded and only this write is missing, so that the next search need
 * not read it. Never fails: at worst that search reads everything. */
void view_committed(view *v, const view_commit *commit);

/* With view_config.restarts: did view_begin() fail because a write came between the start of the transaction and it? Then a new
 * transaction will succeed. */
bool view_is_outdated(const view *v);

/* Build and calibrate the index of the rows in memory and hand it to a writer through the same connection, which has begun a
 * change. Call them between view_begin() and view_end(), on a host's connection after view_begin_whole(). */
ww_status view_build_index(view *v, const ww_ivf_config *config, writer *w);
ww_status view_calibrate_index(view *v, const ww_calibrate_config *config, writer *w);
/* Like view_begin() with VIEW_MEMORY, but with all rows, including uncommitted changes, in one mirror. */
ww_status view_begin_whole(view *v);
/* The transaction of a host's connection has built, calibrated or dropped an index. */
void view_index_changed(view *v);
/* WW_CORRUPT_FILE if there is an index that could not be read. Between view_begin() and view_end(). */
ww_status view_check_index(const view *v);
/* Figures of the index. */
ww_status view_describe_index(view *v, ww_ivf_info *info);

/* Makes the next reader load the shared mirror again. */
void view_reload(view *v);

/* Makes a group move its rows to the members that should have them. Call it after view_begin() and view_end(). */
ww_status view_balance(view *v);

/* Moves the view to another device, which it retains. */
ww_status view_move(view *v, ww_device *device);

/* Checks what is in memory, between view_begin() and view_end(), as ww_collection_check() does. */
ww_status view_check(view *v, ww_damage_report *report, ww_progress progress, void *user);

/* Figures of the mirror; zero if nothing is loaded. */
ww_status view_describe(view *v, ww_collection_info *info);

#endif
