/* How a SELECT on the virtual table is carried out: what xBestIndex decides and xFilter then does.
 *
 * The plans, cheapest first:
 *   rowid      rowid = ? without MATCH: one row
 *   id         id = ? without MATCH: one row
 *   nearest    MATCH with k: the k nearest, in order
 *   range      MATCH with radius: all rows within it, in order
 *   ordered    MATCH with neither: all rows in order of distance, found piece by piece as they are asked for
 *   scan       all rows, in the order in which their vectors were written
 *   refused    arguments of a search without MATCH: xFilter fails with the reason
 *
 * SQLite also asks for plans of parts of a WHERE, the branches of an OR. Arguments may stand alone there although the whole is
 * fine, so xBestIndex gives a refused plan the highest cost instead of failing.
 *
 * `sparse MATCH` finds rows by their sparse vectors: scores are dot products then, whatever the table's metric is.
 *
 * With MATCH, `filter` and all terms `rowid IN (...)` and `rowid = ...` admit rows before the search: a row must meet all of
 * them. Bounds on distance or score end a search early; SQLite checks them again.
 */
#ifndef WW_STORE_SQLITE_PLAN_H
#define WW_STORE_SQLITE_PLAN_H

#include <warpwave/vectors.h>

#include "store/sqlite_api.h"

enum table_column {
    COLUMN_ID,
    COLUMN_VECTOR,
    COLUMN_PAYLOAD,
    COLUMN_QUERY, /* from here on hidden; the arguments of docs(query, k, ...) in this order */
    COLUMN_K,
    COLUMN_RADIUS,
    COLUMN_FILTER,
    COLUMN_PARAMETERS,
    COLUMN_SCORE,
    COLUMN_DISTANCE,
    COLUMN_TEXT,
    COLUMN_NPROBE,
    COLUMN_RECALL,
    COLUMN_PROVEN,
    COLUMN_SPARSE,
    COLUMN_MODIFIER,
    COLUMN_COMMAND /* named as the table; missing if another column has that name */
};

/* Without the last column, and without the parenthesis. */
#define TABLE_DECLARATION                                                                                                      \
    "CREATE TABLE x(id TEXT, vector BLOB, payload TEXT, query HIDDEN, k INTEGER HIDDEN, radius REAL HIDDEN, "                  \
    "filter TEXT HIDDEN, parameters TEXT HIDDEN, score REAL HIDDEN, distance REAL HIDDEN, text TEXT HIDDEN, "                  \
    "nprobe INTEGER HIDDEN, recall REAL HIDDEN, proven INTEGER HIDDEN, sparse TEXT HIDDEN, modifier TEXT HIDDEN"

/* The number of a plan: which arguments xFilter gets, in the order of the bits, and which columns are wanted. */
enum plan_bit {
    PLAN_MATCH = 1 << 0,
    PLAN_K = 1 << 1,
    PLAN_RADIUS = 1 << 2,
    PLAN_FILTER = 1 << 3,
    PLAN_PARAMETERS = 1 << 4, /* the filter's values */
    PLAN_ROWID_IN = 1 << 5,   /* a whole list as one value */
    PLAN_ROWID = 1 << 6,
    PLAN_ID = 1 << 7,
    PLAN_DISTANCE_MAX = 1 << 8, /* distance < or <= the value */
    PLAN_SCORE_BOUND = 1 << 9,  /* score on its better side of the value */
    PLAN_NPROBE = 1 << 10,
    PLAN_RECALL = 1 << 11,
    PLAN_MODIFIER = 1 << 12,
    PLAN_ARGUMENTS = 13, /* the bits that are arguments */
    PLAN_WANTS_SPARSE = 1 << 13,
    PLAN_WANTS_TEXT = 1 << 14,
    PLAN_QUERY = 1 << 15, /* the query is given as query = ..., as docs(...) does, not by MATCH */
    PLAN_WANTS_ID = 1 << 16,
    PLAN_WANTS_VECTOR = 1 << 17,
    PLAN_WANTS_PAYLOAD = 1 << 18,
    PLAN_REFUSED = 1 << 19, /* the text of the plan says why */
    PLAN_LISTS_SHIFT = 20,  /* from this bit on: the number of lists of rowids */
    PLAN_ROWIDS_SHIFT = 25, /* and of single rowids of a search, in PLAN_COUNT_BITS bits each */
    PLAN_COUNT_BITS = 5,
    PLAN_SPARSE = 1 << 30, /* with PLAN_MATCH: the query is a sparse vector */
    PLAN_COUNT_MAX = (1 << PLAN_COUNT_BITS) - 1
};

/* Number of values that xFilter gets for an argument. */
int plan_values(unsigned plan, unsigned bit);

/* Chooses a plan. Returns SQLITE_CONSTRAINT if it is impossible in this order of the joined tables, SQLITE_ERROR if it is
 * impossible in any; then `message`, from sqlite3_mprintf(), says why. */
int plan_choose(ww_metric metric, sqlite3_index_info *info, char **message);

#endif
