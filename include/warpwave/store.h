/* Stores: collections in a SQLite file, durable, searched in memory.
 *
 * A collection of a store is used through the calls of vectors.h. A write that returns WW_OK is on disk, whole; one that fails,
 * or is cut short by a crash, has changed nothing. Vectors are loaded to the device with the first search and kept there; ids
 * and payloads stay in the file. Other processes may use the same file at the same time, through this library or through SQLite
 * with the extension of this library: what they change is seen by the next call.
 *
 * What differs from a collection in memory: the row number of a hit is its place in the file, which no compact of another
 * collection, no reopening and no other process changes; only ww_collection_compact() and ww_collection_clear() of this one
 * number places anew. Handles never change. Counts and figures are those of the file at that moment.
 *
 * This header is not part of warpwave.h, since it needs another library: link with -lwarpwave_store.
 *
 * Threads: any number may use a store and its collections at once. Searches wait for no write; writes wait for each other, also
 * for those of other processes, as long as `busy_ms` says, then they fail with WW_BUSY. A child of fork() cannot use its
 * parent's stores: WW_OTHER_PROCESS. It opens its own, but not of a file that was open at the fork: SQLite would take the locks
 * of the parent for its own, and writes could be lost.
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

/* The newest format of tables that this version reads; a collection in a newer one is refused. A collection has format 1, and 2
 * while it has an index. */
#define WW_STORE_FORMAT 2

/* When a write is acknowledged. A process that ends, however it ends, loses nothing at any level; the levels differ in what a
 * power failure or a crash of the operating system can do. */
typedef enum ww_synchronous {
    WW_SYNCHRONOUS_FULL = 0,   /* the write is on disk: nothing that was acknowledged is lost */
    WW_SYNCHRONOUS_NORMAL = 1, /* the last writes may be lost, whole; the file stays sound */
    WW_SYNCHRONOUS_OFF = 2     /* the file may be damaged: for what can be made again */
} ww_synchronous;

typedef struct ww_store ww_store;

typedef struct ww_store_config {
    size_t struct_size;
    ww_synchronous synchronous;
    int32_t busy_ms;    /* how long a call waits for a lock that another thread, connection or process has; default 5000;
                           0: not at all */
    int32_t page_bytes; /* of a new file: a power of two, 512 to 65536; 0: chosen by the first collection's dimension */
    int32_t filter_ms;  /* how long a `where` may take to evaluate; default 60000; 0: no limit */
    int32_t must_exist; /* not 0: a file that is not there is WW_IO_ERROR, and none is made */
    int32_t read_only;  /* not 0: nothing is written, and must_exist is implied */
    ww_progress
        loading; /* told while vectors are loaded, in rows; returning non-zero cancels the call that needed them. May be NULL */
    void *loading_user;
    ww_row_place rows; /* where the vectors of collections that ww_store_collection() opens are; a new one's config says so */
    int32_t exclusive; /* not 0: no other process may open the file (WW_BUSY there, and here if one has it, or if this process
                          has it open without this), and nothing of it is mapped into memory; not with read_only. See
                          SECURITY.md */
} ww_store_config;

typedef struct ww_store_info {
    size_t struct_size;
    int64_t format; /* the highest of its collections', 1 if there is none */
    int64_t collections;
    int64_t page_bytes;
    int64_t bytes_file;   /* the database itself */
    int64_t bytes_wal;    /* what is written and not yet moved there */
    int64_t bytes_unused; /* pages that are free inside of the file; compact gives them back */
    char sqlite_version[32];
} ww_store_info;

/* The model that made the vectors of a collection. Texts that are longer than their field are refused. */
typedef struct ww_store_model {
    size_t struct_size;
    char name[128];
    char fingerprint[72];      /* ww_model_info has it; another model has another */
    char path[1024];           /* where its file was; may be empty */
    char pooling[16];          /* "mean", "cls", "none"; may be empty */
    char query_prefix[256];    /* put before a text that is searched for, "query: " with some models; may be empty */
    char document_prefix[256]; /* put before a text that is added; may be empty */
} ww_store_model;

/* device.h says how ..._default() and ..._init() differ. */
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

static inline ww_store_model ww_store_model_default(void)
{
    ww_store_model value;
    ww_store_model_init(&value, sizeof value);
    return value;
}

/* Takes a level; returns "full", "normal", "off", or NULL for anything else. */
WW_API const char *ww_synchronous_name(ww_synchronous level);

/* Opens the store in the file `path`, and makes the file if it is not there; collections are searched on `device`, which the
 * store keeps open. `config` may be NULL for the defaults. Refuses a file that is no database (WW_CORRUPT_FILE), one that this
 * process has open through another SQLite (WW_UNSUPPORTED), and one that was open when this process was forked
 * (WW_OTHER_PROCESS). A collection that is damaged or that a newer version wrote is refused when it is opened, and keeps no
 * other from being used. May wait for a lock. */
WW_API ww_status ww_store_open(const char *path, ww_device *device, const ww_store_config *config, ww_store **store);

/* Closes it and moves the write-ahead log into the file, as far as readers on other connections permit. Accepts NULL.
 * Collections that are still open keep the store open until they are destroyed. May wait for the disk. */
WW_API void ww_store_close(ww_store *store);

/* Makes an empty collection, named config->name, and gives it in `collection` (may be NULL). The name has 1 to 128 bytes of
 * UTF-8; refused are one that is taken, whatever its case, and one whose tables would collide with others in the file. May wait
 * for a lock. */
WW_API ww_status ww_store_create(ww_store *store, const ww_collection_config *config, ww_collection **collection);

/* Opens a collection that is there; WW_NOT_FOUND if it is not. Several may be open for the same one, and share what is in
 * memory. Freed with ww_collection_destroy(), which leaves the file as it is. May wait for a lock. */
WW_API ww_status ww_store_collection(ww_store *store, const char *name, ww_collection **collection);

/* Drops a collection with all its rows; WW_NOT_FOUND if it is not there. Calls on one that is open give WW_NOT_FOUND from then
 * on. The space is used again, or given back by the next compact. May wait for a lock. */
WW_API ww_status ww_store_drop(ww_store *store, const char *name);

/* Gives a collection another name, with all that belongs to it. WW_NOT_FOUND if it is not there; refuses the names that
 * ww_store_create() refuses. Calls on one that is open under the old name give WW_NOT_FOUND from then on. May wait for a lock.
 */
WW_API ww_status ww_store_rename(ww_store *store, const char *name, const char *to);

/* Lists the collections, by name, as results of one query: the id of a hit is the name, the payload says what it is, as in
 * {"dim":384,"metric":"cosine","type":"f32","rows":1000,"format":1}, for a collection with a model also "model":{"name":...,
 * "fingerprint":...,"path":...,"pooling":...,"query_prefix":...,"document_prefix":...}, or {"error":"..."} for a collection
 * whose entry in the file is damaged, which cannot be opened, only dropped, or that a newer version wrote. May wait for a lock.
 */
WW_API ww_status ww_store_list(ww_store *store, ww_results **results);

/* Makes an index over what `path`, "$.lang" or the like, finds in the payloads of a collection, so that a `where` with
 * payload->>'$.lang' need not look at every row. Making one that exists already does nothing. May wait for a lock. */
WW_API ww_status ww_store_index(ww_store *store, const char *collection, const char *path);

/* Keeps with a collection which model its vectors are of. Where one is kept already, another one, by its fingerprint, is
 * refused (WW_INVALID_ARGUMENT, with both names), and so are other prefixes once there are rows, since their vectors were made
 * with the old ones; the same model may have moved or be called otherwise. May wait for a lock. */
WW_API ww_status ww_store_set_model(ww_store *store, const char *collection, const ww_store_model *model);

/* Gives it; WW_NOT_FOUND if the collection is not there or no model was kept. May wait for a lock. */
WW_API ww_status ww_store_get_model(ww_store *store, const char *collection, ww_store_model *model);

/* Copies the store to the file `path`, which is replaced if it is a store or empty and refused if it is anything else. The
 * store can be used meanwhile; the copy is a snapshot. `progress`, in pages, may be NULL. Not whole, the copy is removed. */
WW_API ww_status ww_store_backup(ww_store *store, const char *path, ww_progress progress, void *user);

/* Reads everything and checks it: SQLite's own integrity check, that rows and vectors belong together, lengths, finite values,
 * numbers and counts, payloads. WW_CORRUPT_FILE names the first fault and how many there are. Writes nothing. `progress`, in
 * rows, may be NULL. */
WW_API ww_status ww_store_check(ww_store *store, ww_progress progress, void *user);

/* Describes the file into `info`. May wait for a lock. */
WW_API ww_status ww_store_describe(ww_store *store, ww_store_info *info);

#ifdef __cplusplus
}
#endif

#endif
