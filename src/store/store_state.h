/* A store and its collections as the files of the C interface see them.
 *
 * A store has one connection that writes, used by one call at a time. Every open collection has connections that read, as many
 * as there are calls at once, each with a view of its own: so no search waits for a write, or for the sync that ends it.
 */
#ifndef WW_STORE_STORE_STATE_H
#define WW_STORE_STORE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <warpwave/store.h>

#include "base/system/process.h"
#include "store/filter/kept_filters.h"
#include "store/view/view.h"
#include "store/writer/writer.h"
#include "vectors/internal/core.h"

struct ww_store {
    atomic_int users; /* the caller, and every open collection */
    process_mark made_in;
    char *path; /* absolute once the file is open: the process may go to another folder */
    ww_device *device;
    ww_store_config config;
    mirror_key file; /* device and inode, and the SQLite */
    bool file_entered;
    bool unchanging; /* the file is opened as immutable; size and time when it was opened: */
    int64_t unchanged_size;
    struct timespec unchanged_time;
    pthread_mutex_t lock; /* protects the next two; store_lock() waits no longer than the caller wants */
    pthread_cond_t unlocked;
    bool locked; /* `writer` is in use */
    sqlite3 *writer;
    sqlite3_stmt *begin, *commit; /* statements of `writer` */
};

/* A connection that reads. */
typedef struct reader {
    struct reader *next;
    int64_t generation; /* of the collection's device */
    sqlite3 *db;
    sqlite3_stmt *begin, *commit;
    view *view;
    filter_guard guard;
    kept_filters filters;
} reader;

/* An open collection: a ww_collection of its own kind. */
typedef struct stored {
    ww_collection base; /* first: a pointer to one is a pointer to the other */
    ww_store *store;
    int64_t uid;          /* a new collection with the same name has another one */
    pthread_mutex_t lock; /* protects base.device and what follows */
    char device_id[32];   /* empty until it is asked for: describing a device reads its free memory, which takes long */
    int64_t generation;
    reader *idle;
    /* With the store's lock: */
    writer *writer;
    uint32_t written_version; /* the data version after our last write: while it stays, the writer's record is the file's */
    view *written;            /* through the connection that writes: leads to the mirror */
} stored;

/* ---- connect.c ---- */
/* Opens the store's file, which is made if need be, with the connection that writes. */
ww_status store_open_file(ww_store *store);
/* Opens another connection to it. */
ww_status store_connect(const ww_store *store, bool reads_only, sqlite3 **db);
/* Before a connection is used: may this process's SQLite use the file, and is it as it was, if it must not change? */
ww_status store_check_file(const ww_store *store);
/* WW_IO_ERROR if the file at the store's path is not the one that was opened. */
ww_status store_check_place(const ww_store *store);
int64_t store_bytes_beside(const ww_store *store, const char *suffix);
/* Is warpwave_collections there? A file that is new has nothing. */
ww_status store_has_collections(sqlite3 *db, bool *has);
/* With the lock, or before anybody else has the store. */
ww_status store_enter_wal(ww_store *store);

/* ---- store.c ---- */
ww_status store_check_handle(const ww_store *store, const char *function);
void store_retain(ww_store *store);
/* WW_INVALID_ARGUMENT if the store was opened to be read only. */
ww_status store_check_writable(const ww_store *store);
/* The lock for the connection that writes. WW_BUSY if another thread has it for busy_ms. What is left of that time is how long
 * SQLite may wait for other connections. */
ww_status store_lock(ww_store *store);
void store_lock_for_good(ww_store *store); /* waits without a limit, for what cannot fail */
void store_unlock(ww_store *store);
/* Begin and end a transaction that writes; the lock is held between them. store_end() commits if `status` is WW_OK and rolls
 * back otherwise; it returns `status`, or why the commit failed. */
ww_status store_begin(ww_store *store);
ww_status store_end(ww_store *store, ww_status status);
/* Commits, unless another file is at the store's path now: nobody would find what was written. */
ww_status store_commit_write(ww_store *store);

/* ---- collections.c ---- */
/* The record of a collection in the list of the file. */
ww_status store_find_record(ww_store *store, const char *name, collection_record *record);
/* WW_NOT_FOUND, or WW_CORRUPT_FILE, if the record is not of the collection that was opened. */
ww_status stored_is(const stored *c, const collection_record *record);
void stored_destroy(ww_collection *base);

/* ---- models.c ---- */
/* The model that is kept for a collection, WW_NOT_FOUND if none is. With the store's lock. */
ww_status store_read_model(ww_store *store, const collection_record *record, ww_store_model *model);

/* ---- readers.c ---- */
/* A read transaction with a view of it; with `search` the view can be searched. */
ww_status reading_begin(stored *c, bool search, reader **opened);
void reading_end(stored *c, reader *r);
void readers_close(reader *list);
ww_status stored_move(ww_collection *base, ww_device *device);

/* ---- reading.c ---- */
extern const collection_operations STORED_OPERATIONS;

/* ---- selecting.c ---- */
ww_status stored_select(ww_collection *base, const ww_selection *selection, uint32_t fetch, ww_results **results);
ww_status stored_select_count(ww_collection *base, const ww_selection *selection, int64_t *count);
/* The handles of the rows of a selection, as they are committed now. */
ww_status stored_select_handles(stored *c, const ww_selection *selection, filter_places *handles);

/* ---- writing.c ---- */
ww_status stored_write(ww_collection *base, const ww_rows *rows, write_kind kind);
ww_status stored_remove(ww_collection *base, const char *const *ids, int64_t count, int64_t *missing);
ww_status stored_select_remove(ww_collection *base, const ww_selection *selection, int64_t *removed);
ww_status stored_set_payloads(ww_collection *base, const payload_change *asked, int64_t *changed);
ww_status stored_clear(ww_collection *base);
/* ---- ivf/indexing.c ---- */
ww_status stored_build_ivf(ww_collection *base, const ww_ivf_config *config);
ww_status stored_calibrate(ww_collection *base, const ww_calibrate_config *config);
ww_status stored_drop_ivf(ww_collection *base);
ww_status stored_describe_ivf(ww_collection *base, ww_ivf_info *info);
/* ---- compact.c ---- */
ww_status stored_compact(ww_collection *base, ww_progress progress, void *user);

static inline stored *stored_of(ww_collection *base)
{
    return (stored *)base;
}

#endif
