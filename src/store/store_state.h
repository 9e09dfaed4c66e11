/* A store and its collections as the files of the C interface see them.
 *
 * A store has one connection that writes, used by one call at a time. Every open collection has reading connections, one per
 * concurrent call, each with its own view. So no search waits for a write or for the sync that ends it.
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
#include "vectors/collection.h"
#include "vectors/internal/lists.h"
#include "vectors/internal/mirror.h"
#include "vectors/query/results.h"

struct ww_store {
    atomic_int users; /* the caller, and every open collection */
    process_mark made_in;
    char *path; /* absolute once the file is open, because the process may chdir() */
    ww_device *device;
    ww_store_config config;
    mirror_key file; /* device, inode, and which SQLite */
    bool file_entered;
    bool unchanging; /* the file is opened as immutable; the next two are its size and time then */
    int64_t unchanged_size;
    struct timespec unchanged_time;
    pthread_mutex_t lock; /* protects the next four; store_lock() waits for it at most busy_ms */
    pthread_cond_t unlocked;
    bool locked;      /* `writer` is in use */
    bool transaction; /* by ww_store_begin(): until its end the lock is that of the thread `owner` */
    pthread_t owner;
    sqlite3 *writer;
    bool outside_wal;             /* the file may be in another journal mode than WAL */
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

/* An open collection of a store. */
typedef struct stored {
    ww_collection base; /* first: a pointer to one is a pointer to the other */
    ww_store *store;
    int64_t uid;          /* a new collection with the same name has another uid */
    pthread_mutex_t lock; /* protects base.device and what follows */
    char device_id[32];   /* empty until needed: describing a device reads its free memory, which is slow */
    int64_t generation;
    reader *idle;
    bool searched; /* by a reader of this handle */
    /* The store's lock protects these: */
    writer *writer;
    uint32_t written_version; /* the data version after our last write: if unchanged, the writer's record is up to date */
    view *written;            /* view of the writing connection: updates the mirror */
} stored;

/* ---- connect.c ---- */
/* Opens the writing connection to the store's file, which is created if necessary. */
ww_status store_open_file(ww_store *store);
/* Opens another connection to the file. */
ww_status store_connect(const ww_store *store, bool reads_only, sqlite3 **db);
/* Called before a connection is used: may this process's SQLite use the file, and is an immutable file unchanged? */
ww_status store_check_file(const ww_store *store);
/* WW_IO_ERROR if the file at the store's path is not the one that was opened. */
ww_status store_check_place(const ww_store *store);
int64_t store_bytes_with_suffix(const ww_store *store, const char *suffix);
/* Does warpwave_collections exist? A new file has no tables. */
ww_status store_has_collections(sqlite3 *db, bool *has);

/* ---- journal.c ---- */
/* Switches the file to WAL mode. Call it with the lock, or before anybody else has the store. */
ww_status store_enter_wal(ww_store *store);
/* Changing the mode twice takes less time than writing this. */
enum { LARGE_WRITE_BYTES = 16 * 1024 * 1024 };
/* Before a write of about `bytes`: leaves WAL mode if the write is large and no other connection has the file open. */
void store_choose_journal(ww_store *store, int64_t bytes);
/* After a write: back to WAL mode, if possible. */
void store_return_to_wal(ww_store *store);

/* ---- store.c ---- */
ww_status store_check_handle(const ww_store *store, const char *function);
void store_retain(ww_store *store);
/* WW_INVALID_ARGUMENT if the store is read-only, WW_UNSUPPORTED in a transaction of ww_store_begin(). */
ww_status store_check_writable(ww_store *store);
/* Locks the writing connection. WW_BUSY if another thread holds the lock for busy_ms. SQLite may wait for other connections for
 * the rest of that time. */
ww_status store_lock(ww_store *store);
void store_lock_for_good(ww_store *store); /* waits without a limit, for calls that cannot fail */
void store_unlock(ww_store *store);
/* Begin and end a write transaction; the lock is held between them. store_end() commits if `status` is WW_OK and rolls back
 * otherwise; it returns `status`, or why the commit failed. Checks with
 * store_check_writable(). */
ww_status store_begin(ww_store *store);
ww_status store_begin_bytes(ww_store *store, int64_t bytes); /* the same for a write of about `bytes` */
ww_status store_end(ww_store *store, ww_status status);
/* Commits, unless another file is at the store's path now: nobody would find what was written. */
ww_status store_commit_write(ww_store *store);

/* ---- transaction.c ---- */
/* Does the calling thread own the transaction of ww_store_begin()? */
bool store_is_mine(ww_store *store);
/* Like store_begin() and store_end(), for writes of rows. In a transaction of ww_store_begin() they make a savepoint: a write
 * that fails is undone alone. */
ww_status store_begin_write(ww_store *store, int64_t bytes);
ww_status store_end_write(ww_store *store, ww_status status);

/* ---- collections.c ---- */
/* An empty file gets its page size and its mode now that the size of its first collection's vectors is known. */
ww_status store_prepare_file(ww_store *store, int64_t vector_bytes);
/* Declares the collection as a virtual table, so that SQL finds it by name once the extension is loaded. */
ww_status collection_declare(sqlite3 *db, const char *schema, const ww_collection_config *config);
/* Does the collection have a virtual table? It does not if SQL dropped the table or an older version created the collection. */
ww_status collection_is_declared(sqlite3 *db, const char *name, bool *declared);
/* Drops the virtual table, whose module drops the other tables. */
ww_status collection_drop(sqlite3 *db, const char *name);
/* Reads the record of a collection. */
ww_status store_find_record(ww_store *store, const char *name, collection_record *record);
/* WW_NOT_FOUND or WW_CORRUPT_FILE if the record is not that of the collection that was opened. */
ww_status stored_is(const stored *c, const collection_record *record);
void stored_destroy(ww_collection *base);

/* ---- notes.c ---- */
/* Makes the table of notes, if it does not exist. */
ww_status notes_prepare(sqlite3 *db, const char *schema);

/* ---- models.c ---- */
/* Makes the table of models, if it does not exist, with all its columns. */
ww_status models_prepare(sqlite3 *db, const char *schema);
/* Reads the model of a collection; WW_NOT_FOUND if it has none. The caller holds the store's lock. */
ww_status store_read_model(ww_store *store, const collection_record *record, ww_store_model *model);

/* ---- readers.c ---- */
/* Begins a read transaction with a view. */
ww_status reading_begin(stored *c, view_need need, reader **opened);
void reading_end(stored *c, reader *r);
void readers_close(reader *list);
/* Before a large write: closes the idle readers of a collection that was not searched, so that the write has the file alone if
 * nobody else uses it. */
void readers_release(stored *c);
ww_status stored_move(ww_collection *base, ww_device *device);

/* ---- reading.c ---- */
extern const collection_operations STORED_OPERATIONS;

/* ---- selecting.c ---- */
ww_status stored_select(ww_collection *base, const ww_selection *selection, uint32_t fetch, ww_results **results);
ww_status stored_select_count(ww_collection *base, const ww_selection *selection, int64_t *count);
/* Finds the handles of the selected rows in the reader's transaction, or in the committed state. */
ww_status stored_find_handles(const stored *c, reader *r, const ww_selection *selection, filter_places *handles);
ww_status stored_select_handles(stored *c, const ww_selection *selection, filter_places *handles);

/* ---- cursor.c ---- */
ww_status stored_cursor_open(ww_cursor *cursor, const ww_selection *selection);
ww_status stored_cursor_read(ww_cursor *cursor, int64_t count, ww_results **results);
void stored_cursor_close(ww_cursor *cursor);

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
