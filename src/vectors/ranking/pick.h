/* Makes results of hits that were picked from others. */
#ifndef WW_VECTORS_RANKING_PICK_H
#define WW_VECTORS_RANKING_PICK_H

#include "vectors/query/results.h"

typedef struct picked_hit {
    const ww_results *from;
    int64_t hit; /* numbered over all its queries */
    float score;
} picked_hit;

/* Hits in the order of the new results; starts[q] is the first hit of query q. */
typedef struct picked_hits {
    int64_t query_count;
    const int64_t *starts; /* query_count + 1 */
    const picked_hit *hits;
} picked_hits;

/* Makes results from them, with the ids, payloads, texts, vectors and parts that the sources have. */
ww_status results_pick(const picked_hits *picked, ww_results **results);

/* Lists for hits while they are picked, with room for `room` hits of all queries. Free both with memory_free(). */
ww_status picked_create(int64_t query_count, int64_t room, int64_t **starts, picked_hit **hits);

#endif
