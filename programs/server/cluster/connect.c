/* Connections to PostgreSQL: settings, statements, messages. */
#include "server/cluster/connect.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* Every text that arrives depends on these. An idle follower is noticed, on both sides, within a minute. */
static const char settings[] = "-c datestyle=ISO -c timezone=UTC -c intervalstyle=iso_8601 -c extra_float_digits=3 "
                               "-c bytea_output=hex -c statement_timeout=0 -c idle_in_transaction_session_timeout=0";

ww_status pg_failed(PGconn *connection, const char *what)
{
    char text[512];
    size_t length = 0;
    const char *message = connection ? PQerrorMessage(connection) : "out of memory";
    for (; *message != '\0' && length + 1 < sizeof text; message++) {
        const char c = *message == '\n' || *message == '\t' ? ' ' : *message;
        if (c != ' ' || (length > 0 && text[length - 1] != ' '))
            text[length++] = c;
    }
    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
    return ww_fail(WW_IO_ERROR, "%s: %s", what, length > 0 ? text : "the connection was lost");
}

/* libpq prints them otherwise. */
static void ignore_notice(void *user, const char *message)
{
    (void)user, (void)message;
}

ww_status pg_open(const char *conninfo, bool replication, int seconds, PGconn **connection)
{
    char timeout[16];
    snprintf(timeout, sizeof timeout, "%d", seconds);
    const char *const names[] = {"dbname",
                                 "connect_timeout",
                                 "application_name",
                                 "client_encoding",
                                 "options",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "keepalives_count",
                                 replication ? "replication" : NULL,
                                 NULL};
    const char *const values[] = {conninfo, timeout, "warpwave", "UTF8", settings, "15", "5", "3", "database", NULL};
    PGconn *made = PQconnectdbParams(names, values, 1);
    if (made)
        (void)PQsetNoticeProcessor(made, ignore_notice, NULL);
    if (made && PQstatus(made) == CONNECTION_OK) {
        *connection = made;
        return WW_OK;
    }
    const ww_status status = pg_failed(made, "PostgreSQL");
    PQfinish(made);
    return status;
}

ww_status pg_run(PGconn *connection, const char *what, const char *sql, const char *parameter, PGresult **result)
{
    /* A replication connection has only the simple protocol. */
    PGresult *got = parameter ? PQexecParams(connection, sql, 1, NULL, &parameter, NULL, NULL, 0) : PQexec(connection, sql);
    const ExecStatusType state = PQresultStatus(got);
    if (state == PGRES_TUPLES_OK || state == PGRES_COMMAND_OK) {
        *result = got;
        return WW_OK;
    }
    const ww_status status = pg_failed(connection, what);
    PQclear(got);
    return status;
}

ww_status pg_do(PGconn *connection, const char *what, const char *sql)
{
    PGresult *result = NULL;
    const ww_status status = pg_run(connection, what, sql, NULL, &result);
    if (status == WW_OK)
        PQclear(result);
    return status;
}

const char *pg_field(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? "" : PQgetvalue(result, row, column);
}

char *pg_quoted(const char *name)
{
    char *quoted = memory_alloc(2 * strlen(name) + 3), *to = quoted;
    if (!quoted)
        return NULL;
    *to++ = '"';
    for (; *name != '\0'; name++) {
        if (*name == '"')
            *to++ = '"';
        *to++ = *name;
    }
    *to++ = '"';
    *to = '\0';
    return quoted;
}
