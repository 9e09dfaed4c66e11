/* Requests from many connections to one server: how many a second, and how long each took. One thread, so that it takes little
 * of the cores that the server has.
 *
 *     server_load PORT PATH BODIES CONNECTIONS SECONDS [RATE]
 *
 * BODIES has a JSON text a line, which are sent by POST, in turn. Each connection sends its next request when the answer is
 * there; with RATE, which is requests a second of all connections together, not before its time has come, and a request that is
 * late because the answer before it was counts from that time. Prints a JSON object: requests, those of a first second
 * included, requests a second, milliseconds of the median and of the 99th percentile, failures.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

enum { CONNECTIONS_MAX = 4096, TIMES_MAX = 1 << 22, HEAD_BYTES = 512, ANSWER_BYTES = 4 << 20, EVENTS = 256 };

typedef struct body {
    const char *bytes;
    size_t length;
} body;

typedef struct connection {
    int socket;
    double begun; /* when the request was sent, or should have been */
    bool waiting; /* for the answer to its request */
    char *answer;
    size_t length;
} connection;

static struct {
    const char *path;
    body *bodies;
    size_t body_count, next_body;
    double *times;
    size_t time_count, failures;
    double rate; /* 0: as fast as answers come */
} load;

static void stop(const char *what)
{
    perror(what);
    exit(1);
}

static void read_bodies(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        stop(path);
    char *line = NULL;
    size_t capacity = 0, room = 0;
    for (ssize_t length; (length = getline(&line, &capacity, file)) > 1;) {
        if (load.body_count == room) {
            room = room > 0 ? 2 * room : 1024;
            load.bodies = realloc(load.bodies, room * sizeof *load.bodies);
        }
        char *copy = malloc((size_t)length);
        if (!copy || !load.bodies)
            stop("memory");
        memcpy(copy, line, (size_t)length);
        load.bodies[load.body_count++] = (body){copy, (size_t)length - 1};
    }
    free(line);
    fclose(file);
    if (load.body_count == 0)
        stop("there are no bodies");
}

static int connect_to(int port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, (const struct sockaddr *)&to, sizeof to) != 0)
        stop("connect");
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return made;
}

/* Sends the next body in one piece. Requests are short, so the socket takes them whole. */
static void send_next(connection *c, double begun)
{
    static char request[1 << 20];
    const body *b = &load.bodies[load.next_body++ % load.body_count];
    const int head =
        snprintf(request, HEAD_BYTES,
                 "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 load.path, b->length);
    if ((size_t)head + b->length > sizeof request)
        stop("a body is too long");
    memcpy(request + head, b->bytes, b->length);
    const size_t length = (size_t)head + b->length;
    c->length = 0;
    c->begun = begun;
    c->waiting = true;
    for (size_t sent = 0; sent < length;) {
        const ssize_t count = send(c->socket, request + sent, length - sent, MSG_NOSIGNAL);
        if (count <= 0)
            stop("send");
        sent += (size_t)count;
    }
}

/* Is the answer complete? By its length, or by its last chunk. */
static bool is_complete(const connection *c)
{
    const char *end = memmem(c->answer, c->length, "\r\n\r\n", 4);
    if (!end)
        return false;
    const size_t head = (size_t)(end - c->answer) + 4;
    c->answer[head - 1] = '\0';
    const char *length = strcasestr(c->answer, "\ncontent-length:");
    c->answer[head - 1] = '\n';
    if (length)
        return c->length >= head + strtoul(length + 16, NULL, 10);
    return c->length >= head + 5 && memcmp(c->answer + c->length - 5, "0\r\n\r\n", 5) == 0;
}

/* Takes what has arrived, and the time if the answer is complete. */
static void receive(connection *c)
{
    const ssize_t count = recv(c->socket, c->answer + c->length, ANSWER_BYTES - 1 - c->length, 0);
    if (count <= 0)
        stop("the server closed a connection");
    c->length += (size_t)count;
    c->answer[c->length] = '\0';
    if (!is_complete(c))
        return;
    load.failures += strncmp(c->answer + 9, "200", 3) != 0;
    if (load.time_count < TIMES_MAX)
        load.times[load.time_count++] = seconds_now() - c->begun;
    c->waiting = false;
}

/* Returns when a connection should send its next request: at once, or, with `load.rate`, in turn with the others. */
static double due(const connection *c, int count, double now)
{
    return load.rate > 0 ? c->begun + count / load.rate : now;
}

/* Sends the requests that are due. Returns the seconds until the next one. */
static double send_due(connection *all, int count, double end)
{
    const double now = seconds_now();
    double next = 60;
    for (int i = 0; i < count; i++) {
        const double at = due(&all[i], count, now);
        if (all[i].waiting || at >= end)
            continue;
        if (at <= now)
            send_next(&all[i], at);
        else if (at - now < next)
            next = at - now;
    }
    return next;
}

static bool any_waiting(const connection *all, int count)
{
    for (int i = 0; i < count; i++)
        if (all[i].waiting)
            return true;
    return false;
}

static double run(connection *all, int count, double seconds)
{
    struct epoll_event events[EVENTS];
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    const double begun = seconds_now(), end = begun + seconds;
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].socket, &event);
        all[i].begun = begun + (load.rate > 0 ? (i - count) / load.rate : 0);
    }
    while (seconds_now() < end || any_waiting(all, count)) {
        const double wait = send_due(all, count, end);
        if (!any_waiting(all, count) && seconds_now() + wait >= end)
            break; /* nothing more comes */
        const struct timespec limit = {.tv_sec = (time_t)wait, .tv_nsec = (long)(1e9 * (wait - (double)(time_t)wait))};
        const int ready = epoll_pwait2(epoll, events, EVENTS, &limit, NULL);
        if (ready < 0 || (ready == 0 && wait >= 60))
            stop("no answer within a minute");
        for (int i = 0; i < ready; i++)
            receive(events[i].data.ptr);
    }
    close(epoll);
    return seconds_now() - begun;
}

int main(int argc, char **argv)
{
    static connection all[CONNECTIONS_MAX];
    if (argc < 6 || argc > 7 || atoi(argv[4]) < 1 || atoi(argv[4]) > CONNECTIONS_MAX) {
        fprintf(stderr, "usage: server_load PORT PATH BODIES CONNECTIONS SECONDS [RATE]\n");
        return 2;
    }
    const int count = atoi(argv[4]);
    load.path = argv[2];
    load.times = malloc(TIMES_MAX * sizeof *load.times);
    read_bodies(argv[3]);
    for (int i = 0; i < count; i++)
        all[i] = (connection){.socket = connect_to(atoi(argv[1])), .answer = malloc(ANSWER_BYTES)};
    run(all, count, 1); /* warm */
    load.rate = argc > 6 ? atof(argv[6]) : 0;
    const size_t warm = load.time_count;
    load.time_count = load.failures = 0;
    const double taken = run(all, count, atof(argv[5]));
    const double median = median_of(load.times, load.time_count);
    printf("{\"requests\": %zu, \"rate\": %.1f, \"median_ms\": %.4f, \"p99_ms\": %.4f, \"failures\": %zu}\n",
           warm + load.time_count, (double)load.time_count / taken, 1e3 * median, 1e3 * load.times[load.time_count * 99 / 100],
           load.failures);
    return load.failures > 0;
}
