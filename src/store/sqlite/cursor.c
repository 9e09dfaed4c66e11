/* The rows of a SELECT.
 *
 * A cursor holds results, which are copies, and no lock: between two calls the view is free for writers, and for other cursors
 * on the same table. An ordered search fetches more when its results are used up. Rows that its caller wrote in the meantime
 * may or may not be among them, but no row comes twice, because the search continues after the last score and place.
 */
#include "store/sqlite/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "store/sqlite/request.h"

enum { PIECE_FIRST = 32, PIECE_GROWTH = 4, PIECE_MAX = 32768, SCAN_ROWS = 256 };

typedef struct cursor {
    sqlite3_vtab_cursor base;
    unsigned plan;
    search_request request;
    ww_results *results;
    int64_t at, count;
    bool has_more;       /* another search may find more rows */
    int64_t piece_first; /* the number of the next hit to ask for */
    int64_t piece_count; /* how many hits to ask for then */
    int64_t changes;     /* the connection's count of changes at the last search */
    int64_t last_place;  /* place of the last row that SQLite got, -1 before the first */
    float last_score;
} cursor;

static table *table_of(const cursor *c)
{
    return (table *)c->base.pVtab;
}

int cursor_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **opened)
{
    (void)vtab;
    cursor *c = memory_alloc_zeroed(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    *opened = &c->base;
    return SQLITE_OK;
}

static void cursor_reset(cursor *c)
{
    ww_results_destroy(c->results);
    request_free(&c->request);
    *c = (cursor){.base = c->base, .request.k = -1, .last_place = -1};
}

int cursor_close(sqlite3_vtab_cursor *base)
{
    cursor_reset((cursor *)base);
    memory_free(base);
    return SQLITE_OK;
}

static uint32_t fetch_of(unsigned plan)
{
    return (plan & PLAN_WANTS_ID ? WW_FETCH_IDS : 0u) | (plan & PLAN_WANTS_PAYLOAD ? WW_FETCH_PAYLOADS : 0u) |
           (plan & PLAN_WANTS_VECTOR ? WW_FETCH_VECTORS : 0u) | (plan & PLAN_WANTS_TEXT ? WW_FETCH_TEXTS : 0u) |
           (plan & PLAN_WANTS_SPARSE ? WW_FETCH_SPARSE : 0u);
}

/* Looks up the places of the request's handles. */
static ww_status places_of_handles(view *v, const filter_places *handles, filter_places *places)
{
    ww_results *found = NULL;
    const view_list list = {.by = VIEW_BY_HANDLE, .count = handles->count, .numbers = handles->places};
    ww_status status = handles->count > 0 ? view_get(v, &list, &found) : WW_OK;
    const int64_t *rows = ww_results_rows(found, 0);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(found, 0); i++)
        if (rows[i] >= 0)
            status = filter_places_append(places, rows[i]);
    ww_results_destroy(found);
    return status;
}

static int compare_places(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Removes from `places` what is not in `others`. */
static ww_status intersect(filter_places *places, const filter_places *others)
{
    if (others->count == 0)
        places->count = 0;
    if (places->count == 0)
        return WW_OK;
    const size_t bytes = (size_t)others->count * sizeof *others->places;
    int64_t *sorted = memory_alloc(bytes);
    if (!sorted)
        return memory_failed("a list of places", bytes);
    memcpy(sorted, others->places, bytes);
    qsort(sorted, (size_t)others->count, sizeof *sorted, compare_places);
    int64_t kept = 0;
    for (int64_t i = 0; i < places->count; i++)
        if (bsearch(&places->places[i], sorted, (size_t)others->count, sizeof *sorted, compare_places))
            places->places[kept++] = places->places[i];
    places->count = kept;
    memory_free(sorted);
    return WW_OK;
}

/* Admits the rows of the filter, whose list is already in `only`, that have one of the handles. The lists belong to the table
 * or to `own` until the search is done. */
static ww_status admit(cursor *c, view *v, const filter_places *filtered, filter_places *own, view_places *only)
{
    if (!c->request.has_handles)
        return WW_OK;
    ww_status status = places_of_handles(v, &c->request.handles, own);
    if (status == WW_OK && filtered)
        status = intersect(own, filtered);
    *only = (view_places){own->places, own->count, 0};
    return status;
}

/* Without k and radius, the search returns all rows, piece by piece. */
static bool is_ordered(const cursor *c)
{
    return c->request.k < 0 && !c->request.has_bound;
}

/* A search by sparse vectors. An ordered one finds the hits that SQLite already got again, which cursor_more() leaves out. */
static ww_status ask_sparse(cursor *c, view *v, const view_places *only)
{
    const search_request *request = &c->request;
    const ww_sparse_query sparse = {.struct_size = sizeof sparse,
                                    .vectors = &request->sparse.sorted.vector,
                                    .modifier = request->idf ? WW_SPARSE_IDF : WW_SPARSE_PLAIN};
    ww_query query = {.query_count = 1, .fetch = fetch_of(c->plan), .sparse = &sparse};
    if (request->has_bound || is_ordered(c)) {
        query.mode = WW_QUERY_RANGE;
        query.bound = request->has_bound ? request->bound : -INFINITY;
        query.limit = is_ordered(c) ? c->piece_count : request->k >= 0 ? request->k : WW_ROWS_MAX;
    } else {
        query.k = (int32_t)request->k;
    }
    return view_sparse(v, &query, only, &c->results);
}

static ww_status ask(cursor *c, view *v, const view_places *only)
{
    const search_request *request = &c->request;
    ww_query query = {.queries = request->query.values,
                      .query_count = 1,
                      .query_stride = request->query.dim,
                      .dim = request->query.dim,
                      .nprobe = request->nprobe,
                      .recall = request->recall,
                      .fetch = fetch_of(c->plan)};
    const bool by_lists = request->nprobe > 0 || request->recall > 0.0f; /* SQLite itself checks bounds on distance and score */
    if (is_ordered(c) && (c->piece_first > 0 || c->piece_count > WW_K_MAX)) {
        query.limit = c->piece_count;
        return view_ranked(v, &query, only, c->piece_first, &c->results);
    }
    if (is_ordered(c)) { /* nearly always enough, and faster with the screen */
        query.k = (int32_t)c->piece_count;
    } else if (request->has_bound && !by_lists) {
        query.mode = WW_QUERY_RANGE;
        query.bound = request->bound;
        query.limit = request->k >= 0 ? request->k : WW_ROWS_MAX;
    } else {
        query.k = (int32_t)request->k;
    }
    return view_query(v, &query, only, &c->results);
}

ww_status table_reading_ended(table *t, ww_status status)
{
    if (status == WW_OK && view_preparations(t->view) != t->read_by)
        status = shadow_check(t, false);
    if (status != WW_OK && t->view)
        view_finalize(t->view);
    t->read_by = t->view ? view_preparations(t->view) : 0;
    return status;
}

/* Searches, or goes on with an ordered search, in the statement's read transaction. */
static ww_status cursor_search(cursor *c)
{
    table *t = table_of(c);
    view *v = NULL;
    view_places only = {0};
    const kept_filter *filtered = NULL;
    filter_places own = {0};
    ww_status status = table_view(t, &v);
    if (status == WW_OK && c->request.filter)
        status = request_filter(t, &c->request, &filtered);
    if (status == WW_OK && filtered)
        only = (view_places){filtered->places.places, filtered->places.count, filtered->number};
    if (status == WW_OK)
        status = view_begin(v, c->request.by_sparse ? VIEW_RECORD : VIEW_MEMORY);
    if (status != WW_OK)
        return table_reading_ended(t, status);
    status = table_check_record(t, view_record(v));
    if (status == WW_OK)
        status = admit(c, v, filtered ? &filtered->places : NULL, &own, &only);
    if (status == WW_OK)
        status = (c->request.by_sparse ? ask_sparse : ask)(c, v, filtered || c->request.has_handles ? &only : NULL);
    view_end(v);
    filter_places_free(&own);
    return table_reading_ended(t, status);
}

static ww_status cursor_get(cursor *c, const view_list *list)
{
    table *t = table_of(c);
    view *v = NULL;
    ww_status status = table_view(t, &v);
    if (status == WW_OK)
        status = view_begin(v, VIEW_RECORD);
    if (status != WW_OK)
        return table_reading_ended(t, status);
    status = table_check_record(t, view_record(v));
    if (status == WW_OK)
        status = view_get(v, list, &c->results);
    view_end(v);
    return table_reading_ended(t, status);
}

/* Does the hit come after the last one that SQLite got? Always true unless rows were written in between. */
static bool is_behind(const cursor *c, int64_t at)
{
    const float score = ww_results_scores(c->results, 0)[at];
    const int64_t place = ww_results_rows(c->results, 0)[at];
    if (c->last_place < 0)
        return true;
    if (score == c->last_score)
        return place > c->last_place;
    return c->request.metric == WW_L2 ? score > c->last_score : score < c->last_score;
}

/* Gets the next piece of an ordered search or of a scan; an empty piece is the end. */
static ww_status cursor_more(cursor *c)
{
    const bool scan = !(c->plan & PLAN_MATCH);
    if (c->piece_first > 0 && c->changes != sqlite3_total_changes64(table_of(c)->db)) {
        c->piece_count += c->piece_first; /* rows were written, so hits have other numbers now */
        c->piece_first = 0;
    }
    ww_results_destroy(c->results);
    c->results = NULL;
    c->at = c->count = 0;
    ww_status status =
        scan ? cursor_get(c,
                          &(view_list){.by = VIEW_ALL, .count = SCAN_ROWS, .after = c->last_place, .fetch = fetch_of(c->plan)})
             : cursor_search(c);
    if (status != WW_OK)
        return status;
    c->count = ww_results_count(c->results, 0);
    c->has_more = c->count == (scan ? SCAN_ROWS : c->piece_count);
    if (scan)
        return WW_OK;
    c->piece_first += c->request.by_sparse ? 0 : c->count;
    c->changes = sqlite3_total_changes64(table_of(c)->db);
    c->piece_count = min_i64(c->piece_count * PIECE_GROWTH, c->request.by_sparse ? WW_ROWS_MAX : PIECE_MAX);
    while (c->at < c->count && !is_behind(c, c->at))
        c->at++;
    return WW_OK;
}

/* One row by rowid or id, or none. */
static ww_status cursor_lookup(cursor *c, sqlite3_value *value)
{
    const bool by_id = c->plan & PLAN_ID;
    const char *id = by_id && sqlite3_value_type(value) != SQLITE_NULL ? (const char *)sqlite3_value_text(value) : NULL;
    const int64_t handle = by_id ? -1 : sqlite3_value_int64(value);
    if (by_id ? !id : sqlite3_value_type(value) == SQLITE_NULL)
        return WW_OK;
    const view_list list = {.by = by_id ? VIEW_BY_ID : VIEW_BY_HANDLE,
                            .count = 1,
                            .numbers = by_id ? NULL : &handle,
                            .ids = by_id ? &id : NULL,
                            .fetch = fetch_of(c->plan)};
    const ww_status status = cursor_get(c, &list);
    const int64_t *rows = ww_results_rows(c->results, 0);
    c->count = status == WW_OK && rows && rows[0] >= 0 ? 1 : 0;
    return status;
}

static ww_status cursor_first(cursor *c, sqlite3_value **values)
{
    if (c->plan & PLAN_MATCH) {
        ww_status status = request_read(table_of(c), c->plan, values, &c->request);
        if (status != WW_OK || c->request.finds_nothing || c->request.k == 0)
            return status;
        c->piece_count = PIECE_FIRST;
        if (is_ordered(c))
            return cursor_more(c);
        status = cursor_search(c);
        c->count = ww_results_count(c->results, 0);
        return status;
    }
    return c->plan & (PLAN_ROWID | PLAN_ID) ? cursor_lookup(c, values[0]) : cursor_more(c);
}

int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *plan_text, int count, sqlite3_value **values)
{
    FLOAT_GUARD();
    cursor *c = (cursor *)base;
    (void)count;
    cursor_reset(c);
    c->plan = (unsigned)plan;
    if (c->plan & PLAN_REFUSED)
        return table_refuse(table_of(c), SQLITE_ERROR, "%s", plan_text);
    ww_status status = table_enter(table_of(c));
    if (status == WW_OK) {
        status = cursor_first(c, values);
        table_leave(table_of(c));
    }
    return table_failed(table_of(c), status);
}

int cursor_next(sqlite3_vtab_cursor *base)
{
    FLOAT_GUARD();
    cursor *c = (cursor *)base;
    c->last_place = ww_results_rows(c->results, 0)[c->at];
    c->last_score = ww_results_scores(c->results, 0)[c->at];
    c->at++;
    if (c->at < c->count || !c->has_more)
        return SQLITE_OK;
    ww_status status = table_enter(table_of(c));
    if (status != WW_OK)
        return table_failed(table_of(c), status);
    while (status == WW_OK && c->at >= c->count && c->has_more)
        status = cursor_more(c);
    table_leave(table_of(c));
    return table_failed(table_of(c), status);
}

int cursor_eof(sqlite3_vtab_cursor *base)
{
    const cursor *c = (const cursor *)base;
    return c->at >= c->count;
}

static void give_text(sqlite3_context *context, const char *text)
{
    if (text)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* Was the search argument of this column given? In `MATCH ... AND (k = 3 OR ...)` it was not, and SQLite evaluates the term on
 * the rows. */
static bool is_given(const cursor *c, int column)
{
    const unsigned bit = column == COLUMN_QUERY      ? PLAN_QUERY
                         : column == COLUMN_K        ? PLAN_K
                         : column == COLUMN_RADIUS   ? PLAN_RADIUS
                         : column == COLUMN_FILTER   ? PLAN_FILTER
                         : column == COLUMN_NPROBE   ? PLAN_NPROBE
                         : column == COLUMN_RECALL   ? PLAN_RECALL
                         : column == COLUMN_MODIFIER ? PLAN_MODIFIER
                                                     : PLAN_PARAMETERS;
    const bool is_argument = column >= COLUMN_QUERY && column <= COLUMN_PARAMETERS;
    return !(is_argument || column == COLUMN_NPROBE || column == COLUMN_RECALL || column == COLUMN_MODIFIER) || c->plan & bit;
}

static void give_vector(sqlite3_context *context, const table *t, const float *vector)
{
    const int32_t dim = t->arguments.dim;
    char *json = t->arguments.vectors_as_json ? vector_to_json(vector, dim) : NULL;
    if (json)
        sqlite3_result_text(context, json, -1, sqlite3_free);
    else if (t->arguments.vectors_as_json)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_blob64(context, vector, (sqlite3_uint64)dim * sizeof *vector, SQLITE_TRANSIENT);
}

/* A row without a sparse vector has NULL. */
static void give_sparse(sqlite3_context *context, const cursor *c)
{
    ww_sparse_vector vector;
    if (!ww_results_sparse(c->results, 0, c->at, &vector))
        return;
    char *json = sparse_text_json(&vector);
    if (json)
        sqlite3_result_text(context, json, -1, sqlite3_free);
    else
        sqlite3_result_error_nomem(context);
}

/* Columns that are not set are NULL: query, k, radius and filter are arguments, and a row that was not searched for has no
 * score. */
int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    FLOAT_GUARD();
    const cursor *c = (const cursor *)base;
    const table *t = table_of(c);
    if (sqlite3_vtab_nochange(context)) /* for an UPDATE that does not change the column */
        return SQLITE_OK;
    const float *vector = column == COLUMN_VECTOR ? ww_results_vector(c->results, 0, c->at) : NULL;
    if (column == COLUMN_ID)
        give_text(context, ww_results_id(c->results, 0, c->at));
    else if (column == COLUMN_PAYLOAD)
        give_text(context, ww_results_payload(c->results, 0, c->at));
    else if (column == COLUMN_TEXT)
        give_text(context, ww_results_text(c->results, 0, c->at));
    else if (vector)
        give_vector(context, t, vector);
    else if (column == COLUMN_SPARSE)
        give_sparse(context, c);
    else if (c->plan & PLAN_MATCH && !is_given(c, column))
        sqlite3_result_error(context,
                             "query, k, radius, filter, parameters, nprobe, recall and modifier must stand beside MATCH as k = "
                             "..., not in an expression",
                             -1);
    else if (c->plan & PLAN_MATCH && column == COLUMN_SCORE)
        sqlite3_result_double(context, (double)ww_results_scores(c->results, 0)[c->at]);
    else if (c->plan & PLAN_MATCH && column == COLUMN_PROVEN) /* an exact search proves all that it finds */
        sqlite3_result_int(context,
                           c->request.nprobe == 0 && c->request.recall == 0.0f ? 1 : c->at < ww_results_proven(c->results, 0));
    else if (c->plan & PLAN_MATCH && column == COLUMN_DISTANCE)
        sqlite3_result_double(context, distance_of_score(c->request.metric, ww_results_scores(c->results, 0)[c->at]));
    return SQLITE_OK;
}

int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    const cursor *c = (const cursor *)base;
    *rowid = ww_results_handles(c->results, 0)[c->at];
    return SQLITE_OK;
}
