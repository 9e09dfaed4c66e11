/* Stopping the command: on SIGTERM it finishes what it has begun, and however it ends, no acknowledged write is lost. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
    const char *const arguments[] = {"warpwave", "serve", store, "--device", "cpu", "--listen", "127.0.0.1:0", NULL};
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

#define SCRATCHED(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCHED(sigterm_under_load_loses_no_answered_write),
        SCRATCHED(a_killed_server_loses_no_answered_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
