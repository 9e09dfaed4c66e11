/* A request: what it contains, where it waits, and its answer.
 *
 * A thread of the HTTP library reads the request and has its route check it (route.prepare). Then the connection is suspended
 * and the request waits in a queue. A worker computes the answer and calls request_done(), after which it must not touch the
 * request: the connection is resumed, and the HTTP library sends the answer and frees the request.
 */
#ifndef WW_SERVER_REQUEST_H
#define WW_SERVER_REQUEST_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "server/access.h"
#include "server/out.h"

typedef struct server server;
typedef struct queue queue;
typedef struct route route;
typedef struct request request;
typedef struct stream stream;
typedef struct entry entry;
typedef struct client client;
typedef struct documents documents;
struct upload;

enum { PATH_NAMES_MAX = 2, REQUEST_ID_BYTES = 64 };

/* What strict_mode_config may limit. */
typedef enum strict_limit {
    STRICT_QUERY_LIMIT,
    STRICT_SEARCHES,
    STRICT_POINTS,
    STRICT_TIMEOUT,      /* seconds */
    STRICT_CONDITIONS,   /* of a filter */
    STRICT_CONDITION,    /* values of one of them */
    STRICT_HNSW_EF,      /* has no other meaning here */
    STRICT_OVERSAMPLING, /* in millionths; the same */
    STRICT_EXACT,        /* 1: asked for */
    STRICT_READS,        /* a minute */
    STRICT_WRITES,
    STRICT_SIZE, /* of the collection */
    STRICT_BYTES,
    STRICT_INDEXES,
    STRICT_LIMITS
} strict_limit;

typedef enum request_state {
    REQUEST_READING, /* the HTTP library has it */
    REQUEST_WAITING, /* in a queue */
    REQUEST_RUNNING, /* a worker has it */
    REQUEST_DONE     /* there is an answer */
} request_state;

struct request {
    server *server;
    struct MHD_Connection *connection;
    client *client;
    const route *route; /* NULL: none matches */
    char *url;          /* without the query string */
    char method[8];
    char *names[PATH_NAMES_MAX]; /* the parts of the path that match {name} and {id} of the route */
    char *body;                  /* NUL-terminated */
    struct upload *upload;       /* takes the body instead; NULL: none */
    size_t body_length, body_capacity;
    int dropped;                   /* the status of a request whose body is not kept; 0: it is */
    uint64_t number;               /* never reused */
    char key_name[KEY_NAME_BYTES]; /* of the key that it came with; "": none */
    access_key *key;               /* if it is limited, retained */
    const key_grant *grant;        /* what it may do with the path's collection; NULL: there is no limit, or no collection */
    int retry_seconds;             /* for 429; 0: one */
    int64_t answer_points;         /* in the answer */
    char id[REQUEST_ID_BYTES];     /* as in x-request-id, or its number; the answer has it, too */
    size_t sent_bytes;             /* of the answer's body */
    double begun_seconds;          /* on a monotonic clock */
    double deadline_seconds;
    double seconds; /* from the beginning to the deadline */

    /* Guarded by the server's lock. */
    request_state state;
    queue *queue;
    request *previous, *next;               /* in the queue */
    request *previous_active, *next_active; /* in the list of all that wait or run */
    atomic_bool gone;                       /* the client has left, or the deadline has passed */
    bool late;                              /* the deadline has passed */
    struct running_job *job;                /* that computes it; NULL: none does now */
    int64_t asked[STRICT_LIMITS];           /* what the request asks for of what the collection may limit */
    bool counted;                           /* by the limits of a minute */
    uint64_t batch;                         /* requests with the same number, that is not 0, are computed together */

    entry *entry; /* the collection, retained */
    void *plan;   /* what prepare() read from the body */
    void (*plan_free)(void *plan);
    documents *documents; /* texts instead of vectors; NULL: none */

    bool from_node;   /* it came with the key of the nodes */
    bool part;        /* another node asks for what this node's shard contributes */
    bool outvoted;    /* it says that a third replica contradicts this node's file */
    bool again;       /* it asks because replicas differ: the answer is computed from the file, and this node checks itself */
    const char *step; /* in the body of a part: what to do of a search (nodes/step.h); NULL: all */
    uint64_t version; /* of the followed rows when the request was dispatched */
    uint64_t lsn_min; /* the place in the followed database's log that the answer needs; 0: none */
    char lsn[24];     /* up to which place it has everything; empty if nothing is followed */

    int status; /* of HTTP */
    out answer;
    const char *content_type;        /* NULL: JSON */
    const char *const (*headers)[2]; /* additional headers, names and values, ended by a NULL name; NULL: none */
    stream *stream;                  /* instead of `answer` */
    const char *accepted;            /* the encoding that the client wants; NULL: none */
    const char *encoding;            /* of `answer`; NULL: it is not compressed */
    int file;                        /* the descriptor of a file to send instead of `answer`; -1: none */
};

/* Answers with a failure, in the form of the route's API. Returns false, for `return request_fail(...)` in functions that say
 * whether to continue. */
__attribute__((format(printf, 3, 4))) bool request_fail(request *r, int status, const char *format, ...);

/* The same with the calling thread's message and the matching HTTP status. */
bool request_fail_status(request *r, ww_status status);

/* The static analyzer cannot see that they return false. */
#ifdef __clang_analyzer__
#define request_fail(...)        ((void)(request_fail)(__VA_ARGS__), false)
#define request_fail_status(...) ((void)(request_fail_status)(__VA_ARGS__), false)
#endif

/* Allocates the request's plan: `bytes` zero bytes, which plan_free() frees with the request. NULL: the request failed. */
void *request_plan_create(request *r, size_t bytes, void (*plan_free)(void *plan));

/* Ends the worker's part: the answer is sent. */
void request_done(request *r);

/* A value of the query string, with its escapes (route.h: url_decode()), or NULL. */
const char *request_argument(const request *r, const char *name);

/* Begins and ends the answer in the form of Qdrant's API, {"result": ..., "status": "ok", "time": ...}. */
void request_result_begin(request *r);
void request_result_end(request *r);

/* {"result": true, ...} */
void request_result_true(request *r);

/* ---- reading the body ---------------------------------------------------------------------------------------------------- */

/* Checks that the body is a JSON object and returns it; NULL after an answer that says why it is not. */
const char *request_body(request *r);

/* Checks that an object has no "shard_key": a search or a change of one shard only would be another than was asked for. The
 * request fails if it has. */
bool request_without_shard(request *r, const char *object);

/* A value of an object, NULL if it is missing or null. */
const char *json_given(const char *object, const char *key);

/* Each reads a value of an object, if it is given. The request fails if the value has another type. */
bool request_read_integer(request *r, const char *object, const char *key, int64_t minimum, int64_t *value);
bool request_read_number(request *r, const char *object, const char *key, double *value);
bool request_read_bool(request *r, const char *object, const char *key, bool *value);

/* Copies a text without its escapes; the caller frees it. NULL, and the request failed, if the value is not a text or contains
 * a NUL. */
char *request_copy_text(request *r, const char *value, const char *what);

#endif
