/* Small changes that wait for the same collection are one transaction: the disk is written once for all of them, each is
 * answered for itself, and one that fails takes no other with it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <warpwave/store.h>

#include "server/client.h"

enum { WAITING_MAX = 32 };

static server *running;
static int port;

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/pair",
               "{\"vectors\": {\"a\": {\"size\": 2, \"distance\": \"Dot\"}, \"b\": {\"size\": 1, \"distance\": \"Dot\"}}}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* Requests, of which the first waits for the file's lock and the others behind it. */
typedef struct waiting {
    const char *collection;
    ww_device *device;
    ww_store *store; /* which has the lock */
    int connections[WAITING_MAX], count;
} waiting;

static void send_change(waiting *w, const char *method, const char *path, const char *body)
{
    char sent[512];
    const int length = snprintf(sent, sizeof sent,
                                "%s /collections/%s/points%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                method, w->collection, path, strlen(body), body);
    const int connection = http_connect(port);
    w->connections[w->count++] = connection;
    http_send(connection, sent, (size_t)length);
}

/* Waits until the figures have the line; ctest ends the test if that never happens. */
static void wait_for(const char *line)
{
    for (bool found = false; !found;) {
        http_answer figures = http_ask(port, "GET", "/metrics", NULL);
        found = strstr(figures.body, line) != NULL;
        http_free(&figures);
        usleep(1000);
    }
}

/* `first` is a body that adds a point. */
static waiting waiting_begin(const char *collection, const char *first)
{
    char line[128];
    waiting w = {.collection = collection};
    CHECK_OK(ww_device_open("cpu", &w.device));
    CHECK_OK(ww_store_open(scratch_path("served.db"), w.device, NULL, &w.store));
    CHECK_OK(ww_store_begin(w.store));
    send_change(&w, "PUT", "", first);
    wait_for("warpwave_requests_active 1\n");
    snprintf(line, sizeof line, "warpwave_queue_length{kind=\"collection\",name=\"%s\"} 0\n", collection);
    wait_for(line); /* a worker has it */
    return w;
}

/* Lets the first request go on when all others wait, and gives the statuses of all. On a machine with much else to do the first
 * may have waited for the file too long, which is answered with 503. Returns by how much the log grew. */
static long long waiting_end(waiting *w, int *statuses)
{
    char line[128];
    struct stat before, after;
    snprintf(line, sizeof line, "warpwave_requests_active %d\n", w->count);
    wait_for(line);
    CHECK_OK(ww_store_rollback(w->store));
    ww_store_close(w->store);
    ww_device_close(w->device);
    assert_int_equal(stat(scratch_path("served.db-wal"), &before), 0);
    for (int i = 0; i < w->count; i++) {
        http_answer a = http_receive(w->connections[i]);
        close(w->connections[i]);
        statuses[i] = a.status;
        http_free(&a);
    }
    assert_int_equal(stat(scratch_path("served.db-wal"), &after), 0);
    assert_true(statuses[0] == 200 || statuses[0] == 503);
    return (long long)(after.st_size - before.st_size);
}

/* The payload's "n" of a point, or -1. */
static int number_of(const char *collection, int id)
{
    char path[96];
    snprintf(path, sizeof path, "/collections/%s/points/%d", collection, id);
    json_t *answer = ASK(port, 200, "GET", path, NULL);
    const json_t *n = json_object_get(json_object_get(json_object_get(answer, "result"), "payload"), "n");
    const int number = n ? (int)json_integer_value(n) : -1;
    json_decref(answer);
    return number;
}

static int count_points(const char *collection)
{
    char path[96];
    snprintf(path, sizeof path, "/collections/%s/points/count", collection);
    json_t *answer = ASK(port, 200, "POST", path, "{}");
    const int count = (int)json_integer_value(json_object_get(json_object_get(answer, "result"), "count"));
    json_decref(answer);
    return count;
}

static void changes_that_wait_are_one_transaction(void **state)
{
    (void)state;
    int statuses[WAITING_MAX];
    waiting w = waiting_begin("docs", "{\"points\": [{\"id\": 1000, \"vector\": [1, 2]}]}");
    for (int i = 1; i < WAITING_MAX; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"points\": [{\"id\": %d, \"vector\": [1, %d], \"payload\": {\"n\": %d}}]}", i, i, i);
        send_change(&w, "PUT", "", body);
    }
    const long long grown = waiting_end(&w, statuses);
    for (int i = 1; i < WAITING_MAX; i++)
        assert_int_equal(statuses[i], 200);
    assert_int_equal(count_points("docs"), WAITING_MAX - (statuses[0] != 200));
    for (int i = 1; i < WAITING_MAX; i++)
        assert_int_equal(number_of("docs", i), i);
    /* two transactions write some six pages each; one by one, 32 of them write at least 128 pages of 4 KiB */
    if (grown > 20 * 4120)
        fail_msg("the log grew by %lld bytes", grown);
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/query", "{\"query\": [0, 1], \"limit\": 1}");
    const json_t *best = json_array_get(json_object_get(json_object_get(answer, "result"), "points"), 0);
    assert_int_equal(json_integer_value(json_object_get(best, "id")), WAITING_MAX - 1); /* searches see them all */
    json_decref(answer);
}

static void a_change_that_fails_takes_no_other_with_it(void **state)
{
    (void)state;
    int statuses[WAITING_MAX];
    waiting w = waiting_begin("docs", "{\"points\": [{\"id\": 1000, \"vector\": [1, 2]}]}");
    send_change(&w, "PUT", "",
                "{\"points\": [{\"id\": 1, \"vector\": [1, 1]}, {\"id\": 2, \"vector\": [2, 2], \"payload\": {\"n\": 2}}, "
                "{\"id\": 1, \"vector\": [3, 3], \"payload\": {\"n\": 3}}]}");
    send_change(&w, "PUT", "", "{\"points\": [{\"id\": 4, \"vector\": [1, 2, 3]}]}");
    send_change(&w, "POST", "/payload", "{\"points\": [77], \"payload\": {\"n\": 1}}");
    send_change(&w, "PUT", "", "{\"points\": [{\"id\": 5, \"vector\": [5, 5], \"payload\": {\"n\": 5}}]}");
    (void)waiting_end(&w, statuses);
    static const int expected[] = {200, 400, 404, 200};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(statuses[1 + i], expected[i]);
    assert_int_equal(count_points("docs"), 4 - (statuses[0] != 200));
    assert_int_equal(number_of("docs", 1), 3); /* the last of two points with one id, also when it is run again */
    assert_int_equal(number_of("docs", 2), 2);
    assert_int_equal(number_of("docs", 5), 5);
    json_t *answer = ASK(port, 200, "GET", "/collections/docs/points/1", NULL);
    const json_t *vector = json_object_get(json_object_get(answer, "result"), "vector");
    assert_true(json_number_value(json_array_get(vector, 0)) == 3);
    json_decref(answer);
}

static void changes_see_those_before_them(void **state)
{
    (void)state;
    int statuses[WAITING_MAX];
    waiting w = waiting_begin("pair", "{\"points\": [{\"id\": 1000, \"vector\": {\"a\": [1, 2], \"b\": [1]}}]}");
    send_change(
        &w, "PUT", "",
        "{\"points\": [{\"id\": 1, \"vector\": {\"a\": [1, 1]}, \"payload\": {\"n\": 1}}, {\"id\": 2, \"vector\": {}}]}");
    send_change(&w, "POST", "/payload", "{\"points\": [1], \"payload\": {\"n\": 7}}");
    send_change(&w, "PUT", "/vectors", "{\"points\": [{\"id\": 1, \"vector\": {\"b\": [8]}}]}");
    send_change(&w, "POST", "/delete", "{\"points\": [2]}");
    const long long grown = waiting_end(&w, statuses);
    for (int i = 1; i < w.count; i++)
        assert_int_equal(statuses[i], 200);
    assert_true(grown < 40 * 4120LL);
    assert_int_equal(count_points("pair"), 2 - (statuses[0] != 200));
    assert_int_equal(number_of("pair", 1), 7);
    json_t *answer = ASK(port, 200, "GET", "/collections/pair/points/1", NULL);
    const json_t *vectors = json_object_get(json_object_get(answer, "result"), "vector");
    assert_true(json_number_value(json_array_get(json_object_get(vectors, "b"), 0)) == 8);
    assert_true(json_number_value(json_array_get(json_object_get(vectors, "a"), 1)) == 1);
    json_decref(answer);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(changes_that_wait_are_one_transaction),
        SERVED(a_change_that_fails_takes_no_other_with_it),
        SERVED(changes_see_those_before_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
