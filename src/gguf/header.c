/* The header of a GGUF file: magic, version, counts, metadata, descriptions of tensors. Each number is checked before it is
 * used.
 *
 * The header is read into memory as the parser proceeds: never more than the file has, and at most twice what was parsed. So no
 * number in the file determines how much is allocated. While that memory can still move, offsets are stored instead of
 * pointers.
 */
#include <string.h>

#include "base/array.h"
#include "base/integers.h"
#include "base/memory.h"
#include "gguf/gguf.h"

enum {
    FIRST_BYTES = 256 << 10, /* read first */
    ENTRY_BYTES_MIN = 14,    /* minimum of an entry: a key of one byte with its length, a kind, a value of one byte */
    TENSOR_BYTES_MIN = 32,   /* minimum of a description: a name's length, a rank, one dimension, a type, an offset */
};

typedef struct cursor {
    gguf_part *part;
    int64_t at;
} cursor;

static const char tables[] = "table of a GGUF file"; /* arrays grow with what was read, not with what the file claims */

#define REFUSE(c, offset, ...) source_refuse(&(c)->part->source, WW_CORRUPT_FILE, offset, __VA_ARGS__)

static ww_status header_grow(gguf_part *part, int64_t need)
{
    const int64_t wanted = max_i64(max_i64(part->header_room * 2, FIRST_BYTES), need);
    const int64_t room = min_i64(wanted, part->source.size);
    unsigned char *header = memory_resize(part->header, (size_t)room);
    if (!header)
        return memory_failed("header of a GGUF file", (size_t)room);
    part->header = header;
    const ww_status status =
        source_read(&part->source, part->header_room, header + part->header_room, (size_t)(room - part->header_room));
    if (status == WW_OK)
        part->header_room = room;
    return status;
}

/* Makes sure that the next `bytes` bytes are in memory, or refuses the file. */
static ww_status need(cursor *c, int64_t bytes, const char *what)
{
    gguf_part *part = c->part;
    if (bytes > part->source.size - c->at)
        return REFUSE(c, c->at, "the file is cut off inside %s: %lld bytes are needed, %lld are left", what, (long long)bytes,
                      (long long)(part->source.size - c->at));
    if (c->at + bytes > GGUF_HEADER_BYTES_MAX)
        return source_refuse(&part->source, WW_UNSUPPORTED, c->at, "the metadata exceeds %lld bytes",
                             (long long)GGUF_HEADER_BYTES_MAX);
    return c->at + bytes <= part->header_room ? WW_OK : header_grow(part, c->at + bytes);
}

static ww_status take(cursor *c, void *to, int64_t bytes, const char *what)
{
    const ww_status status = need(c, bytes, what);
    if (status == WW_OK) {
        memcpy(to, c->part->header + c->at, (size_t)bytes);
        c->at += bytes;
    }
    return status;
}

/* Reads a count of things that take at least `each` bytes. The rest of the file must be able to hold them. */
static ww_status take_count(cursor *c, int64_t each, const char *what, int64_t *count)
{
    uint64_t value;
    const int64_t at = c->at;
    const ww_status status = take(c, &value, sizeof value, what);
    if (status != WW_OK)
        return status;
    const int64_t left = c->part->source.size - c->at;
    if (value > (uint64_t)(left / each))
        return REFUSE(c, at, "%s of %llu exceeds the file: %lld bytes are left", what, (unsigned long long)value,
                      (long long)left);
    *count = (int64_t)value;
    return WW_OK;
}

/* Reads a name, which its length precedes. The name will be moved one byte forward, over the last byte of its length, to make
 * room for a NUL after it; the returned offset is that place. */
static ww_status take_name(cursor *c, const char *what, int64_t max, int64_t *offset, size_t *bytes)
{
    int64_t length = 0;
    const int64_t at = c->at;
    ww_status status = take_count(c, 1, what, &length);
    if (status == WW_OK && length > max)
        status = REFUSE(c, at, "%s has %lld bytes; the maximum is %lld", what, (long long)length, (long long)max);
    if (status == WW_OK)
        status = need(c, length, what);
    if (status != WW_OK)
        return status;
    unsigned char *text = c->part->header + c->at;
    if (length > 0 && memchr(text, 0, (size_t)length))
        return REFUSE(c, c->at, "%s contains a NUL", what);
    memmove(text - 1, text, (size_t)length);
    text[length - 1] = 0;
    *offset = c->at - 1;
    *bytes = (size_t)length;
    c->at += length;
    return WW_OK;
}

/* ---- metadata ------------------------------------------------------------------------------------------------------------ */

static ww_status check_bools(cursor *c, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (c->part->header[c->at + i] > 1)
            return REFUSE(c, c->at + i, "a bool must be 0 or 1, not %d", c->part->header[c->at + i]);
    return WW_OK;
}

/* Skips `count` values of one kind, which is not an array. */
static ww_status skip_values(cursor *c, int64_t kind, int64_t count)
{
    ww_status status = WW_OK;
    if (kind == WW_GGUF_STRING) {
        for (int64_t i = 0; status == WW_OK && i < count; i++) {
            int64_t length = 0;
            status = take_count(c, 1, "a string", &length);
            if (status == WW_OK)
                status = need(c, length, "a string");
            c->at += status == WW_OK ? length : 0;
        }
        return status;
    }
    status = need(c, count * gguf_kind_bytes(kind), "a value"); /* take_count() made sure that this is not more than the file */
    if (status == WW_OK && kind == WW_GGUF_BOOL)
        status = check_bools(c, count);
    if (status == WW_OK)
        c->at += count * gguf_kind_bytes(kind);
    return status;
}

static ww_status take_kind(cursor *c, bool in_array, int64_t *kind)
{
    uint32_t number;
    const int64_t at = c->at;
    const ww_status status = take(c, &number, sizeof number, "the kind of a value");
    if (status != WW_OK)
        return status;
    if (number > WW_GGUF_F64) /* the last kind */
        return REFUSE(c, at, "unknown value kind %u", number);
    if (in_array && number == WW_GGUF_ARRAY)
        return REFUSE(c, at, "arrays of arrays are not allowed");
    *kind = number;
    return WW_OK;
}

static ww_status take_value(cursor *c, gguf_entry *entry)
{
    int64_t kind = 0, element = 0;
    ww_status status = take_kind(c, false, &kind);
    entry->count = 1;
    element = kind;
    if (status == WW_OK && kind == WW_GGUF_ARRAY) {
        status = take_kind(c, true, &element);
        if (status == WW_OK)
            status = take_count(c, element == WW_GGUF_STRING ? 8 : gguf_kind_bytes(element), "an array", &entry->count);
    }
    entry->data = c->at;
    if (status == WW_OK)
        status = skip_values(c, element, entry->count);
    if (status != WW_OK)
        return status;
    entry->kind = (int32_t)kind;
    entry->element = (int32_t)element;
    entry->data_bytes = c->at - entry->data;
    if (kind == WW_GGUF_STRING) { /* only the bytes, moved one byte forward like a name, to make room for a NUL */
        unsigned char *text = c->part->header + entry->data + 8;
        entry->data += 7;
        entry->data_bytes -= 8;
        entry->count = entry->data_bytes;
        memmove(text - 1, text, (size_t)entry->data_bytes);
        text[entry->data_bytes - 1] = 0;
    }
    return WW_OK;
}

static ww_status take_entries(cursor *c, int64_t count)
{
    gguf_part *part = c->part;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        status = array_reserve(&part->entries, &part->entry_room, i + 1, sizeof *part->entries, tables);
        if (status != WW_OK)
            return status;
        gguf_entry *entry = &part->entries[i];
        int64_t name = 0;
        *entry = (gguf_entry){.offset = c->at};
        status = take_name(c, "a key", GGUF_KEY_BYTES_MAX, &name, &entry->key_bytes);
        if (status == WW_OK && entry->key_bytes == 0)
            status = REFUSE(c, entry->offset, "a key is empty");
        entry->key = (const char *)(uintptr_t)name; /* an offset, until the header does not move any more */
        if (status == WW_OK)
            status = take_value(c, entry);
        if (status == WW_OK)
            part->entry_count = i + 1;
    }
    return status;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

static ww_status take_tensor(cursor *c, gguf_tensor *tensor)
{
    uint32_t rank = 0, type = 0;
    uint64_t shape[WW_GGUF_RANK_MAX] = {1, 1, 1, 1}, offset = 0;
    int64_t name = 0;
    *tensor = (gguf_tensor){.described_at = c->at};
    ww_status status = take_name(c, "a tensor's name", GGUF_NAME_BYTES_MAX, &name, &tensor->name_bytes);
    tensor->name = (const char *)(uintptr_t)name;
    if (status == WW_OK)
        status = take(c, &rank, sizeof rank, "a tensor's rank");
    if (status == WW_OK && (rank < 1 || rank > WW_GGUF_RANK_MAX))
        status = REFUSE(c, c->at - 4, "a tensor must have 1 to %d dimensions, not %u", WW_GGUF_RANK_MAX, rank);
    if (status == WW_OK)
        status = take(c, shape, (int64_t)(rank * sizeof *shape), "a tensor's shape");
    const int64_t type_at = c->at;
    if (status == WW_OK)
        status = take(c, &type, sizeof type, "a tensor's type");
    if (status == WW_OK)
        status = take(c, &offset, sizeof offset, "a tensor's offset");
    if (status != WW_OK)
        return status;
    memcpy(tensor->shape, shape, sizeof shape);
    tensor->rank = (int32_t)rank;
    const char *why = gguf_tensor_size(type, rank, tensor->shape, &tensor->bytes);
    if (why)
        return REFUSE(c, type_at, "%s (type %u, shape %lld x %lld x %lld x %lld)", why, type, (long long)tensor->shape[0],
                      (long long)tensor->shape[1], (long long)tensor->shape[2], (long long)tensor->shape[3]);
    tensor->type = (int32_t)type;
    if (offset > (uint64_t)c->part->source.size)
        return REFUSE(c, type_at + 4, "the file is cut off: a tensor's offset of %llu is past its end",
                      (unsigned long long)offset);
    tensor->offset = (int64_t)offset;
    return WW_OK;
}

static ww_status take_tensors(cursor *c, int64_t count)
{
    gguf_part *part = c->part;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        status = array_reserve(&part->tensors, &part->tensor_room, i + 1, sizeof *part->tensors, tables);
        if (status == WW_OK)
            status = take_tensor(c, &part->tensors[i]);
        if (status == WW_OK)
            part->tensor_count = i + 1;
    }
    return status;
}

static int compare_offsets(const void *context, int64_t a, int64_t b)
{
    const gguf_tensor *x = (const gguf_tensor *)context + a, *y = (const gguf_tensor *)context + b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* A tensor of unknown type extends to the next one, or to the end of the file, because nothing else gives its length. That may
 * include padding, but is never too little. */
static int64_t bytes_to_next(const gguf_part *part, const int64_t *by_offset, int64_t i, int64_t data_bytes)
{
    const int64_t next = i + 1 < part->tensor_count ? part->tensors[by_offset[i + 1]].offset : data_bytes;
    return min_i64(next, data_bytes) - part->tensors[by_offset[i]].offset;
}

/* Tensors must be aligned in the data, must not overlap, and must be inside the file. */
static ww_status place_tensors(cursor *c, const int64_t *by_offset)
{
    gguf_part *part = c->part;
    const int64_t data = round_up_i64(c->at, part->alignment);
    int64_t end = 0;
    for (int64_t i = 0; i < part->tensor_count; i++) {
        gguf_tensor *t = &part->tensors[by_offset[i]];
        if (t->offset % part->alignment != 0)
            return REFUSE(c, t->described_at, "tensor '%s': its offset %lld is not a multiple of %lld", t->name,
                          (long long)t->offset, (long long)part->alignment);
        if (t->offset < end)
            return REFUSE(c, t->described_at, "tensor '%s' overlaps with another", t->name);
        if (t->bytes == GGUF_BYTES_UNKNOWN) {
            t->bytes = bytes_to_next(part, by_offset, i, part->source.size - data);
            if (t->bytes < 1)
                return REFUSE(c, t->described_at, "tensor '%s' of type %d, which is not known here, has no bytes of its own",
                              t->name, (int)t->type);
        }
        if (data > part->source.size || t->offset > part->source.size - data || t->bytes > part->source.size - data - t->offset)
            return REFUSE(c, t->described_at, "the file is cut off: it has %lld bytes, but tensor '%s' has %lld from %lld on",
                          (long long)part->source.size, t->name, (long long)t->bytes, (long long)(data + t->offset));
        end = t->offset + t->bytes;
    }
    for (int64_t i = 0; i < part->tensor_count; i++)
        part->tensors[i].offset += data;
    return WW_OK;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

static ww_status take_start(cursor *c, int64_t *entries, int64_t *tensors)
{
    uint32_t magic = 0, version = 0;
    ww_status status = take(c, &magic, sizeof magic, "the magic");
    if (status == WW_OK && magic != GGUF_MAGIC)
        status = REFUSE(c, 0, "not a GGUF file: it does not begin with GGUF");
    if (status == WW_OK)
        status = take(c, &version, sizeof version, "the version");
    if (status == WW_OK && version != 2 && version != 3) {
        if (version != 0 && (version & 0xffff) == 0)
            return source_refuse(&c->part->source, WW_UNSUPPORTED, 4,
                                 "the file is big-endian; only little-endian files are read");
        return source_refuse(&c->part->source, WW_UNSUPPORTED, 4, "version %u is not supported; 2 and 3 are", version);
    }
    c->part->version = (int32_t)version;
    if (status == WW_OK)
        status = take_count(c, TENSOR_BYTES_MIN, "a number of tensors", tensors);
    if (status == WW_OK)
        status = take_count(c, ENTRY_BYTES_MIN, "a number of keys", entries);
    return status;
}

/* From here on the header does not move. */
static void settle_names(gguf_part *part)
{
    for (int64_t i = 0; i < part->entry_count; i++)
        part->entries[i].key = (const char *)part->header + (uintptr_t)part->entries[i].key;
    for (int64_t i = 0; i < part->tensor_count; i++)
        part->tensors[i].name = (const char *)part->header + (uintptr_t)part->tensors[i].name;
}

static ww_status find_alignment(cursor *c)
{
    gguf_part *part = c->part;
    part->alignment = GGUF_ALIGNMENT;
    for (int64_t i = 0; i < part->entry_count; i++) {
        const gguf_entry *entry = &part->entries[i];
        uint32_t value = 0;
        if (strcmp(entry->key, "general.alignment") != 0)
            continue;
        if (entry->kind != WW_GGUF_U32)
            return REFUSE(c, entry->offset, "general.alignment is not a u32");
        memcpy(&value, part->header + entry->data, sizeof value);
        if (value == 0 || (value & (value - 1)) != 0 || value > GGUF_ALIGNMENT_MAX)
            return REFUSE(c, entry->offset, "general.alignment is %u; it must be a power of two up to %d", value,
                          GGUF_ALIGNMENT_MAX);
        part->alignment = value;
    }
    return WW_OK;
}

static ww_status check_names(cursor *c, int64_t *order)
{
    gguf_part *part = c->part;
    gguf_sort(order, part->entry_count, gguf_compare_entries, part);
    for (int64_t i = 1; i < part->entry_count; i++)
        if (gguf_compare_entries(part, order[i - 1], order[i]) == 0)
            return REFUSE(c, part->entries[order[i]].offset, "the key '%.200s' appears twice", part->entries[order[i]].key);
    gguf_sort(order, part->tensor_count, gguf_compare_tensors, part->tensors);
    for (int64_t i = 1; i < part->tensor_count; i++)
        if (gguf_compare_tensors(part->tensors, order[i - 1], order[i]) == 0)
            return REFUSE(c, part->tensors[order[i]].described_at, "the tensor '%s' appears twice",
                          part->tensors[order[i]].name);
    return WW_OK;
}

ww_status part_read(gguf_part *part)
{
    cursor c = {.part = part};
    int64_t entries = 0, tensors = 0;
    ww_status status = take_start(&c, &entries, &tensors);
    if (status == WW_OK)
        status = take_entries(&c, entries);
    if (status == WW_OK)
        status = take_tensors(&c, tensors);
    if (status != WW_OK)
        return status;
    part->header_bytes = c.at;
    settle_names(part);
    const int64_t max = max_i64(part->entry_count, part->tensor_count);
    int64_t *order = memory_alloc_zeroed((size_t)max + 1, sizeof *order);
    if (!order)
        return memory_failed("order of a GGUF file", ((size_t)max + 1) * sizeof *order);
    status = find_alignment(&c);
    if (status == WW_OK)
        status = check_names(&c, order);
    if (status == WW_OK) {
        gguf_sort(order, part->tensor_count, compare_offsets, part->tensors);
        status = place_tensors(&c, order);
    }
    memory_free(order);
    return status;
}

void part_close(gguf_part *part)
{
    source_close(&part->source);
    file_map_release(part->map);
    memory_free(part->header);
    memory_free(part->entries);
    memory_free(part->tensors);
}
