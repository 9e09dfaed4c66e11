/* A `where`: an SQL expression over id, handle and payload that says which rows a search may find.
 *
 * The text comes from outside, so it is checked before any database sees it: brackets and quotes must close within it (then it
 * cannot leave the brackets that it is put in), and it is prepared on a private connection under an authorizer that allows
 * reading the one table and a written list of pure functions. There the table is in a database with a random name, so that no
 * name qualified with a database is found. What passes is run as
 *     WITH "docs_rows" AS (SELECT ... FROM main."docs_rows") SELECT place FROM main."docs_rows" AS "docs_rows" WHERE (<text>)
 * on the connection whose snapshot is searched, with its planner and the user's indexes. There too `docs_rows` in a subquery is
 * the collection's own table, whatever tables other databases and TEMP have. Values are bound, never pasted. A host's
 * connection gets no authorizer, no limits and no progress handler of ours.
 *
 * On the store's own connections a filter is limited in time and memory, whatever its text. SQLite looks at the clock only
 * between the rounds of a loop, so what can be done in one round is limited: the length of a value, the number of function
 * calls in the text, and the cost of each, which must be about linear in the length of its arguments (filter_functions.c).
 */
#ifndef WW_STORE_FILTER_FILTER_H
#define WW_STORE_FILTER_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/vectors.h>

#include "base/status.h"
#include "store/sqlite_api.h"

enum {
    FILTER_TEXT_BYTES_MAX = 1 << 18,
    FILTER_SELECT_TEXT_BYTES_MAX = 1 << 12, /* of a text with a subquery */
    FILTER_VALUE_BYTES_MAX = 1 << 20,       /* of any value: a payload, a function's result */
    FILTER_CALLS_MAX = 256,                 /* function calls in the text, including `->>` and LIKE */
    FILTER_CONCATENATIONS_MAX = 64,         /* operators || in the text */
    FILTER_SELECTS_MAX = 32,                /* subqueries */
    FILTER_ARGUMENTS_MAX = 16,              /* of one function */
    FILTER_PATTERN_BYTES_MAX = 256          /* of LIKE and GLOB, which compare it at every place of the text */
};

typedef struct filter_where {
    const char *text; /* NULL: every row */
    const ww_parameter *values;
    int64_t value_count;
    const ww_filter *filter; /* a row must meet it too; NULL: none */
} filter_where;

/* The authorizer of one of the store's own connections. The connection can only read; while it runs a `where`, it can only read
 * the one table and call the listed functions. */
typedef struct filter_guard {
    const char *collection; /* of the filter that is running; NULL between filters */
    const char *schema;     /* the database that has its rows */
    int calls, selects;     /* in its text so far */
    char refused[160];      /* why something was refused, "" if nothing was */
} filter_guard;

/* Installs the authorizer; `guard`, zeroed, must live as long as the connection. Never for a host's connection. */
int filter_guard_install(sqlite3 *db, filter_guard *guard);

/* Makes statements of one of the store's own connections end if the caller cancels the call. */
void filter_watch(sqlite3 *db);

/* Rows starting at a handle, at most `limit` of them; -1: all. */
typedef struct filter_page {
    int64_t first_handle, limit;
} filter_page;

/* Where a filter runs. */
typedef struct filter_target {
    sqlite3 *db;
    const char *schema;      /* "main", or the name of an attached database */
    const char *collection;  /* its rows are in COLLECTION_rows */
    filter_guard *guard;     /* the connection's guard, with which the limits above hold; NULL for a host's connection */
    const filter_page *page; /* not NULL: collect handles, in order, instead of places */
    double seconds_max;      /* 0: no limit. Only for the store's own connections, which have a progress handler */
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

/* Replaces SQLite's quadratic functions by linear ones with the same results: instr, and trim, ltrim and rtrim with two
 * arguments. Returns SQLite's code. */
int filter_functions_register(sqlite3 *db);

/* Registers ww_filter(payload, filter) and ww_filter(payload, filter, id), which are true for rows that meet a filter given as
 * a dictionary, or bound as a pointer of type FILTER_POINTER. */
#define FILTER_POINTER "ww_filter"
int filter_dictionary_register(sqlite3 *db);

/* The places of the rows for which a checked expression is true, in the target's open transaction. */
ww_status filter_run(const filter_where *where, const filter_target *target, filter_places *places);

/* A copy of text and values, to recognize the same filter. */
typedef struct filter_key filter_key;
filter_key *filter_key_copy(const filter_where *where); /* NULL if out of memory */
bool filter_key_is(const filter_key *key, const filter_where *where);
void filter_key_free(filter_key *key); /* accepts NULL */

#endif
