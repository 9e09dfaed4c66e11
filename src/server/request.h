/* A request: what came, where it waits, and what is answered.
 *
 * A thread of the HTTP library reads the request and has its route check it (route.prepare). Then the connection is suspended
 * and the request waits in a queue. A worker computes and calls request_done(), which is the last that it does with the
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
#include "server/out.h"

typedef struct server server;
typedef struct queue queue;
typedef struct route route;
typedef struct request request;
typedef struct stream stream;
typedef struct entry entry;
typedef struct client client;
typedef struct documents documents;

enum { PATH_NAMES_MAX = 2 };

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
    const route *route; /* NULL: none fits */
    char *url;          /* without what stands behind the question mark */
    char method[8];
    char *names[PATH_NAMES_MAX]; /* what stands in the place of {name} and {id} in the route's path */
    char *body;                  /* with a NUL behind it */
    size_t body_length, body_capacity;
    uint64_t number;      /* never used again */
    double begun_seconds; /* on a clock that only goes forward */
    double deadline_seconds;

    /* Guarded by the server's lock. */
    request_state state;
    queue *queue;
    request *previous, *next;               /* in the queue */
    request *previous_active, *next_active; /* of all that wait or run */
    atomic_bool gone;                       /* the client has left, or the deadline is over */

    entry *entry; /* the collection, retained */
    void *plan;   /* what prepare() read from the body */
    void (*plan_free)(void *plan);
    documents *documents; /* texts in place of vectors; NULL: none */

    int status; /* of HTTP */
    out answer;
    const char *content_type;        /* NULL: JSON */
    const char *const (*headers)[2]; /* further ones, names and values, up to a name that is NULL; NULL: none */
    stream *stream;                  /* in place of `answer` */
};

/* Answers with a failure. The message is put into the form that the route's API has. Return false, for `return
 * request_fail(...)` in functions that say whether to go on. */
__attribute__((format(printf, 3, 4))) bool request_fail(request *r, int status, const char *format, ...);

/* The same with the calling thread's message and the HTTP status that fits. */
bool request_fail_status(request *r, ww_status status);

/* The static analyzer cannot see that they return false. */
#ifdef __clang_analyzer__
#define request_fail(...)        ((void)(request_fail)(__VA_ARGS__), false)
#define request_fail_status(...) ((void)(request_fail_status)(__VA_ARGS__), false)
#endif

/* Gives the request a plan: `bytes` of zeros, which plan_free() frees with the request. NULL: the request failed. */
void *request_plan_create(request *r, size_t bytes, void (*plan_free)(void *plan));

/* The end of a worker's part: the answer goes out. */
void request_done(request *r);

/* A value behind the question mark, with its escapes (route.h: url_decode()), or NULL. */
const char *request_argument(const request *r, const char *name);

/* Begins and ends the answer in the form of Qdrant's API, {"result": ..., "status": "ok", "time": ...}. */
void request_result_begin(request *r);
void request_result_end(request *r);

/* {"result": true, ...} */
void request_result_true(request *r);

/* ---- reading the body ---------------------------------------------------------------------------------------------------- */

/* Checks that the body is a JSON object, and gives it; NULL after an answer that says why not. */
const char *request_body(request *r);

/* A value of an object, NULL if it is missing or null. */
const char *json_given(const char *object, const char *key);

/* Reads a value of an object, if it is given. Where it has another type the request fails, with `where` before the key in the
 * message. */
bool request_read_integer(request *r, const char *object, const char *key, int64_t minimum, int64_t *value);
bool request_read_number(request *r, const char *object, const char *key, double *value);
bool request_read_bool(request *r, const char *object, const char *key, bool *value);

/* A copy of a text without its escapes; the caller frees it. NULL, and the request failed, if it is no text or has a NUL in it.
 */
char *request_copy_text(request *r, const char *value, const char *what);

#endif
