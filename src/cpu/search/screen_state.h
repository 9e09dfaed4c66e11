/* The state of a running screen on the CPU: screen.c uses it, screen_memory.c allocates it.
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

/* A quick test of whole units, by leading parts of codes or by high planes. It is skipped while it rarely helps. */
typedef struct screen_trial {
    bool helps;    /* it excluded enough the last time */
    uint8_t pause; /* 0, or 2^(n-1) after n units in a row for which it excluded too little */
    uint8_t wait;  /* units for which it is skipped */
} screen_trial;

typedef struct screen_worker {
    screen_limits *limits;      /* for each group */
    uint32_t *thresholds;       /* for each query: the upper half of the key that its limits are made from */
    bool *fallback;             /* for each query: a unit was scored as a whole */
    uint8_t *pause;             /* for each group: units it was skipped for the last time */
    uint8_t *wait;              /* for each group: units it is still skipped for */
    uint8_t *without_threshold; /* for each group: queries that have no threshold yet */
    int32_t *products;
    int8_t *prepared;
    kept_rows *kept;
    int32_t kept_count;
    float tail[4][UNIT_ROWS]; /* scales, residuals, norms and residuals of planes, for a unit that is not full */
    lead_rows *lead;
    bool *excluded; /* for each group: excluded by the leading parts of the unit's codes */
    screen_trial lead_trial, high_trial;
} screen_worker;

struct screen {
    const screen_products *products;
    int32_t unit_rows;
    int64_t group_bytes; /* packed */
    int8_t *codes;       /* of the queries, in whole groups */
    int8_t *packed;
    int8_t *lead_packed;                 /* only the leading codes; NULL if they are not tested in batches */
    screen_vector *vectors;              /* of the queries */
    float *rests;                        /* the length of the queries' codes after the leading part (screen_lead.h) */
    int32_t *offsets;                    /* for u8 rows: what the products of each query lack; otherwise NULL */
    bool *failed;                        /* for each query: its results prove a defect */
    _Atomic uint32_t *shared_thresholds; /* for each query: the best k-th score of any worker, as the upper half of a key */
    screen_worker *workers;
    void *memory;
};

#endif
