/* Loading tensors by their names.
 *
 * Reading a tensor shows whether all its numbers are finite (ww_quant_info). If they may not be, or the format does not show
 * it, rows are decoded piece by piece on the device and summed: a sum is finite only if all its terms are. (If a sum of finite
 * weights overflows, the model could not be computed anyway.)
 */
#include "model/weights_loader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <warpwave/tensor_rows.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/status.h"
#include "quant/matrix.h"

enum { CHECKED_ELEMENTS = 1 << 22 };

static int tell(int64_t done, int64_t total, void *user)
{
    (void)total;
    const loader *l = user;
    return progress_tell(l->source->progress, l->source->progress_user, l->bytes_before + done, l->bytes_total);
}

static ww_status refuse_shape(const ww_gguf_tensor *t, const wanted *want)
{
    char found[128] = "";
    for (int32_t d = 0; d < t->rank; d++)
        snprintf(found + strlen(found), sizeof found - strlen(found), d ? ", %lld" : "%lld", (long long)t->shape[d]);
    if (want->experts)
        return ww_fail(WW_CORRUPT_FILE, "tensor '%s' has shape [%s]; the metadata says [%lld, %lld, %lld]", t->name, found,
                       (long long)want->cols, (long long)want->rows, (long long)want->experts);
    if (want->rows)
        return ww_fail(WW_CORRUPT_FILE, "tensor '%s' has shape [%s]; the metadata says [%lld, %lld]", t->name, found,
                       (long long)want->cols, (long long)want->rows);
    return ww_fail(WW_CORRUPT_FILE, "tensor '%s' has shape [%s]; the metadata says [%lld]", t->name, found,
                   (long long)want->cols);
}

/* Finds a tensor and compares it with what is wanted; index -1: it is optional and missing. */
static ww_status find(loader *l, const wanted *want, int64_t *index)
{
    ww_gguf_tensor t = ww_gguf_tensor_default();
    *index = -1;
    if (ww_gguf_find_tensor(l->source->gguf, want->name, index) != WW_OK) {
        *index = -1;
        return want->optional ? WW_OK
                              : ww_fail(WW_CORRUPT_FILE, "tensor '%s' is missing; a model of architecture %s has it",
                                        want->name, l->source->architecture->name);
    }
    const ww_status status = ww_gguf_tensor_at(l->source->gguf, *index, &t);
    if (status != WW_OK)
        return status;
    if (t.rank > (want->experts ? 3 : 2) || t.shape[2] != (want->experts ? want->experts : 1) || t.shape[0] != want->cols ||
        t.shape[1] != (want->rows ? want->rows : 1) || (!want->rows && t.rank != 1))
        return refuse_shape(&t, want);
    if (t.type == WW_QUANT_Q8_1 || t.type == WW_QUANT_Q8_K)
        return ww_fail(WW_UNSUPPORTED, "tensor '%s' is %s, a type for activations", t.name, ww_gguf_type_name(t.type));
    l->used[*index] = true;
    l->w->parameters += t.shape[0] * t.shape[1] * t.shape[2];
    l->w->bytes += t.bytes;
    return WW_OK;
}

static ww_status check_finite(const char *name, const ww_quant *matrix, int64_t rows, int64_t cols)
{
    const int64_t together = max_i64(1, CHECKED_ELEMENTS / cols);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < rows; first += together) {
        const int64_t count = min_i64(together, rows - first);
        float sum = NAN;
        ww_tensor decoded = {0}, total = {0};
        status = ww_quant_dequantize(matrix, first, count, WW_F32, &decoded);
        if (status == WW_OK)
            status = ww_tensor_reduce(WW_REDUCE_SUM, &decoded, NULL, 0, &total);
        if (status == WW_OK)
            status = ww_tensor_to_host(&total, &sum);
        ww_tensor_release(&total);
        ww_tensor_release(&decoded);
        if (status == WW_OK && !isfinite(sum))
            status = ww_fail(WW_CORRUPT_FILE, "tensor '%s' has weights that are not finite, in rows %lld to %lld", name,
                             (long long)first, (long long)(first + count - 1));
    }
    return status;
}

/* Loads a tensor of the file as a matrix; stays NULL if it is optional and missing. */
ww_status loader_matrix(loader *l, const wanted *want, ww_quant **out)
{
    int64_t index;
    ww_status status = find(l, want, &index);
    if (status != WW_OK || index < 0)
        return status;
    status = ww_gguf_load(l->source->gguf, index, l->source->device, l->source->progress ? tell : NULL, l, out);
    if (status != WW_OK)
        return status;
    ww_quant_info info = ww_quant_info_default();
    status = ww_quant_describe(*out, &info);
    l->bytes_before += info.bytes;
    l->w->bytes_mapped += (*out)->memory->map ? info.bytes : 0;
    return status == WW_OK && !info.finite ? check_finite(want->name, *out, info.rows, info.cols) : status;
}

ww_status loader_vector(loader *l, const wanted *want, ww_tensor *out)
{
    const int64_t mapped = l->w->bytes_mapped;
    ww_quant *matrix = NULL;
    ww_status status = loader_matrix(l, want, &matrix);
    l->w->bytes_mapped = mapped; /* `out` is a copy */
    if (status == WW_OK && matrix)
        status = ww_quant_dequantize(matrix, 0, 1, WW_F32, out);
    if (status == WW_OK && matrix)
        status = ww_tensor_squeeze(out, 0, out);
    ww_quant_destroy(matrix);
    return status;
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

const char *loader_name(char *to, int32_t layer, const char *what, const char *ending)
{
    if (layer < 0)
        snprintf(to, LOADER_NAME_BYTES, "%s.%s", what, ending);
    else
        snprintf(to, LOADER_NAME_BYTES, "blk.%d.%s.%s", (int)layer, what, ending);
    return to;
}

ww_status loader_norm(loader *l, norm_name n, norm *out)
{
    char name[LOADER_NAME_BYTES];
    ww_status status =
        loader_vector(l, &(wanted){.name = loader_name(name, n.layer, n.what, "weight"), .cols = n.size}, &out->weight);
    if (status == WW_OK && n.biased)
        status = loader_vector(l, &(wanted){.name = loader_name(name, n.layer, n.what, "bias"), .cols = n.size}, &out->bias);
    return status;
}

ww_status loader_linear(loader *l, linear_name n, linear *out)
{
    char name[LOADER_NAME_BYTES];
    const wanted matrix = {.name = loader_name(name, n.layer, n.what, "weight"), .rows = n.rows, .cols = n.cols};
    ww_status status = loader_matrix(l, &matrix, &out->matrix);
    const wanted bias = {.name = loader_name(name, n.layer, n.what, "bias"), .cols = n.rows, .optional = !n.biased};
    return status == WW_OK ? loader_vector(l, &bias, &out->bias) : status;
}

/* ---- several matrices as one --------------------------------------------------------------------------------------------- */

/* Matrices that are multiplied with the same activations become one if their types are equal: a third of the launches and
 * barriers, and the same bits. */

/* Do all parts exist, with one type and without biases? */
bool loader_can_join(const loader *l, const joined_name *n)
{
    char name[LOADER_NAME_BYTES];
    int32_t type = -1;
    for (int32_t i = 0; i < n->count; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        int64_t index;
        if (ww_gguf_find_tensor(l->source->gguf, loader_name(name, n->layer, n->parts[i].what, "bias"), &index) == WW_OK ||
            ww_gguf_find_tensor(l->source->gguf, loader_name(name, n->layer, n->parts[i].what, "weight"), &index) != WW_OK ||
            ww_gguf_tensor_at(l->source->gguf, index, &t) != WW_OK || (type >= 0 && t.type != type) ||
            !ww_quant_name((ww_quant_type)t.type))
            return false;
        type = t.type;
    }
    return true;
}

/* If it is not known that all parts are finite, finds the one that is not. */
static ww_status check_parts(const joined_name *n, const ww_quant *matrix)
{
    char name[LOADER_NAME_BYTES];
    int64_t first = 0;
    ww_status status = WW_OK;
    for (int32_t i = 0; i < n->count && status == WW_OK; i++) {
        ww_quant *part = NULL;
        status = ww_quant_view(matrix, first, n->parts[i].rows, &part);
        if (status == WW_OK)
            status = check_finite(loader_name(name, n->layer, n->parts[i].what, "weight"), part, n->parts[i].rows, n->cols);
        ww_quant_destroy(part);
        first += n->parts[i].rows;
    }
    return status;
}

ww_status loader_joined(loader *l, const joined_name *n, linear *out)
{
    char name[LOADER_NAME_BYTES];
    int64_t indices[JOINED_MAX];
    ww_quant_info info = ww_quant_info_default();
    ww_status status = WW_OK;
    for (int32_t i = 0; i < n->count && status == WW_OK; i++) {
        const wanted want = {
            .name = loader_name(name, n->layer, n->parts[i].what, "weight"), .rows = n->parts[i].rows, .cols = n->cols};
        status = find(l, &want, &indices[i]);
    }
    const weights_source *s = l->source;
    if (status == WW_OK)
        status = ww_gguf_load_joined(s->gguf, indices, n->count, s->device, s->progress ? tell : NULL, l, &out->matrix);
    if (status == WW_OK)
        status = ww_quant_describe(out->matrix, &info);
    l->bytes_before += info.bytes;
    l->w->bytes_mapped += out->matrix && out->matrix->memory->map ? info.bytes : 0;
    return status == WW_OK && !info.finite ? check_parts(n, out->matrix) : status;
}
