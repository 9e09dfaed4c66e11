/* Indexes (warpwave/ivf.h) for stores, whose files keep the lists in tables.
 *
 * A file's writer uses an *outline*: the centroids and the records of the lists, without their rows. The outline finds the
 * lists of new rows, splits a list whose rows it is given, and removes tiny lists. A mirror (mirror.h) is searched by an index
 * that follows the file: it is restored from the tables and updated with what changed there, and never decides anything itself.
 * So every process has the lists that the writer chose.
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

/* A list's record, and a list without rows from it. */
list_record ivf_list_record(const ivf_list *list);
ivf_list ivf_list_of(const list_record *record);

/* ---- outline.c --------------------------------------------------------------------------------------------------------------
 */

/* Makes an outline on `device`: a collection without rows whose index has lists without rows. Destroyed as any collection. */
ww_status outline_create(ww_device *device, const ww_collection_config *config, const list_set *lists, ww_collection **outline);

/* Replaces what it knows about the lists, whose number stays the same. */
void outline_set_records(ww_collection *outline, const list_record *records);

/* Finds the lists of new rows, dim floats each, and counts the rows there. */
ww_status outline_assign(ww_collection *outline, const float *vectors, int64_t count, uint32_t *lists);

/* A row has left a list. */
void outline_remove(ww_collection *outline, uint32_t list);

/* The list that should be split, -1 if there is none. */
int64_t outline_to_split(const ww_collection *outline);

/* The rows of that list, all of them, in order of place. */
typedef struct outline_rows {
    int64_t count;
    const void *elements; /* count x dim in the collection's type */
} outline_rows;

/* Splits a list. moved[i] says whether row i belongs to the new list, which becomes the last one. If all rows are equal, there
 * is no new list, and the number of lists stays the same. */
ww_status outline_split(ww_collection *outline, int64_t list, const outline_rows *rows, bool *moved);

/* Removes tiny lists, at most half of all, and gives their numbers as ivf_choose_tiny() does. The number of lists stays the
 * same if there are none. The caller then assigns the rows of removed lists again. `rows_trained` is the index's. */
ww_status outline_merge(ww_collection *outline, int64_t rows_trained, uint32_t *numbers);

int64_t outline_lists(const ww_collection *outline);
list_record outline_record(const ww_collection *outline, int64_t list);
const float *outline_centroid(const ww_collection *outline, int64_t list);

/* ---- restore.c --------------------------------------------------------------------------------------------------------------
 */

/* What has changed in the file's index. Rows are numbered as in the collection. */
typedef struct ivf_update {
    int64_t nlist; /* there are now */
    double loss;
    int64_t rows_trained, rows_added, lists_split;
    ivf_calibration calibration; /* its rules are copied */

    /* ascending: lists that are given completely. The others stay; all lists are here if there is no index yet */
    const uint32_t *changed;
    list_set lists; /* these */

    /* rows that enter lists: all rows of changed lists, and new rows of the others. Ascending in each list */
    const int64_t *rows;
    const uint32_t *row_lists;
    int64_t row_count;

    const uint32_t *touched; /* other lists that get rows, and what is known of them now */
    const list_record *touched_records;
    int64_t touched_count;
} ivf_update;

/* Makes or updates the index of a collection in memory. The caller has checked the numbers. After a failure the collection has
 * no index. */
ww_status ivf_restore(ww_collection *c, const ivf_update *update);

/* The same, called with the writer's lock; after a failure the index is useless. */
ww_status ivf_apply(ww_collection *c, const ivf_update *update);

/* What a file stores of an index that was built: the set of lists (memory_free() both arrays), and the rows of one list. */
ww_status ivf_list_set(const ivf *index, list_set *lists);
const uint32_t *ivf_list_rows(const ivf *index, int64_t list, int64_t *count);

#endif
