/* What a screen under way on the CPU consists of: screen.c works with it, screen_memory.c makes it.
 */
#ifndef WW_CPU_SEARCH_SCREEN_STATE_H
#define WW_CPU_SEARCH_SCREEN_STATE_H

#include <stdatomic.h>

#include "cpu/search/screen_lead.h"
#include "cpu/search/search_state.h"

enum { KEPT_MAX = 1024 }; /* entries in a worker's list */

#define NO_THRESHOLD UINT32_MAX

/* Rows of the unit that a query keeps. */
typedef struct kept_rows {
    uint64_t rows;
    int32_t query;
} kept_rows;

/* A quick test of whole units, by leading parts of codes or by high planes: it is not tried where it seldom helps. */
typedef struct screen_trial {
    bool helps;    /* did it exclude enough, the last time? */
    uint8_t pause; /* units in a row of which it excluded too little, as a power of two, */
    uint8_t wait;  /* units for which it is not tried */
} screen_trial;

typedef struct screen_worker {
    screen_limits *limits;      /* for each group */
    uint32_t *thresholds;       /* for each query: what they are made of, the upper half of a key */
    bool *fallback;             /* for each query: was some unit scored as a whole? */
    uint8_t *pause;             /* for each group: units it was last left out, */
    uint8_t *wait;              /* and is still to be */
    uint8_t *without_threshold; /* for each group: queries that have no threshold yet */
    int32_t *products;
    int8_t *prepared;
    kept_rows *kept;
    int32_t kept_count;
    float tail[4][UNIT_ROWS]; /* scales, residuals, norms and residuals of the planes of a unit that is not full */
    lead_rows *lead;
    bool *excluded; /* for each group: by the leading parts of the unit's codes */
    screen_trial lead_trial, high_trial;
} screen_worker;

struct screen {
    const screen_products *products;
    int32_t unit_rows;
    int64_t group_bytes; /* packed */
    int8_t *codes;       /* of the queries, whole groups */
    int8_t *packed;
    int8_t *lead_packed;                 /* the leading codes alone; NULL where they are not tried in batches */
    screen_vector *vectors;              /* of the queries */
    float *rests;                        /* of the queries' codes behind the leading part (screen_lead.h) */
    int32_t *offsets;                    /* of u8 rows: for each query what its products are short by; else NULL */
    bool *failed;                        /* for each query: do its results prove a defect? */
    _Atomic uint32_t *shared_thresholds; /* for each query: the best k-th score of any worker, as the upper half of a key */
    screen_worker *workers;
    void *memory;
};

#endif
