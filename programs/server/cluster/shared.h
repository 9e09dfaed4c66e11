/* The schema `warpwave`, with --cluster: the truth of which the store is a copy. Three tables of it are followed:
 *   collections   the collections of the store (one of a server with named vectors has several), each with a number
 *   notes         what the server keeps beside them: aliases, settings, models (notes.h)
 *   points        the rows of all collections, by the collection's number and their id; a shard has a part of them
 * A fourth, commits, has the last commit of each node (sql_writer.c). A collection of the store has the number as a note: so a
 * change that is applied again after a kill finds its own. */
#ifndef WW_SERVER_CLUSTER_SHARED_H
#define WW_SERVER_CLUSTER_SHARED_H

#include "server/cluster/apply.h"

struct follower;

enum { SHARED_COLLECTIONS, SHARED_NOTES, SHARED_POINTS, SHARED_TABLES };
enum { SHARED_NAME_MAX = 127 }; /* bytes of a collection's name */

extern const table_config shared_tables[SHARED_TABLES];

typedef struct shared_schema shared_schema;

/* Refuses a store that has rows of its own: they would be dropped. */
ww_status shared_create(ww_store *store, shared_schema **made);
void shared_destroy(shared_schema *m); /* accepts NULL */

/* Makes the schema if it is missing. */
ww_status shared_make_schema(PGconn *sql);

/* Reads which collections the store has. */
ww_status shared_read_store(struct follower *f);

/* Makes and drops collections, so that the store has those of the snapshot that f->sql shows, and begins a transaction without
 * any rows and notes. */
ww_status shared_begin_copy(struct follower *f);

/* Applies a change of one of the tables: a new row (`old` NULL), a changed one, or a removed one (`row` NULL). One of
 * collections needs an applier that is not open. */
ww_status shared_apply(struct follower *f, int table, const row_source *from, const table_row *old, const table_row *row);
ww_status shared_truncate(struct follower *f, int table);

/* Tells the server, after a commit, which collections and notes have changed. */
void shared_tell(struct follower *f);

#endif
