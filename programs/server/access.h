/* Access control: keys, the Host header, and the origins of web pages. */
#ifndef WW_SERVER_ACCESS_H
#define WW_SERVER_ACCESS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"
#include "server/server.h"

struct request;

enum { KEY_BYTES_MAX = 256, KEY_NAME_BYTES = 32, KEYS_MAX = 64 };

/* Keys of one kind. Each takes KEY_BYTES_MAX bytes, padded with zeros, so that comparing takes the same time for all. */
typedef struct key_list {
    char (*keys)[KEY_BYTES_MAX];
    char (*names)[KEY_NAME_BYTES]; /* what the access log calls them: the word after the key, or the number of its line */
    size_t count;
} key_list;

typedef struct access_rules {
    const server_config *config;
    pthread_rwlock_t lock; /* protects the keys, which SIGHUP replaces */
    key_list keys, read_only;
    key_list nodes; /* by which nodes of a cluster know each other: they may read */
} access_rules;

/* Reads the key files; refuses a public address without one. */
ww_status access_open(access_rules *rules, const server_config *config);
ww_status access_reload(access_rules *rules);
void access_close(access_rules *rules);

/* Checks that no page of another site sent the request, Host, the key and the right that the route needs. Returns false after
 * an answer that says what is wrong. */
bool access_check(access_rules *rules, struct request *r);

/* The origin that the answer permits, or NULL. */
const char *access_origin(const access_rules *rules, struct request *r);

#endif
