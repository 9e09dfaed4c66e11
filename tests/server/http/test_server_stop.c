/* Stopping the command: on SIGTERM it finishes what it has begun, and however it ends, no acknowledged write is lost. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <warpwave/store.h>

#include "server/client.h"

enum { WRITERS = 3, WRITES_MIN = 20, WRITES_MAX = 20000 };

extern char **environ;

typedef struct served {
    pid_t process;
    int port;
} served;

/* Starts `warpwave serve` and reads its address from its message. */
static served start(void)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    served s = {0};
    char store[SCRATCH_PATH_BYTES], line[256] = "";
    snprintf(store, sizeof store, "%s", scratch_path("served.db"));
    const char *const arguments[] = {"warpwave", "serve",       store,     "--device", "cpu",
                                     "--listen", "127.0.0.1:0", "--drain", "1",        NULL};
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    assert_int_equal(posix_spawn(&s.process, COMMAND_PATH, &actions, NULL, (char *const *)arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    for (size_t length = 0; length < sizeof line - 1 && !strchr(line, '\n'); length++)
        if (read(ends[0], line + length, 1) != 1)
            break;
    close(ends[0]);
    const char *port = strrchr(line, ':');
    if (!strstr(line, "listening at") || !port)
        fail_msg("the server said: %s", line);
    s.port = atoi(port + 1);
    return s;
}

static served running;
static atomic_int answered[WRITERS]; /* points of each writer that were acknowledged */
static atomic_bool stop, ended[WRITERS];
static atomic_int torn;

/* Adds points one by one until the server has ended. */
static void *write_points(void *user)
{
    const int writer = (int)(intptr_t)user;
    for (int i = 0; i < WRITES_MAX && !atomic_load(&stop); i++) {
        char body[160];
        snprintf(body, sizeof body, "{\"points\": [{\"id\": %d, \"vector\": [1, 2]}]}", writer * WRITES_MAX + i);
        http_answer a = http_ask(running.port, "PUT", "/collections/docs/points", body);
        if (a.status == 200)
            atomic_store(&answered[writer], i + 1);
        else if (a.status != 503 && a.status != 0)
            atomic_fetch_add(&torn, 1);
        const bool gone = a.status != 200;
        http_free(&a);
        if (gone)
            break;
    }
    atomic_store(&ended[writer], true);
    return NULL;
}

/* Ends the server by a signal while three clients write; returns how it ended. */
static int end_under_load(int number)
{
    pthread_t threads[WRITERS];
    int status = 0;
    running = start();
    ASK_STATUS(running.port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    atomic_store(&stop, false);
    atomic_store(&torn, 0);
    for (intptr_t i = 0; i < WRITERS; i++) {
        atomic_store(&answered[i], 0);
        atomic_store(&ended[i], false);
        assert_int_equal(pthread_create(&threads[i], NULL, write_points, (void *)i), 0);
    }
    /* Waits until each writer has had answers, and then for a moment, so as not to stop right after an answer. */
    for (bool busy = true; busy;) {
        busy = false;
        for (int i = 0; i < WRITERS; i++)
            busy = busy || (atomic_load(&answered[i]) < WRITES_MIN && !atomic_load(&ended[i]));
        usleep(7000);
    }
    kill(running.process, number);
    assert_int_equal(waitpid(running.process, &status, 0), running.process);
    atomic_store(&stop, true);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    return status;
}

static void check_nothing_was_lost(void)
{
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    int total = 0;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_store_collection(store, "docs", &collection));
    for (int writer = 0; writer < WRITERS; writer++)
        for (int i = 0; i < atomic_load(&answered[writer]); i++, total++) {
            char id[24];
            int64_t row = 0;
            snprintf(id, sizeof id, "%d", writer * WRITES_MAX + i);
            CHECK_OK(ww_collection_find(collection, id, &row));
        }
    assert_true(total > 0);
    ww_collection_destroy(collection);
    ww_store_close(store);
    ww_device_close(device);
}

static void sigterm_under_load_loses_no_answered_write(void **state)
{
    (void)state;
    const int status = end_under_load(SIGTERM);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(atomic_load(&torn), 0);
    check_nothing_was_lost();
}

static void a_killed_server_loses_no_answered_write(void **state)
{
    (void)state;
    const int status = end_under_load(SIGKILL);
    assert_true(WIFSIGNALED(status));
    check_nothing_was_lost();
}

/* ---- named vectors ------------------------------------------------------------------------------------------------------- */

enum { NAMED_POINTS = 12, NAMED_KILLS = 15 };
static const char *const NAMED[] = {"docs", "docs/a", "docs/b"};

/* Gives all points vectors and payloads of the next generation, again and again, and now and then removes some first. */
static void *write_generations(void *user)
{
    (void)user;
    for (int g = 1 + atomic_load(&answered[0]); !atomic_load(&stop); g++) {
        char body[NAMED_POINTS * 128] = "{\"points\": [";
        for (int i = 0; i < NAMED_POINTS; i++)
            snprintf(body + strlen(body), sizeof body - strlen(body),
                     "%s{\"id\": %d, \"vector\": {\"a\": [%d, 1], \"b\": [%d, 2]}, \"payload\": {\"g\": %d}}", i > 0 ? "," : "",
                     i, g, g, g);
        snprintf(body + strlen(body), sizeof body - strlen(body), "]}");
        http_answer a = http_ask(running.port, "PUT", "/collections/docs/points?wait=true", body);
        const bool gone = a.status != 200;
        if (!gone)
            atomic_store(&answered[0], g);
        http_free(&a);
        if (gone)
            break;
        if (g % 4 == 0) {
            a = http_ask(running.port, "POST", "/collections/docs/points/delete", "{\"points\": [3, 4, 5]}");
            http_free(&a);
        }
    }
    return NULL;
}

/* The generation of each point of a collection; 0: there is no such point. Vectors and payloads must agree. */
static void read_generations(ww_store *store, int which, int generations[NAMED_POINTS])
{
    ww_collection *collection = NULL;
    ww_results *all = NULL;
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    CHECK_OK(ww_store_collection(store, NAMED[which], &collection));
    CHECK_OK(ww_collection_get(collection, &get, &all));
    memset(generations, 0, NAMED_POINTS * sizeof *generations);
    for (int64_t i = 0; i < ww_results_count(all, 0); i++) {
        json_t *payload = json_loads(ww_results_payload(all, 0, i), 0, NULL);
        const int g = (int)json_integer_value(json_object_get(payload, "g"));
        json_decref(payload);
        generations[atoi(ww_results_id(all, 0, i))] = g;
        if (which > 0 && ww_results_vector(all, 0, i)[0] != (float)g)
            fail_msg("%s: a vector of generation %g has the payload of %d", NAMED[which],
                     (double)ww_results_vector(all, 0, i)[0], g);
    }
    ww_results_destroy(all);
    ww_collection_destroy(collection);
}

static void a_killed_server_has_written_named_vectors_whole_or_not_at_all(void **state)
{
    (void)state;
    ww_device *device = NULL;
    unsigned int moment = 7;
    CHECK_OK(ww_device_open("cpu", &device));
    atomic_store(&answered[0], 0);
    for (int k = 0; k < NAMED_KILLS; k++) {
        pthread_t writer;
        int status = 0, found[3][NAMED_POINTS];
        running = start();
        if (k == 0)
            ASK_STATUS(running.port, 200, "PUT", "/collections/docs",
                       "{\"vectors\": {\"a\": {\"size\": 2, \"distance\": \"Euclid\"}, \"b\": {\"size\": 2, \"distance\": "
                       "\"Euclid\"}}}");
        const int before = atomic_load(&answered[0]);
        atomic_store(&stop, false);
        assert_int_equal(pthread_create(&writer, NULL, write_generations, NULL), 0);
        while (atomic_load(&answered[0]) == before)
            usleep(500);
        moment = moment * 1103515245 + 12345;
        usleep(moment / 65536 % 20000);
        kill(running.process, SIGKILL);
        assert_int_equal(waitpid(running.process, &status, 0), running.process);
        atomic_store(&stop, true);
        pthread_join(writer, NULL);
        ww_store *store = NULL;
        CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
        CHECK_OK(ww_store_check(store, NULL, NULL));
        for (int which = 0; which < 3; which++)
            read_generations(store, which, found[which]);
        for (int i = 0; i < NAMED_POINTS; i++)
            if (found[0][i] != found[1][i] || found[0][i] != found[2][i] || (found[0][i] > 0 && found[0][i] != found[0][0]) ||
                found[0][0] < atomic_load(&answered[0]))
                fail_msg("after kill %d point %d is of generations %d, %d, %d; point 0 is of %d, answered was %d", k, i,
                         found[0][i], found[1][i], found[2][i], found[0][0], atomic_load(&answered[0]));
        ww_store_close(store);
    }
    ww_device_close(device);
}

/* A request with minutes of work: 4,000 searches, each with another filter over 20,000 points. */
static int begin_long_work(void)
{
    enum { POINTS = 20000, SEARCHES = 4000, ROOM = 1 << 20 };
    char *body = malloc(ROOM), head[256];
    assert_non_null(body);
    size_t length = (size_t)snprintf(body, ROOM, "{\"points\": [");
    for (int i = 0; i < POINTS; i++)
        length += (size_t)snprintf(body + length, ROOM - length, "%s{\"id\": %d, \"vector\": [1, 2]}", i > 0 ? "," : "", i);
    snprintf(body + length, ROOM - length, "]}");
    ASK_STATUS(running.port, 200, "PUT", "/collections/docs/points", body);
    length = (size_t)snprintf(body, ROOM, "{\"searches\": [");
    for (int i = 0; i < SEARCHES; i++)
        length += (size_t)snprintf(body + length, ROOM - length,
                                   "%s{\"query\": [1, 2], \"filter\": {\"must\": [{\"key\": \"key\", \"match\": {\"text\": "
                                   "\"number %d\"}}]}}",
                                   i > 0 ? "," : "", i);
    length += (size_t)snprintf(body + length, ROOM - length, "]}");
    const int connection = http_connect(running.port);
    snprintf(head, sizeof head,
             "POST /collections/docs/points/query/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n",
             length);
    http_send(connection, head, strlen(head));
    http_send(connection, body, length);
    free(body);
    return connection;
}

static void sigterm_ends_a_long_request_within_the_stated_time(void **state)
{
    (void)state;
    int status = 0;
    running = start();
    ASK_STATUS(running.port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    const int connection = begin_long_work();
    http_until_active(running.port, 1);
    usleep(300000); /* it runs */
    const time_t begun = time(NULL);
    kill(running.process, SIGTERM);
    http_answer a = http_receive(connection);
    if (a.status != 503 && a.status != 504)
        fail_msg("answered %d after %d s: %.200s", a.status, (int)(time(NULL) - begun), a.body ? a.body : "");
    http_free(&a);
    assert_int_equal(waitpid(running.process, &status, 0), running.process);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(time(NULL) - begun <= 4); /* one second, and what a busy machine needs */
    close(connection);
}

#define SCRATCHED(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCHED(sigterm_under_load_loses_no_answered_write),
        SCRATCHED(a_killed_server_loses_no_answered_write),
        SCRATCHED(a_killed_server_has_written_named_vectors_whole_or_not_at_all),
        SCRATCHED(sigterm_ends_a_long_request_within_the_stated_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
