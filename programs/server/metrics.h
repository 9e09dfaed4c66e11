/* Figures of a server, in the format that Prometheus reads. */
#ifndef WW_SERVER_METRICS_H
#define WW_SERVER_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "server/out.h"

struct request;
struct server;

enum { METRIC_ROUTES_MAX = 160, METRIC_CLASSES = 6, METRIC_BUCKETS = 12 };

typedef struct metrics {
    atomic_llong answered[METRIC_ROUTES_MAX][METRIC_CLASSES]; /* by route and the first digit of the status */
    atomic_llong durations[METRIC_ROUTES_MAX]
                          [METRIC_BUCKETS];       /* answers within the bucket's bound but not within a smaller one */
    atomic_llong microseconds[METRIC_ROUTES_MAX]; /* sum over all answers */
    atomic_llong batches, batched;                /* batches taken from queues, and requests in them */
    atomic_llong rows_read, searches;
    atomic_llong tokens_read, tokens_written;
} metrics;

void metrics_answered(metrics *m, const struct request *r, double seconds);
void metrics_batch(metrics *m, int64_t requests);
void metrics_write(struct server *s, out *o);

#endif
