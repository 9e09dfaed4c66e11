/* hybrid(...): rows that words, a vector and a sparse vector find together.
 *
 *     SELECT id, score, vector_rank, text_rank
 *     FROM hybrid('docs', ww_embed('a small animal'), 'a small animal', 10);
 *
 * The arguments are the hidden columns, in order, with their defaults: the collection, a vector or NULL, the words or NULL, k
 * (10), mode ('hybrid', 'vector', 'text' or 'sparse'; by the arguments given), fusion ('ranks' or 'scores'), the weights of
 * vectors and of words (1), filter and parameters as with MATCH, the database of the collection ('main'), the device ('auto'),
 * a sparse vector, its modifier and its weight (1). Each part is searched alone and gives a list, and the lists are fused. The
 * cursor holds results, which are copies. A collection is opened like its own virtual table; the last one stays open.
 */
#include <string.h>

#include <warpwave/ranking.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/sqlite/functions.h"
#include "store/sqlite/request.h"
#include "store/view/view_state.h"

enum hybrid_column {
    HYBRID_ID,
    HYBRID_SCORE,
    HYBRID_PAYLOAD,
    HYBRID_TEXT,
    HYBRID_VECTOR_RANK,
    HYBRID_TEXT_RANK,
    HYBRID_VECTOR_SCORE,
    HYBRID_TEXT_SCORE,
    HYBRID_SPARSE_RANK,
    HYBRID_SPARSE_SCORE,
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
    HYBRID_SPARSE,
    HYBRID_MODIFIER,
    HYBRID_SPARSE_WEIGHT,
    HYBRID_COLUMNS
};

#define HYBRID_DECLARATION                                                                                                     \
    "CREATE TABLE x(id TEXT, score REAL, payload TEXT, text TEXT, vector_rank INTEGER, text_rank INTEGER, vector_score REAL, " \
    "text_score REAL, sparse_rank INTEGER, sparse_score REAL, collection TEXT HIDDEN, vector BLOB HIDDEN, query TEXT HIDDEN, " \
    "k INTEGER HIDDEN, mode TEXT HIDDEN, "                                                                                     \
    "fusion TEXT HIDDEN, vector_weight REAL HIDDEN, text_weight REAL HIDDEN, filter TEXT HIDDEN, parameters TEXT HIDDEN, "     \
    "schema TEXT HIDDEN, device TEXT HIDDEN, sparse TEXT HIDDEN, modifier TEXT HIDDEN, sparse_weight REAL HIDDEN)"

enum { K_DEFAULT = 10, CANDIDATES = 100 };

/* What finds rows, in the order in which lists are fused. */
enum { BY_VECTOR, BY_TEXT, BY_SPARSE, PARTS };

static const struct {
    const char *mode;
    enum hybrid_column argument, weight, rank, score;
} PART[PARTS] = {
    [BY_VECTOR] = {"vector", HYBRID_VECTOR, HYBRID_VECTOR_WEIGHT, HYBRID_VECTOR_RANK, HYBRID_VECTOR_SCORE},
    [BY_TEXT] = {"text", HYBRID_QUERY, HYBRID_TEXT_WEIGHT, HYBRID_TEXT_RANK, HYBRID_TEXT_SCORE},
    [BY_SPARSE] = {"sparse", HYBRID_SPARSE, HYBRID_SPARSE_WEIGHT, HYBRID_SPARSE_RANK, HYBRID_SPARSE_SCORE},
};

typedef struct hybrid_table {
    sqlite3_vtab base;
    sqlite3 *db;
    const embedder *embedder;
    table *open; /* the collection that was used last */
} hybrid_table;

typedef struct hybrid_cursor {
    sqlite3_vtab_cursor base;
    ww_results *results;
    ww_results *parts[PARTS]; /* what each found; NULL: it was not asked, or what it found are the results */
    int alone;                /* the part whose list the results are; PARTS: they are fused */
    int64_t at;
} hybrid_cursor;

/* What is asked for. */
typedef struct hybrid_request {
    sqlite3_value *values[HYBRID_COLUMNS]; /* NULL: not given, or NULL */
    search_request search;
    const char *words;
    bool by[PARTS];
    ww_fuse fuse;
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

static void hybrid_forget(hybrid_cursor *c)
{
    ww_results_destroy(c->results);
    for (int part = 0; part < PARTS; part++)
        ww_results_destroy(c->parts[part]);
    *c = (hybrid_cursor){.base = c->base, .alone = PARTS};
}

static int hybrid_close(sqlite3_vtab_cursor *base)
{
    hybrid_forget((hybrid_cursor *)base);
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
    const char *mode = text_of(r, HYBRID_MODE, NULL), *fusion = text_of(r, HYBRID_FUSION, "ranks");
    const bool all = !mode || strcmp(mode, "hybrid") == 0;
    int parts = 0, named = PARTS;
    for (int part = 0; part < PARTS; part++) {
        r->by[part] = all ? r->values[PART[part].argument] != NULL : strcmp(mode, PART[part].mode) == 0;
        parts += r->by[part];
        named = r->by[part] ? part : named;
    }
    r->fuse.fusion = strcmp(fusion, "scores") == 0 ? WW_FUSION_SCORES : WW_FUSION_RANKS;
    if (!all && parts == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "mode is '%s'; it must be hybrid, vector, text or sparse", mode);
    if (strcmp(fusion, "ranks") != 0 && strcmp(fusion, "scores") != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "fusion is '%s'; it must be ranks or scores", fusion);
    if (parts == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "vector, query and sparse are missing: hybrid(collection, vector, query, k)");
    if (mode && all && parts < 2)
        return ww_fail(WW_INVALID_ARGUMENT, "mode is hybrid, which needs two of vector, query and sparse; there is one");
    if (!r->values[PART[named].argument])
        return ww_fail(WW_INVALID_ARGUMENT, "mode is %s, and %s is missing: hybrid(collection, vector, query, k, mode)", mode,
                       named == BY_TEXT ? "query" : PART[named].mode);
    if (r->values[HYBRID_MODIFIER] && !r->by[BY_SPARSE])
        return ww_fail(WW_INVALID_ARGUMENT, "there is a modifier, but no search by sparse vectors");
    return WW_OK;
}

static ww_status read_request(const table *t, hybrid_request *r)
{
    ww_status status = read_modes(r);
    r->search.k = K_DEFAULT;
    if (status == WW_OK && r->by[BY_VECTOR])
        status = request_query(t, r->values[HYBRID_VECTOR], &r->search);
    if (status == WW_OK && r->by[BY_SPARSE])
        status = request_sparse(r->values[HYBRID_SPARSE], &r->search);
    if (status == WW_OK && r->values[HYBRID_MODIFIER])
        status = request_modifier(r->values[HYBRID_MODIFIER], &r->search);
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

/* Finds the rows of one part, without ids, payloads and texts. */
static ww_status search_part(view *v, const hybrid_request *r, int part, int64_t k, const view_places *only,
                             ww_results **results)
{
    const ww_match match = {.struct_size = sizeof match, .texts = &r->words, .mode = WW_MATCH_TEXT};
    const ww_sparse_query sparse = {.struct_size = sizeof sparse,
                                    .vectors = &r->search.sparse.sorted.vector,
                                    .modifier = r->search.idf ? WW_SPARSE_IDF : WW_SPARSE_PLAIN};
    const int32_t dim = view_record(v)->dim;
    const ww_query query = {.queries = r->search.query.values,
                            .query_count = 1,
                            .query_stride = dim,
                            .dim = dim,
                            .k = (int32_t)k,
                            .match = part == BY_TEXT ? &match : NULL,
                            .sparse = part == BY_SPARSE ? &sparse : NULL};
    return part == BY_TEXT ? view_match(v, &query, only, results)
                           : (part == BY_SPARSE ? view_sparse : view_query)(v, &query, only, results);
}

/* Searches each part, and makes one list of theirs. */
static ww_status search_parts(view *v, const hybrid_request *r, const view_places *only, hybrid_cursor *c)
{
    const ww_results *lists[PARTS];
    double weights[PARTS];
    ww_fuse fuse = r->fuse;
    int64_t count = 0;
    ww_status status = WW_OK;
    const bool several = r->by[BY_VECTOR] + r->by[BY_TEXT] + r->by[BY_SPARSE] > 1;
    for (int part = 0; status == WW_OK && part < PARTS; part++) {
        if (!r->by[part])
            continue;
        status = search_part(v, r, part, several ? max_i64(r->search.k, CANDIDATES) : r->search.k, only, &c->parts[part]);
        weights[count] = r->values[PART[part].weight] ? sqlite3_value_double(r->values[PART[part].weight]) : 1.0;
        lists[count++] = c->parts[part];
    }
    fuse.weights = weights;
    fuse.limit = r->search.k;
    ww_results *made = NULL;
    if (status == WW_OK && several)
        status = ww_results_fuse(lists, count, &fuse, &made);
    for (int part = 0; status == WW_OK && !several && part < PARTS; part++)
        if (r->by[part]) {
            made = c->parts[part];
            c->parts[part] = NULL;
            c->alone = part;
        }
    return view_finish(v, status, WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS, made, &c->results);
}

/* Runs in the statement's read transaction. This table does not learn of changes, so within a write transaction nothing that it
 * reads may go into the shared mirror. */
static ww_status search_in(table *t, const hybrid_request *r, hybrid_cursor *c)
{
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
        status = view_begin(v, r->by[BY_VECTOR] ? VIEW_MEMORY : VIEW_RECORD);
    if (status != WW_OK)
        return table_reading_ended(t, status);
    status = search_parts(v, r, filtered ? &only : NULL, c);
    view_end(v);
    return table_reading_ended(t, status);
}

static ww_status search(hybrid_table *h, hybrid_request *r, hybrid_cursor *c)
{
    ww_status status = open_collection(h, r);
    if (status == WW_OK)
        status = read_request(h->open, r);
    if (status != WW_OK || r->search.k == 0)
        return status;
    status = table_enter(h->open);
    if (status != WW_OK)
        return status;
    status = search_in(h->open, r, c);
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
    (void)plan_text, (void)count;
    hybrid_forget(c);
    for (int column = HYBRID_COLLECTION; column < HYBRID_COLUMNS; column++)
        if ((unsigned)plan & 1u << column) {
            sqlite3_value *value = values[next++];
            r.values[column] = sqlite3_value_type(value) == SQLITE_NULL ? NULL : value;
        }
    r.words = text_of(&r, HYBRID_QUERY, NULL);
    const ww_status status = search(h, &r, c);
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

/* The rank and the score of the hit in the list of a part that has it. */
static void give_part(const hybrid_cursor *c, sqlite3_context *context, int column)
{
    const int64_t handle = ww_results_handles(c->results, 0)[c->at];
    for (int part = 0; part < PARTS; part++) {
        const ww_results *list = part == c->alone ? c->results : c->parts[part];
        const int64_t *handles = ww_results_handles(list, 0);
        if (column != (int)PART[part].rank && column != (int)PART[part].score)
            continue;
        for (int64_t i = 0; i < ww_results_count(list, 0); i++) {
            if (handles[i] != handle)
                continue;
            if (column == (int)PART[part].rank)
                sqlite3_result_int64(context, i + 1);
            else
                sqlite3_result_double(context, (double)ww_results_scores(list, 0)[i]);
            return;
        }
    }
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
