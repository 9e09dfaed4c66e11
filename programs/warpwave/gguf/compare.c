/* How two GGUF files differ: in keys, in tensors, and by how much the numbers of the second differ from the first's.
 *
 * Text is printed line by line as differences are found. JSON is one object at the end, or a failure.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "warpwave/gguf/gguf.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

enum { PIECE_BYTES = 4 << 20 };

typedef struct comparing {
    const gguf_comparison *of;
    json_kept *report; /* NULL: print text */
    int64_t differences;
} comparing;

/* A tensor that both files have: tensor `i` of the first, tensor `j` of the second. */
typedef struct tensor_pair {
    int64_t i, j;
    ww_gguf_tensor x, y;
} tensor_pair;

/* Errors of the second tensor's numbers against the first's. */
typedef struct tensor_error {
    bool known;
    double rmse, max_abs, relative; /* relative: rmse divided by the root mean square of the first tensor */
} tensor_error;

/* '-' only in A, '+' only in B, '!' different. */
static const char *difference_name(char sign)
{
    return sign == '-' ? "missing" : sign == '+' ? "added" : "changed";
}

static void note(comparing *c, char sign, const char *what, const char *name)
{
    c->differences++;
    if (c->report) {
        json_writer *w = &c->report->writer;
        json_open(w, NULL, '{');
        json_put_text(w, what[0] == 'k' ? "key" : "name", name);
        json_put_text(w, "difference", difference_name(sign));
        json_close(w);
        return;
    }
    printf("%c %s ", sign, what);
    print_plain(stdout, name);
    putchar('\n');
}

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

static bool values_equal(const ww_gguf_value *a, const ww_gguf_value *b)
{
    return a->kind == b->kind && a->element == b->element && a->count == b->count && a->data_bytes == b->data_bytes &&
           (a->data_bytes == 0 || memcmp(a->data, b->data, a->data_bytes) == 0);
}

/* Reports keys of `a` that `b` lacks or, with `both`, keys whose values differ. */
static ww_status compare_keys(comparing *c, const ww_gguf *a, const ww_gguf *b, bool both)
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
            note(c, both ? '-' : '+', "key", x.key);
        } else if (both) {
            status = ww_gguf_value_at(b, other, &y);
            if (status == WW_OK && !values_equal(&x, &y))
                note(c, '!', "key", x.key);
        }
    }
    return status;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

/* For unknown types the padding after a tensor counts as part of it, so its size may differ. */
static bool zeros_after(const ww_gguf *g, int64_t index, int64_t from, int64_t bytes)
{
    char piece[4096];
    for (int64_t at = from; at < bytes;) {
        const size_t now = (size_t)min_i64(bytes - at, (int64_t)sizeof piece);
        if (ww_gguf_read(g, index, at, piece, now) != WW_OK)
            return false;
        for (size_t i = 0; i < now; i++)
            if (piece[i] != 0)
                return false;
        at += (int64_t)now;
    }
    return true;
}

static ww_status bytes_equal(const comparing *c, const tensor_pair *p, bool *equal)
{
    char *pieces = memory_alloc(2 * (size_t)PIECE_BYTES);
    if (!pieces)
        return memory_failed("comparing tensors", 2 * (size_t)PIECE_BYTES);
    ww_status status = WW_OK;
    const int64_t bytes = min_i64(p->x.bytes, p->y.bytes);
    *equal = true;
    for (int64_t done = 0; status == WW_OK && *equal && done < bytes; done += PIECE_BYTES) {
        const size_t now = (size_t)min_i64(bytes - done, PIECE_BYTES);
        status = ww_gguf_read(c->of->a, p->i, done, pieces, now);
        if (status == WW_OK)
            status = ww_gguf_read(c->of->b, p->j, done, pieces + PIECE_BYTES, now);
        if (status == WW_OK)
            status = interrupt_check();
        *equal = status != WW_OK || memcmp(pieces, pieces + PIECE_BYTES, now) == 0;
    }
    memory_free(pieces);
    if (status == WW_OK && *equal)
        *equal = zeros_after(c->of->a, p->i, bytes, p->x.bytes) && zeros_after(c->of->b, p->j, bytes, p->y.bytes);
    return status;
}

/* Computes the error if both tensors have the same shape and types that we can decode. */
static ww_status measure_error(const comparing *c, const tensor_pair *p, tensor_error *error)
{
    const ww_gguf_tensor *x = &p->x;
    const gguf_rows rows_a = {c->of->a, p->i, c->of->device}, rows_b = {c->of->b, p->j, c->of->device};
    const int64_t rows = x->shape[1] * x->shape[2] * x->shape[3], cols = x->shape[0];
    const int64_t piece = min_i64(PIECE_BYTES / (cols * (int64_t)sizeof(float)) + 1, rows);
    const size_t count = (size_t)(piece * cols);
    double squares = 0.0, differences = 0.0;
    float *one = memory_alloc(2 * count * sizeof *one), *other = one ? one + count : NULL;
    if (!one)
        return memory_failed("comparing tensors", 2 * count * sizeof *one);
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < rows; done += piece) {
        const int64_t now = min_i64(rows - done, piece);
        status = gguf_decode_rows(&rows_a, done, now, one);
        if (status == WW_OK)
            status = gguf_decode_rows(&rows_b, done, now, other);
        for (int64_t k = 0; status == WW_OK && k < now * cols; k++) {
            const double first = (double)one[k], d = (double)other[k] - first;
            squares += first * first;
            differences += d * d;
            error->max_abs = fabs(d) > error->max_abs || isnan(d) ? fabs(d) : error->max_abs;
        }
        if (status == WW_OK)
            status = interrupt_check();
    }
    memory_free(one);
    const double elements = (double)rows * (double)cols;
    error->known = status == WW_OK;
    error->rmse = sqrt(differences / elements);
    error->relative = squares > 0.0 ? sqrt(differences / squares) : differences > 0.0 ? INFINITY : 0.0;
    return status;
}

static void describe_tensor(const ww_gguf_tensor *t, char *text, size_t capacity)
{
    char type[TYPE_TEXT_BYTES];
    snprintf(text, capacity, "%s", gguf_type_text(t->type, type));
    for (int32_t d = 0; d < t->rank; d++) {
        const size_t used = strlen(text);
        snprintf(text + used, capacity - used, "%s%lld", d > 0 ? " x " : " ", (long long)t->shape[d]);
    }
}

static bool same_shape(const ww_gguf_tensor *x, const ww_gguf_tensor *y)
{
    return x->rank == y->rank && memcmp(x->shape, y->shape, sizeof x->shape) == 0;
}

/* Prints "! tensor NAME: type, f32 256 x 4 and q4_K 256 x 4", and the error on the next line. */
static void print_tensor(const ww_gguf_tensor *x, const ww_gguf_tensor *y, const tensor_error *error)
{
    const bool shapes = !same_shape(x, y);
    char one[112], other[112];
    describe_tensor(x, one, sizeof one);
    describe_tensor(y, other, sizeof other);
    printf("! tensor ");
    print_plain(stdout, x->name);
    if (x->type == y->type && !shapes)
        printf(": data\n");
    else
        printf(": %s%s%s, %s and %s\n", x->type != y->type ? "type" : "", x->type != y->type && shapes ? " and " : "",
               shapes ? "shape" : "", one, other);
    if (error->known)
        printf("    rmse %.6g, max %.6g, relative %.6g\n", error->rmse, error->max_abs, error->relative);
}

static void note_tensor(comparing *c, const ww_gguf_tensor *x, const ww_gguf_tensor *y, const tensor_error *error)
{
    char one[TYPE_TEXT_BYTES], other[TYPE_TEXT_BYTES];
    c->differences++;
    if (!c->report) {
        print_tensor(x, y, error);
        return;
    }
    json_writer *w = &c->report->writer;
    json_open(w, NULL, '{');
    json_put_text(w, "name", x->name);
    json_put_text(w, "difference", "changed");
    json_put_text(w, "type_a", gguf_type_text(x->type, one));
    json_put_text(w, "type_b", gguf_type_text(y->type, other));
    json_put_bool(w, "same_shape", same_shape(x, y));
    if (error->known) {
        json_put_real(w, "rmse", error->rmse);
        json_put_real(w, "max_abs", error->max_abs);
        json_put_real(w, "relative", error->relative);
    }
    json_close(w);
}

static ww_status compare_pair(comparing *c, tensor_pair *p)
{
    const ww_gguf_tensor *x = &p->x, *y = &p->y;
    tensor_error error = {0};
    bool equal = false;
    ww_status status = ww_gguf_tensor_at(c->of->b, p->j, &p->y);
    if (status == WW_OK && x->type == y->type && same_shape(x, y))
        status = bytes_equal(c, p, &equal);
    if (status != WW_OK || equal)
        return status;
    if (same_shape(x, y) && ww_quant_name((ww_quant_type)x->type) && ww_quant_name((ww_quant_type)y->type))
        status = measure_error(c, p, &error);
    if (status == WW_OK)
        note_tensor(c, x, y, &error);
    return status;
}

static ww_status compare_tensors(comparing *c, const ww_gguf *a, const ww_gguf *b, bool both)
{
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(a, &info);
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++) {
        tensor_pair p = {.i = i, .x = ww_gguf_tensor_default(), .y = ww_gguf_tensor_default()};
        status = ww_gguf_tensor_at(a, i, &p.x);
        if (status != WW_OK)
            break;
        if (ww_gguf_find_tensor(b, p.x.name, &p.j) != WW_OK)
            note(c, both ? '-' : '+', "tensor", p.x.name);
        else if (both)
            status = compare_pair(c, &p);
    }
    return status;
}

static ww_status compare_files(comparing *c)
{
    const ww_gguf *a = c->of->a, *b = c->of->b;
    json_writer *w = c->report ? &c->report->writer : NULL;
    if (w) {
        json_open(w, NULL, '{');
        json_open(w, "keys", '[');
    }
    ww_status status = compare_keys(c, a, b, true);
    if (status == WW_OK)
        status = compare_keys(c, b, a, false);
    if (w) {
        json_close(w);
        json_open(w, "tensors", '[');
    }
    if (status == WW_OK)
        status = compare_tensors(c, a, b, true);
    if (status == WW_OK)
        status = compare_tensors(c, b, a, false);
    if (w) {
        json_close(w);
        json_put_integer(w, "differences", c->differences);
        json_close(w);
    }
    return status;
}

ww_status gguf_diff(const gguf_comparison *of, int64_t *differences)
{
    json_kept report = {0};
    comparing c = {.of = of, .report = of->json ? &report : NULL};
    ww_status status = of->json ? json_keep(&report, JSON_DIGITS_F64) : WW_OK;
    if (status == WW_OK)
        status = compare_files(&c);
    if (status == WW_OK && of->json)
        status = json_kept_check(&report);
    if (status == WW_OK && of->json)
        json_kept_print(&report);
    json_kept_free(&report);
    *differences = c.differences;
    return status;
}
