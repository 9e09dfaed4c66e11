/* Describing followed tables, and finding their columns. */
#include "server/cluster/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/cluster/shard.h"

/* ---- the description ----------------------------------------------------------------------------------------------------- */

enum { COLUMN_NAME, COLUMN_TYPE, COLUMN_TYPE_NAME, COLUMN_MODIFIER, COLUMN_IS_ENUM, COLUMN_KEY_PLACE, COLUMN_GENERATED };

static const char table_sql[] = "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relreplident FROM pg_class c JOIN "
                                "pg_namespace n ON n.oid = c.relnamespace "
                                "WHERE c.oid = pg_catalog.to_regclass($1)";

/* The place of a column in the primary key is counted from 1. */
static const char columns_sql[] =
    "SELECT a.attname, a.atttypid, t.typname, a.atttypmod, (t.typtype = 'e')::int, "
    "coalesce(array_position(i.indkey::int2[], a.attnum), -1) + 1, coalesce(to_jsonb(a)->>'attgenerated', '') "
    "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
    "LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
    "WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

static int32_t field_int(const PGresult *rows, int row, int column)
{
    return (int32_t)strtol(pg_field(rows, row, column), NULL, 10);
}

static int find_column(const PGresult *columns, const char *name)
{
    for (int i = 0; i < PQntuples(columns); i++)
        if (strcmp(pg_field(columns, i, COLUMN_NAME), name) == 0)
            return i;
    return -1;
}

static void take_column(const PGresult *columns, int row, followed_column *column)
{
    text_copy(column->name, sizeof column->name, pg_field(columns, row, COLUMN_NAME));
    column->type = (uint32_t)strtoul(pg_field(columns, row, COLUMN_TYPE), NULL, 10);
    column->form = json_form_of(column->type, field_int(columns, row, COLUMN_IS_ENUM) != 0);
    column->place = -1;
}

static ww_status take_named(const followed_table *table, const PGresult *columns, const char *name, followed_column *column)
{
    const int row = find_column(columns, name);
    if (row < 0)
        return ww_fail(WW_NOT_FOUND, "table %s.%s has no column '%s'", table->schema, table->name, name);
    if (*pg_field(columns, row, COLUMN_GENERATED) != '\0')
        return ww_fail(WW_UNSUPPORTED,
                       "table %s.%s: the column '%s' is generated, and PostgreSQL does not replicate generated "
                       "columns; store its values in an ordinary column",
                       table->schema, table->name, name);
    take_column(columns, row, column);
    return WW_OK;
}

static ww_status take_keys(followed_table *table, const PGresult *columns)
{
    for (int i = 0; i < PQntuples(columns); i++) {
        const int32_t place = field_int(columns, i, COLUMN_KEY_PLACE);
        if (place < 1 || place > TABLE_KEYS_MAX)
            continue;
        take_column(columns, i, &table->keys[place - 1]);
        if (place > table->key_count)
            table->key_count = place;
    }
    if (table->key_count == 0)
        return ww_fail(WW_UNSUPPORTED,
                       "table %s.%s has no primary key, so its rows cannot be told apart; add one: ALTER TABLE "
                       "\"%s\".\"%s\" ADD PRIMARY KEY (...)",
                       table->schema, table->name, table->schema, table->name);
    for (int32_t i = 0; i < table->key_count; i++)
        if (table->keys[i].form == FORM_DATABASE || table->keys[i].form == FORM_JSON)
            return ww_fail(WW_UNSUPPORTED,
                           "table %s.%s: the column '%s' of the primary key has a type that cannot be part of "
                           "an id; integers, uuid and text can",
                           table->schema, table->name, table->keys[i].name);
    return WW_OK;
}

static ww_status take_vector(followed_table *table, const PGresult *columns, const char *name)
{
    ww_status status = take_named(table, columns, name, &table->vector);
    if (status != WW_OK)
        return status;
    const int row = find_column(columns, name);
    const char *type = pg_field(columns, row, COLUMN_TYPE_NAME);
    table->vector_form = vector_form_of(table->vector.type, type);
    if (table->vector_form == VECTOR_NONE)
        return ww_fail(WW_UNSUPPORTED,
                       "table %s.%s: the column '%s' has the type %s; a vector is vector or halfvec of pgvector, "
                       "float4[], float8[] or bytea",
                       table->schema, table->name, name, type);
    const int32_t modifier = field_int(columns, row, COLUMN_MODIFIER);
    if ((table->vector_form == VECTOR_PGVECTOR || table->vector_form == VECTOR_HALF) && modifier > 0) /* vector(384) */
        table->dim = modifier;
    return WW_OK;
}

static ww_status add_payload(followed_table *table, const PGresult *columns, const char *name)
{
    if (table->payload_count == TABLE_PAYLOAD_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "table %s.%s: more than %d columns for the payload", table->schema, table->name,
                       TABLE_PAYLOAD_MAX);
    return take_named(table, columns, name, &table->payload[table->payload_count++]);
}

static bool is_taken(const followed_table *table, const char *name)
{
    if (strcmp(name, table->vector.name) == 0 || (table->has_text && strcmp(name, table->text.name) == 0))
        return true;
    for (int32_t i = 0; i < table->key_count; i++)
        if (strcmp(name, table->keys[i].name) == 0)
            return true;
    return false;
}

static ww_status take_payload(followed_table *table, const PGresult *columns, const char *list)
{
    ww_status status = WW_OK;
    if (strcmp(list, "*") == 0) {
        for (int i = 0; status == WW_OK && i < PQntuples(columns); i++)
            if (*pg_field(columns, i, COLUMN_GENERATED) == '\0' && !is_taken(table, pg_field(columns, i, COLUMN_NAME)))
                status = add_payload(table, columns, pg_field(columns, i, COLUMN_NAME));
        return status;
    }
    while (status == WW_OK && *list != '\0') {
        const size_t length = strcspn(list, ",");
        char name[TABLE_NAME_BYTES];
        if (length == 0 || length >= sizeof name)
            return ww_fail(WW_INVALID_ARGUMENT, "'%s' is not a list of columns, separated by commas", list);
        memcpy(name, list, length);
        name[length] = '\0';
        status = add_payload(table, columns, name);
        list += length + (list[length] == ',');
    }
    return status;
}

/* The dimension of the first vector, if the type does not say it. */
static ww_status find_dim(PGconn *connection, followed_table *table)
{
    out sql = {0};
    PGresult *row = NULL;
    out_text(&sql, "SELECT ");
    char *vector = pg_quoted(table->vector.name), *schema = pg_quoted(table->schema), *name = pg_quoted(table->name);
    if (vector && schema && name)
        out_format(&sql, "%s FROM %s.%s WHERE %s IS NOT NULL LIMIT 1", vector, schema, name, vector);
    ww_status status = vector && schema && name && !sql.failed ? pg_run(connection, table->name, sql.bytes, NULL, &row)
                                                               : memory_failed("a statement", sql.length);
    if (status == WW_OK && PQntuples(row) > 0) {
        const pg_value value = {PG_TEXT, pg_field(row, 0, 0), (size_t)PQgetlength(row, 0, 0)};
        (void)value_read_vector(table->vector_form, &value, NULL, 0, &table->dim);
    }
    if (status == WW_OK && (table->dim < 1 || table->dim > WW_DIM_MAX))
        status = ww_fail(WW_UNSUPPORTED,
                         "table %s.%s: the dimension of the column '%s' is not known, because the table has no "
                         "vector yet; give the column a type with a dimension, as in vector(384), or add a row",
                         table->schema, table->name, table->vector.name);
    if (row)
        PQclear(row);
    memory_free(vector);
    memory_free(schema);
    memory_free(name);
    out_free(&sql);
    return status;
}

static ww_status describe_columns(PGconn *connection, const table_config *config, followed_table *table, const char *oid)
{
    PGresult *columns = NULL;
    ww_status status = pg_run(connection, config->table, columns_sql, oid, &columns);
    if (status != WW_OK)
        return status;
    status = take_keys(table, columns);
    if (status == WW_OK && config->vector)
        status = take_vector(table, columns, config->vector);
    table->has_text = config->text != NULL;
    if (status == WW_OK && config->text)
        status = take_named(table, columns, config->text, &table->text);
    if (status == WW_OK && config->payload)
        status = take_payload(table, columns, config->payload);
    PQclear(columns);
    return status == WW_OK && table->dim == 0 && !config->raw ? find_dim(connection, table) : status;
}

ww_status table_describe(PGconn *connection, const table_config *config, followed_table *table)
{
    PGresult *found = NULL;
    *table = (followed_table){.metric = config->metric, .shards = 1};
    ww_status status = pg_run(connection, config->table, table_sql, config->table, &found);
    if (status != WW_OK)
        return status;
    if (PQntuples(found) == 0) {
        status = ww_fail(WW_NOT_FOUND, "there is no table %s in the database", config->table);
    } else {
        text_copy(table->schema, sizeof table->schema, pg_field(found, 0, 1));
        text_copy(table->name, sizeof table->name, pg_field(found, 0, 2));
        text_copy(table->collection, sizeof table->collection, config->collection ? config->collection : table->name);
        table->relation = (uint32_t)strtoul(pg_field(found, 0, 0), NULL, 10);
        if (strcmp(pg_field(found, 0, 3), "r") != 0)
            status = ww_fail(WW_UNSUPPORTED,
                             "%s is not an ordinary table; views, foreign and partitioned tables cannot be "
                             "followed",
                             config->table);
        else if (strcmp(pg_field(found, 0, 4), "n") == 0)
            status = ww_fail(WW_UNSUPPORTED,
                             "table %s replicates no keys of changed rows; repair it: ALTER TABLE %s REPLICA "
                             "IDENTITY DEFAULT",
                             config->table, config->table);
    }
    if (status == WW_OK)
        status = describe_columns(connection, config, table, pg_field(found, 0, 0));
    PQclear(found);
    return status;
}

/* ---- the stream's rows --------------------------------------------------------------------------------------------------- */

static ww_status match_column(const followed_table *table, const pg_message *relation, followed_column *column)
{
    column->place = -1;
    for (int32_t i = 0; i < relation->column_count; i++) {
        if (strcmp(relation->columns[i].name, column->name) != 0)
            continue;
        if (relation->columns[i].type != column->type)
            return ww_fail(WW_UNSUPPORTED, "table %s.%s: the column '%s' has another type than when the copy was made",
                           table->schema, table->name, column->name);
        column->place = i;
        return WW_OK;
    }
    return ww_fail(WW_UNSUPPORTED, "table %s.%s: the column '%s' was dropped or renamed", table->schema, table->name,
                   column->name);
}

ww_status table_match(followed_table *table, const pg_message *relation)
{
    ww_status status = table->vector_form == VECTOR_NONE ? WW_OK : match_column(table, relation, &table->vector);
    table->column_count = relation->column_count;
    if (status == WW_OK && table->has_text)
        status = match_column(table, relation, &table->text);
    for (int32_t i = 0; status == WW_OK && i < table->key_count; i++)
        status = match_column(table, relation, &table->keys[i]);
    for (int32_t i = 0; status == WW_OK && i < table->payload_count; i++)
        status = match_column(table, relation, &table->payload[i]);
    for (int32_t i = 0; status == WW_OK && i < table->key_count; i++)
        if (!relation->columns[table->keys[i].place].key && relation->identity != 'f')
            status = ww_fail(WW_UNSUPPORTED,
                             "table %s.%s: the replica identity no longer contains the column '%s' of the "
                             "primary key; repair it: ALTER TABLE \"%s\".\"%s\" REPLICA IDENTITY DEFAULT",
                             table->schema, table->name, table->keys[i].name, table->schema, table->name);
    return status;
}

void table_row_of_stream(const followed_table *table, const pg_value *values, table_row *row)
{
    for (int32_t i = 0; i < table->key_count; i++)
        row->keys[i] = &values[table->keys[i].place];
    row->vector = table->vector_form == VECTOR_NONE ? NULL : &values[table->vector.place];
    row->text = table->has_text ? &values[table->text.place] : NULL;
    for (int32_t i = 0; i < table->payload_count; i++)
        row->payload[i] = &values[table->payload[i].place];
}

/* ---- the copy's rows ----------------------------------------------------------------------------------------------------- */

/* A column as its type's output function writes it, as in the stream; a cast to text would differ for bool and char(n). */
static void put_column(out *sql, const followed_column *column)
{
    char *name = pg_quoted(column->name);
    if (!name)
        sql->failed = true;
    else if (column->form == FORM_DATABASE)
        out_format(sql, "to_jsonb(%s)::text", name);
    else
        out_format(sql, "CASE WHEN %s IS NOT NULL THEN format('%%s', %s) END", name, name);
    memory_free(name);
}

void table_put_select(out *sql, const followed_table *table)
{
    char *schema = pg_quoted(table->schema), *name = pg_quoted(table->name), *vector = pg_quoted(table->vector.name);
    out_text(sql, "SELECT ");
    for (int32_t i = 0; i < table->key_count; i++) {
        out_text(sql, i > 0 ? ", " : "");
        put_column(sql, &table->keys[i]);
    }
    if (schema && name && vector && table->vector_form != VECTOR_NONE)
        out_format(sql, vector_form_is_binary(table->vector_form) ? ", %s" : ", %s::text", vector);
    if (table->has_text) {
        out_text(sql, ", ");
        put_column(sql, &table->text);
    }
    for (int32_t i = 0; i < table->payload_count; i++) {
        out_text(sql, ", ");
        put_column(sql, &table->payload[i]);
    }
    if (schema && name && vector)
        out_format(sql, " FROM ONLY %s.%s", schema, name);
    else
        sql->failed = true;
    if (table->shards > 1) {
        out_text(sql, " WHERE ");
        shard_put_condition(sql, table);
    }
    memory_free(schema);
    memory_free(name);
    memory_free(vector);
}

void table_row_of_copy(const followed_table *table, const pg_value *values, table_row *row)
{
    for (int32_t i = 0; i < table->key_count; i++)
        row->keys[i] = values++;
    row->vector = table->vector_form == VECTOR_NONE ? NULL : values++;
    row->text = table->has_text ? values++ : NULL;
    for (int32_t i = 0; i < table->payload_count; i++)
        row->payload[i] = values++;
}

/* ---- ids and payloads ---------------------------------------------------------------------------------------------------- */

bool table_put_id(out *o, const followed_table *table, const table_row *row)
{
    json_form forms[TABLE_KEYS_MAX];
    for (int32_t i = 0; i < table->key_count; i++)
        forms[i] = table->keys[i].form;
    return value_put_id(o, row->keys, forms, table->key_count);
}

/* Has the database convert a value of the stream to JSON. */
static ww_status put_converted(out *o, PGconn *connection, const followed_column *column, const pg_value *value)
{
    char *text = memory_copy_text(value->bytes, value->length);
    out sql = {0};
    PGresult *row = NULL;
    /* The type has to be named: format_type() quotes it and finds its schema. */
    out_format(&sql, "SELECT format('SELECT to_jsonb(%%L::%%s)::text', $1::text, format_type(%u, NULL))",
               (unsigned)column->type);
    ww_status status =
        text && !sql.failed ? pg_run(connection, column->name, sql.bytes, text, &row) : memory_failed("a value", value->length);
    PGresult *json = NULL;
    if (status == WW_OK)
        status = pg_run(connection, column->name, pg_field(row, 0, 0), NULL, &json);
    if (status == WW_OK)
        out_text(o, pg_field(json, 0, 0));
    if (row)
        PQclear(row);
    if (json)
        PQclear(json);
    memory_free(text);
    out_free(&sql);
    return status;
}

ww_status table_put_payload(out *o, const followed_table *table, const table_row *row, PGconn *connection, const char *old)
{
    ww_status status = WW_OK;
    if (table->whole_payload) {
        const pg_value *value = row->payload[0];
        if (value->presence == PG_TEXT)
            out_bytes(o, value->bytes, value->length);
        else if (value->presence == PG_UNCHANGED && old)
            out_text(o, old);
        return o->failed ? memory_failed("a payload", o->length) : WW_OK;
    }
    out_text(o, "{");
    for (int32_t i = 0; status == WW_OK && i < table->payload_count; i++) {
        const followed_column *column = &table->payload[i];
        const pg_value *value = row->payload[i];
        const char *kept =
            old && value->presence == PG_UNCHANGED ? json_find(json_root(old), column->name, strlen(column->name)) : NULL;
        out_text(o, i > 0 ? "," : "");
        out_quoted(o, column->name, strlen(column->name));
        out_text(o, ":");
        if (kept)
            out_bytes(o, kept, (size_t)(json_end(kept) - kept));
        else if (column->form == FORM_DATABASE && connection && value->presence == PG_TEXT)
            status = put_converted(o, connection, column, value);
        else
            value_put_json(o, column->form, value);
    }
    out_text(o, "}");
    return status == WW_OK && o->failed ? memory_failed("a payload", o->length) : status;
}
