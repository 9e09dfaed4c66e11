/* What a SELECT with MATCH asks for, read from its SQL values. */
#ifndef WW_STORE_SQLITE_REQUEST_H
#define WW_STORE_SQLITE_REQUEST_H

#include "store/sqlite/parameters.h"
#include "store/sqlite/sparse_text.h"
#include "store/sqlite/table.h"

typedef struct search_request {
    ww_metric metric; /* of scores and bounds: WW_DOT for sparse vectors */
    vector_buffer query;
    sparse_text sparse; /* instead of the query */
    bool by_sparse, idf;
    int64_t k;                 /* -1: not given */
    int64_t nprobe;            /* 0: all lists */
    float recall;              /* 0: exact */
    bool has_bound;            /* a radius, or a bound on distance or score */
    float bound;               /* for a search: the largest l2 distance, otherwise the smallest score */
    bool finds_nothing;        /* no score is within the bounds */
    char *filter;              /* NULL: none */
    parameter_list parameters; /* of the filter */
    bool has_handles;          /* rowid IN (...), or rowid = */
    filter_places handles;
} search_request;

void request_free(search_request *request);

/* Each reads one argument: the query, which must be finite, like its squared norm; a sparse query, which must not be NULL; its
 * modifier, `idf` or NULL; k; the text of the filter. */
ww_status request_query(const table *t, sqlite3_value *value, search_request *request);
ww_status request_sparse(sqlite3_value *value, search_request *request);
ww_status request_modifier(sqlite3_value *value, search_request *request);
ww_status request_k(sqlite3_value *value, search_request *request);
ww_status request_filter_text(sqlite3_value *value, search_request *request);

/* Reads the arguments of a plan, in its order. */
ww_status request_read(const table *t, unsigned plan, sqlite3_value **values, search_request *request);

/* Finds the rows that the filter admits, by running it or from the kept lists; valid until the next call. Call it in the
 * connection's read transaction. */
ww_status request_filter(table *t, const search_request *request, const kept_filter **found);

/* The distance that SQL shows for a score. */
double distance_of_score(ww_metric metric, float score);

#endif
