/* Open GGUF files: a single file or the parts of a split model, with entries by number and by name. */
#include "gguf/gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static const gguf_entry *find_entry(const gguf_part *part, const char *key)
{
    for (int64_t i = 0; i < part->entry_count; i++)
        if (strcmp(part->entries[i].key, key) == 0)
            return &part->entries[i];
    return NULL;
}

/* Reads a number of the metadata that says how the model is split. It is a u16 in practice; any integer of up to 4 bytes is
 * accepted. */
static ww_status split_number(const gguf_part *part, const char *key, int64_t missing, int64_t *number)
{
    const gguf_entry *entry = find_entry(part, key);
    uint32_t value = 0;
    *number = missing;
    if (!entry)
        return WW_OK;
    if (entry->kind > WW_GGUF_I32)
        return source_refuse(&part->source, WW_CORRUPT_FILE, entry->offset, "%s is not an integer", key);
    memcpy(&value, part->header + entry->data, (size_t)entry->data_bytes);
    *number = value;
    return WW_OK;
}

/* Writes "model-00001-of-00003.gguf" with another number. */
static ww_status part_path(const char *first, int64_t number, int64_t count, char *path, size_t capacity)
{
    char ending[64];
    const int length = snprintf(ending, sizeof ending, "-00001-of-%05d.gguf", (int)count);
    const size_t whole = strlen(first);
    if (length < 0 || whole < (size_t)length || whole >= capacity || strcmp(first + whole - (size_t)length, ending) != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the model is split into %d files; the name of the first must end in '%s'",
                       first, (int)count, ending);
    memcpy(path, first, whole + 1);
    snprintf(path + whole - (size_t)length, (size_t)length + 1, "-%05d-of-%05d.gguf", (int)number + 1, (int)count);
    return WW_OK;
}

static ww_status open_others(ww_gguf *g, int64_t count)
{
    char other[4096];
    gguf_part *parts = memory_resize(g->parts, (size_t)count * sizeof *parts);
    if (!parts)
        return memory_failed("files of a split model", (size_t)count * sizeof *parts);
    g->parts = parts;
    for (int64_t i = 1; i < count; i++) {
        gguf_part *part = &g->parts[i];
        int64_t number = 0, part_count = 0;
        memset(part, 0, sizeof *part);
        ww_status status = part_path(g->path, i, count, other, sizeof other);
        if (status == WW_OK)
            status = source_open(&part->source, other);
        if (status != WW_OK)
            return status;
        g->part_count = i + 1;
        status = part_read(part);
        if (status == WW_OK)
            status = split_number(part, "split.no", -1, &number);
        if (status == WW_OK)
            status = split_number(part, "split.count", 1, &part_count);
        if (status == WW_OK && (number != i || part_count != count))
            status = source_refuse(&part->source, WW_CORRUPT_FILE, 0, "this is part %d of %d; expected part %d of %d",
                                   (int)number + 1, (int)part_count, (int)i + 1, (int)count);
        if (status != WW_OK)
            return status;
    }
    return WW_OK;
}

/* All parts together must have as many tensors as the first part says, if it does. */
static ww_status check_tensors_of_parts(const ww_gguf *g)
{
    int64_t said = -1, found = 0;
    const ww_status status = split_number(&g->parts[0], "split.tensors.count", -1, &said);
    for (int64_t p = 0; p < g->part_count; p++)
        found += g->parts[p].tensor_count;
    if (status != WW_OK || said < 0 || said == found)
        return status;
    return source_refuse(&g->parts[0].source, WW_CORRUPT_FILE, find_entry(&g->parts[0], "split.tensors.count")->offset,
                         "split.tensors.count is %lld; the files have %lld tensors", (long long)said, (long long)found);
}

static ww_status open_split(ww_gguf *g)
{
    const gguf_part *first = &g->parts[0];
    int64_t count = 1, number = 0;
    ww_status status = split_number(first, "split.count", 1, &count);
    if (status == WW_OK)
        status = split_number(first, "split.no", 0, &number);
    if (status != WW_OK || count <= 1)
        return status;
    if (count > GGUF_FILES_MAX)
        return source_refuse(&first->source, WW_UNSUPPORTED, 0, "the model is split into %lld files; the maximum is %d",
                             (long long)count, GGUF_FILES_MAX);
    if (!g->path || number != 0)
        return source_refuse(&first->source, WW_UNSUPPORTED, 0, "this is part %lld of a split model; open its first file",
                             (long long)number + 1);
    status = open_others(g, count);
    return status == WW_OK ? check_tensors_of_parts(g) : status;
}

/* Makes one list of the tensors of all parts, and the orders by name. */
static ww_status gather(ww_gguf *g)
{
    int64_t count = 0;
    for (int64_t p = 0; p < g->part_count; p++)
        count += g->parts[p].tensor_count;
    const size_t bytes = ((size_t)count + 1) * sizeof *g->tensors;
    g->tensors = memory_alloc_zeroed((size_t)count + 1, sizeof *g->tensors);
    g->names_sorted = memory_alloc_zeroed((size_t)count + 1, sizeof *g->names_sorted);
    g->keys_sorted = memory_alloc_zeroed((size_t)g->parts[0].entry_count + 1, sizeof *g->keys_sorted);
    if (!g->tensors || !g->names_sorted || !g->keys_sorted)
        return memory_failed("tables of a GGUF file", bytes);
    for (int64_t p = 0; p < g->part_count; p++)
        for (int64_t i = 0; i < g->parts[p].tensor_count; i++) {
            g->tensors[g->tensor_count] = g->parts[p].tensors[i];
            g->tensors[g->tensor_count++].file = (int32_t)p;
        }
    gguf_sort(g->keys_sorted, g->parts[0].entry_count, gguf_compare_entries, &g->parts[0]);
    gguf_sort(g->names_sorted, count, gguf_compare_tensors, g->tensors);
    for (int64_t i = 1; i < count; i++) {
        const gguf_tensor *t = &g->tensors[g->names_sorted[i]];
        if (gguf_compare_tensors(g->tensors, g->names_sorted[i - 1], g->names_sorted[i]) == 0)
            return source_refuse(&g->parts[t->file].source, WW_CORRUPT_FILE, t->described_at,
                                 "the tensor '%s' appears in two files of the split model", t->name);
    }
    return WW_OK;
}

/* The source of the first part is open, or is memory. */
static ww_status open_source(const file_source *source, const char *path, ww_gguf **out)
{
    ww_gguf *g = memory_alloc_zeroed(1, sizeof *g);
    gguf_part *parts = memory_alloc_zeroed(1, sizeof *parts);
    if (!g || !parts) {
        file_source closing = *source;
        source_close(&closing);
        memory_free(g);
        memory_free(parts);
        return memory_failed("GGUF file", sizeof *g + sizeof *parts);
    }
    g->parts = parts;
    g->part_count = 1;
    parts->source = *source;
    copies_create(&g->copies, 0);
    g->path = path ? memory_copy_text(path, strlen(path)) : NULL;
    ww_status status = path && !g->path ? memory_failed("the path of a GGUF file", strlen(path)) : part_read(parts);
    if (status == WW_OK)
        status = open_split(g);
    if (status == WW_OK)
        status = gather(g);
    if (status != WW_OK) {
        ww_gguf_close(g);
        return status;
    }
    g->copies.count = g->tensor_count;
    *out = g;
    return WW_OK;
}

ww_status ww_gguf_open(const char *path, ww_gguf **gguf)
{
    FLOAT_GUARD();
    file_source source;
    if (!path || !gguf)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_open: %s is NULL", path ? "gguf" : "path");
    const ww_status status = source_open(&source, path);
    return status == WW_OK ? open_source(&source, path, gguf) : status;
}

ww_status ww_gguf_open_stream(const char *path, ww_gguf **gguf)
{
    FLOAT_GUARD();
    file_source source;
    if (!path || !gguf)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_open_stream: %s is NULL", path ? "gguf" : "path");
    const ww_status status = source_open_stream(&source, path);
    return status == WW_OK ? open_source(&source, source.owned ? NULL : path, gguf) : status;
}

ww_status gguf_open_bytes(const char *name, const void *bytes, size_t size, ww_gguf **out)
{
    file_source source;
    source_over(&source, name, bytes, size);
    return open_source(&source, NULL, out);
}

ww_status gguf_map(ww_gguf *gguf)
{
    ww_status status = WW_OK;
    for (int64_t p = 0; p < gguf->part_count && status == WW_OK; p++)
        if (!gguf->parts[p].map)
            status = file_map_open(&gguf->parts[p].source, &gguf->parts[p].map);
    return status;
}

void ww_gguf_close(ww_gguf *gguf)
{
    if (!gguf)
        return;
    copies_destroy(&gguf->copies);
    for (int64_t p = 0; p < gguf->part_count; p++)
        part_close(&gguf->parts[p]);
    memory_free(gguf->parts);
    memory_free(gguf->tensors);
    memory_free(gguf->keys_sorted);
    memory_free(gguf->names_sorted);
    memory_free(gguf->path);
    memory_free(gguf);
}

ww_status ww_gguf_file_path(const ww_gguf *gguf, int64_t file, char *path, size_t capacity)
{
    FLOAT_GUARD();
    static const char function[] = "ww_gguf_file_path";
    if (!gguf || !path)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, gguf ? "path" : "gguf");
    if (file < 0 || file >= gguf->part_count)
        return ww_fail(WW_OUT_OF_RANGE, "%s: file is %lld; the model has %lld", function, (long long)file,
                       (long long)gguf->part_count);
    if (!gguf->path)
        return ww_fail(WW_NOT_FOUND, "%s: the model was read from a stream", function);
    if (strlen(gguf->path) >= capacity)
        return ww_fail(WW_OUT_OF_RANGE, "%s: capacity is %zu; the path has %zu bytes", function, capacity, strlen(gguf->path));
    if (gguf->part_count > 1)
        return part_path(gguf->path, file, gguf->part_count, path, capacity);
    text_copy(path, capacity, gguf->path);
    return WW_OK;
}

/* ---- describing
   ------------------------------------------------------------------------------------------------------------ */

STRUCT_INIT(ww_gguf_info, {0})
STRUCT_INIT(ww_gguf_value, {0})
STRUCT_INIT(ww_gguf_tensor, {0})

ww_status ww_gguf_describe(const ww_gguf *gguf, ww_gguf_info *info)
{
    FLOAT_GUARD();
    if (!gguf || !info)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_describe: %s is NULL", gguf ? "info" : "gguf");
    ww_gguf_info ours = {.struct_size = sizeof ours,
                         .version = gguf->parts[0].version,
                         .alignment = (int32_t)gguf->parts[0].alignment,
                         .keys = gguf->parts[0].entry_count,
                         .tensors = gguf->tensor_count,
                         .files = gguf->part_count};
    for (int64_t i = 0; i < gguf->tensor_count; i++)
        ours.data_bytes += gguf->tensors[i].bytes; /* cannot overflow: at most 1024 files, and part_read() checked each */
    return struct_write(info, &ours, sizeof ours, "ww_gguf_describe", "ww_gguf_info");
}

static ww_status no_such(const char *call, int64_t index, int64_t count)
{
    return ww_fail(WW_OUT_OF_RANGE, "%s: index %lld is out of range; there are %lld", call, (long long)index, (long long)count);
}

ww_status ww_gguf_value_at(const ww_gguf *gguf, int64_t index, ww_gguf_value *value)
{
    FLOAT_GUARD();
    if (!gguf || !value)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_value_at: %s is NULL", gguf ? "value" : "gguf");
    if (index < 0 || index >= gguf->parts[0].entry_count)
        return no_such("ww_gguf_value_at", index, gguf->parts[0].entry_count);
    const gguf_entry *entry = &gguf->parts[0].entries[index];
    const ww_gguf_value ours = {.struct_size = sizeof ours,
                                .key = entry->key,
                                .kind = (ww_gguf_kind)entry->kind,
                                .element = (ww_gguf_kind)entry->element,
                                .count = entry->count,
                                .data = gguf->parts[0].header + entry->data,
                                .data_bytes = (size_t)entry->data_bytes};
    return struct_write(value, &ours, sizeof ours, "ww_gguf_value_at", "ww_gguf_value");
}

ww_status ww_gguf_tensor_at(const ww_gguf *gguf, int64_t index, ww_gguf_tensor *tensor)
{
    FLOAT_GUARD();
    if (!gguf || !tensor)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_tensor_at: %s is NULL", gguf ? "tensor" : "gguf");
    if (index < 0 || index >= gguf->tensor_count)
        return no_such("ww_gguf_tensor_at", index, gguf->tensor_count);
    const gguf_tensor *t = &gguf->tensors[index];
    ww_gguf_tensor ours = {.struct_size = sizeof ours,
                           .name = t->name,
                           .type = t->type,
                           .rank = t->rank,
                           .file = t->file,
                           .offset = t->offset,
                           .bytes = t->bytes};
    memcpy(ours.shape, t->shape, sizeof ours.shape);
    return struct_write(tensor, &ours, sizeof ours, "ww_gguf_tensor_at", "ww_gguf_tensor");
}

ww_status ww_gguf_find_value(const ww_gguf *gguf, const char *key, int64_t *index)
{
    FLOAT_GUARD();
    if (!gguf || !key || !index)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_find_value: %s is NULL", !gguf ? "gguf" : key ? "index" : "key");
    const gguf_part *part = &gguf->parts[0];
    int64_t low = 0, high = part->entry_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const gguf_entry *entry = &part->entries[gguf->keys_sorted[middle]];
        const int order = gguf_compare_text(key, strlen(key), entry->key, entry->key_bytes);
        if (order == 0) {
            *index = gguf->keys_sorted[middle];
            return WW_OK;
        }
        low = order < 0 ? low : middle + 1;
        high = order < 0 ? middle : high;
    }
    return ww_fail(WW_NOT_FOUND, "%s: there is no key '%.200s'", part->source.name, key);
}

ww_status ww_gguf_find_tensor(const ww_gguf *gguf, const char *name, int64_t *index)
{
    FLOAT_GUARD();
    if (!gguf || !name || !index)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_find_tensor: %s is NULL", !gguf ? "gguf" : name ? "index" : "name");
    int64_t low = 0, high = gguf->tensor_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const gguf_tensor *t = &gguf->tensors[gguf->names_sorted[middle]];
        const int order = gguf_compare_text(name, strlen(name), t->name, t->name_bytes);
        if (order == 0) {
            *index = gguf->names_sorted[middle];
            return WW_OK;
        }
        low = order < 0 ? low : middle + 1;
        high = order < 0 ? middle : high;
    }
    return ww_fail(WW_NOT_FOUND, "%s: there is no tensor '%.200s'", gguf->parts[0].source.name, name);
}

/* ---- data ---------------------------------------------------------------------------------------------------------------- */

const void *ww_gguf_view(const ww_gguf *gguf, int64_t index)
{
    FLOAT_GUARD();
    const void *bytes = NULL;
    if (!gguf || index < 0 || index >= gguf->tensor_count) {
        (void)(gguf ? no_such("ww_gguf_view", index, gguf->tensor_count)
                    : ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_view: gguf is NULL"));
        return NULL;
    }
    const gguf_tensor *t = &gguf->tensors[index];
    const file_source *source = &gguf->parts[t->file].source;
    /* The copies in memory are no visible change of the file, so callers have a const pointer. */
    return copies_get(&((ww_gguf *)gguf)->copies, source, (file_range){index, t->offset, t->bytes}, 1, &bytes) == WW_OK ? bytes
                                                                                                                        : NULL;
}

ww_status ww_gguf_read(const ww_gguf *gguf, int64_t index, int64_t offset, void *to, size_t bytes)
{
    FLOAT_GUARD();
    if (!gguf || (!to && bytes > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_read: %s is NULL", gguf ? "to" : "gguf");
    if (index < 0 || index >= gguf->tensor_count)
        return no_such("ww_gguf_read", index, gguf->tensor_count);
    const gguf_tensor *t = &gguf->tensors[index];
    if (offset < 0 || offset > t->bytes || bytes > (uint64_t)(t->bytes - offset))
        return ww_fail(WW_OUT_OF_RANGE, "ww_gguf_read: %zu bytes at offset %lld requested of tensor '%s', which has %lld",
                       bytes, (long long)offset, t->name, (long long)t->bytes);
    return source_read(&gguf->parts[t->file].source, t->offset + offset, to, bytes);
}
