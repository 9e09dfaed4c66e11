/* Writes a .safetensors completely or not at all (files/output.h).
 *
 * Tensors are sorted by the size of their elements, the largest first, and the header is padded with blanks to a multiple of 8.
 * So every tensor starts at a multiple of its element, for readers that map the file.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/output.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "files/array.h"
#include "files/safetensors.h"

enum { HEADER_ALIGNMENT = 8 };

STRUCT_INIT(ww_array, {.element = WW_ELEMENT_F32})

/* A tensor and where it goes. */
typedef struct placed {
    ww_array array;
    int64_t bytes, begin, number;
} placed;

static ww_status check_array(const ww_array *array, placed *p, int64_t number)
{
    ww_array_info info = ww_array_info_default();
    ww_status status = struct_read(&p->array, sizeof p->array, array, "ww_safetensors_write", "ww_array");
    if (status != WW_OK)
        return status;
    const char *name = p->array.name;
    if (!name || !*name || strcmp(name, SAFETENSORS_METADATA) == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: array %lld has %s", (long long)number,
                       name && *name ? "the name " SAFETENSORS_METADATA ", which is for texts" : "no name");
    if (!safetensors_type_name(p->array.element))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: '%.200s': element %d is not a type", name,
                       (int)p->array.element);
    if (p->array.rank < 0 || p->array.rank > WW_ARRAY_RANK_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: '%.200s': rank %d; it must be between 0 and %d", name,
                       (int)p->array.rank, WW_ARRAY_RANK_MAX);
    info.element = p->array.element;
    info.rank = p->array.rank;
    memcpy(info.shape, p->array.shape, sizeof info.shape);
    if (!array_size(&info))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: '%.200s': the shape is negative or too large", name);
    if (!p->array.data && info.bytes > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: '%.200s': data is NULL", name);
    p->bytes = info.bytes;
    p->number = number;
    return WW_OK;
}

static int compare_placed(const void *left, const void *right)
{
    const placed *a = left, *b = right;
    const int64_t x = ww_element_bytes(a->array.element), y = ww_element_bytes(b->array.element);
    return x != y ? (x > y ? -1 : 1) : (a->number > b->number) - (a->number < b->number);
}

static ww_status place_arrays(placed *all, const ww_array *arrays, int64_t count)
{
    int64_t end = 0;
    const size_t stride = count > 0 ? arrays[0].struct_size : 0; /* the caller's size, which may be older than ours */
    for (int64_t i = 0; i < count; i++) {
        const ww_array *array = (const ww_array *)(const void *)((const char *)arrays + (size_t)i * stride);
        const ww_status status = check_array(array, &all[i], i);
        if (status != WW_OK)
            return status;
    }
    qsort(all, (size_t)count, sizeof *all, compare_placed);
    for (int64_t i = 0; i < count; i++) {
        all[i].begin = end;
        if (__builtin_add_overflow(end, all[i].bytes, &end))
            return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: the arrays together do not fit into any file");
    }
    return WW_OK;
}

static ww_status out_of_memory(void)
{
    return ww_fail(WW_OUT_OF_MEMORY, "ww_safetensors_write: no memory for the header");
}

/* Jansson refuses a key that is not UTF-8, and would let a key replace another one of the same name. */
static ww_status add_entry(json_t *to, const char *key, json_t *value, const char *what)
{
    json_t *word = json_string(key);
    json_decref(word);
    if (!word || json_object_get(to, key)) {
        json_decref(value);
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: %s '%.200s' %s", what, key,
                       word ? "appears twice" : "is not UTF-8");
    }
    return json_object_set_new(to, key, value) == 0 ? WW_OK : out_of_memory();
}

static ww_status add_metadata(json_t *root, const char *const *metadata)
{
    json_t *texts = json_object();
    ww_status status = texts ? WW_OK : out_of_memory();
    for (size_t i = 0; status == WW_OK && metadata[i]; i += 2) {
        if (!metadata[i + 1])
            status = ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: the metadata '%.200s' has no value", metadata[i]);
        json_t *value = status == WW_OK ? json_string(metadata[i + 1]) : NULL;
        if (status == WW_OK && !value)
            status = ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: the value of '%.200s' is not UTF-8", metadata[i]);
        if (status != WW_OK)
            break;
        status = add_entry(texts, metadata[i], value, "the metadata");
    }
    if (status != WW_OK) {
        json_decref(texts);
        return status;
    }
    return add_entry(root, SAFETENSORS_METADATA, texts, "the name");
}

/* Copies the JSON to our own memory, followed by a NUL. */
static ww_status dump(const json_t *root, char **text)
{
    const size_t bytes = json_dumpb(root, NULL, 0, JSON_COMPACT);
    if (bytes == 0)
        return out_of_memory();
    *text = memory_alloc(bytes + 1);
    if (!*text)
        return memory_failed("the header of a .safetensors file", bytes + 1);
    (*text)[json_dumpb(root, *text, bytes, JSON_COMPACT)] = '\0';
    return WW_OK;
}

static ww_status make_header(const placed *all, int64_t count, const char *const *metadata, char **text)
{
    json_t *root = json_object();
    ww_status status = root ? WW_OK : out_of_memory();
    if (status == WW_OK && metadata)
        status = add_metadata(root, metadata);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const placed *p = &all[i];
        const int64_t end = p->begin + p->bytes;
        json_t *shape = json_array();
        int failed = shape == NULL;
        for (int32_t d = 0; d < p->array.rank; d++)
            failed |= json_array_append_new(shape, json_integer(p->array.shape[d]));
        json_t *entry = failed ? NULL
                               : json_pack("{s:s, s:O, s:[I,I]}", "dtype", safetensors_type_name(p->array.element), "shape",
                                           shape, "data_offsets", (json_int_t)p->begin, (json_int_t)end);
        json_decref(shape);
        status = entry ? add_entry(root, p->array.name, entry, "the name") : out_of_memory();
    }
    if (status == WW_OK)
        status = dump(root, text);
    json_decref(root);
    return status;
}

static ww_status write_file(output *o, const char *path, const char *text, const placed *all, int64_t count)
{
    static const char blanks[HEADER_ALIGNMENT] = "        ";
    const size_t length = strlen(text);
    const uint64_t padded = round_up_size(length, HEADER_ALIGNMENT);
    if (padded > (uint64_t)SAFETENSORS_HEADER_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: the header would have %llu bytes; the maximum is %lld",
                       (unsigned long long)padded, (long long)SAFETENSORS_HEADER_BYTES_MAX);
    ww_status status = output_open(o, path);
    if (status == WW_OK)
        status = output_write(o, &padded, sizeof padded);
    if (status == WW_OK)
        status = output_write(o, text, length);
    if (status == WW_OK)
        status = output_write(o, blanks, (size_t)padded - length);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = output_write(o, all[i].array.data, (size_t)all[i].bytes);
    return status == WW_OK ? output_finish(o) : status;
}

ww_status ww_safetensors_write(const char *path, const ww_array *arrays, int64_t count, const char *const *metadata)
{
    FLOAT_GUARD();
    char *text = NULL;
    if (!path || count < 0 || (!arrays && count > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_write: %s",
                       !path       ? "path is NULL"
                       : count < 0 ? "count is negative"
                                   : "arrays is NULL");
    placed *all = memory_alloc_zeroed((size_t)count + 1, sizeof *all);
    output *o = memory_alloc_zeroed(1, sizeof *o);
    ww_status status = WW_OK;
    if (o)
        o->descriptor = -1;
    if (!all || !o)
        status = memory_failed("writing a .safetensors file", ((size_t)count + 1) * sizeof *all + sizeof *o);
    if (status == WW_OK)
        status = place_arrays(all, arrays, count);
    if (status == WW_OK)
        status = make_header(all, count, metadata, &text);
    if (status == WW_OK)
        status = write_file(o, path, text, all, count);
    if (o)
        output_discard(o);
    memory_free(text);
    memory_free(o);
    memory_free(all);
    return status;
}
