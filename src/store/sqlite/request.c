/* Reading what a SELECT asks for.
 *
 * A search has bounds on f32 scores, SQL has f64 distances. To find exactly the rows whose distance is at most the radius, the
 * bound is the last f32 score whose distance, computed as for the column, is still within it. Bisection over all f32 finds it,
 * because the distance is monotonic in the score.
 */
#include "store/sqlite/request.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "vectors/collection.h"

double distance_of_score(ww_metric metric, float score)
{
    return metric == WW_L2 ? (double)score : metric == WW_DOT ? -(double)score : 1.0 - (double)score;
}

/* The finite f32 in ascending order, as integers. */
static float float_of_order(int64_t order)
{
    const uint32_t bits = order < 0 ? 0x80000000u | (uint32_t)-order : (uint32_t)order;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum { ORDER_MAX = 0x7f7fffff }; /* of FLT_MAX */

static bool is_within(ww_metric metric, float score, double distance_max)
{
    return distance_of_score(metric, score) <= distance_max;
}

/* Converts a radius, or a term `distance <= radius`, to a bound on f32 scores: a score is within the bound exactly if the f64
 * that SQL sees is within the radius. Returns false if no score is. */
static bool bound_of_distance(ww_metric metric, double distance_max, float *bound)
{
    if (isnan(distance_max))
        return false;
    const bool less_is_nearer = metric == WW_L2;
    int64_t inside = less_is_nearer ? 0 : ORDER_MAX; /* the best possible score */
    int64_t outside = less_is_nearer ? (int64_t)ORDER_MAX + 1 : -(int64_t)ORDER_MAX - 1;
    if (!is_within(metric, float_of_order(inside), distance_max))
        return false;
    while (inside - outside > 1 || outside - inside > 1) {
        const int64_t middle = inside + (outside - inside) / 2;
        if (is_within(metric, float_of_order(middle), distance_max))
            inside = middle;
        else
            outside = middle;
    }
    *bound = float_of_order(inside);
    return true;
}

/* The same for a term `score >= bound`, or `score <= bound` for l2. */
static bool bound_of_score(ww_metric metric, double score, float *bound)
{
    if (metric == WW_L2)
        return bound_of_distance(WW_L2, score, bound);
    return bound_of_distance(WW_DOT, -score, bound); /* for dot the distance is exactly the negative score */
}

void request_free(search_request *request)
{
    vector_buffer_free(&request->query);
    sparse_text_free(&request->sparse);
    memory_free(request->filter);
    parameters_free(&request->parameters);
    filter_places_free(&request->handles);
    *request = (search_request){.k = -1};
}

ww_status request_query(const table *t, sqlite3_value *value, search_request *request)
{
    ww_status status = vector_read(value, t->arguments.type, t->arguments.dim, &request->query);
    if (status == WW_OK)
        status = table_check_model(t, value);
    if (status != WW_OK || vector_is_finite(request->query.values, request->query.dim))
        return status;
    return ww_fail(WW_INVALID_ARGUMENT, "the values of the query are so large that its squared norm is not finite");
}

ww_status request_sparse(sqlite3_value *value, search_request *request)
{
    if (sqlite3_value_type(value) == SQLITE_NULL)
        return ww_fail(WW_INVALID_ARGUMENT, "sparse is NULL; a query is {\"indices\": [3, 7], \"values\": [0.5, 1]}");
    request->by_sparse = true;
    return sparse_text_read(value, &request->sparse);
}

ww_status request_modifier(sqlite3_value *value, search_request *request)
{
    const char *name = sqlite3_value_type(value) == SQLITE_NULL ? NULL : (const char *)sqlite3_value_text(value);
    if (name && strcmp(name, "idf") != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "modifier is '%s'; it must be idf, or be left out", name);
    request->idf = name != NULL;
    return WW_OK;
}

ww_status request_k(sqlite3_value *value, search_request *request)
{
    const int type = sqlite3_value_numeric_type(value);
    const double real = type == SQLITE_FLOAT ? sqlite3_value_double(value) : 0.0;
    if (type != SQLITE_INTEGER && !(type == SQLITE_FLOAT && real == floor(real) && fabs(real) < 1e15))
        return ww_fail(WW_INVALID_ARGUMENT, "k is %s; it must be an integer", value_kind(value));
    request->k = sqlite3_value_int64(value);
    if (request->k < 1)
        return ww_fail(WW_OUT_OF_RANGE, "k is %lld; it must be at least 1", (long long)request->k);
    if (request->k > WW_K_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "k is %lld; the maximum is %d; ORDER BY distance LIMIT %lld without k gives more",
                       (long long)request->k, WW_K_MAX, (long long)request->k);
    return WW_OK;
}

static bool is_number(sqlite3_value *value)
{
    const int type = sqlite3_value_numeric_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* Keeps the tightest of several bounds. */
static void tighten(search_request *request, ww_metric metric, bool possible, float bound)
{
    const bool tighter = metric == WW_L2 ? bound < request->bound : bound > request->bound;
    request->finds_nothing |= !possible;
    if (possible && (!request->has_bound || tighter)) {
        request->has_bound = true;
        request->bound = bound;
    }
}

static ww_status read_nprobe(sqlite3_value *value, search_request *request)
{
    if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER || sqlite3_value_int64(value) < 1)
        return ww_fail(WW_INVALID_ARGUMENT, "nprobe must be a whole number, 1 or more; leave it out for an exact search");
    request->nprobe = sqlite3_value_int64(value);
    return WW_OK;
}

static ww_status read_recall(sqlite3_value *value, search_request *request)
{
    const double recall = is_number(value) ? sqlite3_value_double(value) : 0.0;
    if (!(recall > 0.0 && recall <= 1.0))
        return ww_fail(WW_INVALID_ARGUMENT, "recall must be a number above 0 and at most 1; leave it out for an exact search");
    request->recall = (float)recall;
    return WW_OK;
}

static ww_status read_radius(sqlite3_value *value, search_request *request)
{
    const ww_metric metric = request->metric;
    if (!is_number(value))
        return ww_fail(WW_INVALID_ARGUMENT, "radius is %s; it must be a number", value_kind(value));
    const double radius = sqlite3_value_double(value);
    if (metric == WW_L2 && radius < 0.0)
        return ww_fail(WW_OUT_OF_RANGE, "radius is %g; a distance is not negative", radius);
    float bound = 0.0f;
    const bool possible = bound_of_distance(metric, radius, &bound);
    tighten(request, metric, possible, bound);
    return WW_OK;
}

/* SQLite checks the term again, so a value that is not a number is ignored here. */
static void read_term(unsigned bit, sqlite3_value *value, search_request *request)
{
    float bound = 0.0f;
    if (!is_number(value))
        return;
    const double number = sqlite3_value_double(value);
    const bool possible = bit == PLAN_DISTANCE_MAX ? bound_of_distance(request->metric, number, &bound)
                                                   : bound_of_score(request->metric, number, &bound);
    tighten(request, request->metric, possible, bound);
}

ww_status request_filter_text(sqlite3_value *value, search_request *request)
{
    if (sqlite3_value_type(value) != SQLITE_TEXT)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "filter is %s; it must be the text of an SQL expression; leave it out to search all rows",
                       value_kind(value));
    const char *text = (const char *)sqlite3_value_text(value);
    const size_t length = (size_t)sqlite3_value_bytes(value);
    if (text && strlen(text) != length)
        return ww_fail(WW_INVALID_ARGUMENT, "filter: a NUL at byte %zu of the text", strlen(text) + 1);
    request->filter = text ? memory_copy_text(text, length) : NULL;
    return request->filter ? WW_OK : memory_failed("a filter", length);
}

/* A value that is not an integer cannot be a handle, so it admits no row. */
static ww_status append_handle(sqlite3_value *value, filter_places *handles)
{
    if (sqlite3_value_numeric_type(value) == SQLITE_INTEGER ||
        (is_number(value) && sqlite3_value_double(value) == (double)sqlite3_value_int64(value)))
        return filter_places_append(handles, sqlite3_value_int64(value));
    return WW_OK;
}

static ww_status read_list(sqlite3_value *list, filter_places *handles)
{
    sqlite3_value *value = NULL;
    ww_status status = WW_OK;
    int code = sqlite3_vtab_in_first(list, &value);
    while (code == SQLITE_OK && value && status == WW_OK) {
        status = append_handle(value, handles);
        code = sqlite3_vtab_in_next(list, &value);
    }
    if (status == WW_OK && code == SQLITE_NOMEM)
        return memory_failed("a list of rowids", 0);
    if (status == WW_OK && code != SQLITE_OK && code != SQLITE_DONE)
        return ww_fail(WW_INTERNAL, "the list of rowids cannot be read (SQLite's code %d)", code);
    return status;
}

static int compare_handles(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sort_handles(filter_places *handles)
{
    if (handles->count > 1)
        qsort(handles->places, (size_t)handles->count, sizeof *handles->places, compare_handles);
}

/* Intersects two sorted lists. */
static void keep_common(filter_places *handles, const filter_places *others)
{
    int64_t kept = 0;
    for (int64_t i = 0, j = 0; i < handles->count && j < others->count;) {
        const int order = compare_handles(&handles->places[i], &others->places[j]);
        if (order == 0)
            handles->places[kept++] = handles->places[i];
        i += order <= 0;
        j += order > 0;
    }
    handles->count = kept;
}

/* Reads a list or a single rowid, and keeps the rows that are in all lists so far. */
static ww_status read_handles(unsigned bit, sqlite3_value *value, search_request *request)
{
    filter_places read = {0};
    const ww_status status = bit == PLAN_ROWID_IN ? read_list(value, &read) : append_handle(value, &read);
    sort_handles(&read);
    if (status == WW_OK && request->has_handles)
        keep_common(&read, &request->handles);
    filter_places_free(&request->handles);
    request->handles = read;
    request->has_handles = true;
    return status;
}

static ww_status read_argument(const table *t, unsigned bit, sqlite3_value *value, search_request *request)
{
    switch (bit) {
    case PLAN_MATCH:
        return request->by_sparse ? request_sparse(value, request) : request_query(t, value, request);
    case PLAN_K:
        return request_k(value, request);
    case PLAN_RADIUS:
        return read_radius(value, request);
    case PLAN_FILTER:
        return request_filter_text(value, request);
    case PLAN_PARAMETERS:
        return parameters_read(t->db, value, &request->parameters);
    case PLAN_NPROBE:
        return read_nprobe(value, request);
    case PLAN_RECALL:
        return read_recall(value, request);
    case PLAN_MODIFIER:
        return request_modifier(value, request);
    case PLAN_ROWID_IN:
    case PLAN_ROWID:
        return read_handles(bit, value, request);
    default:
        read_term(bit, value, request);
        return WW_OK;
    }
}

ww_status request_read(const table *t, unsigned plan, sqlite3_value **values, search_request *request)
{
    ww_status status = WW_OK;
    int next = 0;
    request->by_sparse = plan & PLAN_SPARSE;
    request->metric = request->by_sparse ? WW_DOT : t->arguments.metric;
    for (int i = 0; i < PLAN_ARGUMENTS; i++)
        for (int j = 0; status == WW_OK && j < plan_values(plan, 1u << i); j++)
            status = read_argument(t, 1u << i, values[next++], request);
    return status;
}

ww_status request_filter(table *t, const search_request *request, const kept_filter **found)
{
    const filter_where where = {request->filter, request->parameters.values, request->parameters.count, NULL};
    const filter_target target = {.db = t->db, .schema = t->schema, .collection = t->name};
    return kept_filters_find(&t->filters, &where, &target, found);
}
