/* Searches: a query with its prefetches is a tree, which the library runs as a plan (plan.h), a search or two stages each.
 * Trees of waiting requests that differ only in their vectors are the questions of one plan. */
#ifndef WW_SERVER_QDRANT_SEARCH_H
#define WW_SERVER_QDRANT_SEARCH_H

#include <warpwave/plan.h>

#include "server/qdrant/listing.h"
#include "server/qdrant/operation.h"
#include "server/qdrant/select.h"
#include "server/qdrant/vectors/multi.h"
#include "server/qdrant/vectors/sparse.h"

enum {
    SEARCHES_MAX = 4096,            /* searches of a request, with what they prefetch */
    EXAMPLES_MAX = 256,             /* of one search */
    JOINED_FILTERS_BYTES = 8 << 20, /* of a request */
    SAMPLE_MAX = 4096               /* points of a matrix */
};

typedef enum search_kind {
    SEARCH_NEAREST,    /* by a vector: the mean of one or more examples */
    SEARCH_BEST_SCORE, /* by the nearest positive or negative example */
    SEARCH_SUM_SCORES, /* by the sum over positive examples minus the sum over negative ones */
    SEARCH_DISCOVER,   /* by a target, in the region that pairs of examples define */
    SEARCH_CONTEXT,    /* by pairs of examples */
    SEARCH_SPARSE,     /* by a sparse vector */
    SEARCH_MULTI,      /* by a multivector */
    SEARCH_WORDS,      /* by the words of the texts that vectors were made of */
    SEARCH_LIST,       /* without a vector: by ids, or by the values of a key */
    SEARCH_SAMPLE,     /* in a random order */
    SEARCH_RRF,        /* fuses the prefetches by ranks */
    SEARCH_DBSF,       /* fuses the prefetches by the distribution of scores */
    SEARCH_FORMULA     /* scores what was prefetched by a formula */
} search_kind;

/* A vector, or a point that stands for its vector. The search does not find that point. */
typedef struct search_example {
    float *vector; /* for an id: NULL until it is fetched */
    int64_t dim;
    ww_sparse_vector sparse; /* instead of the vector */
    point_id id;             /* "": it is a vector */
    bool negative;
} search_example;

/* Another collection that has the vectors of the example points. */
typedef struct search_lookup {
    char collection[256]; /* "": none */
    char vector[128];
    bool has_vector;
} search_lookup;

typedef struct found_point {
    const char *id; /* in the search's results */
    double score;
    int64_t hit;
    double order; /* of a list by values */
} found_point;

/* What a search read with all that it prefetched, together with the others of the same plan. */
typedef struct search_cost {
    int64_t rows_screened, rows_scored, lists_read;
    int64_t bytes;   /* of codes and vectors */
    int64_t queries; /* of that plan */
} search_cost;

typedef struct search search;
struct search {
    search_kind kind;
    search_example *examples; /* SEARCH_DISCOVER: first the target, then pairs, the positive one first */
    size_t example_count;
    search_lookup lookup;
    ww_sparse_vector sparse; /* of SEARCH_SPARSE */
    ww_multivector multi;    /* of SEARCH_MULTI */
    char *words;             /* of SEARCH_WORDS: the text with the words; NULL: another kind */
    ww_word_counts counts;   /* of SEARCH_WORDS over several shards: of all of them. `found` NULL: the collection's own */
    float *vector;           /* of SEARCH_NEAREST, once its examples are known */
    bool excludes_examples;  /* the search does not find its examples */
    char using[128];         /* the name of the vector */
    const entry *target;     /* the collection to search: that of the vectors with this name */
    point_filter filter;     /* including the filters of the searches above */
    uint64_t filter_hash;    /* of their texts; 0: none */
    size_t filter_bytes;     /* of the texts of its own filter and of those above */
    list_order order;        /* of SEARCH_LIST */
    int64_t limit, offset;
    bool has_threshold;
    double threshold;
    bool diverse;     /* a SEARCH_NEAREST that chooses among candidates by maximal marginal relevance */
    double diversity; /* 0 to 1 */
    int64_t candidates;
    double rank_constant; /* of SEARCH_RRF */
    double *weights;      /* of SEARCH_RRF; NULL: all 1 */
    int64_t nprobe;       /* lists of an index to read; 0: not given */
    double recall;        /* the recall wanted; 0: not given. Without either the search is exact */
    selection with;
    search *children; /* what is prefetched */
    size_t child_count;

    ww_formula *formula; /* of SEARCH_FORMULA */
    const char
        *formula_json; /* in the request's body, with `formula` and `defaults`; NULL: it does not depend on named vectors */
    bool explain;      /* `explained` gets what the stages did */

    bool alone;   /* it cannot be computed together with others */
    listing list; /* of SEARCH_LIST and SEARCH_SAMPLE */
    const ww_results *results;
    int64_t query;
    found_point *found;
    int64_t found_count;
    search_cost cost;
    char *explained; /* JSON */
    char *failure;   /* why it could not be computed; NULL: it was */
    int failure_status;
};

typedef enum search_form { FORM_POINTS, FORM_LIST, FORM_BATCH_POINTS, FORM_BATCH_LIST, FORM_GROUPS } search_form;

/* What a request asks for. */
typedef struct search_plan {
    search *searches;
    size_t count;
    size_t nodes;        /* searches with all that they prefetch */
    size_t filter_bytes; /* of filters that were joined with those of the searches above */
    search_form form;
    values_key group_by;
    int64_t group_size, group_limit;
    bool group_payload;     /* the client wants payloads; grouping needs them in any case */
    const char *group_keys; /* a JSON list: the keys of as many groups as there may be, in this order; NULL: any */
    bool with_cost;         /* the answer has the cost and the number of proven hits */
    bool explain;           /* and what each stage of the plan did */
    char *group_lookup;     /* a collection whose ids are the groups' keys; NULL: none */
    selection group_with;
} search_plan;

/* Read one search of Qdrant's query API, and one of its older search API. False: the request failed. */
bool search_read_query(request *r, const char *object, search *out);
bool search_read_search(request *r, const char *object, search *out);
/* Those of the routes /points/recommend and /points/discover of older clients. */
bool search_read_recommended(request *r, const char *object, search *out);
bool search_read_discovered(request *r, const char *object, search *out);
void search_free(search *s);

/* Read the examples of a query: vectors, ids and texts (search_examples.c). */
bool search_read_nearest(request *r, const char *value, search *s);
bool search_read_recommend(request *r, const char *value, search *s);
bool search_read_discover(request *r, const char *value, search *s);
bool search_read_context(request *r, const char *value, search *s);
bool search_read_lookup(request *r, const char *value, search *s);

/* Fetches the vectors of examples that are points, and computes the vector of SEARCH_NEAREST; by sparse examples the search
 * then is a SEARCH_SPARSE. */
ww_status examples_resolve(const entry *e, search *s);

/* Results that hits point into, kept until the answers are written. */
typedef struct kept_results {
    ww_results **list;
    int64_t count, capacity;
} kept_results;

ww_status kept_add(kept_results *kept, ww_results *results); /* after a failure, `results` are freed */
void kept_free(kept_results *kept);

/* Computes the searches together. Each gets `found` or a failure. */
void searches_run(entry *e, search **searches, size_t count, kept_results *kept);

/* Runs trees that differ only in their vectors as the questions of one plan; each of the trees gets its cost, and is explained
 * if the first asks for that (search_stages.c). */
ww_status stages_run(entry *e, search **trees, size_t count, ww_results **results);

/* How a search fuses what it prefetches; and how many candidates one by maximal marginal relevance chooses from. */
void search_fusion(const search *s, struct ww_fuse *how);
int64_t search_candidates(const search *s);

/* Write a list of what a search has found, and ,"cost":{...} with what it read. */
void put_hits(request *r, const search *s);
void put_cost(request *r, const search *s);

/* Reads the formula of a search again, with the conditions on named vectors that only the entry knows. */
ww_status formula_resolve(const entry *e, search *s);

/* A search by several examples: every row that the filter admits gets a score from each, and these are combined into one. Finds
 * the best. */
ww_status examples_find(const search *s, const ww_filter *filter, int64_t limit, ww_results **results);

/* The scores between points of a sample (matrix.c). */
bool prepare_matrix(request *r);
void run_matrix_pairs(request *r);
void run_matrix_offsets(request *r);

#endif
