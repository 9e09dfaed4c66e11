/* Merging the answers of shards into the answer of one collection, to the bit: what a hit says is copied as it is, and hits are
 * ordered by the bits of their scores and by their ids. */
#ifndef WW_SERVER_NODES_MERGE_H
#define WW_SERVER_NODES_MERGE_H

#include <warpwave/vectors.h>

#include "server/request.h"

/* What a shard answered: JSON that was checked. */
typedef struct shard_answer {
    const char *json;
    int status; /* 200; or 404 for the route that gets one point */
} shard_answer;

/* Why the request cannot be answered over several shards; NULL: it can. */
const char *merge_refusal(const request *r);

/* Is it an exact search, whose answer depends on nothing but the rows? */
bool merge_is_exact(const request *r);

/* The result in an answer; NULL: there is none. */
const char *merge_result(const shard_answer *answer);

/* Is 404 an answer, and not a failure? */
bool merge_takes_missing(const request *r);

/* Writes the answer to the request, which fails if the shards' answers make no sense. */
void merge_answers(request *r, ww_metric metric, const shard_answer *answers, size_t count);

#endif
