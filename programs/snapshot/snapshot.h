/* Snapshots of a collection of the server: stores with the collection "docs", its parts "docs/..." and the notes that the
 * server keeps about it in a collection of notes.
 *
 * A snapshot replaces the collection's rows in one transaction. Its notes wait in the live store's notes, under "recover/docs",
 * until that is committed. The next start or restore that finds them there finishes what was interrupted.
 */
#ifndef SNAPSHOT_SNAPSHOT_H
#define SNAPSHOT_SNAPSHOT_H

#include <warpwave/store.h>

#define NOTES_COLLECTION "warpwave.notes"

typedef struct snapshot_call {
    ww_store *store;
    ww_device *device;
    const char *path;     /* of the snapshot */
    ww_progress progress; /* as that of ww_store_copy; may be NULL */
    void *user;
} snapshot_call;

/* Writes a snapshot of one collection to a new file. WW_NOT_FOUND if there is none. An incomplete file is removed. */
ww_status snapshot_write(const snapshot_call *call, const char *collection);

/* Replaces or creates the collection `to` by the collection `from` of a snapshot; NULL: the one that is called `to`, or the
 * only one. The file is checked before anything changes. WW_NOT_FOUND if there is no such collection in it. */
ww_status snapshot_restore(const snapshot_call *call, const char *from, const char *to);

/* Restores all collections; those of the store that the snapshot has not stay. */
ww_status snapshot_restore_all(const snapshot_call *call);

/* Finishes restores that were interrupted after their transaction, and forgets those interrupted before. */
ww_status snapshot_finish(ww_store *store);

#endif
