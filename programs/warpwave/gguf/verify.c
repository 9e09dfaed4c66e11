/* Checks that the data of a GGUF file can be read and is finite. */
#include <math.h>
#include <stdio.h>

#include "base/integers.h"
#include "base/memory.h"
#include "warpwave/gguf/gguf.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

enum { PIECE_BYTES = 4 << 20 };

typedef struct verification {
    const ww_gguf *gguf;
    ww_device *device;
    progress bar;
    int64_t decoded, plain, unknown; /* tensors: with numbers that were checked; of integers and f64; of unknown types */
    int64_t wrong, first_bad;        /* tensors with numbers that are not finite; how many such numbers the first of them has */
    const char *first;
} verification;

/* Counts the numbers of a tensor that are not finite. */
static ww_status count_bad(verification *v, int64_t index, const ww_gguf_tensor *t, int64_t *bad)
{
    const int64_t rows = t->shape[1] * t->shape[2] * t->shape[3], cols = t->shape[0];
    const int64_t piece = min_i64(PIECE_BYTES / (cols * (int64_t)sizeof(float)) + 1, rows);
    const gguf_rows of = {v->gguf, index, v->device};
    float *values = memory_alloc((size_t)(piece * cols) * sizeof *values);
    if (!values)
        return memory_failed("decoding rows", (size_t)(piece * cols) * sizeof *values);
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < rows; done += piece) {
        const int64_t now = min_i64(rows - done, piece);
        status = gguf_decode_rows(&of, done, now, values);
        for (int64_t i = 0; status == WW_OK && i < now * cols; i++)
            *bad += !isfinite(values[i]);
        if (status == WW_OK && progress_report(t->bytes / rows * done, 0, &v->bar) != 0)
            status = interrupt_check();
    }
    memory_free(values);
    return status;
}

/* Checks that all bytes of a tensor that we cannot decode are there. */
static ww_status read_bytes(verification *v, int64_t index, const ww_gguf_tensor *t)
{
    char *piece = memory_alloc(PIECE_BYTES);
    if (!piece)
        return memory_failed("reading a tensor", PIECE_BYTES);
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < t->bytes; done += PIECE_BYTES) {
        status = ww_gguf_read(v->gguf, index, done, piece, (size_t)min_i64(t->bytes - done, PIECE_BYTES));
        if (status == WW_OK && progress_report(done, 0, &v->bar) != 0)
            status = interrupt_check();
    }
    memory_free(piece);
    return status;
}

static ww_status verify_tensor(verification *v, int64_t index)
{
    ww_gguf_tensor t = ww_gguf_tensor_default();
    int64_t bad = 0;
    ww_status status = ww_gguf_tensor_at(v->gguf, index, &t);
    if (status != WW_OK)
        return status;
    if (ww_quant_name((ww_quant_type)t.type)) {
        status = count_bad(v, index, &t, &bad);
        v->decoded++;
    } else {
        status = read_bytes(v, index, &t);
        v->plain += ww_gguf_type_name(t.type) != NULL;
        v->unknown += ww_gguf_type_name(t.type) == NULL;
    }
    v->bar.before += t.bytes;
    if (bad > 0 && v->wrong++ == 0) {
        v->first = t.name;
        v->first_bad = bad;
    }
    return status;
}

ww_status gguf_verify(const ww_gguf *gguf, ww_device *device, bool json)
{
    verification v = {.gguf = gguf, .device = device, .first = ""};
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(gguf, &info);
    progress_begin(&v.bar, "reading tensors", info.data_bytes);
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++)
        status = verify_tensor(&v, i);
    progress_end(&v.bar);
    if (status == WW_OK && v.wrong > 0)
        return ww_fail(WW_CORRUPT_FILE,
                       "%lld of %lld tensors have numbers that are not finite; the first is '%s', with %lld of them",
                       (long long)v.wrong, (long long)info.tensors, v.first, (long long)v.first_bad);
    if (status != WW_OK)
        return status;
    if (json) {
        json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
        json_open(&w, NULL, '{');
        json_put_bool(&w, "sound", true);
        json_put_integer(&w, "keys", info.keys);
        json_put_integer(&w, "tensors", info.tensors);
        json_put_integer(&w, "decoded", v.decoded);
        json_put_integer(&w, "unknown_types", v.unknown);
        json_close(&w);
        return WW_OK;
    }
    printf("%lld key%s and %lld tensor%s are sound; the numbers of %lld tensor%s are finite\n", (long long)info.keys,
           plural(info.keys), (long long)info.tensors, plural(info.tensors), (long long)v.decoded, plural(v.decoded));
    if (v.unknown > 0)
        printf("tensors of an unknown type, whose bytes were read: %lld\n", (long long)v.unknown);
    return status;
}
