/* Any bytes as a GGUF file: refused with a message that names the file, or opened. Then everything that it describes is inside
 * the file, can be found by name, and can be read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* At most the getters of a value's kind return it, and none reads outside the file. */
static void fuzz_gguf_getters(const ww_gguf *g, const ww_gguf_value *v)
{
    uint64_t u;
    int64_t i, count = 0, integers[8];
    double f, reals[8];
    int32_t flag = 0;
    const char *text = NULL;
    size_t bytes = 0;
    ww_gguf_span spans[8];
    const int given =
        (ww_gguf_u64(g, v->key, &u) == WW_OK) + (ww_gguf_i64(g, v->key, &i) == WW_OK) + (ww_gguf_f64(g, v->key, &f) == WW_OK);
    if (ww_gguf_bool(g, v->key, &flag) == WW_OK && flag != 0 && flag != 1)
        abort();
    if ((ww_gguf_text(g, v->key, &text, &bytes) == WW_OK) != (v->kind == WW_GGUF_STRING) || (text && text[bytes] != 0))
        abort();
    if (given > 0 && (v->kind == WW_GGUF_STRING || v->kind == WW_GGUF_ARRAY))
        abort();
    if (ww_gguf_i64s(g, v->key, integers, 8, &count) == WW_OK && count > 8)
        abort();
    if (ww_gguf_f64s(g, v->key, reals, 8, &count) == WW_OK && count > 8)
        abort();
    if (ww_gguf_texts(g, v->key, spans, 8, &count) == WW_OK)
        for (int64_t k = 0; k < count; k++)
            if (spans[k].bytes > 0 && memchr(spans[k].text, 0, spans[k].bytes) == spans[k].text + spans[k].bytes)
                abort();
}

static void fuzz_gguf_values(const ww_gguf *g, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        ww_gguf_value v = ww_gguf_value_default();
        int64_t found = -1;
        if (ww_gguf_value_at(g, i, &v) != WW_OK || ww_gguf_find_value(g, v.key, &found) != WW_OK || found != i)
            abort();
        volatile unsigned char last = 0; /* every byte must be readable */
        for (size_t k = 0; k < v.data_bytes; k++)
            last = ((const unsigned char *)v.data)[k];
        (void)last;
        if (!ww_gguf_kind_name(v.kind) || v.count < 0)
            abort();
        fuzz_gguf_getters(g, &v);
    }
}

static void fuzz_gguf_tensors(const ww_gguf *g, int64_t count, size_t size)
{
    for (int64_t i = 0; i < count; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        int64_t found = -1;
        if (ww_gguf_tensor_at(g, i, &t) != WW_OK || ww_gguf_find_tensor(g, t.name, &found) != WW_OK || found != i)
            abort();
        if (t.offset < 0 || t.bytes < 1 || (uint64_t)t.bytes > size || (uint64_t)t.offset > size - (uint64_t)t.bytes)
            abort();
        char *data = malloc((size_t)t.bytes);
        if (!data || ww_gguf_read(g, i, 0, data, (size_t)t.bytes) != WW_OK ||
            ww_gguf_read(g, i, 1, data, (size_t)t.bytes) != WW_OUT_OF_RANGE)
            abort();
        free(data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ww_gguf *g = NULL;
    ww_gguf_info info = ww_gguf_info_default();
    const ww_status status = gguf_open_bytes("fuzz.gguf", bytes, size, &g);
    if (status != WW_OK) {
        if (g || (status != WW_CORRUPT_FILE && status != WW_UNSUPPORTED) ||
            strncmp(ww_error_message(), "fuzz.gguf: offset ", 18) != 0)
            abort();
        return 0;
    }
    if (ww_gguf_describe(g, &info) != WW_OK || info.data_bytes > (int64_t)size)
        abort();
    fuzz_gguf_values(g, info.keys);
    fuzz_gguf_tensors(g, info.tensors, size);
    ww_gguf_close(g);
    return 0;
}
