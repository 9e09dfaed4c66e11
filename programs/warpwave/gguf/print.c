/* Prints the contents of a GGUF file as text and as JSON. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "warpwave/gguf/gguf.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

enum { SHOWN_ELEMENTS = 8, SHOWN_BYTES = 200 };

/* Element `i` of a value whose elements are not strings. */
static void number_json(json_writer *w, const char *key, const ww_gguf_value *v, int64_t i)
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
        json_put_integer(w, key, n.u8);
        return;
    case WW_GGUF_I8:
        json_put_integer(w, key, n.i8);
        return;
    case WW_GGUF_U16:
        json_put_integer(w, key, n.u16);
        return;
    case WW_GGUF_I16:
        json_put_integer(w, key, n.i16);
        return;
    case WW_GGUF_U32:
        json_put_integer(w, key, n.u32);
        return;
    case WW_GGUF_I32:
        json_put_integer(w, key, n.i32);
        return;
    case WW_GGUF_F32:
        json_put_real(w, key, (double)n.f32);
        return;
    case WW_GGUF_BOOL:
        json_put_bool(w, key, n.u8 != 0);
        return;
    case WW_GGUF_U64: /* most JSON readers have integers up to 2^63 */
        if (n.u64 <= INT64_MAX)
            json_put_integer(w, key, (int64_t)n.u64);
        else
            json_put_real(w, key, (double)n.u64);
        return;
    case WW_GGUF_I64:
        json_put_integer(w, key, n.i64);
        return;
    case WW_GGUF_F64:
        json_put_real(w, key, n.f64);
        return;
    case WW_GGUF_STRING:
    case WW_GGUF_ARRAY:
        break;
    }
    json_put_null(w, key);
}

static void value_json(json_writer *w, const char *key, const ww_gguf_value *v)
{
    const char *at = v->data;
    if (v->kind == WW_GGUF_STRING) {
        json_put_bytes(w, key, at, v->data_bytes);
        return;
    }
    if (v->kind != WW_GGUF_ARRAY) {
        number_json(w, key, v, 0);
        return;
    }
    json_open(w, key, '[');
    for (int64_t i = 0; i < v->count; i++) {
        uint64_t length;
        if (v->element != WW_GGUF_STRING) {
            number_json(w, NULL, v, i);
            continue;
        }
        memcpy(&length, at, sizeof length);
        json_put_bytes(w, NULL, at + sizeof length, (size_t)length);
        at += sizeof length + length;
    }
    json_close(w);
}

static void tensor_json(json_writer *w, const ww_gguf_tensor *t)
{
    char type[TYPE_TEXT_BYTES];
    json_open(w, NULL, '{');
    json_put_text(w, "name", t->name);
    json_put_text(w, "type", gguf_type_text(t->type, type));
    json_open(w, "shape", '[');
    for (int32_t i = 0; i < t->rank; i++)
        json_put_integer(w, NULL, t->shape[i]);
    json_close(w);
    json_put_integer(w, "file", t->file);
    json_put_integer(w, "offset", t->offset);
    json_put_integer(w, "bytes", t->bytes);
    json_close(w);
}

ww_status gguf_print_json(const ww_gguf *gguf)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F64};
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(gguf, &info);
    if (status != WW_OK)
        return status;
    json_open(&w, NULL, '{');
    json_put_integer(&w, "version", info.version);
    json_put_integer(&w, "alignment", info.alignment);
    json_put_integer(&w, "files", info.files);
    json_put_integer(&w, "data_bytes", info.data_bytes);
    json_open(&w, "keys", '[');
    for (int64_t i = 0; status == WW_OK && i < info.keys; i++) {
        ww_gguf_value v = ww_gguf_value_default();
        status = ww_gguf_value_at(gguf, i, &v);
        if (status != WW_OK)
            break;
        json_open(&w, NULL, '{');
        json_put_text(&w, "key", v.key);
        json_put_text(&w, "kind", ww_gguf_kind_name(v.kind));
        json_put_text(&w, "element", ww_gguf_kind_name(v.element));
        json_put_integer(&w, "count", v.count);
        value_json(&w, "value", &v);
        json_close(&w);
    }
    json_close(&w);
    json_open(&w, "tensors", '[');
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        status = ww_gguf_tensor_at(gguf, i, &t);
        if (status == WW_OK)
            tensor_json(&w, &t);
    }
    json_close(&w);
    json_close(&w);
    return status;
}

/* ---- for a person -------------------------------------------------------------------------------------------------------- */

/* Prints a text, at most its first SHOWN_BYTES. */
static void print_string(const char *text, uint64_t length)
{
    size_t shown = (size_t)(length < SHOWN_BYTES ? length : SHOWN_BYTES);
    while (shown < length && shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--; /* do not cut a character in two */
    putchar('"');
    print_plain_bytes(stdout, text, shown);
    printf("\"%s", shown < length ? " ..." : "");
}

/* Prints element `i`; for a string, the bytes at `at`, which follow their count. */
static void print_element(const ww_gguf_value *v, int64_t i, const char *at, uint64_t length)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32, .compact = true};
    if (v->element == WW_GGUF_STRING)
        print_string(at, length);
    else
        number_json(&w, NULL, v, i);
}

static void print_elements(const ww_gguf_value *v)
{
    const char *at = v->data;
    putchar('[');
    for (int64_t i = 0; i < v->count && i < SHOWN_ELEMENTS; i++) {
        uint64_t length = 0;
        fputs(i > 0 ? ", " : "", stdout);
        if (v->element == WW_GGUF_STRING) {
            memcpy(&length, at, sizeof length);
            at += sizeof length;
        }
        print_element(v, i, at, length);
        at += length;
    }
    printf("]%s", v->count > SHOWN_ELEMENTS ? " ..." : "");
}

static void print_value(const ww_gguf_value *v)
{
    char kind[32];
    if (v->kind == WW_GGUF_ARRAY)
        snprintf(kind, sizeof kind, "%s[%lld]", ww_gguf_kind_name(v->element), (long long)v->count);
    else
        snprintf(kind, sizeof kind, "%s", ww_gguf_kind_name(v->kind));
    printf("  %-14s ", kind);
    print_plain(stdout, v->key);
    printf(" = ");
    if (v->kind == WW_GGUF_ARRAY)
        print_elements(v);
    else if (v->kind == WW_GGUF_STRING)
        print_string(v->data, v->data_bytes);
    else
        number_json(&(json_writer){.to = stdout, .digits = JSON_DIGITS_F32}, NULL, v, 0);
    putchar('\n');
}

ww_status gguf_print(const ww_gguf *gguf, const char *path)
{
    ww_gguf_info info = ww_gguf_info_default();
    char bytes[32];
    ww_status status = ww_gguf_describe(gguf, &info);
    if (status != WW_OK)
        return status;
    print_plain(stdout, path);
    printf(": GGUF version %d, %lld key%s, %lld tensor%s, %s", info.version, (long long)info.keys, plural(info.keys),
           (long long)info.tensors, plural(info.tensors), human_bytes(bytes, info.data_bytes));
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
