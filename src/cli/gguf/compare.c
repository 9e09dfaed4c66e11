/* How two GGUF files differ, and whether the data of one can be read and is finite. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "cli/gguf/gguf.h"
#include "cli/terminal.h"

enum { PIECE_BYTES = 4 << 20 };

/* ---- differences ------------------------------------------------------------------------------------------------------------
 */

static void print_difference(char sign, const char *what, const char *name, const char *how)
{
    printf("%c %s ", sign, what);
    print_plain(stdout, name);
    printf("%s\n", how);
}

static bool values_equal(const ww_gguf_value *a, const ww_gguf_value *b)
{
    return a->kind == b->kind && a->element == b->element && a->count == b->count && a->data_bytes == b->data_bytes &&
           (a->data_bytes == 0 || memcmp(a->data, b->data, a->data_bytes) == 0);
}

/* Keys of `a` that `b` lacks or has otherwise; the latter only if `both`. */
static ww_status compare_keys(const ww_gguf *a, const ww_gguf *b, char sign, bool both, int64_t *differences)
{
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(a, &info);
    for (int64_t i = 0; status == WW_OK && i < info.keys; i++) {
        ww_gguf_value x = ww_gguf_value_default(), y = ww_gguf_value_default();
        int64_t other = 0;
        status = ww_gguf_value_at(a, i, &x);
        if (status != WW_OK)
            break;
        if (ww_gguf_find_value(b, x.key, &other) != WW_OK) {
            print_difference(sign, "key", x.key, "");
            ++*differences;
        } else if (both) {
            status = ww_gguf_value_at(b, other, &y);
            if (status == WW_OK && !values_equal(&x, &y)) {
                print_difference('!', "key", x.key, "");
                ++*differences;
            }
        }
    }
    return status;
}

static ww_status data_equal(const ww_gguf *a, int64_t i, const ww_gguf *b, int64_t j, int64_t bytes, bool *equal)
{
    char *pieces = memory_alloc(2 * (size_t)PIECE_BYTES);
    if (!pieces)
        return memory_failed("comparing tensors", 2 * (size_t)PIECE_BYTES);
    ww_status status = WW_OK;
    *equal = true;
    for (int64_t done = 0; status == WW_OK && *equal && done < bytes; done += PIECE_BYTES) {
        const size_t now = (size_t)min_i64(bytes - done, PIECE_BYTES);
        status = ww_gguf_read(a, i, done, pieces, now);
        if (status == WW_OK)
            status = ww_gguf_read(b, j, done, pieces + PIECE_BYTES, now);
        if (status == WW_OK)
            status = interrupt_check();
        *equal = status != WW_OK || memcmp(pieces, pieces + PIECE_BYTES, now) == 0;
    }
    memory_free(pieces);
    return status;
}

static void describe_tensor(const ww_gguf_tensor *t, char *text, size_t capacity)
{
    snprintf(text, capacity, "%s", ww_gguf_type_name(t->type));
    for (int32_t d = 0; d < t->rank; d++) {
        const size_t used = strlen(text);
        snprintf(text + used, capacity - used, "%s%lld", d > 0 ? " x " : " ", (long long)t->shape[d]);
    }
}

/* ": type, f32 256 x 4 and q4_K 256 x 4" */
static void describe_difference(const ww_gguf_tensor *x, const ww_gguf_tensor *y, char *text, size_t capacity)
{
    const bool shapes = x->rank != y->rank || memcmp(x->shape, y->shape, sizeof x->shape) != 0;
    char one[112], other[112];
    describe_tensor(x, one, sizeof one);
    describe_tensor(y, other, sizeof other);
    snprintf(text, capacity, ": %s%s%s, %s and %s", x->type != y->type ? "type" : "",
             x->type != y->type && shapes ? " and " : "", shapes ? "shape" : "", one, other);
}

static ww_status compare_tensors(const ww_gguf *a, const ww_gguf *b, char sign, bool both, int64_t *differences)
{
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(a, &info);
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++) {
        ww_gguf_tensor x = ww_gguf_tensor_default(), y = ww_gguf_tensor_default();
        int64_t other = 0;
        bool equal = true;
        status = ww_gguf_tensor_at(a, i, &x);
        if (status != WW_OK)
            break;
        if (ww_gguf_find_tensor(b, x.name, &other) != WW_OK) {
            print_difference(sign, "tensor", x.name, "");
            ++*differences;
            continue;
        }
        if (!both)
            continue;
        status = ww_gguf_tensor_at(b, other, &y);
        if (status == WW_OK && (x.type != y.type || x.rank != y.rank || memcmp(x.shape, y.shape, sizeof x.shape) != 0)) {
            char how[256];
            describe_difference(&x, &y, how, sizeof how);
            print_difference('!', "tensor", x.name, how);
            ++*differences;
        } else if (status == WW_OK) {
            status = data_equal(a, i, b, other, x.bytes, &equal);
            if (!equal)
                print_difference('!', "tensor", x.name, ": data");
            *differences += !equal;
        }
    }
    return status;
}

ww_status gguf_compare(const ww_gguf *a, const ww_gguf *b, int64_t *differences)
{
    ww_status status = compare_keys(a, b, '-', true, differences);
    if (status == WW_OK)
        status = compare_keys(b, a, '+', false, differences);
    if (status == WW_OK)
        status = compare_tensors(a, b, '-', true, differences);
    return status == WW_OK ? compare_tensors(b, a, '+', false, differences) : status;
}

/* ---- verifying --------------------------------------------------------------------------------------------------------------
 */

/* How many of a matrix's numbers are not finite. */
static ww_status count_bad(const ww_quant *q, int64_t *bad)
{
    ww_quant_info info = ww_quant_info_default();
    ww_status status = ww_quant_describe(q, &info);
    if (status != WW_OK)
        return status;
    const int64_t rows = PIECE_BYTES / (info.cols * (int64_t)sizeof(float)) + 1;
    float *values = memory_alloc((size_t)(rows * info.cols) * sizeof *values);
    if (!values)
        return memory_failed("decoding rows", (size_t)(rows * info.cols) * sizeof *values);
    for (int64_t done = 0; status == WW_OK && done < info.rows; done += rows) {
        const int64_t now = min_i64(info.rows - done, rows);
        status = ww_quant_read_f32(q, done, now, values);
        for (int64_t i = 0; status == WW_OK && i < now * info.cols; i++)
            *bad += !isfinite(values[i]);
    }
    memory_free(values);
    return status;
}

ww_status gguf_verify(const ww_gguf *gguf, ww_device *device)
{
    ww_gguf_info info = ww_gguf_info_default();
    int64_t wrong = 0, checked = 0, first_bad = 0;
    const char *first = "";
    ww_status status = ww_gguf_describe(gguf, &info);
    progress bar;
    progress_begin(&bar, "reading tensors", info.data_bytes);
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        ww_quant *q = NULL;
        int64_t bad = 0;
        status = ww_gguf_tensor_at(gguf, i, &t);
        if (status == WW_OK && ww_quant_name((ww_quant_type)t.type)) {
            status = ww_gguf_load(gguf, i, device, progress_report, &bar, &q);
            if (status == WW_OK)
                status = count_bad(q, &bad);
            checked++;
        }
        ww_quant_destroy(q);
        bar.before += t.bytes;
        if (bad > 0 && wrong++ == 0) {
            first = t.name;
            first_bad = bad;
        }
    }
    progress_end(&bar);
    if (status == WW_OK && wrong > 0)
        return ww_fail(WW_CORRUPT_FILE,
                       "%lld of %lld tensors have numbers that are not finite; the first is '%s', with %lld of them",
                       (long long)wrong, (long long)info.tensors, first, (long long)first_bad);
    if (status == WW_OK)
        printf("%lld keys and %lld tensors are sound; the numbers of %lld tensors are finite\n", (long long)info.keys,
               (long long)info.tensors, (long long)checked);
    return status;
}
