/* What the files of scatter.h share. A part of a request is what one shard has to answer; an attempt is one replica that is
 * asked for it. */
#ifndef WW_SERVER_NODES_SCATTER_STATE_H
#define WW_SERVER_NODES_SCATTER_STATE_H

#include <curl/curl.h>
#include <pthread.h>

#include "server/nodes/peers.h"
#include "server/nodes/scatter.h"
#include "server/state.h"

enum { ATTEMPTS = 2, PART_WHY_BYTES = 300, KEY_HEADER_BYTES = 300 };

typedef struct gather gather;

typedef struct attempt {
    gather *owner;
    int32_t part, peer; /* peer -1: not running */
    CURL *easy;
    struct curl_slist *headers;
    out body;
    char lsn[24];
    double begun_seconds;
} attempt;

typedef struct part {
    attempt attempts[ATTEMPTS];
    unsigned char tried[NODES_MAX];
    bool done, missing;
    int status;
    out body;
    char lsn[24], why[PART_WHY_BYTES];
} part;

struct gather {
    request *request;
    gather *next;
    char *path; /* of the parts' URLs */
    part *parts;
    int32_t count;
    ww_metric metric;
    bool partial; /* shards may be missing */
};

struct scatter {
    server *server;
    nodes *nodes;
    CURLM *multi;
    pthread_t thread;
    bool running;
    char key_header[KEY_HEADER_BYTES]; /* "api-key: ..." of the nodes; empty: the client's own is sent on */
    peers peers;
    gather *first; /* the thread's own */

    pthread_mutex_t lock;
    gather *submitted;
    bool stopping;
    atomic_llong waiting, requests, attempts, retries, late, failures;
};

/* ---- attempts.c: the thread's ----------------------------------------------------------------------------------------------
 */

/* Asks another replica if there is one; otherwise, and if none is running, the part is missing. */
void part_continue(scatter *sc, gather *g, int32_t shard);

/* Takes the answer of an attempt that has ended. */
void part_take(scatter *sc, attempt *a, CURLcode code);

/* Asks other replicas beside those that are late. */
void parts_hurry(scatter *sc, gather *g, double now);

/* Ends what still runs. */
void parts_end(scatter *sc, gather *g);

#endif
