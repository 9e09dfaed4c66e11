/* What the files of scatter.h share. A part of a request is what one shard has to answer; an attempt is one replica that is
 * asked for it. */
#ifndef WW_SERVER_NODES_SCATTER_STATE_H
#define WW_SERVER_NODES_SCATTER_STATE_H

#include <curl/curl.h>
#include <pthread.h>

#include "server/nodes/peers.h"
#include "server/nodes/rounds.h"
#include "server/nodes/scatter.h"
#include "server/state.h"

enum { ATTEMPTS = 2, PART_WHY_BYTES = 300, KEY_HEADER_BYTES = 300, ROWS_BYTES = 20 };

typedef struct gather gather;

typedef struct attempt {
    gather *owner;
    int32_t part, peer; /* peer -1: not running */
    CURL *easy;
    struct curl_slist *headers;
    out body;
    char lsn[24], rows[ROWS_BYTES];
    double begun_seconds;
} attempt;

typedef struct part {
    attempt attempts[ATTEMPTS];
    unsigned char tried[NODES_MAX];
    bool done, missing;
    bool again;    /* the replica computes it from its file */
    bool outvoted; /* the replica is only told that its file is wrong */
    int32_t only;  /* the replica that is asked, and no other; -1: any */
    int32_t from;  /* the replica that answered; -1: none yet */
    char name[NODE_NAME_BYTES];
    int status;
    out body;
    char lsn[24], why[PART_WHY_BYTES];
    char rows[ROWS_BYTES]; /* the digest of the rows that the answer was made of; empty: they changed meanwhile */
} part;

/* A request that is verified has these parts for each shard, `count` apart: the answer; that of a second replica; those that
 * the two compute from their files if they differ; and what a third computes if these differ, too. */
typedef enum part_kind { PART_ANSWER, PART_WITNESS, PART_ANSWER_AGAIN, PART_WITNESS_AGAIN, PART_THIRD, PART_KINDS } part_kind;
typedef enum verify_state { VERIFY_NOT, VERIFY_COMPARES, VERIFY_DECIDES, VERIFY_VOTES, VERIFY_TELLS, VERIFY_OVER } verify_state;

struct gather {
    request *request;
    gather *next;
    char *path; /* of the parts' URLs */
    part *parts;
    int32_t count;      /* shards */
    int32_t part_count; /* `count`, or PART_KINDS times as many */
    verify_state verify;
    ww_metric metric;
    bool partial;    /* shards may be missing */
    uint64_t lowest; /* of the places in the log that the answers say */
    rounds *rounds;  /* NULL: the request is asked once */
    out asked;       /* the body of the round; empty: the request's own */
    out *kept;       /* the answers of the rounds before */
    int64_t kept_count, kept_room;
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
    atomic_llong waiting, requests, attempts, retries, late, failures, verified, unverified, differences;
};

/* ---- attempts.c: the thread's ----------------------------------------------------------------------------------------------
 */

/* Asks another replica if there is one; otherwise, and if none is running, part number `index` is missing. */
void part_continue(scatter *sc, gather *g, int32_t index);

/* Begins a part that has not begun: nothing was tried. */
void part_begin(part *p);

/* Takes the answer of an attempt that has ended. */
void part_take(scatter *sc, attempt *a, CURLcode code);

/* Asks other replicas beside those that are late. */
void parts_hurry(scatter *sc, gather *g, double now);

/* Ends the attempts of a part, and those of all parts, which are freed. */
void part_end(scatter *sc, part *p);
void parts_end(scatter *sc, gather *g);

/* ---- verify.c: the thread's ------------------------------------------------------------------------------------------------
 */

/* Asks the second replicas. */
void verify_begin(scatter *sc, gather *g);

/* Called when all answers are there: compares, and lets differing replicas decide. False: it waits for them. */
bool verify_done(scatter *sc, gather *g);

#endif
