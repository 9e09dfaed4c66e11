/* Limited keys and tokens: each sees its collections and points, and nothing else, on every route. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/sha256.h"
#include "server/client.h"
#include "server/keys/keys.h"

static char master[SCRATCH_PATH_BYTES], limited[SCRATCH_PATH_BYTES], claims[8192];

static void with_limited_keys(server_config *config)
{
    snprintf(master, sizeof master, "%s", scratch_write("master", "secret\n", 7));
    snprintf(limited, sizeof limited, "%s", scratch_write("limited", claims, strlen(claims)));
    config->key_file = master;
    config->limited_key_file = limited;
}

/* Adds a line of the key file: `rest` are its claims. The key is called like its name. */
static void add_key(const char *name, const char *rest)
{
    unsigned char digest[SHA256_BYTES];
    char text[SHA256_TEXT];
    key_digest(name, digest);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    const size_t length = strlen(claims);
    snprintf(claims + length, sizeof claims - length, "{\"name\":\"%s\",\"sha256\":\"%s\",%s}\n", name, text, rest);
}

/* Asks with a key and checks the status; the answer is the caller's. */
static http_answer ask(const char *file, int line, http_expected expected, const char *key, const char *request,
                       const char *body)
{
    static char text[16384];
    snprintf(text, sizeof text,
             "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\napi-key: %s\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             request, key, strlen(body), body);
    const int connection = http_connect(expected.port);
    http_send(connection, text, strlen(text));
    http_answer a = http_receive(connection);
    close(connection);
    if (a.status != expected.status)
        fail_msg("%s:%d: %s with %s: %d instead of %d: %s", file, line, request, key, a.status, expected.status, a.body);
    return a;
}
#define ASK_AS(port, status, key, request, body) ask(__FILE__, __LINE__, (http_expected){port, status}, key, request, body)
#define STATUS_AS(port, status, key, request, body)                                                                            \
    do {                                                                                                                       \
        http_answer a_ = ASK_AS(port, status, key, request, body);                                                             \
        http_free(&a_);                                                                                                        \
    } while (0)

/* Points 1 and 2 are of tenant a, 3 of b, 4 of both; the alias `latest` leads to docs. */
static server *tenants_server(void)
{
    server *s = server_for_test(with_limited_keys);
    const int port = server_port(s);
    static const char *const WRITES[][2] = {
        {"PUT /collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}"},
        {"PUT /collections/other", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}"},
        {"PUT /collections/docs/points",
         "{\"points\": [{\"id\": 1, \"vector\": [1, 0], \"payload\": {\"tenant\": \"a\", \"n\": 1}},"
         "{\"id\": 2, \"vector\": [0, 1], \"payload\": {\"tenant\": \"a\", \"n\": 2}},"
         "{\"id\": 3, \"vector\": [1, 1], \"payload\": {\"tenant\": \"b\", \"n\": 777777}},"
         "{\"id\": 4, \"vector\": [2, 1], \"payload\": {\"tenant\": [\"a\", \"b\"], \"n\": 4}}]}"},
        {"PUT /collections/other/points", "{\"points\": [{\"id\": 3, \"vector\": [1, 0], \"payload\": {\"n\": 777777}}]}"},
        {"POST /collections/aliases",
         "{\"actions\": [{\"create_alias\": {\"alias_name\": \"latest\", \"collection_name\": \"docs\"}},"
         "{\"create_alias\": {\"alias_name\": \"elsewhere\", \"collection_name\": \"other\"}}]}"}};
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++)
        STATUS_AS(port, 200, "secret", WRITES[i][0], WRITES[i][1]);
    return s;
}

#define TENANT "\"access\":[{\"collection\":\"docs\",\"access\":\"rw\",\"payload\":{\"tenant\":\"a\"}}]"

/* What a key for some points gets: status, and a part of the answer. */
static const struct {
    int status;
    const char *request, *body, *has;
} TENANT_READS[] = {
    {200, "POST /collections/docs/points/count", "", "\"count\":3"},
    {200, "POST /collections/docs/points/count", "{\"filter\": {\"must\": [{\"key\": \"n\", \"match\": {\"value\": 777777}}]}}",
     "\"count\":0"},
    {200, "POST /collections/docs/points/count", "{\"filter\": {\"should\": [{\"has_id\": [3]}, {\"has_vector\": \"\"}]}}",
     "\"count\":3"},
    {200, "POST /collections/latest/points/scroll", "{}", "\"id\":1"},
    {200, "POST /collections/docs/points/query", "{\"query\": [1, 1], \"with_payload\": true}", "\"id\":4"},
    {200, "POST /collections/docs/points/query", "{\"query\": [1, 1], \"prefetch\": {\"query\": [1, 0], \"limit\": 9}}",
     "\"id\":4"},
    {200, "POST /collections/docs/points/query",
     "{\"query\": {\"fusion\": \"rrf\"}, \"prefetch\": [{\"query\": [1, 0]}, {\"query\": [0, 1]}]}", "\"id\":1"},
    {200, "POST /collections/docs/points/query", "{\"query\": {\"order_by\": \"n\"}}", "\"id\":2"},
    {200, "POST /collections/docs/points/query/batch", "{\"searches\": [{\"query\": [1, 1]}, {\"query\": 1}]}", "\"id\":2"},
    {404, "POST /collections/docs/points/query", "{\"query\": 3}", "No point with id 3"},
    {404, "POST /collections/docs/points/recommend", "{\"positive\": [1, 3], \"limit\": 3}", "No point with id 3"},
    {403, "POST /collections/docs/points/query", "{\"query\": 3, \"lookup_from\": {\"collection\": \"other\"}}", "other"},
    {403, "POST /collections/docs/points/query", "{\"query\": 3, \"lookup_from\": {\"collection\": \"elsewhere\"}}",
     "elsewhere"},
    {403, "POST /collections/docs/points/query/groups", "{\"query\": [1, 1], \"group_by\": \"n\", \"with_lookup\": \"other\"}",
     "other"},
    {200, "POST /collections/docs/points/query/groups", "{\"query\": [1, 1], \"group_by\": \"n\"}", "\"id\":4"},
    {200, "POST /collections/docs/points/search", "{\"vector\": [1, 1], \"limit\": 9}", "\"id\":4"},
    {200, "POST /collections/docs/points", "{\"ids\": [1, 3], \"with_payload\": false}", "\"id\":1"},
    {200, "GET /collections/docs/points/1", "", "\"id\":1"},
    {404, "GET /collections/docs/points/3", "", "does not exist"},
    {200, "POST /collections/docs/facet", "{\"key\": \"n\"}", "\"value\":4"},
    {200, "POST /collections/docs/points/search/matrix/pairs", "{\"sample\": 9, \"limit\": 9}", "\"a\":1"},
    {200, "GET /collections/docs", "", "\"points_count\":3"},
    {200, "GET /collections/docs/exists", "", "true"},
    {200, "GET /collections", "", "docs"},
    {200, "GET /aliases", "", "latest"},
    {200, "GET /warpwave/overview", "", "\"collections\":[]"},
    {200, "GET /v1/models", "", "data"},
    {403, "GET /collections/other", "", "other"},
    {403, "GET /collections/missing", "", "missing"},
    {403, "GET /collections/elsewhere/exists", "", "elsewhere"},
    {403, "POST /collections/elsewhere/points/count", "", "elsewhere"},
    {403, "GET /metrics", "", "whole server"},
    {403, "POST /snapshots", "", "whole server"},
    {403, "DELETE /collections/docs", "", "whole server"},
    {403, "POST /collections/docs/snapshots", "", "whole server"},
    {403, "PUT /collections/docs/index", "{\"field_name\": \"n\", \"field_schema\": \"integer\"}", "some of the points"},
    {403, "POST /warpwave/collections/docs/rows", "{\"ids\": [\"3\"]}", "some of the points"},
    {403, "GET /warpwave/collections/docs/fields", "", "some of the points"},
    {403, "POST /warpwave/collections/docs/rows/delete", "{\"ids\": [\"3\"]}", "some of the points"},
};

static void a_key_with_a_payload_sees_only_its_points(void **state)
{
    (void)state;
    claims[0] = '\0';
    add_key("amy", TENANT);
    server *s = tenants_server();
    for (size_t i = 0; i < sizeof TENANT_READS / sizeof *TENANT_READS; i++) {
        http_answer a = ASK_AS(server_port(s), TENANT_READS[i].status, "amy", TENANT_READS[i].request, TENANT_READS[i].body);
        if (!strstr(a.body, TENANT_READS[i].has) ||
            (a.status == 200 && (strstr(a.body, "\"id\":3") || strstr(a.body, "777777") || strstr(a.body, "other") ||
                                 strstr(a.body, "elsewhere"))))
            fail_msg("%s %s: %s", TENANT_READS[i].request, TENANT_READS[i].body, a.body);
        http_free(&a);
    }
    server_test_end(s);
}

static void a_key_with_a_payload_changes_only_its_points(void **state)
{
    (void)state;
    claims[0] = '\0';
    add_key("amy", TENANT);
    add_key("ann", "\"access\":[{\"collection\":\"docs\",\"access\":\"r\",\"payload\":{\"tenant\":\"a\"}}]");
    server *s = tenants_server();
    const int port = server_port(s);
    static const struct {
        int status;
        const char *request, *body;
    } WRITES[] = {
        {200, "PUT /collections/docs/points",
         "{\"points\": [{\"id\": 5, \"vector\": [1, 2], \"payload\": {\"tenant\": \"a\"}}]}"},
        {403, "PUT /collections/docs/points",
         "{\"points\": [{\"id\": 6, \"vector\": [1, 2], \"payload\": {\"tenant\": \"b\"}}]}"},
        {403, "PUT /collections/docs/points", "{\"points\": [{\"id\": 6, \"vector\": [1, 2]}]}"},
        {403, "PUT /collections/docs/points",
         "{\"points\": [{\"id\": 6, \"vector\": [1, 2], \"payload\": {\"tenant\": [\"a\", \"b\"]}}]}"},
        {403, "PUT /collections/docs/points",
         "{\"points\": [{\"id\": 6, \"vector\": [1, 2], \"payload\": {\"tenant\": \"a\"}},"
         "{\"id\": 3, \"vector\": [1, 2], \"payload\": {\"tenant\": \"a\"}}]}"},
        {403, "PUT /collections/docs/points",
         "{\"batch\": {\"ids\": [3], \"vectors\": [[1, 2]], \"payloads\": [{\"tenant\": \"a\"}]}}"},
        {404, "PUT /collections/docs/points/vectors", "{\"points\": [{\"id\": 3, \"vector\": [5, 5]}]}"},
        {200, "PUT /collections/docs/points/vectors", "{\"points\": [{\"id\": 2, \"vector\": [0, 2]}]}"},
        {404, "POST /collections/docs/points/payload", "{\"payload\": {\"n\": 5}, \"points\": [3]}"},
        {403, "POST /collections/docs/points/payload", "{\"payload\": {\"tenant\": \"b\"}, \"points\": [1]}"},
        {200, "POST /collections/docs/points/payload",
         "{\"payload\": {\"n\": 8}, \"filter\": {\"must_not\": [{\"has_id\": [4]}]}}"},
        {403, "PUT /collections/docs/points/payload", "{\"payload\": {\"n\": 5}, \"points\": [1]}"},
        {403, "POST /collections/docs/points/payload/delete", "{\"keys\": [\"tenant\"], \"points\": [1]}"},
        {403, "POST /collections/docs/points/payload/clear", "{\"points\": [1]}"},
        {200, "POST /collections/docs/points/delete", "{\"points\": [3]}"},
        {200, "POST /collections/docs/points/delete",
         "{\"filter\": {\"must\": [{\"key\": \"n\", \"match\": {\"value\": 777777}}]}}"},
        {200, "POST /collections/docs/points/batch", "{\"operations\": [{\"delete\": {\"points\": [3, 5]}}]}"},
        {403, "POST /collections/docs/points/batch",
         "{\"operations\": [{\"upsert\": {\"points\": [{\"id\": 3, \"vector\": [1, 2], \"payload\": {\"tenant\": \"a\"}}]}}]}"},
    };
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++)
        STATUS_AS(port, WRITES[i].status, "amy", WRITES[i].request, WRITES[i].body);
    STATUS_AS(port, 403, "ann", "POST /collections/docs/points/delete", "{\"points\": [1]}");
    http_answer a = ASK_AS(port, 200, "secret", "POST /collections/docs/points/scroll", "{\"with_vector\": true}");
    static const char *const LEFT[] = {"{\"id\":1,\"payload\":{\"tenant\":\"a\",\"n\":8},\"vector\":[1.0,0.0]}",
                                       "{\"id\":2,\"payload\":{\"tenant\":\"a\",\"n\":8},\"vector\":[0.0,2.0]}",
                                       "{\"id\":3,\"payload\":{\"tenant\": \"b\", \"n\": 777777},\"vector\":[1.0,1.0]}",
                                       "{\"id\":4,\"payload\":{\"tenant\": [\"a\", \"b\"], \"n\": 4},\"vector\":[2.0,1.0]}"};
    for (size_t i = 0; i < sizeof LEFT / sizeof *LEFT; i++)
        if (!strstr(a.body, LEFT[i]))
            fail_msg("%s is not in %s", LEFT[i], a.body);
    assert_null(strstr(a.body, "\"id\":5"));
    assert_null(strstr(a.body, "\"id\":6"));
    http_free(&a);
    server_test_end(s);
}

static void with_nodes(server_config *config)
{
    static char nodes[SCRATCH_PATH_BYTES];
    with_limited_keys(config);
    snprintf(nodes, sizeof nodes, "%s", scratch_write("nodes", "node\n", 5));
    config->follow.node_key_file = nodes;
}

/* A node sends the key of its client beside its own. */
static void a_node_asks_in_the_name_of_its_client(void **state)
{
    (void)state;
    claims[0] = '\0';
    add_key("amy", TENANT);
    server *s = server_for_test(with_nodes);
    const int port = server_port(s);
    STATUS_AS(port, 200, "secret", "PUT /collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    STATUS_AS(port, 200, "secret", "PUT /collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1, 0]}]}");
    STATUS_AS(port, 200, "node", "GET /collections/docs/points/1", "");
    STATUS_AS(port, 404, "node\r\nauthorization: Bearer amy", "GET /collections/docs/points/1", "");
    STATUS_AS(port, 401, "node\r\nauthorization: Bearer ann", "GET /collections/docs/points/1", "");
    STATUS_AS(port, 401, "node", "DELETE /collections/docs", "");
    server_test_end(s);
}

static void a_key_of_a_collection_is_for_nothing_else(void **state)
{
    (void)state;
    claims[0] = '\0';
    add_key("bob", "\"access\":[{\"collection\":\"docs\",\"access\":\"rw\"},{\"collection\":\"other\",\"access\":\"r\"}]");
    add_key("cleo", "\"access\":\"r\"");
    add_key("old", "\"access\":\"m\",\"exp\":1000");
    server *s = tenants_server();
    const int port = server_port(s);
    STATUS_AS(port, 200, "bob", "PUT /collections/latest/index", "{\"field_name\": \"n\", \"field_schema\": \"integer\"}");
    STATUS_AS(port, 200, "bob", "POST /warpwave/collections/docs/rows", "{\"ids\": [\"3\"]}");
    STATUS_AS(port, 200, "bob", "POST /collections/docs/points/query",
              "{\"query\": 3, \"lookup_from\": {\"collection\": \"elsewhere\"}}");
    STATUS_AS(port, 403, "bob", "POST /collections/other/points/delete", "{\"points\": [3]}");
    STATUS_AS(port, 403, "bob", "PUT /collections/new", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    STATUS_AS(port, 403, "bob", "POST /collections/aliases", "{\"actions\": []}");
    STATUS_AS(port, 403, "bob", "GET /telemetry", "");
    STATUS_AS(port, 200, "cleo", "GET /telemetry", "");
    STATUS_AS(port, 200, "cleo", "GET /collections/other", "");
    STATUS_AS(port, 403, "cleo", "DELETE /collections/other", "");
    STATUS_AS(port, 403, "cleo", "POST /snapshots", "");
    STATUS_AS(port, 401, "old", "GET /collections", "");
    STATUS_AS(port, 401, "nobody", "GET /collections", "");
    server_test_end(s);
}

static void a_revoked_key_ends_while_the_server_runs(void **state)
{
    (void)state;
    claims[0] = '\0';
    add_key("amy", "\"access\":\"m\"");
    server *s = server_for_test(with_limited_keys);
    const int port = server_port(s);
    STATUS_AS(port, 200, "amy", "GET /collections", "");
    claims[0] = '\0';
    add_key("bob", "\"access\":\"m\"");
    scratch_write("limited", claims, strlen(claims));
    int status = 200;
    for (int turn = 0; turn < 60 && status == 200; turn++) {
        usleep(50000);
        status =
            http_raw_status(port, "GET /collections HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\napi-key: amy\r\n\r\n");
    }
    assert_int_equal(status, 401);
    STATUS_AS(port, 200, "bob", "GET /collections", "");
    scratch_write("limited", "{", 1); /* what cannot be read changes nothing */
    usleep(1100000);
    STATUS_AS(port, 200, "bob", "GET /collections", "");
    CHECK_FAILS(WW_INVALID_ARGUMENT, server_reload(s));
    server_test_end(s);
}

static void a_key_that_used_up_its_quota_hears_when_to_try_again(void **state)
{
    (void)state;
    claims[0] = '\0';
    add_key("few", "\"access\":\"r\",\"requests_per_second\":0.01");
    add_key("rows", "\"access\":\"m\",\"rows_per_second\":0.1");
    add_key("bytes", "\"access\":\"m\",\"bytes_per_second\":10");
    server *s = tenants_server();
    const int port = server_port(s);
    STATUS_AS(port, 200, "few", "GET /collections", "");
    http_answer a = ASK_AS(port, 429, "few", "GET /collections", "");
    assert_non_null(strstr(a.body, "requests_per_second"));
    const char *retry = strcasestr(a.head, "retry-after: ");
    assert_true(retry && atoi(retry + 13) > 90 && atoi(retry + 13) <= 100);
    http_free(&a);
    STATUS_AS(port, 200, "rows", "POST /collections/docs/points/scroll", "{}");     /* four points: three too many */
    for (int turn = 0; turn < 100 && (a.head == NULL || a.status == 200); turn++) { /* taken after the answer is sent */
        http_free(&a);
        usleep(10000);
        a = (http_answer){0};
        const int connection = http_connect(port);
        static const char again[] =
            "GET /collections HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\napi-key: rows\r\n\r\n";
        http_send(connection, again, sizeof again - 1);
        a = http_receive(connection);
        close(connection);
    }
    assert_int_equal(a.status, 429);
    assert_non_null(strstr(a.body, "rows_per_second"));
    http_free(&a);
    STATUS_AS(port, 200, "bytes", "GET /telemetry", "");
    usleep(100000);
    a = ASK_AS(port, 429, "bytes", "GET /collections", "");
    assert_non_null(strstr(a.body, "bytes_per_second"));
    http_free(&a);
    STATUS_AS(port, 200, "secret", "GET /collections", "");
    server_test_end(s);
}

/* ---- tokens -------------------------------------------------------------------------------------------------------------- */

static void put_base64(char *to, const void *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const unsigned char *from = bytes;
    uint32_t bits = 0;
    int held = 0;
    for (size_t i = 0; i < count; i++) {
        bits = bits << 8 | from[i];
        for (held += 8; held >= 6; held -= 6)
            *to++ = digits[bits >> (held - 6) & 63];
    }
    if (held > 0)
        *to++ = digits[bits << (6 - held) & 63];
    *to = '\0';
}

static const char *token_of(const char *header, const char *body, const char *key)
{
    static char token[4096];
    unsigned char digest[SHA256_BYTES];
    put_base64(token, header, strlen(header));
    strcat(token, ".");
    put_base64(token + strlen(token), body, strlen(body));
    sha256_hmac(key, strlen(key), token, strlen(token), digest);
    strcat(token, ".");
    put_base64(token + strlen(token), digest, sizeof digest);
    return token;
}

static void a_token_that_the_api_key_signed_is_a_key(void **state)
{
    (void)state;
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    /* Made by Python's hmac, for {"access":"r"} and the key "secret". */
    static const char known[] =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJhY2Nlc3MiOiJyIn0.Ya0GdYN-7QwsgtH2tFidaMFcNst1rx-iIWKxmOA0wnY";
    static const struct {
        int status;
        const char *claims, *has;
    } TOKENS[] = {
        {200, "{\"access\":\"r\"}", "\"count\":4"},
        {200, "{\"access\":\"m\",\"exp\":4102444800}", "\"count\":4"},
        {200, "{\"sub\":\"amy\"," TENANT "}", "\"count\":3"},
        {403, "{\"access\":[{\"collection\":\"other\",\"access\":\"r\"}]}", "docs"},
        {401, "{\"access\":\"m\",\"exp\":1}", "expired"},
        {401, "{\"access\":\"m\",\"nbf\":4102444800}", "not valid yet"},
        {401, "{\"access\":\"x\"}", "access: r, m or a list"},
        {401, "{}", "access: r, m or a list"},
        {401, "{\"access\":\"m\",\"exp\":\"soon\"}", "exp: whole seconds"},
        {401, "{\"access\":\"m\",\"access\":\"r\"}", "twice"},
        {401, "{\"access\":\"m\",\"value_exists\":{\"collection\":\"users\",\"matches\":[]}}", "value_exists"},
        {401, "{\"access\":[{\"collection\":\"docs\",\"access\":\"rw\",\"payload\":{\"tenant\":{}}}]}", "text, an integer"},
        {401, "{\"access\":[{\"collection\":\"docs\",\"access\":\"rw\",\"payload\":{\"list[]\":1}}]}", "without []"},
    };
    claims[0] = '\0';
    server *s = tenants_server();
    const int port = server_port(s);
    for (size_t i = 0; i < sizeof TOKENS / sizeof *TOKENS; i++) {
        http_answer a = ASK_AS(port, TOKENS[i].status, token_of(header, TOKENS[i].claims, "secret"),
                               "POST /collections/docs/points/count", "");
        if (!strstr(a.body, TOKENS[i].has))
            fail_msg("%s: %s", TOKENS[i].claims, a.body);
        http_free(&a);
    }
    STATUS_AS(port, 200, known, "GET /collections", "");
    STATUS_AS(port, 401, token_of(header, "{\"access\":\"m\"}", "wrong"), "GET /collections", "");
    STATUS_AS(port, 401, token_of("{\"alg\":\"none\"}", "{\"access\":\"m\"}", "secret"), "GET /collections", "");
    STATUS_AS(port, 401, "eyJhbGciOiJub25lIn0.eyJhY2Nlc3MiOiJtIn0.", "GET /collections", "");
    server_test_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_with_a_payload_sees_only_its_points, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_key_with_a_payload_changes_only_its_points, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_node_asks_in_the_name_of_its_client, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_key_of_a_collection_is_for_nothing_else, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_revoked_key_ends_while_the_server_runs, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_key_that_used_up_its_quota_hears_when_to_try_again, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_token_that_the_api_key_signed_is_a_key, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
