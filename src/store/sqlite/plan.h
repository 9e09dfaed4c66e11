/* How a SELECT on the virtual table is carried out: what xBestIndex decides and xFilter then does.
 *
 * Which, when, cheapest first:
 *   rowid      rowid = ? without MATCH: one row
 *   id         id = ? without MATCH: one row
 *   nearest    MATCH with k: the k nearest, in order
 *   range      MATCH with radius: all rows within it, in order
 *   ordered    MATCH with neither: all rows in order of distance, found piece by piece as they are asked for
 *   scan       all rows, in the order in which their vectors were written
 * With MATCH, `filter` and `rowid IN (...)` admit rows before anything is searched. Bounds on distance or score end a search
 * early; SQLite looks at them once more.
 */
#ifndef WW_STORE_SQLITE_PLAN_H
#define WW_STORE_SQLITE_PLAN_H

#include <warpwave/vectors.h>

#include "store/sqlite_api.h"

enum table_column {
    COLUMN_ID,
    COLUMN_VECTOR,
    COLUMN_PAYLOAD,
    COLUMN_SCORE,
    COLUMN_DISTANCE,
    COLUMN_K,
    COLUMN_RADIUS,
    COLUMN_FILTER,
    COLUMN_PARAMETERS
};

#define TABLE_DECLARATION                                                                                                      \
    "CREATE TABLE x(id TEXT, vector BLOB, payload TEXT, score REAL HIDDEN, distance REAL HIDDEN, k INTEGER HIDDEN, "           \
    "radius REAL HIDDEN, filter TEXT HIDDEN, parameters TEXT HIDDEN)"

/* The number of a plan: what xFilter is given, in the order of the bits, and which columns are wanted. */
enum plan_bit {
    PLAN_MATCH = 1 << 0,
    PLAN_K = 1 << 1,
    PLAN_RADIUS = 1 << 2,
    PLAN_FILTER = 1 << 3,
    PLAN_PARAMETERS = 1 << 4, /* of the filter */
    PLAN_ROWID_IN = 1 << 5,   /* a list, all at once */
    PLAN_ROWID = 1 << 6,
    PLAN_ID = 1 << 7,
    PLAN_DISTANCE_MAX = 1 << 8, /* distance < or <= the value */
    PLAN_SCORE_BOUND = 1 << 9,  /* score on its better side of the value */
    PLAN_ARGUMENTS = 10,        /* so many bits are arguments */
    PLAN_WANTS_ID = 1 << 16,
    PLAN_WANTS_VECTOR = 1 << 17,
    PLAN_WANTS_PAYLOAD = 1 << 18
};

/* Chooses. SQLITE_CONSTRAINT: not in this order of the joined tables; SQLITE_ERROR: never, and `message` says why, from
 * sqlite3_mprintf(). */
int plan_choose(ww_metric metric, sqlite3_index_info *info, char **message);

#endif
