/* The reference: canonical arithmetic as arithmetic/canon.h defines it, one operation at a time. Machines that have none of the
 * other sets use it, and the others are compared with it, bit for bit.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "cpu/isa/scalar/scalar.h"

static bool present(void)
{
    return true;
}

static float fold(float acc[CANON_LANES])
{
    for (int s = CANON_LANES / 2; s >= 1; s /= 2)
        for (int j = 0; j < s; j++)
            acc[j] = acc[j] + acc[j + s];
    return acc[0];
}

static float dot(const float *a, const float *b, int64_t n)
{
    float acc[CANON_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        acc[i % CANON_LANES] = fmaf(a[i], b[i], acc[i % CANON_LANES]);
    for (int64_t i = n; i % CANON_LANES != 0; i++) /* the padding */
        acc[i % CANON_LANES] = fmaf(0.0f, 0.0f, acc[i % CANON_LANES]);
    return fold(acc);
}

static float squares(const float *a, const float *b, int64_t n)
{
    float acc[CANON_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        const float t = a[i] - b[i];
        acc[i % CANON_LANES] = fmaf(t, t, acc[i % CANON_LANES]);
    }
    return fold(acc); /* padding changes nothing: a square is never -0 */
}

static float store(float *row, const float *from, int32_t n)
{
    memcpy(row, from, (size_t)n * sizeof *row);
    memset(row + n, 0, (size_t)(canon_padded(n) - n) * sizeof *row);
    return dot(row, row, canon_padded(n));
}

static void sums(const sums_job *job)
{
    const int32_t padded = job->padded;
    for (int32_t q = 0; q < job->query_count; q++) {
        for (int32_t r = 0; r < job->row_count; r++) {
            const float *query = job->queries + (int64_t)q * padded, *row = (const float *)job->rows + (int64_t)r * padded;
            job->sums[q * SUMS_ROWS_MAX + r] = job->metric == CANON_L2 ? squares(query, row, padded) : dot(query, row, padded);
        }
    }
}

static float element(int32_t type, const void *from, int64_t i)
{
    if (type == ROW_F16)
        return f32_from_f16(((const uint16_t *)from)[i]);
    if (type == ROW_BF16)
        return f32_from_bf16(((const uint16_t *)from)[i]);
    return (float)(((const int8_t *)from)[i] + row_type_offset(type));
}

static void widen(int32_t type, const void *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = element(type, from, i);
}

static float pair_typed(const typed_pair *pair)
{
    float acc[CANON_LANES] = {0};
    for (int32_t i = 0; i < pair->padded; i++) {
        const float x = element(pair->type, pair->row, i), t = pair->l2 ? pair->query[i] - x : pair->query[i];
        acc[i % CANON_LANES] = fmaf(t, pair->l2 ? t : x, acc[i % CANON_LANES]);
    }
    return fold(acc);
}

static void sums_typed(int32_t type, const sums_job *job)
{
    const size_t row_bytes = (size_t)job->padded * row_type_bytes(type);
    for (int32_t r = 0; r < job->row_count; r++)
        job->sums[r] = pair_typed(&(typed_pair){.type = type,
                                                .l2 = job->metric == CANON_L2,
                                                .padded = job->padded,
                                                .query = job->queries,
                                                .row = (const char *)job->rows + (size_t)r * row_bytes});
}

static uint64_t filter_sums(int32_t metric, const float *sums_, int32_t row_count, float limit, float query_norm,
                            const float *row_norms)
{
    uint64_t rows = 0;
    for (int32_t r = 0; r < row_count; r++) {
        bool better;
        if (metric == CANON_L2)
            better = sums_[r] <= limit;
        else if (metric == CANON_DOT)
            better = sums_[r] > limit;
        else
            better = canon_score(metric, sums_[r], query_norm, row_norms[r]) > limit;
        rows |= (uint64_t)better << r;
    }
    return rows;
}

/* A lower bound of the squared distance from the dot product, see filter_slack(). FLT_MIN covers all underflow: 65536 elements
 * lose less than 2^-133 each way. A sum of norms that overflows is cut to FLT_MAX, which only lowers the bound. */
static uint64_t filter_dots(const float *dots, int32_t row_count, float limit, float query_norm, const float *row_norms,
                            float slack)
{
    uint64_t rows = 0;
    for (int32_t r = 0; r < row_count; r++) {
        const float norms = fminf(query_norm * query_norm + row_norms[r] * row_norms[r], FLT_MAX);
        const float bound = fmaf(-2.0f, dots[r], norms * (1.0f - slack));
        rows |= (uint64_t)!(bound > limit + FLT_MIN) << r;
    }
    return rows;
}

static screen_vector encode(const float *row, int32_t padded, int8_t *codes)
{
    float largest = 0.0f;
    for (int32_t i = 0; i < padded; i++)
        largest = fabsf(row[i]) > largest ? fabsf(row[i]) : largest;
    screen_vector made = {.scale = screen_scale(largest)};
    const float inverse = screen_inverse(largest);
    float acc[CANON_LANES] = {0};
    for (int32_t i = 0; i < padded; i++) {
        const int32_t n = screen_code(row[i], inverse);
        const float rest = screen_rest(row[i], made.scale, n);
        codes[i] = (int8_t)n;
        acc[i % CANON_LANES] = fmaf(rest, rest, acc[i % CANON_LANES]);
    }
    made.residual = screen_residual(fold(acc), padded);
    return made;
}

static float store_encoded(float *row, const float *from, int32_t n, int8_t *codes, screen_vector *made)
{
    const float square = store(row, from, n);
    *made = encode(row, canon_padded(n), codes);
    return square;
}

/* Every pair is tested, so there are no bounds, and every query is a candidate. */
static void bound_strips(const screen_rows *rows, int32_t row_count, strip_bounds *bounds)
{
    (void)rows;
    (void)row_count;
    (void)bounds;
}

static void filter_strips(const int32_t *products, const strip_bounds *bounds, int32_t row_count, const screen_limits *limits,
                          uint16_t candidates[SCREEN_STRIPS])
{
    (void)products;
    (void)bounds;
    (void)limits;
    for (int32_t strip = 0; strip < row_count / SCREEN_STRIP; strip++)
        candidates[strip] = UINT16_MAX;
}

static bool keeps(int32_t product, const screen_rows *rows, int32_t r, const screen_limits *limits, int32_t q)
{
    const float b = limits->b_above[q] + limits->b_below[q];
    const screen_limit limit = {.scale = 1.0f, .a = limits->a[q], .b = b, .g = limits->g[q], .h = limits->h[q]};
    const screen_vector row = {.scale = rows->scales[r], .residual = rows->residuals[r], .norm = rows->norms[r]};
    return !screen_discards(limit, row, product);
}

static uint64_t filter_one(const int32_t *products, const screen_rows *rows, int32_t row_count, const screen_limits *limits,
                           int32_t q)
{
    uint64_t keep = 0;
    for (int32_t r = 0; r < row_count; r++)
        keep |= (uint64_t)keeps(products[r], rows, r, limits, q) << r;
    return keep;
}

static uint32_t filter_rows(const int32_t *products, const screen_rows *rows, int32_t row_count, const screen_limits *limits,
                            const uint16_t candidates[SCREEN_STRIPS], uint64_t keep[GROUP])
{
    (void)candidates;
    uint32_t any = 0;
    memset(keep, 0, GROUP * sizeof *keep);
    for (int32_t r = 0; r < row_count; r++) {
        for (int32_t q = 0; q < GROUP; q++) {
            const uint32_t keeps_it = keeps(products[r * GROUP + q], rows, r, limits, q);
            keep[q] |= (uint64_t)keeps_it << r;
            any |= keeps_it << q;
        }
    }
    return any;
}

static const screen_products *const products[] = {&products_scalar, NULL};

static const quant_set quants[] = {
    {.name = "scalar",
     .coders = quant_coders_scalar,
     .products = quant_products_scalar,
     .gemv_columns_max = INT32_MAX, /* it has no tiles */
     .gemv_columns_max_kblock = INT32_MAX},
    {0},
};

const instruction_set instruction_set_scalar = {.name = "scalar",
                                                .present = present,
                                                .dot = dot,
                                                .squares = squares,
                                                .store = store,
                                                .sums = sums,
                                                .widen = widen,
                                                .sums_typed = sums_typed,
                                                .pair_typed = pair_typed,
                                                .filter_sums = filter_sums,
                                                .filter_dots = filter_dots,
                                                .encode = encode,
                                                .store_encoded = store_encoded,
                                                .bound_strips = bound_strips,
                                                .filter_strips = filter_strips,
                                                .filter_rows = filter_rows,
                                                .filter_one = filter_one,
                                                .element_loops = &element_loops_scalar,
                                                .row_loops = &row_loops_scalar,
                                                .attention = &attention_loops_scalar,
                                                .matmul = &matmul_tiles_scalar,
                                                .products = products,
                                                .quants = quants};
