/* An index over ranks. Every rank's collection has a part of it: all parts have the same centroids, each has its own rows in
 * their lists, and bounds hold for the lists of all parts. The ranks decide together; these are the steps that each rank takes
 * alone.
 *
 * While ranks build, count or search, nobody writes to their collections.
 */
#ifndef WW_VECTORS_INTERNAL_PART_H
#define WW_VECTORS_INTERNAL_PART_H

#include "vectors/internal/lists.h"

/* Draws `wanted` of the `total` live rows of all parts, determined by the seed. This part's rows are numbered from `first`
 * on. */
typedef struct part_draw {
    uint64_t seed;
    int64_t total, first, wanted;
} part_draw;

#define PART_NO_LIST UINT32_MAX

/* Rows of a part; the caller frees the arrays with memory_free(). */
typedef struct part_rows {
    int64_t count;
    int64_t *rows;   /* ascending */
    float *vectors;  /* count x dim, or NULL */
    uint32_t *lists; /* PART_NO_LIST for a row without a list; or NULL */
} part_rows;

/* Returns the drawn rows that are in this part, with their vectors. */
ww_status part_draw_rows(ww_collection *c, const part_draw *draw, part_rows *drawn);

/* Runs k-means on a sample, config->sample_rows x dim, the rows of all parts in their order. The config is checked. */
ww_status part_train(ww_collection *c, const ww_ivf_config *config, float *sample, float *centroids);

/* Returns all live rows, without lists. */
ww_status part_live_rows(ww_collection *c, part_rows *all);

/* Finds lists for the rows that have none, and counts them in the outline (lists.h). */
ww_status part_assign(ww_collection *c, ww_collection *outline, const part_rows *rows);

/* Reads the part: all rows in lists, including removed ones; the centroids; and the numbers of the index, in an update without
 * lists and rows. The caller frees the arrays with memory_free(): both of the rows, the centroids, and the calibration's rules.
 */
ww_status part_copy(ww_collection *c, part_rows *all, float **centroids, ivf_update *numbers);

/* Reads the vectors of some rows. */
ww_status part_vectors(ww_collection *c, const int64_t *rows, int64_t count, float *vectors);

/* part_make() makes the collection's part of an index, beside the current one. `part` is the same on all ranks, and not 0.
 * part_take() replaces the current one and cannot fail. */
ww_status part_make(ww_collection *c, const ivf_update *update, uint64_t part, ivf **made);
void part_take(ww_collection *c, ivf *made);

/* Returns a number that identifies the index that the part belongs to: it differs if centroids or calibration differ. 0: not a
 * part. */
uint64_t part_of(ww_collection *c);

/* What a query by lists needs to know about this part, so that all parts together search as one index. The caller frees both
 * arrays with memory_free(). */
typedef struct part_counts {
    int64_t nlist;
    ivf_rule rule;
    bool masked;          /* some live rows are not admitted */
    int64_t rows;         /* rows in lists */
    int64_t fresh;        /* of these, rows added since part_settle() */
    int64_t trained;      /* rows when the index was built */
    int64_t *admitted;    /* admitted rows of each list */
    int64_t all;          /* admitted rows of all lists */
    list_record *records; /* one per list */
} part_counts;
ww_status part_count_lists(ww_collection *c, const ww_query *query, part_counts *counts);

/* The same for a running search, with the lock; and without a query, for which all live rows are admitted. */
ww_status part_count(const ww_collection *c, const search_job *job, const ww_query *query, part_counts *counts);
ww_status part_count_all(ww_collection *c, part_counts *counts);

/* Returns true if a list is too large, by the counts of all parts. */
bool part_has_large(const part_counts *counts);

/* Records that the lists of all parts have been checked with their current rows. */
void part_settle(ww_collection *c);

/* Runs ww_collection_query() in this part, with the counts of the whole index. */
ww_status part_query(ww_collection *c, const ww_query *query, const ivf_whole *whole, ww_results **results);

/* Returns how many hits of a query, best first, are proven. `counts` are of all parts, `wanted` as in ivf_whole. */
ww_status part_prove(ww_collection *c, const ivf_hits *hits, const part_counts *counts, int64_t wanted, int64_t *proven);

/* Returns true if such a query reads all rows of all parts. */
bool part_reads_all(ww_collection *c, const part_counts *counts);

/* Returns the list of each row, PART_NO_LIST if it has none; memory_free() it. */
ww_status part_row_lists(ww_collection *c, uint32_t **lists);

/* Learns rules from queries whose true neighbours' lists are known (calibrate.c). The second function stores them and cannot
 * fail. */
ww_status part_learn(ww_collection *c, const ww_calibrate_config *config, const uint32_t *lists, ivf_calibration *learnt);
void part_keep(ww_collection *c, ivf_calibration *learnt);

#endif
