/* Instruction sets: the few kernels that the CPU backend stands on, as a table that each set fills.
 *
 * Every set computes canonical arithmetic (kernels/canon.h) to the same bits; the scalar one is the reference. Kernels look
 * at memory and nothing else: threads, blocks and results are the affair of the files above.
 */
#ifndef WW_CPU_ISA_H
#define WW_CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/status.h>

enum { SUMS_ROWS_MAX = 64 }; /* rows that one call of `sums` takes: a word of a row mask */

typedef struct instruction_set {
    const char *name;
    bool (*present)(void); /* does this machine, and its operating system, have it? */

    /* Canonical dot(a,b) and sum of squared differences. Any n >= 0, any alignment. */
    float (*dot)(const float *a, const float *b, int64_t n);
    float (*squares)(const float *a, const float *b, int64_t n);

    /* Copies n floats to `row`, pads it with +0 to a multiple of 64, and returns dot(row,row). */
    float (*store)(float *row, const float *from, int32_t n);

    /* sums[q * SUMS_ROWS_MAX + r] = dot, or for CANON_L2 the sum of squared differences, of query q and row r. Queries and
     * rows are `padded` floats each, a multiple of 64, one behind the other. 1 <= row_count <= SUMS_ROWS_MAX. */
    void (*sums)(int32_t metric, const float *queries, int32_t query_count, const float *rows, int32_t row_count,
                 int32_t padded, float *sums);

    /* The rows (bit r for row r) whose sum can still be a score better than a query's worst result, as `limit` of
     * sift_limit() says. May admit a row too many for cosine, never one too few. */
    uint64_t (*sift)(int32_t metric, const float *sums, int32_t row_count, float limit, float query_norm,
                     const float *row_norms);

    /* The rows whose CANON_L2 sum can be at most `limit`, judged by the dot products in `dots`: never one too few, and few too
     * many unless the distance is small beside the norms. `slack` is screen_slack(padded). */
    uint64_t (*screen)(const float *dots, int32_t row_count, float limit, float query_norm, const float *row_norms,
                       float slack);
} instruction_set;

/* The relative error that `screen` allows for. With u = 2^-24, m = padded/64 and A = |q|^2 + |x|^2 as computed from the norms:
 * a canonical dot product is off by (m+7)u |q||x| at most, A by (m+12)u A, a canonical sum of squares by (m+10)u of itself,
 * which is at most 2A. Together (4m+41)u A, and 5u A for the arithmetic of the bound; the rest is margin for u^2. */
static inline float screen_slack(int32_t padded)
{
    return ((float)padded / 16.0f + 96.0f) * 0x1p-24f; /* 4m + 96 */
}

/* The limit for `sift` that admits scores strictly better than `score`. */
float sift_limit(int32_t metric, float score);

/* The sets of this build, best first; ends with NULL. */
extern const instruction_set *const instruction_sets[];

/* The set that WARPWAVE_ISA names, or the best one this machine has. Refuses a name that is unknown or not there with
 * WW_UNSUPPORTED and the list of those that are. */
ww_status instruction_set_choose(const instruction_set **out);

/* Writes the names of the sets this machine has, best first, with a comma between: "avx512, avx2, scalar". */
void instruction_sets_list(char *text, uint64_t capacity);

#endif
