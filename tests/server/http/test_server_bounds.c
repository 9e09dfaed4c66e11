/* What a request may cost: its time ends when its deadline passes or its client leaves, every count has a limit, costs grow
 * linearly, and a long request holds up no other one of the same collection. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/client.h"

enum { POINTS = 20000 };

static server *running;
static int port;
static double timeout_seconds;

static void configure(server_config *config)
{
    config->request_seconds = timeout_seconds;
}

/* The text of a body, which grows. */
typedef struct text {
    char *bytes;
    size_t length, capacity;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    const size_t count = (size_t)vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    assert_true(count < sizeof piece);
    if (t->length + count >= t->capacity) {
        t->capacity = 2 * t->capacity + sizeof piece;
        char *larger = realloc(t->bytes, t->capacity);
        assert_non_null(larger);
        t->bytes = larger;
    }
    memcpy(t->bytes + t->length, piece, count + 1);
    t->length += count;
}

static void ask_text(int status, const char *method, const char *path, text *t)
{
    ASK_STATUS(port, status, method, path, t->bytes);
    free(t->bytes);
    *t = (text){0};
}

/* Points 0, 1, ..., each with its own key. */
static void fill(void)
{
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    for (int first = 0; first < POINTS; first += 5000) {
        text t = {0};
        put(&t, "{\"points\": [");
        for (int i = first; i < first + 5000; i++)
            put(&t, "%s{\"id\": %d, \"vector\": [1, %d], \"payload\": {\"key\": \"key number %d\"}}", i > first ? "," : "", i,
                i, i);
        put(&t, "]}");
        ask_text(200, "PUT", "/collections/docs/points", &t);
    }
}

static int begin_with(void **state, double seconds)
{
    scratch_setup(state);
    timeout_seconds = 600;
    running = server_for_test(configure);
    port = server_port(running);
    fill();
    if (seconds < 600) {
        server_test_end(running);
        timeout_seconds = seconds;
        running = server_for_test(configure);
        port = server_port(running);
        ASK_STATUS(port, 200, "POST", "/collections/docs/points/query", "{\"query\": [1, 1]}"); /* loads the vectors */
    }
    return 0;
}

static int begin_patient(void **state)
{
    return begin_with(state, 600);
}

static int begin_hasty(void **state)
{
    return begin_with(state, 2);
}

static int end(void **state)
{
    ASK_STATUS(port, 200, "GET", "/collections", NULL); /* the server is still running */
    server_test_end(running);
    return scratch_teardown(state);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Processor seconds of this process, in which the server runs. */
static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Searches that each need a look at every point: minutes of work. */
static text long_work(void)
{
    text t = {0};
    put(&t, "{\"searches\": [");
    for (int i = 0; i < 4000; i++)
        put(&t,
            "%s{\"query\": [1, 2], \"limit\": %d, \"filter\": {\"must\": [{\"key\": \"key\", \"match\": {\"text\": \"number "
            "%d\"}}]}}",
            i > 0 ? "," : "", 1 + i, i);
    put(&t, "]}");
    return t;
}

/* Sends a request without waiting for its answer. Returns the connection. */
static int send_only(const char *path, const text *t)
{
    char head[256];
    const int connection = http_connect(port);
    const int length = snprintf(head, sizeof head,
                                "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                "Content-Length: %zu\r\n\r\n",
                                path, t->length);
    http_send(connection, head, (size_t)length);
    http_send(connection, t->bytes, t->length);
    return connection;
}

/* Waits until nothing runs any more; returns the seconds that took. */
static double until_idle(void)
{
    const double begun = seconds_now();
    while (http_figure(port, "\nwarpwave_requests_active ") != 0)
        usleep(1000);
    return seconds_now() - begun;
}

/* Is the server busy although nobody waits? */
static void check_nothing_runs(void)
{
    usleep(100000);
    const double before = cpu_seconds();
    usleep(500000);
    const double used = cpu_seconds() - before;
    if (used > 0.2)
        fail_msg("%g s of processor time within half a second", used);
}

/* A running request must stop this soon after its client has left or its deadline has passed. On a machine that runs other
 * programs too it may wait for a processor meanwhile: then the processor time that it takes counts, which all threads of the
 * process may use at once. */
static const double STOP_SECONDS = 0.1;

static void check_stopped(double seconds, double processor_seconds)
{
    const double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (seconds > STOP_SECONDS && processor_seconds > STOP_SECONDS * processors)
        fail_msg("it ended after %g s and took %g s of processor time", seconds, processor_seconds);
    if (seconds > 50 * STOP_SECONDS)
        fail_msg("it ended after %g s", seconds);
}

static void a_request_ends_when_its_deadline_passes(void **state)
{
    (void)state;
    text t = long_work();
    const double begun = seconds_now();
    const int connection = send_only("/collections/docs/points/query/batch", &t);
    while (seconds_now() < begun + timeout_seconds)
        usleep(1000);
    const double late = seconds_now(), before = cpu_seconds();
    (void)until_idle();
    check_stopped(seconds_now() - late, cpu_seconds() - before);
    http_answer a = http_receive(connection);
    assert_int_equal(a.status, 504);
    http_free(&a);
    close(connection);
    check_nothing_runs();
    free(t.bytes);
}

static void a_request_ends_when_its_client_leaves(void **state)
{
    (void)state;
    text t = long_work();
    for (int i = 0; i < 3; i++) {
        const int connection = send_only("/collections/docs/points/query/batch", &t);
        http_until_active(port, 1);
        usleep(200000);
        const double before = cpu_seconds();
        close(connection);
        const double took = until_idle();
        check_stopped(took, cpu_seconds() - before);
    }
    check_nothing_runs();
    free(t.bytes);
}

static void a_long_request_holds_up_no_other_one_of_the_collection(void **state)
{
    (void)state;
    text t = long_work();
    const int connection = send_only("/collections/docs/points/query/batch", &t);
    http_until_active(port, 1);
    usleep(100000);
    const double begun = seconds_now();
    for (int i = 0; i < 5; i++)
        ASK_STATUS(port, 200, "POST", "/collections/docs/points/query", "{\"query\": [1, 1], \"limit\": 3}");
    ASK_STATUS(port, 200, "POST", "/collections/docs/points/count", "{}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1, 2]}]}");
    const double took = seconds_now() - begun;
    http_until_active(port,
                      1); /* the long one still runs: a small one counts until its connection has been told the answer's end */
    if (took > 20)
        fail_msg("seven small requests took %g s", took);
    close(connection);
    (void)until_idle();
    free(t.bytes);
}

static void groups_cost_as_much_as_there_are_points(void **state)
{
    (void)state;
    const double before = cpu_seconds();
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/query/groups",
                         "{\"query\": [1, 2], \"group_by\": \"key\", \"limit\": 20000, \"group_size\": 2}");
    json_t *groups = json_object_get(json_object_get(answer, "result"), "groups");
    assert_int_equal(json_array_size(groups), POINTS);
    assert_string_equal(json_string_value(json_object_get(json_array_get(groups, 0), "id")), "key number 19999");
    assert_string_equal(json_string_value(json_object_get(json_array_get(groups, POINTS - 1), "id")), "key number 0");
    json_decref(answer);
    const double used = cpu_seconds() - before;
    if (used > 6)
        fail_msg("it took %g s of processor time", used);
}

static void many_examples_cost_as_much_as_many_searches(void **state)
{
    (void)state;
    text t = {0};
    put(&t, "{\"query\": {\"recommend\": {\"strategy\": \"best_score\", \"positive\": [");
    for (int i = 0; i < 100; i++)
        put(&t, "%s[%d, 1]", i > 0 ? "," : "", i);
    put(&t, "]}}, \"limit\": 5}");
    const double before = cpu_seconds();
    ask_text(200, "POST", "/collections/docs/points/query", &t);
    const double used = cpu_seconds() - before;
    if (used > 8)
        fail_msg("it took %g s of processor time", used);
}

static void long_lists_of_values_are_searched_by_halving(void **state)
{
    (void)state;
    const double before = cpu_seconds();
    for (int form = 0; form < 2; form++) {
        text t = {0};
        put(&t, "{\"filter\": {\"must\": [{\"key\": \"key\", \"match\": {\"%s\": [", form == 0 ? "any" : "except");
        for (int i = 0; i < 100000; i++) {
            put(&t, "%s", i > 0 ? "," : "");
            put(&t, form == 0 ? "\"key number %d\"" : "%d", 200000 - i); /* none is there */
        }
        put(&t, "]}}]}}");
        json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/count", t.bytes);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "result"), "count")),
                         form == 0 ? 0 : POINTS);
        json_decref(answer);
        free(t.bytes);
    }
    const double used = cpu_seconds() - before;
    if (used > 6)
        fail_msg("it took %g s of processor time", used);
}

static void searches_with_different_limits_are_grouped_in_linear_time(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/few", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    text t = {0};
    put(&t, "{\"searches\": [");
    for (int i = 0; i < 4000; i++)
        put(&t, "%s{\"query\": [1, 2], \"limit\": %d}", i > 0 ? "," : "", 1 + i % 2000);
    put(&t, "]}");
    const double before = cpu_seconds();
    ask_text(200, "POST", "/collections/few/points/query/batch", &t);
    const double used = cpu_seconds() - before;
    if (used > 6)
        fail_msg("it took %g s of processor time", used);
}

static void named_vectors_are_written_in_linear_time(void **state)
{
    (void)state;
    text t = {0};
    put(&t, "{\"vectors\": {");
    for (int i = 0; i < 32; i++)
        put(&t, "%s\"v%d\": {\"size\": 1, \"distance\": \"Dot\"}", i > 0 ? "," : "", i);
    put(&t, "}}");
    ask_text(200, "PUT", "/collections/named", &t);
    put(&t, "{\"points\": [");
    for (int i = 0; i < 2000; i++) {
        put(&t, "%s{\"id\": %d, \"vector\": {", i > 0 ? "," : "", i);
        for (int k = 0; k < 32; k++)
            put(&t, "%s\"v%d\": [%d]", k > 0 ? "," : "", k, i);
        put(&t, "}}");
    }
    put(&t, "]}");
    const double before = cpu_seconds();
    ask_text(200, "PUT", "/collections/named/points", &t);
    const double used = cpu_seconds() - before;
    if (used > 12) /* 2,000 x 32 x 64,000 comparisons took half a minute */
        fail_msg("it took %g s of processor time", used);
}

/* A list of `count` times the same element. */
static text list_of(const char *before, const char *element, int count, const char *after)
{
    text t = {0};
    put(&t, "%s", before);
    for (int i = 0; i < count; i++)
        put(&t, "%s%s", i > 0 ? "," : "", element);
    put(&t, "%s", after);
    return t;
}

static void counts_beyond_their_limits_are_refused(void **state)
{
    (void)state;
    static const char query[] = "/collections/docs/points/query";
    text t = list_of("{\"searches\": [", "{}", 4097, "]}");
    ask_text(400, "POST", "/collections/docs/points/query/batch", &t);
    t = list_of("{\"query\": {\"fusion\": \"rrf\"}, \"prefetch\": [", "{}", 4097, "]}");
    ask_text(400, "POST", query, &t);
    t = list_of("{\"query\": {\"fusion\": \"rrf\"}, \"prefetch\": [",
                "{\"query\": {\"fusion\": \"rrf\"}, \"prefetch\": [{}, {}, {}, {}, {}, {}, {}, {}]}", 500, "]}");
    ask_text(400, "POST", query, &t);
    t = list_of("{\"query\": {\"recommend\": {\"strategy\": \"best_score\", \"positive\": [", "[1, 2]", 257, "]}}}");
    ask_text(400, "POST", query, &t);
    t = list_of("{\"operations\": [", "{\"delete\": {\"points\": [1]}}", 4097, "]}");
    ask_text(400, "POST", "/collections/docs/points/batch", &t);
    t = list_of("{\"actions\": [", "{\"delete_alias\": {\"alias_name\": \"a\"}}", 1025, "]}");
    ask_text(400, "POST", "/collections/aliases", &t);
    t = list_of("{\"keys\": [", "\"a\"", 129, "], \"points\": [1]}");
    ask_text(400, "POST", "/collections/docs/points/payload/delete", &t);
    ASK_STATUS(port, 400, "POST", "/collections/docs/points/search/matrix/pairs", "{\"sample\": 4097}");
    t = list_of("{\"filter\": {\"should\": [", "{\"has_id\": []}", 16385, "]}}");
    ask_text(400, "POST", query, &t);
    t = list_of("{\"filter\": {\"must\": [{\"key\": \"key\", \"match\": {\"text_any\": \"", "a", 9000, "\"}}]}}");
    ask_text(400, "POST", query, &t);
    t = list_of("{\"query\": {\"model\": \"bm25\", \"text\": \"", "a", 9000, "\"}}");
    ask_text(400, "POST", query, &t);
    t = list_of("{\"filter\": {\"must\": [{\"key\": \"key\", \"geo_polygon\": {\"exterior\": {\"points\": [",
                "{\"lon\": 1, \"lat\": 1}", 16385, "]}}}]}}");
    ask_text(400, "POST", query, &t);
    /* a filter of 40 KB that 400 prefetches join with their own */
    t = list_of("{\"filter\": {\"must\": [", "{\"key\": \"key\", \"match\": {\"value\": \"x\"}}", 1000,
                "]}, \"query\": {\"fusion\": \"rrf\"}, \"prefetch\": [");
    for (int i = 0; i < 400; i++)
        put(&t, "%s{\"query\": [1, 2], \"filter\": {\"must\": []}}", i > 0 ? "," : "");
    put(&t, "]}");
    ask_text(400, "POST", query, &t);
}

#define PATIENT(name) cmocka_unit_test_setup_teardown(name, begin_patient, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_ends_when_its_deadline_passes, begin_hasty, end),
        PATIENT(a_request_ends_when_its_client_leaves),
        PATIENT(a_long_request_holds_up_no_other_one_of_the_collection),
        PATIENT(groups_cost_as_much_as_there_are_points),
        PATIENT(many_examples_cost_as_much_as_many_searches),
        PATIENT(long_lists_of_values_are_searched_by_halving),
        PATIENT(searches_with_different_limits_are_grouped_in_linear_time),
        PATIENT(named_vectors_are_written_in_linear_time),
        PATIENT(counts_beyond_their_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
