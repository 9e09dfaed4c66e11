/* Connections to PostgreSQL. */
#ifndef WW_SERVER_CLUSTER_CONNECT_H
#define WW_SERVER_CLUSTER_CONNECT_H

#include <libpq-fe.h>

#include "server/cluster/pgoutput.h"

/* Opens a connection with the settings that values.h relies on; `replication` opens one for the stream of changes. The message
 * of a failure never contains the password. Blocks for at most `seconds`. */
ww_status pg_open(const char *conninfo, bool replication, int seconds, PGconn **connection);

/* Runs a statement with one text parameter, $1, and expects rows or nothing. The caller clears the result. NULL: no parameter.
 */
ww_status pg_run(PGconn *connection, const char *what, const char *sql, const char *parameter, PGresult **result);

/* The same for a statement without parameters and without rows. */
ww_status pg_do(PGconn *connection, const char *what, const char *sql);

/* Fails with the connection's message, as one line: "what: message". */
ww_status pg_failed(PGconn *connection, const char *what);

/* A field of a result; "" for NULL. */
const char *pg_field(const PGresult *result, int row, int column);

/* Copies (memory_free()) a name with its quotes, for SQL. NULL: out of memory. */
char *pg_quoted(const char *name);

#endif
