/* What a search costs by each of its two ways, so that the cheaper is taken (search_choice.h): pure arithmetic on sizes, with
 * the device's own constants. */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_COST_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/search/screen_plan.h"

/* What is known of a device. Times are microseconds, amounts are per microsecond. */
typedef struct search_rates {
    double bytes;        /* read from memory */
    double products;     /* multiply-adds of a plain search of many queries */
    double codes;        /* multiply-adds of codes by the matrix units, or what the chip has */
    double plain_one;    /* what a plain search takes that finds nothing to do: of one query, */
    double plain_few;    /* of a small batch, */
    double plain_batch;  /* and of more */
    double screen_one;   /* the same of a screened one: of one query, */
    double screen_few;   /* of a small batch, */
    double screen_batch; /* and of more */
    double query;        /* what each query of a batch adds by either way, */
    double query_bytes;  /* and its numbers */
} search_rates;

/* The rates of a chip with `compute_units` units. `wgmma` says whether it multiplies codes by tiles from shared memory. */
search_rates search_rates_of(int32_t compute_units, bool wgmma);

/* What is searched. */
typedef struct search_amount {
    int64_t words; /* of 64 rows */
    int64_t queries;
    int32_t dim;
    int32_t k;
    double words_admitted; /* the share of words that have an admitted row, */
    double rows_admitted;  /* and of rows that are admitted */
} search_amount;

double search_cost_plain(const search_rates *rates, const search_amount *amount);

/* For a plan that the screen can follow. Without a sample for a range search, whose threshold is known. */
double search_cost_screened(const search_rates *rates, const search_amount *amount, const screen_plan *plan, bool sample);

#endif
