/* Digests of a node's rows at places in the log, by which replicas are compared: at the same place equal rows have equal
 * digests (ww_collection_digest()). */
#ifndef WW_SERVER_CLUSTER_DIGESTS_H
#define WW_SERVER_CLUSTER_DIGESTS_H

#include <stddef.h>

#include "server/cluster/values.h"

enum { DIGESTS_KEPT = 32, DIGESTS_TEXT_BYTES = DIGESTS_KEPT * (PG_LSN_BYTES + 18), REPLICA_NAME_BYTES = 64 };

typedef struct row_digest {
    pg_lsn lsn;
    uint64_t digest;
} row_digest;

/* What a replica has said of itself. */
typedef struct replica_digests {
    char name[REPLICA_NAME_BYTES];
    pg_lsn copied; /* where its last copy began; 0: before it was started */
    row_digest list[DIGESTS_KEPT];
    int32_t count;
} replica_digests;

/* Appends; the oldest one makes room. */
void digests_add(replica_digests *to, pg_lsn lsn, uint64_t digest);

/* Writes them as "16/B374D848:0123456789abcdef ..."; reads such a text, and stops at the first part that is none. */
void digests_write(const replica_digests *from, char text[DIGESTS_TEXT_BYTES]);
void digests_read(const char *text, replica_digests *to);

typedef enum digest_verdict {
    DIGESTS_AGREE,       /* or there is no place at which two replicas said something */
    DIGESTS_OTHER_WRONG, /* others differ from this replica, and they are to leave */
    DIGESTS_OWN_WRONG    /* this replica is to leave */
} digest_verdict;

/* Compares at the last place that the replica `own` (a number in the list) has in common with another. The largest group of
 * equal ones is right; among groups of the same size the one that copied last, and then the one with the smallest name. So all
 * replicas come to the same verdict. `at` gets the place. */
digest_verdict digests_compare(const replica_digests *list, int32_t count, int32_t own, pg_lsn *at);

#endif
