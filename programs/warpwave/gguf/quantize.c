/* Quantizes a model: reads every tensor in pieces of whole rows, decodes and encodes them on the device, and writes them.
 *
 * Vectors, norms and biases, which are small and matter, become or stay f32; integers and a few small matrices are copied.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "warpwave/file_uses.h"
#include "warpwave/gguf/gguf.h"
#include "warpwave/gguf/mix.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

enum { PIECE_BYTES = 16 << 20 }; /* bytes of floats */

/* One run: its options and its totals. */
typedef struct quantizing {
    const gguf_quantization *of;
    mix mix;
    mix_model model;
    ww_gguf_writer *out;
    ww_gguf_info info;
    int64_t bytes_before, bytes_after, elements, again; /* again: tensors that were quantized already */
    const char *again_first;
    json_kept report; /* as JSON, if that was asked for */
} quantizing;

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Small matrices that choose experts or hold positions, and narrow convolutions. Other programs leave them too, and some that
 * run models accept nothing else. */
static bool is_left(const char *name)
{
    static const char *const left[] = {"ffn_gate_inp.weight", "position_embd.weight",  "token_types.weight",
                                       "ssm_conv1d.weight",   "shortconv.conv.weight", "attn_rel_b.weight"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (ends_with(name, left[i]))
            return true;
    return false;
}

/* The new type of a tensor. Copies whatever is not a matrix of a known type. */
static int32_t wanted_type(const quantizing *z, const ww_gguf_tensor *t)
{
    if (!ww_quant_name((ww_quant_type)t->type) || is_left(t->name))
        return t->type;
    if (t->rank == 1 || t->shape[1] * t->shape[2] * t->shape[3] == 1 || ends_with(t->name, ".bias") || strstr(t->name, "norm"))
        return WW_QUANT_F32;
    const ww_quant_type type = mix_type(&z->mix, &z->model, t->name, z->of->pure);
    if (t->shape[0] % ww_quant_block_elements(type) == 0)
        return (int32_t)type;
    return t->shape[0] % ww_quant_block_elements(WW_QUANT_Q8_0) == 0 ? WW_QUANT_Q8_0 : WW_QUANT_F16;
}

/* Prints that a tensor whose rows do not fit becomes another type than was asked for. */
static void say_if_other(const quantizing *z, const ww_gguf_tensor *t, int32_t wanted)
{
    const ww_quant_type type = mix_type(&z->mix, &z->model, t->name, z->of->pure);
    const int64_t block = ww_quant_block_elements(type);
    if (wanted == (int32_t)type || wanted == WW_QUANT_F32 || t->shape[0] % block == 0 || wanted == t->type || !terminal_notes())
        return;
    fprintf(stderr, "warpwave gguf: ");
    print_plain(stderr, t->name);
    fprintf(stderr, ": rows of %lld are not a multiple of %s's block of %lld; it becomes %s\n", (long long)t->shape[0],
            ww_quant_name(type), (long long)block, ww_quant_name((ww_quant_type)wanted));
}

static bool is_coded(int32_t type)
{
    return ww_quant_name((ww_quant_type)type) && ww_quant_block_elements((ww_quant_type)type) > 1;
}

/* Quantizing twice is worse than quantizing floats, and the file does not show it. */
static void say_if_again(const quantizing *z)
{
    if (z->again == 0 || !terminal_notes())
        return;
    fprintf(stderr, "warpwave gguf: warning: %lld tensor%s quantized already (the first is ", (long long)z->again,
            z->again == 1 ? " was" : "s were");
    print_plain(stderr, z->again_first);
    fprintf(stderr, ") and coded again: both errors add up; start from f16, bf16 or f32 where you can\n");
}

/* Adds the tensor's name to a failure. */
static ww_status failed_at(ww_status status, const ww_gguf_tensor *t)
{
    char why[512];
    text_copy(why, sizeof why, ww_error_message());
    return status == WW_OK || status == WW_CANCELLED ? status : ww_fail(status, "tensor '%s': %s", t->name, why);
}

static ww_status copy_values(const ww_gguf *in, ww_gguf_writer *out, uint32_t file_type)
{
    static const char *const ours[] = {"general.alignment", "general.file_type", "general.quantization_version",
                                       "split.no",          "split.count",       "split.tensors.count"};
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(in, &info);
    for (int64_t i = 0; status == WW_OK && i < info.keys; i++) {
        ww_gguf_value v = ww_gguf_value_default();
        bool skip = false;
        status = ww_gguf_value_at(in, i, &v);
        for (size_t k = 0; status == WW_OK && k < sizeof ours / sizeof *ours; k++)
            skip = skip || strcmp(v.key, ours[k]) == 0;
        if (status == WW_OK && !skip)
            status = ww_gguf_writer_value(out, &v);
    }
    if (status == WW_OK && file_type != UINT32_MAX)
        status = ww_gguf_writer_u32(out, "general.file_type", file_type);
    return status == WW_OK ? ww_gguf_writer_u32(out, "general.quantization_version", 2) : status;
}

static ww_status copy_bytes(const ww_gguf *in, int64_t index, int64_t bytes, ww_gguf_writer *out)
{
    char *piece = memory_alloc(PIECE_BYTES);
    if (!piece)
        return memory_failed("copying a tensor", PIECE_BYTES);
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && done < bytes; done += PIECE_BYTES) {
        const size_t now = (size_t)min_i64(bytes - done, PIECE_BYTES);
        status = ww_gguf_read(in, index, done, piece, now);
        if (status == WW_OK)
            status = ww_gguf_writer_data(out, piece, now);
    }
    memory_free(piece);
    return status;
}

/* Some rows on their way through the device: blocks of one type, floats, blocks of another type. */
typedef struct conversion {
    ww_device *device;
    ww_quant_type from, to;
    int64_t cols, from_row_bytes, to_row_bytes;
    float *floats;
    char *blocks; /* room for either type */
} conversion;

static ww_status convert_rows(const conversion *c, int64_t rows)
{
    ww_quant *q = NULL;
    ww_status status = ww_quant_load(c->device, c->from, c->blocks, (size_t)(rows * c->from_row_bytes), rows, c->cols, &q);
    if (status == WW_OK)
        status = ww_quant_read_f32(q, 0, rows, c->floats);
    ww_quant_destroy(q);
    q = NULL;
    if (status == WW_OK)
        status = ww_quant_from_f32(c->device, c->to, c->floats, rows, c->cols, 0, &q);
    if (status == WW_OK)
        status = ww_quant_read_blocks(q, 0, rows, c->blocks);
    ww_quant_destroy(q);
    return status;
}

static ww_status convert_tensor(const quantizing *z, int64_t index, const ww_gguf_tensor *t, ww_quant_type to)
{
    conversion c = {.device = z->of->device, .from = (ww_quant_type)t->type, .to = to, .cols = t->shape[0]};
    const int64_t rows = t->shape[1] * t->shape[2] * t->shape[3];
    ww_status status = ww_quant_row_bytes(c.from, c.cols, &c.from_row_bytes);
    if (status == WW_OK)
        status = ww_quant_row_bytes(c.to, c.cols, &c.to_row_bytes);
    if (status != WW_OK)
        return status;
    const int64_t piece = min_i64(PIECE_BYTES / (c.cols * (int64_t)sizeof(float)) + 1, rows);
    const size_t bytes = (size_t)(piece * c.cols) * sizeof(float); /* no type takes more bytes than f32 */
    c.floats = memory_alloc(bytes);
    c.blocks = memory_alloc(2 * bytes);
    if (!c.floats || !c.blocks)
        status = memory_failed("converting a tensor", 3 * bytes);
    for (int64_t done = 0; status == WW_OK && done < rows; done += piece) {
        const int64_t now = min_i64(rows - done, piece);
        status = ww_gguf_read(z->of->in, index, done * c.from_row_bytes, c.blocks, (size_t)(now * c.from_row_bytes));
        if (status == WW_OK)
            status = convert_rows(&c, now);
        if (status == WW_OK)
            status = ww_gguf_writer_data(z->out, c.blocks, (size_t)(now * c.to_row_bytes));
        if (status == WW_OK)
            status = interrupt_check();
    }
    memory_free(c.floats);
    memory_free(c.blocks);
    return status;
}

static ww_status write_tensors(const quantizing *z, progress *bar)
{
    const ww_gguf *in = z->of->in;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < z->info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        status = ww_gguf_tensor_at(in, i, &t);
        if (status != WW_OK)
            return status;
        const int32_t wanted = wanted_type(z, &t);
        status = wanted == t.type ? copy_bytes(in, i, t.bytes, z->out) : convert_tensor(z, i, &t, (ww_quant_type)wanted);
        status = failed_at(status, &t);
        bar->before += t.bytes;
        if (status == WW_OK && progress_report(0, 0, bar) != 0)
            status = interrupt_check();
    }
    return status;
}

/* ---- the report ---------------------------------------------------------------------------------------------------------- */

static ww_status count_tensor(quantizing *z, const ww_gguf_tensor *t, int32_t wanted)
{
    const int64_t elements = t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
    int64_t bytes = t->bytes, row_bytes = 0;
    ww_status status = WW_OK;
    if (wanted != t->type) {
        status = ww_quant_row_bytes((ww_quant_type)wanted, t->shape[0], &row_bytes);
        bytes = elements / t->shape[0] * row_bytes;
    }
    z->bytes_before += t->bytes;
    z->bytes_after += bytes;
    z->elements += elements;
    if (wanted != t->type && is_coded(t->type) && is_coded(wanted) && z->again++ == 0)
        z->again_first = t->name;
    if (z->of->json) {
        char from[TYPE_TEXT_BYTES], to[TYPE_TEXT_BYTES];
        json_writer *w = &z->report.writer;
        json_open(w, NULL, '{');
        json_put_text(w, "name", t->name);
        json_put_text(w, "from", gguf_type_text(t->type, from));
        json_put_text(w, "to", gguf_type_text(wanted, to));
        json_put_integer(w, "bytes_before", t->bytes);
        json_put_integer(w, "bytes_after", bytes);
        json_close(w);
    }
    return status;
}

static ww_status begin_json(quantizing *z)
{
    const ww_status status = json_keep(&z->report, JSON_DIGITS_F32);
    if (status == WW_OK) {
        json_open(&z->report.writer, NULL, '{');
        json_open(&z->report.writer, "tensors", '[');
    }
    return status;
}

/* The report is complete before the file is created, so it cannot fail once the file exists. */
static ww_status finish_json(quantizing *z)
{
    const double elements = z->elements > 0 ? (double)z->elements : 1.0;
    json_writer *w = &z->report.writer;
    json_close(w); /* tensors */
    json_put_text(w, "type", z->mix.name);
    json_put_bool(w, "pure", z->of->pure);
    json_put_integer(w, "bytes_before", z->bytes_before);
    json_put_integer(w, "bytes_after", z->bytes_after);
    json_put_real(w, "bits_before", 8.0 * (double)z->bytes_before / elements);
    json_put_real(w, "bits_after", 8.0 * (double)z->bytes_after / elements);
    json_put_integer(w, "requantized", z->again);
    json_close(w);
    return json_kept_check(&z->report);
}

static void report(const quantizing *z)
{
    const gguf_quantization *q = z->of;
    char before[32], after[32];
    const double elements = z->elements > 0 ? (double)z->elements : 1.0;
    FILE *to = strcmp(q->out_path, "-") == 0 ? stderr : stdout;
    if (q->json) {
        json_kept_print(&z->report);
    } else if (to == stdout || terminal_notes()) {
        print_plain(to, q->in_path);
        fprintf(to, ": %s, %.2f bits a weight; ", human_bytes(before, z->bytes_before),
                8.0 * (double)z->bytes_before / elements);
        print_plain(to, q->out_path);
        fprintf(to, " as %s: %s, %.2f bits a weight\n", z->mix.name, human_bytes(after, z->bytes_after),
                8.0 * (double)z->bytes_after / elements);
    }
}

ww_status gguf_quantize_check(const char *type)
{
    mix m;
    return mix_find(type, &m);
}

static ww_status describe_tensors(quantizing *z)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < z->info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        status = ww_gguf_tensor_at(z->of->in, i, &t);
        if (status != WW_OK)
            break;
        const int32_t wanted = wanted_type(z, &t);
        say_if_other(z, &t, wanted);
        status = count_tensor(z, &t, wanted);
        t.type = wanted;
        if (status == WW_OK)
            status = ww_gguf_writer_tensor(z->out, &t);
    }
    return status;
}

ww_status gguf_quantize(const gguf_quantization *q)
{
    quantizing z = {.of = q, .info = ww_gguf_info_default()};
    ww_status status = mix_find(q->type, &z.mix);
    if (status == WW_OK && q->json)
        status = begin_json(&z);
    if (status == WW_OK && q->pure)
        z.mix = mix_pure(&z.mix);
    if (status == WW_OK)
        status = ww_gguf_describe(q->in, &z.info);
    if (status == WW_OK)
        status = ww_gguf_writer_create(&z.out);
    if (status == WW_OK)
        status = copy_values(q->in, z.out, z.mix.file_type);
    mix_model_read(q->in, &z.model);
    if (status == WW_OK)
        status = describe_tensors(&z);
    if (status == WW_OK && q->json)
        status = finish_json(&z);
    if (status == WW_OK) {
        say_if_again(&z);
        status = ww_gguf_writer_open(z.out, output_path(q->out_path));
    }
    if (status == WW_OK) {
        progress bar;
        progress_begin(&bar, "quantizing", z.info.data_bytes);
        status = write_tensors(&z, &bar);
        progress_end(&bar);
    }
    if (status == WW_OK)
        status = ww_gguf_writer_finish(z.out);
    ww_gguf_writer_destroy(z.out);
    if (status == WW_OK)
        report(&z);
    json_kept_free(&z.report);
    return status;
}
