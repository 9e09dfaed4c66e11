/* What a server holds. One lock guards queues, requests' states, the list of collections and aliases; nothing is computed and
 * no file is touched while it is held. */
#ifndef WW_SERVER_STATE_H
#define WW_SERVER_STATE_H

#include <limits.h>
#include <pthread.h>

#include <warpwave/model.h>
#include <warpwave/store.h>

#include "base/pool.h"
#include "server/access.h"
#include "server/cluster/follow.h"
#include "server/health.h"
#include "server/metrics.h"
#include "server/request.h"
#include "server/server.h"
#include "server/work/job.h"

enum { PREFIX_BYTES = 256 }; /* as in ww_store_model */

/* Requests that wait for the same thing. A worker takes the first one and those that can be computed together with it, or
 * everything that waits (`all`). One worker at a time has a queue; but while a job of a `parallel` one runs for more than some
 * milliseconds, other workers take more from it. */
struct queue {
    server *server;
    const char *name; /* for metrics */
    /* Computes the taken requests, a list linked by `next`, in the order of arrival. Calls request_done() for each sooner or
     * later. Returns true if it has more to do without new requests. */
    bool (*run)(queue *q, request *taken);
    void *owner;
    entry *held; /* the queue's collection, retained while the queue is scheduled; NULL: not a collection's queue */
    request *first, *last;
    int64_t waiting;
    bool all, parallel;
    bool scheduled;       /* in the list of scheduled queues */
    int32_t runners;      /* workers that have it */
    double begun_seconds; /* when the last of them began */
    bool sleeps, woken;   /* what waits in it is not run before queue_wake() */
    queue *next_scheduled;
};

/* How many points have the payload keys of a collection's indexes (qdrant/collections/indexes.h). */
typedef struct index_counts {
    char *indexes, *text; /* the indexes, and the same with the numbers; NULL: not counted yet */
    uint64_t digest;      /* of the points that were counted */
} index_counts;

/* What is left of the requests that a minute permits. */
typedef struct rate {
    double per_minute, rest, seconds; /* seconds: when that was so */
} rate;

/* A served collection. It lives as long as there are references to it. */
struct entry {
    char *name;
    char *stored; /* its name in the store */
    ww_collection *collection;
    int32_t dim;
    ww_metric metric;
    ww_vector_type type;
    bool manhattan; /* the distance is not that of `metric`, Euclid, but Manhattan (qdrant/manhattan.h) */
    bool multi;     /* its vectors are multivectors (qdrant/vectors/multi.h) */
    bool sparse;    /* its vectors are sparse (qdrant/vectors/sparse.h) */
    bool idf;       /* and a query's values are multiplied by the inverse document frequency */
    bool split;     /* the collection has the ids and payloads, and the parts have the vectors (layout.h) */
    bool by_id;     /* rows of equal score come in the order of their ids: it is followed by several servers */
    queue queue;    /* changes, one after the other, and what must not run beside them */
    queue reads;    /* run beside each other and beside changes: each sees one snapshot */
    int64_t references;
    entry *next;
    atomic_bool replaced;               /* it is no longer in the list: requests that wait look for theirs again */
    atomic_llong strict[STRICT_LIMITS]; /* -1: no limit */
    rate rates[2];                      /* of reads and writes, guarded by the server's lock */
    atomic_llong rows, bytes;           /* for the figures, at most some seconds old */
    entry *parts;                       /* of a split collection; their `name` is the vector's */
    size_t part_count;
    struct map_job *map;  /* NULL until requested */
    index_counts counted; /* guarded by the server's lock */
    pthread_rwlock_t
        swap; /* requests that run hold it for reading, and what replaces the collection by a snapshot for writing */
    /* The prefixes that the collection's model needs; guarded by the server's lock. */
    char query_prefix[PREFIX_BYTES], document_prefix[PREFIX_BYTES];
};

/* A connection. */
struct client {
    server *server;
    int socket;
    uint64_t number;
    request *request;     /* begun but not answered; NULL: none */
    double since_seconds; /* when the connection was opened or the last request answered */
    client *previous, *next;
};

typedef struct alias {
    char *name, *collection;
    struct alias *next;
} alias;

typedef struct served_model {
    char *name;
    ww_model *model;
    ww_model_info info;
    int64_t created; /* seconds since 1970 */
    queue queue;
    struct generation *generations; /* running ones, of a decoder */
} served_model;

struct server {
    server_config config;
    ww_store *store;
    pthread_mutex_t notes_lock; /* held while they are opened */
    ww_collection *notes;       /* aliases and indexes of Qdrant's API (notes.h). NULL until there is one */
    access_rules access;
    metrics metrics;
    struct MHD_Daemon *daemon;
    pool *samplers;                  /* threads that choose tokens; NULL: there are no models */
    char *certificate, *private_key; /* PEM texts, guarded by the lock; NULL: no TLS */
    int32_t port;
    int log, audit;          /* file descriptors, -1: none */
    atomic_llong audit_lost; /* lines that could not be written */
    double started_seconds;
    out description; /* /openapi.json, which never changes */

    pthread_mutex_t lock;
    pthread_cond_t work; /* a queue was scheduled, or it is time to stop */
    queue *first_scheduled, *last_scheduled;
    client *clients;
    client **clients_by_socket; /* NULL entries: no client */
    size_t socket_capacity;
    uint64_t connections;
    request *active;
    int64_t active_count;
    uint64_t requests;
    entry *entries;
    alias *aliases;
    served_model *models;
    size_t model_count;
    queue store_queue, store_reads;
    queue reading; /* requests whose bodies take long to read or to check */
    atomic_bool ready, draining;
    follower *follower;  /* NULL: nothing is followed */
    struct nodes *nodes; /* with `scatter`: the others that follow the same tables; NULL: this server answers by itself */
    struct scatter *scatter;
    struct sql_writer *writer; /* with --cluster; NULL: changes are made in the store */
    bool shared_route;         /* the route that runs in `writes` is one transaction of the cluster */
    queue writes;              /* with --cluster: all requests that change something, one after the other */
    queue behind;              /* requests that wait for a place in the followed database's log */
    queue again;               /* parts of requests by which this node checks itself */
    atomic_llong verify_turns;
    bool stopping;
    pthread_t *workers;
    int32_t worker_count;
    pthread_t watcher;
    bool watching;
    int watch; /* epoll: clients that leave */
    health health;
    atomic_llong operations;
    atomic_llong body_bytes;      /* memory of the bodies of all requests */
    int64_t maps_running;         /* threads that make maps */
    atomic_bool copying;          /* a backup is being made */
    char snapshot_work[PATH_MAX]; /* this server's unfinished snapshots; "": there is no such folder yet (snapshots/folder.h) */
    int snapshot_lock;            /* by which other servers know that it is in use */
};

/* ---- queues (work/queue.c) ----------------------------------------------------------------------------------------------- */

void queue_init(queue *q, server *s, const char *name, bool (*run)(queue *q, request *taken));

/* Takes a waiting request out of its queue; then it is the caller's. Called with the lock. */
void queue_remove(request *r);

/* Lets another worker run a queue in which a request waits behind a long job. Called with the lock. */
void queue_relieve(queue *q, double now);

/* Puts a request whose connection is suspended into a queue. If the queue is full or the server is stopping, the request
 * fails. */
void queue_submit(queue *q, request *r);

/* Puts a request into a queue that sleeps, and makes a worker look at all that waits in it. The caller of the first holds the
 * server's lock. */
void queue_park(queue *q, request *r);
void queue_wake(queue *q);

/* Runs what waits in the first scheduled queue. Called with the lock, which it releases meanwhile. */
void queue_run_first(server *s);

/* ---- workers (work/worker.c) --------------------------------------------------------------------------------------------- */

ww_status workers_start(server *s);
void workers_stop(server *s);

/* Checks a request with the prepare() of its route. False: it is answered. */
bool request_prepare(request *r);

/* Must a worker prepare it, because that can take longer than the other connections of the thread should wait? */
bool request_prepares_long(const request *r);

/* Puts a prepared request, whose connection is suspended, into its queue. */
void request_dispatch(request *r);

/* The queue of a collection, or of the store while the collection is not known, for a request. */
queue *collection_queue(request *r);

typedef enum readiness {
    REQUEST_READY,
    REQUEST_REFUSED, /* it is answered */
    REQUEST_SENT_ON  /* it waits in another queue */
} readiness;

/* Run what was taken out of a queue: requests that are prepared, of the store and of collections; and those that must be
 * prepared, which go on to their queues. */
bool requests_run(queue *q, request *taken);
bool reading_run(queue *q, request *taken);

/* ---- clients that leave, and deadlines (watch.c) ------------------------------------------------------------------------- */

ww_status watch_start(server *s);
void watch_stop(server *s);
void watch_add(request *r);    /* the request waits: starts to watch its deadline */
void watch_remove(request *r); /* before it is freed */

/* Called for a new connection, and at its end. NULL if out of memory: then nobody notices if that client leaves. */
client *watch_client(server *s, int socket);
void watch_client_end(client *c);
void watch_client_request(client *c, request *r); /* NULL: it was answered */

/* ---- collections (entries.c) --------------------------------------------------------------------------------------------- */

/* Finds a collection by name or alias and retains it; NULL if it is not known. */
entry *entry_find(server *s, const char *name);

/* The same, but looks into the store if it is not known: another process may have created it. NULL after a failure. */
entry *entry_open(server *s, const char *name);
/* The same for the collection that the path names. False: the request failed. */
bool request_open_collection(request *r);
/* The part with a vector's name; the entry itself if vectors have no names and none is given. NULL: there is none. */
const entry *entry_part(const entry *e, const char *name);
void entry_release(server *s, entry *e);
void entry_set_prefixes(server *s, entry *e, const ww_store_model *model);
void entry_forget(server *s, const char *name); /* it was dropped */
/* The entry after another one, which is released, or the first, retained. NULL: there is none, or the other is no longer in the
 * list. */
entry *entry_next(server *s, entry *e);
ww_status alias_set(server *s, const char *name, const char *collection);
bool alias_forget(server *s, const char *name); /* false: there is none */
ww_status aliases_load(server *s);              /* from the notes, in place of those that are known */
ww_status entries_load(server *s);
void entries_free(server *s);

/* ---- following PostgreSQL (cluster/following.c)
 * ---------------------------------------------------------------------------------- */

ww_status following_start(server *s);
void following_stop(server *s);

/* Reads the header x-warpwave-min-lsn, and refuses changes of a followed collection. False: the request has been answered. */
bool following_begin(request *r);

/* Adds the headers that say which rows the answer was made of. */
void following_tell(const request *r, struct MHD_Response *response);

/* Computes parts from the file on the CPU, and as usual; a node that does not get the same leaves service (nodes/again.c). */
bool again_run(queue *q, request *taken);

/* A node among others (nodes/cluster.c): starts and stops what asks them. */
ww_status cluster_start(server *s);
void cluster_stop(server *s);

/* Reads the header x-warpwave-part, with which another node asks for this node's part. False: the request has been answered. */
bool cluster_begin(request *r);

/* Sends a prepared request, whose connection is suspended, to the shards if it needs them. */
bool cluster_takes(request *r);

/* Is this the name of a collection that follows a table? */
bool following_has(const server *s, const char *collection);

/* If the request asks for a place in the log that is not applied yet, makes it wait for it and returns true. */
bool following_waits(request *r);

/* ---- models (openai/) ---------------------------------------------------------------------------------------------------- */

ww_status models_load(server *s);
void models_free(server *s);

/* ---- HTTP (http.c) ------------------------------------------------------------------------------------------------------- */

ww_status http_start(server *s);

double server_seconds(void);

#endif
