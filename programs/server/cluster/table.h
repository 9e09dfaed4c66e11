/* A table that a collection follows: which columns make the id, the vector, the text and the payload, and where they are in a
 * row of the copy and of the stream. */
#ifndef WW_SERVER_CLUSTER_TABLE_H
#define WW_SERVER_CLUSTER_TABLE_H

#include "server/cluster/connect.h"
#include "server/cluster/values.h"
#include "server/follow_config.h"

enum { TABLE_KEYS_MAX = 32, TABLE_PAYLOAD_MAX = 256, TABLE_NAME_BYTES = 64 }; /* PostgreSQL's limits are 32, 1600 and 64 */

typedef struct followed_column {
    char name[TABLE_NAME_BYTES];
    uint32_t type;
    json_form form;
    int32_t place; /* in the rows of the stream, which the last RELATION message described; -1: it is missing */
} followed_column;

/* What the vector column has, in the tables of a cluster: numbers; the indices and then the values of a sparse vector; the
 * vectors of a multivector, one after the other. */
typedef enum row_kind { ROWS_DENSE, ROWS_SPARSE, ROWS_MULTI, ROW_KINDS } row_kind;

typedef struct followed_table {
    char collection[2 * TABLE_NAME_BYTES];
    char schema[TABLE_NAME_BYTES], name[TABLE_NAME_BYTES];
    uint32_t relation; /* OID */
    ww_metric metric;
    int32_t key_count, payload_count;
    followed_column keys[TABLE_KEYS_MAX], vector, text, payload[TABLE_PAYLOAD_MAX];
    vector_form vector_form;
    bool has_text;
    int32_t dim;
    row_kind kind;
    bool whole_payload;    /* the only column of the payload is all of it, and NULL is none */
    int64_t order;         /* in which digests of collections are joined */
    int32_t column_count;  /* of the stream's rows */
    int32_t shard, shards; /* which part of the rows is followed, from 0; 1 shard: all rows */
    int32_t shard_key;     /* the first column of the key by which rows are spread over shards */
} followed_table;

/* Reads the table's description from the database and checks it: that it is a table with a primary key, that the columns exist
 * and can be what they are asked to be. The message of a refusal has the SQL that repairs it, where SQL can. */
ww_status table_describe(PGconn *connection, const table_config *config, followed_table *table);

/* Finds the columns in a RELATION message. WW_UNSUPPORTED, with a sentence, if a column is gone or has another type. */
ww_status table_match(followed_table *table, const pg_message *relation);

/* Appends the SELECT whose rows a copy reads, in the order keys, vector, text, payload. */
void table_put_select(out *sql, const followed_table *table);

/* One row, from the copy or from the stream. */
typedef struct table_row {
    const pg_value *keys[TABLE_KEYS_MAX];
    const pg_value *vector, *text;
    const pg_value *payload[TABLE_PAYLOAD_MAX];
} table_row;

/* Point into the values of a row of the copy, or of the stream. */
void table_row_of_copy(const followed_table *table, const pg_value *values, table_row *row);
void table_row_of_stream(const followed_table *table, const pg_value *values, table_row *row);

/* Appends the id. False if a part of the key is missing. */
bool table_put_id(out *o, const followed_table *table, const table_row *row);

/* Appends the payload; nothing if there is none. Values that the database must convert are asked for on `connection`; so are
 * none of a copy, whose SELECT has them converted: NULL there. `old`, JSON of the row as it was, has the values that were not
 * sent; NULL: there are none. */
ww_status table_put_payload(out *o, const followed_table *table, const table_row *row, PGconn *connection, const char *old);

#endif
