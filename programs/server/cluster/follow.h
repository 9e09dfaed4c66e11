/* A follower: collections that are copies of tables of a PostgreSQL database, kept up to date by logical replication. With
 * `cluster` of its config these are all collections of the server, and their rows are in one table (shared.h).
 *
 * One thread owns the connections. It copies the tables at an exported snapshot in one transaction of the store, then applies
 * the stream of changes: each visible state is one that the database had after a commit. When the connection, the slot or the
 * database is lost, the collections keep answering, and the follower connects again or copies anew.
 */
#ifndef WW_SERVER_CLUSTER_FOLLOW_H
#define WW_SERVER_CLUSTER_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/store.h>

#include "server/follow_config.h"

struct out;

typedef enum follow_state {
    FOLLOW_CONNECTING, /* the collections may be empty or stale */
    FOLLOW_COPYING,
    FOLLOW_FOLLOWING
} follow_state;

typedef struct follower follower;

/* Who learns what happens, on the follower's thread. */
typedef struct follow_listener {
    void (*changed)(void *user);                   /* after each commit */
    void (*touched)(void *user, const char *name); /* before that: a collection of the store, or a note, is another one */
    void *user;
} follow_listener;

/* Starts the thread; the store and what `config` points at must live longer. */
ww_status follower_start(ww_store *store, const follow_config *config, const follow_listener *listener, follower **started);

/* Ends the thread; what it had not committed is rolled back. Accepts NULL. */
void follower_stop(follower *f);

typedef enum follow_health {
    FOLLOW_FRESH, /* everything is followed; `why` is empty */
    FOLLOW_STALE, /* the collections answer from what they have */
    FOLLOW_BROKEN /* they were never copied, or a table has changed so that it cannot be followed */
} follow_health;

/* How the collections are, and why in `why`. */
follow_health follower_health(follower *f, char *why, size_t capacity);

/* Asks the database at once how far it is, until `lsn` is reached. */
void follower_hurry(follower *f, uint64_t lsn);

/* Waits until `lsn` is reached; false if that did not happen before `until_seconds` of the monotonic clock, or before the
 * calling worker's job was over. */
bool follower_wait(follower *f, uint64_t lsn, double until_seconds);

/* The node's name, which is its slot's; empty as long as the tables were never copied. */
enum { NODE_NAME_BYTES = 64 };
void follower_name(follower *f, char name[NODE_NAME_BYTES]);

/* Does it have rows that may be shown? */
bool follower_serves(follower *f);

/* Takes the rows out of service until they are copied anew, because they differ from those of other replicas or from what the
 * file has. */
void follower_distrust(follower *f, const char *why);
void follower_count_difference(follower *f); /* rows of replicas differed */

/* Which version of the rows is shown: another number after each change, odd while they change. */
uint64_t follower_version(follower *f);

/* The digest of the rows, if they are still those of `version`. */
bool follower_rows(follower *f, uint64_t version, uint64_t *digest);

/* Between these two the rows do not change. Other threads may search meanwhile; blocks while rows are committed. */
void follower_hold(follower *f);
void follower_release(follower *f);

/* Digests of the rows at the last places. */
struct replica_digests;
void follower_digests(follower *f, struct replica_digests *digests);

/* The place in the database's log up to which the collections have everything: "0/0" at first. */
uint64_t follower_lsn(follower *f);

/* Appends the state as a JSON object, for GET /collections/NAME/follow; `collection` NULL: of all. */
void follower_describe(follower *f, const char *collection, struct out *o);

/* Appends the metrics. */
void follower_metrics(follower *f, struct out *o);

#endif
