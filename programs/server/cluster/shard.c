/* Shards. PostgreSQL's hash functions have been the same since version 8.4, and hash indexes on disk depend on them; they are
 * Bob Jenkins's lookup3 with the length in the first values. */
#include "server/cluster/shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { TYPE_INT8 = 20, TYPE_INT2 = 21, TYPE_INT4 = 23, TYPE_TEXT = 25, TYPE_VARCHAR = 1043, TYPE_UUID = 2950 };
enum { BLOCK_BYTES = 12, UUID_BYTES = 16, HASH_BEGIN = 0x9e3779b9u + 3923095u };

/* ---- the hash ------------------------------------------------------------------------------------------------------------ */

static uint32_t rotate(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static void mix(uint32_t s[3])
{
    static const int turns[] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];
        *a -= *c;
        *a ^= rotate(*c, turns[i]);
        *c += *b;
    }
}

static uint32_t finish(uint32_t a, uint32_t b, uint32_t c)
{
    c = (c ^ b) - rotate(b, 14);
    a = (a ^ c) - rotate(c, 11);
    b = (b ^ a) - rotate(a, 25);
    c = (c ^ b) - rotate(b, 16);
    a = (a ^ c) - rotate(c, 4);
    b = (b ^ a) - rotate(a, 14);
    return (c ^ b) - rotate(b, 24);
}

uint32_t pg_hash_bytes(const char *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    uint32_t s[3] = {HASH_BEGIN + (uint32_t)count, HASH_BEGIN + (uint32_t)count, HASH_BEGIN + (uint32_t)count};
    for (; count >= BLOCK_BYTES; count -= BLOCK_BYTES, at += BLOCK_BYTES) {
        for (int i = 0; i < BLOCK_BYTES; i++)
            s[i / 4] += (uint32_t)at[i] << 8 * (i % 4);
        mix(s);
    }
    for (size_t i = 0; i < count; i++) /* the lowest byte of the third number stays the length's */
        s[i / 4] += (uint32_t)at[i] << 8 * (i % 4 + (i >= 8 ? 1 : 0));
    return finish(s[0], s[1], s[2]);
}

uint32_t pg_hash_integer(int64_t value)
{
    const uint32_t low = (uint32_t)value, high = (uint32_t)((uint64_t)value >> 32), first = HASH_BEGIN + 4;
    return finish(first + (low ^ (value >= 0 ? high : ~high)), first, first);
}

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

static bool is_integer(uint32_t type)
{
    return type == TYPE_INT2 || type == TYPE_INT4 || type == TYPE_INT8;
}

static bool is_text(uint32_t type)
{
    return type == TYPE_TEXT || type == TYPE_VARCHAR;
}

ww_status shard_check(const followed_table *table)
{
    for (int32_t i = table->shard_key; table->shards > 1 && i < table->key_count; i++) {
        const followed_column *key = &table->keys[i];
        if (!is_integer(key->type) && !is_text(key->type) && key->type != TYPE_UUID)
            return ww_fail(WW_UNSUPPORTED,
                           "table %s.%s: the column '%s' of the primary key has a type that cannot be spread over shards; "
                           "integers, uuid, text and varchar can",
                           table->schema, table->name, key->name);
    }
    return WW_OK;
}

static void put_hash(out *sql, const followed_column *key)
{
    char *name = pg_quoted(key->name);
    if (!name)
        sql->failed = true;
    else if (is_integer(key->type))
        out_format(sql, "hashint8(%s::bigint)", name);
    else if (is_text(key->type))
        out_format(sql, "hashtext(%s::text COLLATE \"C\")", name);
    else
        out_format(sql, "uuid_hash(%s)", name);
    memory_free(name);
}

/* Several columns: the hash so far and the next column's, side by side in 64 bits, are hashed again. */
void shard_put_condition(out *sql, const followed_table *table)
{
    const int32_t first = table->shard_key;
    out_text(sql, "((");
    for (int32_t i = first + 1; i < table->key_count; i++)
        out_text(sql, "hashint8((");
    put_hash(sql, &table->keys[first]);
    for (int32_t i = first + 1; i < table->key_count; i++) {
        out_text(sql, "::bigint << 32) # ");
        put_hash(sql, &table->keys[i]);
        out_text(sql, "::bigint)");
    }
    out_format(sql, " & 2147483647) %% %d = %d)", (int)table->shards, (int)table->shard);
}

static uint32_t hash_uuid(const pg_value *value)
{
    char bytes[UUID_BYTES] = {0};
    int digits = 0;
    for (size_t i = 0; i < value->length && digits < 2 * UUID_BYTES; i++) {
        const char c = value->bytes[i];
        if (c == '-')
            continue;
        const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        bytes[digits / 2] = (char)((unsigned char)bytes[digits / 2] << 4 | (digit & 15));
        digits++;
    }
    return pg_hash_bytes(bytes, sizeof bytes);
}

static uint32_t hash_of(const followed_column *key, const pg_value *value)
{
    char digits[24] = "";
    if (is_text(key->type))
        return pg_hash_bytes(value->bytes, value->length);
    if (!is_integer(key->type))
        return hash_uuid(value);
    memcpy(digits, value->bytes, value->length < sizeof digits ? value->length : sizeof digits - 1);
    return pg_hash_integer(strtoll(digits, NULL, 10));
}

bool shard_has(const followed_table *table, const table_row *row)
{
    uint32_t hash = 0;
    if (table->shards <= 1)
        return true;
    for (int32_t i = table->shard_key; i < table->key_count; i++) {
        if (row->keys[i]->presence != PG_TEXT)
            return false;
        const uint32_t own = hash_of(&table->keys[i], row->keys[i]);
        const uint64_t sign = (int32_t)own < 0 ? UINT64_C(0xffffffff00000000) : 0; /* as int4 becomes bigint */
        hash = i == table->shard_key ? own : pg_hash_integer((int64_t)((uint64_t)hash << 32 ^ (sign | own)));
    }
    return (hash & INT32_MAX) % (uint32_t)table->shards == (uint32_t)table->shard;
}
