/* gzip by zlib, a piece at a time: neither direction needs more memory than its result and a window. */
#include "server/body/gzip.h"

#include <limits.h>
#include <zlib.h>

#include "base/memory.h"

enum { GZIP_BITS = 15 + 16, PIECE_BYTES = 1 << 14, FED_BYTES = 1 << 18 };

static void *take_memory(void *user, unsigned count, unsigned bytes)
{
    (void)user;
    return memory_alloc_zeroed(count, bytes);
}

static void give_memory(void *user, void *memory)
{
    (void)user;
    memory_free(memory);
}

/* Feeds the next bytes if the last ones are used up: zlib counts in 32 bits. */
static void feed(z_stream *z, const unsigned char **at, size_t *left)
{
    const size_t count = *left < FED_BYTES ? *left : FED_BYTES;
    if (z->avail_in > 0)
        return;
    z->next_in = (Bytef *)*at; /* zlib does not write there */
    z->avail_in = (uInt)count;
    *at += count;
    *left -= count;
}

int gunzip(const void *bytes, size_t length, size_t bytes_max, out *to)
{
    z_stream z = {.zalloc = take_memory, .zfree = give_memory};
    const unsigned char *at = bytes;
    unsigned char piece[PIECE_BYTES];
    const size_t first = to->length;
    int status = inflateInit2(&z, GZIP_BITS) == Z_OK ? 200 : 507;
    for (bool ended = false; status == 200 && !ended;) {
        feed(&z, &at, &length);
        z.next_out = piece;
        z.avail_out = PIECE_BYTES;
        const int result = inflate(&z, Z_NO_FLUSH);
        const size_t made = PIECE_BYTES - z.avail_out;
        ended = result == Z_STREAM_END && z.avail_in == 0 && length == 0;
        if (result == Z_MEM_ERROR)
            status = 507;
        else if (to->length - first + made > bytes_max)
            status = 413;
        else if ((result != Z_OK && result != Z_STREAM_END) || (result == Z_STREAM_END && !ended && inflateReset(&z) != Z_OK))
            status = 400; /* Z_BUF_ERROR: the end is missing */
        else
            out_bytes(to, (const char *)piece, made);
        status = status == 200 && to->failed ? 507 : status;
    }
    inflateEnd(&z);
    return status;
}

bool gzip(const void *bytes, size_t length, bool (*goes_on)(const void *user), const void *user, out *to)
{
    z_stream z = {.zalloc = take_memory, .zfree = give_memory};
    const unsigned char *at = bytes;
    unsigned char piece[PIECE_BYTES];
    bool good = deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    for (bool ended = false; good && !ended;) {
        if (z.avail_in == 0)
            good = goes_on(user);
        feed(&z, &at, &length);
        z.next_out = piece;
        z.avail_out = PIECE_BYTES;
        const int result = deflate(&z, length > 0 ? Z_NO_FLUSH : Z_FINISH);
        ended = result == Z_STREAM_END;
        out_bytes(to, (const char *)piece, PIECE_BYTES - z.avail_out);
        good = good && result >= 0 && !to->failed;
    }
    deflateEnd(&z);
    return good;
}
