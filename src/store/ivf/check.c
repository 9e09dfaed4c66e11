/* Checking the tables of an index: every vector is in one list, and the row counts and bounds of the lists are right. */
#include <math.h>

#include "arithmetic/row_values.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/ivf/follow.h"

/* Bounds are scores of rows that may have been scaled to unit length first, so rounding may differ. */
static const double SLACK = 1e-4;

typedef struct checking {
    const ivf_tables *t;
    ivf_fault tell;
    void *user;
    ivf_header header;
    ivf_lists lists;
    int64_t *counts; /* rows of each list */
    float *wide;     /* a vector */
} checking;

static void fault(const checking *k)
{
    k->tell(k->user, ww_error_message());
}

static bool is_bounded(const checking *k, int64_t list, float score)
{
    const list_record *record = &k->lists.records[list];
    const double sign = k->t->record->metric == WW_COSINE ? -1.0 : 1.0, slack = SLACK * (1.0 + fabs((double)score));
    return record->unbounded || (sign * (double)score <= sign * (double)record->farthest + slack &&
                                 sign * (double)score >= sign * (double)record->nearest - slack);
}

/* Checks the statement's current row: place, vector, list. */
static void check_vector(const checking *k, sqlite3_stmt *s)
{
    const collection_record *record = k->t->record;
    const long long place = sqlite3_column_int64(s, 0), list = sqlite3_column_int64(s, 2);
    const ww_metric metric = record->metric == WW_COSINE ? WW_COSINE : WW_L2;
    float score = 0.0f;
    if (sqlite3_column_type(s, 2) == SQLITE_NULL || list < 0 || list >= k->header.nlist) {
        (void)ivf_damaged(record->name, "the vector at place %lld is in no list", place);
        fault(k);
        return;
    }
    k->counts[list]++;
    if (sqlite3_column_bytes(s, 1) != record_vector_bytes(record))
        return; /* a fault of the vector, reported elsewhere */
    row_widen((int32_t)record->type, sqlite3_column_blob(s, 1), record->dim, k->wide);
    if (!vector_is_finite(k->wide, record->dim) ||
        ww_score(metric, k->wide, k->lists.centroids + list * record->dim, record->dim, &score) != WW_OK)
        return;
    if (!is_bounded(k, list, score)) {
        (void)ivf_damaged(record->name, "list %lld does not bound the vector at place %lld", list, place);
        fault(k);
    }
}

static ww_status check_vectors(const checking *k)
{
    const ivf_tables *t = k->t;
    sqlite3_stmt *s = NULL;
    int code = SQLITE_DONE;
    ww_status status = schema_statement(t->db, &s,
                                        "SELECT v.place, v.vector, r.list FROM \"%w\".\"%w_vectors\" AS v LEFT JOIN "
                                        "\"%w\".\"%w_ivf_rows\" AS r ON r.place = v.place WHERE v.place NOT IN (SELECT place "
                                        "FROM \"%w\".\"%w_removed\")",
                                        t->schema, t->record->name, t->schema, t->record->name, t->schema, t->record->name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        check_vector(k, s);
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->record->name);
    sqlite3_finalize(s);
    for (int64_t i = 0; status == WW_OK && i < k->header.nlist; i++)
        if (k->counts[i] != k->lists.records[i].rows) {
            (void)ivf_damaged(t->record->name, "list %lld counts %lld rows and has %lld", (long long)i,
                              (long long)k->lists.records[i].rows, (long long)k->counts[i]);
            fault(k);
        }
    return status;
}

static ww_status check_places(const checking *k)
{
    const ivf_tables *t = k->t;
    sqlite3_stmt *s = NULL;
    ww_status status = schema_statement(t->db, &s,
                                        "SELECT count(*) FROM \"%w\".\"%w_ivf_rows\" WHERE place NOT IN (SELECT place FROM "
                                        "\"%w\".\"%w_vectors\")",
                                        t->schema, t->record->name, t->schema, t->record->name);
    const int code = status == WW_OK ? sqlite3_step(s) : SQLITE_DONE;
    const int64_t strange = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    if (status == WW_OK && code != SQLITE_ROW)
        status = sqlite_failed(t->db, code, t->record->name);
    sqlite3_finalize(s);
    if (status == WW_OK && strange > 0) {
        (void)ivf_damaged(t->record->name, "%lld places in its lists have no vector", (long long)strange);
        fault(k);
    }
    return status;
}

ww_status ivf_check(const ivf_tables *t, ivf_fault tell, void *user)
{
    checking k = {.t = t, .tell = tell, .user = user};
    ivf_rule *rules = NULL;
    ww_status status = ivf_header_read(t, &k.header);
    if (status == WW_OK)
        status = ivf_lists_read(t, &k.header, -1, &k.lists);
    if (status == WW_OK)
        status = ivf_rules_read(t, &k.header, &rules);
    if (status == WW_OK) {
        k.counts = memory_alloc_zeroed((size_t)k.header.nlist, sizeof *k.counts);
        k.wide = memory_alloc((size_t)t->record->dim * sizeof *k.wide);
        status = k.counts && k.wide ? WW_OK : memory_failed("the lists of an index", (size_t)k.header.nlist * sizeof *k.counts);
    }
    if (status == WW_OK)
        status = check_vectors(&k);
    if (status == WW_OK)
        status = check_places(&k);
    memory_free(k.counts);
    memory_free(k.wide);
    memory_free(rules);
    ivf_lists_free(&k.lists);
    status = ivf_explain(t->record->name, status);
    if (status != WW_CORRUPT_FILE)
        return status;
    fault(&k);
    return WW_OK;
}
