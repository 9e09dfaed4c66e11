/* Connects libmicrohttpd with requests: reads them, suspends them, sends answers, and writes the access log. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "server/body/encoding.h"
#include "server/http.h"
#include "server/route.h"
#include "server/snapshots/snapshots.h"
#include "server/snapshots/upload.h"
#include "server/state.h"
#include "server/stream.h"
#include "server/tls.h"
#include "server/work/documents.h"

double server_seconds(void)
{
    return clock_seconds();
}

/* ---- the logs ------------------------------------------------------------------------------------------------------------ */

static void put_client(out *o, const request *r)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char text[NI_MAXHOST] = "";
    const struct sockaddr *address = info ? info->client_addr : NULL;
    if (address)
        (void)getnameinfo(address, address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                          text, sizeof text, NULL, 0, NI_NUMERICHOST);
    out_quoted(o, text, strlen(text));
}

/* {"time":...,"client":...,"method":...,"path":... */
static void put_line_begin(out *line, const request *r)
{
    struct timespec now;
    struct tm utc;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    out_format(line, "{\"time\":\"%s.%03ldZ\",\"client\":", text, now.tv_nsec / 1000000);
    put_client(line, r);
    out_format(line, ",\"method\":\"%s\",\"path\":", r->method);
    out_quoted(line, r->url ? r->url : "", r->url ? strlen(r->url) : 0);
}

/* ,"id":...,"key":...} */
static void put_line_end(out *line, const request *r)
{
    out_text(line, ",\"id\":");
    out_quoted(line, r->id, strlen(r->id));
    out_text(line, ",\"key\":");
    out_quoted(line, r->key_name, strlen(r->key_name));
    out_text(line, "}\n");
}

static void log_request(const request *r, double seconds)
{
    const server *s = r->server;
    out line = {0};
    if (s->log < 0)
        return;
    put_line_begin(&line, r);
    out_format(&line, ",\"status\":%d,\"request_bytes\":%zu,\"sent_bytes\":%zu,\"ms\":%.3f", r->status, r->body_length,
               r->sent_bytes, 1e3 * seconds);
    put_line_end(&line, r);
    if (!line.failed)
        (void)!write(s->log, line.bytes, line.length); /* a failing log must not stop an answer */
    out_free(&line);
}

/* Requests that change or copy data, whether they were permitted or not. A line that cannot be written is counted. */
static void audit_request(const request *r)
{
    server *s = r->server;
    out line = {0};
    if (s->audit < 0 || !r->route || !route_writes(r->route))
        return;
    const char *collection = strstr(r->route->path, "/collections/{") ? r->names[0] : NULL;
    put_line_begin(&line, r);
    out_text(&line, ",\"route\":");
    out_quoted(&line, r->route->path, strlen(r->route->path));
    out_text(&line, ",\"collection\":");
    if (collection)
        out_quoted(&line, collection, strlen(collection));
    else
        out_text(&line, "null");
    out_format(&line, ",\"status\":%d", r->status);
    put_line_end(&line, r);
    if (line.failed || write(s->audit, line.bytes, line.length) != (ssize_t)line.length)
        atomic_fetch_add(&s->audit_lost, 1);
    out_free(&line);
}

/* ---- the life of a request ----------------------------------------------------------------------------------------------- */

/* The client's or a proxy's own name for the request, if it can be written anywhere; otherwise its number. */
static void set_id(request *r)
{
    const char *given = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "x-request-id");
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:+/=";
    if (given && given[0] != '\0' && strlen(given) < REQUEST_ID_BYTES && strspn(given, plain) == strlen(given))
        snprintf(r->id, sizeof r->id, "%s", given);
    else
        snprintf(r->id, sizeof r->id, "%llu", (unsigned long long)r->number);
}

static request *request_create(server *s, struct MHD_Connection *connection, const char *url, const char *method)
{
    request *r = memory_alloc_zeroed(1, sizeof *r);
    char *copy = r ? memory_copy_text(url, strlen(url)) : NULL;
    if (!copy) {
        memory_free(r);
        return NULL;
    }
    r->server = s;
    r->connection = connection;
    r->url = copy;
    snprintf(r->method, sizeof r->method, "%s", strcmp(method, "HEAD") == 0 ? "GET" : method);
    r->begun_seconds = server_seconds();
    r->seconds = s->config.request_seconds;
    r->deadline_seconds = r->begun_seconds + r->seconds;
    r->status = 500;
    r->file = -1;
    pthread_mutex_lock(&s->lock);
    r->number = ++s->requests;
    pthread_mutex_unlock(&s->lock);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    r->client = info ? info->socket_context : NULL;
    set_id(r);
    r->accepted = encoding_accepted(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "accept-encoding"));
    if (r->client)
        watch_client_request(r->client, r);
    return r;
}

static void request_free(request *r)
{
    if (r->plan_free)
        r->plan_free(r->plan);
    documents_free(r->documents);
    key_release(r->key);
    if (r->entry)
        entry_release(r->server, r->entry);
    if (r->stream)
        stream_release(r->stream);
    upload_free(r->upload);
    if (r->file >= 0)
        close(r->file);
    for (size_t i = 0; i < PATH_NAMES_MAX; i++)
        memory_free(r->names[i]);
    atomic_fetch_sub(&r->server->body_bytes, (long long)r->body_capacity);
    memory_free(r->body);
    memory_free(r->url);
    out_free(&r->answer);
    memory_free(r);
}

static void completed(void *cls, struct MHD_Connection *connection, void **con_cls, enum MHD_RequestTerminationCode code)
{
    request *r = *con_cls;
    (void)cls;
    (void)connection;
    (void)code;
    if (!r)
        return;
    const double seconds = server_seconds() - r->begun_seconds;
    if (r->state == REQUEST_READING)
        r->status = 499; /* the client left before its request was whole */
    watch_remove(r);
    if (r->client)
        watch_client_request(r->client, NULL);
    if (r->stream)
        r->sent_bytes = stream_leave(r->stream);
    metrics_answered(&r->server->metrics, r, seconds);
    access_charge(r);
    log_request(r, seconds);
    audit_request(r);
    request_free(r);
    *con_cls = NULL;
}

/* The next whole line, without its end; moves *at past it. NULL: there is none yet. */
static const char *next_line(const char **at, const char *end, size_t *length)
{
    const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop)
        return NULL;
    *at = stop + 1;
    *length = (size_t)(stop - line) - (stop > line && stop[-1] == '\r');
    return line;
}

int http_head_check(const char *bytes, size_t count, const char **why)
{
    const char *const end = bytes + count;
    size_t length = 0;
    while (bytes < end && (*bytes == '\r' || *bytes == '\n')) /* empty lines before a request are permitted */
        bytes++;
    const char *line = next_line(&bytes, end, &length);
    if (!line)
        return 200;
    const char *version = memrchr(line, ' ', length);
    length -= version ? (size_t)(++version - line) : length;
    *why = "the request must begin with METHOD PATH HTTP/1.1";
    if (length < 6 || memcmp(version, "HTTP/", 5) != 0)
        return 400;
    *why = "this server speaks HTTP/1.0 and 1.1";
    if (length == 6 || memcmp(version + 5, "1.", 2) != 0)
        return 505;
    bool host = version[7] == '0';
    while ((line = next_line(&bytes, end, &length)) && length > 0) {
        *why = "a line of the header has no colon";
        if (*line != ' ' && *line != '\t' && !memchr(line, ':', length))
            return 400;
        host = host || (length >= 5 && strncasecmp(line, "host:", 5) == 0);
    }
    *why = "the header Host is missing";
    return host || !line ? 200 : 400;
}

/* The HTTP library answers what it does not understand with HTML, and has no hook for that. So the head of a connection's first
 * request, as far as it is here when the connection is (TCP_DEFER_ACCEPT), is looked at before; the library then finds the end.
 */
static void check_head(int socket)
{
    char bytes[4096], answer[512], body[256];
    const char *why = "";
    const ssize_t count = recv(socket, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    const int status = count > 0 ? http_head_check(bytes, (size_t)count, &why) : 200;
    if (status == 200)
        return;
    const int body_length = snprintf(body, sizeof body, "{\"status\":{\"error\":\"%s\"},\"time\":0}", why);
    const int length = snprintf(answer, sizeof answer,
                                "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
                                "connection: close\r\n\r\n%s",
                                status, status == 505 ? "HTTP Version Not Supported" : "Bad Request", body_length, body);
    (void)recv(socket, bytes, sizeof bytes, MSG_DONTWAIT); /* closing with unread bytes would drop the answer */
    (void)send(socket, answer, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(socket, SHUT_RDWR);
}

static void connected(void *cls, struct MHD_Connection *connection, void **context, enum MHD_ConnectionNotificationCode code)
{
    server *s = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info && !s->config.certificate)
            check_head((int)info->connect_fd);
        *context = info ? watch_client(s, (int)info->connect_fd) : NULL;
    } else if (*context) {
        watch_client_end(*context);
        *context = NULL;
    }
}

/* ---- sending ------------------------------------------------------------------------------------------------------------- */

static void free_bytes(void *bytes)
{
    memory_free(bytes);
}

/* Sends a whole file, which the response closes. */
static struct MHD_Response *make_file_response(request *r)
{
    struct stat file;
    struct MHD_Response *response =
        fstat(r->file, &file) == 0 ? MHD_create_response_from_fd64((uint64_t)file.st_size, r->file) : NULL;
    if (response) {
        r->sent_bytes = (size_t)file.st_size;
        r->file = -1;
    }
    return response;
}

static struct MHD_Response *make_response(request *r)
{
    if (r->file >= 0)
        return make_file_response(r);
    if (r->stream)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, r->stream, NULL);
    if (r->answer.failed || !r->answer.bytes)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    r->sent_bytes = r->answer.length;
    r->answer_points = r->answer.points;
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(r->answer.length, r->answer.bytes, free_bytes);
    if (response)
        r->answer = (out){0};
    return response;
}

/* What a thread that reads connections may compress: some milliseconds of work. */
enum { PACKED_HERE_BYTES_MAX = 256 << 10 };

static enum MHD_Result respond(request *r)
{
    server *s = r->server;
    pthread_mutex_lock(&s->lock);
    r->state = REQUEST_DONE; /* even if it was answered immediately */
    pthread_mutex_unlock(&s->lock);
    if (r->answer.failed && !r->stream)
        r->status = 507; /* no memory for the answer */
    if (r->answer.length <= PACKED_HERE_BYTES_MAX)
        encoding_write(r); /* what was answered immediately */
    struct MHD_Response *response = make_response(r);
    if (!response)
        return MHD_NO;
    const char *type = r->stream ? "text/event-stream" : r->content_type ? r->content_type : "application/json";
    const char *origin = access_origin(&s->access, r);
    MHD_add_response_header(response, "content-type", type);
    MHD_add_response_header(response, "x-content-type-options", "nosniff");
    MHD_add_response_header(response, "x-request-id", r->id);
    if (!r->stream)
        MHD_add_response_header(response, "vary", "accept-encoding");
    if (r->encoding)
        MHD_add_response_header(response, "content-encoding", r->encoding);
    following_tell(r, response);
    for (size_t i = 0; r->headers && r->headers[i][0]; i++)
        MHD_add_response_header(response, r->headers[i][0], r->headers[i][1]);
    if (r->stream)
        MHD_add_response_header(response, "cache-control", "no-cache");
    if (r->status == 429 || r->status == 503) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", r->retry_seconds > 0 ? r->retry_seconds : 1);
        MHD_add_response_header(response, "retry-after", seconds);
    }
    if (r->status == 401)
        MHD_add_response_header(response, "www-authenticate", "Bearer");
    if (origin) {
        MHD_add_response_header(response, "access-control-allow-origin", origin);
        MHD_add_response_header(response, "vary", "origin");
        if (r->status == 204) {
            MHD_add_response_header(response, "access-control-allow-methods", "GET, PUT, POST, PATCH, DELETE");
            MHD_add_response_header(response, "access-control-allow-headers", "content-type, api-key, authorization");
        }
    }
    if (s->draining || r->status == 400 || r->status == 413)
        MHD_add_response_header(response, "connection", "close");
    const enum MHD_Result result = MHD_queue_response(r->connection, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
    http_framing *f = cls;
    (void)kind;
    if (strcasecmp(key, "content-length") == 0) {
        f->lengths++;
        f->length = value;
    } else if (strcasecmp(key, "transfer-encoding") == 0) {
        f->encodings++;
        f->chunked = value && strcasecmp(value, "chunked") == 0;
    } else if (strcasecmp(key, "host") == 0) {
        f->hosts++;
    }
    return MHD_YES;
}

int http_framing_check(const http_framing *f, int64_t body_bytes_max, const char **why)
{
    *why = "";
    if (f->lengths > 1 || f->encodings > 1 || (f->lengths > 0 && f->encodings > 0) || f->hosts > 1)
        *why = "the headers contradict each other: a request has one Host, and one Content-Length or Transfer-Encoding";
    else if (f->encodings > 0 && !f->chunked)
        *why = "Transfer-Encoding: only chunked is supported";
    else if (f->length && (f->length[0] == '\0' || strspn(f->length, "0123456789") != strlen(f->length)))
        *why = "Content-Length must be a number";
    if (**why != '\0')
        return 400;
    if (!f->length)
        return 200;
    int64_t length = 0;
    for (const char *digit = f->length; *digit != '\0' && length <= body_bytes_max; digit++)
        length = 10 * length + (*digit - '0');
    if (length > body_bytes_max)
        *why = "the body is too large; --body-limit says how large it may be, --upload-limit for snapshots";
    return length > body_bytes_max ? 413 : 200;
}

/* Answers a CORS preflight: which methods and headers are permitted. Without an origin it is a load balancer that asks whether
 * the server lives. */
static void answer_options(request *r)
{
    const char *origin = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "origin");
    r->status = !origin || access_origin(&r->server->access, r) ? 204 : 403;
    r->content_type = "text/plain";
}

/* A page can send text/plain anywhere without asking first, so only bodies that are declared as JSON are read. */
static bool check_content_type(request *r, const http_framing *f)
{
    const char *type = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "content-type");
    const bool body = f->chunked || (f->length && strspn(f->length, "0") != strlen(f->length));
    const size_t length = type ? strcspn(type, "; \t") : 0;
    const bool json =
        (length == 16 && strncasecmp(type, "application/json", length) == 0) ||
        (length > 17 && strncasecmp(type, "application/", 12) == 0 && strncasecmp(type + length - 5, "+json", 5) == 0);
    const char *encoding = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "content-encoding");
    if (body && !encoding_is_known(encoding))
        return request_fail(r, 415, "Content-Encoding: gzip, zstd and identity are supported");
    if (route_uploads(r))
        return length == 19 && strncasecmp(type, "multipart/form-data", length) == 0 && !encoding
                   ? true
                   : request_fail(r, 415, "the header Content-Type must be multipart/form-data, without Content-Encoding");
    return !body || json ? true : request_fail(r, 415, "the header Content-Type must be application/json");
}

/* Clients of Qdrant say for how many seconds they wait. It cannot be longer than --timeout. */
static bool read_timeout(request *r)
{
    const char *given = request_argument(r, "timeout");
    if (!given || given[0] == '\0')
        return true;
    const long seconds = strtol(given, NULL, 10);
    if (strspn(given, "0123456789") != strlen(given) || seconds < 1)
        return request_fail(r, 400, "timeout: a number of seconds, 1 or more, is needed");
    r->asked[STRICT_TIMEOUT] = seconds;
    r->seconds = (double)seconds < r->seconds ? (double)seconds : r->seconds;
    r->deadline_seconds = r->begun_seconds + r->seconds;
    return true;
}

/* Checks what can be refused before the body arrives. False: the request has been answered. */
static bool begin(request *r)
{
    server *s = r->server;
    http_framing f = {0};
    const char *why = "";
    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, count_header, &f);
    const int found = route_find(r);
    const int framing = http_framing_check(&f, route_uploads(r) ? s->config.upload_bytes : s->config.body_bytes, &why);
    if (framing != 200)
        return request_fail(r, framing, "%s", why);
    if (strcmp(r->method, "OPTIONS") == 0) {
        answer_options(r);
        return false;
    }
    if (found == 400 || found == 507)
        return request_fail(r, found, found == 400 ? "the path is malformed" : "no memory for the request");
    const char *unsupported = found == 200 ? NULL : route_unsupported(r->url);
    if (unsupported)
        return request_fail(r, 501, "%s: not supported", unsupported);
    if (found != 200)
        return request_fail(r, found, found == 405 ? "%s is not allowed for %s" : "there is no route %s %s", r->method, r->url);
    if (!access_check(&s->access, r) || !check_content_type(r, &f))
        return false;
    if (s->draining && r->route->work != WORK_HERE)
        return request_fail(r, 503, "the server is stopping");
    if (!s->ready && r->route->work != WORK_HERE)
        return request_fail(r, 503, "the server is loading");
    return read_timeout(r) && following_begin(r) && (!route_uploads(r) || upload_begin(r));
}

/* Frees a body; what follows of it is dropped, and the request gets this status. */
static void drop_body(request *r, int status)
{
    atomic_fetch_sub(&r->server->body_bytes, (long long)r->body_capacity);
    memory_free(r->body);
    r->body = NULL;
    r->body_length = r->body_capacity = 0;
    r->dropped = status;
}

/* Makes room for a body of `length` bytes and a NUL. Returns 200, 503 if all bodies together would exceed their limit, or 507.
 */
static int reserve_body(request *r, size_t length)
{
    server *s = r->server;
    size_t larger = r->body_capacity > 0 ? r->body_capacity : 4096;
    while (larger <= length)
        larger *= 2;
    larger = larger < (size_t)s->config.body_bytes + 1 ? larger : (size_t)s->config.body_bytes + 1;
    const long long more = (long long)(larger - r->body_capacity);
    if (atomic_fetch_add(&s->body_bytes, more) + more > s->config.all_bodies_bytes) {
        atomic_fetch_sub(&s->body_bytes, more);
        return 503;
    }
    char *moved = memory_resize(r->body, larger);
    if (!moved) {
        atomic_fetch_sub(&s->body_bytes, more);
        return 507;
    }
    r->body = moved;
    r->body_capacity = larger;
    return 200;
}

/* Appends a piece of the body, or drops it. */
static void add_body(request *r, const char *bytes, size_t count)
{
    if (r->dropped != 0)
        return;
    if (r->body_length + count > (size_t)r->server->config.body_bytes) {
        drop_body(r, 413);
        return;
    }
    const int room = r->body_length + count < r->body_capacity ? 200 : reserve_body(r, r->body_length + count);
    if (room != 200) {
        drop_body(r, room);
        return;
    }
    memcpy(r->body + r->body_length, bytes, count);
    r->body_length += count;
    r->body[r->body_length] = '\0';
}

/* The request is complete: checks it and puts it into its queue. */
static enum MHD_Result process(request *r)
{
    server *s = r->server;
    if (r->dropped == 413)
        request_fail(r, 413, "the body is too large: the maximum is %lld bytes", (long long)s->config.body_bytes);
    else if (r->dropped == 507)
        request_fail(r, 507, "no memory for the body");
    else if (r->dropped != 0)
        request_fail(r, 503, "the bodies of all requests together take more than --body-memory; try again");
    if (r->dropped != 0)
        return respond(r);
    const bool prepared_later = request_prepares_long(r);
    if (!prepared_later && (!request_prepare(r) || r->route->work == WORK_HERE))
        return respond(r);
    MHD_suspend_connection(r->connection);
    watch_add(r);
    if (prepared_later)
        queue_submit(&s->reading, r);
    else
        request_dispatch(r);
    return MHD_YES;
}

/* libmicrohttpd's own list of parameters. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_bytes, void **con_cls)
{
    request *r = *con_cls;
    (void)version;
    if (!r) {
        r = request_create(cls, connection, url, method);
        *con_cls = r;
        if (!r)
            return MHD_NO;
        return begin(r) ? MHD_YES : respond(r);
    }
    if (r->state == REQUEST_DONE)
        return respond(r);
    if (*upload_bytes > 0) {
        if (r->upload)
            upload_add(r, upload, *upload_bytes);
        else
            add_body(r, upload, *upload_bytes);
        *upload_bytes = 0;
        return MHD_YES;
    }
    return process(r);
}

/* Escapes in paths are decoded part by part (route.c): %2F does not separate parts. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

/* ---- starting ------------------------------------------------------------------------------------------------------------ */

static ww_status listen_at(server *s, int *listening)
{
    char port[16];
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *found = NULL;
    const char *address = strcmp(s->config.address, "localhost") == 0 ? "127.0.0.1" : s->config.address;
    snprintf(port, sizeof port, "%d", (int)s->config.port);
    const int code = getaddrinfo(address, port, &hints, &found);
    if (code != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "cannot listen on the address '%s': %s", s->config.address, gai_strerror(code));
    const int one = 1;
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &one, sizeof one); /* see check_head() */
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1024) == 0;
    freeaddrinfo(found);
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.v6 = {0}};
    socklen_t length = sizeof bound;
    good = good && getsockname(fd, &bound.any, &length) == 0;
    if (!good) {
        const ww_status status = ww_fail_errno(WW_IO_ERROR, errno, "cannot listen on %s port %s", s->config.address, port);
        if (fd >= 0)
            close(fd);
        return status;
    }
    s->port = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
    *listening = fd;
    return WW_OK;
}

/* Raises the limit of open files to what the connections need. Returns how many connections are possible; some files are
 * reserved for the store and the models. */
static int64_t connections_possible(int64_t wanted)
{
    enum { FILES_KEPT = 256, CONNECTIONS_MIN = 16 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    const rlim_t needed = (rlim_t)wanted + FILES_KEPT;
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= needed)
        return wanted;
    return limit.rlim_cur > FILES_KEPT + CONNECTIONS_MIN ? (int64_t)limit.rlim_cur - FILES_KEPT : CONNECTIONS_MIN;
}

/* A server that is stopping closes new connections. MHD_quiesce_daemon() is not used for that: its epoll threads may take the
 * listening socket out of their set at the same moment, and the library then ends the process (0.9.75). */
static enum MHD_Result accept_connection(void *context, const struct sockaddr *address, socklen_t length)
{
    (void)address, (void)length;
    return ((const server *)context)->draining ? MHD_NO : MHD_YES;
}

ww_status http_start(server *s)
{
    const server_config *config = &s->config;
    const bool tls = s->certificate != NULL;
    int listening = -1;
    ww_status status = listen_at(s, &listening);
    if (status != WW_OK)
        return status;
    struct MHD_OptionItem options[] = {{MHD_OPTION_LISTEN_SOCKET, listening, NULL},
                                       {MHD_OPTION_THREAD_POOL_SIZE, config->http_threads, NULL},
                                       {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)connections_possible(config->connections), NULL},
                                       {MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_SECONDS, NULL},
                                       {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_HEADER_BYTES, NULL},
                                       {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
                                       {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)completed, s},
                                       {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)connected, s},
                                       {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)keep_escapes, NULL},
                                       {MHD_OPTION_END, 0, NULL}};
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | (tls ? MHD_USE_TLS : 0);
    if (tls && MHD_is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK2) != MHD_YES)
        status = ww_fail(WW_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    if (status == WW_OK)
        s->daemon = MHD_start_daemon(flags, 0, accept_connection, s, handle, s, MHD_OPTION_ARRAY, options,
                                     tls ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END, tls_certificate_callback(),
                                     MHD_OPTION_END);
    if (s->daemon)
        return WW_OK;
    close(listening);
    return status != WW_OK ? status : ww_fail(WW_IO_ERROR, "the HTTP library could not be started");
}
