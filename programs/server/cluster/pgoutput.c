/* Reading the messages of pgoutput. Numbers are big-endian; texts end with a NUL. */
#include "server/cluster/pgoutput.h"

#include <string.h>

#include "base/memory.h"

/* Bytes that are not read yet. After the first failure everything read is 0. */
typedef struct cursor {
    const unsigned char *at, *end;
    bool failed;
} cursor;

static uint64_t read_number(cursor *c, size_t bytes)
{
    uint64_t value = 0;
    if (c->failed || (size_t)(c->end - c->at) < bytes) {
        c->failed = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | *c->at++;
    return value;
}

static const char *read_text(cursor *c)
{
    const unsigned char *nul = c->failed ? NULL : memchr(c->at, 0, (size_t)(c->end - c->at));
    if (!nul) {
        c->failed = true;
        return "";
    }
    const char *text = (const char *)c->at;
    c->at = nul + 1;
    return text;
}

/* A count of columns, which a table can have. */
static int32_t read_count(cursor *c)
{
    const uint64_t count = read_number(c, 2);
    c->failed = c->failed || count > PG_COLUMNS_MAX;
    return c->failed ? 0 : (int32_t)count;
}

static int32_t read_row(cursor *c, pg_value *values)
{
    const int32_t count = read_count(c);
    for (int32_t i = 0; i < count && !c->failed; i++) {
        const uint64_t presence = read_number(c, 1);
        values[i] = (pg_value){(pg_presence)presence, NULL, 0};
        if (presence == PG_TEXT) {
            const uint64_t length = read_number(c, 4);
            c->failed = c->failed || length > (uint64_t)(c->end - c->at);
            if (c->failed)
                break;
            values[i].bytes = (const char *)c->at;
            values[i].length = (size_t)length;
            c->at += length;
        } else if (presence != PG_NULL && presence != PG_UNCHANGED) {
            c->failed = true;
        }
    }
    return c->failed ? 0 : count;
}

static void read_relation(cursor *c, pg_reader *reader, pg_message *message)
{
    message->relation = (uint32_t)read_number(c, 4);
    message->schema = read_text(c);
    message->name = read_text(c);
    message->identity = (char)read_number(c, 1);
    message->column_count = read_count(c);
    for (int32_t i = 0; i < message->column_count && !c->failed; i++) {
        const bool key = (read_number(c, 1) & 1) != 0;
        const char *name = read_text(c);
        const uint32_t type = (uint32_t)read_number(c, 4);
        (void)read_number(c, 4); /* the type's modifier */
        reader->columns[i] = (pg_column){name, type, key};
    }
    message->columns = reader->columns;
}

static void read_change(cursor *c, pg_reader *reader, pg_message *message)
{
    message->relation = (uint32_t)read_number(c, 4);
    char tuple = (char)read_number(c, 1);
    if (message->kind != PG_INSERT && (tuple == 'K' || tuple == 'O')) {
        message->old_count = read_row(c, reader->old_values);
        message->old_values = reader->old_values;
        if (message->kind == PG_DELETE)
            return;
        tuple = (char)read_number(c, 1);
    }
    c->failed = c->failed || tuple != 'N' || message->kind == PG_DELETE;
    message->new_count = read_row(c, reader->new_values);
    message->new_values = reader->new_values;
}

static ww_status read_truncate(cursor *c, pg_reader *reader, pg_message *message)
{
    const uint64_t count = read_number(c, 4);
    (void)read_number(c, 1); /* CASCADE and RESTART IDENTITY */
    if (c->failed || count > (uint64_t)(c->end - c->at) / 4) {
        c->failed = true;
        return WW_OK;
    }
    if ((int32_t)count > reader->relation_capacity) {
        uint32_t *more = memory_resize(reader->relations, (size_t)count * sizeof *more);
        if (!more)
            return memory_failed("tables of a TRUNCATE", (size_t)count * sizeof *more);
        reader->relations = more;
        reader->relation_capacity = (int32_t)count;
    }
    for (uint64_t i = 0; i < count; i++)
        reader->relations[i] = (uint32_t)read_number(c, 4);
    message->truncated = reader->relations;
    message->truncated_count = (int32_t)count;
    return WW_OK;
}

static ww_status reader_prepare(pg_reader *reader)
{
    if (!reader->columns)
        reader->columns = memory_alloc(PG_COLUMNS_MAX * sizeof *reader->columns);
    if (!reader->old_values)
        reader->old_values = memory_alloc(PG_COLUMNS_MAX * sizeof *reader->old_values);
    if (!reader->new_values)
        reader->new_values = memory_alloc(PG_COLUMNS_MAX * sizeof *reader->new_values);
    return reader->columns && reader->old_values && reader->new_values
               ? WW_OK
               : memory_failed("columns", PG_COLUMNS_MAX * sizeof *reader->columns);
}

ww_status pgoutput_read(pg_reader *reader, const char *bytes, size_t length, pg_message *message)
{
    cursor c = {(const unsigned char *)bytes, (const unsigned char *)bytes + length, false};
    *message = (pg_message){.kind = (pg_kind)read_number(&c, 1)};
    ww_status status = reader_prepare(reader);
    if (status != WW_OK)
        return status;
    const int kind = (int)message->kind;
    switch (kind) {
    case PG_BEGIN:
        message->commit = read_number(&c, 8);
        message->microseconds = (int64_t)read_number(&c, 8);
        (void)read_number(&c, 4); /* the transaction's number */
        break;
    case PG_COMMIT:
        (void)read_number(&c, 1); /* flags: none are defined */
        message->commit = read_number(&c, 8);
        message->end = read_number(&c, 8);
        message->microseconds = (int64_t)read_number(&c, 8);
        break;
    case PG_RELATION:
        read_relation(&c, reader, message);
        break;
    case PG_INSERT:
    case PG_UPDATE:
    case PG_DELETE:
        read_change(&c, reader, message);
        break;
    case PG_TRUNCATE:
        status = read_truncate(&c, reader, message);
        break;
    case 'Y': /* a type */
    case 'O': /* an origin */
    case 'M': /* a message of a program */
        message->kind = PG_OTHER;
        return WW_OK;
    default:
        c.failed = true;
    }
    if (status == WW_OK && (c.failed || c.at != c.end))
        status = ww_fail(WW_CORRUPT_FILE, "a replication message of %zu bytes and kind %d is not one of pgoutput, version 1",
                         length, kind);
    return status;
}

void pgoutput_free(pg_reader *reader)
{
    memory_free(reader->columns);
    memory_free(reader->old_values);
    memory_free(reader->new_values);
    memory_free(reader->relations);
    *reader = (pg_reader){0};
}
