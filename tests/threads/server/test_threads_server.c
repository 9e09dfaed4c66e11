/* The whole server under load: clients that write, search, embed, generate and leave without a word, while keys are read again;
 * then it stops under them. Answers are right, and the thread sanitizer has nothing to say. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/client.h"
#include "support/models/tiny.h"

enum { POINTS = 64, CLIENTS_EACH = 2, LOAD_MS = 1500, RELOADS = 15 };

static server *running;
static int port;
static atomic_bool done;
static atomic_int answers[5], wrong;

static void with_all(server_config *config)
{
    static char keys[SCRATCH_PATH_BYTES], paths[2][SCRATCH_PATH_BYTES], log[SCRATCH_PATH_BYTES];
    static const char *const names[2] = {"encoder", "decoder"};
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(names[i]));
        tiny_write_words(i == 0 ? "bert" : "llama", paths[i]);
        config->model_names[i] = names[i];
        config->model_paths[i] = paths[i];
    }
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret\n", 7));
    snprintf(log, sizeof log, "%s", scratch_path("access.log"));
    config->model_count = 2;
    config->access_log = log;
    config->read_only_key_file = NULL;
    config->key_file = keys;
    config->queue_limit = 64;
    config->drain_seconds = 2;
}

/* One request with the key; the caller checks the status. */
static http_answer ask(const char *method, const char *path, const char *body)
{
    char request[2048];
    const int connection = http_try_connect(port);
    if (connection < 0)
        return (http_answer){0};
    const int length = snprintf(request, sizeof request,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\napi-key: secret\r\nConnection: close\r\n"
                                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                method, path, strlen(body), body);
    http_send(connection, request, (size_t)length);
    http_answer a = http_receive(connection);
    close(connection);
    return a;
}

/* Counts an answer: 200 with these words in it. While the server stops, nothing and 503 are right, too. */
static void count_answer(http_answer a, int kind, const char *words)
{
    const bool good = a.status == 200 && strstr(a.body, words);
    if (good)
        atomic_fetch_add(&answers[kind], 1);
    else if (a.status != 429 && !atomic_load(&done))
        atomic_fetch_add(&wrong, 1);
    http_free(&a);
}

static void *write_points(void *user)
{
    const int writer = (int)(intptr_t)user;
    for (int i = 0; !atomic_load(&done); i++) {
        char body[256];
        const int id = writer * POINTS + i % POINTS;
        snprintf(body, sizeof body, "{\"points\": [{\"id\": %d, \"vector\": [%d, 1], \"payload\": {\"n\": %d}}]}", id, id, id);
        count_answer(ask("PUT", "/collections/docs/points", body), 0, "completed");
        if (i % 8 == 7)
            count_answer(ask("POST", "/collections/docs/points/delete", "{\"points\": [5]}"), 0, "completed");
    }
    return NULL;
}

static void *search_points(void *user)
{
    (void)user;
    while (!atomic_load(&done)) { /* point 1000 is always there and always the best */
        count_answer(ask("POST", "/collections/docs/points/query", "{\"query\": [1, 0], \"limit\": 3, \"with_payload\": true}"),
                     1, "{\"id\":1000,\"version\":0,\"score\":1000.0,");
        count_answer(ask("POST", "/collections/docs/points/query",
                         "{\"query\": [1, 0], \"filter\": {\"must\": [{\"key\": \"n\", \"match\": {\"value\": 1000}}]}}"),
                     1, "\"id\":1000");
    }
    return NULL;
}

static void *embed_texts(void *user)
{
    (void)user;
    while (!atomic_load(&done))
        count_answer(ask("POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [\"a fox\", \"a dog\"]}"), 2,
                     "\"index\":1");
    return NULL;
}

static void *generate(void *user)
{
    (void)user;
    while (!atomic_load(&done))
        count_answer(ask("POST", "/v1/completions",
                         "{\"model\": \"decoder\", \"prompt\": \"a fox\", \"max_tokens\": 8, \"stream\": true}"),
                     3, "[DONE]");
    return NULL;
}

/* Sends requests, whole and in part, and closes without reading. */
static void *leave(void *user)
{
    (void)user;
    static const char *const requests[] = {
        ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\napi-key: secret\r\nContent-Type: application/json\r\n"
         "Content-Length: 82\r\n\r\n"
         "{\"model\": \"decoder\", \"prompt\": \"a fox dogs a\", \"max_tokens\": 200, \"stream\": true    }"),
        ("POST /collections/docs/points/query HTTP/1.1\r\nHost: localhost\r\napi-key: secret\r\nContent-Type: "
         "application/json\r\n"
         "Content-Length: 17\r\n\r\n{\"query\": [1, 0]}"),
        ("PUT /collections/docs/points HTTP/1.1\r\nHost: localhost\r\napi-key: secret\r\nContent-Type: application/json\r\n"
         "Content-Length: 500\r\n\r\n{\"po")};
    for (int i = 0; !atomic_load(&done); i++) {
        const int connection = http_try_connect(port);
        const char *request = requests[i % 3];
        if (connection < 0)
            break;
        http_send(connection, request, strlen(request));
        if (i % 2 == 0)
            (void)recv(connection, (char[64]){0}, 64, i % 4 == 0 ? MSG_DONTWAIT : 0);
        close(connection);
        atomic_fetch_add(&answers[4], 1);
    }
    return NULL;
}

static void a_server_under_load_answers_and_stops(void **state)
{
    (void)state;
    static void *(*const kinds[])(void *) = {write_points, search_points, embed_texts, generate, leave};
    pthread_t threads[5][CLIENTS_EACH];
    running = server_for_test(with_all);
    port = server_port(running);
    count_answer(ask("PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}"), 0, "true");
    count_answer(ask("PUT", "/collections/docs/points",
                     "{\"points\": [{\"id\": 1000, \"vector\": [1000, 1], \"payload\": {\"n\": 1000}}]}"),
                 0, "completed");
    for (int kind = 0; kind < 5; kind++)
        for (intptr_t i = 0; i < CLIENTS_EACH; i++)
            assert_int_equal(pthread_create(&threads[kind][i], NULL, kinds[kind], (void *)i), 0);
    for (int i = 0; i < RELOADS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = LOAD_MS / RELOADS * 1000000L}, NULL);
        CHECK_OK(server_reload(running));
        count_answer(ask("GET", "/metrics", ""), 0, "warpwave_requests_total");
    }
    atomic_store(&done, true); /* each has one more request under way */
    server_test_end(running);
    for (int kind = 0; kind < 5; kind++)
        for (int i = 0; i < CLIENTS_EACH; i++)
            pthread_join(threads[kind][i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    for (int kind = 0; kind < 5; kind++)
        if (atomic_load(&answers[kind]) < 2)
            fail_msg("clients of kind %d had %d answers", kind, atomic_load(&answers[kind]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_under_load_answers_and_stops, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
