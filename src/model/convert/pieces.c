/* tokenizer.model is a message in the format of Protocol Buffers. This reads what a tokenizer needs: field 1, once per piece (1
 * its text, 2 its score, 3 its kind); in field 2, the training, the algorithm (3) and the ids of special tokens (40 to 43); in
 * field 3 whether a space is put before a text (3). Everything else is skipped.
 */
#include "model/convert/pieces.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/source.h"
#include "base/memory.h"
#include "base/status.h"
#include "model/convert/folder.h"
#include "model/tokenizer/vocabulary.h"

enum { FILE_BYTES_MAX = 256 << 20, ALGORITHM_BPE = 2 };

/* A part of the file, read from the front. */
typedef struct span {
    const unsigned char *at, *end;
} span;

/* One field: a number, or bytes. */
typedef struct field {
    uint64_t number; /* of the field */
    uint64_t value;  /* a varint, or 4 or 8 bytes */
    span bytes;
} field;

static bool read_varint(span *s, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        const unsigned char byte = *s->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(span *s, size_t bytes, uint64_t *value)
{
    if ((size_t)(s->end - s->at) < bytes)
        return false;
    *value = 0;
    for (size_t i = 0; i < bytes; i++)
        *value |= (uint64_t)s->at[i] << (8 * i);
    s->at += bytes;
    return true;
}

/* Returns false if the bytes are not a field. */
static bool read_field(span *s, field *f)
{
    uint64_t tag = 0, length = 0;
    *f = (field){0};
    if (!read_varint(s, &tag))
        return false;
    f->number = tag >> 3;
    switch (tag & 7) {
    case 0:
        return read_varint(s, &f->value);
    case 1:
        return read_fixed(s, 8, &f->value);
    case 5:
        return read_fixed(s, 4, &f->value);
    case 2:
        if (!read_varint(s, &length) || length > (uint64_t)(s->end - s->at))
            return false;
        f->bytes = (span){s->at, s->at + length};
        s->at += length;
        return true;
    default:
        return false;
    }
}

static bool read_piece(span s, piece_text *out)
{
    field f;
    *out = (piece_text){.kind = TOKEN_NORMAL};
    while (s.at < s.end) {
        if (!read_field(&s, &f))
            return false;
        if (f.number == 1) {
            out->text = (const char *)f.bytes.at;
            out->bytes = (size_t)(f.bytes.end - f.bytes.at);
        } else if (f.number == 2) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&out->score, &bits, sizeof bits);
        } else if (f.number == 3) {
            out->kind = f.value >= TOKEN_NORMAL && f.value <= TOKEN_BYTE ? (int32_t)f.value : -1;
        }
    }
    return out->text != NULL && out->kind > 0 && !memchr(out->text, '\0', out->bytes);
}

static bool read_training(span s, piece_list *out)
{
    field f;
    while (s.at < s.end) {
        if (!read_field(&s, &f))
            return false;
        const int64_t id = (int64_t)(int32_t)f.value; /* none is -1 */
        if (f.number == 3)
            out->bpe = f.value == ALGORITHM_BPE;
        else if (f.number == 40)
            out->unknown = id;
        else if (f.number == 41)
            out->bos = id;
        else if (f.number == 42)
            out->eos = id;
        else if (f.number == 43)
            out->padding = id;
    }
    return true;
}

static bool read_normalizer(span s, piece_list *out)
{
    field f;
    while (s.at < s.end) {
        if (!read_field(&s, &f))
            return false;
        if (f.number == 3)
            out->space_prefix = f.value != 0;
    }
    return true;
}

/* Counts the pieces, or reads everything if there is room for them. */
static bool read_message(piece_list *out)
{
    span s = {(const unsigned char *)out->file, (const unsigned char *)out->file + out->file_bytes};
    field f;
    out->count = 0;
    while (s.at < s.end) {
        bool good = read_field(&s, &f);
        if (good && f.number == 1 && out->pieces)
            good = read_piece(f.bytes, &out->pieces[out->count]);
        else if (good && f.number == 2)
            good = read_training(f.bytes, out);
        else if (good && f.number == 3)
            good = read_normalizer(f.bytes, out);
        if (!good)
            return false;
        out->count += f.number == 1;
    }
    return out->count > 0;
}

static ww_status read_file(const char *path, piece_list *out)
{
    file_source file;
    ww_status status = source_open(&file, path);
    if (status != WW_OK)
        return status;
    if (file.size <= 0 || file.size > FILE_BYTES_MAX)
        status = ww_fail(WW_CORRUPT_FILE, "%s: %lld bytes are not a SentencePiece model", path, (long long)file.size);
    if (status == WW_OK) {
        out->file_bytes = (size_t)file.size;
        out->file = memory_alloc(out->file_bytes);
        status = out->file ? source_read(&file, 0, out->file, out->file_bytes) : memory_failed(path, out->file_bytes);
    }
    source_close(&file);
    return status;
}

ww_status pieces_read(const char *folder, piece_list *out)
{
    char path[FOLDER_PATH_BYTES];
    *out = (piece_list){.space_prefix = true, .unknown = 0, .bos = 1, .eos = 2, .padding = -1};
    const int length = snprintf(path, sizeof path, "%s/tokenizer.model", folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return ww_fail(WW_INVALID_ARGUMENT, "the folder's name is too long");
    if (access(path, F_OK) != 0)
        return ww_fail_errno(WW_NOT_FOUND, errno, "%s", path);
    ww_status status = read_file(path, out);
    bool good = status == WW_OK && read_message(out);
    if (good) {
        out->pieces = memory_alloc_zeroed((size_t)out->count, sizeof *out->pieces);
        if (!out->pieces)
            status = memory_failed("vocabulary", (size_t)out->count * sizeof *out->pieces);
        good = status == WW_OK && read_message(out);
    }
    if (status == WW_OK && !good)
        status = ww_fail(WW_CORRUPT_FILE, "%s: this is not a SentencePiece model", path);
    if (status != WW_OK)
        pieces_free(out);
    return status;
}

void pieces_free(piece_list *list)
{
    memory_free(list->file);
    memory_free(list->pieces);
    *list = (piece_list){0};
}
