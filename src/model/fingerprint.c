/* The fingerprint of a model file: all small parts, and samples of the large ones, so that the file need not be read twice. */
#include "model/fingerprint.h"

#include <stdio.h>
#include <string.h>

#include "base/integers.h"

enum { SAMPLES = 8, SAMPLE_BYTES = 256 };

fingerprint fingerprint_begin(void)
{
    return (fingerprint){0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
}

static void add_word(fingerprint *f, uint64_t word)
{
    f->a = (f->a ^ word) * 0xff51afd7ed558ccdu;
    f->a ^= f->a >> 32;
    f->b = (f->b + word) * 0xc4ceb9fe1a85ec53u;
    f->b = (f->b << 31 | f->b >> 33) ^ f->a;
}

void fingerprint_add(fingerprint *f, const void *bytes, size_t count)
{
    const unsigned char *from = bytes;
    uint64_t word;
    add_word(f, count);
    for (; count >= sizeof word; count -= sizeof word, from += sizeof word) {
        memcpy(&word, from, sizeof word);
        add_word(f, word);
    }
    word = 0;
    memcpy(&word, from, count);
    add_word(f, word);
}

static ww_status add_tensor(fingerprint *f, const ww_gguf *gguf, int64_t index)
{
    unsigned char sample[SAMPLE_BYTES];
    ww_gguf_tensor t = ww_gguf_tensor_default();
    ww_status status = ww_gguf_tensor_at(gguf, index, &t);
    if (status != WW_OK)
        return status;
    fingerprint_add(f, t.name, strlen(t.name));
    fingerprint_add(f, &t.type, sizeof t.type);
    fingerprint_add(f, t.shape, sizeof t.shape);
    const int64_t size = min_i64(t.bytes, SAMPLE_BYTES), span = t.bytes - size;
    for (int64_t i = 0; i < SAMPLES && status == WW_OK; i++) {
        status = ww_gguf_read(gguf, index, span / (SAMPLES - 1) * i, sample, (size_t)size);
        if (status == WW_OK)
            fingerprint_add(f, sample, (size_t)size);
    }
    return status;
}

ww_status fingerprint_of(const ww_gguf *gguf, char text[FINGERPRINT_TEXT])
{
    fingerprint f = fingerprint_begin();
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(gguf, &info);
    for (int64_t i = 0; status == WW_OK && i < info.keys; i++) {
        ww_gguf_value value = ww_gguf_value_default();
        status = ww_gguf_value_at(gguf, i, &value);
        if (status != WW_OK)
            break;
        fingerprint_add(&f, value.key, strlen(value.key));
        fingerprint_add(&f, value.data, value.data_bytes);
    }
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++)
        status = add_tensor(&f, gguf, i);
    snprintf(text, FINGERPRINT_TEXT, "%016llx%016llx", (unsigned long long)f.a, (unsigned long long)f.b);
    return status;
}
