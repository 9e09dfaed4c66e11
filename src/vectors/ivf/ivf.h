/* The index of a collection in memory (warpwave/ivf.h): centroids, and for each the list of the rows that belong to it.
 *
 * A list holds row numbers, 4 bytes a row. Vectors, codes and live bits stay in the collection's segments, in the order of
 * rows, so every row type, place of rows and device can be indexed, and exact searches are what they are without an index. The
 * first search of lists makes a copy of the codes in the order of lists (push.c), because gathering them takes one query three
 * to five times as long; without memory for it a CPU gathers them and a GPU searches with masks. Compact frees it.
 *
 * A row belongs to the centroid that an exact search of the centroids finds: by cosine if that is the collection's metric, else
 * by l2. Everything else is computed on the host in double precision, in an order that does not depend on threads. So the lists
 * are the same on every device.
 *
 * Everything here is called with the collection's lock: what changes an index with the writer's.
 */
#ifndef WW_VECTORS_IVF_IVF_H
#define WW_VECTORS_IVF_IVF_H

#include <stdatomic.h>
#include <warpwave/ivf.h>

#include "arithmetic/canon.h"
#include "vectors/collection.h"

enum {
    IVF_LIST_GROWTH = 4, /* a list larger than this many times the mean is split */
};

/* A list and what bounds its rows (proof.c). Scores are canonical, of a row and the centroid it belonged to when it entered. */
typedef struct ivf_list {
    uint32_t *rows; /* ascending */
    int64_t count, capacity;
    int64_t held;            /* how many of the first rows the device has (push.c) */
    float farthest, nearest; /* the worst and the best score of a row; meaningless without rows */
    bool unbounded;          /* a row or the centroid is too small or too large for bounds to hold */
    bool was_split;          /* its rows were not assigned to this centroid because it was the nearest of all */
    int64_t equal_rows; /* how many rows it had, all equal, when it could not be split; it is tried again with twice that */
} ivf_list;

enum { CALIBRATION_K_MAX = 1024 };

/* Which lists a query reads: the nearest `nprobe`, or, with a factor, those whose centroid is at most that many times as far
 * away as the nearest one. */
typedef struct ivf_rule {
    int64_t nprobe; /* with a factor: lists on average */
    double factor;  /* 0: by nprobe */
} ivf_rule;

/* What was learnt about recall (calibrate.c): rules[h - 1] finds h of the k nearest rows. */
typedef struct ivf_calibration {
    int32_t k; /* 0: not calibrated */
    int64_t queries;
    int64_t rows_added; /* the index's, at that time */
    ivf_rule *rules;
} ivf_calibration;

/* Whether exact searches try to exclude lists (exact.c). */
typedef struct ivf_exact_state {
    atomic_int pause; /* searches that did not try, the last time that it was no help */
    atomic_int wait;  /* and how many still do not */
} ivf_exact_state;

typedef struct ivf {
    int32_t dim;
    int32_t metric;   /* of the collection: the order in which lists are read */
    int32_t assigned; /* the metric that rows were assigned by */
    int64_t nlist;
    float *centroids; /* nlist x dim */
    row_store store;  /* the same on the device */
    ivf_list *lists;
    int64_t rows; /* in all lists */
    int64_t rows_trained, rows_added, lists_split;
    double loss;
    ivf_calibration calibration;
    ivf_exact_state exact;
    bool follows;                   /* its lists are decided elsewhere, by a file or by ranks: it never splits or merges any */
    uint64_t part;                  /* what all parts of an index over ranks have in common; 0: it is no part */
    int64_t rows_settled;           /* of a part: rows_added when the ranks last looked for lists to split */
    atomic_uint_least64_t extremes; /* what proof_extremes_of() has found, 0: nothing since lists have changed */
    device_lists *held;             /* the lists on the device, or NULL */
    bool stale;                     /* lists have changed since they were brought there */
} ivf;

typedef struct ivf_size {
    int64_t nlist;
    int32_t dim;
} ivf_size;

/* A row's list, and its score with the centroid. */
typedef struct ivf_place {
    uint32_t list;
    float score;
    bool unbounded; /* the row makes its list unbounded */
} ivf_place;

/* ---- ivf.c ------------------------------------------------------------------------------------------------------------------
 */

/* Frees it and all it holds. Accepts NULL. */
void ivf_destroy(ivf *index);

/* What every public call about indexes says if there is none. */
ww_status ivf_not_found(const ww_collection *c, const char *function);

/* Checks the config for an index of `rows` rows and fills in the defaults. */
ww_status ivf_config_check(const char *name, int64_t rows, ww_ivf_config *config);

/* Makes the index of the live rows; the collection stays as it is. The config is checked here. */
ww_status ivf_build(ww_collection *c, const ww_ivf_config *config, ivf **index);

/* Makes the calibration of the collection's index, which there is; the index stays as it is. The caller frees the rules. */
ww_status ivf_calibrate(ww_collection *c, const ww_calibrate_config *config, ivf_calibration *learnt);

/* `wanted` of `count` numbers (NULL: 0, 1, ...), ascending, each choice equally likely by the seed. */
void ivf_choose(uint64_t seed, const int64_t *from, int64_t count, int64_t wanted, int64_t *to);

/* Makes room in a list for `more` rows. Frees what a list holds. */
ww_status ivf_list_reserve(ivf_list *list, int64_t more);
void ivf_list_free(ivf_list *list);

/* Appends a row, for which there is room, and widens the list's bounds. */
void ivf_list_append(const ivf *index, ivf_list *list, uint32_t row, const ivf_place *place);

/* ---- push.c -----------------------------------------------------------------------------------------------------------------
 */

/* Notes that lists have changed. */
void ivf_changed(ivf *index);

/* Has the device other lists than the index, and should have the same? ivf_push() brings them there; without memory for them
 * on the device it has none, which is not a failure: searches are slower and the same. ivf_forget() frees what it has. */
bool ivf_is_stale(const ww_collection *c);
ww_status ivf_push(ww_collection *c);
void ivf_forget(ivf *index);

/* Can the device read the lists by themselves? */
bool ivf_reads_lists(const ww_collection *c);

/* ---- centroids.c ------------------------------------------------------------------------------------------------------------
 */

/* Puts `nlist` centroids of index->dim floats into a new store on `device`. */
ww_status centroids_create(row_store *store, ww_device *device, device_stream *stream, const float *centroids, ivf_size size);

/* Vectors of dim floats each, in memory of the host or of the device. */
typedef struct ivf_vectors {
    const float *vectors;
    int64_t count;
    bool on_device;
} ivf_vectors;

/* Finds the nearest centroid of each; `unbounded` is false in all places. */
ww_status centroids_nearest(const ivf *index, ivf_vectors vectors, ivf_place *places);

/* Says of places which are unbounded: the vectors are on the host. */
void centroids_mark_unbounded(const ivf *index, const float *vectors, int64_t count, ivf_place *places);

/* Divides each vector by its length where rows are assigned by cosine; one without length stays. */
void ivf_make_unit(const ivf *index, float *vectors, int64_t count);

/* The rows with these numbers, live or not, as floats. */
ww_status ivf_read_rows(const ww_collection *c, const int64_t *rows, int64_t count, float *vectors);

/* How many rows are read and compared with centroids at a time. */
int64_t ivf_piece_rows(int32_t dim);

/* ---- places.c ---------------------------------------------------------------------------------------------------------------
 */

/* Memory for rows that are compared with centroids: on the device if it can read them there, else on the host. */
typedef struct ivf_reader {
    const ww_collection *collection;
    const ivf *index; /* perhaps not yet the collection's */
    int64_t rows_max;
    buffer here;
    float *host;  /* or this */
    float *norms; /* of rows on the device */
} ivf_reader;

/* Makes room for `rows_max` rows. The caller frees it, after a failure too. */
ww_status ivf_reader_create(ivf_reader *reader, const ww_collection *c, const ivf *index, int64_t rows_max);
void ivf_reader_free(ivf_reader *reader);

/* Finds the places of `count` rows, ascending, rows_max at most. */
ww_status ivf_find_places(ivf_reader *reader, const int64_t *rows, int64_t count, ivf_place *places);

/* Brings rows, ascending, as floats to memory of the device, which can do so (rows_read_here). */
ww_status ivf_read_rows_here(const ww_collection *c, const int64_t *rows, int64_t count, float *to);

/* ---- kmeans.c ---------------------------------------------------------------------------------------------------------------
 */

/* Tells the caller of a build how far it is. */
typedef struct ivf_progress {
    ww_progress told;
    void *user;
    int64_t done, total;
} ivf_progress;

/* Counts `more` rows; WW_CANCELLED if the caller stops. */
ww_status ivf_progress_add(ivf_progress *progress, int64_t more);

/* What k-means learns from, and how. */
typedef struct kmeans_job {
    const float *sample;      /* count x dim */
    const float *sample_here; /* the same on the device, or NULL */
    int64_t count;
    int32_t iterations;
    uint64_t seed;
    pool *threads; /* may be NULL */
    ivf_progress *progress;
} kmeans_job;

/* Fills index->centroids and index->store, which is on the collection's device, for index->nlist lists. */
ww_status kmeans_train(ivf *index, ww_collection *c, const kmeans_job *job);

/* ---- split.c ----------------------------------------------------------------------------------------------------------------
 */

/* The largest list that can be split and should be, or NULL. */
ivf_list *ivf_list_to_split(const ivf *index);

/* Is a list of `count` rows, with `equal_rows` as in ivf_list, too large among the `nlist` lists of `rows` rows? */
bool ivf_is_large(int64_t count, int64_t equal_rows, int64_t nlist, int64_t rows);

/* Splits it, or notes that all its rows are equal. Whole or not at all. */
ww_status ivf_split_list(ivf *index, const ww_collection *c, ivf_list *list);

/* Splits lists until none that can be is larger than IVF_LIST_GROWTH times the mean. Each split is whole or not at all. */
ww_status ivf_split_large(ivf *index, const ww_collection *c);

/* ---- merge.c ----------------------------------------------------------------------------------------------------------------
 */

#define IVF_LIST_GOES UINT32_MAX

/* Which tiny lists go, at most half of all: numbers[l] is the number of list l from then on, or IVF_LIST_GOES; `kept` is how
 * many stay. */
ww_status ivf_choose_tiny(const ivf *index, uint32_t *numbers, int64_t *kept);

/* Merges lists until none is tiny. Each step is whole or not at all. */
ww_status ivf_merge_tiny(ivf *index, const ww_collection *c);

/* ---- life.c -----------------------------------------------------------------------------------------------------------------
 */

/* Makes room in every list for the rows that enter it: those whose place has the list's number, which numbers[l] is for list l
 * (NULL: its own). */
ww_status ivf_lists_reserve(const ivf *index, const uint32_t *numbers, const ivf_place *places, int64_t count);

/* The lists of rows first .. first + count - 1, which are written and not yet committed; NULL in `places` without an index.
 * Makes room for them. */
ww_status ivf_stage(ww_collection *c, int64_t first, int64_t count, ivf_place **places);

/* Enters these rows; cannot fail. Then splits lists that have become too large: one for which there is no memory stays as it
 * is, and is tried again with the next rows. */
void ivf_commit(ww_collection *c, int64_t first, int64_t count, const ivf_place *places);

/* For each word of 64 rows, how many live rows are before it: what ivf_compact() needs. NULL in `ranks` without an index. */
ww_status ivf_rank(const ww_collection *c, int64_t **ranks);

/* Renumbers the rows of all lists and drops removed ones, with their room, before the collection's store is replaced; cannot
 * fail. ivf_compacted() is called when that is done, and merges tiny lists: without memory they stay until the next time. */
void ivf_compact(ww_collection *c, const int64_t *ranks);
void ivf_compacted(ww_collection *c);

/* Drops the index of a collection that loses all its rows. A part of an index over ranks stays, without rows. */
void ivf_empty(ww_collection *c);

/* The centroids on another device, or once more on the same; an empty store without an index. */
ww_status ivf_place_centroids(const ww_collection *c, ww_device *device, device_stream *stream, row_store *store);

/* ---- search.c ---------------------------------------------------------------------------------------------------------------
 */

/* Of a part's search (part.h): what it needs to know of the whole index. */
typedef struct ivf_whole {
    int64_t wanted;          /* hits that each query must have */
    const int64_t *admitted; /* rows of each list that count */
} ivf_whole;

/* Carries out the job by reading the lists of each query that the rule says; the queries are on the host; and writes its rows
 * and scores. `proven` gets the number of proven hits of each query, or is NULL. `whole` is NULL, or the collection has a part
 * of the index; then nothing is proven. */
ww_status ivf_search(const ww_collection *c, const search_job *job, ivf_rule rule, const ivf_whole *whole, int64_t *proven);

/* Does a query by this rule read all rows, because its mask, if there is one, admits few of the `rows` in lists? */
bool ivf_reads_all(const ivf *index, ivf_rule rule, bool masked, int64_t admitted, int64_t rows);

/* Live rows of each list that the job's mask admits; returns how many those are in all lists. */
int64_t ivf_count_admitted(const ww_collection *c, const search_job *job, int64_t *admitted);

/* How many of the hits of one query, the best first, are proven by an index whose lists may be without rows. */
typedef struct ivf_hits {
    const float *query;
    const float *scores;
    int64_t count;
} ivf_hits;
ww_status ivf_prove(ivf *index, const ivf_hits *hits, ivf_rule rule, const ivf_whole *whole, int64_t *proven);

/* The lists whose centroid's score is at least as good as `bound` (infinite: all) for each query that is asked, nearest first,
 * as keys that the caller frees, after a failure too. */
ww_status ivf_order_lists(const ivf *index, const search_job *asked, float bound, key_list *order);

/* The nearest `known` lists, all if there are no more; otherwise the same. */
ww_status ivf_order_nearest(const ivf *index, const search_job *asked, int64_t known, key_list *order);

/* A bound that all scores are at least as good as. */
float ivf_all_lists(const ivf *index);

/* How far away a centroid is, as a number that factors apply to: the distance, or 1 - cosine. Rows by dot have none. */
double ivf_distance(const ivf *index, canon_key key);

/* ---- exact.c ----------------------------------------------------------------------------------------------------------------
 */

/* Should the device have the lists for exact searches of this many queries? */
bool ivf_exact_wants_lists(const ww_collection *c, int64_t query_count);

/* Should the index be tried for an exact search? */
bool ivf_exact_pays(const ww_collection *c, const search_job *job);

/* Tries it: `done` says whether the results are there; else all rows are still to be searched. */
ww_status ivf_search_exactly(const ww_collection *c, const search_job *job, bool *done);

/* ---- calibrate.c ------------------------------------------------------------------------------------------------------------
 */

/* Checks the numbers of a config for a collection of `rows` rows and fills in the defaults. */
ww_status ivf_calibrate_check(const char *function, int32_t dim, int64_t rows, ww_calibrate_config *config);

/* ivf_calibrate() with a config that is checked. `lists` has the lists of the true neighbours of each query, query_count x k,
 * a number beyond all lists where there are fewer; NULL: they are found here. */
ww_status ivf_calibrate_by_lists(ww_collection *c, const ww_calibrate_config *config, const uint32_t *lists,
                                 ivf_calibration *learnt);

/* The rule for a query that has nprobe, or a recall for which the index is calibrated. */
ivf_rule ivf_rule_of(const ivf *index, const ww_query *query);

/* ---- proof.c ----------------------------------------------------------------------------------------------------------------
 */

/* What is needed of a query to bound the scores of rows that were not read. */
typedef struct proof_query {
    double norm; /* at least the length */
    double slack;
    bool bounded; /* else nothing can be proven */
} proof_query;

proof_query proof_query_of(const ivf *index, const float *query);

/* A score that no row of the list is better than. `score` is the canonical score of the query and the list's centroid. */
double proof_bound(const ivf *index, const proof_query *query, int64_t list, float score);

/* A list and the canonical score of a query with its centroid. */
typedef struct proof_list {
    int64_t list;
    float score;
} proof_list;

/* The same by the plane between the centroid of `far`, whose rows it speaks of, and that of `near`, for rows that are no
 * farther than `worst`, the score of a hit; a row that is farther is worse than that hit in any case. */
double proof_plane_bound(const ivf *index, const proof_query *query, proof_list near, proof_list far, float worst);

/* The worst that any list of an index has. */
typedef struct proof_extremes {
    float farthest;
    bool unbounded;
} proof_extremes;

/* Looks at all lists only if some have changed since the last time. */
proof_extremes proof_extremes_of(ivf *index);

/* A score that no row is better than of any list whose centroid's score is `score` or worse. By dot there is none such. */
double proof_rest_bound(const ivf *index, const proof_query *query, const proof_extremes *extremes, float score);

/* How far lists can be from the query and still have a row that is not worse than `worst`: every list whose centroid's score is
 * worse than what is returned has none. An infinite score that all lists are better than: nothing is known. */
float proof_reach(const ivf *index, const proof_query *query, const proof_extremes *extremes, float worst);

/* Is a hit with this score certainly better than every row that `bound` is of? */
bool proof_holds(int32_t metric, float score, double bound);

/* Does a vector of this length make its list unbounded? */
bool proof_norm_is_wild(const ivf *index, double norm);

#endif
