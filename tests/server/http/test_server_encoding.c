/* Compression: bodies that clients compressed, and answers that they want compressed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "server/body/gzip.h"
#include "server/client.h"

#define JSON "Host: localhost\r\nContent-Type: application/json\r\n"

enum { TEXT_BYTES_MAX = 4 << 20, POINTS = 6000 };

static server *running;
static int port;

static void configure(server_config *config)
{
    config->body_bytes = 4 << 20;
}

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(configure);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1, 2]}]}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* Sends a compressed body, and returns the status. */
static int status_packed(const char *encoding, const void *bytes, size_t count)
{
    char head[256];
    const int connection = http_connect(port);
    const int length = snprintf(head, sizeof head,
                                "POST /collections/docs/points/count HTTP/1.1\r\nConnection: close\r\n" JSON
                                "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
                                encoding, count);
    http_send(connection, head, (size_t)length);
    http_send(connection, bytes, count);
    http_answer a = http_receive(connection);
    const int status = a.status;
    http_free(&a);
    close(connection);
    return status;
}

static void compressed_bodies_are_read_and_limited(void **state)
{
    (void)state;
    static const unsigned char gzipped[] = {31,  139, 8,  0,  0,  0,  0,   0, 2, 3,  171, 86,  74, 173, 72, 76, 46, 81,
                                            178, 82,  40, 41, 42, 77, 173, 5, 0, 20, 181, 162, 13, 15,  0,  0,  0};
    static const unsigned char zstd[] = {40,  181, 47, 253, 0,  88, 121, 0,   0,   123, 34,  101,
                                         120, 97,  99, 116, 34, 58, 32,  116, 114, 117, 101, 125};
    static unsigned char bomb[512];
    assert_int_equal(status_packed("gzip", gzipped, sizeof gzipped), 200);
    assert_int_equal(status_packed("zstd", zstd, sizeof zstd), 200);
    assert_int_equal(status_packed("zstd", gzipped, sizeof gzipped), 400);
    assert_int_equal(status_packed("gzip", gzipped, sizeof gzipped - 1), 400);
    assert_int_equal(status_packed("br", gzipped, sizeof gzipped), 415);
    /* 8 MiB of spaces, as 64 blocks of zstd that repeat one byte */
    static const unsigned char head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58};
    size_t count = sizeof head;
    memcpy(bomb, head, sizeof head);
    for (int block = 0; block < 64; block++) {
        const unsigned header = (1U << 17) << 3 | 1U << 1 | (block == 63);
        bomb[count++] = (unsigned char)header;
        bomb[count++] = (unsigned char)(header >> 8);
        bomb[count++] = (unsigned char)(header >> 16);
        bomb[count++] = ' ';
    }
    assert_int_equal(status_packed("zstd", bomb, count), 413);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

/* Asks for an answer with this Accept-Encoding; NULL: without one. */
static http_answer ask_for(const char *method, const char *path, const char *accepted, const char *body)
{
    char sent_text[512];
    const int connection = http_connect(port);
    const int length =
        snprintf(sent_text, sizeof sent_text,
                 "%s %s HTTP/1.1\r\nConnection: close\r\n" JSON "%s%s%sContent-Length: %zu\r\n\r\n%s", method, path,
                 accepted ? "Accept-Encoding: " : "", accepted ? accepted : "", accepted ? "\r\n" : "", strlen(body), body);
    http_send(connection, sent_text, (size_t)length);
    http_answer a = http_receive(connection);
    close(connection);
    assert_int_equal(a.status, 200);
    return a;
}

/* Checks that an answer has this encoding, and gives what it stands for. */
static out unpack(const http_answer *a, const char *encoding)
{
    char line[64];
    out text = {0};
    snprintf(line, sizeof line, "content-encoding: %s\r\n", encoding);
    if (!strstr(a->head, line) || !strstr(a->head, "vary: accept-encoding\r\n"))
        fail_msg("not %s: %s", encoding, a->head);
    if (strcmp(encoding, "gzip") == 0) {
        assert_int_equal(gunzip(a->body, a->length, TEXT_BYTES_MAX, &text), 200);
        return text;
    }
    char *room = malloc(TEXT_BYTES_MAX);
    assert_non_null(room);
    const size_t length = ZSTD_decompress(room, TEXT_BYTES_MAX, a->body, a->length);
    assert_false(ZSTD_isError(length));
    out_bytes(&text, room, length);
    free(room);
    return text;
}

static void check_packed(const char *accepted, const char *encoding, const http_answer *plain)
{
    http_answer a = ask_for("GET", "/openapi.json", accepted, "");
    out text = unpack(&a, encoding);
    assert_true(a.length < plain->length / 2);
    assert_int_equal(text.length, plain->length);
    assert_memory_equal(text.bytes, plain->body, plain->length);
    out_free(&text);
    http_free(&a);
}

static void check_not_packed(const char *path, const char *accepted)
{
    http_answer a = ask_for("GET", path, accepted, "");
    assert_null(strstr(a.head, "content-encoding"));
    assert_int_equal(a.body[0], '{');
    http_free(&a);
}

static void answers_are_compressed_as_the_client_asks(void **state)
{
    (void)state;
    http_answer plain = ask_for("GET", "/openapi.json", NULL, "");
    check_packed("gzip, deflate, br", "gzip", &plain);
    check_packed("gzip, zstd", "zstd", &plain);
    check_packed("zstd;q=0.4, gzip;q=0.9", "gzip", &plain);
    check_packed("ZSTD;q=0 , *", "gzip", &plain);
    http_free(&plain);
    static const char *const others[] = {"identity", "gzip;q=0", "br", "*;q=0", "gzip;q=2", "zstdx", ";,=,,"};
    check_not_packed("/openapi.json", NULL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check_not_packed("/openapi.json", others[i]);
    check_not_packed("/collections", "gzip"); /* too small */
}

/* A worker makes and compresses this answer, in several pieces. */
static void a_large_answer_is_compressed_whole(void **state)
{
    (void)state;
    out points = {0};
    out_text(&points, "{\"points\": [");
    for (int i = 0; i < POINTS; i++)
        out_format(&points, "%s{\"id\": %d, \"vector\": [1, %d]}", i > 0 ? "," : "", i, i);
    out_text(&points, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", points.bytes);
    out_free(&points);
    for (int i = 0; i < 2; i++) {
        http_answer a = ask_for("POST", "/collections/docs/points/scroll", i == 0 ? "gzip" : "zstd",
                                "{\"limit\": 6000, \"with_vector\": true}");
        out text = unpack(&a, i == 0 ? "gzip" : "zstd");
        json_t *answer = json_loadb(text.bytes, text.length, 0, NULL);
        const json_t *list = json_object_get(json_object_get(answer, "result"), "points");
        assert_true(text.length > (1 << 18));
        assert_int_equal(json_array_size(list), POINTS);
        const json_t *last = json_object_get(json_array_get(list, POINTS - 1), "vector");
        assert_true(json_number_value(json_array_get(last, 1)) == POINTS - 1);
        json_decref(answer);
        out_free(&text);
        http_free(&a);
    }
}

int main(void)
{
#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        SERVED(compressed_bodies_are_read_and_limited),
        SERVED(answers_are_compressed_as_the_client_asks),
        SERVED(a_large_answer_is_compressed_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
