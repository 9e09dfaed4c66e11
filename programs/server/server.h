/* `warpwave serve`: one process that owns a store, a device and models, over HTTP.
 *
 * Threads of the HTTP library read requests and send answers; they never compute and never wait for a disk. Each collection and
 * each model has a queue; a worker takes everything that waits in one and computes it together. That changes no bit of any
 * answer.
 */
#ifndef WW_SERVER_SERVER_H
#define WW_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>

#include "base/status.h"
#include "server/follow_config.h"

typedef struct server server;

enum { SERVER_LIST_MAX = 32 };

typedef struct server_config {
    const char *store;   /* the file */
    ww_device *device;   /* retained by the store and the models */
    const char *address; /* "127.0.0.1", "::1", "0.0.0.0" */
    int32_t port;        /* 0: any free port; server_port() returns it */
    const char *model_names[SERVER_LIST_MAX];
    const char *model_paths[SERVER_LIST_MAX];
    const char *chat_template; /* Jinja, in place of the models' own; NULL: theirs */
    size_t model_count;
    const char *key_file, *read_only_key_file; /* one key per line; NULL: none */
    const char *limited_key_file;              /* made by `warpwave key`; NULL: none */
    bool no_auth;                              /* allow a public address without keys */
    const char *certificate, *private_key;     /* PEM files; NULL: no TLS */
    const char *hosts[SERVER_LIST_MAX];        /* names allowed in Host, besides addresses and localhost */
    size_t host_count;
    const char *origins[SERVER_LIST_MAX]; /* CORS: whose pages may call */
    size_t origin_count;
    const char *snapshots;      /* the folder of snapshots; NULL: STORE.snapshots */
    const char *access_log;     /* a file; "-" is stdout; NULL: none */
    const char *audit_log;      /* the same, of requests that change or copy data */
    follow_config follow;       /* tables of PostgreSQL that collections are copies of; none by default */
    int64_t queue_limit;        /* requests that may wait in one queue */
    int64_t body_bytes;         /* of a request, at most */
    int64_t upload_bytes;       /* of a snapshot that a client sends, at most */
    int64_t all_bodies_bytes;   /* of all requests together, until they are answered; at least body_bytes is allowed */
    int64_t connections;        /* at most */
    int64_t memory_bytes;       /* for the vectors of all collections; 0: no limit */
    int64_t disk_reserve_bytes; /* with less free on the disk /readyz says no */
    double request_seconds;     /* how long a request may wait and run */
    double drain_seconds;       /* how long server_stop() lets requests finish */
    int32_t http_threads;
    int32_t workers; /* jobs that compute at the same time; the reads of one collection have half of them at most */
} server_config;

server_config server_config_default(void);

/* Opens the store and the models, binds the address and starts to answer requests. Refuses a public address without a key.
 * Blocks until the models are loaded; /readyz answers 503 meanwhile. */
ww_status server_start(const server_config *config, server **started);

int32_t server_port(const server *s);

/* Opens the logs again, and reads the key and certificate files again. If that fails, the old ones stay in use. */
ww_status server_reload(server *s);

/* Stops the server: no new connections; current requests finish or, after drain_seconds, are answered with 503. Then closes the
 * store and frees everything. Accepts NULL. */
void server_stop(server *s);

#endif
