/* Access control: keys, the Host header, and the origins of web pages. */
#ifndef WW_SERVER_ACCESS_H
#define WW_SERVER_ACCESS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"
#include "server/keys/keys.h"
#include "server/server.h"

struct request;

enum { KEYS_MAX = 64 };

/* Keys of one kind. Each takes KEY_BYTES_MAX bytes, padded with zeros, so that comparing takes the same time for all. */
typedef struct key_list {
    char (*keys)[KEY_BYTES_MAX];
    char (*names)[KEY_NAME_BYTES]; /* what the access log calls them: the word after the key, or the number of its line */
    size_t count;
} key_list;

/* By which a changed file is noticed. */
typedef struct file_stamp {
    uint64_t inode;
    int64_t bytes, seconds, nanoseconds;
} file_stamp;

typedef struct access_rules {
    const server_config *config;
    pthread_rwlock_t lock; /* protects the keys, which SIGHUP replaces */
    key_table limited;
    file_stamp stamp;    /* of the file of limited keys */
    double look_seconds; /* when to look at it again */
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

/* After the answer: takes its rows and bytes from the quotas of the request's key. */
void access_charge(struct request *r);

/* The alias in the path may lead elsewhere than it did when the key was checked: may the key use the request's entry? False:
 * the request failed. */
bool access_entry(struct request *r);

/* May a list have this collection? */
bool access_sees(const struct request *r, const char *collection, bool all_points);

/* May the request read points of this other collection, or alias? False: the request failed. */
bool access_lookup(struct request *r, const char *name);

/* The origin that the answer permits, or NULL. */
const char *access_origin(const access_rules *rules, struct request *r);

#endif
