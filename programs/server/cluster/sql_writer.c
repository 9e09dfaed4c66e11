/* The transaction of a write, and its statements. Values go as parameters, a thousand rows with each statement. */
#include "server/cluster/sql_writer.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <warpwave/multi.h>
#include <warpwave/sparse.h>

#include "base/memory.h"
#include "base/text.h"
#include "server/cluster/connect.h"
#include "server/cluster/shared.h"
#include "server/cluster/values.h"
#include "server/nodes/nodes.h"
#include "server/out.h"
#include "server/work/job.h"

enum {
    CONNECT_SECONDS = 5,
    WRITE_SECONDS = 15,  /* of a transaction, from its begin to its end */
    RESOLVE_SECONDS = 5, /* how long the database is asked what became of a commit */
    POLL_MS = 50,
    ROWS_MAX = 1024, /* of a statement */
    PARAMETERS_MAX = 1 + 4 * ROWS_MAX,
    WHY_BYTES = 400,
    OID_BYTEA = 17,
    OID_TEXT = 25,
    OID_JSON = 114
};

struct sql_writer {
    const follow_config *config;
    follower *follower;
    PGconn *sql; /* NULL: not connected */
    double deadline_seconds, again_seconds;
    char why[WHY_BYTES]; /* the last attempt to connect failed */
    int64_t token;       /* of the last commit */
    out statement;
    char *packed; /* sparse vectors of the statement */
    size_t packed_length, packed_capacity;
    int count; /* parameters */
    const char *values[PARAMETERS_MAX];
    int lengths[PARAMETERS_MAX], formats[PARAMETERS_MAX];
    Oid types[PARAMETERS_MAX];
};

/* A request runs on one thread, and calls of the server far below it must know whether they belong to a transaction. */
static _Thread_local sql_writer *open_here;

sql_writer *sql_writer_here(void)
{
    return open_here;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

ww_status sql_writer_create(const follow_config *config, follower *f, sql_writer **made)
{
    sql_writer *w = memory_alloc_zeroed(1, sizeof *w);
    if (!w)
        return memory_failed("a writer", sizeof *w);
    w->config = config;
    w->follower = f;
    *made = w;
    return WW_OK;
}

static void disconnect(sql_writer *w)
{
    PQfinish(w->sql);
    w->sql = NULL;
}

void sql_writer_destroy(sql_writer *w)
{
    if (!w)
        return;
    disconnect(w);
    out_free(&w->statement);
    memory_free(w->packed);
    memory_free(w);
}

/* ---- talking to the database --------------------------------------------------------------------------------------------- */

/* Waits until the connection can go on. Fails when the time is over. */
static ww_status wait_for(sql_writer *w)
{
    const int left = PQflush(w->sql);
    struct pollfd watched = {.fd = PQsocket(w->sql), .events = (short)(POLLIN | (left > 0 ? POLLOUT : 0))};
    if (left < 0)
        return pg_failed(w->sql, "PostgreSQL");
    if (seconds_now() > w->deadline_seconds || job_is_over())
        return ww_fail(WW_BUSY, "PostgreSQL did not answer in time");
    (void)poll(&watched, 1, POLL_MS);
    return watched.revents == 0 || PQconsumeInput(w->sql) ? WW_OK : pg_failed(w->sql, "PostgreSQL");
}

static bool succeeded(const PGresult *result)
{
    const ExecStatusType state = PQresultStatus(result);
    return state == PGRES_TUPLES_OK || state == PGRES_COMMAND_OK;
}

/* The result of the last statement that was sent, or of the first that failed. */
static ww_status receive(sql_writer *w, PGresult **result)
{
    ww_status status = WW_OK;
    *result = NULL;
    while (status == WW_OK) {
        if (PQflush(w->sql) != 0 || PQisBusy(w->sql)) {
            status = wait_for(w);
            continue;
        }
        PGresult *got = PQgetResult(w->sql);
        if (!got)
            break;
        PGresult *left = *result && !succeeded(*result) ? got : *result;
        *result = left == got ? *result : got;
        PQclear(left);
    }
    if (status != WW_OK) { /* a statement still runs: this connection is of no use any more */
        PQclear(*result);
        *result = NULL;
        disconnect(w);
    }
    return status;
}

/* Values that the database cannot have are the request's fault; everything else may pass. */
static ww_status refused(sql_writer *w, const PGresult *result)
{
    char said[WHY_BYTES];
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    (void)pg_failed(w->sql, "PostgreSQL");
    text_copy(said, sizeof said, ww_error_message());
    return state && strncmp(state, "22", 2) == 0 ? ww_fail(WW_INVALID_ARGUMENT, "%s", said)
                                                 : ww_fail(WW_BUSY, "%s; nothing was changed", said);
}

/* Runs a statement, without parameters if w->count is 0. The caller clears the result; NULL: it is not wanted. */
static ww_status execute(sql_writer *w, const char *sql, PGresult **wanted)
{
    PGresult *result = NULL;
    if (!w->sql)
        return ww_fail(WW_BUSY, "the connection to PostgreSQL was lost; nothing was changed");
    const int sent = w->count > 0 ? PQsendQueryParams(w->sql, sql, w->count, w->types, w->values, w->lengths, w->formats, 0)
                                  : PQsendQuery(w->sql, sql);
    w->count = 0;
    ww_status status = sent ? receive(w, &result) : refused(w, NULL);
    if (status == WW_OK && !succeeded(result))
        status = refused(w, result);
    if (status == WW_OK && wanted)
        *wanted = result;
    else
        PQclear(result);
    return status == WW_IO_ERROR ? ww_fail(WW_BUSY, "the connection to PostgreSQL was lost; nothing was changed") : status;
}

/* After a failed attempt the next one comes after as long as that took: requests that wait shall not each wait for a time-out.
 */
static ww_status connect_writer(sql_writer *w)
{
    if (w->sql)
        return WW_OK;
    if (w->why[0] != '\0' && seconds_now() < w->again_seconds)
        return ww_fail(WW_BUSY, "%s; nothing was changed", w->why);
    const double begun = seconds_now();
    ww_status status = pg_open(w->config->conninfo, false, CONNECT_SECONDS, &w->sql);
    if (status == WW_OK) /* a node that stops in the middle must not keep the lock; what was answered must be on the disk */
        status = pg_do(w->sql, "PostgreSQL",
                       "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '15s'; SELECT "
                       "set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'");
    if (status == WW_OK && PQsetnonblocking(w->sql, 1) != 0)
        status = pg_failed(w->sql, "PostgreSQL");
    text_copy(w->why, sizeof w->why, status == WW_OK ? "" : ww_error_message());
    if (status == WW_OK)
        return WW_OK;
    w->again_seconds = 2 * seconds_now() - begun;
    disconnect(w);
    return ww_fail(WW_BUSY, "%s; nothing was changed", w->why);
}

/* ---- the transaction ----------------------------------------------------------------------------------------------------- */

/* Begins, takes the lock, and finds out where the log ends: everything before it must be known here. */
static ww_status open_transaction(sql_writer *w, pg_lsn *end)
{
    PGresult *row = NULL;
    ww_status status = connect_writer(w);
    if (status == WW_OK)
        status = execute(w, "BEGIN; SELECT pg_advisory_xact_lock(" NODES_LOCK_CLASS ", -1)", NULL);
    if (status == WW_OK)
        status = execute(w, "SELECT pg_current_wal_lsn()", &row);
    if (status == WW_OK && !pg_lsn_read(pg_field(row, 0, 0), end))
        status = ww_fail(WW_BUSY, "PostgreSQL named no place in its log; nothing was changed");
    PQclear(row);
    return status;
}

/* Waits for what was committed before. The transaction has no number yet: a node that begins to follow waits for the end of all
 * that have one, this one's own too. */
static ww_status catch_up(sql_writer *w, pg_lsn end)
{
    char why[WHY_BYTES];
    if (follower_wait(w->follower, end, w->deadline_seconds))
        return WW_OK;
    (void)follower_health(w->follower, why, sizeof why);
    return ww_fail(WW_BUSY, "this node has not followed all changes yet%s%s; nothing was changed", why[0] != '\0' ? ": " : "",
                   why);
}

ww_status sql_writer_begin(sql_writer *w)
{
    pg_lsn end = 0;
    const bool kept = w->sql != NULL;
    w->deadline_seconds = seconds_now() + WRITE_SECONDS;
    ww_status status = open_transaction(w, &end);
    if (status != WW_OK && kept && (!w->sql || PQstatus(w->sql) != CONNECTION_OK)) { /* the database has restarted since */
        disconnect(w);
        status = open_transaction(w, &end);
    }
    if (status == WW_OK)
        status = catch_up(w, end);
    open_here = w;
    if (status != WW_OK)
        sql_writer_rollback(w);
    return status;
}

void sql_writer_rollback(sql_writer *w)
{
    char said[2 * WHY_BYTES];
    text_copy(said, sizeof said, ww_error_message());
    w->count = 0;
    open_here = NULL;
    if (w->sql && (PQstatus(w->sql) != CONNECTION_OK || execute(w, "ROLLBACK", NULL) != WW_OK))
        disconnect(w);
    if (strcmp(said, ww_error_message()) != 0)
        (void)ww_fail(WW_BUSY, "%s", said);
}

/* Each commit leaves a random number, by which the database says later whether it took place. (A transaction's own number would
 * not do: after a crash another one may get it.) */
static ww_status send_commit(sql_writer *w, pg_lsn *end)
{
    char sql[320], name[NODE_NAME_BYTES];
    PGresult *row = NULL;
    follower_name(w->follower, name);
    if (getrandom(&w->token, sizeof w->token, 0) != sizeof w->token)
        return ww_fail(WW_IO_ERROR, "no random number for a commit");
    snprintf(sql, sizeof sql,
             "INSERT INTO warpwave.commits VALUES ('%s', %lld) ON CONFLICT (node) DO UPDATE SET token = EXCLUDED.token; "
             "COMMIT; SELECT pg_current_wal_lsn()",
             name, (long long)w->token);
    const ww_status status = execute(w, sql, &row);
    if (status == WW_OK)
        (void)pg_lsn_read(pg_field(row, 0, 0), end);
    PQclear(row);
    return status;
}

/* Was the last commit made? Its session has ended when this one gets the lock. */
static ww_status read_token(sql_writer *w, bool *made, pg_lsn *end)
{
    char sql[256], name[NODE_NAME_BYTES];
    PGresult *row = NULL;
    follower_name(w->follower, name);
    snprintf(sql, sizeof sql, "SELECT count(*), pg_current_wal_lsn() FROM warpwave.commits WHERE node = '%s' AND token = %lld",
             name, (long long)w->token);
    ww_status status = open_transaction(w, end);
    if (status == WW_OK)
        status = execute(w, sql, &row);
    if (status == WW_OK)
        *made = strcmp(pg_field(row, 0, 0), "1") == 0 && pg_lsn_read(pg_field(row, 0, 1), end);
    PQclear(row);
    sql_writer_rollback(w);
    return status;
}

/* The connection was lost during a commit: asks the database what became of it. */
static ww_status resolve(sql_writer *w, pg_lsn *end)
{
    const double until = seconds_now() + RESOLVE_SECONDS;
    bool made = false;
    ww_status status = WW_BUSY;
    while (status != WW_OK && seconds_now() < until && !job_is_over()) {
        w->deadline_seconds = until;
        w->why[0] = '\0';
        status = read_token(w, &made, end);
        if (status != WW_OK)
            nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
    }
    if (status != WW_OK)
        return ww_fail(WW_TIMEOUT, "the connection to PostgreSQL was lost while the change was committed, and it is not known "
                                   "whether it was; read it, and send it again if it is missing");
    return made ? WW_OK : ww_fail(WW_BUSY, "the connection to PostgreSQL was lost; nothing was changed");
}

ww_status sql_writer_commit(sql_writer *w)
{
    pg_lsn end = 0;
    open_here = NULL;
    if (!w->sql || PQtransactionStatus(w->sql) != PQTRANS_INTRANS) {
        ww_status lost = ww_fail(WW_BUSY, "PostgreSQL has ended the transaction; nothing was changed");
        disconnect(w);
        return lost;
    }
    ww_status status = send_commit(w, &end);
    const bool lost = status != WW_OK && (!w->sql || PQstatus(w->sql) != CONNECTION_OK);
    if (lost) {
        disconnect(w);
        status = resolve(w, &end);
    } else if (status != WW_OK) {
        sql_writer_rollback(w);
    }
    if (status == WW_OK && !follower_wait(w->follower, end, w->deadline_seconds))
        status = ww_fail(WW_TIMEOUT, "the change is committed in PostgreSQL, but this node does not have it yet; it will");
    return status;
}

/* ---- statements ---------------------------------------------------------------------------------------------------------- */

static void begin_statement(sql_writer *w, const char *text)
{
    w->count = 0;
    w->statement.length = 0;
    out_text(&w->statement, text);
}

/* Appends a parameter: bytes of a vector, or a text with its NUL; NULL is NULL. */
static void add(sql_writer *w, Oid type, const void *value, size_t length)
{
    w->values[w->count] = value;
    w->lengths[w->count] = (int)length;
    w->formats[w->count] = type == OID_BYTEA;
    w->types[w->count++] = type;
    out_format(&w->statement, "$%d", w->count);
}

static void add_text(sql_writer *w, Oid type, const char *text)
{
    add(w, type, text, 0);
}

/* Runs it, and checks how many rows it changed; -1: any number. */
static ww_status end_statement(sql_writer *w, const char *text, int64_t rows)
{
    PGresult *result = NULL;
    out_text(&w->statement, text);
    if (w->statement.failed) {
        out_free(&w->statement);
        w->count = 0;
        return memory_failed("a statement", sizeof w->values);
    }
    ww_status status = execute(w, w->statement.bytes, &result);
    if (status == WW_OK && rows >= 0 && strtoll(PQcmdTuples(result), NULL, 10) != rows)
        status = ww_fail(WW_NOT_FOUND, "PostgreSQL no longer has the collection or its points; nothing was changed");
    PQclear(result);
    return status;
}

/* Makes room for the sparse vectors of a statement: its parameters must not move. */
static ww_status reserve_packed(sql_writer *w, const ww_rows *rows, int64_t first, int64_t end)
{
    size_t bytes = 1;
    for (int64_t i = first; rows->sparse && i < end; i++)
        bytes += (size_t)rows->sparse[i].count * (sizeof(uint32_t) + sizeof(float));
    w->packed_length = 0;
    if (bytes <= w->packed_capacity)
        return WW_OK;
    char *packed = memory_resize(w->packed, bytes);
    if (!packed)
        return memory_failed("sparse vectors", bytes);
    w->packed = packed;
    w->packed_capacity = bytes;
    return WW_OK;
}

/* What the column `vector` gets. */
static const void *row_bytes(sql_writer *w, const ww_rows *rows, int64_t row, size_t *length)
{
    if (rows->multi) {
        *length = (size_t)rows->multi[row].count * (size_t)rows->dim * sizeof(float);
        return *length > 0 ? (const void *)rows->multi[row].vectors : "";
    }
    if (!rows->sparse) {
        *length = (size_t)rows->dim * sizeof(float);
        return rows->vectors + (size_t)row * (size_t)rows->dim;
    }
    const ww_sparse_vector *sparse = &rows->sparse[row];
    const size_t half = (size_t)sparse->count * sizeof(float);
    char *bytes = w->packed + w->packed_length;
    if (half > 0) {
        memcpy(bytes, sparse->indices, half);
        memcpy(bytes + half, sparse->values, half);
    }
    w->packed_length += 2 * half;
    *length = 2 * half;
    return bytes;
}

static void add_row(sql_writer *w, const ww_rows *rows, int64_t row, bool texts, bool payloads)
{
    size_t length = 0;
    const void *bytes = row_bytes(w, rows, row, &length);
    out_text(&w->statement, row % ROWS_MAX > 0 ? ",(" : "(");
    add_text(w, OID_TEXT, rows->ids[row]);
    out_text(&w->statement, ",");
    add(w, OID_BYTEA, bytes, length);
    if (texts) {
        out_text(&w->statement, ",");
        add_text(w, OID_TEXT, rows->texts ? rows->texts[row] : NULL);
    }
    if (payloads) {
        out_text(&w->statement, ",");
        add_text(w, OID_JSON, rows->payloads ? rows->payloads[row] : NULL);
    }
    out_text(&w->statement, ")");
}

ww_status sql_writer_upsert(sql_writer *w, const char *collection, const ww_rows *rows)
{
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < rows->count; first += ROWS_MAX) {
        const int64_t end = first + ROWS_MAX < rows->count ? first + ROWS_MAX : rows->count;
        status = reserve_packed(w, rows, first, end);
        if (status != WW_OK)
            break;
        begin_statement(w, "INSERT INTO warpwave.points SELECT c.number, v.* FROM (VALUES ");
        for (int64_t i = first; i < end; i++)
            add_row(w, rows, i, true, true);
        out_text(&w->statement, ") v (id, vector, text, payload), warpwave.collections c WHERE c.name = ");
        add_text(w, OID_TEXT, collection);
        status = end_statement(w,
                               " ON CONFLICT (collection, id) DO UPDATE SET vector = EXCLUDED.vector, text = EXCLUDED.text, "
                               "payload = EXCLUDED.payload",
                               end - first);
    }
    return status;
}

ww_status sql_writer_update(sql_writer *w, const char *collection, const ww_rows *rows)
{
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < rows->count; first += ROWS_MAX) {
        const int64_t end = first + ROWS_MAX < rows->count ? first + ROWS_MAX : rows->count;
        begin_statement(w, rows->texts ? "UPDATE warpwave.points p SET vector = v.vector, text = v.text FROM (VALUES "
                                       : "UPDATE warpwave.points p SET vector = v.vector FROM (VALUES ");
        for (int64_t i = first; i < end; i++)
            add_row(w, rows, i, rows->texts != NULL, false);
        out_text(&w->statement, rows->texts ? ") v (id, vector, text)" : ") v (id, vector)");
        out_text(&w->statement, ", warpwave.collections c WHERE p.collection = c.number AND p.id = v.id AND c.name = ");
        add_text(w, OID_TEXT, collection);
        status = end_statement(w, "", end - first);
    }
    return status;
}

/* Appends a list of ids in parentheses. */
static void add_ids(sql_writer *w, const char *const *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        out_text(&w->statement, i > 0 ? "," : "(");
        add_text(w, OID_TEXT, ids[i]);
    }
    out_text(&w->statement, ")");
}

ww_status sql_writer_discard(sql_writer *w, const char *collection, const char *const *ids, int64_t count)
{
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < count; first += ROWS_MAX) {
        begin_statement(w, "DELETE FROM warpwave.points p USING warpwave.collections c WHERE p.collection = c.number AND "
                           "c.name = ");
        add_text(w, OID_TEXT, collection);
        out_text(&w->statement, " AND p.id IN ");
        add_ids(w, ids + first, count - first < ROWS_MAX ? count - first : ROWS_MAX);
        status = end_statement(w, "", -1);
    }
    return status;
}

ww_status sql_writer_set_payloads(sql_writer *w, const char *collection, const char *const *ids, const char *const *payloads,
                                  int64_t count)
{
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < count; first += ROWS_MAX) {
        begin_statement(w, "UPDATE warpwave.points p SET payload = v.payload FROM (VALUES ");
        for (int64_t i = first; i < count && i < first + ROWS_MAX; i++) {
            out_text(&w->statement, i > first ? ",(" : "(");
            add_text(w, OID_TEXT, ids[i]);
            out_text(&w->statement, ",");
            add_text(w, OID_JSON, payloads[i]);
            out_text(&w->statement, ")");
        }
        out_text(&w->statement, ") v (id, payload), warpwave.collections c WHERE p.collection = c.number AND p.id = v.id AND "
                                "c.name = ");
        add_text(w, OID_TEXT, collection);
        status = end_statement(w, "", -1);
    }
    return status;
}

ww_status sql_writer_copy_points(sql_writer *w, const char *from, const char *to)
{
    begin_statement(w,
                    "INSERT INTO warpwave.points SELECT t.number, p.id, '\\x00000000', NULL, p.payload FROM warpwave.points p, "
                    "warpwave.collections f, warpwave.collections t WHERE p.collection = f.number AND f.name = ");
    add_text(w, OID_TEXT, from);
    out_text(&w->statement, " AND t.name = ");
    add_text(w, OID_TEXT, to);
    return end_statement(w, "", -1);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static const char *text_or_null(const PGresult *found, int row, int column)
{
    return PQgetisnull(found, row, column) ? NULL : PQgetvalue(found, row, column);
}

/* Vectors come as the text \x..., in which value_read_vector() finds the bits. */
static ww_status load_row(ww_collection *to, const PGresult *found, int row, float *vector, int32_t dim)
{
    const char *id = PQgetvalue(found, row, 0), *text = text_or_null(found, row, 2), *payload = text_or_null(found, row, 3);
    const pg_value value = {PG_TEXT, PQgetvalue(found, row, 1), (size_t)PQgetlength(found, row, 1)};
    ww_rows rows = ww_rows_default();
    int32_t read = 0;
    const vector_fault fault = value_read_vector(VECTOR_BYTES, &value, vector, dim, &read);
    if (fault != VECTOR_OK)
        return ww_fail(WW_CORRUPT_FILE, "the row '%s' of warpwave.points %s", id, vector_fault_text(fault));
    rows.count = 1;
    rows.dim = dim;
    rows.vectors = vector;
    rows.ids = &id;
    rows.payloads = &payload;
    rows.texts = text ? &text : NULL;
    return ww_collection_upsert(to, &rows);
}

ww_status sql_writer_load(sql_writer *w, const char *collection, ww_collection *to, const char *const *ids, int64_t count)
{
    ww_collection_info info = ww_collection_info_default();
    ww_status status = ww_collection_describe(to, &info);
    float *vector = status == WW_OK ? memory_alloc((size_t)info.dim * sizeof *vector) : NULL;
    if (status == WW_OK && !vector)
        status = memory_failed("a vector", (size_t)info.dim * sizeof *vector);
    for (int64_t first = 0; status == WW_OK && first < count; first += ROWS_MAX) {
        PGresult *found = NULL;
        begin_statement(w, "SELECT p.id, p.vector, p.text, p.payload FROM warpwave.points p, warpwave.collections c WHERE "
                           "p.collection = c.number AND c.name = ");
        add_text(w, OID_TEXT, collection);
        out_text(&w->statement, " AND p.id IN ");
        add_ids(w, ids + first, count - first < ROWS_MAX ? count - first : ROWS_MAX);
        status = w->statement.failed ? memory_failed("a statement", sizeof w->values) : execute(w, w->statement.bytes, &found);
        for (int row = 0; status == WW_OK && row < PQntuples(found); row++)
            status = load_row(to, found, row, vector, info.dim);
        PQclear(found);
    }
    memory_free(vector);
    return status;
}

/* ---- collections and notes ----------------------------------------------------------------------------------------------- */

ww_status sql_writer_create_collection(sql_writer *w, const ww_collection_config *config, const char *kind)
{
    char dim[16], type[32];
    snprintf(dim, sizeof dim, "%d", (int)config->dim);
    snprintf(type, sizeof type, "%s%s", ww_vector_type_name(config->type), kind);
    if (strlen(config->name) > SHARED_NAME_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "the name '%s' has more than %d bytes", config->name, SHARED_NAME_MAX);
    begin_statement(w, "INSERT INTO warpwave.collections (name, dim, metric, type) VALUES (");
    add_text(w, OID_TEXT, config->name);
    out_text(&w->statement, ",");
    add_text(w, OID_TEXT, dim);
    out_text(&w->statement, "::int,");
    add_text(w, OID_TEXT, ww_metric_name(config->metric));
    out_text(&w->statement, ",");
    add_text(w, OID_TEXT, type);
    return end_statement(w, ")", 1);
}

ww_status sql_writer_drop_collection(sql_writer *w, const char *name)
{
    begin_statement(w, "DELETE FROM warpwave.collections WHERE name = ");
    add_text(w, OID_TEXT, name);
    return end_statement(w, "", 1);
}

ww_status sql_writer_note(sql_writer *w, const char *name, const char *value)
{
    begin_statement(w, value ? "INSERT INTO warpwave.notes VALUES (" : "DELETE FROM warpwave.notes WHERE name = ");
    add_text(w, OID_TEXT, name);
    if (!value)
        return end_statement(w, "", -1);
    out_text(&w->statement, ",");
    add_text(w, OID_JSON, value);
    return end_statement(w, ") ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value", 1);
}

ww_status sql_writer_notes(sql_writer *w, const char *prefix, void (*tell)(void *user, const char *rest, const char *value),
                           void *user)
{
    PGresult *found = NULL;
    begin_statement(w, "SELECT name, value FROM warpwave.notes ORDER BY name");
    ww_status status =
        w->statement.failed ? memory_failed("a statement", sizeof w->values) : execute(w, w->statement.bytes, &found);
    const size_t length = strlen(prefix);
    for (int row = 0; status == WW_OK && row < PQntuples(found); row++)
        if (strncmp(PQgetvalue(found, row, 0), prefix, length) == 0)
            tell(user, PQgetvalue(found, row, 0) + length, PQgetvalue(found, row, 1));
    PQclear(found);
    return status;
}
