/* Multivectors: checking them, and the score of two. */
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/matmul.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/collection.h"
#include "vectors/multi/multi.h"

STRUCT_INIT(ww_multi_query, {0})

/* 1024 similarities of vectors with such norms, 2^96 each, are far from overflow. */
static const float SQUARED_NORM_MAX = 0x1p96f;

ww_status multi_wrong_dim(const char *name, int32_t dim, int32_t given)
{
    return ww_fail(WW_DIMENSION_MISMATCH, "%s has multivectors of dimension %d, not %d", name, dim, given);
}

ww_status multi_check_metric(const char *name, ww_metric metric)
{
    return metric == WW_COSINE || metric == WW_DOT
               ? WW_OK
               : ww_fail(WW_UNSUPPORTED, "%s: multivectors need the metric cosine or dot; l2 is not supported", name);
}

ww_status multi_check(const char *what, int64_t number, const ww_multivector *v)
{
    char fault[VECTOR_FAULT_BYTES];
    const long long n = number;
    if (v->count < 0 || v->count > WW_MULTI_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "multivector of %s %lld: %d vectors; 0 to %d are allowed", what, n, v->count,
                       WW_MULTI_MAX);
    if (v->count == 0)
        return WW_OK;
    if (v->dim < 1 || v->dim > WW_DIM_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "multivector of %s %lld: dim is %d; it must be 1 to %d", what, n, v->dim, WW_DIM_MAX);
    if (!v->vectors)
        return ww_fail(WW_INVALID_ARGUMENT, "multivector of %s %lld: vectors is NULL", what, n);
    for (int32_t i = 0; i < v->count; i++) {
        const float *x = v->vectors + (size_t)i * (size_t)v->dim;
        if (!vector_is_finite(x, v->dim))
            return ww_fail(WW_INVALID_ARGUMENT, "multivector of %s %lld, vector %d: %s", what, n, i,
                           vector_fault(x, v->dim, fault));
        if (vector_squared_norm(x, v->dim) > SQUARED_NORM_MAX)
            return ww_fail(WW_OUT_OF_RANGE, "multivector of %s %lld, vector %d: its norm is %g; the maximum is 2^48", what, n,
                           i, (double)sqrtf(vector_squared_norm(x, v->dim)));
    }
    return WW_OK;
}

void multi_prepare(ww_metric metric, const ww_multivector *v, float *to)
{
    const size_t dim = (size_t)v->dim;
    memcpy(to, v->vectors, (size_t)v->count * dim * sizeof *to);
    for (int32_t i = 0; metric == WW_COSINE && i < v->count; i++) {
        float *x = to + (size_t)i * dim;
        const float norm = sqrtf(vector_squared_norm(x, v->dim));
        for (size_t j = 0; norm > 0.0f && j < dim; j++)
            x[j] /= norm;
    }
}

ww_status multi_asked_read(const char *function, const ww_query *query, ww_multi_query *asked)
{
    ww_status status = struct_read(asked, sizeof *asked, query->multi, function, "ww_multi_query");
    if (status == WW_OK && query->query_count > 0 && !asked->vectors)
        return fail_null(function, "multi->vectors");
    for (int64_t i = 0; status == WW_OK && i < query->query_count; i++)
        status = multi_check("query", i, &asked->vectors[i]);
    return status;
}

/* ---- the score ----------------------------------------------------------------------------------------------------------- */

/* An element of a canonical matrix product (arithmetic/matmul.h). */
static float similarity(const float *a, const float *b, int32_t dim)
{
    float total = 0.0f;
    for (int32_t first = 0; first < dim; first += MATMUL_CHUNK) {
        float sum = 0.0f;
        for (int32_t i = first; i < min_i32(dim, first + MATMUL_CHUNK); i++)
            sum = fmaf(a[i], b[i], sum);
        total += sum;
    }
    return total;
}

/* The sum of a canonical reduction (arithmetic/reduce.h) of up to a chunk of numbers. */
static float score_of(const float *query, int32_t query_count, const float *row, int32_t row_count, int32_t dim)
{
    float sums[CANON_LANES] = {0};
    for (int32_t i = 0; i < query_count; i++) {
        float best = -INFINITY;
        for (int32_t j = 0; j < row_count; j++)
            best = fmaxf(best, similarity(row + (size_t)j * (size_t)dim, query + (size_t)i * (size_t)dim, dim));
        sums[i % CANON_LANES] += best;
    }
    for (int32_t s = CANON_LANES / 2; s > 0; s /= 2)
        for (int32_t i = 0; i < s; i++)
            sums[i] += sums[i + s];
    return sums[0];
}

ww_status ww_multi_score(ww_metric metric, const ww_multivector *query, const ww_multivector *row, float *score)
{
    FLOAT_GUARD();
    static const char function[] = "ww_multi_score";
    if (!query || !row || !score)
        return fail_null(function, !query ? "query" : row ? "score" : "row");
    ww_status status = multi_check_metric(function, metric);
    if (status == WW_OK)
        status = multi_check("query", 0, query);
    if (status == WW_OK)
        status = multi_check("row", 0, row);
    if (status == WW_OK && (query->count == 0 || row->count == 0))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the %s has no vectors", function, query->count == 0 ? "query" : "row");
    if (status == WW_OK && query->dim != row->dim)
        return multi_wrong_dim("the row", row->dim, query->dim);
    if (status != WW_OK)
        return status;
    const size_t numbers = ((size_t)query->count + (size_t)row->count) * (size_t)query->dim;
    float *prepared = memory_alloc(numbers * sizeof *prepared);
    if (!prepared)
        return memory_failed("two multivectors", numbers * sizeof *prepared);
    float *other = prepared + (size_t)query->count * (size_t)query->dim;
    multi_prepare(metric, query, prepared);
    multi_prepare(metric, row, other);
    *score = score_of(prepared, query->count, other, row->count, query->dim);
    memory_free(prepared);
    return WW_OK;
}

double multi_length(const float *v, int32_t dim)
{
    double squares = 0;
    for (int32_t i = 0; i < dim; i++)
        squares += (double)v[i] * (double)v[i];
    return sqrt(squares) * (1 + 0x1p-30);
}
