/* What the files of a follower share. */
#ifndef WW_SERVER_CLUSTER_FOLLOW_STATE_H
#define WW_SERVER_CLUSTER_FOLLOW_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/cluster/apply.h"
#include "server/cluster/digests.h"
#include "server/cluster/follow.h"
#include "server/cluster/shared.h"

enum { FOLLOW_NAME_BYTES = 64, FOLLOW_WHY_BYTES = 400, SYSTEM_BYTES = 32 };

/* Where the follower is, kept in the store with every commit. */
typedef struct follow_place {
    pg_lsn lsn;
    bool copied; /* the tables were copied; if not, the slot has to be made again */
    char slot[FOLLOW_NAME_BYTES];
    char system[SYSTEM_BYTES]; /* the database cluster's identifier */
    uint64_t tables;           /* a hash of what is followed and how */
} follow_place;

typedef struct follow_shown { /* guarded by `lock` */
    follow_state state;
    char slot[FOLLOW_NAME_BYTES];
    bool copied;                     /* the collections have all rows of some moment */
    char distrust[FOLLOW_WHY_BYTES]; /* why the rows must be copied anew before they are shown again; empty: they need not */
    replica_digests digests;         /* of the rows at the last places */
    int64_t differences;             /* how often replicas differed */
    char why[FOLLOW_WHY_BYTES];      /* why it is not following; empty if it is */
    pg_lsn lsn, end;                 /* applied; the end of the database's log, as far as it has told */
    apply_figures figures;
    int64_t reconnects;
    double applied_seconds;            /* when something was applied last, or the database said that there is nothing new */
    refused_row refused[REFUSED_KEPT]; /* a ring */
    int64_t refused_count;
} follow_shown;

typedef struct tracked_table {
    followed_table table;
    bool matched;                   /* a RELATION message has described it since the connection was made */
    char stopped[FOLLOW_WHY_BYTES]; /* why its changes are left out; empty if they are not. Written under `lock` */
} tracked_table;

struct follower {
    ww_store *store;
    follow_config config;
    follow_listener listener;
    struct shared_schema *shared; /* NULL: tables of others are followed */
    pthread_t thread;
    int wake; /* an eventfd: stop, or hurry */
    atomic_bool stopping;
    atomic_bool distrusted;
    atomic_ullong wanted;   /* a place in the log that somebody waits for */
    pthread_mutex_t commit; /* held while rows change, and by who must not see them change */
    atomic_ullong version;  /* of the rows: odd while they change, another one after each change */

    /* The thread's own. */
    PGconn *sql, *stream;
    applier *applier;
    pg_reader reader;
    tracked_table *tables; /* config.table_count */
    follow_place place;
    char timeline[16], system[SYSTEM_BYTES]; /* of the database that is connected */
    pg_lsn database_end;                     /* of its log when it was connected */

    pthread_mutex_t lock;
    pthread_cond_t reached; /* shown.lsn is higher */
    follow_shown shown;
};

double follow_seconds(void);

/* Waits until the connection has something to read, `milliseconds` pass, or the follower is stopped. */
ww_status follow_wait(follower *f, PGconn *connection, int milliseconds);

/* Shows why nothing is followed at the moment; NULL: the thread's last message. */
void follow_show(follower *f, follow_state state, const char *why);

/* Notes the digest of the rows at the place that was committed last, if there are nodes to compare it with. Returns whether it
 * is the one that was noted before. */
bool follow_note_digest(follower *f);

/* Commits with the place `lsn`, and shows it. */
ww_status follow_commit(follower *f, pg_lsn lsn);

/* ---- slot.c: where to begin ---------------------------------------------------------------------------------------------- */

/* Connects, checks the database, and makes sure of the publication. */
ww_status follow_connect(follower *f);
void follow_disconnect(follower *f);

/* What is followed and how: if that changes, the tables are copied again. `shards`: with the part that this node has. */
uint64_t follow_tables_hash(const follow_config *config, bool shards);

/* Must the tables be copied (again)? `why` says so in words. */
ww_status follow_needs_copy(follower *f, bool *needed, char why[FOLLOW_WHY_BYTES]);

/* Makes the slot anew; `snapshot` is the name of the snapshot at its beginning. */
ww_status follow_create_slot(follower *f, char snapshot[FOLLOW_NAME_BYTES], pg_lsn *begin);

/* ---- copy.c -------------------------------------------------------------------------------------------------------------- */

/* Copies all tables in one transaction. */
ww_status follow_copy(follower *f);

/* ---- stream.c ------------------------------------------------------------------------------------------------------------ */

/* Follows until the connection fails or the follower is stopped. */
ww_status follow_stream(follower *f);

#endif
