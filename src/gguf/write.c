/* Writes GGUF files, version 3. The header is collected in memory; then the tensors' data is written to the disk, padded, and
 * the complete file replaces the target (files/output.h).
 */
#include <string.h>

#include "base/array.h"
#include "base/files/output.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "gguf/gguf.h"
#include "gguf/names.h"

/* A growing buffer of bytes. */
typedef struct text {
    unsigned char *bytes;
    size_t size, room;
} text;

struct ww_gguf_writer {
    text values, tensors; /* in the format of the file */
    gguf_names keys, names;
    int64_t value_count, tensor_count;
    int64_t *sizes; /* one per tensor */
    int64_t size_room;
    int64_t data_bytes; /* of all tensors with padding */
    output *file;       /* NULL until it is opened */
    int64_t tensor;     /* the tensor that is being written */
    int64_t written;    /* bytes of it that are written */
    bool finished;
};

static ww_status append(text *t, const void *bytes, size_t size)
{
    if (size > t->room - t->size) {
        const size_t room = 2 * t->room > t->size + size ? 2 * t->room : t->size + size + 256;
        unsigned char *larger = memory_resize(t->bytes, room);
        if (!larger)
            return memory_failed("header of a GGUF file", room);
        t->bytes = larger;
        t->room = room;
    }
    if (size > 0)
        memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    return WW_OK;
}

static ww_status append_string(text *t, const char *bytes, size_t size)
{
    const uint64_t length = size;
    const ww_status status = append(t, &length, sizeof length);
    return status == WW_OK ? append(t, bytes, size) : status;
}

static ww_status append_u32(text *t, int64_t number)
{
    const uint32_t value = (uint32_t)number;
    return append(t, &value, sizeof value);
}

static ww_status append_u64(text *t, int64_t number)
{
    return append(t, &number, sizeof number);
}

ww_status ww_gguf_writer_create(ww_gguf_writer **writer)
{
    FLOAT_GUARD();
    if (!writer)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_create: writer is NULL");
    *writer = memory_alloc_zeroed(1, sizeof **writer);
    return *writer ? WW_OK : memory_failed("GGUF writer", sizeof **writer);
}

/* ---- metadata ------------------------------------------------------------------------------------------------------------ */

/* Returns true if the data has the bytes that kind, element and count require, and bools are 0 or 1. */
static bool value_sound(const ww_gguf_value *v)
{
    const unsigned char *bytes = v->data;
    if (v->count < 0 || (!bytes && v->data_bytes > 0) || (v->kind != WW_GGUF_ARRAY && v->element != v->kind))
        return false;
    if (v->kind == WW_GGUF_STRING)
        return (uint64_t)v->count == v->data_bytes;
    if (v->kind != WW_GGUF_ARRAY && v->count != 1)
        return false;
    if (v->element == WW_GGUF_STRING) {
        size_t at = 0;
        for (int64_t i = 0; i < v->count; i++) {
            uint64_t length;
            if (v->data_bytes - at < sizeof length)
                return false;
            memcpy(&length, bytes + at, sizeof length);
            at += sizeof length;
            if (length > v->data_bytes - at)
                return false;
            at += length;
        }
        return at == v->data_bytes;
    }
    const int64_t each = gguf_kind_bytes((int64_t)v->element);
    if (each == 0 || (uint64_t)v->count != v->data_bytes / (uint64_t)each || v->data_bytes % (uint64_t)each != 0)
        return false;
    for (size_t i = 0; v->element == WW_GGUF_BOOL && i < v->data_bytes; i++)
        if (bytes[i] > 1)
            return false;
    return true;
}

static ww_status append_value(text *t, const ww_gguf_value *v)
{
    ww_status status = append_string(t, v->key, strlen(v->key));
    if (status == WW_OK)
        status = append_u32(t, (int64_t)v->kind);
    if (status == WW_OK && v->kind == WW_GGUF_ARRAY)
        status = append_u32(t, (int64_t)v->element);
    if (status == WW_OK && (v->kind == WW_GGUF_ARRAY || v->kind == WW_GGUF_STRING))
        status = append_u64(t, v->count);
    return status == WW_OK ? append(t, v->data, v->data_bytes) : status;
}

ww_status ww_gguf_writer_value(ww_gguf_writer *writer, const ww_gguf_value *value)
{
    FLOAT_GUARD();
    ww_gguf_value v;
    if (!writer)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_value: writer is NULL");
    ww_status status = struct_read(&v, sizeof v, value, "ww_gguf_writer_value", "ww_gguf_value");
    if (status != WW_OK)
        return status;
    if (!v.key)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_value: value->key is NULL");
    if (writer->file)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_value: '%.200s' was added after the file was opened for writing",
                       v.key);
    if (v.key[0] == '\0' || strlen(v.key) > GGUF_KEY_BYTES_MAX || strcmp(v.key, "general.alignment") == 0 ||
        gguf_names_have(&writer->keys, v.key))
        return ww_fail(WW_INVALID_ARGUMENT,
                       "ww_gguf_writer_value: the key '%.200s' is empty, too long, a duplicate, or reserved for the writer",
                       v.key);
    if (!ww_gguf_kind_name(v.kind) || !ww_gguf_kind_name(v.element) || v.element == WW_GGUF_ARRAY || !value_sound(&v))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_value: the data of '%.200s' does not match its kind and count",
                       v.key);
    const size_t before = writer->values.size;
    status = append_value(&writer->values, &v);
    if (status == WW_OK)
        status = gguf_names_take(&writer->keys, v.key);
    if (status == WW_OK)
        writer->value_count++;
    else
        writer->values.size = before;
    return status;
}

ww_status ww_gguf_writer_u32(ww_gguf_writer *writer, const char *key, uint32_t value)
{
    FLOAT_GUARD();
    const ww_gguf_value v = {.struct_size = sizeof v,
                             .key = key,
                             .kind = WW_GGUF_U32,
                             .element = WW_GGUF_U32,
                             .count = 1,
                             .data = &value,
                             .data_bytes = sizeof value};
    return ww_gguf_writer_value(writer, &v);
}

ww_status ww_gguf_writer_string(ww_gguf_writer *writer, const char *key, const char *string)
{
    FLOAT_GUARD();
    if (!string)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_string: text is NULL");
    const ww_gguf_value v = {.struct_size = sizeof v,
                             .key = key,
                             .kind = WW_GGUF_STRING,
                             .element = WW_GGUF_STRING,
                             .count = (int64_t)strlen(string),
                             .data = string,
                             .data_bytes = strlen(string)};
    return ww_gguf_writer_value(writer, &v);
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

static int64_t padded(int64_t bytes)
{
    return round_up_i64(bytes, GGUF_ALIGNMENT);
}

static ww_status append_tensor(ww_gguf_writer *w, const ww_gguf_tensor *t)
{
    ww_status status = append_string(&w->tensors, t->name, strlen(t->name));
    if (status == WW_OK)
        status = append_u32(&w->tensors, t->rank);
    for (int32_t i = 0; status == WW_OK && i < t->rank; i++)
        status = append_u64(&w->tensors, t->shape[i]);
    if (status == WW_OK)
        status = append_u32(&w->tensors, t->type);
    return status == WW_OK ? append_u64(&w->tensors, w->data_bytes) : status;
}

static ww_status size_room(ww_gguf_writer *w)
{
    return array_reserve(&w->sizes, &w->size_room, w->tensor_count + 1, sizeof *w->sizes, "tensors of a GGUF file");
}

ww_status ww_gguf_writer_tensor(ww_gguf_writer *writer, const ww_gguf_tensor *tensor)
{
    FLOAT_GUARD();
    ww_gguf_tensor t;
    int64_t bytes = 0;
    if (!writer)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_tensor: writer is NULL");
    ww_status status = struct_read(&t, sizeof t, tensor, "ww_gguf_writer_tensor", "ww_gguf_tensor");
    if (status != WW_OK)
        return status;
    if (!t.name)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_tensor: tensor->name is NULL");
    if (writer->file)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_tensor: '%.200s' was added after the file was opened for writing",
                       t.name);
    if (strlen(t.name) > GGUF_NAME_BYTES_MAX || gguf_names_have(&writer->names, t.name))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_tensor: the name '%.200s' is longer than %d bytes, or a duplicate",
                       t.name, GGUF_NAME_BYTES_MAX);
    const char *why = gguf_tensor_size(t.type, t.rank, t.shape, &bytes);
    if (!why && bytes == GGUF_BYTES_UNKNOWN) {
        bytes = t.bytes;
        why = bytes < 1 ? "the type is not known here, so bytes must say how long it is" : NULL;
    }
    if (why || bytes > INT64_MAX / 4 || writer->data_bytes > INT64_MAX / 4)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_tensor: '%s': %s", t.name, why ? why : "the data is too large");
    const size_t before = writer->tensors.size;
    status = size_room(writer);
    if (status == WW_OK)
        status = append_tensor(writer, &t);
    if (status == WW_OK)
        status = gguf_names_take(&writer->names, t.name);
    if (status != WW_OK) {
        writer->tensors.size = before;
        return status;
    }
    writer->sizes[writer->tensor_count++] = bytes;
    writer->data_bytes += padded(bytes);
    return WW_OK;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

static ww_status write_header(ww_gguf_writer *w, output *file)
{
    static const unsigned char zeros[GGUF_ALIGNMENT];
    const uint32_t start[2] = {GGUF_MAGIC, 3};
    const int64_t counts[2] = {w->tensor_count, w->value_count};
    const int64_t size = (int64_t)(sizeof start + sizeof counts + w->values.size + w->tensors.size);
    ww_status status = output_write(file, start, sizeof start);
    if (status == WW_OK)
        status = output_write(file, counts, sizeof counts);
    if (status == WW_OK)
        status = output_write(file, w->values.bytes, w->values.size);
    if (status == WW_OK)
        status = output_write(file, w->tensors.bytes, w->tensors.size);
    return status == WW_OK ? output_write(file, zeros, (size_t)(padded(size) - size)) : status;
}

ww_status ww_gguf_writer_open(ww_gguf_writer *writer, const char *path)
{
    FLOAT_GUARD();
    if (!writer || !path)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_open: %s is NULL", writer ? "path" : "writer");
    if (writer->file)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_open: %s: the writer already has a file", path);
    output *file = memory_alloc_zeroed(1, sizeof *file);
    if (!file)
        return memory_failed("writing a GGUF file", sizeof *file);
    ww_status status = output_open(file, path);
    if (status == WW_OK)
        status = write_header(writer, file);
    if (status == WW_OK) {
        writer->file = file;
        return WW_OK;
    }
    output_discard(file);
    memory_free(file);
    return status;
}

ww_status ww_gguf_writer_data(ww_gguf_writer *writer, const void *bytes, size_t size)
{
    FLOAT_GUARD();
    static const unsigned char zeros[GGUF_ALIGNMENT];
    const unsigned char *next = bytes;
    if (!writer || (!bytes && size > 0) || !writer->file)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_data: %s",
                       !writer        ? "writer is NULL"
                       : writer->file ? "bytes is NULL"
                                      : "no file is open");
    ww_status status = WW_OK;
    while (status == WW_OK && size > 0) {
        if (writer->tensor == writer->tensor_count)
            return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_data: %zu bytes more than the tensors announced", size);
        const int64_t left = writer->sizes[writer->tensor] - writer->written;
        const size_t now = size < (uint64_t)left ? size : (size_t)left;
        status = output_write(writer->file, next, now);
        if (status != WW_OK)
            break; /* after a failed write, all further writes fail (output.h) */
        next += now;
        size -= now;
        writer->written += (int64_t)now;
        if (status == WW_OK && writer->written == writer->sizes[writer->tensor]) {
            status = output_write(writer->file, zeros, (size_t)(padded(writer->written) - writer->written));
            writer->tensor++;
            writer->written = 0;
        }
    }
    return status;
}

ww_status ww_gguf_writer_finish(ww_gguf_writer *writer)
{
    FLOAT_GUARD();
    if (!writer || !writer->file || writer->finished)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_writer_finish: %s",
                       !writer        ? "writer is NULL"
                       : writer->file ? "the file is already finished"
                                      : "no file is open");
    if (!writer->file->failed && writer->tensor < writer->tensor_count)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "ww_gguf_writer_finish: %s: the data of tensor number %lld is missing, from byte %lld on",
                       writer->file->name, (long long)writer->tensor, (long long)writer->written);
    const ww_status status = output_finish(writer->file);
    writer->finished = status == WW_OK;
    return status;
}

void ww_gguf_writer_destroy(ww_gguf_writer *writer)
{
    if (!writer)
        return;
    if (writer->file && !writer->finished)
        output_discard(writer->file);
    memory_free(writer->file);
    memory_free(writer->values.bytes);
    memory_free(writer->tensors.bytes);
    gguf_names_give_back(&writer->keys);
    gguf_names_give_back(&writer->names);
    memory_free(writer->sizes);
    memory_free(writer);
}
