/* A `where`: an SQL expression over id, handle and payload that says which rows a search may find.
 *
 * The text comes from outside, so it is checked before any database sees it: brackets and quotes must close within it (then it
 * cannot leave the brackets that it is put in), and it is prepared on a private connection to an empty database with the same
 * tables, under an authorizer that allows reading these and a written list of pure functions. What passes is run as
 *     SELECT place FROM "docs_rows" WHERE (<text>)
 * on the connection whose snapshot is asked, with its planner and the indexes that the user made. Values are bound, never
 * pasted. A host's connection gets no authorizer and no progress handler of ours.
 */
#ifndef WW_STORE_FILTER_H
#define WW_STORE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/vectors.h>

#include "base/status.h"
#include "store/sqlite_api.h"

enum { FILTER_TEXT_BYTES_MAX = 1 << 20 };

typedef struct filter_where {
    const char *text;
    const ww_parameter *values;
    int64_t value_count;
} filter_where;

/* The authorizer of a connection that is the store's own: it only reads, for good, and while it runs a `where` it reads the one
 * table and calls the functions of the list only. */
typedef struct filter_guard {
    const char *collection; /* of the filter that is running; NULL between filters */
    char refused[160];      /* why something was, "" if nothing was */
} filter_guard;

/* Installs it; `guard`, zeroed, must live as long as the connection. Never for a host's connection. */
int filter_guard_install(sqlite3 *db, filter_guard *guard);

/* Where a filter runs. */
typedef struct filter_target {
    sqlite3 *db;
    const char *schema;     /* "main", or the name of an attached database */
    const char *collection; /* its rows are in COLLECTION_rows */
    filter_guard *guard;    /* the connection's, NULL for a host's */
    double seconds_max;     /* 0: no limit. Sets a progress handler, so only for connections that are the store's own */
} filter_target;

typedef struct filter_places {
    int64_t *places; /* from memory_alloc(), in the order in which SQLite found them */
    int64_t count;
    int64_t capacity;
} filter_places;

void filter_places_free(filter_places *places);
ww_status filter_places_append(filter_places *places, int64_t place);

/* Is the text an expression that may be run? Refuses a second statement, brackets or quotes that do not close, other tables
 * and columns, functions that are not on the list, recursion, parameters without a value and values without a parameter. Reads
 * no file. */
ww_status filter_check(const filter_where *where, const char *collection);

/* The places of the rows for which a checked expression is true, in the target's open transaction. */
ww_status filter_run(const filter_where *where, const filter_target *target, filter_places *places);

/* A copy of text and values, to know them again. */
typedef struct filter_key filter_key;
filter_key *filter_key_copy(const filter_where *where); /* NULL without memory */
bool filter_key_is(const filter_key *key, const filter_where *where);
void filter_key_free(filter_key *key); /* accepts NULL */

#endif
