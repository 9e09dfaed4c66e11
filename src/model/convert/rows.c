/* Copies the rows of a tensor from the folder to the file, piece by piece; the device converts them. */
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "model/convert/conversion.h"

enum { PIECE_BYTES = 16 << 20, CODED_BLOCK = 32, CODED_BYTES = 16 }; /* of floats; elements and bytes of a block of mxfp4 */

/* Buffers for a piece: floats, or codes and scales as in the folder; and blocks of either type, at twice the size of the
 * floats, so that every other row can be read together with the rows in between. */
typedef struct piece_buffers {
    float *floats;
    char *blocks;
} piece_buffers;

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* The source of a row of the written file: within a head, row 2i + j was row j * half + i. */
static int64_t source_row(const converted *t, int64_t row)
{
    const int64_t size = t->rows / t->heads, within = row % size;
    return row - within + within % 2 * (size / 2) + within / 2;
}

static ww_status read_permuted(const conversion *c, const converted *t, int64_t first, int64_t count, char *to)
{
    const int64_t row_bytes = t->cols * (t->from == WW_QUANT_F32 ? 4 : 2);
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = ww_safetensors_read(c->folder.files[t->one.file], t->one.index, source_row(t, first + i) * row_bytes,
                                     to + i * row_bytes, (size_t)row_bytes);
    return status;
}

/* Rows of one tensor of the folder. */
typedef struct row_read {
    tensor_source source;
    int64_t row_bytes, first, count;
    char *to; /* also has room for the unwanted rows in between */
} row_read;

/* Reads the rows, and moves the wanted ones together. */
static ww_status read_source(const conversion *c, const converted *t, const row_read *r)
{
    const ww_status status = ww_safetensors_read(c->folder.files[r->source.file], r->source.index,
                                                 (r->first * t->every + t->skipped_rows) * r->row_bytes, r->to,
                                                 (size_t)(r->count * t->every * r->row_bytes));
    for (int64_t i = 0; status == WW_OK && t->every > 1 && i < r->count; i++)
        memmove(r->to + i * r->row_bytes, r->to + (i * t->every + t->first) * r->row_bytes, (size_t)r->row_bytes);
    return status;
}

/* Packs codes and scales into blocks: a byte has elements 2i and 2i + 1 in the folder, elements i and i + 16 in GGUF. */
static void pack_blocks(const unsigned char *codes, const unsigned char *scales, int64_t blocks, unsigned char *to)
{
    for (int64_t b = 0; b < blocks; b++, codes += CODED_BYTES) {
        *to++ = scales[b];
        for (int i = 0; i < CODED_BYTES; i++) {
            const int shift = i % 2 * 4;
            const unsigned low = codes[i / 2] >> shift & 15U, high = codes[(i + CODED_BYTES) / 2] >> shift & 15U;
            *to++ = (unsigned char)(low | high << 4);
        }
    }
}

static ww_status read_codes(const conversion *c, const converted *t, int64_t first, int64_t count, const piece_buffers *b)
{
    const int64_t blocks = t->cols / CODED_BLOCK;
    char *codes = (char *)b->floats, *scales = codes + count * t->every * blocks * CODED_BYTES;
    ww_status status = read_source(c, t, &(row_read){t->one, blocks * CODED_BYTES, first, count, codes});
    if (status == WW_OK)
        status = read_source(c, t, &(row_read){t->scales, blocks, first, count, scales});
    if (status == WW_OK)
        pack_blocks((const unsigned char *)codes, (const unsigned char *)scales, count * blocks, (unsigned char *)b->blocks);
    return status;
}

/* Reads rows as blocks of t->from. */
static ww_status read_rows(const conversion *c, const converted *t, int64_t first, int64_t count, const piece_buffers *b)
{
    const int64_t row_bytes = t->cols * (t->from == WW_QUANT_F32 ? 4 : 2), each = t->rows / t->expert_count;
    ww_status status = WW_OK;
    if (t->from == WW_QUANT_MXFP4)
        return read_codes(c, t, first, count, b);
    if (t->heads > 0)
        return read_permuted(c, t, first, count, b->blocks);
    for (int64_t done = 0, now; status == WW_OK && done < count; done += now) {
        const int64_t expert = (first + done) / each, within = (first + done) % each;
        now = min_i64(count - done, each - within);
        const row_read read = {t->experts ? t->experts[expert] : t->one, row_bytes, within, now, b->blocks + done * row_bytes};
        status = read_source(c, t, &read);
    }
    return status;
}

/* ---- coding and writing -------------------------------------------------------------------------------------------------- */

/* Converts blocks of one type to another, on the device. */
static ww_status code_rows(const conversion *c, const converted *t, int64_t rows, const piece_buffers *b, size_t *bytes)
{
    const ww_quant_type to = (ww_quant_type)t->tensor.type;
    int64_t row_bytes = 0;
    ww_quant *q = NULL;
    ww_status status = ww_quant_row_bytes(t->from, t->cols, &row_bytes);
    *bytes = (size_t)(rows * row_bytes);
    if (status != WW_OK || to == t->from)
        return status;
    status = ww_quant_load(c->job->device, t->from, b->blocks, *bytes, rows, t->cols, &q);
    if (status == WW_OK)
        status = ww_quant_read_f32(q, 0, rows, b->floats);
    ww_quant_destroy(q);
    q = NULL;
    if (status == WW_OK)
        status = ww_quant_row_bytes(to, t->cols, &row_bytes);
    *bytes = (size_t)(rows * row_bytes);
    if (status == WW_OK)
        status = ww_quant_from_f32(c->job->device, to, b->floats, rows, t->cols, 0, &q);
    if (status == WW_OK)
        status = ww_quant_read_blocks(q, 0, rows, b->blocks);
    ww_quant_destroy(q);
    return status;
}

static ww_status tell(conversion *c, int64_t bytes)
{
    c->done_bytes += bytes;
    if (progress_tell(c->job->progress, c->job->progress_user, c->done_bytes, c->report.bytes_before))
        return ww_fail(WW_CANCELLED, "converting was cancelled");
    return WW_OK;
}

static void add_one(char *number)
{
    float x;
    memcpy(&x, number, sizeof x);
    x += 1.0f;
    memcpy(number, &x, sizeof x);
}

ww_status tensor_write(conversion *c, const converted *t)
{
    const int64_t piece = min_i64(PIECE_BYTES / (t->cols * (int64_t)sizeof(float)) + 1, t->rows);
    const size_t room = (size_t)(piece * t->cols) * sizeof(float);
    piece_buffers b = {.floats = memory_alloc(room), .blocks = memory_alloc(2 * room)};
    int64_t from_bytes = 0;
    ww_status status = b.floats && b.blocks ? ww_quant_row_bytes(t->from, t->cols, &from_bytes)
                                            : memory_failed("converting a tensor", 3 * room);
    for (int64_t done = 0; status == WW_OK && done < t->rows; done += piece) {
        const int64_t now = min_i64(t->rows - done, piece);
        size_t bytes = 0;
        status = read_rows(c, t, done, now, &b);
        if (status == WW_OK)
            status = code_rows(c, t, now, &b, &bytes);
        for (int64_t i = 0; t->adds_one && status == WW_OK && i < now * t->cols; i++)
            add_one(b.blocks + i * (int64_t)sizeof(float)); /* norms become f32 */
        if (status == WW_OK)
            status = ww_gguf_writer_data(c->out, b.blocks, bytes);
        c->report.bytes_after += (int64_t)bytes;
        if (status == WW_OK)
            status = tell(c, now * from_bytes);
    }
    memory_free(b.floats);
    memory_free(b.blocks);
    return status;
}
