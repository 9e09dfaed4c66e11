/* What a server follows: tables of a PostgreSQL database, as the command line describes them, or the schema in which a cluster
 * keeps its collections. */
#ifndef WW_SERVER_FOLLOW_CONFIG_H
#define WW_SERVER_FOLLOW_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/vectors.h>

enum { FOLLOW_TABLES_MAX = 32 };

typedef struct table_config {
    const char *collection; /* NULL: the table's name without its schema */
    const char *table;      /* "public.docs", or as it is written in SQL with quotes */
    const char *vector;     /* a column; NULL: the rows are no points */
    const char *text;       /* a column whose words can be searched; NULL: none */
    const char *payload;    /* columns, separated by commas; "*": all others; NULL: none */
    ww_metric metric;
    bool raw; /* rows of several collections: no dimension belongs to all */
} table_config;

/* Is this the name of the table's collection? (cluster/following.c) */
bool table_config_is(const table_config *table, const char *collection);

typedef struct follow_config {
    const char *conninfo;    /* of libpq: "host=db dbname=app" or a URL; NULL: nothing is followed */
    const char *publication; /* an existing one to use; NULL: the follower makes its own */
    const table_config *tables;
    size_t table_count;
    bool cluster;              /* instead of tables: collections are kept in the schema `warpwave`, and can be changed here */
    int32_t shard, shards;     /* the part of the rows that this node has, from 0; 0 or 1 shards: all rows */
    const char *advertise;     /* the URL at which other nodes reach this one; NULL: it answers by itself */
    const char *node_key_file; /* has the key by which nodes know each other; NULL: none */
    int64_t verify;            /* every search with this number is computed by a second replica, too; 0: none */
} follow_config;

#endif
