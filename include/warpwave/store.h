/* Stores: collections in a SQLite file, durable, searched in memory.
 *
 * A collection of a store is used through the calls of vectors.h. A write that returns WW_OK is on disk, whole; one that fails,
 * or is cut short by a crash, has changed nothing. Vectors are loaded to the device by the first search, large collections by
 * the second, and kept there; ids and payloads stay in the file. Other processes may use the same file at the same time,
 * through this library or through SQLite with this library's extension; the next call sees what they have changed.
 *
 * What differs from a collection in memory: the row number of a hit is its place in the file. Only ww_collection_compact() and
 * ww_collection_clear() of this collection change it; reopening and other processes do not. Handles never change. Counts and
 * figures are those of the file at that moment.
 *
 * This header is not part of warpwave.h, since a library can be built without stores (-DWARPWAVE_STORE=OFF).
 *
 * Threads: any number may use a store and its collections at once. Searches do not wait for writes. Writes wait for each other,
 * and for those of other processes, for at most `busy_ms`, then they fail with WW_BUSY. A call that adds 16 MiB or more while
 * no other connection has the file open keeps others out: ww_store_open() then waits in the same way. A child of fork() cannot
 * use its parent's stores: WW_OTHER_PROCESS. It opens its own, but cannot open a file that was open at the fork: SQLite would
 * mistake the parent's locks for its own, and writes could be lost.
 */
#ifndef WARPWAVE_STORE_H
#define WARPWAVE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/results.h>
#include <warpwave/status.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The newest format of tables that this version reads; a collection in a newer one is refused. A collection has format 3, and 4
 * while it has an index; 1 and 2 are those of an earlier version, without checksums (ww_store_upgrade()). */
#define WW_STORE_FORMAT 4

/* When a write is acknowledged. A process that ends or crashes loses nothing at any level. The levels differ in what a power
 * failure or a crash of the operating system can do. */
typedef enum ww_synchronous {
    WW_SYNCHRONOUS_FULL = 0,   /* the write is on disk: nothing that was acknowledged is lost */
    WW_SYNCHRONOUS_NORMAL = 1, /* the last writes may be lost, whole; the file stays sound */
    WW_SYNCHRONOUS_OFF = 2     /* the file may be damaged: only for data that can be made again */
} ww_synchronous;

typedef struct ww_store ww_store;

typedef struct ww_store_config {
    size_t struct_size;
    ww_synchronous synchronous;
    int32_t busy_ms;     /* how long a call waits for another thread's, connection's or process's lock; default 5000;
                            0: not at all */
    int32_t page_bytes;  /* of a new file: a power of two, 512 to 65536; 0: chosen by the first collection's dimension */
    int32_t filter_ms;   /* how long a `where` may take to evaluate; default 60000; 0: no limit */
    int32_t must_exist;  /* not 0: a file that does not exist is WW_IO_ERROR, and none is made */
    int32_t read_only;   /* not 0: nothing is written, and must_exist is implied */
    ww_progress loading; /* called while vectors are loaded, in rows; returning non-zero cancels the call that needed them. May
                            be NULL */
    void *loading_user;
    ww_row_place rows;    /* where ww_store_collection() puts the vectors; for a new collection its config counts */
    int32_t exclusive;    /* not 0: no other process may open the file (it gets WW_BUSY; so does this call if the file is open
                             elsewhere, or here without this option), and no part of it is mapped into memory; not with
                             read_only. See SECURITY.md */
    int64_t memory_bytes; /* for the vectors of all its collections together, on the device; 0, the default: no limit. What is
                             searched is loaded; for that, collections that were not searched for longest leave memory, except
                             those of the last second. One that needs more alone is read from the file by each search, except
                             by those with nprobe, recall or multi */
} ww_store_config;

typedef struct ww_store_info {
    size_t struct_size;
    int64_t format; /* the highest format of its collections, 3 without any */
    int64_t collections;
    int64_t page_bytes;
    int64_t bytes_file;   /* the database itself */
    int64_t bytes_wal;    /* the write-ahead log, not yet moved into the database */
    int64_t bytes_unused; /* free pages inside the file; compact returns them */
    char sqlite_version[32];
    int64_t bytes_memory; /* vectors of its collections in this process's memory, about */
} ww_store_info;

/* The model that made the vectors of a collection. A text that does not fit into its field is refused. */
typedef struct ww_store_model {
    size_t struct_size;
    char name[128];
    char fingerprint[72];      /* ww_model_info.fingerprint; each model has its own */
    char path[1024];           /* where its file was; may be empty */
    char pooling[16];          /* "mean", "cls", "none"; may be empty */
    char query_prefix[256];    /* put before a text to search for, "query: " for some models; may be empty */
    char document_prefix[256]; /* put before a text that is added; may be empty */
} ww_store_model;

/* Which collections ww_store_backup_collections() and ww_store_restore() copy. */
typedef struct ww_store_copy {
    size_t struct_size;
    const char *const *names; /* `count` names; for ww_store_restore() a NULL name drops the collection to[i], if it exists */
    const char *const *to;    /* their names in the other file; NULL: the same */
    int64_t count;
    const char *note_key, *note; /* a note for the first collection, kept in the same transaction (ww_store_set_note()); NULL:
                                    none */
    ww_progress progress;        /* in collections; called often; returning non-zero cancels the call. May be NULL */
    void *user;
} ww_store_copy;

/* device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_store_copy_init(void *value, size_t struct_size);
WW_API ww_status ww_store_config_init(void *value, size_t struct_size);
WW_API ww_status ww_store_info_init(void *value, size_t struct_size);
WW_API ww_status ww_store_model_init(void *value, size_t struct_size);

static inline ww_store_config ww_store_config_default(void)
{
    ww_store_config value;
    ww_store_config_init(&value, sizeof value);
    return value;
}
static inline ww_store_info ww_store_info_default(void)
{
    ww_store_info value;
    ww_store_info_init(&value, sizeof value);
    return value;
}

static inline ww_store_copy ww_store_copy_default(void)
{
    ww_store_copy value;
    ww_store_copy_init(&value, sizeof value);
    return value;
}

static inline ww_store_model ww_store_model_default(void)
{
    ww_store_model value;
    ww_store_model_init(&value, sizeof value);
    return value;
}

/* Takes a level; returns "full", "normal", "off", or NULL for anything else. */
WW_API const char *ww_synchronous_name(ww_synchronous level);

/* Opens the store in the file `path`, and makes the file if it does not exist; collections are searched on `device`, which the
 * store keeps open. `config` may be NULL for the defaults. Refuses a file that is not a database (WW_CORRUPT_FILE), one that
 * this process has open through another SQLite (WW_UNSUPPORTED), and one that was open when this process was forked
 * (WW_OTHER_PROCESS). A collection that is damaged, or written by a newer version, is refused when it is opened; others can be
 * used. May wait for a lock. */
WW_API ww_status ww_store_open(const char *path, ww_device *device, const ww_store_config *config, ww_store **store);

/* Closes the store and moves the write-ahead log into the file, as far as readers on other connections permit. Accepts NULL.
 * Collections that are still open keep the store open until they are destroyed. May wait for the disk. */
WW_API void ww_store_close(ww_store *store);

/* Makes an empty collection, named config->name, and returns it in `collection` (may be NULL). The name has 1 to 128 bytes of
 * UTF-8. Refuses a name that is taken, in any case, and one whose tables would collide with others in the file. May wait for a
 * lock. */
WW_API ww_status ww_store_create(ww_store *store, const ww_collection_config *config, ww_collection **collection);

/* Opens a collection; WW_NOT_FOUND if it does not exist. The same collection may be opened several times; the handles share its
 * memory. Free each with ww_collection_destroy(), which leaves the file as it is. May wait for a lock. */
WW_API ww_status ww_store_collection(ww_store *store, const char *name, ww_collection **collection);

/* Drops a collection with all its rows; WW_NOT_FOUND if it does not exist. Calls on open handles return WW_NOT_FOUND from then
 * on. The space is used again, or freed by the next compact. May wait for a lock. */
WW_API ww_status ww_store_drop(ww_store *store, const char *name);

/* Gives a collection another name. WW_NOT_FOUND if it does not exist; refuses the names that ww_store_create() refuses. Calls
 * on handles that were opened under the old name return WW_NOT_FOUND from then on. May wait for a lock. */
WW_API ww_status ww_store_rename(ww_store *store, const char *name, const char *to);

/* Lists the collections, by name, as results of one query. The id of a hit is the name, the payload describes it, as in
 * {"dim":384,"metric":"cosine","type":"f32","rows":1000,"format":1}, for a collection with a model also "model":{"name":...,
 * "fingerprint":...,"path":...,"pooling":...,"query_prefix":...,"document_prefix":...}, or {"error":"..."} for a collection
 * that a newer version wrote, or whose entry in the file is damaged; that one can only be dropped. May wait for a lock. */
WW_API ww_status ww_store_list(ww_store *store, ww_results **results);

/* Begin a transaction on the calling thread, and end it. The writes and removals of rows that this thread makes in between, in
 * any number of this store's collections, become visible together with the commit, or not at all. A write that fails is undone
 * alone; the caller goes on or rolls back. Lookups by id, handle or row on this thread see the rows as they are in the
 * transaction; searches, counts and other threads see those before it. Refused in between: rows chosen by a selection, and
 * every other change of the store. Other threads and processes that want to write wait for the end, as for any write.
 * ww_store_begin() waits for them; WW_UNSUPPORTED if this thread has begun one already. ww_store_commit() rolls back if it
 * fails. The other two calls return WW_INVALID_ARGUMENT on a thread without a transaction. */
WW_API ww_status ww_store_begin(ww_store *store);
WW_API ww_status ww_store_commit(ww_store *store);
WW_API ww_status ww_store_rollback(ww_store *store);

/* Makes an index over the values at `path`, such as "$.lang", in the payloads of a collection, so that a `where` with
 * payload->>'$.lang' need not look at every row. Does nothing if the index exists already. May wait for a lock. */
WW_API ww_status ww_store_index(ww_store *store, const char *collection, const char *path);

/* Records with a collection which model made its vectors. If there is a record already, refuses a model with another
 * fingerprint (WW_INVALID_ARGUMENT, with both names) and, once there are rows, other prefixes, because the vectors were made
 * with the old ones. The same model may have another path or name. May wait for a lock. */
WW_API ww_status ww_store_set_model(ww_store *store, const char *collection, const ww_store_model *model);

/* Returns this record; WW_NOT_FOUND if the collection does not exist or has none. May wait for a lock. */
WW_API ww_status ww_store_get_model(ww_store *store, const char *collection, ww_store_model *model);

/* Keeps a short text with a collection, for the program's own use: how far an import came, what another database has told.
 * `key` has at most 255 bytes, `text` 4095; a NULL text removes the note. Within ww_store_begin() it belongs to the
 * transaction: the note and the rows that were written with it are on the disk together, or not at all. WW_NOT_FOUND if there
 * is no such collection. Notes go with the collection when it is renamed, copied or dropped. May wait for a lock. */
enum { WW_NOTE_KEY_BYTES = 256, WW_NOTE_BYTES = 4096 }; /* with the NUL */
WW_API ww_status ww_store_set_note(ww_store *store, const char *collection, const char *key, const char *text);

/* Reads a note; WW_NOT_FOUND if there is none. May wait for a lock. */
WW_API ww_status ww_store_get_note(ww_store *store, const char *collection, const char *key, char text[WW_NOTE_BYTES]);

/* Copies the store to the file `path`. Replaces a store or an empty file, and refuses any other. The store can be used
 * meanwhile; the copy is a snapshot. `progress`, in pages, may be NULL. An incomplete copy is removed. */
WW_API ww_status ww_store_backup(ww_store *store, const char *path, ww_progress progress, void *user);

/* Copies collections, and nothing else, to a new store in the file `path`, which must not exist or be empty. The store, which
 * must not be read-only, can be used meanwhile; the copy is a snapshot, with texts, models, notes and indexes, without maps.
 * WW_NOT_FOUND if a collection does not exist; WW_UNSUPPORTED if an earlier version wrote it (ww_store_upgrade()). An
 * incomplete copy is removed. */
WW_API ww_status ww_store_backup_collections(ww_store *store, const char *path, const ww_store_copy *copy);

/* Copies collections from the store in the file `path` into this one, in one transaction: those that have their names are
 * replaced, and others see all as before or all as after. Checks that file first, as ww_store_check() does, and refuses it with
 * WW_CORRUPT_FILE. Handles of a collection that is replaced by one with the same dimension, metric and type stay good; calls on
 * others return WW_NOT_FOUND. Other writers wait until the copy is complete, for at most their busy_ms. May wait for a lock. */
WW_API ww_status ww_store_restore(ww_store *store, const char *path, const ww_store_copy *copy);

/* Brings all collections that an earlier version wrote to the newest format, each in a transaction of its own: their rows get
 * checksums. The first write to such a collection does the same; until then the earlier version can still use it. Needs room
 * for the changed pages, about as much as the file has. Collections that are damaged or newer are left as they are. `progress`,
 * in rows of one collection after the other, may be NULL. May wait for a lock. */
WW_API ww_status ww_store_upgrade(ww_store *store, ww_progress progress, void *user);

/* Gives the space of removed rows back to the file system, one step: at most about `bytes` of the collection's removed vectors
 * and of the file's free pages, in short transactions, while others read and write. `left` (may be NULL) gets about how many
 * bytes are left for further steps. Rows keep their numbers, unlike with ww_collection_compact(), which also needs disk space
 * for a copy. WW_UNSUPPORTED for a file that an earlier version or another program made, until one ww_collection_compact(). The
 * file becomes shorter once no reader needs its end. May wait for a lock. */
WW_API ww_status ww_store_shrink(ww_store *store, const char *collection, int64_t bytes, int64_t *left);

/* Reads and checks everything: SQLite's own integrity check, that rows and vectors belong together, checksums, lengths, finite
 * values, numbers and counts, payloads. The message of WW_CORRUPT_FILE has the first fault and their number. Writes nothing.
 * `progress`, in rows, may be NULL. */
WW_API ww_status ww_store_check(ww_store *store, ww_progress progress, void *user);

/* Describes the file into `info`. May wait for a lock. */
WW_API ww_status ww_store_describe(ww_store *store, ww_store_info *info);

/* The entry point that SQLite calls when it loads this library as an extension; it registers the virtual table `warpwave` and
 * the functions over vectors for a connection. A program that links the library may pass it to sqlite3_auto_extension(). All
 * stores of a process use one SQLite, the first that asks: another one gets SQLITE_ERROR and a message. */
struct sqlite3;
struct sqlite3_api_routines;
WW_API int sqlite3_warpwave_init(struct sqlite3 *db, char **message, const struct sqlite3_api_routines *api);

#ifdef __cplusplus
}
#endif

#endif
