/* What a SELECT with MATCH asks for, from the SQL values that it comes with. */
#ifndef WW_STORE_SQLITE_REQUEST_H
#define WW_STORE_SQLITE_REQUEST_H

#include "store/sqlite/parameters.h"
#include "store/sqlite/table.h"

typedef struct search_request {
    vector_buffer query;
    int64_t k;                 /* -1: not given */
    int64_t nprobe;            /* 0: all lists */
    float recall;              /* 0: exact */
    bool has_bound;            /* a radius, or a bound on distance or score */
    float bound;               /* as a search takes it: the largest l2 distance, else the least score */
    bool finds_nothing;        /* no score is within the bounds */
    char *filter;              /* NULL: none */
    parameter_list parameters; /* the filter's */
    bool has_handles;          /* rowid IN (...), or rowid = */
    filter_places handles;
} search_request;

void request_free(search_request *request);

/* Read one argument each: the query, which must be finite, as must be its squared norm; k; the text of the filter. */
ww_status request_query(const table *t, sqlite3_value *value, search_request *request);
ww_status request_k(sqlite3_value *value, search_request *request);
ww_status request_filter_text(sqlite3_value *value, search_request *request);

/* Reads the arguments of a plan, in its order. */
ww_status request_read(const table *t, unsigned plan, sqlite3_value **values, search_request *request);

/* The rows that the filter admits, run now or kept from before; valid until the next call. In the connection's read
 * transaction.
 */
ww_status request_filter(table *t, const search_request *request, const kept_filter **found);

/* The distance that SQL shows for a score. */
double distance_of_score(ww_metric metric, float score);

#endif
