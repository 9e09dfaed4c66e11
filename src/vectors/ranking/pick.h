/* Results made of hits that were picked from others. */
#ifndef WW_VECTORS_RANKING_PICK_H
#define WW_VECTORS_RANKING_PICK_H

#include "vectors/query/results.h"

typedef struct picked_hit {
    const ww_results *from;
    int64_t hit; /* over all queries of it */
    float score;
} picked_hit;

/* Hits in the order in which they shall stand; starts[q] is where query q begins. */
typedef struct picked_hits {
    int64_t query_count;
    const int64_t *starts; /* query_count + 1 */
    const picked_hit *hits;
} picked_hits;

/* Makes results of them, with ids, payloads, texts, vectors and parts where the sources have them. */
ww_status results_pick(const picked_hits *picked, ww_results **results);

/* Lists of hits while they are picked: `room` hits in all. Free both with memory_free(). */
ww_status picked_create(int64_t query_count, int64_t room, int64_t **starts, picked_hit **hits);

#endif
