/* Indexes (warpwave/ivf.h) for stores, whose files have the lists in tables.
 *
 * A file is written by an *outline*: the centroids and what is known of each list, without its rows. It says which list new
 * rows belong to, splits a list whose rows it is given, and takes tiny lists out. A mirror (mirror.h) is searched by an index
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

/* Puts what is known of the lists in place of what it had; there are as many. */
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

/* Splits a list. moved[i] says whether row i belongs to the new list, which is the last one from now on; if all rows are equal,
 * there is no new list, and the number of lists is as before. */
ww_status outline_split(ww_collection *outline, int64_t list, const outline_rows *rows, bool *moved);

/* Takes tiny lists out, at most half of all, and says which by numbers, as ivf_choose_tiny() does; the number of lists is as
 * before if there are none. The caller then assigns the rows of lists that went once more. `rows_trained` is the index's. */
ww_status outline_merge(ww_collection *outline, int64_t rows_trained, uint32_t *numbers);

int64_t outline_lists(const ww_collection *outline);
list_record outline_record(const ww_collection *outline, int64_t list);
const float *outline_centroid(const ww_collection *outline, int64_t list);

/* ---- restore.c --------------------------------------------------------------------------------------------------------------
 */

/* What of an index has changed in the file. Rows are those of the collection. */
typedef struct ivf_update {
    int64_t nlist; /* there are now */
    double loss;
    int64_t rows_trained, rows_added, lists_split;
    ivf_calibration calibration; /* its rules are copied */

    const uint32_t *changed; /* ascending: lists that are given whole. The others stay; all are here if there is no index yet */
    list_set lists;          /* these */

    const int64_t *rows; /* that enter lists: all rows of changed lists, and new rows of the others. Ascending in each list */
    const uint32_t *row_lists;
    int64_t row_count;

    const uint32_t *touched; /* other lists that get rows, and what is known of them now */
    const list_record *touched_records;
    int64_t touched_count;
} ivf_update;

/* Makes or updates the index of a collection in memory. The caller has checked the numbers. After a failure there is none. */
ww_status ivf_restore(ww_collection *c, const ivf_update *update);

/* The same with the writer's lock; after a failure the index is useless. */
ww_status ivf_apply(ww_collection *c, const ivf_update *update);

/* What a file needs of an index that was built: the set of lists (memory_free() both arrays), and the rows of one of them. */
ww_status ivf_list_set(const ivf *index, list_set *lists);
const uint32_t *ivf_list_rows(const ivf *index, int64_t list, int64_t *count);

#endif
