/* Changes of what the store has. With --cluster a change is not made here: it is committed to PostgreSQL, and comes to this
 * node's store as to every other one. What routes change goes through these calls. */
#ifndef WW_SERVER_WORK_CHANGES_H
#define WW_SERVER_WORK_CHANGES_H

#include "server/state.h"

/* A transaction over rows, as ww_store_begin() begins it. In a cluster its changes are made in the store as well, so that what
 * follows sees them, and taken back before they are committed to PostgreSQL. */
ww_status changes_begin(server *s);
ww_status changes_commit(server *s);
void changes_rollback(server *s);

/* Runs a job of requests, each answered or failed afterwards. Changes of a cluster whose routes are not `batched` are one
 * transaction of it. */
void changes_run(request *list);

/* Does the request change what the cluster has? All of these wait in one queue, since they wait for each other anyway. */
bool changes_cluster(const request *r);

/* If it does and this node does not know the collection, which another one may just have made, waits until this node has all
 * that is in the database. False: the request failed. */
bool changes_find_collection(request *r);

/* Refuses, before anything is read, what a cluster cannot do. False: the request has been answered. */
bool changes_permitted(request *r);

/* The calls of vectors.h with these names, for the collection of an entry. */
ww_status entry_upsert(const entry *to, const ww_rows *rows);
ww_status entry_update(const entry *to, const ww_rows *rows);
ww_status entry_discard(const entry *to, const char *const *ids, int64_t count, int64_t *missing);
ww_status entry_set_payloads(const entry *to, const char *const *ids, const char *const *payloads, int64_t count);

/* Gets rows of other shards, which a change by id needs, into the store for the length of the transaction. Does nothing if this
 * node has all rows. */
ww_status entry_load(const entry *of, const char *const *ids, int64_t count);

/* Those of store.h. */
ww_status changes_create_collection(server *s, const ww_collection_config *config, const char *kind); /* cluster/sql_writer.h */
ww_status changes_drop_collection(server *s, const char *name);
ww_status changes_set_model(server *s, const char *collection, const ww_store_model *model);

/* Does the calling thread change the cluster? Then what the server keeps in memory changes when the change comes back. */
bool changes_are_shared(void);

/* A collection of the store, or a note, has come back changed: what is kept in memory of it is read again. */
void changes_came(void *user, const char *name);
ww_status changes_read_models(server *s);

#endif
