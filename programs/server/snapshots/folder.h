/* Where snapshots lie: --snapshots DIR, or STORE.snapshots.
 *
 *   full/NAME.snapshot                        of the whole store
 *   collections/COLLECTION/NAME.snapshot      of one; characters of its name that a file's may lack are written %XX
 *   .../NAME.snapshot.sha256                  the checksum
 *   work-XXXXXX/                              a running server's unfinished files, which the next server removes
 *
 * A snapshot gets its name when it is complete and on the disk, so what is listed is whole.
 */
#ifndef WW_SERVER_SNAPSHOTS_FOLDER_H
#define WW_SERVER_SNAPSHOTS_FOLDER_H

#include <limits.h>

#include "base/files/sha256.h"
#include "server/request.h"

/* Removes what servers that were killed have left. Makes nothing. */
ww_status snapshots_open(server *s);

/* Removes the unfinished files of this server. */
void snapshots_close(server *s);

/* Writes the path of a new unfinished file, which the caller makes and snapshots_drop() removes, with what SQLite leaves beside
 * it. */
ww_status snapshots_work(server *s, char path[PATH_MAX]);
void snapshots_drop(const char *path);

/* The folder of a collection's snapshots, or of those of the whole store for NULL. */
ww_status snapshots_of(const server *s, const char *collection, char path[PATH_MAX]);

/* Writes the path of a snapshot. False if the name cannot be a snapshot's: then the request failed with 404. */
bool snapshots_file(request *r, const char *collection, const char *name, char path[PATH_MAX]);

/* Syncs a complete file and gives it a name among the snapshots of a collection, which `path` gets. */
ww_status snapshots_keep(server *s, const char *work, const char *collection, char path[PATH_MAX]);

/* Computes the checksum of a file; WW_CANCELLED if the job is over. */
ww_status snapshots_hash(const char *path, char text[SHA256_TEXT]);

/* Writes the snapshots of a collection as JSON, or only the one in the file `path`. */
ww_status snapshots_list(const server *s, const char *collection, out *o);
bool snapshots_put(const char *path, out *o);

/* Gives a file below the folder, which a client has named, a second name among the unfinished files, so that SQLite's own files
 * lie there. WW_INVALID_ARGUMENT if it lies elsewhere. */
ww_status snapshots_link(server *s, const char *given, char work[PATH_MAX]);

#endif
