/* Instruction sets: the kernels of the CPU backend, as a table that each set fills in its own folder.
 *
 * Every set computes canonical arithmetic (arithmetic/canon.h) to the same bits; the scalar one is the reference. Kernels only
 * read and write memory; their callers manage threads, blocks and results. A set may leave entries empty:
 * instruction_set_complete() takes the rest from the scalar set.
 */
#ifndef WW_CPU_ISA_ISA_H
#define WW_CPU_ISA_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/status.h>

#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "cpu/isa/screen_products.h"

/* The numbers of up to UNIT_ROWS rows that the screen uses besides their codes. */
typedef struct screen_rows {
    const float *scales;
    const float *residuals;
    const float *norms;
} screen_rows;

/* Bounds of these numbers for each strip of 16 rows: one test with them can exclude all 16. */
typedef struct strip_bounds {
    float scale_max[SCREEN_STRIPS][SCREEN_STRIP / SCREEN_FOUR]; /* for every four rows, because scales differ the most */
    float residual_max[SCREEN_STRIPS];
    float norm_min[SCREEN_STRIPS];
    float norm_max[SCREEN_STRIPS];
    float square_min[SCREEN_STRIPS]; /* of norm_min; finite */
} strip_bounds;

/* The limits of a group of queries (screen_limit_for), each divided by its query's scale. b is split into a positive and a
 * negative part, one of them 0: the bound of a strip multiplies a positive b by its largest norm, a negative b by its
 * smallest. */
typedef struct screen_limits {
    float a[GROUP], b_above[GROUP], b_below[GROUP], g[GROUP], h[GROUP];
} screen_limits;

enum { SUMS_ROWS_MAX = 64 }; /* rows that one call of `sums` takes: one word of a row mask */

typedef struct sums_job {
    int32_t metric;
    const float *queries;                   /* `padded` floats each, a multiple of 64, without gaps */
    const void *rows;                       /* `padded` elements each; floats, except for `sums_typed` */
    int32_t query_count, row_count, padded; /* 1 <= row_count <= SUMS_ROWS_MAX */
    float *sums;                            /* sums[q * SUMS_ROWS_MAX + r] for query q and row r */
} sums_job;

typedef struct typed_pair {
    int32_t type;
    bool l2;
    int32_t padded; /* a multiple of 64 */
    int32_t ahead;
    const float *query;
    const void *row;
} typed_pair;

typedef struct instruction_set {
    const char *name;
    bool (*present)(void); /* Returns true if this machine and its operating system support the set. */

    /* Canonical dot(a,b), and the sum of squared differences. Any n >= 0, any alignment. */
    float (*dot)(const float *a, const float *b, int64_t n);
    float (*squares)(const float *a, const float *b, int64_t n);

    /* Copies n floats to `row`, pads it with +0 to a multiple of 64, and returns dot(row,row). */
    float (*store)(float *row, const float *from, int32_t n);

    /* The dot products, or for CANON_L2 the sums of squared differences, of all queries with all rows. */
    void (*sums)(const sums_job *job);

    /* ---- rows of other types than f32 (arithmetic/row_types.h), as a device stores them: u8 minus 128 ---- */

    /* Converts n elements, a multiple of 64, to floats. */
    void (*widen)(int32_t type, const void *from, float *to, int64_t n);

    /* Like `sums`, for one query and such rows. */
    void (*sums_typed)(int32_t type, const sums_job *job);

    /* Canonical dot(a,b), or for l2 the sum of squared differences, of a query and such a row of `padded` elements each.
     * Prefetches the memory `ahead` bytes after the row, unless `ahead` is 0. */
    float (*pair_typed)(const typed_pair *pair);

    /* Returns the rows (bit r for row r) whose sum can still give a better score than a query's worst result, by `limit` from
     * filter_limit(). For cosine, the result may include other rows, but never misses one. */
    uint64_t (*filter_sums)(int32_t metric, const float *sums, int32_t row_count, float limit, float query_norm,
                            const float *row_norms);

    /* Returns the rows whose CANON_L2 sum can be at most `limit`, judging by the dot products in `dots`. It never misses one,
     * and includes very few others unless the distance is small compared with the norms. `slack` is filter_slack(padded). */
    uint64_t (*filter_dots)(const float *dots, int32_t row_count, float limit, float query_norm, const float *row_norms,
                            float slack);

    /* ---- the screen ---- */

    /* Computes the codes of a padded row and returns its scale and residual; the norm stays 0. */
    screen_vector (*encode)(const float *row, int32_t padded, int8_t *codes);

    /* `store` and `encode` in one pass. */
    float (*store_encoded)(float *row, const float *from, int32_t n, int8_t *codes, screen_vector *made);

    /* The bounds of each strip of 16 rows; row_count is a multiple of 16. */
    void (*bound_strips)(const screen_rows *rows, int32_t row_count, strip_bounds *bounds);

    /* A first test of the products that `groups` made. Sets candidates[strip] to the queries (bit q) that may keep a row of
     * it. */
    void (*filter_strips)(const int32_t *products, const strip_bounds *bounds, int32_t row_count, const screen_limits *limits,
                          uint16_t candidates[SCREEN_STRIPS]);

    /* Returns true if a query of the group may keep a row, judging by the products of leading codes (screen_lead.h). The other
     * codes add at most tails[q] times rests[strip] to the product of any row of a strip. NULL if the set has no such test. */
    bool (*filter_leads)(const int32_t *products, const strip_bounds *bounds, const float rests[SCREEN_STRIPS],
                         int32_t row_count, const screen_limits *limits, const float tails[GROUP]);

    /* Finds the rows (bit r of keep[q] for row r) that the candidates of a group keep. Returns the queries (bit q) that keep
     * any; keep[] is undefined for the others. */
    uint32_t (*filter_rows)(const int32_t *products, const screen_rows *rows, int32_t row_count, const screen_limits *limits,
                            const uint16_t candidates[SCREEN_STRIPS], uint64_t keep[GROUP]);

    /* The same for only query `q` of the group, with the products that `one` made. */
    uint64_t (*filter_one)(const int32_t *products, const screen_rows *rows, int32_t row_count, const screen_limits *limits,
                           int32_t q);

    /* ---- tables of the other families ---- */

    const struct element_loops *element_loops; /* cpu/tensor/element_loops.h */
    const struct row_loops *row_loops;         /* cpu/tensor/row_loops.h */
    const struct matmul_tiles *matmul;         /* cpu/matmul/matmul.h */
    const struct attention_loops *attention;   /* cpu/attention/attention_loops.h */

    /* The set's ways to compute products, best first. The last one runs on every processor with the set. Both lists end with
     * NULL or with an entry without a name. */
    const screen_products *const *products;
    const struct quant_set *quants; /* cpu/quant/quant_set.h */
} instruction_set;

/* The relative error that `filter_dots` allows for. With u = 2^-24, m = padded/64 and A = |q|^2 + |x|^2 as computed from the
 * norms: a canonical dot product is off by at most (m+7)u |q||x|, A by (m+12)u A, and a canonical sum of squares, which is at
 * most 2A, by (m+10)u of itself. That is (4m+41)u A, plus 5u A for the arithmetic of the bound; the rest is margin for u^2. */
static inline float filter_slack(int32_t padded)
{
    return ((float)padded / 16.0f + 96.0f) * 0x1p-24f; /* 4m + 96 */
}

/* Returns the best way to compute products that the set has and this machine supports. */
const screen_products *screen_products_choose(const instruction_set *set);

/* The limit for `filter_sums` that admits scores strictly better than `score`. */
float filter_limit(int32_t metric, float score);

/* The sets of this build, best first, scalar last; ends with NULL. */
extern const instruction_set *const instruction_sets[];

/* Fills the empty entries of a set from the scalar set. The four functions of the screen that depend on each other's bounds
 * stay together: all come from the set, or all from the scalar one. Refuses a set without a name or without `present`, which
 * have no default, with WW_INTERNAL. */
ww_status instruction_set_complete(instruction_set *set);

/* Chooses the set that WARPWAVE_ISA names, or the best one that this machine has, and completes it. Refuses a set that this
 * machine does not have with WW_UNSUPPORTED and the list of the available ones. */
ww_status instruction_set_choose(instruction_set *out);

/* Writes the names of the sets that this machine has, best first, separated by commas: "avx512, avx2, scalar". */
void instruction_sets_list(char *text, uint64_t capacity);

#endif
