/* Collections of earlier versions get the columns that they lack.
 *
 * Formats 1 and 2 have no checksums. They are read as they are; the first write, or `warpwave store upgrade`, adds the
 * checksums of all rows in one transaction. Until then the earlier version can still open the file.
 */
#ifndef WW_STORE_UPGRADE_H
#define WW_STORE_UPGRADE_H

#include "store/schema.h"

/* Adds the column `digest` to the list of collections if it is missing. Like all functions here, it runs in the caller's
 * transaction. */
ww_status upgrade_list(sqlite3 *db, const char *schema);

/* A collection, and whom to tell how far its upgrade is. */
typedef struct upgrade {
    sqlite3 *db;
    const char *schema;
    collection_record *record;
    ww_progress progress; /* in rows; may be NULL */
    void *progress_user;
} upgrade;

/* Upgrades a collection to the newest format, and writes its record. Does nothing if it has that format. WW_CORRUPT_FILE if its
 * rows and vectors do not belong together. */
ww_status upgrade_collection(const upgrade *u);

#endif
