/* A collection that is kept elsewhere: what its owner, a store, does in place of this room.
 *
 * Such a collection looks to its caller like any other. Every public call checks its arguments here, as ever, and then goes to
 * the owner through this table, so the room knows of no store and no file. What comes from here is checked already, but for
 * ids. A store is a library of its own: the names it needs of this one are exported, beginning with ww_durable_ or ww_mirror_,
 * and may change with every version. So it asks for DURABLE_VERSION before anything else.
 */
#ifndef WW_VECTORS_DURABLE_OPERATIONS_H
#define WW_VECTORS_DURABLE_OPERATIONS_H

#include <stdbool.h>

#include <warpwave/vectors.h>

enum { DURABLE_VERSION = 5 }; /* of this header and mirror.h; raised with every change */

typedef struct collection_operations {
    /* Writes: each is on disk when it returns WW_OK, whole or not at all. */
    ww_status (*add)(void *owner, const ww_rows *rows, bool upsert);
    ww_status (*update)(void *owner, const ww_rows *rows); /* with vectors; without payloads those that are there stay */
    ww_status (*remove)(void *owner, const char *const *ids, int64_t count, int64_t *missing); /* NULL: all or none */
    ww_status (*set_payloads)(void *owner, const char *const *ids, const char *const *payloads, int64_t count);
    ww_status (*clear)(void *owner);
    ww_status (*compact)(void *owner, ww_progress progress, void *user);
    ww_status (*reserve)(void *owner, int64_t rows);
    ww_status (*move)(void *owner, ww_device *device);
    ww_status (*check)(void *owner, ww_damage_report *report, ww_progress progress, void *user);

    /* Reads. */
    ww_status (*describe)(void *owner, ww_collection_info *info); /* all of ours: no struct_size to mind */
    ww_status (*search)(void *owner, const ww_query *query, int64_t *rows, float *scores);
    ww_status (*query)(void *owner, const ww_query *query, ww_results **results);
    ww_status (*get)(void *owner, const ww_get *get, ww_results **results);
    ww_status (*find)(void *owner, const char *id, int64_t *row);
    ww_status (*find_handle)(void *owner, int64_t handle, int64_t *row);
    /* One row as results of one hit; WW_NOT_FOUND if it is not there. */
    ww_status (*row)(void *owner, int64_t row, uint32_t fetch, ww_results **results);
    int64_t (*next)(void *owner, int64_t row);

    void (*destroy)(void *owner);
} collection_operations;

/* DURABLE_VERSION of the library that is running. */
WW_API int32_t ww_durable_version(void);

/* Makes a collection that hands everything to `operations`, with `owner` in front, and keeps `device` open. It takes `owner`
 * over if this succeeds: ww_collection_destroy() ends with operations->destroy(owner). */
WW_API ww_status ww_durable_create(ww_device *device, const ww_collection_config *config,
                                   const collection_operations *operations, void *owner, ww_collection **collection);

/* Keeps a device open for one user more, who closes it with ww_device_close(). WW_OTHER_PROCESS in a child of fork(). */
WW_API ww_status ww_durable_device_retain(ww_device *device, ww_device **retained);

/* Tells a caller's callback how far a call through the table has come, in the caller's floating-point environment; true: stop.
 */
WW_API bool ww_durable_tell(ww_progress progress, void *user, int64_t done, int64_t total);

/* Refuses a config whose rows cannot be where it wants them; see ww_collection_create(). */
WW_API ww_status ww_durable_check_rows(const char *function, const ww_collection_config *config);

/* What other collections check of a row and what they make of results; see payloads.h, collection.h and results.h. */
WW_API ww_status ww_durable_check_payload(const char *name, int64_t number, const char *text);
WW_API bool ww_durable_is_finite(const float *vector, int32_t dim);
WW_API ww_status ww_durable_results_create(int64_t query_count, int64_t hits, ww_results **results);
WW_API ww_status ww_durable_results_prepare(ww_results *results, uint32_t fetch, int32_t dim, size_t text_bytes);
WW_API ww_status ww_durable_results_put(ww_results *results, int64_t *place, const char *text, size_t length);

/* Gives results of a range search a place for the total of each query. */
WW_API ww_status ww_durable_results_totals(ww_results *results);

#endif
