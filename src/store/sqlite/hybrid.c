/* hybrid(...): rows that words and a vector find together.
 *
 *     SELECT id, score, vector_rank, text_rank
 *     FROM hybrid('docs', ww_embed('a small animal'), 'a small animal', 10);
 *
 * The arguments are the hidden columns, in order, with their defaults: the collection, a vector or NULL, the words or NULL, k
 * (10), mode ('hybrid', 'vector' or 'text'; by the arguments given), fusion ('ranks' or 'scores'), the weights of both parts
 * (1), filter and parameters as with MATCH, the database of the collection ('main') and the device ('auto'). The cursor holds
 * results, which are copies. A collection is opened like its own virtual table; the last one stays open.
 */
#include <math.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/sqlite/functions.h"
#include "store/sqlite/request.h"

enum hybrid_column {
    HYBRID_ID,
    HYBRID_SCORE,
    HYBRID_PAYLOAD,
    HYBRID_TEXT,
    HYBRID_VECTOR_RANK,
    HYBRID_TEXT_RANK,
    HYBRID_VECTOR_SCORE,
    HYBRID_TEXT_SCORE,
    HYBRID_COLLECTION, /* the first argument */
    HYBRID_VECTOR,
    HYBRID_QUERY,
    HYBRID_K,
    HYBRID_MODE,
    HYBRID_FUSION,
    HYBRID_VECTOR_WEIGHT,
    HYBRID_TEXT_WEIGHT,
    HYBRID_FILTER,
    HYBRID_PARAMETERS,
    HYBRID_SCHEMA,
    HYBRID_DEVICE,
    HYBRID_COLUMNS
};

#define HYBRID_DECLARATION                                                                                                     \
    "CREATE TABLE x(id TEXT, score REAL, payload TEXT, text TEXT, vector_rank INTEGER, text_rank INTEGER, vector_score REAL, " \
    "text_score REAL, collection TEXT HIDDEN, vector BLOB HIDDEN, query TEXT HIDDEN, k INTEGER HIDDEN, mode TEXT HIDDEN, "     \
    "fusion TEXT HIDDEN, vector_weight REAL HIDDEN, text_weight REAL HIDDEN, filter TEXT HIDDEN, parameters TEXT HIDDEN, "     \
    "schema TEXT HIDDEN, device TEXT HIDDEN)"

enum { K_DEFAULT = 10 };

typedef struct hybrid_table {
    sqlite3_vtab base;
    sqlite3 *db;
    const embedder *embedder;
    table *open; /* the collection that was used last */
} hybrid_table;

typedef struct hybrid_cursor {
    sqlite3_vtab_cursor base;
    ww_results *results;
    int64_t at;
} hybrid_cursor;

/* What is asked for. */
typedef struct hybrid_request {
    sqlite3_value *values[HYBRID_COLUMNS]; /* NULL: not given, or NULL */
    search_request search;
    const char *words;
    bool by_vector, by_text;
    ww_fuse fuse;
    double weights[2]; /* of vectors and of words */
} hybrid_request;

static int hybrid_connect(sqlite3 *db, void *user, int count, const char *const *texts, sqlite3_vtab **vtab, char **message)
{
    (void)count, (void)texts, (void)message;
    hybrid_table *h = memory_alloc_zeroed(1, sizeof *h);
    if (!h)
        return SQLITE_NOMEM;
    h->db = db;
    h->embedder = user;
    const int code = sqlite3_declare_vtab(db, HYBRID_DECLARATION);
    if (code == SQLITE_OK)
        *vtab = &h->base;
    else
        memory_free(h);
    return code;
}

static int hybrid_disconnect(sqlite3_vtab *vtab)
{
    hybrid_table *h = (hybrid_table *)vtab;
    table_close(h->open);
    memory_free(h);
    return SQLITE_OK;
}

/* The plan's bits say which arguments are given, in the order of the columns. */
static int hybrid_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    int place[HYBRID_COLUMNS];
    unsigned plan = 0;
    int next = 1;
    (void)vtab;
    for (int i = 0; i < info->nConstraint; i++) {
        const int column = info->aConstraint[i].iColumn;
        if (column < HYBRID_COLLECTION || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable)
            return SQLITE_CONSTRAINT; /* this order of the joined tables is impossible */
        plan |= 1u << column;
        place[column] = i;
    }
    for (int column = HYBRID_COLLECTION; column < HYBRID_COLUMNS; column++)
        if (plan & 1u << column) {
            info->aConstraintUsage[place[column]].argvIndex = next++;
            info->aConstraintUsage[place[column]].omit = 1;
        }
    info->idxNum = (int)plan;
    info->estimatedCost = 1000.0;
    info->estimatedRows = K_DEFAULT;
    return SQLITE_OK;
}

static int hybrid_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **opened)
{
    (void)vtab;
    hybrid_cursor *c = memory_alloc_zeroed(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    *opened = &c->base;
    return SQLITE_OK;
}

static int hybrid_close(sqlite3_vtab_cursor *base)
{
    ww_results_destroy(((hybrid_cursor *)base)->results);
    memory_free(base);
    return SQLITE_OK;
}

/* ---- what is asked for --------------------------------------------------------------------------------------------------- */

static const char *text_of(const hybrid_request *r, enum hybrid_column column, const char *otherwise)
{
    const char *text = r->values[column] ? (const char *)sqlite3_value_text(r->values[column]) : NULL;
    return text ? text : otherwise;
}

static ww_status read_modes(hybrid_request *r)
{
    const char *mode = text_of(r, HYBRID_MODE, r->words && r->values[HYBRID_VECTOR] ? "hybrid" : r->words ? "text" : "vector");
    const char *fusion = text_of(r, HYBRID_FUSION, "ranks");
    r->by_vector = strcmp(mode, "hybrid") == 0 || strcmp(mode, "vector") == 0;
    r->by_text = strcmp(mode, "hybrid") == 0 || strcmp(mode, "text") == 0;
    r->fuse.fusion = strcmp(fusion, "scores") == 0 ? WW_FUSION_SCORES : WW_FUSION_RANKS;
    if (!r->by_vector && !r->by_text)
        return ww_fail(WW_INVALID_ARGUMENT, "mode is '%s'; it must be hybrid, vector or text", mode);
    if (strcmp(fusion, "ranks") != 0 && strcmp(fusion, "scores") != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "fusion is '%s'; it must be ranks or scores", fusion);
    if ((r->by_vector && !r->values[HYBRID_VECTOR]) || (r->by_text && !r->words))
        return ww_fail(WW_INVALID_ARGUMENT, "mode is %s, and %s is missing: hybrid(collection, vector, query, k, mode)", mode,
                       r->by_text && !r->words ? "query" : "vector");
    for (int i = 0; i < 2; i++) {
        sqlite3_value *weight = r->values[i == 0 ? HYBRID_VECTOR_WEIGHT : HYBRID_TEXT_WEIGHT];
        r->weights[i] = weight ? sqlite3_value_double(weight) : 1.0;
    }
    return WW_OK;
}

static ww_status read_request(const table *t, hybrid_request *r)
{
    ww_status status = read_modes(r);
    r->search.k = K_DEFAULT;
    if (status == WW_OK && r->by_vector)
        status = request_query(t, r->values[HYBRID_VECTOR], &r->search);
    if (status == WW_OK && r->values[HYBRID_K])
        status = request_k(r->values[HYBRID_K], &r->search);
    if (status == WW_OK && r->search.k > WW_K_MAX)
        status = ww_fail(WW_OUT_OF_RANGE, "k is %lld; the maximum is %d", (long long)r->search.k, WW_K_MAX);
    if (status == WW_OK && r->values[HYBRID_FILTER])
        status = request_filter_text(r->values[HYBRID_FILTER], &r->search);
    if (status == WW_OK && r->values[HYBRID_PARAMETERS] && !r->search.filter)
        status = ww_fail(WW_INVALID_ARGUMENT, "there are parameters, but no filter");
    if (status == WW_OK && r->values[HYBRID_PARAMETERS])
        status = parameters_read(t->db, r->values[HYBRID_PARAMETERS], &r->search.parameters);
    if (status == WW_OK && r->words && !utf8_check(r->words, strlen(r->words)))
        status = ww_fail(WW_INVALID_ARGUMENT, "query is not UTF-8");
    return status;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

static bool is_open(const table *t, const hybrid_request *r, const collection_record *record)
{
    return t && sqlite3_stricmp(t->schema, text_of(r, HYBRID_SCHEMA, "main")) == 0 &&
           sqlite3_stricmp(t->name, record->name) == 0 && strcmp(t->arguments.device, text_of(r, HYBRID_DEVICE, "auto")) == 0 &&
           table_check_record(t, record) == WW_OK;
}

/* Opens the requested collection unless it is already open. */
static ww_status open_collection(hybrid_table *h, const hybrid_request *r)
{
    const char *name = text_of(r, HYBRID_COLLECTION, NULL), *schema = text_of(r, HYBRID_SCHEMA, "main");
    collection_record record;
    if (!name)
        return ww_fail(WW_INVALID_ARGUMENT, "the name of the collection is missing: hybrid('docs', vector, query, k)");
    ww_status status = schema_find(h->db, schema, name, &record);
    if (status != WW_OK || is_open(h->open, r, &record))
        return status;
    table_close(h->open);
    h->open = NULL;
    status = table_open(h->db, schema, record.name, &record, &h->open);
    if (status == WW_OK) {
        h->open->embedder = h->embedder;
        text_copy(h->open->arguments.device, sizeof h->open->arguments.device, text_of(r, HYBRID_DEVICE, "auto"));
    }
    return status;
}

/* Runs in the statement's read transaction. This table does not learn of changes, so within a write transaction nothing that it
 * reads may go into the shared mirror. */
static ww_status search_in(table *t, const hybrid_request *r, ww_results **results)
{
    const ww_match match = {.struct_size = sizeof match,
                            .texts = &r->words,
                            .mode = r->by_vector ? WW_MATCH_HYBRID : WW_MATCH_TEXT,
                            .fuse = &r->fuse};
    const ww_query query = {.queries = r->search.query.values,
                            .query_count = 1,
                            .query_stride = t->arguments.dim,
                            .dim = t->arguments.dim,
                            .k = (int32_t)r->search.k,
                            .fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS,
                            .match = r->by_text ? &match : NULL};
    const kept_filter *filtered = NULL;
    view_places only = {0};
    view *v = NULL;
    ww_status status = table_view(t, &v);
    if (status == WW_OK && sqlite3_txn_state(t->db, t->schema) == SQLITE_TXN_WRITE)
        view_uncertain(v);
    if (status == WW_OK && r->search.filter)
        status = request_filter(t, &r->search, &filtered);
    if (status == WW_OK && filtered)
        only = (view_places){filtered->places.places, filtered->places.count, filtered->number};
    if (status == WW_OK)
        status = view_begin(v, r->by_vector);
    if (status != WW_OK)
        return table_reading_ended(t, status);
    status = r->by_text ? view_match(v, &query, filtered ? &only : NULL, results)
                        : view_query(v, &query, filtered ? &only : NULL, results);
    view_end(v);
    return table_reading_ended(t, status);
}

static ww_status search(hybrid_table *h, hybrid_request *r, ww_results **results)
{
    ww_status status = open_collection(h, r);
    if (status == WW_OK)
        status = read_request(h->open, r);
    if (status != WW_OK || r->search.k == 0)
        return status;
    status = table_enter(h->open);
    if (status != WW_OK)
        return status;
    status = search_in(h->open, r, results);
    table_leave(h->open);
    return status;
}

static int hybrid_filter(sqlite3_vtab_cursor *base, int plan, const char *plan_text, int count, sqlite3_value **values)
{
    FLOAT_GUARD();
    hybrid_cursor *c = (hybrid_cursor *)base;
    hybrid_table *h = (hybrid_table *)base->pVtab;
    hybrid_request r = {.fuse = ww_fuse_default()};
    int next = 0;
    r.fuse.weights = r.weights;
    (void)plan_text, (void)count;
    ww_results_destroy(c->results);
    c->results = NULL;
    c->at = 0;
    for (int column = HYBRID_COLLECTION; column < HYBRID_COLUMNS; column++)
        if ((unsigned)plan & 1u << column) {
            sqlite3_value *value = values[next++];
            r.values[column] = sqlite3_value_type(value) == SQLITE_NULL ? NULL : value;
        }
    r.words = text_of(&r, HYBRID_QUERY, NULL);
    const ww_status status = search(h, &r, &c->results);
    request_free(&r.search);
    if (status == WW_OK || status == WW_OUT_OF_MEMORY)
        return value_result_code(status);
    sqlite3_free(h->base.zErrMsg);
    h->base.zErrMsg = sqlite3_mprintf("hybrid: %s", ww_error_message());
    return h->base.zErrMsg ? value_result_code(status) : SQLITE_NOMEM;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static int hybrid_next(sqlite3_vtab_cursor *base)
{
    ((hybrid_cursor *)base)->at++;
    return SQLITE_OK;
}

static int hybrid_eof(sqlite3_vtab_cursor *base)
{
    const hybrid_cursor *c = (const hybrid_cursor *)base;
    return c->at >= ww_results_count(c->results, 0);
}

static void give_text(sqlite3_context *context, const char *text)
{
    if (text)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static void give_part(const hybrid_cursor *c, sqlite3_context *context, int column)
{
    const ww_hit_parts *parts = ww_results_parts(c->results, 0);
    const int part = column == HYBRID_TEXT_RANK || column == HYBRID_TEXT_SCORE;
    if (!parts && part == 0) { /* by vectors only */
        if (column == HYBRID_VECTOR_RANK)
            sqlite3_result_int64(context, c->at + 1);
        else
            sqlite3_result_double(context, (double)ww_results_scores(c->results, 0)[c->at]);
    }
    if (!parts || parts[c->at].ranks[part] == 0)
        return;
    if (column == HYBRID_VECTOR_RANK || column == HYBRID_TEXT_RANK)
        sqlite3_result_int64(context, parts[c->at].ranks[part]);
    else
        sqlite3_result_double(context, (double)parts[c->at].scores[part]);
}

/* The arguments read as NULL. */
static int hybrid_get(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const hybrid_cursor *c = (const hybrid_cursor *)base;
    if (column == HYBRID_ID)
        give_text(context, ww_results_id(c->results, 0, c->at));
    else if (column == HYBRID_PAYLOAD)
        give_text(context, ww_results_payload(c->results, 0, c->at));
    else if (column == HYBRID_TEXT)
        give_text(context, ww_results_text(c->results, 0, c->at));
    else if (column == HYBRID_SCORE)
        sqlite3_result_double(context, (double)ww_results_scores(c->results, 0)[c->at]);
    else if (column < HYBRID_COLLECTION)
        give_part(c, context, column);
    return SQLITE_OK;
}

static int hybrid_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    const hybrid_cursor *c = (const hybrid_cursor *)base;
    *rowid = ww_results_handles(c->results, 0)[c->at];
    return SQLITE_OK;
}

/* Without xCreate it is only a function; CREATE VIRTUAL TABLE cannot use it. */
static const sqlite3_module MODULE = {
    .xConnect = hybrid_connect,
    .xBestIndex = hybrid_best_index,
    .xDisconnect = hybrid_disconnect,
    .xOpen = hybrid_open,
    .xClose = hybrid_close,
    .xFilter = hybrid_filter,
    .xNext = hybrid_next,
    .xEof = hybrid_eof,
    .xColumn = hybrid_get,
    .xRowid = hybrid_rowid,
};

const sqlite3_module *const hybrid_module = &MODULE;
