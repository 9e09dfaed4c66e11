/* Merging the answers of shards into the answer of one collection, to the bit. */
#ifndef WW_SERVER_NODES_MERGE_H
#define WW_SERVER_NODES_MERGE_H

#include <warpwave/vectors.h>

#include "server/request.h"

/* What a shard answered: JSON that was checked. */
typedef struct shard_answer {
    const char *json;
    int status; /* 200; or 404 for the route that gets one point */
} shard_answer;

typedef struct shard_answers {
    const shard_answer *list;
    size_t count;
    ww_metric metric; /* of the collection */
} shard_answers;

/* Can the request be answered over several shards? */
bool merge_can(const request *r);

/* Is it a search? */
bool merge_searches_rows(const request *r);

/* Is it an exact search, whose answer depends on nothing but the rows? */
bool merge_is_exact(const request *r);

/* The result in an answer; NULL: there is none. */
const char *merge_result(const shard_answer *answer);

/* Is 404 an answer, and not a failure? */
bool merge_takes_missing(const request *r);

/* Writes the answer to the request, which fails if the shards' answers make no sense. */
void merge_answers(request *r, const shard_answers *from);

#endif
