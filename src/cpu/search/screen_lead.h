/* The leading parts of codes: a row that its first 64 codes exclude need not be read further.
 *
 * The sum of the products of all codes is at most the sum of the leading ones plus, by Cauchy-Schwarz, the length of the
 * query's other codes times the length of the row's. The latter needs no reading: the length of all codes is known from the
 * norm and the residual, and that of the leading ones from themselves. The bound goes through the same test as a sum. This is
 * faster if queries have near neighbours and most rows are far from them, as in clustered rows, and if rows are long;
 * docs/design/exactness.md says by how much. A few queries are tested one by one; a batch, one group of queries against one
 * unit of rows.
 */
#ifndef WW_CPU_SEARCH_SCREEN_LEAD_H
#define WW_CPU_SEARCH_SCREEN_LEAD_H

#include "cpu/isa/isa.h"

enum {
    LEAD_CODES = 64, /* a cache line */
    LEAD_MIN = 256,  /* padded elements from which on a quarter or less is read */
};

/* Of the rows of a unit. */
typedef struct lead_rows {
    int8_t codes[UNIT_ROWS * LEAD_CODES];
    float rests[UNIT_ROWS];                      /* the length of the other codes, or more */
    int8_t prepared[2 * UNIT_ROWS * LEAD_CODES]; /* the same codes as products want them, two bytes each at most */
} lead_rows;

/* The length of a query's codes behind the leading ones, rounded up. */
float lead_rest(const int8_t *codes, int32_t padded);

/* The codes of GROUP queries, `padded` apart: their leading ones, one behind the other. */
void lead_of_group(const int8_t *codes, int32_t padded, int8_t leading[GROUP * LEAD_CODES]);

/* The largest rest of each run of `count` rows, times the row's scale, rounded up. */
void lead_rests_of_runs(const lead_rows *lead, const float *scales, int32_t count, float rests[SCREEN_STRIPS]);

/* Takes in `count` rows, and asks memory for the leading codes of as many behind them. */
void lead_take(lead_rows *lead, const int8_t *codes, const screen_rows *rows, int32_t count, int32_t padded);

/* out[r] >= the sum of the products of all codes of the query and row r. `rest` is the query's lead_rest(). */
void lead_products(const lead_rows *lead, const screen_products *products, const int8_t *query, float rest, int32_t count,
                   int32_t *out);

#endif
