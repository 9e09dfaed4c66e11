/* Draws points as a picture. An SVG has one path of dots per colour, and the legend. A PNG is drawn dot by dot with a palette
 * and compressed by runs: most of it is background. */
#include "warpwave/store/picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    SIDE = 1600, /* pixels */
    MARGIN = 24,
    LEGEND = 420, /* width of the SVG's legend */
    BACKGROUND = PICTURE_CLASSES,
    RUN_MAX = 258
};

static const uint32_t COLOURS[2][PICTURE_CLASSES + 1] = {{0xa0a4a8, 0x1f6fb4, 0xe8590c, 0x2b8a3e, 0xc2255c, 0x6741d9, 0xf0b429,
                                                          0x0b7285, 0x8d5524, 0xe599f7, 0x74b816, 0x364fc7, 0xffffff},
                                                         {0xa0a4a8, 0x2c1a6b, 0x4b2a85, 0x6c3a92, 0x8c4a97, 0xac5b94, 0xc96d8a,
                                                          0xe1827a, 0xf09b67, 0xf8b656, 0xfad24b, 0xf5ee5a, 0xffffff}};

uint32_t picture_colour(const picture *p, int which)
{
    return COLOURS[p->ordered][which];
}

static int class_of(const picture *p, int64_t i)
{
    return p->classes ? p->classes[i] : 1;
}

static double radius_of(const picture *p)
{
    return p->count > 50000 ? 1.0 : p->count > 5000 ? 2.0 : 4.0;
}

/* Maps points to the picture: the same scale in both directions, y upwards. */
typedef struct frame {
    double left, top, scale;
} frame;

static frame frame_of(const picture *p)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < 2 * p->count; i++) {
        low[i % 2] = fmin(low[i % 2], (double)p->points[i]);
        high[i % 2] = fmax(high[i % 2], (double)p->points[i]);
    }
    const double extent = p->count > 0 ? fmax(high[0] - low[0], high[1] - low[1]) : 0.0;
    frame f = {.scale = extent > 0.0 ? (SIDE - 2.0 * MARGIN) / extent : 0.0};
    f.left = p->count > 0 ? (low[0] + high[0]) / 2.0 : 0.0;
    f.top = p->count > 0 ? (low[1] + high[1]) / 2.0 : 0.0;
    return f;
}

static double place_x(const frame *f, const picture *p, int64_t i)
{
    return SIDE / 2.0 + ((double)p->points[2 * i] - f->left) * f->scale;
}

static double place_y(const frame *f, const picture *p, int64_t i)
{
    return SIDE / 2.0 - ((double)p->points[2 * i + 1] - f->top) * f->scale;
}

/* ---- SVG ------------------------------------------------------------------------------------------------------------------
 */

/* Text from a payload: escapes what XML would interpret, and replaces control characters by spaces. */
static void put_text(FILE *to, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&' || *c == '"' || *c == '\'')
            fprintf(to, "&#%d;", *c);
        else
            putc(*c < 0x20 || *c == 0x7f ? ' ' : *c, to);
    }
}

static void put_legend(const picture *p, FILE *to)
{
    int line = 0;
    fprintf(to, "<g font-family=\"sans-serif\" font-size=\"26\"><text x=\"%d\" y=\"40\" font-weight=\"bold\">", SIDE + 10);
    put_text(to, p->title);
    fputs("</text>\n", to);
    for (int n = 1; n <= PICTURE_CLASSES; n++) {
        const int which = n % PICTURE_CLASSES; /* class 0 is listed last */
        if (p->legend[which].count == 0)
            continue;
        const int y = 80 + 38 * line++;
        fprintf(to, "<circle cx=\"%d\" cy=\"%d\" r=\"11\" fill=\"#%06x\"/><text x=\"%d\" y=\"%d\">", SIDE + 20, y - 9,
                picture_colour(p, which), SIDE + 42, y);
        put_text(to, p->legend[which].label);
        fprintf(to, " (%lld)</text>\n", (long long)p->legend[which].count);
    }
    fputs("</g>\n", to);
}

static void put_points(const picture *p, FILE *to)
{
    const frame f = frame_of(p);
    for (int which = 0; which < PICTURE_CLASSES; which++) {
        bool begun = false;
        for (int64_t i = 0; i < p->count; i++) {
            if (class_of(p, i) != which)
                continue;
            if (!begun)
                fprintf(to,
                        "<path fill=\"none\" stroke=\"#%06x\" stroke-width=\"%g\" stroke-linecap=\"round\" "
                        "stroke-opacity=\"0.7\" d=\"",
                        picture_colour(p, which), 2.0 * radius_of(p));
            begun = true;
            fprintf(to, "M%.1f %.1fh0", place_x(&f, p, i), place_y(&f, p, i));
        }
        if (begun)
            fputs("\"/>\n", to);
    }
}

ww_status picture_write_svg(const picture *p, output *to)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory)
        return memory_failed("a picture", 0);
    const int width = p->title ? SIDE + LEGEND : SIDE;
    fprintf(memory,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            width, SIDE, width, SIDE);
    put_points(p, memory);
    if (p->title)
        put_legend(p, memory);
    fputs("</svg>\n", memory);
    const bool lost = fclose(memory) != 0;
    const ww_status status = lost ? memory_failed("a picture", length) : output_write(to, text, length);
    free(text);
    return status;
}

/* ---- PNG ------------------------------------------------------------------------------------------------------------------
 */

static void draw(const picture *p, uint8_t *pixels)
{
    const frame f = frame_of(p);
    const double radius = radius_of(p);
    const int reach = (int)radius;
    for (int64_t i = 0; i < p->count; i++) {
        const int x = (int)place_x(&f, p, i), y = (int)place_y(&f, p, i);
        for (int dy = -reach; dy <= reach; dy++)
            for (int dx = -reach; dx <= reach; dx++)
                if (dx * dx + dy * dy <= (int)(radius * radius) && x + dx >= 0 && x + dx < SIDE && y + dy >= 0 && y + dy < SIDE)
                    pixels[(int64_t)(y + dy) * (SIDE + 1) + 1 + x + dx] = (uint8_t)class_of(p, i);
    }
}

/* Deflate's fixed codes: a literal, or a run that repeats the last byte. */
typedef struct packer {
    uint8_t *bytes;
    size_t count;
    uint32_t bits;
    int bit_count;
} packer;

static void put_bits(packer *k, uint32_t value, int count)
{
    k->bits |= value << k->bit_count;
    k->bit_count += count;
    while (k->bit_count >= 8) {
        k->bytes[k->count++] = (uint8_t)k->bits;
        k->bits >>= 8;
        k->bit_count -= 8;
    }
}

/* Codes are written from their highest bit down. */
static void put_code(packer *k, uint32_t code, int count)
{
    for (int i = count - 1; i >= 0; i--)
        put_bits(k, code >> i & 1, 1);
}

static void put_symbol(packer *k, uint32_t symbol)
{
    if (symbol < 144)
        put_code(k, 0x30 + symbol, 8);
    else if (symbol < 256)
        put_code(k, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(k, symbol - 256, 7);
    else
        put_code(k, 0xc0 + symbol - 280, 8);
}

/* `length` is 3 to RUN_MAX. From symbol 265 on, four symbols each have the same number of extra bits. */
static void put_run(packer *k, uint32_t length)
{
    uint32_t symbol = 285, extra = 0, base = RUN_MAX;
    if (length < RUN_MAX) {
        symbol = 257;
        base = 3;
        while (length >= base + (1u << extra)) {
            base += 1u << extra;
            symbol++;
            extra = symbol < 265 ? 0 : (symbol - 261) / 4;
        }
    }
    put_symbol(k, symbol);
    if (length < RUN_MAX)
        put_bits(k, length - base, (int)extra);
    put_code(k, 0, 5); /* distance 1 */
}

static uint32_t checksum_adler(const uint8_t *bytes, size_t count)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < count; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static uint32_t checksum_crc(uint32_t crc, const uint8_t *bytes, size_t count)
{
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void big_endian(uint8_t to[4], uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void pack(packer *k, const uint8_t *bytes, size_t count)
{
    k->bytes[k->count++] = 0x78; /* zlib header: window of 32 KiB, no preset dictionary */
    k->bytes[k->count++] = 0x01;
    put_bits(k, 3, 3); /* last block, fixed codes */
    for (size_t i = 0; i < count;) {
        size_t run = 0;
        while (i > 0 && i + run < count && run < RUN_MAX && bytes[i + run] == bytes[i - 1])
            run++;
        if (run >= 3)
            put_run(k, (uint32_t)run);
        else
            put_symbol(k, bytes[i]);
        i += run >= 3 ? run : 1;
    }
    put_symbol(k, 256);
    put_bits(k, 0, 7); /* pads the last byte */
    big_endian(k->bytes + k->count, checksum_adler(bytes, count));
    k->count += 4;
}

static ww_status write_chunk(output *to, const char *name, const uint8_t *bytes, size_t count)
{
    uint8_t head[8], tail[4];
    big_endian(head, (uint32_t)count);
    memcpy(head + 4, name, 4);
    big_endian(tail, checksum_crc(checksum_crc(0, head + 4, 4), bytes, count));
    ww_status status = output_write(to, head, sizeof head);
    if (status == WW_OK && count > 0)
        status = output_write(to, bytes, count);
    return status == WW_OK ? output_write(to, tail, sizeof tail) : status;
}

static ww_status write_chunks(output *to, const picture *p, const packer *k)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t header[13] = {[8] = 8, [9] = 3}; /* 8 bits per pixel, palette */
    uint8_t palette[3 * (PICTURE_CLASSES + 1)];
    big_endian(header, SIDE);
    big_endian(header + 4, SIDE);
    for (int i = 0; i < 3 * (PICTURE_CLASSES + 1); i++)
        palette[i] = (uint8_t)(picture_colour(p, i / 3) >> (16 - 8 * (i % 3)));
    ww_status status = output_write(to, signature, sizeof signature);
    if (status == WW_OK)
        status = write_chunk(to, "IHDR", header, sizeof header);
    if (status == WW_OK)
        status = write_chunk(to, "PLTE", palette, sizeof palette);
    if (status == WW_OK)
        status = write_chunk(to, "IDAT", k->bytes, k->count);
    return status == WW_OK ? write_chunk(to, "IEND", NULL, 0) : status;
}

ww_status picture_write_png(const picture *p, output *to)
{
    const size_t count = (size_t)SIDE * (SIDE + 1); /* each line starts with its filter: none */
    uint8_t *pixels = memory_alloc(count);
    packer k = {.bytes = memory_alloc(count + count / 8 + 64)}; /* a literal takes at most 9 bits */
    ww_status status = pixels && k.bytes ? WW_OK : memory_failed("a picture", 2 * count);
    if (status == WW_OK) {
        memset(pixels, BACKGROUND, count);
        for (size_t line = 0; line < SIDE; line++)
            pixels[line * (SIDE + 1)] = 0;
        draw(p, pixels);
        pack(&k, pixels, count);
        status = write_chunks(to, p, &k);
    }
    memory_free(k.bytes);
    memory_free(pixels);
    return status;
}
