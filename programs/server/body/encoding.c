/* Compressed bodies. What they stand for is limited like a body that is not compressed, so a small one cannot become a large
 * one. */
#include "server/body/encoding.h"

#include <string.h>
#include <strings.h>
#include <zstd.h>

#include "base/memory.h"
#include "server/body/gunzip.h"
#include "server/state.h"

/* Appends what a body that zstd has compressed stands for; returns as gunzip() does. */
static int read_zstd(const void *bytes, size_t length, size_t bytes_max, out *to)
{
    ZSTD_DStream *reader = ZSTD_createDStream();
    ZSTD_inBuffer from = {bytes, length, 0};
    char piece[1 << 14];
    size_t left = 1; /* 0: a frame is complete */
    int status = reader ? 200 : 507;
    while (status == 200 && (from.pos < from.size || left != 0)) {
        ZSTD_outBuffer made = {piece, sizeof piece, 0};
        const size_t before = from.pos;
        left = ZSTD_decompressStream(reader, &made, &from);
        if (ZSTD_isError(left) || (left != 0 && from.pos == before && made.pos == 0))
            status = 400;
        else if (to->length + made.pos > bytes_max)
            status = 413;
        else
            out_bytes(to, piece, made.pos);
        if (to->failed)
            status = 507;
    }
    ZSTD_freeDStream(reader);
    return status;
}

bool encoding_is_known(const char *name)
{
    return !name || strcasecmp(name, "identity") == 0 || strcasecmp(name, "gzip") == 0 || strcasecmp(name, "zstd") == 0;
}

/* Puts the text in the body's place; all bodies together keep their limit. */
static bool replace_body(request *r, const out *made)
{
    server *s = r->server;
    const long long more = (long long)made->capacity - (long long)r->body_capacity;
    if (atomic_fetch_add(&s->body_bytes, more) + more > s->config.all_bodies_bytes) {
        atomic_fetch_sub(&s->body_bytes, more);
        return request_fail(r, 503, "the bodies of all requests together take more than --body-memory; try again");
    }
    memory_free(r->body);
    r->body = made->bytes;
    r->body_length = made->length;
    r->body_capacity = made->capacity;
    return true;
}

bool encoding_read(request *r)
{
    const char *name = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "content-encoding");
    const size_t bytes_max = (size_t)r->server->config.body_bytes;
    if (!name || strcasecmp(name, "identity") == 0 || r->body_length == 0)
        return true;
    out made = {0};
    const int status = strcasecmp(name, "gzip") == 0 ? gunzip(r->body, r->body_length, bytes_max, &made)
                                                     : read_zstd(r->body, r->body_length, bytes_max, &made);
    out_bytes(&made, "", 0); /* an empty body is a text, too */
    if (status == 200 && !made.failed && replace_body(r, &made))
        return true;
    out_free(&made);
    if (r->status == 503)
        return false;
    return status == 413   ? request_fail(r, 413, "the body is too large: the maximum is %zu bytes", bytes_max)
           : status == 400 ? request_fail(r, 400, "the body is not what Content-Encoding says: it is no %s", name)
                           : request_fail(r, 507, "no memory for the body");
}
