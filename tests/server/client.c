/* A small HTTP client over loopback. */
#include "server/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <warpwave/store.h>

enum { ANSWER_SECONDS = 120 }; /* then the test fails; an emulated processor may be slow */

static ww_device *device;

void http_free(http_answer *a)
{
    free(a->head);
    free(a->body);
    *a = (http_answer){0};
}

int http_try_connect(int port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(connection >= 0);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(connection, (const struct sockaddr *)&to, sizeof to) == 0)
        return connection;
    close(connection);
    return -1;
}

int http_connect(int port)
{
    const int connection = http_try_connect(port);
    if (connection < 0)
        fail_msg("connect: %s", strerror(errno));
    return connection;
}

void http_send(int connection, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0;) {
        const ssize_t sent = send(connection, at, count, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the server has closed the connection; its answer was read */
        at += sent;
        count -= (size_t)sent;
    }
}

/* Receives more bytes after `*bytes`. Returns false at the end. */
static bool receive_more(int connection, char **bytes, size_t *length)
{
    enum { PIECE = 1 << 16 };
    char *larger = realloc(*bytes, *length + PIECE + 1);
    assert_non_null(larger);
    *bytes = larger;
    const ssize_t count = recv(connection, larger + *length, PIECE, 0);
    if (count > 0)
        *length += (size_t)count;
    larger[*length] = '\0';
    return count > 0;
}

/* The chunks of a body put together; false if the last one is not there yet. */
static bool join_chunks(const char *from, http_answer *a)
{
    a->length = 0;
    for (;;) {
        char *end = NULL;
        const unsigned long size = strtoul(from, &end, 16);
        if (end == from || strncmp(end, "\r\n", 2) != 0)
            return false;
        if (size == 0)
            break;
        from = end + 2;
        if (strnlen(from, size) < size)
            return false;
        memcpy(a->body + a->length, from, size);
        a->length += size;
        from += size + 2;
    }
    a->body[a->length] = '\0';
    return true;
}

/* Is the whole answer there? Fills it in. */
static bool complete(const char *bytes, size_t length, http_answer *a)
{
    const char *behind = bytes ? strstr(bytes, "\r\n\r\n") : NULL;
    if (!behind)
        return false;
    http_free(a);
    a->head = strndup(bytes, (size_t)(behind - bytes) + 4);
    a->body = calloc(length + 1, 1);
    assert_true(a->head && a->body);
    a->status = atoi(bytes + 9);
    const char *size = strcasestr(a->head, "\r\ncontent-length:");
    const char *body = behind + 4;
    const size_t there = length - (size_t)(body - bytes);
    if (strcasestr(a->head, "transfer-encoding: chunked"))
        return join_chunks(body, a);
    a->length = size ? strtoul(size + 17, NULL, 10) : 0;
    if (there < a->length)
        return false;
    memcpy(a->body, body, a->length);
    return true;
}

http_answer http_receive(int connection)
{
    http_answer a = {0};
    char *bytes = NULL;
    size_t length = 0;
    while (!complete(bytes, length, &a))
        if (!receive_more(connection, &bytes, &length)) {
            if (!complete(bytes, length, &a))
                http_free(&a);
            break;
        }
    if (a.status == 100) { /* go on: the answer follows */
        http_free(&a);
        free(bytes);
        return http_receive(connection);
    }
    free(bytes);
    return a;
}

http_answer http_ask(int port, const char *method, const char *path, const char *body)
{
    char head[1024];
    const int connection = http_try_connect(port);
    if (connection < 0)
        return (http_answer){0};
    const int length = snprintf(head, sizeof head,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                                "Content-Length: %zu\r\n\r\n",
                                method, path, body ? strlen(body) : 0);
    http_send(connection, head, (size_t)length);
    if (body)
        http_send(connection, body, strlen(body));
    http_answer a = http_receive(connection);
    close(connection);
    return a;
}

double http_figure(int port, const char *name)
{
    http_answer figures = http_ask(port, "GET", "/metrics", NULL);
    const char *line = figures.body ? strstr(figures.body, name) : NULL;
    const double value = line ? strtod(line + strlen(name), NULL) : -1;
    http_free(&figures);
    return value;
}

void http_until_active(int port, int wanted)
{
    const time_t begun = time(NULL);
    while (http_figure(port, "\nwarpwave_requests_active ") != wanted) {
        if (time(NULL) - begun > 10)
            fail_msg("%d requests should run; they are %g", wanted, http_figure(port, "\nwarpwave_requests_active "));
        usleep(1000);
    }
}

static int send_raw(int port, const char *bytes, bool cut)
{
    const int connection = http_connect(port);
    http_send(connection, bytes, strlen(bytes));
    if (cut) {
        const struct timeval patience = {.tv_sec = 1};
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        shutdown(connection, SHUT_WR);
    }
    http_answer a = http_receive(connection);
    const int status = a.status;
    http_free(&a);
    close(connection);
    return status;
}

int http_raw_status(int port, const char *bytes)
{
    return send_raw(port, bytes, false);
}

int http_cut_status(int port, const char *bytes)
{
    return send_raw(port, bytes, true);
}

json_t *http_json(const char *file, int line, http_expected expected, const char *method, const char *path, const char *body)
{
    http_answer a = http_ask(expected.port, method, path, body);
    json_error_t error;
    if (a.status != expected.status)
        fail_msg("%s:%d: %s %s: status %d, not %d: %s", file, line, method, path, a.status, expected.status,
                 a.body ? a.body : "");
    json_t *value = json_loadb(a.body, a.length, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    json_t *exact = json_loadb(a.body, a.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error); /* except for integers above 2^63 */
    if (!value)
        fail_msg("%s:%d: %s %s: no JSON: %s: %s", file, line, method, path, error.text, a.body);
    http_free(&a);
    if (exact)
        json_decref(value);
    return exact ? exact : value;
}

/* Waits until the server has what the database has. With a new file nothing may be left there from another test. */
static void begin_in_cluster(int port, bool empty)
{
    http_answer a = {0};
    for (int turns = 0; a.status != 200; turns++) {
        http_free(&a);
        assert_true(turns < 50 * ANSWER_SECONDS);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        a = http_ask(port, "GET", "/readyz", NULL);
    }
    http_free(&a);
    json_t *all = ASK(port, 200, "GET", "/collections", NULL), *one = NULL;
    size_t index = 0;
    json_array_foreach(json_object_get(json_object_get(all, "result"), "collections"), index, one)
    {
        char path[256];
        snprintf(path, sizeof path, "/collections/%s", json_string_value(json_object_get(one, "name")));
        if (empty)
            ASK_STATUS(port, 200, "DELETE", path, NULL);
    }
    json_decref(all);
}

server *server_for_test(void (*change)(server_config *config))
{
    server *s = NULL;
    const char *cluster = getenv("WARPWAVE_TEST_CLUSTER"); /* the database of tests/server/cluster/check-api */
    server_config config = server_config_default();
    CHECK_OK(ww_device_open("cpu", &device));
    config.store = scratch_path("served.db");
    config.device = device;
    config.port = 0;
    if (cluster)
        config.follow = (follow_config){.conninfo = cluster, .cluster = true, .shards = 1};
    if (change)
        change(&config);
    const bool empty = access(config.store, F_OK) != 0;
    CHECK_OK(server_start(&config, &s));
    if (cluster)
        begin_in_cluster(server_port(s), empty);
    return s;
}

void server_test_end(server *s)
{
    server_stop(s);
    ww_device_close(device);
    device = NULL;
}

void server_keep_prefixes(const char *collection, const ww_model *model, const char *query_prefix, const char *document_prefix)
{
    ww_store *store = NULL;
    ww_store_model kept = ww_store_model_default();
    ww_model_info info = ww_model_info_default();
    CHECK_OK(ww_model_describe(model, &info));
    snprintf(kept.name, sizeof kept.name, "encoder");
    snprintf(kept.fingerprint, sizeof kept.fingerprint, "%s", info.fingerprint);
    snprintf(kept.query_prefix, sizeof kept.query_prefix, "%s", query_prefix);
    snprintf(kept.document_prefix, sizeof kept.document_prefix, "%s", document_prefix);
    CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
    CHECK_OK(ww_store_set_model(store, collection, &kept));
    ww_store_close(store);
}
