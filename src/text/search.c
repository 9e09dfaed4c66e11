/* Searching for texts, and the text around a hit.
 *
 * The payload of a chunk has its number (documents.c), from which the ids of its neighbours follow. The places of chunks in the
 * document show which bytes they share, so the text around a hit repeats nothing. */
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/structs.h"
#include "text/text_state.h"
#include "vectors/query/results.h"

enum { K_DEFAULT = 10, RERANKED_DEFAULT = 100 };

STRUCT_INIT(ww_text_query, {0})

/* ---- the text around a hit ----------------------------------------------------------------------------------------------- */

/* Where a chunk is in its document. */
typedef struct chunk_place {
    const char *source; /* JSON */
    int64_t number, start, end;
} chunk_place;

static bool number_of(const char *object, const char *field, int64_t *number)
{
    const char *value = json_find(object, field, strlen(field));
    const json_number read = value && json_type_of(value) == JSON_NUMBER ? json_number_of(value) : (json_number){0};
    *number = read.integer;
    return read.is_integer && read.integer >= 0;
}

static bool place_read(const char *payload, chunk_place *place)
{
    const char *object = payload ? json_root(payload) : NULL;
    if (!object || json_type_of(object) != JSON_OBJECT)
        return false;
    place->source = json_find(object, "source", strlen("source"));
    return place->source && json_type_of(place->source) == JSON_TEXT && number_of(object, "chunk", &place->number) &&
           number_of(object, "start", &place->start) && number_of(object, "end", &place->end) && place->start <= place->end;
}

static bool same_source(const chunk_place *a, const chunk_place *b)
{
    const size_t length = (size_t)(json_end(a->source) - a->source);
    return length == (size_t)(json_end(b->source) - b->source) && memcmp(a->source, b->source, length) == 0;
}

/* Reads the chunks from `expand` before a hit to `expand` after it, by their ids. */
static ww_status get_neighbours(ww_text *t, const char *id, const chunk_place *place, int32_t expand, ww_results **found)
{
    const int64_t first = max_i64(0, place->number - expand), count = place->number + expand - first + 1;
    const size_t stem = strlen(id) - strlen(strrchr(id, '#'));
    char(*ids)[WW_ID_BYTES_MAX + 1] = memory_alloc((size_t)count * sizeof *ids);
    const char **list = memory_alloc((size_t)count * sizeof *list);
    ww_get get = ww_get_default();
    ww_status status = ids && list ? WW_OK : memory_failed("the neighbours of a chunk", (size_t)count * sizeof *ids);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const int64_t number = first + i;
        snprintf(ids[i], sizeof ids[i], "%.*s#%lld", (int)stem, id, (long long)number);
        list[i] = ids[i];
    }
    get.count = count;
    get.ids = list;
    get.fetch = WW_FETCH_PAYLOADS | WW_FETCH_TEXTS;
    if (status == WW_OK)
        status = ww_collection_get(t->collection, &get, found);
    memory_free(list);
    memory_free(ids);
    return status;
}

/* Joins the texts of consecutive chunks, including the hit, without the bytes that they share. Returns NULL if there is not
 * enough memory. */
static char *join(const ww_results *chunks, const chunk_place *hit)
{
    size_t bytes = 1, at = 0;
    int64_t end = -1;
    for (int64_t i = 0; i < ww_results_count(chunks, 0); i++)
        bytes += ww_results_text(chunks, 0, i) ? strlen(ww_results_text(chunks, 0, i)) : 0;
    char *joined = memory_alloc(bytes);
    if (!joined)
        return NULL;
    for (int64_t i = 0; i < ww_results_count(chunks, 0); i++) {
        const char *text = ww_results_text(chunks, 0, i);
        chunk_place place;
        if (!text || !place_read(ww_results_payload(chunks, 0, i), &place) || !same_source(&place, hit))
            continue;
        if (end >= 0 && place.start > end) { /* a neighbour is missing: only the chunks on the hit's side are used */
            if (place.number > hit->number)
                break;
            at = 0;
            end = -1;
        }
        const size_t length = strlen(text), shared = end >= 0 ? (size_t)min_i64(end - place.start, (int64_t)length) : 0;
        memcpy(joined + at, text + shared, length - shared);
        at += length - shared;
        end = place.end;
    }
    joined[at] = '\0';
    return joined;
}

static ww_status expand_hit(ww_text *t, ww_results *results, int64_t hit, int32_t expand)
{
    const char *id = results->ids && results->ids[hit] >= 0 ? results->text + results->ids[hit] : NULL;
    const char *payload = results->payloads && results->payloads[hit] >= 0 ? results->text + results->payloads[hit] : NULL;
    ww_results *chunks = NULL;
    chunk_place place;
    if (!id || !strrchr(id, '#') || !place_read(payload, &place))
        return WW_OK; /* the hit is not a chunk */
    ww_status status = get_neighbours(t, id, &place, expand, &chunks);
    char *joined = status == WW_OK ? join(chunks, &place) : NULL;
    if (status == WW_OK)
        status = joined ? results_put(results, &results->texts[hit], joined, strlen(joined))
                        : memory_failed("the text around a hit", 0);
    memory_free(joined);
    ww_results_destroy(chunks);
    return status;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

static ww_status check_query(const ww_text_query *q, const char *function)
{
    if (q->count < 0 || (q->count > 0 && !q->texts))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld, and texts is %s", function, (long long)q->count,
                       q->texts ? "given" : "NULL");
    for (int64_t i = 0; i < q->count; i++)
        if (!q->texts[i])
            return ww_fail(WW_INVALID_ARGUMENT, "%s: text %lld is NULL", function, (long long)i);
    if (q->mode != WW_TEXT_VECTOR && q->mode != WW_TEXT_WORDS && q->mode != WW_TEXT_HYBRID)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: mode is %d; it must be WW_TEXT_VECTOR, WW_TEXT_WORDS or WW_TEXT_HYBRID",
                       function, (int)q->mode);
    if (q->expand < 0 || q->expand > WW_EXPAND_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: expand is %d; it must be 0 to %d", function, q->expand, WW_EXPAND_MAX);
    if (q->reranked < 0 || (q->reranked > 0 && !q->rerank))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: reranked is %lld, and rerank is %s", function, (long long)q->reranked,
                       q->rerank ? "given" : "NULL");
    return WW_OK;
}

/* Makes the collection's query: the caller's, with the vectors and words added. */
static ww_status make_query(ww_text *t, const ww_text_query *q, ww_match *match, ww_query *made, float **vectors)
{
    const text_list list = {q->texts, q->count, t->kept.query_prefix, NULL, NULL};
    ww_status status = WW_OK;
    *made = ww_query_default();
    made->k = K_DEFAULT;
    made->fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS;
    if (q->query)
        status = struct_read(made, sizeof *made, q->query, "ww_text_search", "ww_query");
    /* With a diversity, vectors are compared, so the vector of the text is needed, too. */
    if (status == WW_OK && q->count > 0 && (q->mode != WW_TEXT_WORDS || q->diversity))
        status = text_embed(t, &list, vectors);
    *match = ww_match_default();
    match->texts = q->texts;
    match->mode = q->mode == WW_TEXT_WORDS ? WW_MATCH_TEXT : WW_MATCH_HYBRID;
    match->fuse = q->fuse;
    match->candidates = q->candidates;
    made->struct_size = sizeof *made;
    made->queries = *vectors;
    made->query_tensor = NULL;
    made->query_count = q->count;
    made->query_stride = 0;
    made->dim = t->info.width;
    made->match = q->mode == WW_TEXT_VECTOR ? NULL : match;
    made->fetch |= q->expand > 0 ? WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS : 0;
    made->fetch |= q->rerank ? WW_FETCH_TEXTS : 0;
    return status;
}

/* ---- reranking
   --------------------------------------------------------------------------------------------------------------- */

/* Scores the hits of one text with the model. A row without a text counts as an empty text. */
static ww_status score_hits(const ww_text_query *q, const ww_results *found, int64_t number, float *scores)
{
    const int64_t count = ww_results_count(found, number);
    const char **texts = memory_alloc((size_t)(count + 1) * sizeof *texts);
    if (!texts)
        return memory_failed("texts of hits", (size_t)count * sizeof *texts);
    for (int64_t i = 0; i < count; i++) {
        const char *text = ww_results_text(found, number, i);
        texts[i] = text ? text : "";
    }
    const ww_status status = ww_model_rerank(q->rerank, q->texts[number], texts, NULL, (size_t)count, scores, NULL, NULL);
    memory_free(texts);
    return status;
}

/* Replaces `found` by the best `k` hits, in the order of the model's scores. */
static ww_status rerank_hits(const ww_text_query *q, int64_t k, ww_results **found)
{
    const int64_t hits = (*found)->starts[(*found)->query_count];
    ww_results *reranked = NULL;
    float *scores = memory_alloc((size_t)(hits + 1) * sizeof *scores);
    ww_status status = scores ? WW_OK : memory_failed("scores of hits", (size_t)hits * sizeof *scores);
    for (int64_t i = 0; i < q->count && status == WW_OK; i++)
        status = score_hits(q, *found, i, scores + (*found)->starts[i]);
    if (status == WW_OK)
        status = ww_results_rerank(*found, scores, k, &reranked);
    memory_free(scores);
    if (status == WW_OK) {
        ww_results_destroy(*found);
        *found = reranked;
    }
    return status;
}

ww_status ww_text_search(ww_text *text, const ww_text_query *query, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_text_search";
    ww_text_query read;
    ww_query asked;
    ww_match match;
    ww_results *found = NULL;
    float *vectors = NULL;
    ww_status status = text_check_handle(text, function);
    if (status == WW_OK && !results)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: results is NULL", function);
    if (status == WW_OK)
        status = struct_read(&read, sizeof read, query, function, "ww_text_query");
    if (status == WW_OK)
        status = check_query(&read, function);
    if (status != WW_OK)
        return status;
    status = make_query(text, &read, &match, &asked, &vectors);
    const int64_t k = asked.k;
    if (read.rerank)
        asked.k = max_i64(k, read.reranked ? read.reranked : RERANKED_DEFAULT);
    if (status == WW_OK)
        status = read.diversity || read.grouping
                     ? ww_collection_rank(text->collection, &asked, read.diversity, read.grouping, read.candidates, &found)
                     : ww_collection_query(text->collection, &asked, &found);
    if (status == WW_OK && read.rerank)
        status = rerank_hits(&read, k, &found);
    for (int64_t i = 0; status == WW_OK && read.expand > 0 && i < found->starts[found->query_count]; i++)
        status = expand_hit(text, found, i, read.expand);
    memory_free(vectors);
    if (status == WW_OK)
        *results = found;
    else
        ww_results_destroy(found);
    return status;
}
