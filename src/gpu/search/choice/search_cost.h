/* Predicts the time of a full scan and of a screened search, so that the faster one is taken (search_choice.h). Pure arithmetic
 * on sizes and the device's rates. */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_COST_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/search/screen_plan.h"

/* The rates of a device. Times are in microseconds, amounts are per microsecond. */
typedef struct search_rates {
    double bytes;              /* read from memory */
    double products;           /* multiply-adds of a full scan with many queries */
    double codes;              /* multiply-adds of codes, by matrix units if the chip has them */
    double scan_one;           /* fixed time of a full scan for one query */
    double scan_small_batch;   /* same, for a small batch */
    double scan_batch;         /* same, for more queries */
    double screen_one;         /* fixed time of a screened search for one query */
    double screen_small_batch; /* same, for a small batch */
    double screen_batch;       /* same, for more queries */
    double query;              /* time that each query of a batch adds to either way */
    double query_bytes;        /* bytes of queries copied per microsecond */
} search_rates;

/* The rates of a chip with `compute_units` units. `wgmma` says whether it multiplies codes with wgmma. */
search_rates search_rates_of(int32_t compute_units, bool wgmma);

/* The size of the search. */
typedef struct search_amount {
    int64_t words; /* of 64 rows */
    int64_t queries;
    int32_t dim;
    int32_t k;
    double words_admitted; /* share of words with an admitted row */
    double rows_admitted;  /* share of admitted rows */
} search_amount;

double search_cost_full_scan(const search_rates *rates, const search_amount *amount);

/* `plan` is one that the screen can follow. A range search has no sample, because its threshold is known. */
double search_cost_screened(const search_rates *rates, const search_amount *amount, const screen_plan *plan, bool sample);

#endif
