/* The cost model. A search takes the time of its launches and copies, plus the longer of reading the rows and multiplying them.
 * A screened search reads a quarter of the bytes and multiplies many times as fast, but adds a sample before and exact scores
 * after.
 *
 * The constants were measured on an H200, by bench/search/search_choice.c, and are per compute unit (it has 132). Other chips
 * are assumed to be as fast per unit, except for products of codes. The constants need not be exact: where the two ways are
 * close, search_choice.c measures both on the device.
 */
#include "gpu/search/choice/search_cost.h"

#include "arithmetic/canon.h"
#include "base/integers.h"
#include "kernels/screen/screen_args.h"

enum {
    SCAN_QUERIES_MIN = 8,   /* queries that a block of a full scan handles, at least */
    SCAN_QUERIES_MAX = 128, /* queries that a block of a full scan handles, at most */
    SCREEN_QUERIES = 64,    /* queries that a block of the screen handles */
    KEPT_ROWS = 50,         /* rows kept for a query in addition to the results, about */
    KEPT_FACTOR = 10,       /* rows kept for each result */
    SCAN_READ_QUERIES = 64  /* queries that share one reading of the rows */
};

static const double unit_bytes = 4.3e6 / 132, unit_products = 15e6 / 132, unit_codes_wgmma = 290e6 / 132;
static const double unit_codes = 4 * 15e6 / 132; /* every chip has dot4: four codes per float */

search_rates search_rates_of(int32_t compute_units, bool wgmma)
{
    const double units = compute_units > 0 ? compute_units : 1;
    const search_rates rates = {.bytes = units * unit_bytes,
                                .products = units * unit_products,
                                .codes = units * (wgmma ? unit_codes_wgmma : unit_codes),
                                .scan_one = 17,
                                .scan_small_batch = 30,
                                .scan_batch = 45,
                                .screen_one = 24,
                                .screen_small_batch = 50,
                                .screen_batch = 85,
                                .query = 0.085,
                                .query_bytes = 12e3};
    return rates;
}

/* What queries cost in either way: they are read, copied and coded, and their results are written. */
static double queries_cost(const search_rates *rates, const search_amount *a)
{
    return (double)a->queries * (rates->query + (double)a->dim * sizeof(float) / rates->query_bytes);
}

double search_cost_full_scan(const search_rates *rates, const search_amount *a)
{
    const double numbers = (double)a->words * SEARCH_WORD_ROWS * canon_padded(a->dim) * a->words_admitted;
    const int64_t readings = divide_up_i64(a->queries, SCAN_READ_QUERIES);
    const double reading = numbers * sizeof(float) * (double)readings / rates->bytes;
    if (a->queries == 1)
        return rates->scan_one + reading;
    const double chunks = (double)canon_padded(a->dim) / CANON_LANES,
                 share = chunks / (chunks + 0.8); /* short rows reach less of the peak */
    const int64_t unit = a->queries > SCAN_QUERIES_MAX / 2 ? SCAN_QUERIES_MAX : SCAN_QUERIES_MIN;
    const double multiplying = numbers * (double)round_up_i64(a->queries, unit) / (rates->products * share);
    return (a->queries <= SCAN_QUERIES_MIN ? rates->scan_small_batch : rates->scan_batch) +
           (reading > multiplying ? reading : multiplying) + queries_cost(rates, a);
}

double search_cost_screened(const search_rates *rates, const search_amount *a, const screen_plan *plan, bool sample)
{
    const double padded = canon_padded(a->dim), rows = (double)a->words * SEARCH_WORD_ROWS;
    const double sampled = sample ? (double)plan->sample_tiles * SCREEN_TILE_WORDS * SEARCH_WORD_ROWS : 0;
    const double codes = (rows + sampled) * padded;
    /* If the sample has too few admitted rows, it gives no threshold, and all admitted rows are scored. */
    const bool blind = sample && sampled * a->rows_admitted < 2.0 * a->k;
    const double admitted = rows * a->rows_admitted, few = KEPT_ROWS + KEPT_FACTOR * (double)a->k;
    const double kept = blind || admitted < few ? admitted : few;
    const double scoring = (double)a->queries * kept * padded * sizeof(float) / rates->bytes;
    if (a->queries == 1)
        return rates->screen_one + codes / rates->bytes + scoring;
    if (a->queries <= SCREEN_SMALL_BATCH_MAX)
        return rates->screen_small_batch + codes / rates->bytes + scoring;
    const double multiplying = codes * (double)round_up_i64(a->queries, SCREEN_QUERIES) / rates->codes;
    const double reading = codes / rates->bytes;
    return rates->screen_batch + (reading > multiplying ? reading : multiplying) + scoring + queries_cost(rates, a);
}
