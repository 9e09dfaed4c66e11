/* What is in a GGUF file, for a person and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/gguf/gguf.h"
#include "cli/json.h"
#include "cli/terminal.h"

enum { SHOWN_ELEMENTS = 8, SHOWN_BYTES = 200 };

/* JSON has no word for what is not finite. */
static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Number `i` of a value's elements that are no strings. */
static json_t *number_json(const ww_gguf_value *v, int64_t i)
{
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        float f32;
        uint64_t u64;
        int64_t i64;
        double f64;
    } n;
    memcpy(&n, (const char *)v->data + (size_t)i * bytes[v->element], bytes[v->element]);
    switch (v->element) {
    case WW_GGUF_U8:
        return json_integer(n.u8);
    case WW_GGUF_I8:
        return json_integer(n.i8);
    case WW_GGUF_U16:
        return json_integer(n.u16);
    case WW_GGUF_I16:
        return json_integer(n.i16);
    case WW_GGUF_U32:
        return json_integer(n.u32);
    case WW_GGUF_I32:
        return json_integer(n.i32);
    case WW_GGUF_F32:
        return real_json((double)n.f32);
    case WW_GGUF_BOOL:
        return json_boolean(n.u8);
    case WW_GGUF_U64: /* JSON's integers end at 2^63 */
        return n.u64 <= INT64_MAX ? json_integer((json_int_t)n.u64) : json_real((double)n.u64);
    case WW_GGUF_I64:
        return json_integer((json_int_t)n.i64);
    case WW_GGUF_F64:
        return real_json(n.f64);
    case WW_GGUF_STRING:
    case WW_GGUF_ARRAY:
        break;
    }
    return json_null();
}

/* Bytes that are no UTF-8 become null: JSON has no other word for them. */
static json_t *string_json(const void *bytes, uint64_t size)
{
    json_t *text = json_stringn(bytes, (size_t)size);
    return text ? text : json_null();
}

static json_t *array_json(const ww_gguf_value *v, int64_t most)
{
    json_t *array = json_array();
    const char *at = v->data;
    for (int64_t i = 0; i < v->count && i < most; i++) {
        uint64_t length;
        if (v->element != WW_GGUF_STRING) {
            (void)json_array_append_new(array, number_json(v, i));
            continue;
        }
        memcpy(&length, at, sizeof length);
        (void)json_array_append_new(array, string_json(at + sizeof length, length));
        at += sizeof length + length;
    }
    return array;
}

static json_t *value_json(const ww_gguf_value *v, int64_t most)
{
    if (v->kind == WW_GGUF_ARRAY)
        return array_json(v, most);
    return v->kind == WW_GGUF_STRING ? string_json(v->data, v->data_bytes) : number_json(v, 0);
}

static json_t *tensor_json(const ww_gguf_tensor *t)
{
    json_t *shape = json_array();
    char type[TYPE_TEXT_BYTES];
    for (int32_t i = 0; i < t->rank; i++)
        (void)json_array_append_new(shape, json_integer(t->shape[i]));
    return json_pack("{s:o, s:s, s:o, s:i, s:I, s:I}", "name", string_json(t->name, strlen(t->name)), "type",
                     gguf_type_text(t->type, type), "shape", shape, "file", (int)t->file, "offset", (json_int_t)t->offset,
                     "bytes", (json_int_t)t->bytes);
}

ww_status gguf_print_json(const ww_gguf *gguf)
{
    ww_gguf_info info = ww_gguf_info_default();
    json_t *keys = json_array(), *tensors = json_array();
    ww_status status = ww_gguf_describe(gguf, &info);
    for (int64_t i = 0; status == WW_OK && i < info.keys; i++) {
        ww_gguf_value v = ww_gguf_value_default();
        status = ww_gguf_value_at(gguf, i, &v);
        if (status == WW_OK)
            (void)json_array_append_new(keys,
                                        json_pack("{s:o, s:s, s:s, s:I, s:o}", "key", string_json(v.key, strlen(v.key)), "kind",
                                                  ww_gguf_kind_name(v.kind), "element", ww_gguf_kind_name(v.element), "count",
                                                  (json_int_t)v.count, "value", value_json(&v, INT64_MAX)));
    }
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        status = ww_gguf_tensor_at(gguf, i, &t);
        if (status == WW_OK)
            (void)json_array_append_new(tensors, tensor_json(&t));
    }
    if (status == WW_OK)
        return json_print_f64(json_pack("{s:i, s:i, s:I, s:I, s:o, s:o}", "version", info.version, "alignment", info.alignment,
                                        "files", (json_int_t)info.files, "data_bytes", (json_int_t)info.data_bytes, "keys",
                                        keys, "tensors", tensors));
    json_decref(keys);
    json_decref(tensors);
    return status;
}

static void print_value(const ww_gguf_value *v)
{
    json_t *value = value_json(v, SHOWN_ELEMENTS);
    char *text = value ? json_dumps(value, JSON_STYLE | JSON_ENCODE_ANY) : NULL;
    char kind[32];
    if (v->kind == WW_GGUF_ARRAY)
        snprintf(kind, sizeof kind, "%s[%lld]", ww_gguf_kind_name(v->element), (long long)v->count);
    else
        snprintf(kind, sizeof kind, "%s", ww_gguf_kind_name(v->kind));
    printf("  %-14s ", kind);
    print_plain(stdout, v->key);
    printf(" = %.*s%s\n", SHOWN_BYTES, text ? text : "?",
           (v->kind == WW_GGUF_ARRAY && v->count > SHOWN_ELEMENTS) || (text && strlen(text) > SHOWN_BYTES) ? " ..." : "");
    free(text);
    json_decref(value);
}

ww_status gguf_print(const ww_gguf *gguf, const char *path)
{
    ww_gguf_info info = ww_gguf_info_default();
    char bytes[32];
    ww_status status = ww_gguf_describe(gguf, &info);
    if (status != WW_OK)
        return status;
    printf("%s: GGUF version %d, %lld keys, %lld tensors, %s", path, info.version, (long long)info.keys,
           (long long)info.tensors, human_bytes(bytes, info.data_bytes));
    printf(info.files > 1 ? " in %lld files\n" : "\n", (long long)info.files);
    for (int64_t i = 0; i < info.keys; i++) {
        ww_gguf_value v = ww_gguf_value_default();
        status = ww_gguf_value_at(gguf, i, &v);
        if (status != WW_OK)
            return status;
        print_value(&v);
    }
    for (int64_t i = 0; i < info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        char shape[96] = "", type[TYPE_TEXT_BYTES];
        status = ww_gguf_tensor_at(gguf, i, &t);
        if (status != WW_OK)
            return status;
        for (int32_t d = 0; d < t.rank; d++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", d ? " x " : "", (long long)t.shape[d]);
        printf("  %-6s %-24s %10s  ", gguf_type_text(t.type, type), shape, human_bytes(bytes, t.bytes));
        print_plain(stdout, t.name);
        putchar('\n');
    }
    return WW_OK;
}
