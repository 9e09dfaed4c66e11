/* Clients that leave: what they asked for is not computed, whether it waits or runs, and nobody else notices. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/client.h"
#include "support/models/tiny.h"

enum { TEXTS = 16000, WORDS = 60 };

static void with_one_worker(server_config *config)
{
    static char path[SCRATCH_PATH_BYTES];
    snprintf(path, sizeof path, "%s", scratch_path("encoder.gguf"));
    config->model_names[0] = "encoder";
    config->model_paths[0] = path;
    config->model_count = 1;
    config->workers = 1;
}

/* Sends a request without waiting for its answer. Returns the connection. */
static int begin_request(int port, const char *method, const char *path, const char *body)
{
    char head[256];
    const int connection = http_connect(port);
    const int length = snprintf(head, sizeof head,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                "Content-Length: %zu\r\n\r\n",
                                method, path, strlen(body));
    http_send(connection, head, (size_t)length);
    http_send(connection, body, strlen(body));
    return connection;
}

/* Waits until the figures have the line; ctest ends the test if that never happens. */
static void wait_for(int port, const char *line)
{
    for (bool found = false; !found;) {
        http_answer figures = http_ask(port, "GET", "/metrics", NULL);
        found = strstr(figures.body, line) != NULL;
        http_free(&figures);
        usleep(2000);
    }
}

/* A body with enough texts to keep the worker busy until the test is over. */
static char *long_work(void)
{
    const size_t room = 64 + (size_t)TEXTS * (4 * WORDS + 4);
    char *body = malloc(room);
    assert_non_null(body);
    size_t length = (size_t)snprintf(body, room, "{\"model\": \"encoder\", \"input\": [");
    for (int i = 0; i < TEXTS; i++) {
        length += (size_t)snprintf(body + length, room - length, i > 0 ? ",\"" : "\"");
        for (int word = 0; word < WORDS; word++)
            length += (size_t)snprintf(body + length, room - length, "fox ");
        length += (size_t)snprintf(body + length, room - length, "\"");
    }
    snprintf(body + length, room - length, "]}");
    return body;
}

static void work_of_clients_that_leave_ends(void **state)
{
    (void)state;
    tiny_write_words("bert", scratch_path("encoder.gguf"));
    server *s = server_for_test(with_one_worker);
    const int port = server_port(s);
    char *body = long_work();
    const int first = begin_request(port, "POST", "/v1/embeddings", body);
    wait_for(port, "warpwave_batches_total 1\n"); /* the only worker has it */
    const int second = begin_request(port, "GET", "/collections", "");
    wait_for(port, "warpwave_queue_length{kind=\"store\",name=\"\"} 1\n");
    close(second);
    wait_for(port, "warpwave_queue_length{kind=\"store\",name=\"\"} 0\n");
    wait_for(port, "path=\"/collections\",status=\"4xx\"} 1\n"); /* 499 while the worker is still busy */
    wait_for(port, "warpwave_requests_active 1\n");
    close(first);
    wait_for(port, "warpwave_requests_active 0\n");
    wait_for(port, "path=\"/v1/embeddings\",status=\"4xx\"} 1\n"); /* it did not run to its end */
    ASK_STATUS(port, 200, "GET", "/collections", NULL);
    free(body);
    server_test_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_of_clients_that_leave_ends, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
