/* Indexes (warpwave/ivf.h) for stores, whose files keep the lists in tables.
 *
 * A file's writer uses an *outline*: the centroids and the records of the lists, without their rows. The outline finds the
 * lists of new rows, splits a list when the writer passes its rows, and removes tiny lists. A mirror (mirror.h) has an index
 * that follows the file: it is restored from the tables and updated with their changes, and never decides anything itself. So
 * every process has the lists that the writer chose.
 */
#ifndef WW_VECTORS_INTERNAL_LISTS_H
#define WW_VECTORS_INTERNAL_LISTS_H

#include "vectors/ivf/ivf.h"

/* A list without its rows. */
typedef struct list_record {
    int64_t rows;
    float farthest, nearest; /* as in ivf_list */
    bool unbounded, was_split;
    int64_t equal_rows;
} list_record;

/* Lists with their centroids. */
typedef struct list_set {
    int64_t count;
    const float *centroids; /* count x dim */
    const list_record *records;
} list_set;

/* ---- outline.c ----------------------------------------------------------------------------------------------------------- */

/* Makes an outline on `device`: a collection without rows whose index has lists without rows. Destroyed like any collection. */
ww_status outline_create(ww_device *device, const ww_collection_config *config, const list_set *lists, ww_collection **outline);

/* Replaces the records of the lists. The number of lists stays the same. */
void outline_set_records(ww_collection *outline, const list_record *records);

/* Finds the lists of new rows, dim floats each, and counts the rows in their lists. */
ww_status outline_assign(ww_collection *outline, const float *vectors, int64_t count, uint32_t *lists);

/* Counts a row that has left a list. */
void outline_remove(ww_collection *outline, uint32_t list);

/* Returns the list that should be split, or -1. */
int64_t outline_to_split(const ww_collection *outline);

/* All rows of that list, in order of their places. */
typedef struct outline_rows {
    int64_t count;
    const void *elements; /* count x dim in the collection's type */
} outline_rows;

/* Splits a list. Sets moved[i] if row i belongs to the new list, which becomes the last one. If all rows are equal, there is no
 * new list. */
ww_status outline_split(ww_collection *outline, int64_t list, const outline_rows *rows, bool *moved);

/* Removes tiny lists, at most half of all, and sets their numbers like ivf_choose_tiny(). If there are none, the number of
 * lists does not change. The caller then assigns the rows of the removed lists again. `rows_trained` is the index's. */
ww_status outline_merge(ww_collection *outline, int64_t rows_trained, uint32_t *numbers);

int64_t outline_lists(const ww_collection *outline);
list_record outline_record(const ww_collection *outline, int64_t list);
const float *outline_centroid(const ww_collection *outline, int64_t list);

/* ---- restore.c ----------------------------------------------------------------------------------------------------------- */

/* The changes of the file's index. Rows have the collection's numbers. */
typedef struct ivf_update {
    int64_t nlist; /* the new number of lists */
    double loss;
    int64_t rows_trained, rows_added, lists_split;
    ivf_calibration calibration; /* its rules will be copied */

    /* in ascending order: lists that are replaced completely. The others stay. If there is no index yet, these are all lists */
    const uint32_t *changed;
    list_set lists; /* the lists in `changed` */

    /* rows that enter lists: all rows of changed lists, and new rows of the others; in ascending order within each list */
    const int64_t *rows;
    const uint32_t *row_lists;
    int64_t row_count;

    const uint32_t *touched; /* other lists that get rows, and their new records */
    const list_record *touched_records;
    int64_t touched_count;
} ivf_update;

/* Makes or updates the index of a collection in memory. The caller has checked the numbers. If it fails, the collection has no
 * index. */
ww_status ivf_restore(ww_collection *c, const ivf_update *update);

/* What a file stores of a new index: the set of lists (memory_free() both arrays), and the rows of one list. */
ww_status ivf_list_set(const ivf *index, list_set *lists);
const uint32_t *ivf_list_rows(const ivf *index, int64_t list, int64_t *count);

#endif
