/* gzip: a header, blocks of deflate (RFC 1951), and a checksum.
 *
 * A block is stored, or literals and copies in two Huffman codes. A code is decoded bit by bit: of each length the codes are
 * consecutive, so counts of codes by length and the symbols in the order of their codes are enough.
 */
#include "server/body/gunzip.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    CODE_BITS_MAX = 15,
    LITERALS_MAX = 288, /* literals, the end of a block, lengths of copies */
    DISTANCES_MAX = 32,
    LENGTH_CODES = 19, /* of the code in which the lengths of the other two are written */
    END_OF_BLOCK = 256,
    HEADER_BYTES = 10,
    TRAILER_BYTES = 8
};

/* What is read, and where. */
typedef struct source {
    const unsigned char *at, *end;
    uint32_t bits; /* read but not used, the next one lowest */
    int bit_count;
    bool ended; /* there were fewer bytes than needed */
} source;

typedef struct sink {
    out *to;
    size_t first, bytes_max;
    bool full;
} sink;

typedef struct huffman {
    uint16_t counts[CODE_BITS_MAX + 1]; /* of codes by length */
    uint16_t symbols[LITERALS_MAX];     /* in the order of their codes */
} huffman;

static uint32_t take_bits(source *s, int count)
{
    while (s->bit_count < count && s->at < s->end) {
        s->bits |= (uint32_t)*s->at++ << s->bit_count;
        s->bit_count += 8;
    }
    s->ended = s->ended || s->bit_count < count;
    if (s->ended)
        return 0;
    const uint32_t value = s->bits & ((UINT32_C(1) << count) - 1);
    s->bits >>= count;
    s->bit_count -= count;
    return value;
}

/* Makes a code from the lengths of its symbols' codes. False: more codes than fit. */
static bool huffman_make(huffman *code, const uint8_t *lengths, int count)
{
    uint16_t starts[CODE_BITS_MAX + 2] = {0};
    int left = 1;
    memset(code->counts, 0, sizeof code->counts);
    for (int i = 0; i < count; i++)
        code->counts[lengths[i]]++;
    code->counts[0] = 0;
    for (int bits = 1; bits <= CODE_BITS_MAX; bits++) {
        left = 2 * left - code->counts[bits];
        if (left < 0)
            return false;
        starts[bits + 1] = (uint16_t)(starts[bits] + code->counts[bits]);
    }
    for (int i = 0; i < count; i++)
        if (lengths[i] > 0)
            code->symbols[starts[lengths[i]]++] = (uint16_t)i;
    return true;
}

/* Reads one symbol; -1: no code has these bits, or the end. */
static int take_symbol(source *s, const huffman *code)
{
    int value = 0, first = 0, before = 0;
    for (int bits = 1; bits <= CODE_BITS_MAX; bits++) {
        value |= (int)take_bits(s, 1);
        const int count = code->counts[bits];
        if (s->ended)
            return -1;
        if (value - first < count)
            return code->symbols[before + value - first];
        before += count;
        first = 2 * (first + count);
        value *= 2;
    }
    return -1;
}

static bool put_byte(sink *k, unsigned char byte)
{
    k->full = k->to->length - k->first >= k->bytes_max;
    if (!k->full)
        out_bytes(k->to, (const char *)&byte, 1);
    return !k->full && !k->to->failed;
}

/* Copies bytes that were written before; they may overlap. */
static bool put_copy(sink *k, size_t distance, size_t length)
{
    if (distance > k->to->length - k->first)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!put_byte(k, (unsigned char)k->to->bytes[k->to->length - distance]))
            return false;
    return true;
}

static bool read_stored(source *s, sink *k)
{
    take_bits(s, s->bit_count % 8);
    const uint32_t length = take_bits(s, 16), check = take_bits(s, 16);
    if (s->ended || length != (~check & 0xffff))
        return false;
    for (uint32_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)take_bits(s, 8);
        if (s->ended || !put_byte(k, byte))
            return false;
    }
    return true;
}

/* The base and the additional bits of the i-th kind of length or distance: groups of codes with the same number of bits. */
static int extra_bits(int i, int group)
{
    return i < 2 * group ? 0 : i / group - 1;
}

static size_t base_of(int i, int group)
{
    const int bits = extra_bits(i, group);
    return i < 2 * group ? (size_t)i : ((size_t)(group + i % group)) << bits;
}

static bool read_copy(source *s, sink *k, int symbol, const huffman *distances)
{
    const int kind = symbol - END_OF_BLOCK - 1;
    const bool longest = kind == 28;
    if (kind > 28)
        return false;
    const size_t length = longest ? 258 : 3 + base_of(kind, 4) + take_bits(s, extra_bits(kind, 4));
    const int far = take_symbol(s, distances);
    if (far < 0 || far > 29)
        return false;
    const size_t distance = 1 + base_of(far, 2) + take_bits(s, extra_bits(far, 2));
    return !s->ended && put_copy(k, distance, length);
}

static bool read_symbols(source *s, sink *k, const huffman *literals, const huffman *distances)
{
    for (;;) {
        const int symbol = take_symbol(s, literals);
        if (symbol < 0)
            return false;
        if (symbol == END_OF_BLOCK)
            return true;
        if (symbol < END_OF_BLOCK ? !put_byte(k, (unsigned char)symbol) : !read_copy(s, k, symbol, distances))
            return false;
    }
}

static bool read_fixed(source *s, sink *k)
{
    huffman literals, distances;
    uint8_t lengths[LITERALS_MAX];
    for (int i = 0; i < LITERALS_MAX; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    (void)huffman_make(&literals, lengths, LITERALS_MAX);
    memset(lengths, 5, DISTANCES_MAX);
    (void)huffman_make(&distances, lengths, DISTANCES_MAX);
    return read_symbols(s, k, &literals, &distances);
}

/* Reads the lengths of both codes, which are in a code of their own: lengths, or repetitions of the last one or of 0. */
static bool read_lengths(source *s, const huffman *code, uint8_t *lengths, int count)
{
    for (int i = 0; i < count;) {
        const int symbol = take_symbol(s, code);
        if (symbol < 0 || (symbol == 16 && i == 0))
            return false;
        const uint8_t value = symbol < 16 ? (uint8_t)symbol : symbol == 16 ? lengths[i - 1] : 0;
        int times = symbol < 16    ? 1
                    : symbol == 16 ? 3 + (int)take_bits(s, 2)
                    : symbol == 17 ? 3 + (int)take_bits(s, 3)
                                   : 11 + (int)take_bits(s, 7);
        if (s->ended || times > count - i)
            return false;
        while (times-- > 0)
            lengths[i++] = value;
    }
    return true;
}

static bool read_dynamic(source *s, sink *k)
{
    static const uint8_t ORDER[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    huffman code, distances;
    uint8_t lengths[LITERALS_MAX + DISTANCES_MAX] = {0};
    const int literal_count = 257 + (int)take_bits(s, 5), distance_count = 1 + (int)take_bits(s, 5);
    const int length_count = 4 + (int)take_bits(s, 4);
    for (int i = 0; i < length_count; i++)
        lengths[ORDER[i]] = (uint8_t)take_bits(s, 3);
    if (s->ended || literal_count > 286 || !huffman_make(&code, lengths, LENGTH_CODES) ||
        !read_lengths(s, &code, lengths, literal_count + distance_count))
        return false;
    return lengths[END_OF_BLOCK] > 0 && huffman_make(&code, lengths, literal_count) &&
           huffman_make(&distances, lengths + literal_count, distance_count) && read_symbols(s, k, &code, &distances);
}

static bool read_blocks(source *s, sink *k)
{
    for (bool last = false, good = true; !last;) {
        last = take_bits(s, 1) != 0;
        const uint32_t kind = take_bits(s, 2);
        good = !s->ended && (kind == 0 ? read_stored(s, k) : kind == 1 ? read_fixed(s, k) : kind == 2 && read_dynamic(s, k));
        if (!good)
            return false;
    }
    return true;
}

static uint32_t crc_of(const char *bytes, size_t length)
{
    uint32_t table[256], crc = UINT32_MAX;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    for (size_t i = 0; i < length; i++)
        crc = table[(crc ^ (unsigned char)bytes[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

/* Skips the header with its additional fields. */
static bool read_header(source *s)
{
    enum { HAS_CRC = 2, HAS_EXTRA = 4, HAS_NAME = 8, HAS_COMMENT = 16 };
    const unsigned char *h = s->at;
    if (s->end - s->at < HEADER_BYTES + TRAILER_BYTES || h[0] != 0x1f || h[1] != 0x8b || h[2] != 8 || (h[3] & 0xe0) != 0)
        return false;
    const int flags = h[3];
    s->at += HEADER_BYTES;
    if (flags & HAS_EXTRA) {
        const long length = s->end - s->at >= 2 ? s->at[0] | s->at[1] << 8 : 0;
        if (s->end - s->at < 2 + length)
            return false;
        s->at += 2 + length;
    }
    for (int flag = HAS_NAME; flag <= HAS_COMMENT; flag *= 2) {
        const unsigned char *nul = flags & flag && s->at < s->end ? memchr(s->at, 0, (size_t)(s->end - s->at)) : s->at - 1;
        if (!nul)
            return false;
        s->at = nul + 1;
    }
    s->at += flags & HAS_CRC ? 2 : 0;
    return s->at <= s->end;
}

static uint32_t little_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

int gunzip(const void *bytes, size_t length, size_t bytes_max, out *to)
{
    source s = {.at = bytes, .end = (const unsigned char *)bytes + length};
    sink k = {.to = to, .first = to->length, .bytes_max = bytes_max};
    const bool read = read_header(&s) && read_blocks(&s, &k);
    if (k.full)
        return 413;
    if (to->failed)
        return 507;
    s.at -= s.bit_count / 8; /* whole bytes that were taken but not used */
    const size_t made = to->length - k.first;
    const bool good = read && s.end - s.at == TRAILER_BYTES &&
                      little_endian(s.at) == crc_of(made > 0 ? to->bytes + k.first : "", made) &&
                      little_endian(s.at + 4) == (uint32_t)made;
    return good ? 200 : 400;
}
