/* Unpacking .xz files: a header, one block of chunks (LZMA2), the CRC of the content; the index behind it is not needed. */
#include "base/unpack.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/lzma.h"
#include "base/memory.h"

enum {
    HEADER_BYTES = 12,
    CRC_BYTES = 4,
    FILTER_LZMA2 = 0x21,
    CHUNK_END = 0,
    CHUNK_PLAIN_FIRST = 1, /* begins anew, as the first chunk must */
    CHUNK_PLAIN = 2,
    CHUNK_PACKED = 0x80, /* with five bits of the size, and in two more what is set back */
    RESET_STATE = 1,
    RESET_PROPERTIES = 2,
    RESET_ALL = 3
};

typedef struct reader {
    const uint8_t *next, *end;
} reader;

typedef struct chunk {
    bool last, packed, first;
    int reset;
    uint8_t properties;
    const uint8_t *data;
    size_t data_bytes, bytes;
} chunk;

static size_t left(const reader *from)
{
    return (size_t)(from->end - from->next);
}

static uint32_t take_byte(reader *from)
{
    return from->next < from->end ? *from->next++ : 0;
}

static uint32_t take_size(reader *from) /* less 1, the high byte first */
{
    const uint32_t high = take_byte(from);
    return (high << 8 | take_byte(from)) + 1;
}

/* Sizes that a block's header may have; they are not needed. */
static void skip_number(reader *from)
{
    while ((take_byte(from) & 0x80) != 0 && left(from) > 0) {
    }
}

/* Goes behind the header of the block, if it is one that we packed. */
static bool skip_block_header(reader *from)
{
    if (left(from) == 0)
        return false;
    const size_t bytes = ((size_t)from->next[0] + 1) * 4;
    if (bytes > left(from))
        return false;
    reader header = {from->next + 1, from->next + bytes};
    const uint32_t flags = take_byte(&header);
    if ((flags & 0x40) != 0)
        skip_number(&header);
    if ((flags & 0x80) != 0)
        skip_number(&header);
    from->next += bytes;
    return (flags & 0x3f) == 0 && take_byte(&header) == FILTER_LZMA2 && take_byte(&header) == 1;
}

static bool take_chunk(reader *from, chunk *out)
{
    if (left(from) == 0)
        return false;
    const uint32_t control = take_byte(from);
    *out = (chunk){.last = control == CHUNK_END,
                   .packed = control >= CHUNK_PACKED,
                   .first = control == CHUNK_PLAIN_FIRST || control >> 5 == (CHUNK_PACKED >> 5 | RESET_ALL)};
    if (out->last)
        return true;
    if (!out->packed) {
        out->bytes = out->data_bytes = take_size(from);
    } else {
        out->reset = (int)(control >> 5 & 3);
        out->bytes = ((size_t)(control & 0x1f) << 16) + take_size(from);
        out->data_bytes = take_size(from);
        if (out->reset >= RESET_PROPERTIES)
            out->properties = (uint8_t)take_byte(from);
    }
    out->data = from->next;
    if ((!out->packed && control > CHUNK_PLAIN) || out->data_bytes > left(from))
        return false;
    from->next += out->data_bytes;
    return true;
}

/* How long the content is, by the chunks' own word; leaves `from` behind them. Only the first begins anew. */
static bool measure(reader *from, size_t *bytes)
{
    chunk c = {0};
    *bytes = 0;
    for (bool first = true;; first = false) {
        if (!take_chunk(from, &c))
            return false;
        if (c.last)
            return true;
        if (c.first != first)
            return false;
        *bytes += c.bytes;
    }
}

static bool unpack_chunks(reader from, lzma_decoder *decoder)
{
    chunk c = {0};
    while (take_chunk(&from, &c) && !c.last) {
        if (!c.packed) {
            if (!lzma_copy(decoder, c.data, c.bytes))
                return false;
            continue;
        }
        if (c.reset == RESET_STATE)
            lzma_reset(decoder);
        else if (c.reset >= RESET_PROPERTIES && !lzma_set_properties(decoder, c.properties))
            return false;
        if (!lzma_decode(decoder, c.data, c.data_bytes, c.bytes))
            return false;
    }
    return c.last;
}

/* The CRC of Ethernet, four bits at a time. */
static uint32_t crc_of(const uint8_t *bytes, size_t count)
{
    static const uint32_t of_four_bits[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                              0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                              0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ of_four_bits[crc & 15];
        crc = crc >> 4 ^ of_four_bits[crc & 15];
    }
    return ~crc;
}

/* Behind the chunks: zeros up to a multiple of four bytes, then the CRC, the lowest byte first. */
static bool crc_agrees(reader from, const uint8_t *begin, const uint8_t *content, size_t bytes)
{
    uint32_t stated = 0;
    while ((from.next - begin) % 4 != 0)
        if (left(&from) == 0 || take_byte(&from) != 0)
            return false;
    if (left(&from) < CRC_BYTES)
        return false;
    for (int i = 0; i < CRC_BYTES; i++)
        stated |= take_byte(&from) << 8 * i;
    return stated == crc_of(content, bytes);
}

static ww_status damaged(const char *what, const char *how)
{
    return ww_fail(WW_CORRUPT_FILE, "%s is damaged: %s; install the library again", what, how);
}

ww_status unpack_xz(const char *what, const void *packed, size_t packed_bytes, char **content, size_t *bytes)
{
    static const uint8_t beginning[] = {0xfd, '7', 'z', 'X', 'Z', 0, 0, 1}; /* the last: there is a CRC-32 */
    const uint8_t *begin = packed;
    reader chunks = {begin, begin + packed_bytes};
    if (packed_bytes < HEADER_BYTES || memcmp(begin, beginning, sizeof beginning) != 0)
        return damaged(what, "it does not begin as xz writes it");
    chunks.next += HEADER_BYTES;
    size_t size = 0;
    bool known = skip_block_header(&chunks);
    reader behind = chunks;
    known = known && measure(&behind, &size);
    if (!known)
        return damaged(what, "its parts are not those that xz writes");
    lzma_decoder *decoder = memory_take(lzma_decoder_bytes());
    uint8_t *made = memory_take(size + 1);
    ww_status status = WW_OK;
    if (decoder == NULL || made == NULL) {
        status = memory_failed(what, size + 1);
    } else {
        lzma_begin(decoder, made, size);
        if (!unpack_chunks(chunks, decoder))
            status = damaged(what, "its content cannot be unpacked");
        else if (!crc_agrees(behind, begin, made, size))
            status = damaged(what, "its content is not what was packed");
    }
    memory_give(decoder);
    if (status != WW_OK) {
        memory_give(made);
        return status;
    }
    made[size] = '\0';
    *content = (char *)made;
    *bytes = size;
    return WW_OK;
}
