/* .safetensors: the length of a header as u64, the header, which is a JSON object, and the tensors' bytes.
 *
 * The header has for each name a type, a shape and a range of the data: {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets":
 * [0, 24]}}, and texts under "__metadata__". Jansson parses it; then every range is compared with its shape, its neighbours and
 * the file. The format requires that the ranges cover the data without a hole, because bytes of no tensor could hide another
 * file.
 */
#include "files/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/source.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "files/array.h"
#include "files/copies.h"

enum { LENGTH_BYTES = 8 };

typedef struct text_pair {
    char *key, *value;
} text_pair;

struct ww_safetensors {
    file_source source;
    file_copies copies;     /* of tensors */
    ww_array_info *tensors; /* in the order of their data; offsets are from the start of the file */
    int64_t count;
    int64_t *by_name;
    text_pair *metadata;
    int64_t metadata_count;
};

/* Needed only while the header is read. */
typedef struct header {
    const file_source *source;
    char *text;
    int64_t bytes;
    int64_t data; /* where the data starts */
} header;

static const struct {
    const char *name;
    ww_element element;
} types[] = {{"F64", WW_ELEMENT_F64},        {"F32", WW_ELEMENT_F32},        {"F16", WW_ELEMENT_F16},
             {"BF16", WW_ELEMENT_BF16},      {"I64", WW_ELEMENT_I64},        {"I32", WW_ELEMENT_I32},
             {"I16", WW_ELEMENT_I16},        {"I8", WW_ELEMENT_I8},          {"U8", WW_ELEMENT_U8},
             {"U16", WW_ELEMENT_U16},        {"U32", WW_ELEMENT_U32},        {"U64", WW_ELEMENT_U64},
             {"F8_E4M3", WW_ELEMENT_F8E4M3}, {"F8_E5M2", WW_ELEMENT_F8E5M2}, {"BOOL", WW_ELEMENT_BOOL}};

const char *safetensors_type_name(ww_element element)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].element == element)
            return types[i].name;
    return NULL;
}

static ww_element element_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].element;
    return WW_ELEMENT_UNKNOWN;
}

/* ---- the header ---------------------------------------------------------------------------------------------------------- */

/* Finds where a name is in the header, for messages: its first appearance in quotes, or the start of the header if it is
 * written with escapes. */
static int64_t place_of(const header *h, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = h->text; (at = memmem(at, (size_t)(h->text + h->bytes - at), name, length)); at++)
        if (at > h->text && at[-1] == '"' && at + length < h->text + h->bytes && at[length] == '"')
            return LENGTH_BYTES + (at - 1 - h->text);
    return LENGTH_BYTES;
}

#define REFUSE(h, name, status, format, ...)                                                                                   \
    source_refuse((h)->source, status, place_of(h, name), "tensor '%.200s': " format, name, __VA_ARGS__)

static ww_status read_header(const file_source *source, header *h)
{
    uint64_t length = 0;
    if (source->size < LENGTH_BYTES)
        return source_refuse(source, WW_CORRUPT_FILE, source->size,
                             "not a .safetensors file: it begins with the length of its header in 8 bytes");
    ww_status status = source_read(source, 0, &length, sizeof length);
    if (status != WW_OK)
        return status;
    if (length > (uint64_t)(source->size - LENGTH_BYTES))
        return source_refuse(source, WW_CORRUPT_FILE, 0, "the header should have %llu bytes; %lld follow",
                             (unsigned long long)length, (long long)(source->size - LENGTH_BYTES));
    if (length > (uint64_t)SAFETENSORS_HEADER_BYTES_MAX)
        return source_refuse(source, WW_CORRUPT_FILE, 0, "the header has %llu bytes; the maximum is %lld",
                             (unsigned long long)length, (long long)SAFETENSORS_HEADER_BYTES_MAX);
    *h = (header){.source = source, .bytes = (int64_t)length, .data = LENGTH_BYTES + (int64_t)length};
    h->text = memory_alloc((size_t)length);
    if (!h->text)
        return memory_failed("the header of a .safetensors file", (size_t)length);
    status = source_read(source, LENGTH_BYTES, h->text, (size_t)length);
    if (status == WW_OK && (length == 0 || h->text[0] != '{'))
        status = source_refuse(source, WW_CORRUPT_FILE, LENGTH_BYTES, "the header does not begin with '{'");
    return status;
}

static ww_status parse_header(const header *h, json_t **root)
{
    json_error_t error = {0}; /* initialised because memory checkers do not notice that Jansson fills it */
    *root = json_loadb(h->text, (size_t)h->bytes, JSON_REJECT_DUPLICATES, &error);
    if (*root)
        return WW_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return memory_failed("parsing the header of a .safetensors file", (size_t)h->bytes);
    for (char *c = error.text; *c; c++) /* so that the message is text, regardless of the file's contents */
        if (*c < ' ' || *c > '~')
            *c = '?';
    return source_refuse(h->source, WW_CORRUPT_FILE, LENGTH_BYTES + (error.position > 0 ? error.position : 0),
                         "the header is not JSON: %s", error.text);
}

static ww_status read_shape(const header *h, const char *name, const json_t *shape, ww_array_info *info)
{
    if (!json_is_array(shape))
        return REFUSE(h, name, WW_CORRUPT_FILE, "%s", "the shape is not an array");
    const size_t rank = json_array_size(shape);
    if (rank > WW_ARRAY_RANK_MAX)
        return REFUSE(h, name, WW_UNSUPPORTED, "it has %zu dimensions; the maximum is %d", rank, WW_ARRAY_RANK_MAX);
    info->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return REFUSE(h, name, WW_CORRUPT_FILE, "dimension %zu is not an integer of 0 or more", i);
        info->shape[i] = json_integer_value(size);
    }
    if (!array_size(info))
        return REFUSE(h, name, WW_CORRUPT_FILE, "%s", "the shape does not fit into any file");
    return WW_OK;
}

/* Reads the range, which must be inside the data and have the length of the shape. */
static ww_status read_range(const header *h, const char *name, const json_t *range, ww_array_info *info)
{
    const json_t *first = json_array_get(range, 0), *last = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return REFUSE(h, name, WW_CORRUPT_FILE, "%s", "data_offsets is not an array of two integers");
    const int64_t begin = json_integer_value(first), end = json_integer_value(last), size = h->source->size - h->data;
    if (begin < 0 || end < begin || end > size)
        return REFUSE(h, name, WW_CORRUPT_FILE, "bytes %lld to %lld are not in the file's data, which has %lld bytes",
                      (long long)begin, (long long)end, (long long)size);
    const int64_t each = ww_element_bytes(info->element);
    if (each > 0 && end - begin != info->bytes)
        return REFUSE(h, name, WW_CORRUPT_FILE, "it has %lld bytes; %lld elements of %s need %lld", (long long)(end - begin),
                      (long long)info->elements, info->type, (long long)info->bytes);
    if (each > 0 && begin % each != 0)
        return REFUSE(h, name, WW_CORRUPT_FILE,
                      "it begins at byte %lld of the data, which is not a multiple of its element's %lld", (long long)begin,
                      (long long)each);
    info->bytes = end - begin;
    info->offset = h->data + begin;
    return WW_OK;
}

static ww_status read_tensor(const header *h, const char *name, const json_t *entry, ww_array_info *info)
{
    const json_t *type = json_object_get(entry, "dtype"), *shape = json_object_get(entry, "shape"),
                 *range = json_object_get(entry, "data_offsets");
    *info = ww_array_info_default();
    if (!json_is_object(entry) || !type || !shape || !range)
        return REFUSE(h, name, WW_CORRUPT_FILE, "%s", "it lacks dtype, shape or data_offsets");
    if (!json_is_string(type))
        return REFUSE(h, name, WW_CORRUPT_FILE, "%s", "dtype is not a text");
    text_copy(info->type, sizeof info->type, json_string_value(type));
    info->element = element_of(json_string_value(type));
    ww_status status = read_shape(h, name, shape, info);
    if (status == WW_OK)
        status = read_range(h, name, range, info);
    if (status != WW_OK)
        return status;
    char *copy = memory_copy_text(name, strlen(name));
    info->name = copy;
    return copy ? WW_OK : memory_failed("a tensor's name", strlen(name) + 1);
}

static ww_status read_metadata(ww_safetensors *file, const header *h, json_t *texts)
{
    const char *key;
    json_t *value;
    if (!json_is_object(texts))
        return source_refuse(h->source, WW_CORRUPT_FILE, place_of(h, SAFETENSORS_METADATA),
                             SAFETENSORS_METADATA " is not an object of texts");
    file->metadata = memory_alloc_zeroed(json_object_size(texts) + 1, sizeof *file->metadata);
    if (!file->metadata)
        return memory_failed("the metadata of a .safetensors file", (json_object_size(texts) + 1) * sizeof *file->metadata);
    json_object_foreach(texts, key, value)
    {
        if (!json_is_string(value))
            return source_refuse(h->source, WW_CORRUPT_FILE, place_of(h, key),
                                 SAFETENSORS_METADATA ": the value of '%.200s' is not a text", key);
        text_pair *pair = &file->metadata[file->metadata_count++];
        pair->key = memory_copy_text(key, strlen(key));
        pair->value = memory_copy_text(json_string_value(value), json_string_length(value));
        if (!pair->key || !pair->value)
            return memory_failed("the metadata of a .safetensors file", strlen(key) + json_string_length(value) + 2);
    }
    return WW_OK;
}

/* ---- order --------------------------------------------------------------------------------------------------------------- */

static int compare_ranges(const void *left, const void *right)
{
    const ww_array_info *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes) /* empty ones come first */
        return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right, void *tensors)
{
    const ww_array_info *all = tensors;
    return strcmp(all[*(const int64_t *)left].name, all[*(const int64_t *)right].name);
}

/* Checks that each range starts where the previous one ended, and the last one ends with the file. */
static ww_status check_cover(const ww_safetensors *file, const header *h)
{
    int64_t end = h->data;
    for (int64_t i = 0; i < file->count; i++) {
        const ww_array_info *t = &file->tensors[i];
        if (t->offset != end)
            return REFUSE(h, t->name, WW_CORRUPT_FILE, "%s: it begins at byte %lld of the data, the one before ends at %lld",
                          t->offset < end ? "it overlaps with another" : "there is a hole before it",
                          (long long)(t->offset - h->data), (long long)(end - h->data));
        end = t->offset + t->bytes;
    }
    if (end != h->source->size)
        return source_refuse(h->source, WW_CORRUPT_FILE, end, "%lld byte(s) after the last tensor belong to no tensor",
                             (long long)(h->source->size - end));
    return WW_OK;
}

static ww_status read_tensors(ww_safetensors *file, const header *h, json_t *root)
{
    const char *name;
    json_t *entry;
    ww_status status = WW_OK;
    const size_t tensors_max = json_object_size(root) + 1;
    file->tensors = memory_alloc_zeroed(tensors_max, sizeof *file->tensors);
    file->by_name = memory_alloc_zeroed(tensors_max, sizeof *file->by_name);
    if (!file->tensors || !file->by_name)
        return memory_failed("the list of tensors", tensors_max * (sizeof *file->tensors + sizeof *file->by_name));
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, SAFETENSORS_METADATA) == 0)
            status = read_metadata(file, h, entry);
        else
            status = read_tensor(h, name, entry, &file->tensors[file->count]);
        if (status != WW_OK)
            return status;
        file->count += strcmp(name, SAFETENSORS_METADATA) != 0;
    }
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, compare_ranges);
    for (int64_t i = 0; i < file->count; i++)
        file->by_name[i] = i;
    qsort_r(file->by_name, (size_t)file->count, sizeof *file->by_name, compare_names, file->tensors);
    return check_cover(file, h);
}

/* ---- opening and closing ------------------------------------------------------------------------------------------------- */

static ww_status open_source(file_source *source, ww_safetensors **out)
{
    header h = {0};
    json_t *root = NULL;
    ww_safetensors *file = memory_alloc_zeroed(1, sizeof *file);
    if (!file) {
        source_close(source);
        return memory_failed("opening a .safetensors file", sizeof *file);
    }
    file->source = *source;
    copies_create(&file->copies, 0);
    ww_status status = read_header(&file->source, &h);
    if (status == WW_OK)
        status = parse_header(&h, &root);
    if (status == WW_OK)
        status = read_tensors(file, &h, root);
    json_decref(root);
    memory_free(h.text);
    file->copies.count = file->count;
    if (status == WW_OK)
        *out = file;
    else
        ww_safetensors_close(file);
    return status;
}

ww_status ww_safetensors_open(const char *path, ww_safetensors **file)
{
    FLOAT_GUARD();
    file_source source;
    if (!path || !file)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_open: %s is NULL", path ? "file" : "path");
    const ww_status status = source_open(&source, path);
    return status == WW_OK ? open_source(&source, file) : status;
}

ww_status ww_safetensors_open_stream(const char *path, ww_safetensors **file)
{
    FLOAT_GUARD();
    file_source source;
    if (!path || !file)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_open_stream: %s is NULL", path ? "file" : "path");
    const ww_status status = source_open_stream(&source, path);
    return status == WW_OK ? open_source(&source, file) : status;
}

ww_status safetensors_open_bytes(const char *name, const void *bytes, size_t size, ww_safetensors **file)
{
    file_source source;
    source_over(&source, name, bytes, size);
    return open_source(&source, file);
}

void ww_safetensors_close(ww_safetensors *file)
{
    if (!file)
        return;
    for (int64_t i = 0; file->tensors && i < file->count; i++)
        memory_free((char *)file->tensors[i].name);
    for (int64_t i = 0; i < file->metadata_count; i++) {
        memory_free(file->metadata[i].key);
        memory_free(file->metadata[i].value);
    }
    copies_destroy(&file->copies);
    source_close(&file->source);
    memory_free(file->tensors);
    memory_free(file->by_name);
    memory_free(file->metadata);
    memory_free(file);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

int64_t ww_safetensors_count(const ww_safetensors *file)
{
    return file ? file->count : 0;
}

static ww_status check_index(const ww_safetensors *file, const char *call, int64_t index)
{
    if (!file)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: file is NULL", call);
    if (index < 0 || index >= file->count)
        return ww_fail(WW_OUT_OF_RANGE, "%s: index %lld is out of range; there are %lld tensors", call, (long long)index,
                       (long long)file->count);
    return WW_OK;
}

ww_status ww_safetensors_at(const ww_safetensors *file, int64_t index, ww_array_info *info)
{
    FLOAT_GUARD();
    const ww_status status = check_index(file, "ww_safetensors_at", index);
    return status != WW_OK
               ? status
               : struct_write(info, &file->tensors[index], sizeof *file->tensors, "ww_safetensors_at", "ww_array_info");
}

ww_status ww_safetensors_find(const ww_safetensors *file, const char *name, int64_t *index)
{
    FLOAT_GUARD();
    if (!file || !name || !index)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_find: %s is NULL", !file ? "file" : name ? "index" : "name");
    int64_t low = 0, high = file->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(name, file->tensors[file->by_name[middle]].name);
        if (order == 0) {
            *index = file->by_name[middle];
            return WW_OK;
        }
        low = order < 0 ? low : middle + 1;
        high = order < 0 ? middle : high;
    }
    return ww_fail(WW_NOT_FOUND, "%s: there is no tensor '%.200s'", file->source.name, name);
}

ww_status ww_safetensors_read(const ww_safetensors *file, int64_t index, int64_t offset, void *to, size_t bytes)
{
    FLOAT_GUARD();
    ww_status status = check_index(file, "ww_safetensors_read", index);
    if (status == WW_OK)
        status = array_range_check("ww_safetensors_read", &file->tensors[index], offset, to, bytes);
    if (status != WW_OK || bytes == 0)
        return status;
    return source_read_parallel(&file->source, file->tensors[index].offset + offset, to, bytes);
}

ww_status ww_safetensors_map(ww_safetensors *file, int64_t index, const void **bytes)
{
    FLOAT_GUARD();
    const ww_status status = check_index(file, "ww_safetensors_map", index);
    if (status != WW_OK)
        return status;
    if (!bytes)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_map: bytes is NULL");
    const ww_array_info *t = &file->tensors[index];
    const int64_t each = ww_element_bytes(t->element);
    return copies_get(&file->copies, &file->source, (file_range){index, t->offset, t->bytes}, each > 0 ? each : 1, bytes);
}

int64_t ww_safetensors_metadata_count(const ww_safetensors *file)
{
    return file ? file->metadata_count : 0;
}

ww_status ww_safetensors_metadata_at(const ww_safetensors *file, int64_t index, const char **key, const char **value)
{
    FLOAT_GUARD();
    if (!file || !key || !value)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_metadata_at: %s is NULL", !file ? "file" : key ? "value" : "key");
    if (index < 0 || index >= file->metadata_count)
        return ww_fail(WW_OUT_OF_RANGE, "ww_safetensors_metadata_at: index %lld is out of range; there are %lld texts",
                       (long long)index, (long long)file->metadata_count);
    *key = file->metadata[index].key;
    *value = file->metadata[index].value;
    return WW_OK;
}

ww_status ww_safetensors_metadata(const ww_safetensors *file, const char *key, const char **value)
{
    FLOAT_GUARD();
    if (!file || !key || !value)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_metadata: %s is NULL", !file ? "file" : key ? "value" : "key");
    for (int64_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0) {
            *value = file->metadata[i].value;
            return WW_OK;
        }
    return ww_fail(WW_NOT_FOUND, "%s: the metadata has no '%.200s'", file->source.name, key);
}
