/* Whether the server can answer: its file is there, whole and readable, and its disk has room. A thread looks once a second, so
 * that /readyz and /metrics never wait for a disk. */
#ifndef WW_SERVER_HEALTH_H
#define WW_SERVER_HEALTH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

struct server;

enum { HEALTH_BYTES = 512 };

typedef struct health {
    pthread_t thread;
    pthread_cond_t stop;
    bool running, stopping;     /* guarded by the server's lock, like the next */
    char failure[HEALTH_BYTES]; /* why requests may fail; "": they are answered */
    dev_t device;               /* of the file as it was opened */
    ino_t file;
    bool seen; /* the file was longer than nothing: a new one is empty until the first checkpoint */
    atomic_llong disk_free_bytes, file_bytes, memory_bytes;
} health;

/* Notes the file that was opened, looks for the first time, and starts the thread; ends it. */
ww_status health_start(struct server *s);
void health_stop(struct server *s);

/* Copies why requests may fail, "" if they are answered. Does not block. */
void health_failure(struct server *s, char failure[HEALTH_BYTES]);

#endif
