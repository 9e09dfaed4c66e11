/* Compressed bodies. What a request's body stands for is limited like a body that is not compressed, so a small one cannot
 * become a large one. An answer is compressed by the worker that made it: what the threads that read connections compress is
 * small. */
#include "server/body/encoding.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zstd.h>

#include "base/memory.h"
#include "server/body/gzip.h"
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
           : status == 400 ? request_fail(r, 400, "the body is not valid %s, as its Content-Encoding says", name)
                           : request_fail(r, 507, "no memory for the body");
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

enum { ANSWER_BYTES_MIN = 1024, FED_BYTES = 1 << 18 };

static bool goes_on(const void *user)
{
    return !atomic_load(&((const request *)user)->gone);
}

/* As gzip(). */
static bool write_zstd(const void *bytes, size_t length, const void *user, out *to)
{
    ZSTD_CCtx *writer = ZSTD_createCCtx();
    char piece[1 << 14];
    ZSTD_inBuffer from = {bytes, 0, 0};
    bool good = writer != NULL;
    for (bool ended = false; good && !ended;) {
        ZSTD_outBuffer made = {piece, sizeof piece, 0};
        if (from.pos == from.size && from.size < length) {
            from.size = length - from.size < FED_BYTES ? length : from.size + FED_BYTES;
            good = goes_on(user);
        }
        const size_t left = ZSTD_compressStream2(writer, &made, &from, from.size == length ? ZSTD_e_end : ZSTD_e_continue);
        out_bytes(to, piece, made.pos);
        ended = from.size == length && left == 0;
        good = good && !ZSTD_isError(left) && !to->failed;
    }
    ZSTD_freeCCtx(writer);
    return good;
}

/* The weight of an encoding in "gzip, zstd;q=0.5, *;q=0", from 0 to 1000; -1: it is not named. */
static int weight_of(const char *header, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = header; *at != '\0'; at += *at == ',') {
        at += strspn(at, " \t");
        const size_t item = strcspn(at, ","), word = strcspn(at, " \t;,");
        const char *weight = memchr(at, '=', item);
        if (word == length && strncasecmp(at, name, length) == 0) {
            const double value = weight ? strtod(weight + 1, NULL) : 1;
            return value >= 0 && value <= 1 ? (int)(1000 * value) : 0;
        }
        at += item;
    }
    return -1;
}

const char *encoding_accepted(const char *header)
{
    if (!header)
        return NULL;
    const int any = weight_of(header, "*"), own[2] = {weight_of(header, "zstd"), weight_of(header, "gzip")};
    const int zstd = own[0] >= 0 ? own[0] : any, gzipped = own[1] >= 0 ? own[1] : any;
    return zstd > 0 && zstd >= gzipped ? "zstd" : gzipped > 0 ? "gzip" : NULL;
}

void encoding_write(request *r)
{
    const char *name = r->accepted;
    out packed = {0};
    r->accepted = NULL; /* once is enough */
    if (!name || r->stream || r->answer.failed || r->answer.length < ANSWER_BYTES_MIN)
        return;
    const bool good = strcmp(name, "gzip") == 0 ? gzip(r->answer.bytes, r->answer.length, goes_on, r, &packed)
                                                : write_zstd(r->answer.bytes, r->answer.length, r, &packed);
    if (good && packed.length < r->answer.length) {
        out_free(&r->answer);
        r->answer = packed;
        r->encoding = name;
    } else {
        out_free(&packed);
    }
}
