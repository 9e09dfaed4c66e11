/* Writing to the schema `warpwave` of PostgreSQL, with --cluster: what a request changes is one transaction there, and comes
 * back to every node, this one too, by following.
 *
 * One transaction at a time runs in the whole cluster: it begins with an advisory lock, and when this node has followed all
 * that was committed before. So what a request reads here before it writes (filters, conditions, old payloads) is the truth. A
 * thread has at most one open transaction, and a writer serves one thread at a time. Calls block for some seconds at most. */
#ifndef WW_SERVER_CLUSTER_SQL_WRITER_H
#define WW_SERVER_CLUSTER_SQL_WRITER_H

#include <warpwave/store.h>

#include "server/cluster/follow.h"

typedef struct sql_writer sql_writer;

/* `config` and the follower must live longer. Connects with the first transaction. */
ww_status sql_writer_create(const follow_config *config, follower *f, sql_writer **made);
void sql_writer_destroy(sql_writer *w); /* accepts NULL */

/* Begins a transaction. WW_BUSY: the database cannot be reached or this node is behind it; nothing was changed. */
ww_status sql_writer_begin(sql_writer *w);

/* Commits, and waits until this node has applied it. WW_BUSY: nothing was changed. WW_TIMEOUT: it was changed, but this node
 * does not have it yet, or the connection was lost and it is not known whether it was changed; the message says which. */
ww_status sql_writer_commit(sql_writer *w);
void sql_writer_rollback(sql_writer *w); /* keeps the calling thread's message */

/* The calling thread's open transaction; NULL: there is none. */
sql_writer *sql_writer_here(void);

/* Each changes rows of a collection of the store, as the call of vectors.h with the same meaning does. */
ww_status sql_writer_upsert(sql_writer *w, const char *collection, const ww_rows *rows);
ww_status sql_writer_update(sql_writer *w, const char *collection, const ww_rows *rows);
ww_status sql_writer_discard(sql_writer *w, const char *collection, const char *const *ids, int64_t count);
ww_status sql_writer_set_payloads(sql_writer *w, const char *collection, const char *const *ids, const char *const *payloads,
                                  int64_t count);

/* Gives the collection `to` the ids and payloads of `from`, with vectors of one 0. */
ww_status sql_writer_copy_points(sql_writer *w, const char *from, const char *to);

/* Reads the rows with these ids from the database and upserts them into `to`. */
ww_status sql_writer_load(sql_writer *w, const char *collection, ww_collection *to, const char *const *ids, int64_t count);

/* As ww_store_create() and ww_store_drop(). `kind` is "" or what its rows have: " sparse" or " multi". */
ww_status sql_writer_create_collection(sql_writer *w, const ww_collection_config *config, const char *kind);
ww_status sql_writer_drop_collection(sql_writer *w, const char *name);

/* As notes_put(), notes_remove() and notes_each() (notes.h). A NULL value removes the note. */
ww_status sql_writer_note(sql_writer *w, const char *name, const char *value);
ww_status sql_writer_notes(sql_writer *w, const char *prefix, void (*tell)(void *user, const char *rest, const char *value),
                           void *user);

#endif
