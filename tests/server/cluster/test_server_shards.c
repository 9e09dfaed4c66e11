/* Which rows belong to a shard, as PostgreSQL 15 says it, and which replica is asked. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/cluster/shard.h"
#include "server/nodes/peers.h"
#include "support/check.h"

/* SELECT hashtext('...' COLLATE "C")::bigint & 4294967295, and the same of hashint8 and uuid_hash. */
static void hashes_are_those_of_postgresql(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t hash;
    } TEXTS[] = {{"", 2817148525u},
                 {"a", 1075015857u},
                 {"abcdefgh", 2334039091u},
                 {"abcdefghijk", 2811163603u},
                 {"abcdefghijkl", 2708880084u},
                 {"käse9käse9käse9käse9käse9", 3009402928u}};
    static const struct {
        int64_t value;
        uint32_t hash;
    } INTEGERS[] = {
        {0, 4022255791u}, {1, 2389907270u}, {-1, 385747274u}, {123456789012345, 297539683u}, {INT64_MIN, 4198209043u}};
    static const char uuid[] = "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        assert_int_equal(pg_hash_bytes(TEXTS[i].text, strlen(TEXTS[i].text)), TEXTS[i].hash);
    for (size_t i = 0; i < sizeof INTEGERS / sizeof *INTEGERS; i++)
        assert_int_equal(pg_hash_integer(INTEGERS[i].value), INTEGERS[i].hash);
    assert_int_equal(pg_hash_bytes(uuid, 16), 776152245u);
}

static followed_table table_of(int count, const uint32_t *types)
{
    followed_table table = {.schema = "public", .name = "docs", .key_count = count, .shards = 4};
    for (int i = 0; i < count; i++) {
        table.keys[i].type = types[i];
        memcpy(table.keys[i].name, i == 0 ? "a" : "b", 2);
    }
    return table;
}

/* Returns the number of the shard that has a row with these keys. */
static int32_t shard_of(followed_table *table, const char *const *keys)
{
    pg_value values[2];
    table_row row = {.keys = {&values[0], &values[1]}};
    int32_t found = -1;
    for (int32_t i = 0; i < table->key_count; i++)
        values[i] = (pg_value){PG_TEXT, keys[i], strlen(keys[i])};
    for (table->shard = 0; table->shard < table->shards; table->shard++)
        if (shard_has(table, &row)) {
            assert_int_equal(found, -1);
            found = table->shard;
        }
    assert_true(found >= 0);
    return found;
}

static void each_row_has_one_shard(void **state)
{
    (void)state;
    followed_table number = table_of(1, (const uint32_t[]){20}), uuid = table_of(1, (const uint32_t[]){2950});
    followed_table both = table_of(2, (const uint32_t[]){23, 25}), turned = table_of(2, (const uint32_t[]){25, 21});
    assert_int_equal(shard_of(&number, (const char *const[]){"123456789012345"}), 297539683u % 4);
    assert_int_equal(shard_of(&uuid, (const char *const[]){"00112233-4455-6677-8899-aabbccddeeff"}), 776152245u % 4);
    both.shards = turned.shards = 64;
    assert_int_equal(shard_of(&both, (const char *const[]){"7", "x"}), 2012351383u % 64);
    assert_int_equal(shard_of(&turned, (const char *const[]){"b", "-5"}), 842301204u % 64);
    number.shards = 1;
    assert_int_equal(shard_of(&number, (const char *const[]){"5"}), 0);
}

static void the_condition_is_sql(void **state)
{
    (void)state;
    followed_table both = table_of(2, (const uint32_t[]){23, 25}), time = table_of(1, (const uint32_t[]){1114});
    out sql = {0};
    both.shard = 2;
    shard_put_condition(&sql, &both);
    out_bytes(&sql, "", 1);
    assert_string_equal(sql.bytes,
                        "((hashint8((hashint8(\"a\"::bigint)::bigint << 32) # hashtext(\"b\"::text COLLATE \"C\")::bigint)"
                        " & 2147483647) % 4 = 2)");
    out_free(&sql);
    assert_int_equal(shard_check(&both), WW_OK);
    assert_int_equal(shard_check(&time), WW_UNSUPPORTED);
    assert_non_null(strstr(ww_error_message(), "'a'"));
}

/* The least busy one first; those that failed a moment ago last; never a dead one or one that was tried. */
static void a_replica_is_chosen(void **state)
{
    (void)state;
    peers *p = calloc(1, sizeof *p);
    unsigned char tried[NODES_MAX] = {0};
    assert_non_null(p);
    p->count = 5;
    for (int i = 0; i < 5; i++)
        p->list[i] = (peer){.shard = i == 4, .alive = i != 3, .listed = true, .running = 3 - i};
    assert_int_equal(peers_choose(p, 0, tried, 100), 2);
    p->list[2].asked = 7; /* only equally busy ones take turns */
    assert_int_equal(peers_choose(p, 0, tried, 100), 2);
    p->list[2].failed_seconds = 99.5;
    assert_int_equal(peers_choose(p, 0, tried, 100), 1);
    assert_int_equal(peers_choose(p, 0, tried, 101), 2);
    tried[1] = tried[0] = 1;
    assert_int_equal(peers_choose(p, 0, tried, 100), 2);
    tried[2] = 1;
    assert_int_equal(peers_choose(p, 0, tried, 100), -1);
    assert_int_equal(peers_choose(p, 1, tried, 100), 4);
    assert_int_equal(peers_choose(p, 2, tried, 100), -1);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_postgresql),
        cmocka_unit_test(each_row_has_one_shard),
        cmocka_unit_test(the_condition_is_sql),
        cmocka_unit_test(a_replica_is_chosen),
    };
    return cmocka_run_group_tests_name("server: shards and replicas", tests, NULL, NULL);
}
