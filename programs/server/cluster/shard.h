/* Which rows of a table belong to a shard: a function of the primary key that PostgreSQL evaluates in a publication's row
 * filter and in a copy, and the node in what a stream without such a filter brings. Both must agree to the bit. */
#ifndef WW_SERVER_CLUSTER_SHARD_H
#define WW_SERVER_CLUSTER_SHARD_H

#include "server/cluster/table.h"

/* Fails with WW_UNSUPPORTED if the table's key has a type that cannot be spread over shards: integers, uuid and text can. */
ww_status shard_check(const followed_table *table);

/* Appends the condition, in parentheses, that admits the rows of the table's shard. */
void shard_put_condition(out *sql, const followed_table *table);

/* Does the row belong to the table's shard? True for a whole table. */
bool shard_has(const followed_table *table, const table_row *row);

/* PostgreSQL's hash functions. */
uint32_t pg_hash_bytes(const char *bytes, size_t count); /* hashtext, uuid_hash */
uint32_t pg_hash_integer(int64_t value);                 /* hashint8 */

#endif
