/* A small HTTP client over loopback, and a server to talk to. */
#ifndef TESTS_SERVER_CLIENT_H
#define TESTS_SERVER_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include <warpwave/model.h>

#include "server/server.h"
#include "support/check.h"
#include "support/scratch.h"

typedef struct http_answer {
    int status; /* 0: the connection was closed without an answer */
    char *head; /* including its empty line; NULL without an answer */
    char *body; /* all chunks, followed by a NUL */
    size_t length;
} http_answer;

void http_free(http_answer *a);

/* Connects; the test fails if that is not possible, while the second function returns -1. */
int http_connect(int port);
int http_try_connect(int port);

/* Sends bytes unchanged; below, receives one answer. */
void http_send(int connection, const void *bytes, size_t count);
http_answer http_receive(int connection);

/* One request over its own connection. `body` may be NULL. Returns status 0 if nothing listens. */
http_answer http_ask(int port, const char *method, const char *path, const char *body);

/* Send bytes unchanged over a new connection, and return the status of the answer; the second one closes its side
 * afterwards. */
int http_raw_status(int port, const char *bytes);
int http_cut_status(int port, const char *bytes);

/* The value of a line of the figures, "\nwarpwave_requests_active "; -1: there is none. */
double http_figure(int port, const char *name);

/* Waits until that many requests run; the test fails if that is not so within ten seconds. */
void http_until_active(int port, int wanted);

/* Asks, checks the status, and gives the body as JSON, which the caller decrefs. */
#define ASK(port, expected, method, path, body)                                                                                \
    http_json(__FILE__, __LINE__, (http_expected){port, expected}, method, path, body)
typedef struct http_expected {
    int port, status;
} http_expected;
json_t *http_json(const char *file, int line, http_expected expected, const char *method, const char *path, const char *body);

/* Asks and checks the status. */
#define ASK_STATUS(port, expected, method, path, body) json_decref(ASK(port, expected, method, path, body))

/* A server over a new store in the scratch folder, at any port. `change` may set more of the configuration; may be NULL. */
server *server_for_test(void (*change)(server_config *config));
void server_test_end(server *s);

/* Has a collection of that store keep a model with prefixes, as a text collection of the library does. */
void server_keep_prefixes(const char *collection, const ww_model *model, const char *query_prefix, const char *document_prefix);

#endif
