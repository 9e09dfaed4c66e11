/* The leading parts of codes: if its first 64 codes exclude a row, the others are not read.
 *
 * The sum of the products of all codes is at most the sum of the leading ones plus, by Cauchy-Schwarz, the length of the
 * query's other codes times the length of the row's. That length is known without reading the codes: the norm and the residual
 * give the length of all codes, and the leading codes are known. The bound is tested like a sum. This is faster if queries have
 * near neighbours and most rows are far from them, as in clustered rows, and if rows are long (docs/design/exactness.md). A few
 * queries are tested one by one; in a batch, one group of queries is tested with one unit of rows.
 */
#ifndef WW_CPU_SEARCH_SCREEN_LEAD_H
#define WW_CPU_SEARCH_SCREEN_LEAD_H

#include "cpu/isa/isa.h"

enum {
    LEAD_CODES = 64, /* a cache line */
    LEAD_MIN = 256,  /* rows with at least this many padded elements: reading 64 codes is at most a quarter */
};

/* The leading codes of the rows of a unit. */
typedef struct lead_rows {
    int8_t codes[UNIT_ROWS * LEAD_CODES];
    float rests[UNIT_ROWS];                      /* an upper bound for the length of the other codes */
    int8_t prepared[2 * UNIT_ROWS * LEAD_CODES]; /* the same codes in the order for products, at most two bytes each */
} lead_rows;

/* Returns the length of a query's codes after the leading ones, rounded up. */
float lead_rest(const int8_t *codes, int32_t padded);

/* Copies the leading codes of GROUP queries, whose codes are `padded` apart. */
void lead_of_group(const int8_t *codes, int32_t padded, int8_t leading[GROUP * LEAD_CODES]);

/* Computes the largest rest of each run of `count` rows, times the row's scale, rounded up. */
void lead_rests_of_runs(const lead_rows *lead, const float *scales, int32_t count, float rests[SCREEN_STRIPS]);

/* Copies the leading codes of `count` rows, and prefetches those of as many rows after them. */
void lead_take(lead_rows *lead, const int8_t *codes, const screen_rows *rows, int32_t count, int32_t padded);

/* out[r] >= the sum of the products of all codes of the query and row r. `rest` is the query's lead_rest(). */
void lead_products(const lead_rows *lead, const screen_products *products, const int8_t *query, float rest, int32_t count,
                   int32_t *out);

#endif
