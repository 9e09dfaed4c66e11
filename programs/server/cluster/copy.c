/* Copying the tables: COPY in binary form at the slot's snapshot, into one transaction of the store.
 *
 * Readers see the old rows until everything has been copied. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/cluster/follow_state.h"

enum { WAIT_MS = 1000, SIGNATURE_BYTES = 11, COPY_COLUMNS_MAX = TABLE_KEYS_MAX + TABLE_PAYLOAD_MAX + 2 };

static const char signature[SIGNATURE_BYTES] = "PGCOPY\n\377\r\n\0";

static int64_t big_endian(const char *bytes, size_t count)
{
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return count == 2 ? (int16_t)value : (int32_t)value;
}

/* Splits a row into its values. Returns false at the end of the data; `*failed` if it is cut short. */
static bool read_row(const char *bytes, size_t length, pg_value *values, int32_t columns, bool *failed)
{
    const char *at = bytes, *end = bytes + length;
    *failed = length < 2;
    if (*failed || big_endian(at, 2) == -1)
        return false;
    *failed = big_endian(at, 2) != columns;
    at += 2;
    for (int32_t i = 0; i < columns && !*failed; i++) {
        *failed = end - at < 4;
        const int64_t size = *failed ? 0 : big_endian(at, 4);
        at += 4;
        *failed = *failed || size > end - at || size < -1;
        values[i] = size < 0 ? (pg_value){PG_NULL, NULL, 0} : (pg_value){PG_TEXT, at, (size_t)size};
        at += *failed || size < 0 ? 0 : size;
    }
    *failed = *failed || at != end;
    return !*failed;
}

/* The number of a table in the follower's list. */
static int number_of(const follower *f, const followed_table *table)
{
    int number = 0;
    while (&f->tables[number].table != table)
        number++;
    return number;
}

/* One message of COPY; the first one begins with the file's header. */
static ww_status put_message(follower *f, const followed_table *table, const char *bytes, size_t length, bool first)
{
    pg_value values[COPY_COLUMNS_MAX];
    table_row row;
    bool failed = false;
    const int32_t columns =
        table->key_count + (table->vector_form != VECTOR_NONE) + (table->has_text ? 1 : 0) + table->payload_count;
    if (first) {
        if (length < SIGNATURE_BYTES + 8 || memcmp(bytes, signature, SIGNATURE_BYTES) != 0)
            return ww_fail(WW_CORRUPT_FILE, "COPY did not begin with PostgreSQL's header");
        bytes += SIGNATURE_BYTES + 8;
        length -= SIGNATURE_BYTES + 8;
        if (length == 0)
            return WW_OK;
    }
    if (read_row(bytes, length, values, columns, &failed)) {
        pg_value *vector = &values[table->key_count];
        if (vector->presence == PG_TEXT && vector_form_is_binary(table->vector_form))
            vector->presence = PG_BINARY;
        table_row_of_copy(table, values, &row);
        const row_source from = {.table = table};
        return f->shared ? shared_apply(f, number_of(f, table), &from, NULL, &row) : applier_put(f->applier, &from, &row);
    }
    return failed ? ww_fail(WW_CORRUPT_FILE, "COPY sent a row that is not one of the table %s.%s", table->schema, table->name)
                  : WW_OK;
}

static ww_status copy_rows(follower *f, const followed_table *table)
{
    ww_status status = WW_OK;
    for (bool first = true; status == WW_OK;) {
        char *bytes = NULL;
        const int length = PQgetCopyData(f->sql, &bytes, 1);
        if (length > 0) {
            status = put_message(f, table, bytes, (size_t)length, first);
            first = false;
        } else if (length == 0) {
            status = follow_wait(f, f->sql, WAIT_MS);
        }
        PQfreemem(bytes);
        if (length < -1)
            return pg_failed(f->sql, "COPY");
        if (length == -1)
            break;
    }
    return f->stopping && status == WW_OK ? ww_fail(WW_CANCELLED, "the server is stopping") : status;
}

static ww_status copy_table(follower *f, const followed_table *table)
{
    out sql = {0};
    out_text(&sql, "COPY (");
    table_put_select(&sql, table);
    out_text(&sql, ") TO STDOUT (FORMAT binary)");
    ww_status status = sql.failed ? memory_failed("a statement", sql.length) : WW_OK;
    if (status == WW_OK && !f->shared)
        status = applier_clear(f->applier, table);
    if (status == WW_OK) {
        PGresult *result = PQexec(f->sql, sql.bytes);
        status = PQresultStatus(result) == PGRES_COPY_OUT ? WW_OK : pg_failed(f->sql, "COPY");
        PQclear(result);
    }
    if (status == WW_OK)
        status = copy_rows(f, table);
    if (status == WW_OK) { /* the command's own result: an error in the middle is there */
        PGresult *result = PQgetResult(f->sql);
        status = PQresultStatus(result) == PGRES_COMMAND_OK ? WW_OK : pg_failed(f->sql, "COPY");
        PQclear(result);
        while ((result = PQgetResult(f->sql)))
            PQclear(result);
    }
    out_free(&sql);
    return status;
}

ww_status follow_copy(follower *f)
{
    char snapshot[FOLLOW_NAME_BYTES], sql[128];
    pg_lsn begin = 0;
    ww_status status = follow_create_slot(f, snapshot, &begin);
    if (status == WW_OK)
        status = pg_do(f->sql, "the snapshot", "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    snprintf(sql, sizeof sql, "SET TRANSACTION SNAPSHOT '%s'", snapshot);
    if (status == WW_OK)
        status = pg_do(f->sql, "the snapshot", sql);
    if (status == WW_OK && f->shared)
        status = shared_begin_copy(f); /* this has copied the table of collections */
    for (size_t i = f->shared ? SHARED_NOTES : 0; status == WW_OK && i < f->config.table_count; i++) {
        status = copy_table(f, &f->tables[i].table);
        pthread_mutex_lock(&f->lock);
        f->tables[i].stopped[0] = '\0';
        pthread_mutex_unlock(&f->lock);
    }
    if (status == WW_OK)
        status = pg_do(f->sql, "the snapshot", "COMMIT");
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&f->lock);
    f->shown.digests = (replica_digests){.copied = begin}; /* of the old rows */
    pthread_mutex_unlock(&f->lock);
    f->place.copied = true;
    applier_count_copy(f->applier);
    status = follow_commit(f, begin);
    f->place.copied = status == WW_OK;
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&f->lock);
    f->shown.distrust[0] = '\0';
    pthread_mutex_unlock(&f->lock);
    atomic_store(&f->distrusted, false);
    return WW_OK;
}
