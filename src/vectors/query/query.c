/* The entry point of every search. A query is read and checked here, once, and then passed on unchanged: to the device
 * (search.c) or to the store that has the collection. */
#include "vectors/query/query.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/structs.h"
#include "base/text.h"
#include "vectors/filter/filter.h"
#include "vectors/multi/multi.h"
#include "vectors/query/results.h"
#include "vectors/query/search.h"
#include "vectors/sparse/sparse.h"

enum {
    ITEM_NUMBERS = 1 << 16, /* numbers of queries that a thread checks at a time */
    ITEMS_MIN = 4           /* with fewer such pieces, waking threads would take longer */
};

STRUCT_INIT(ww_query, {0})
STRUCT_INIT(ww_search_stats, {0})
STRUCT_INIT(ww_match, {0})

void query_tell_stats(const ww_query *query, const search_stats *found)
{
    const ww_search_stats stats = {.rows_screened = found->rows_screened,
                                   .rows_kept = found->rows_kept,
                                   .rows_scored = found->rows_scored,
                                   .fallback_queries = found->fallback_queries,
                                   .certificate = found->certificate,
                                   .repeated_queries = found->repeated_queries,
                                   .lists_read = found->lists_read,
                                   .list_rows_read = found->list_rows_read,
                                   .list_bytes_read = found->list_bytes_read};
    if (query->stats)
        /* query_check() has checked the struct. */
        (void)struct_write(query->stats, &stats, sizeof stats, "search", "ww_search_stats");
}

/* ---- finite queries ------------------------------------------------------------------------------------------------------ */

typedef struct finite_job {
    const ww_query *query;
    int64_t item_queries;
    atomic_int_least64_t first_bad; /* query_count if there is none */
} finite_job;

static void find_not_finite(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    finite_job *job = context;
    const ww_query *query = job->query;
    const int64_t end = min_i64((item + 1) * job->item_queries, query->query_count);
    for (int64_t q = item * job->item_queries; q < end; q++) {
        if (vector_is_finite(query->queries + q * query->query_stride, query->dim))
            continue;
        int64_t first = atomic_load(&job->first_bad);
        while (q < first && !atomic_compare_exchange_weak(&job->first_bad, &first, q))
            continue;
        return;
    }
}

/* Returns the first query that is not finite, or query_count. Many queries are checked by the device's threads, because one
 * thread may take longer to read them than the search takes. */
static int64_t first_not_finite(ww_collection *c, const ww_query *query)
{
    finite_job job = {.query = query, .item_queries = ITEM_NUMBERS / query->dim + 1};
    atomic_init(&job.first_bad, query->query_count);
    const int64_t items = divide_up_i64(query->query_count, job.item_queries);
    if (items < ITEMS_MIN) {
        pool_run_here(items, find_not_finite, &job);
        return atomic_load(&job.first_bad);
    }
    ww_device *device = c->operations->device(c);
    pool *threads = device ? device->backend->threads(device) : NULL;
    if (threads)
        (void)pool_run(threads, items, find_not_finite, NULL, &job);
    else
        pool_run_here(items, find_not_finite, &job);
    ww_device_close(device);
    return atomic_load(&job.first_bad);
}

static ww_status fail_query(const ww_collection *c, int64_t number, const float *query)
{
    char fault[VECTOR_FAULT_BYTES];
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': query %lld: %s", c->name, (long long)number,
                   vector_fault(query, c->dim, fault));
}

ww_status queries_check_finite(const ww_collection *c, const float *queries, int64_t count)
{
    for (int64_t q = 0; q < count; q++)
        if (!vector_is_finite(queries + q * c->dim, c->dim))
            return fail_query(c, q, queries + q * c->dim);
    return WW_OK;
}

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

/* Uses the tensor as f32 in place: as the query's `queries` if the host can read it there, otherwise as its `query_tensor`. */
static ww_status take_tensor(const ww_collection *c, const char *function, ww_query *query, tensor_rows *held)
{
    static const ww_dtype types[] = {WW_F32, WW_F16, WW_BF16, WW_I8, WW_U8};
    const tensor_asked asked = {function, "query_tensor", query->query_tensor};
    if (query->queries)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: queries and query_tensor are both given; give one of them", function);
    ww_status status = tensor_rows_check(&asked, c, &query->query_count, &query->dim);
    if (status != WW_OK)
        return status;
    bool known = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        known = known || ww_tensor_dtype(query->query_tensor) == types[i];
    if (!known)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_tensor is of %s; give f32, f16, bf16, i8 or u8", function,
                       ww_dtype_name(ww_tensor_dtype(query->query_tensor)));
    query->query_stride = c->dim;
    if (query->query_count == 0)
        return WW_OK;
    status = tensor_rows_make(query->query_tensor, WW_F32, held);
    if (status == WW_OK && tensor_rows_on_host(held))
        query->queries = tensor_rows_data(held);
    query->query_tensor = &held->dense;
    return status;
}

static ww_status check_queries(ww_collection *c, const char *function, ww_query *query)
{
    if (query->query_count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_count is %lld; it must not be negative", function,
                       (long long)query->query_count);
    if (query->sparse || query->multi)
        return WW_OK; /* checked when they were read */
    if (query->dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "collection '%s' has dimension %d, the queries have %d", c->name, c->dim,
                       query->dim);
    if (query->query_stride == 0)
        query->query_stride = query->dim;
    if (query->query_stride < query->dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_stride is %lld; it must be at least dim, %d", function,
                       (long long)query->query_stride, query->dim);
    if (query->query_tensor && !query->queries)
        return WW_OK; /* on a GPU: the backend checks them there */
    if (query->match && query->match->mode == WW_MATCH_TEXT && !query->queries)
        return WW_OK; /* the search is by words only */
    if (query->query_count > 0 && !query->queries)
        return fail_null(function, "queries");
    const int64_t bad = first_not_finite(c, query);
    return bad < query->query_count ? fail_query(c, bad, query->queries + bad * query->query_stride) : WW_OK;
}

/* Checks what each mode needs, and that no field is set that only another mode reads. */
static ww_status check_mode(const ww_collection *c, const char *function, const ww_query *query)
{
    if (query->nprobe < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: nprobe is %lld; it must not be negative", function, (long long)query->nprobe);
    if (!(query->recall >= 0.0f && query->recall <= 1.0f))
        return ww_fail(WW_OUT_OF_RANGE, "%s: recall is %g; it must be 0 to 1", function, (double)query->recall);
    if (query->nprobe > 0 && query->recall > 0.0f)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: nprobe and recall are both given; give one of them", function);
    if ((query->nprobe > 0 || query->recall > 0.0f) && query->mode != WW_QUERY_NEAREST)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: nprobe and recall are for the nearest; a range reads all rows", function);
    if (query->mode == WW_QUERY_NEAREST) {
        if (query->bound != 0.0f || query->limit != 0)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: bound and limit are for ranges, but mode is the nearest k", function);
        if (query->k < 0)
            return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; it must not be negative", function, query->k);
        if (query->k > WW_K_MAX)
            return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; the maximum is %d", function, query->k, WW_K_MAX);
        return WW_OK;
    }
    if (query->mode != WW_QUERY_RANGE)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: mode is %d; it must be WW_QUERY_NEAREST or WW_QUERY_RANGE", function,
                       (int)query->mode);
    if (query->k != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: k is for the nearest; for a range set limit", function);
    if (isnan(query->bound))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: bound is not a number", function);
    if (!query->sparse && !query->multi && c->metric == WW_L2 && query->bound < 0.0f)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: bound is %g; a distance must not be negative", function, (double)query->bound);
    if (query->limit < 0 || query->limit > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: limit is %lld; it must be 0 to %lld", function, (long long)query->limit,
                       (long long)WW_ROWS_MAX);
    return WW_OK;
}

static ww_status check_where(const ww_collection *c, const char *function, const ww_query *query)
{
    if (query->parameter_count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: parameter_count is %lld; it must not be negative", function,
                       (long long)query->parameter_count);
    if (query->parameter_count > 0 && !query->parameters)
        return fail_null(function, "parameters");
    if (query->parameter_count > 0 && !query->where)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: there are %lld parameters but no where", function,
                       (long long)query->parameter_count);
    if (!query->where || c->operations->where)
        return WW_OK;
    return ww_fail(
        WW_INVALID_ARGUMENT,
        "%s: collection '%s' is not in a store, and only a store evaluates a where; give a mask, or keep the collection "
        "in a store",
        function, c->name);
}

/* Reads the caller's struct of a search by words into `match`, which the query then points to. */
static bool counts_are_valid(const ww_word_counts *counts)
{
    bool valid = counts->texts >= 0 && counts->words >= 0 && counts->count >= 0 && (counts->count == 0 || counts->found);
    for (int64_t i = 0; valid && i < counts->count; i++)
        valid = counts->found[i] >= 0;
    return valid;
}

static ww_status take_match(const ww_collection *c, const char *function, ww_query *query, ww_match *match)
{
    ww_status status = struct_read(match, sizeof *match, query->match, function, "ww_match");
    if (status != WW_OK)
        return status;
    if (!c->operations->texts)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: collection '%s' is in memory, and only a store searches by words", function,
                       c->name);
    if (query->mode != WW_QUERY_NEAREST)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: a match is for the nearest, not for a range", function);
    if (match->mode != WW_MATCH_HYBRID && match->mode != WW_MATCH_TEXT)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: match->mode is %d; it must be WW_MATCH_HYBRID or WW_MATCH_TEXT", function,
                       (int)match->mode);
    if (match->candidates < 0 || match->candidates > WW_K_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: match->candidates is %lld; it must be 0 to %d", function,
                       (long long)match->candidates, WW_K_MAX);
    if (query->query_tensor)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: match and query_tensor are both given; with a match, give queries in host memory", function);
    if (query->query_count > 0 && !match->texts)
        return fail_null(function, "match->texts");
    for (int64_t i = 0; i < query->query_count; i++)
        if (!match->texts[i] || !utf8_check(match->texts[i], strlen(match->texts[i])))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: match->texts[%lld] is %s", function, (long long)i,
                           match->texts[i] ? "not UTF-8" : "NULL");
    for (int64_t i = 0; match->counts && i < query->query_count; i++)
        if (!counts_are_valid(&match->counts[i]))
            return ww_fail(WW_INVALID_ARGUMENT,
                           "%s: match->counts[%lld] needs numbers that are not negative, one for each word", function,
                           (long long)i);
    query->match = match;
    return WW_OK;
}

/* Refuses what a search by sparse vectors or multivectors, `what`, does not have. */
static ww_status check_other_vectors(const ww_collection *c, const char *function, const ww_query *query, const char *what)
{
    if (!c->operations->texts)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: collection '%s' is in memory, and only a store finds rows by %s; an index of them in memory is "
                       "another object",
                       function, c->name, what);
    const char *other = query->query_tensor                         ? "query_tensor"
                        : query->match                              ? "match"
                        : query->nprobe > 0 || query->recall > 0.0f ? "nprobe or recall"
                        : query->sparse && query->multi             ? "the other"
                                                                    : NULL;
    if (other)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s and %s are both given; give one of them", function, what, other);
    return query->query_count < 0 ? ww_fail(WW_INVALID_ARGUMENT, "%s: query_count is %lld; it must not be negative", function,
                                            (long long)query->query_count)
                                  : WW_OK;
}

/* Reads what the query says about sparse vectors into `asked`, which the query then points to. */
static ww_status take_sparse(const ww_collection *c, const char *function, ww_query *query, sparse_asked *asked)
{
    ww_status status = check_other_vectors(c, function, query, "sparse");
    if (status == WW_OK)
        status = sparse_asked_read(function, query, asked);
    query->sparse = &asked->query;
    return status;
}

static ww_status take_multi(const ww_collection *c, const char *function, ww_query *query, ww_multi_query *asked)
{
    ww_status status = check_other_vectors(c, function, query, "multi");
    if (status == WW_OK)
        status = multi_check_metric(c->name, c->metric);
    if (status == WW_OK)
        status = multi_asked_read(function, query, asked);
    query->multi = asked;
    return status;
}

ww_status query_read_rows_only(const char *function, const ww_query *callers, ww_query *query)
{
    const ww_status status = struct_read(query, sizeof *query, callers, function, "ww_query");
    if (status != WW_OK)
        return status;
    const char *field = query->queries || query->query_tensor     ? "queries"
                        : query->where || query->parameter_count  ? "where"
                        : query->filter                           ? "filter"
                        : query->fetch != 0                       ? "fetch"
                        : query->match                            ? "match"
                        : query->nprobe != 0 || query->recall > 0 ? "nprobe"
                        : query->sparse && query->multi           ? "both of sparse and multi"
                                                                  : NULL;
    if (field)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is given; this index in memory has rows and scores only", function, field);
    if (query->query_count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_count is %lld; it must not be negative", function,
                       (long long)query->query_count);
    return check_mode(NULL, function, query);
}

ww_status query_check_conditions(const ww_collection *c, const char *function, const ww_query *query)
{
    const ww_status status = check_where(c, function, query);
    return status == WW_OK ? filter_check_closed(query->filter, function) : status;
}

/* The memory that a query points to. */
typedef struct query_held {
    tensor_rows tensor;
    ww_match match;
    sparse_asked sparse;
    ww_multi_query multi;
} query_held;

static void query_release(query_held *held)
{
    tensor_rows_release(&held->tensor);
    sparse_asked_free(&held->sparse);
}

/* Reads the caller's query into `query` and checks all of it. `held` is all zero; the caller always calls query_release() on
 * it, also after a failure. */
static ww_status query_read(ww_collection *c, const char *function, const ww_query *callers, ww_query *query, query_held *held)
{
    ww_status status = struct_read(query, sizeof *query, callers, function, "ww_query");
    if (status == WW_OK)
        status = query_check_conditions(c, function, query);
    if (status == WW_OK)
        status = check_mode(c, function, query);
    if (status == WW_OK)
        status = fetch_check(function, query->fetch);
    if (status == WW_OK && query->mask_rows < 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: mask_rows is %lld; it must not be negative", function,
                         (long long)query->mask_rows);
    if (status == WW_OK && query->stats)
        status = struct_check(query->stats, function, "ww_search_stats");
    if (status == WW_OK && query->match)
        status = take_match(c, function, query, &held->match);
    if (status == WW_OK && query->sparse)
        status = take_sparse(c, function, query, &held->sparse);
    if (status == WW_OK && query->multi)
        status = take_multi(c, function, query, &held->multi);
    if (status == WW_OK && query->query_tensor)
        status = take_tensor(c, function, query, &held->tensor);
    return status == WW_OK ? check_queries(c, function, query) : status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

ww_status ww_collection_query(ww_collection *collection, const ww_query *query, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_query";
    ww_query asked;
    query_held held = {0};
    ww_status status = collection_check(collection, function);
    if (status != WW_OK)
        return status;
    if (!query || !results)
        return fail_null(function, query ? "results" : "query");
    status = query_read(collection, function, query, &asked, &held);
    CANCEL_BY(status == WW_OK ? asked.cancel : NULL);
    if (status == WW_OK)
        status = collection->operations->query(collection, &asked, results);
    query_release(&held);
    return status;
}

/* Refuses queries whose results do not fit in the caller's buffers. */
static ww_status check_for_buffers(const char *function, const ww_query *query)
{
    if (query->mode == WW_QUERY_RANGE)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: a search into buffers finds the nearest k, not ranges", function);
    if (query->match)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: match is given; a search into buffers does not search by words", function);
    if (query->sparse || query->multi)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is given; a search into buffers is by dense vectors", function,
                       query->sparse ? "sparse" : "multi");
    if (query->fetch != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: fetch is %u; a search into buffers gives rows and scores only", function,
                       query->fetch);
    return WW_OK;
}

ww_status ww_collection_search(ww_collection *collection, const ww_query *query, int64_t *rows, float *scores)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_search";
    ww_query asked;
    query_held held = {0};
    ww_status status = collection_check(collection, function);
    if (status != WW_OK)
        return status;
    if (!query)
        return fail_null(function, "query");
    status = query_read(collection, function, query, &asked, &held);
    CANCEL_BY(status == WW_OK ? asked.cancel : NULL);
    if (status == WW_OK)
        status = check_for_buffers(function, &asked);
    if (status == WW_OK && (asked.query_count == 0 || asked.k == 0))
        query_tell_stats(&asked, &(search_stats){.certificate = INFINITY});
    else if (status == WW_OK && (!rows || !scores))
        status = fail_null(function, rows ? "scores" : "rows");
    else if (status == WW_OK)
        status = collection->operations->search(collection, &asked, rows, scores);
    query_release(&held);
    return status;
}

ww_status ww_collection_count_words(ww_collection *collection, const char *text, ww_word_counts *counts)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_count_words";
    const ww_status status = collection_check(collection, function);
    if (status != WW_OK)
        return status;
    if (!text || !counts || !counts->found)
        return fail_null(function, !text ? "text" : !counts ? "counts" : "counts->found");
    if (!collection->operations->texts)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: collection '%s' is in memory, and only a store searches by words", function,
                       collection->name);
    if (counts->count < 0 || !utf8_check(text, strlen(text)))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s", function,
                       counts->count < 0 ? "counts->count is negative" : "text is not UTF-8");
    return collection->operations->count_words(collection, text, counts);
}
