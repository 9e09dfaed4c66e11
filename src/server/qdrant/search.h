/* Searches: a query with what it prefetches is a tree. Its leaves, of all requests that wait, are computed together. */
#ifndef WW_SERVER_QDRANT_SEARCH_H
#define WW_SERVER_QDRANT_SEARCH_H

#include "server/qdrant/listing.h"
#include "server/qdrant/operation.h"
#include "server/qdrant/select.h"

typedef enum search_kind {
    SEARCH_NEAREST,    /* by a vector: the mean of examples, of which there may be one */
    SEARCH_BEST_SCORE, /* by the nearest positive or negative example */
    SEARCH_SUM_SCORES, /* by the sum over positive examples less the one over negative ones */
    SEARCH_DISCOVER,   /* by a target, among those that pairs of examples admit */
    SEARCH_CONTEXT,    /* by pairs of examples */
    SEARCH_LIST,       /* without a vector: by ids, or by the values of a key */
    SEARCH_SAMPLE,     /* in a random order */
    SEARCH_RRF,        /* what was prefetched, by ranks */
    SEARCH_DBSF        /* by the distribution of scores */
} search_kind;

/* A vector, or a point that stands for its vector. The search does not find that point. */
typedef struct search_example {
    float *vector; /* of one with an id NULL until it is got */
    int64_t dim;
    point_id id; /* "": it is a vector */
    bool negative;
} search_example;

/* Another collection, from which the vectors of example points are taken. */
typedef struct search_lookup {
    char collection[256]; /* "": there is none */
    char vector[128];
    bool has_vector;
} search_lookup;

typedef struct found_point {
    const char *id; /* in results that the batch keeps, or in a list */
    double score;
    const ww_results *results; /* where the rest of it is; NULL: it must be fetched */
    int64_t query, hit;
    double order; /* of a list by values */
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
    search_example *examples; /* of SEARCH_DISCOVER the target first; then pairs, the positive one first */
    size_t example_count;
    search_lookup lookup;
    float *vector;          /* of SEARCH_NEAREST, once its examples are known */
    bool excludes_examples; /* points that are examples are not found */
    char using[128];        /* the name of the vector */
    const entry *target;    /* the collection that is searched: the one of the vectors with that name */
    char *filter;           /* those of the searches above included; NULL: none */
    list_order order;       /* of SEARCH_LIST */
    int64_t limit, offset;
    bool has_threshold;
    double threshold;
    double rank_constant; /* of SEARCH_RRF */
    double *weights;      /* of SEARCH_RRF; NULL: all 1 */
    int64_t nprobe;       /* lists of an index to read; 0: not given */
    double recall;        /* the recall wanted; 0: not given. Without either the search is exact */
    selection with;
    search *children; /* what is prefetched */
    size_t child_count;

    bool ready;   /* a leaf with a vector: computed with others */
    listing list; /* of SEARCH_LIST and SEARCH_SAMPLE */
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
    char *group_lookup; /* the collection whose points have the groups' keys as ids; NULL: none */
    selection group_with;
} search_plan;

/* Read one search of Qdrant's query API, and one of its older search API. False: the request failed. */
bool search_read_query(request *r, const char *object, search *out);
bool search_read_search(request *r, const char *object, search *out);
void search_free(search *s);

/* Reads what a query is by: vectors, ids and texts as examples (search_examples.c). */
bool search_read_nearest(request *r, const char *value, search *s);
bool search_read_recommend(request *r, const char *value, search *s);
bool search_read_discover(request *r, const char *value, search *s);
bool search_read_context(request *r, const char *value, search *s);
bool search_read_lookup(request *r, const char *value, search *s);

/* Gets the vectors of examples that are points, and the one that SEARCH_NEAREST is by. */
ww_status examples_resolve(const entry *e, search *s);

/* Whether the point is an example of this search, which it must not find. */
bool example_is(const search *s, const char *id);

/* Results that hits point into, for as long as answers are written. */
typedef struct kept_results {
    ww_results **list;
    size_t count, capacity;
} kept_results;

bool kept_add(kept_results *kept, ww_results *results); /* false: no memory, and they are freed */
void kept_free(kept_results *kept);

/* Computes the searches together. Each gets `found` or a failure. */
void searches_run(entry *e, search **searches, size_t count, kept_results *kept);

/* Fuses the hits of the children by SEARCH_RRF or SEARCH_DBSF into `found`. The ids stay the children's. */
ww_status search_fuse(search *s);

/* Finds by several examples: all rows get a score from each, of which one is made. */
ww_status examples_score(search *s, kept_results *kept);

/* The scores between points of a sample (matrix.c). */
bool prepare_matrix(request *r);
void run_matrix_pairs(request *r);
void run_matrix_offsets(request *r);

/* Whether the score is within the threshold, if there is one. */
bool score_is_within(const search *s, double score);

/* By scores, the best first; equal ones in the order in which they were found. */
int compare_found_scores(const void *first, const void *second);

#endif
