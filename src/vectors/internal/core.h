/* The functions of this folder that the library of stores uses besides the public ones.
 *
 * They are linked separately, and names of this folder are not exported. So one function returns a table of functions. It may
 * change with every version: check CORE_VERSION before using anything else.
 */
#ifndef WW_VECTORS_INTERNAL_CORE_H
#define WW_VECTORS_INTERNAL_CORE_H

#include "vectors/collection.h"
#include "vectors/internal/lists.h"
#include "vectors/internal/mirror.h"
#include "vectors/query/results.h"

enum { CORE_VERSION = 14 }; /* the version of this header and those it includes; incremented with every change */

typedef struct core_functions {
    int32_t version; /* CORE_VERSION of the running library; if it differs, nothing after this field may be used */

    /* collection.h */
    ww_status (*collection_init)(ww_collection *collection, ww_device *device, const ww_collection_config *config,
                                 const collection_operations *operations);
    void (*collection_release)(ww_collection *collection);
    ww_status (*check_rows)(const char *function, const ww_collection_config *config);
    bool (*is_finite)(const float *vector, int32_t dim);
    ww_status (*row_text_copy)(const row_request *request, const char *text, size_t length);

    /* payloads.h, base/status.h; progress_tell() uses the caller's floating-point environment and returns true to stop */
    ww_status (*check_payload)(const char *name, int64_t number, const char *text);
    ww_status (*merge_payload)(const char *name, const char *old, const char *fields, char **merged);
    bool (*tell)(ww_progress progress, void *user, int64_t done, int64_t total);

    /* Keeps a device open for one more user, who closes it with ww_device_close(). Returns WW_OTHER_PROCESS in a child of
     * fork(). */
    ww_status (*device_retain)(ww_device *device, ww_device **retained);

    /* results.h */
    ww_status (*results_create)(int64_t query_count, int64_t hits, ww_results **results);
    ww_status (*results_prepare)(ww_results *results, uint32_t fetch, int32_t dim, size_t text_bytes);
    ww_status (*results_put)(ww_results *results, int64_t *place, const char *text, size_t length);
    ww_status (*results_totals)(ww_results *results);
    ww_status (*results_parts)(ww_results *results);
    ww_status (*results_proven)(ww_results *results);

    /* mirror.h */
    ww_status (*mirror_acquire)(const mirror_key *key, ww_device *device, const ww_collection_config *config, mirror **found);
    ww_status (*mirror_create)(ww_device *device, const ww_collection_config *config, mirror **made);
    void (*mirror_release)(mirror *m);
    void (*mirror_abandon)(mirror *m);
    void (*mirror_lock_read)(mirror *m);
    void (*mirror_lock_write)(mirror *m);
    void (*mirror_unlock)(mirror *m);
    mirror_state (*mirror_state_of)(const mirror *m);
    void (*mirror_set_state)(mirror *m, int64_t sequence, int64_t next_place);
    ww_collection *(*mirror_collection)(mirror *m);
    ww_status (*mirror_query)(mirror *m, const ww_query *query, ww_results **results);
    void (*mirror_places)(const mirror *m, const int64_t *rows, int64_t count, int64_t *places, int64_t *handles);
    int64_t (*mirror_row)(const mirror *m, int64_t place);
    void (*mirror_mask)(const mirror *m, const uint64_t *by_place, int64_t places_count, uint64_t *mask);
    ww_status (*mirror_reserve)(mirror *m, int64_t rows_more);
    ww_status (*mirror_append)(mirror *m, const mirror_rows *rows);
    ww_status (*mirror_remove)(mirror *m, const int64_t *places, int64_t count);
    ww_status (*mirror_tidy)(mirror *m);
    ww_status (*mirror_file_enter)(const mirror_key *file, const char *path);
    void (*mirror_file_leave)(const mirror_key *file);

    /* lists.h, and from ivf.h the functions that build without changing the collection */
    ww_status (*ivf_build)(ww_collection *c, const ww_ivf_config *config, ivf **index);
    ww_status (*ivf_calibrate)(ww_collection *c, const ww_calibrate_config *config, ivf_calibration *learnt);
    void (*ivf_destroy)(ivf *index);
    ww_status (*ivf_list_set)(const ivf *index, list_set *lists);
    const uint32_t *(*ivf_list_rows)(const ivf *index, int64_t list, int64_t *count);
    ww_status (*ivf_restore)(ww_collection *c, const ivf_update *update);
    ww_status (*ivf_not_found)(const ww_collection *c, const char *function);
    ww_status (*outline_create)(ww_device *device, const ww_collection_config *config, const list_set *lists,
                                ww_collection **outline);
    void (*outline_set_records)(ww_collection *outline, const list_record *records);
    ww_status (*outline_assign)(ww_collection *outline, const float *vectors, int64_t count, uint32_t *lists);
    void (*outline_remove)(ww_collection *outline, uint32_t list);
    int64_t (*outline_to_split)(const ww_collection *outline);
    ww_status (*outline_split)(ww_collection *outline, int64_t list, const outline_rows *rows, bool *moved);
    ww_status (*outline_merge)(ww_collection *outline, int64_t rows_trained, uint32_t *numbers);
    int64_t (*outline_lists)(const ww_collection *outline);
    list_record (*outline_record)(const ww_collection *outline, int64_t list);
    const float *(*outline_centroid)(const ww_collection *outline, int64_t list);
} core_functions;

WW_API const core_functions *ww_core(void);

#endif
