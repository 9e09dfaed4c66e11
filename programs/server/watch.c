/* Clients that leave, and deadlines. The HTTP library does not look at suspended connections, so this thread does: a waiting
 * request whose client has left, or whose deadline has passed, leaves its queue and is answered immediately. A running one is
 * marked, and its worker gives it up as soon as it can. Other requests are not affected. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/threads.h"
#include "server/http.h"
#include "server/state.h"
#include "server/stream.h"

enum { EVENTS = 64, TICK_MS = 5, IDLE_TICK_MS = 50, SLOW_SECONDS = 1, SOCKET_BITS = 24 };

/* ---- connections --------------------------------------------------------------------------------------------------------- */

/* Makes room for a socket in the table. The caller holds the lock. */
static bool reserve_socket(server *s, size_t socket)
{
    if (socket < s->socket_capacity)
        return true;
    size_t larger = s->socket_capacity > 0 ? s->socket_capacity : 64;
    while (larger <= socket)
        larger *= 2;
    client **moved = memory_resize(s->clients_by_socket, larger * sizeof(client *));
    if (!moved)
        return false;
    memset(moved + s->socket_capacity, 0, (larger - s->socket_capacity) * sizeof(client *));
    s->clients_by_socket = moved;
    s->socket_capacity = larger;
    return true;
}

client *watch_client(server *s, int socket)
{
    client *c = memory_alloc_zeroed(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (client){.server = s, .socket = socket, .since_seconds = server_seconds()};
    pthread_mutex_lock(&s->lock);
    if (!reserve_socket(s, (size_t)socket)) {
        pthread_mutex_unlock(&s->lock);
        memory_free(c);
        return NULL;
    }
    s->clients_by_socket[socket] = c;
    c->number = ++s->connections;
    c->next = s->clients;
    if (s->clients)
        s->clients->previous = c;
    s->clients = c;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = c->number << SOCKET_BITS | (uint64_t)socket};
    (void)epoll_ctl(s->watch, EPOLL_CTL_ADD, socket, &event); /* without it only deadlines end requests */
    pthread_mutex_unlock(&s->lock);
    return c;
}

void watch_client_end(client *c)
{
    server *s = c->server;
    pthread_mutex_lock(&s->lock);
    (void)epoll_ctl(s->watch, EPOLL_CTL_DEL, c->socket, NULL);
    if (s->clients_by_socket[c->socket] == c)
        s->clients_by_socket[c->socket] = NULL;
    *(c->previous ? &c->previous->next : &s->clients) = c->next;
    if (c->next)
        c->next->previous = c->previous;
    pthread_mutex_unlock(&s->lock);
    memory_free(c);
}

void watch_client_request(client *c, request *r)
{
    pthread_mutex_lock(&c->server->lock);
    c->request = r;
    c->since_seconds = server_seconds();
    pthread_mutex_unlock(&c->server->lock);
}

/* Ends a connection whose request is not complete: the HTTP library then closes it. The caller holds the lock. */
static void hang_up(const client *c)
{
    if (!c->request || c->request->state == REQUEST_READING)
        (void)shutdown(c->socket, SHUT_RDWR);
}

static void hang_up_slow(server *s, double now)
{
    pthread_mutex_lock(&s->lock);
    for (const client *c = s->clients; c; c = c->next)
        if (now > c->since_seconds + HTTP_IDLE_SECONDS)
            hang_up(c);
    pthread_mutex_unlock(&s->lock);
}

/* ---- requests ------------------------------------------------------------------------------------------------------------ */

void watch_add(request *r)
{
    server *s = r->server;
    pthread_mutex_lock(&s->lock);
    r->next_active = s->active;
    r->previous_active = NULL;
    if (s->active)
        s->active->previous_active = r;
    s->active = r;
    s->active_count++;
    pthread_mutex_unlock(&s->lock);
}

void watch_remove(request *r)
{
    server *s = r->server;
    pthread_mutex_lock(&s->lock);
    if (r->previous_active || r->next_active || s->active == r) {
        *(r->previous_active ? &r->previous_active->next_active : &s->active) = r->next_active;
        if (r->next_active)
            r->next_active->previous_active = r->previous_active;
        r->previous_active = r->next_active = NULL;
        s->active_count--;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Marks a request as gone. Returns it if it was waiting: the caller must answer it after unlocking. The caller holds the
 * lock. */
static request *give_up(request *r)
{
    if (!atomic_load(&r->gone))
        job_lose(r);
    atomic_store(&r->gone, true);
    if (r->state == REQUEST_DONE && r->stream)
        stream_leave(r->stream);
    if (r->state != REQUEST_WAITING)
        return NULL;
    queue_remove(r);
    return r;
}

/* Finds a waiting request whose deadline has passed; NULL if there is none. */
static request *next_late(server *s, double now)
{
    request *late = NULL;
    pthread_mutex_lock(&s->lock);
    for (request *r = s->active; !late && r; r = r->next_active) {
        if (r->state == REQUEST_WAITING)
            queue_relieve(r->queue, now);
        if (now > r->deadline_seconds && !atomic_load(&r->gone) && (r->state != REQUEST_DONE || s->draining)) {
            r->late = true;
            late = give_up(r);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return late;
}

/* The client has closed the connection. Another client may have the socket by now, with another number. */
static void client_left(server *s, uint64_t event)
{
    request *waiting = NULL;
    pthread_mutex_lock(&s->lock);
    const client *c = s->clients_by_socket[event & ((1u << SOCKET_BITS) - 1)];
    if (c && c->number != event >> SOCKET_BITS)
        c = NULL;
    if (c && c->request && c->request->state != REQUEST_READING)
        waiting = give_up(c->request);
    else if (c)
        hang_up(c);
    pthread_mutex_unlock(&s->lock);
    if (waiting) {
        request_fail(waiting, 499, "the client closed the connection");
        request_done(waiting);
    }
}

static void *watch(void *argument)
{
    server *s = argument;
    struct epoll_event events[EVENTS];
    double slow_seconds = server_seconds();
    bool busy = false;
    for (bool stop = false; !stop;) {
        const int count = epoll_wait(s->watch, events, EVENTS, busy ? TICK_MS : IDLE_TICK_MS);
        for (int i = 0; i < count; i++)
            client_left(s, events[i].data.u64);
        for (request *late; (late = next_late(s, server_seconds()));) {
            request_fail(late, late->lsn_min > 0 && late->lsn[0] == '\0' ? 503 : 504,
                         "the request waited for %g seconds, which is its deadline (--timeout)", late->seconds);
            request_done(late);
        }
        if (server_seconds() > slow_seconds + SLOW_SECONDS) { /* goes through all connections */
            slow_seconds = server_seconds();
            hang_up_slow(s, slow_seconds);
        }
        pthread_mutex_lock(&s->lock);
        stop = s->stopping;
        busy = s->active_count > 0;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

ww_status watch_start(server *s)
{
    s->watch = epoll_create1(EPOLL_CLOEXEC);
    if (s->watch < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "epoll");
    const int code = thread_start(&s->watcher, "ww-watch", watch, s);
    s->watching = code == 0;
    return code == 0 ? WW_OK : ww_fail_errno(WW_IO_ERROR, code, "the thread that watches clients could not be started");
}

void watch_stop(server *s)
{
    if (s->watching)
        pthread_join(s->watcher, NULL);
    s->watching = false;
    if (s->watch >= 0)
        close(s->watch);
    s->watch = -1;
}
