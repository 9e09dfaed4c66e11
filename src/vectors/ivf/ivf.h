/* The index of a collection in memory (warpwave/ivf.h): centroids, and for each the list of its rows.
 *
 * A list holds row numbers, 4 bytes per row. Vectors, codes and live bits stay in the collection's segments in row order, so
 * every row type, place of rows and device can be indexed, and exact searches work as without an index. The first search of
 * lists copies the codes into list order (push.c), because gathering them makes a single query three to five times slower.
 * Without memory for the copy a CPU gathers them and a GPU searches with masks. Compact frees the copy.
 *
 * A row belongs to the centroid that an exact search of the centroids finds: by cosine if that is the collection's metric, else
 * by l2. Everything else is computed on the host in double precision, in an order that does not depend on threads. So the lists
 * are the same on every device.
 *
 * Everything here is called with the collection's lock; functions that change an index need the writer's.
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

/* A list and the bounds of its rows (proof.c). Scores are canonical, between a row and the centroid it had when it entered. */
typedef struct ivf_list {
    uint32_t *rows; /* ascending */
    int64_t count, capacity;
    int64_t held;            /* how many of its first rows the device has (push.c) */
    float farthest, nearest; /* the worst and the best score of a row; undefined if there are no rows */
    bool unbounded;          /* a row or the centroid is too small or too large for bounds to hold */
    bool was_split;          /* its rows were not assigned to this centroid as the nearest of all */
    int64_t equal_rows;      /* number of rows, all equal, when it could not be split; splitting is tried again at twice that */
} ivf_list;

enum { CALIBRATION_K_MAX = 1024 };

/* Which lists a query reads: the nearest `nprobe`, or, with a factor, those whose centroid is at most this factor times as far
 * away as the nearest one. */
typedef struct ivf_rule {
    int64_t nprobe; /* with a factor: the mean number of lists */
    double factor;  /* 0: nprobe decides */
} ivf_rule;

/* The result of a calibration (calibrate.c): rules[h - 1] finds h of the k nearest rows. */
typedef struct ivf_calibration {
    int32_t k; /* 0: not calibrated */
    int64_t queries;
    int64_t time;       /* in seconds since 1970 */
    int64_t rows_added; /* rows_added of the index at that time */
    int64_t rows_live;  /* live rows of the collection at that time */
    ivf_rule *rules;
} ivf_calibration;

/* Whether exact searches try to exclude lists (exact.c). */
typedef struct ivf_exact_state {
    atomic_int pause; /* searches that did not try after the last unsuccessful attempt */
    atomic_int wait;  /* searches that still do not try */
} ivf_exact_state;

typedef struct ivf {
    int32_t dim;
    int32_t metric;   /* of the collection: determines the order in which lists are read */
    int32_t assigned; /* the metric for assigning rows */
    int64_t nlist;
    float *centroids; /* nlist x dim */
    row_store store;  /* the centroids on the device */
    ivf_list *lists;
    int64_t rows; /* in all lists */
    int64_t rows_trained, rows_added, lists_split;
    double loss;
    ivf_calibration calibration;
    ivf_exact_state exact;
    bool follows;                   /* a file decides about its lists: it never splits or merges any */
    atomic_uint_least64_t extremes; /* cached result of proof_extremes_of(); 0: lists have changed since */
    device_lists *held;             /* the lists on the device, or NULL */
    bool stale;                     /* lists have changed since they were copied to the device */
} ivf;

typedef struct ivf_size {
    int64_t nlist;
    int32_t dim;
} ivf_size;

/* A row's list, and its score with the centroid. */
typedef struct ivf_place {
    uint32_t list;
    float score;
    bool unbounded; /* the row would make its list unbounded */
} ivf_place;

/* ---- ivf.c --------------------------------------------------------------------------------------------------------------- */

/* Frees the index and everything it has. Accepts NULL. */
void ivf_destroy(ivf *index);

/* The failure of every public call about indexes if there is no index. */
ww_status ivf_not_found(const ww_collection *c, const char *function);

/* Makes an index of the live rows, without changing the collection. Checks the config. */
ww_status ivf_build(ww_collection *c, const ww_ivf_config *config, ivf **index);

/* Calibrates the collection's index, which must exist, without changing it. The caller frees the rules. */
ww_status ivf_calibrate(ww_collection *c, const ww_calibrate_config *config, ivf_calibration *learnt);

/* Draws `wanted` of `count` numbers (NULL: 0, 1, ...), in ascending order, determined by the seed; every choice is equally
 * likely. */
void ivf_choose(uint64_t seed, const int64_t *from, int64_t count, int64_t wanted, int64_t *to);

/* Makes room in a list for `more` rows; below, frees the memory of a list. */
ww_status ivf_list_reserve(ivf_list *list, int64_t more);
void ivf_list_free(ivf_list *list);

/* Appends a row, for which there must be room, and widens the list's bounds. */
void ivf_list_append(const ivf *index, ivf_list *list, uint32_t row, const ivf_place *place);

/* ---- push.c -------------------------------------------------------------------------------------------------------------- */

/* Records that lists have changed. */
void ivf_changed(ivf *index);

/* Returns true if the device should have the index's current lists and does not. ivf_push() copies them there. If there is not
 * enough device memory, that is not a failure: searches are slower and give the same results. ivf_forget() frees the copy. */
bool ivf_is_stale(const ww_collection *c);
ww_status ivf_push(ww_collection *c);
void ivf_forget(ivf *index);

/* Returns true if the device can search the lists itself. */
bool ivf_reads_lists(const ww_collection *c);

/* ---- centroids.c --------------------------------------------------------------------------------------------------------- */

/* Copies `nlist` centroids of index->dim floats to a new store on `device`. */
ww_status centroids_create(row_store *store, ww_device *device, device_stream *stream, const float *centroids, ivf_size size);

/* Vectors of dim floats each, in host or device memory. */
typedef struct ivf_vectors {
    const float *vectors;
    int64_t count;
    bool on_device;
} ivf_vectors;

/* Finds the nearest centroid of each vector; sets `unbounded` to false everywhere. */
ww_status centroids_nearest(const ivf *index, ivf_vectors vectors, ivf_place *places);

/* Sets `unbounded` in places; the vectors are on the host. */
void centroids_mark_unbounded(const ivf *index, const float *vectors, int64_t count, ivf_place *places);

/* Returns the square of the distance between two vectors, in double precision. */
double ivf_squares_between(const float *a, const float *b, int32_t dim);

/* Divides each vector by its length if rows are assigned by cosine; zero vectors do not change. */
void ivf_make_unit(const ivf *index, float *vectors, int64_t count);

/* Reads the rows with these numbers, live or not, as floats. */
ww_status ivf_read_rows(const ww_collection *c, const int64_t *rows, int64_t count, float *vectors);

/* Returns how many rows are read and compared with centroids at a time. */
int64_t ivf_piece_rows(int32_t dim);

/* ---- places.c ------------------------------------------------------------------------------------------------------------ */

/* Memory for rows that are compared with centroids: on the device if it can use them there, otherwise on the host. */
typedef struct ivf_reader {
    const ww_collection *collection;
    const ivf *index; /* may not be the collection's index yet */
    int64_t rows_max;
    buffer here;
    float *host;  /* NULL: on the device */
    float *norms; /* norms of rows on the device */
} ivf_reader;

/* Makes room for `rows_max` rows. The caller frees it, also after a failure. */
ww_status ivf_reader_create(ivf_reader *reader, const ww_collection *c, const ivf *index, int64_t rows_max);
void ivf_reader_free(ivf_reader *reader);

/* Finds the places of `count` rows in ascending order, at most rows_max. */
ww_status ivf_find_places(ivf_reader *reader, const int64_t *rows, int64_t count, ivf_place *places);

/* Converts rows in ascending order to floats in device memory, for devices with rows_read_here. */
ww_status ivf_read_rows_here(const ww_collection *c, const int64_t *rows, int64_t count, float *to);

/* ---- kmeans.c ------------------------------------------------------------------------------------------------------------ */

/* Reports the progress of a build to the caller. */
typedef struct ivf_progress {
    ww_progress told;
    void *user;
    int64_t done, total;
} ivf_progress;

/* Counts `more` rows. Returns WW_CANCELLED if the caller stops. */
ww_status ivf_progress_add(ivf_progress *progress, int64_t more);

/* The input of k-means. */
typedef struct kmeans_job {
    const float *sample;      /* count x dim */
    const float *sample_here; /* the sample on the device, or NULL */
    int64_t count;
    int32_t iterations;
    uint64_t seed;
    pool *threads; /* may be NULL */
    ivf_progress *progress;
} kmeans_job;

/* Computes index->centroids for index->nlist lists, and index->store, which is on the collection's device. */
ww_status kmeans_train(ivf *index, ww_collection *c, const kmeans_job *job);

/* ---- split.c ------------------------------------------------------------------------------------------------------------- */

/* Returns the largest list that should and can be split, or NULL. */
ivf_list *ivf_list_to_split(const ivf *index);

/* Splits a list, or records that all its rows are equal. If it fails, nothing changes. */
ww_status ivf_split_list(ivf *index, const ww_collection *c, ivf_list *list);

/* Splits lists until none that can be split is larger than IVF_LIST_GROWTH times the mean. A split that fails changes
 * nothing. */
ww_status ivf_split_large(ivf *index, const ww_collection *c);

/* ---- merge.c ------------------------------------------------------------------------------------------------------------- */

#define IVF_LIST_GOES UINT32_MAX

/* Chooses the tiny lists to remove, at most half of all: numbers[l] is the new number of list l, or IVF_LIST_GOES; `kept` is
 * the number of lists that stay. */
ww_status ivf_choose_tiny(const ivf *index, uint32_t *numbers, int64_t *kept);

/* Merges lists until none is tiny. A step that fails changes nothing. */
ww_status ivf_merge_tiny(ivf *index, const ww_collection *c);

/* ---- life.c -------------------------------------------------------------------------------------------------------------- */

/* Reserves room in every list for the new rows whose place names it. numbers[l] is the name of list l (NULL: l). */
ww_status ivf_lists_reserve(const ivf *index, const uint32_t *numbers, const ivf_place *places, int64_t count);

/* Finds lists for rows first .. first + count - 1, which are written and not yet committed, and reserves room for them.
 * `places` is NULL without an index. */
ww_status ivf_stage(ww_collection *c, int64_t first, int64_t count, ivf_place **places);

/* Adds these rows to their lists; cannot fail. Then splits lists that have become too large. If memory runs out, a list stays
 * as it is, and splitting is tried again with the next rows. */
void ivf_commit(ww_collection *c, int64_t first, int64_t count, const ivf_place *places);

/* Counts the live rows before each word of 64 rows, for ivf_compact(). `ranks` is NULL without an index. */
ww_status ivf_rank(const ww_collection *c, int64_t **ranks);

/* Renumbers the rows of all lists and drops removed ones, before the collection's store is replaced; cannot fail.
 * ivf_compacted() is called afterwards and merges tiny lists; if memory runs out, they stay until the next time. */
void ivf_compact(ww_collection *c, const int64_t *ranks);
void ivf_compacted(ww_collection *c);

/* Drops the index of a collection that loses all its rows. */
void ivf_empty(ww_collection *c);

/* Copies the centroids to another device, or again to the same one; without an index, makes an empty store. */
ww_status ivf_place_centroids(const ww_collection *c, ww_device *device, device_stream *stream, row_store *store);

/* ---- search.c ------------------------------------------------------------------------------------------------------------ */

/* Runs the job by reading the lists that the rule chooses for each query, and writes its rows and scores. The queries are on
 * the host. `proven` receives the number of proven hits of each query, or is NULL. */
ww_status ivf_search(const ww_collection *c, const search_job *job, ivf_rule rule, int64_t *proven);

/* Finds the lists whose centroid's score is at least as good as `bound` (infinite: all) for each query, nearest first, as keys.
 * The caller frees them, also after a failure. */
ww_status ivf_order_lists(const ivf *index, const search_job *asked, float bound, key_list *order);

/* Finds the nearest `known` lists, or all if there are fewer, in the same form. */
ww_status ivf_order_nearest(const ivf *index, const search_job *asked, int64_t known, key_list *order);

/* Returns a bound that includes all scores. */
float ivf_all_lists(const ivf *index);

/* Returns the distance of a centroid as a number that factors apply to: the distance itself, or 1 - cosine. Not for dot. */
double ivf_distance(const ivf *index, canon_key key);

/* ---- exact.c ------------------------------------------------------------------------------------------------------------- */

/* Returns true if the device should have the lists for exact searches of this many queries. */
bool ivf_exact_wants_lists(const ww_collection *c, int64_t query_count);

/* Returns true if an exact search should try the index. */
bool ivf_exact_pays(const ww_collection *c, const search_job *job);

/* Tries the index. Sets `done` if the results are complete; otherwise all rows must still be searched. */
ww_status ivf_search_exactly(const ww_collection *c, const search_job *job, bool *done);

/* ---- calibrate.c --------------------------------------------------------------------------------------------------------- */

/* Returns the rule for a query with nprobe, or with a recall for which the index is calibrated. */
ivf_rule ivf_rule_of(const ivf *index, const ww_query *query);

/* ---- proof.c ------------------------------------------------------------------------------------------------------------- */

/* A query, as the bounds on unread rows need it. */
typedef struct proof_query {
    double norm; /* an upper bound of its length */
    double slack;
    bool bounded; /* false: nothing can be proven */
} proof_query;

proof_query proof_query_of(const ivf *index, const float *query);

/* Returns a bound such that no row of the list has a better score. `score` is the canonical score of the query and the list's
 * centroid. */
double proof_bound(const ivf *index, const proof_query *query, int64_t list, float score);

/* A list and the canonical score of a query with its centroid. */
typedef struct proof_list {
    int64_t list;
    float score;
} proof_list;

/* The same by the plane between the centroids of `far`, the list to bound, and `near`, for rows that are not farther than
 * `worst`, the score of a hit; farther rows are worse than that hit anyway. */
double proof_plane_bound(const ivf *index, const proof_query *query, proof_list near, proof_list far, float worst);

/* The worst values of any list of an index. */
typedef struct proof_extremes {
    float farthest;
    bool unbounded;
} proof_extremes;

/* Returns them. Reads all lists only if some have changed since the last time. */
proof_extremes proof_extremes_of(ivf *index);

/* Returns a bound such that no row of any list whose centroid's score is `score` or worse has a better score. Not for dot. */
double proof_rest_bound(const ivf *index, const proof_query *query, const proof_extremes *extremes, float score);

/* Returns a score such that lists whose centroid's score is worse have no row as good as `worst`. Returns infinity, which
 * excludes no list, if nothing is known. */
float proof_reach(const ivf *index, const proof_query *query, const proof_extremes *extremes, float worst);

/* Returns true if a hit with this score is certainly better than every row that `bound` covers. */
bool proof_holds(int32_t metric, float score, double bound);

/* Returns true if a vector of this length makes its list unbounded. */
bool proof_norm_is_wild(const ivf *index, double norm);

/* ---- proven.c ------------------------------------------------------------------------------------------------------------ */

/* A round of queries with their results, the ordered lists of each, and where the lists of each that were read start and end.
 */
typedef struct ivf_proofs {
    const ivf *index;
    const search_job *round;
    const key_list *order;
    const int64_t *starts;
    const proof_extremes *extremes;
} ivf_proofs;

/* Counts the hits of each query that are better than all rows of unread lists. */
ww_status ivf_count_proven(const ivf_proofs *p, int64_t *proven);

#endif
