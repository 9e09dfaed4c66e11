/* The table of routes, which maps requests to handlers and describes them in /openapi.json. */
#ifndef WW_SERVER_ROUTE_H
#define WW_SERVER_ROUTE_H

#include "server/request.h"

/* What a request needs, if the server has keys. A route without a collection in its path needs a key for the whole server,
 * except where any key will do. */
typedef enum right {
    RIGHT_NONE,   /* anybody, even without a key */
    RIGHT_MODEL,  /* any key: it reads nothing of the store */
    RIGHT_LIST,   /* any key: it leaves out what the key may not see */
    RIGHT_POINTS, /* a key for the collection, even one that sees only some points: the route obeys point_filter.always */
    RIGHT_READ,   /* a key that reads the collection */
    RIGHT_COPY,   /* a key that may write everything, because everything is copied; nothing changes */
    RIGHT_CHANGE_POINTS, /* a key that writes points of the collection, even only some */
    RIGHT_CHANGE,        /* a key that writes the collection */
    RIGHT_WRITE          /* a key that may write everything: collections are made, replaced and dropped */
} right;

typedef enum work {
    WORK_HERE,       /* prepare() answers: nothing is computed */
    WORK_STORE,      /* in the queue of the store itself */
    WORK_STORE_READ, /* the same, beside others */
    WORK_COLLECTION, /* in the queue of the collection that the path names: one after the other */
    WORK_READ,       /* of that collection, beside others */
    WORK_MODEL       /* in the queue of the model that the body names; prepare() finds it */
} work;

struct route {
    const char *method;
    const char *path; /* "/collections/{name}/points/{id}" */
    right right;
    work work;
    /* Reads and checks the request, on a thread of the HTTP library. False: the request is answered. May be NULL. */
    bool (*prepare)(request *r);
    /* Computes the answer, on a worker's thread. */
    void (*run)(request *r);
    const char *summary;
    const char *body;   /* the properties of the body in OpenAPI, as JSON; NULL: there is no body */
    const char *answer; /* what the answer is, in words */
    bool batched;       /* run() gets all requests that can be computed together, as a list linked by `next` */
};

static inline bool route_writes(const route *at)
{
    return at->right >= RIGHT_COPY;
}

/* Does it change data? */
static inline bool route_changes(const route *at)
{
    return at->right >= RIGHT_CHANGE_POINTS;
}

/* The routes of a family of endpoints. */
typedef struct route_table {
    const route *routes;
    size_t count;
} route_table;

extern const route_table routes_service, routes_collections, routes_points, routes_search, routes_openai, routes_page,
    routes_snapshots, routes_following, routes_cluster;

/* Copies (memory_free()) a part of a URL and decodes %20 and the like. Returns NULL with status 400 if that makes a NUL, with
 * 507 if out of memory. */
char *url_decode(const char *text, size_t length, int *status);

/* Finds the route for a request and sets r->route and r->names. Returns 200, or 400, 404, 405 or 507. */
int route_find(request *r);

/* What a path asks for that Qdrant has and this server has not, "shards"; NULL if it is no such path. */
const char *route_unsupported(const char *path);

/* /openapi.json */
void route_describe(out *o);

/* The number of a route in all tables, and their number; for metrics. */
size_t route_number(const route *wanted);
size_t route_count(void);
const route *route_at(size_t number);

#endif
