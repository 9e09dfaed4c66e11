/* Checks of HTTP that the library does not do. */
#ifndef WW_SERVER_HTTP_H
#define WW_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long a connection may stay without a complete request, and the maximum size of a header. */
enum { HTTP_IDLE_SECONDS = 60, HTTP_HEADER_BYTES = 64 << 10 };

/* The headers that say where a body ends. If two of them contradict each other, a request could be smuggled past a proxy. */
typedef struct http_framing {
    int lengths, encodings, hosts; /* how many headers there are */
    const char *length;
    bool chunked;
} http_framing;

/* Returns 200, or the status of the refusal and why. */
int http_framing_check(const http_framing *f, int64_t body_bytes_max, const char **why);

/* Returns 200 if the bytes may begin a request of HTTP/1, as far as there are whole lines; otherwise 400 or 505, and why. */
int http_head_check(const char *bytes, size_t count, const char **why);

#endif
