/* Searches: a query with what it prefetches is a tree. Its leaves, of all requests that wait, are computed together. */
#ifndef WW_SERVER_QDRANT_SEARCH_H
#define WW_SERVER_QDRANT_SEARCH_H

#include "server/qdrant/operation.h"
#include "server/qdrant/select.h"
#include "server/qdrant/values.h"

typedef enum search_kind {
    SEARCH_NEAREST, /* by a vector */
    SEARCH_BY_ID,   /* by the vector of a point, which is not found itself */
    SEARCH_LIST,    /* without a query: by ids */
    SEARCH_RRF,     /* what was prefetched, by ranks */
    SEARCH_DBSF     /* by the distribution of scores */
} search_kind;

typedef struct found_point {
    const char *id; /* in results that the batch keeps */
    double score;
    const ww_results *results; /* where the rest of it is; NULL: it must be fetched */
    int64_t query, hit;
} found_point;

/* What a search read, alone or together with others that were computed in the same call. */
typedef struct search_cost {
    int64_t rows_screened, rows_scored, lists_read;
    int64_t bytes;   /* of codes and vectors */
    int64_t queries; /* of that call */
} search_cost;

typedef struct search search;
struct search {
    search_kind kind;
    float *vector;
    int64_t dim;
    char using[128];     /* the name of the vector */
    const entry *target; /* the collection that is searched: the one of the vectors with that name */
    point_id id;         /* of SEARCH_BY_ID */
    char *filter;        /* those of the searches above included; NULL: none */
    int64_t limit, offset;
    bool has_threshold;
    double threshold;
    double rank_constant; /* of SEARCH_RRF */
    double *weights;      /* of SEARCH_RRF; NULL: all 1 */
    int64_t nprobe;       /* lists of an index that are read; 0: not said */
    double recall;        /* that is enough; 0: not said. Without either the search is exact */
    selection with;
    search *children; /* what is prefetched */
    size_t child_count;

    bool ready; /* a leaf with a vector: computed with others */
    ww_results *results;
    int64_t query;
    found_point *found;
    int64_t found_count;
    search_cost cost;
    char *failure; /* why it could not be computed; NULL: it was */
    int failure_status;
};

typedef enum search_form { FORM_POINTS, FORM_LIST, FORM_BATCH_POINTS, FORM_BATCH_LIST, FORM_GROUPS } search_form;

/* What a request asks for. */
typedef struct search_plan {
    search *searches;
    size_t count;
    search_form form;
    values_key group_by;
    int64_t group_size, group_limit;
    bool group_payload; /* payloads are asked for; the groups need them in any case */
    bool with_cost;     /* the answer says what it cost and what is certain */
} search_plan;

/* Read one search of Qdrant's query API, and one of its older search API. False: the request failed. */
bool search_read_query(request *r, const char *object, search *out);
bool search_read_search(request *r, const char *object, search *out);
void search_free(search *s);

/* Results that hits point into, for as long as answers are written. */
typedef struct kept_results {
    ww_results **list;
    size_t count, capacity;
} kept_results;

bool kept_add(kept_results *kept, ww_results *results); /* false: no memory, and they are freed */
void kept_free(kept_results *kept);

/* Computes the searches together. Each gets `found` or a failure. */
void searches_run(entry *e, search **searches, size_t count, kept_results *kept);

#endif
