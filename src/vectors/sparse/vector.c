/* Sparse vectors: checking and ordering them, and their score. */
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/math/exp_log_f64.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/collection.h"
#include "vectors/query/query.h"
#include "vectors/query/results.h"
#include "vectors/sparse/sparse.h"

STRUCT_INIT(ww_sparse_query, {0})

static ww_status twice(const char *what, int64_t number, uint32_t index)
{
    return ww_fail(WW_INVALID_ARGUMENT, "sparse vector of %s %lld: index %u appears twice", what, (long long)number, index);
}

static ww_status check(const char *what, int64_t number, const ww_sparse_vector *v)
{
    char fault[VECTOR_FAULT_BYTES];
    if (v->count < 0 || v->count > WW_SPARSE_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "sparse vector of %s %lld: %lld indices; 0 to %d are allowed", what, (long long)number,
                       (long long)v->count, WW_SPARSE_MAX);
    if (v->count > 0 && (!v->indices || !v->values))
        return ww_fail(WW_INVALID_ARGUMENT, "sparse vector of %s %lld: %s is NULL", what, (long long)number,
                       v->indices ? "values" : "indices");
    if (vector_is_finite(v->values, (int32_t)v->count))
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "sparse vector of %s %lld: %s", what, (long long)number,
                   vector_fault(v->values, (int32_t)v->count, fault));
}

static bool ascends(const ww_sparse_vector *v)
{
    for (int64_t i = 1; i < v->count; i++)
        if (v->indices[i - 1] >= v->indices[i])
            return false;
    return true;
}

ww_status sparse_sort(const char *what, int64_t number, const ww_sparse_vector *from, sparse_sorted *to)
{
    *to = (sparse_sorted){.vector = *from};
    const ww_status status = check(what, number, from);
    if (status != WW_OK || ascends(from))
        return status;
    const size_t count = (size_t)from->count;
    uint64_t *keys = memory_alloc(count * (sizeof *keys + sizeof *from->indices + sizeof *from->values));
    if (!keys)
        return memory_failed("a sparse vector", count * sizeof *keys);
    uint32_t *indices = (uint32_t *)(keys + count);
    float *values = (float *)(indices + count);
    for (size_t i = 0; i < count; i++)
        keys[i] = (uint64_t)from->indices[i] << 32 | i;
    keys_sort(keys, from->count);
    for (size_t i = 0; i < count; i++) {
        indices[i] = (uint32_t)(keys[i] >> 32);
        values[i] = from->values[(uint32_t)keys[i]];
        if (i > 0 && indices[i] == indices[i - 1]) {
            const uint32_t index = indices[i];
            memory_free(keys);
            return twice(what, number, index);
        }
    }
    *to = (sparse_sorted){{from->count, indices, values}, keys};
    return WW_OK;
}

void sparse_sorted_free(sparse_sorted *sorted)
{
    memory_free(sorted->held);
    *sorted = (sparse_sorted){0};
}

int64_t sparse_score(const ww_sparse_vector *a, const ww_sparse_vector *b, float *score)
{
    int64_t common = 0;
    float sum = 0.0f;
    for (int64_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (a->indices[i] == b->indices[j]) {
            sum = fmaf(a->values[i++], b->values[j++], sum);
            common++;
        } else if (a->indices[i] < b->indices[j]) {
            i++;
        } else {
            j++;
        }
    }
    *score = sum + 0.0f;
    return common;
}

float sparse_idf(float value, int64_t rows, int64_t with)
{
    const double n = (double)with;
    return value * (float)canon_log1p_f64(((double)rows - n + 0.5) / (n + 0.5));
}

ww_status sparse_check_weights(int64_t number, const float *weights, int64_t count)
{
    return vector_is_finite(weights, (int32_t)count)
               ? WW_OK
               : ww_fail(WW_OUT_OF_RANGE, "sparse vector of query %lld: its values are too large for the modifier idf",
                         (long long)number);
}

/* ---- queries ------------------------------------------------------------------------------------------------------------- */

ww_status sparse_asked_read(const char *function, const ww_query *query, sparse_asked *asked)
{
    ww_status status = struct_read(&asked->query, sizeof asked->query, query->sparse, function, "ww_sparse_query");
    if (status != WW_OK)
        return status;
    const ww_sparse_query *from = &asked->query;
    if (from->modifier != WW_SPARSE_PLAIN && from->modifier != WW_SPARSE_IDF)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: sparse->modifier is %d; it must be WW_SPARSE_PLAIN or WW_SPARSE_IDF", function,
                       (int)from->modifier);
    if (query->query_count > 0 && !from->vectors)
        return fail_null(function, "sparse->vectors");
    asked->vectors = memory_alloc_zeroed((size_t)query->query_count + 1, sizeof *asked->vectors);
    asked->sorted = memory_alloc_zeroed((size_t)query->query_count + 1, sizeof *asked->sorted);
    if (!asked->vectors || !asked->sorted)
        return memory_failed("the queries of a sparse search", (size_t)query->query_count * sizeof *asked->sorted);
    for (; status == WW_OK && asked->count < query->query_count; asked->count++) {
        status = sparse_sort("query", asked->count, &from->vectors[asked->count], &asked->sorted[asked->count]);
        asked->vectors[asked->count] = asked->sorted[asked->count].vector;
    }
    asked->query.vectors = asked->vectors;
    return status;
}

void sparse_asked_free(sparse_asked *asked)
{
    for (int64_t i = 0; i < asked->count; i++)
        sparse_sorted_free(&asked->sorted[i]);
    memory_free(asked->sorted);
    memory_free(asked->vectors);
    *asked = (sparse_asked){0};
}

int64_t sparse_limit(const ww_query *query)
{
    return query->mode == WW_QUERY_RANGE ? query->limit : query->k;
}

ww_status sparse_lists_create(int64_t count, key_list **lists)
{
    *lists = memory_alloc_zeroed((size_t)count + 1, sizeof **lists);
    return *lists ? WW_OK : memory_failed("the hits of a search", (size_t)count * sizeof **lists);
}

void sparse_tell_stats(const ww_query *query, int64_t rows_scored)
{
    query_tell_stats(query, &(search_stats){.rows_scored = rows_scored});
}

void sparse_lists_free(key_list *lists, int64_t count)
{
    for (int64_t q = 0; lists && q < count; q++)
        key_list_free(&lists[q]);
    memory_free(lists);
}

ww_status sparse_results(const ww_query *query, key_list *lists, ww_results **results)
{
    const int64_t queries = query->query_count;
    int64_t hits = 0;
    ww_results *made = NULL;
    for (int64_t q = 0; q < queries; q++) {
        key_list_finish(&lists[q], sparse_limit(query));
        hits += lists[q].count;
    }
    ww_status status = results_create(queries, hits, &made);
    if (status == WW_OK && query->mode == WW_QUERY_RANGE)
        status = results_totals(made);
    hits = 0;
    for (int64_t q = 0; status == WW_OK && q < queries; q++) {
        for (int64_t i = 0; i < lists[q].count; i++, hits++) {
            made->rows[hits] = made->handles[hits] = canon_key_row(lists[q].keys[i]);
            made->scores[hits] = canon_key_score(CANON_DOT, lists[q].keys[i]);
        }
        made->starts[q + 1] = hits;
        if (made->totals)
            made->totals[q] = lists[q].total;
    }
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

ww_status ww_sparse_score(const ww_sparse_vector *a, const ww_sparse_vector *b, float *score, int64_t *common)
{
    FLOAT_GUARD();
    sparse_sorted both[2] = {{.held = NULL}, {.held = NULL}};
    if (!a || !b || !score)
        return fail_null("ww_sparse_score", !a ? "a" : !b ? "b" : "score");
    ww_status status = sparse_sort("argument", 0, a, &both[0]);
    if (status == WW_OK)
        status = sparse_sort("argument", 1, b, &both[1]);
    if (status == WW_OK) {
        const int64_t found = sparse_score(&both[0].vector, &both[1].vector, score);
        if (common)
            *common = found;
    }
    sparse_sorted_free(&both[0]);
    sparse_sorted_free(&both[1]);
    return status;
}
