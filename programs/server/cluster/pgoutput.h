/* Messages of PostgreSQL's logical replication, as the plugin pgoutput (protocol version 1) writes them.
 *
 * The reader touches nothing but the bytes of one message, so the fuzzer enters here. Texts and values point into the message.
 */
#ifndef WW_SERVER_CLUSTER_PGOUTPUT_H
#define WW_SERVER_CLUSTER_PGOUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { PG_COLUMNS_MAX = 1600 }; /* of a table, in PostgreSQL */

typedef uint64_t pg_lsn; /* a place in the log; 0: none */

typedef enum pg_kind {
    PG_BEGIN = 'B',
    PG_COMMIT = 'C',
    PG_RELATION = 'R', /* describes a table, before the first change of it */
    PG_INSERT = 'I',
    PG_UPDATE = 'U',
    PG_DELETE = 'D',
    PG_TRUNCATE = 'T',
    PG_OTHER = 0 /* type, origin or message: nothing that a follower needs */
} pg_kind;

typedef enum pg_presence {
    PG_NULL = 'n',
    PG_UNCHANGED = 'u', /* a large value that the change did not touch and that is not in the log */
    PG_TEXT = 't',
    PG_BINARY = 'b' /* the type's binary form; only the vectors of a copy */
} pg_presence;

typedef struct pg_value {
    pg_presence presence;
    const char *bytes; /* of a text, not NUL-terminated, or of a binary form */
    size_t length;
} pg_value;

typedef struct pg_column {
    const char *name;
    uint32_t type; /* its OID */
    bool key;      /* part of the replica identity */
} pg_column;

typedef struct pg_message {
    pg_kind kind;
    uint32_t relation;         /* the table's OID; of RELATION, INSERT, UPDATE and DELETE */
    pg_lsn commit, end;        /* BEGIN: `commit`; COMMIT: both. `end` is where the next transaction may begin */
    int64_t microseconds;      /* BEGIN and COMMIT: when it was committed, since 2000-01-01 */
    const char *schema, *name; /* RELATION */
    char identity;             /* RELATION: 'd' the primary key, 'n' nothing, 'f' all columns, 'i' an index */
    int32_t column_count;      /* RELATION */
    const pg_column *columns;
    /* The old row of an UPDATE that changed its key, or of a DELETE: values of the key, the others are NULL. */
    int32_t old_count;
    const pg_value *old_values;
    int32_t new_count; /* the row after an INSERT or UPDATE */
    const pg_value *new_values;
    int32_t truncated_count; /* TRUNCATE */
    const uint32_t *truncated;
} pg_message;

/* Memory for the lists of one message; each reading overwrites it. Begin with {0}. */
typedef struct pg_reader {
    pg_column *columns;
    pg_value *old_values, *new_values;
    uint32_t *relations;
    int32_t relation_capacity;
} pg_reader;

/* Reads a message. WW_CORRUPT_FILE if it does not belong to this protocol: cut short, a count that it cannot have, a text
 * without an end. */
ww_status pgoutput_read(pg_reader *reader, const char *bytes, size_t length, pg_message *message);

void pgoutput_free(pg_reader *reader);

#endif
