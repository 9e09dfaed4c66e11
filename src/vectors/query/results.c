/* The results object: at most three blocks of memory, for any number of hits, besides one for each sparse vector.
 *
 * Rows, handles and scores are in one block with the object itself, because a search writes them before anything else is known.
 * Fetched data of the hits is in a second block, and all texts, NUL-terminated, in a third. Texts are stored as offsets,
 * because that block may move while it grows.
 */
#include "vectors/query/results.h"

#include <stdbool.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"

enum { FETCH_ALL = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS | WW_FETCH_TEXTS | WW_FETCH_SPARSE | WW_FETCH_MULTI };

ww_status fetch_check(const char *function, uint32_t fetch)
{
    if ((fetch & ~(uint32_t)FETCH_ALL) == 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT,
                   "%s: fetch is %u; it is a sum of WW_FETCH_IDS, WW_FETCH_PAYLOADS, WW_FETCH_VECTORS, WW_FETCH_TEXTS, "
                   "WW_FETCH_SPARSE and WW_FETCH_MULTI",
                   function, fetch);
}

/* Adds count x element_bytes to `bytes`; false if that overflows. */
static bool add_array(size_t *bytes, int64_t count, size_t element_bytes)
{
    size_t more;
    return size_multiply((size_t)count, element_bytes, &more) && !__builtin_add_overflow(*bytes, more, bytes);
}

ww_status results_create(int64_t query_count, int64_t hits, ww_results **results)
{
    size_t bytes = sizeof **results + sizeof *(*results)->starts;
    if (!add_array(&bytes, query_count, sizeof *(*results)->starts) || !add_array(&bytes, hits, 2 * sizeof *(*results)->rows) ||
        !add_array(&bytes, hits, sizeof *(*results)->scores))
        return memory_failed("the results of a query", SIZE_MAX / 2);
    ww_results *made = memory_alloc(bytes);
    if (!made)
        return memory_failed("the results of a query", bytes);
    *made = (ww_results){.query_count = query_count};
    made->starts = (int64_t *)(made + 1);
    made->rows = made->starts + query_count + 1;
    made->handles = made->rows + hits;
    made->scores = (float *)(made->handles + hits);
    memset(made->starts, 0, (size_t)(query_count + 1) * sizeof *made->starts);
    *results = made;
    return WW_OK;
}

int64_t results_hits(const ww_results *results)
{
    return results->starts[results->query_count];
}

void results_from_padded(ww_results *results, int64_t k)
{
    int64_t hits = 0;
    for (int64_t q = 0; q < results->query_count; q++) {
        for (int64_t i = q * k; i < (q + 1) * k && results->rows[i] >= 0; i++, hits++) {
            results->rows[hits] = results->rows[i];
            results->scores[hits] = results->scores[i];
        }
        results->starts[q + 1] = hits;
    }
}

ww_status results_prepare(ww_results *results, uint32_t fetch, int32_t dim, size_t text_bytes)
{
    const int64_t hits = results_hits(results);
    const int64_t id_count = fetch & WW_FETCH_IDS ? hits : 0;
    const int64_t payload_count = fetch & WW_FETCH_PAYLOADS ? hits : 0;
    const int64_t vector_count = fetch & WW_FETCH_VECTORS ? hits : 0;
    const int64_t text_count = fetch & WW_FETCH_TEXTS ? hits : 0;
    const int64_t place_count = id_count + payload_count + text_count;
    size_t bytes = 0;
    if (!add_array(&bytes, place_count, sizeof *results->ids) ||
        !add_array(&bytes, vector_count, (size_t)dim * sizeof *results->vectors))
        return memory_failed("ids, payloads and vectors of results", SIZE_MAX / 2);
    results->dim = dim;
    if (fetch & WW_FETCH_SPARSE && hits > 0) {
        results->sparse = memory_alloc_zeroed((size_t)hits, sizeof *results->sparse);
        if (!results->sparse)
            return memory_failed("sparse vectors of results", (size_t)hits * sizeof *results->sparse);
    }
    if (fetch & WW_FETCH_MULTI && hits > 0) {
        results->multi = memory_alloc_zeroed((size_t)hits, sizeof *results->multi);
        if (!results->multi)
            return memory_failed("multivectors of results", (size_t)hits * sizeof *results->multi);
    }
    results->fetched = bytes > 0 ? memory_alloc(bytes) : NULL;
    results->text = text_bytes > 0 ? memory_alloc(text_bytes) : NULL;
    results->text_room = text_bytes;
    if ((bytes > 0 && !results->fetched) || (text_bytes > 0 && !results->text))
        return memory_failed("ids, payloads and vectors of results", bytes + text_bytes);
    int64_t *places = results->fetched;
    if (!places)
        return WW_OK;
    for (int64_t i = 0; i < place_count; i++)
        places[i] = -1;
    if (id_count > 0)
        results->ids = places;
    if (payload_count > 0)
        results->payloads = places + id_count;
    if (vector_count > 0)
        results->vectors = (float *)(places + place_count);
    if (text_count > 0)
        results->texts = places + id_count + payload_count;
    return WW_OK;
}

ww_status results_totals(ww_results *results)
{
    const size_t bytes = (size_t)results->query_count * sizeof *results->totals;
    results->totals = memory_alloc(bytes);
    return results->totals ? WW_OK : memory_failed("the totals of a range search", bytes);
}

ww_status results_proven(ww_results *results)
{
    results->proven = memory_alloc_zeroed((size_t)results->query_count + 1, sizeof *results->proven);
    return results->proven ? WW_OK
                           : memory_failed("the proofs of results", (size_t)results->query_count * sizeof *results->proven);
}

ww_status results_parts(ww_results *results)
{
    const size_t bytes = (size_t)results_hits(results) * sizeof *results->parts;
    results->parts = memory_alloc(bytes);
    return results->parts ? WW_OK : memory_failed("the parts of fused results", bytes);
}

ww_status results_put(ww_results *results, int64_t *place, const char *text, size_t length)
{
    if (length >= results->text_room - results->text_bytes) {
        const size_t room = results->text_bytes + length + 1 + results->text_room / 2;
        char *moved = memory_resize(results->text, room);
        if (!moved)
            return memory_failed("the texts of results", room);
        results->text = moved;
        results->text_room = room;
    }
    *place = (int64_t)results->text_bytes;
    memcpy(results->text + results->text_bytes, text, length);
    results->text[results->text_bytes + length] = '\0';
    results->text_bytes += length + 1;
    return WW_OK;
}

ww_status results_put_sparse(ww_results *results, int64_t hit, const ww_sparse_vector *vector)
{
    const size_t count = (size_t)vector->count, bytes = count * (sizeof *vector->indices + sizeof *vector->values);
    uint32_t *block = count > 0 ? memory_alloc(bytes) : NULL;
    if (count > 0 && !block)
        return memory_failed("a sparse vector", bytes);
    float *values = (float *)(block + count);
    if (count > 0) {
        memcpy(block, vector->indices, count * sizeof *block);
        memcpy(values, vector->values, count * sizeof *values);
    }
    results->sparse[hit] = (ww_sparse_vector){vector->count, block, values};
    return WW_OK;
}

ww_status results_put_multi(ww_results *results, int64_t hit, const ww_multivector *vector)
{
    const size_t bytes = (size_t)vector->count * (size_t)vector->dim * sizeof *vector->vectors;
    float *vectors = bytes > 0 ? memory_alloc(bytes) : NULL;
    if (bytes == 0)
        return WW_OK;
    if (!vectors)
        return memory_failed("a multivector", bytes);
    memcpy(vectors, vector->vectors, bytes);
    results->multi[hit] = (ww_multivector){vector->count, vector->dim, vectors};
    return WW_OK;
}

void ww_results_destroy(ww_results *results)
{
    if (!results)
        return;
    for (int64_t i = 0; results->sparse && i < results_hits(results); i++)
        memory_free((void *)(uintptr_t)results->sparse[i].indices); /* one block with the values */
    for (int64_t i = 0; results->multi && i < results_hits(results); i++)
        memory_free((void *)(uintptr_t)results->multi[i].vectors);
    memory_free(results->sparse);
    memory_free(results->multi);
    memory_free(results->text);
    memory_free(results->fetched);
    memory_free(results->totals);
    memory_free(results->proven);
    memory_free(results->parts);
    memory_free(results);
}

int64_t ww_results_query_count(const ww_results *results)
{
    return results ? results->query_count : 0;
}

static bool has_query(const ww_results *results, int64_t query)
{
    return results && query >= 0 && query < results->query_count;
}

int64_t ww_results_count(const ww_results *results, int64_t query)
{
    return has_query(results, query) ? results->starts[query + 1] - results->starts[query] : 0;
}

int64_t ww_results_total(const ww_results *results, int64_t query)
{
    if (!results || !results->totals)
        return ww_results_count(results, query);
    return has_query(results, query) ? results->totals[query] : 0;
}

int64_t ww_results_proven(const ww_results *results, int64_t query)
{
    if (!results || !results->proven)
        return ww_results_count(results, query);
    return has_query(results, query) ? results->proven[query] : 0;
}

const int64_t *ww_results_rows(const ww_results *results, int64_t query)
{
    return has_query(results, query) ? results->rows + results->starts[query] : NULL;
}

const int64_t *ww_results_handles(const ww_results *results, int64_t query)
{
    return has_query(results, query) ? results->handles + results->starts[query] : NULL;
}

const float *ww_results_scores(const ww_results *results, int64_t query)
{
    return has_query(results, query) ? results->scores + results->starts[query] : NULL;
}

/* Returns a hit's number over all queries, or -1 if there is no such hit. */
static int64_t hit_number(const ww_results *results, int64_t query, int64_t hit)
{
    return hit >= 0 && hit < ww_results_count(results, query) ? results->starts[query] + hit : -1;
}

const char *ww_results_id(const ww_results *results, int64_t query, int64_t hit)
{
    const int64_t number = hit_number(results, query, hit);
    return number >= 0 && results->ids && results->ids[number] >= 0 ? results->text + results->ids[number] : NULL;
}

const char *ww_results_payload(const ww_results *results, int64_t query, int64_t hit)
{
    const int64_t number = hit_number(results, query, hit);
    return number >= 0 && results->payloads && results->payloads[number] >= 0 ? results->text + results->payloads[number]
                                                                              : NULL;
}

const char *ww_results_text(const ww_results *results, int64_t query, int64_t hit)
{
    const int64_t number = hit_number(results, query, hit);
    return number >= 0 && results->texts && results->texts[number] >= 0 ? results->text + results->texts[number] : NULL;
}

const ww_hit_parts *ww_results_parts(const ww_results *results, int64_t query)
{
    return has_query(results, query) && results->parts ? results->parts + results->starts[query] : NULL;
}

const float *ww_results_vector(const ww_results *results, int64_t query, int64_t hit)
{
    const int64_t number = hit_number(results, query, hit);
    return number >= 0 && results->vectors && results->rows[number] >= 0 ? results->vectors + number * results->dim : NULL;
}

int ww_results_sparse(const ww_results *results, int64_t query, int64_t hit, ww_sparse_vector *vector)
{
    const int64_t number = hit_number(results, query, hit);
    const bool there = number >= 0 && results->sparse && results->sparse[number].count > 0;
    if (vector)
        *vector = there ? results->sparse[number] : (ww_sparse_vector){0};
    return there;
}

int ww_results_multi(const ww_results *results, int64_t query, int64_t hit, ww_multivector *vector)
{
    const int64_t number = hit_number(results, query, hit);
    const bool there = number >= 0 && results->multi && results->multi[number].count > 0;
    if (vector)
        *vector = there ? results->multi[number] : (ww_multivector){0};
    return there;
}

STRUCT_INIT(ww_results_columns, {0})

ww_status ww_results_describe(const ww_results *results, ww_results_columns *columns)
{
    FLOAT_GUARD();
    if (!results)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_results_describe: results is NULL");
    const ww_results_columns ours = {.query_count = results->query_count,
                                     .hit_count = results_hits(results),
                                     .starts = results->starts,
                                     .rows = results->rows,
                                     .handles = results->handles,
                                     .scores = results->scores,
                                     .totals = results->totals,
                                     .ids = results->ids,
                                     .payloads = results->payloads,
                                     .text = results->text_bytes > 0 ? results->text : NULL,
                                     .text_bytes = (int64_t)results->text_bytes,
                                     .vectors = results->vectors,
                                     .dim = results->dim,
                                     .proven = results->proven,
                                     .texts = results->texts,
                                     .parts = results->parts};
    return struct_write(columns, &ours, sizeof ours, "ww_results_describe", "ww_results_columns");
}
