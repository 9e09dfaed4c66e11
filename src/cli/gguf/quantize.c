/* A model anew with smaller weights: every tensor is read in pieces of whole rows, decoded and coded on the device, and
 * written.
 *
 * Vectors, norms and biases, which are small and matter, become or stay f32; integers and a few small matrices are copied.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/gguf/gguf.h"
#include "cli/terminal.h"

enum { PIECE_BYTES = 16 << 20 }; /* of floats */

/* general.file_type of a model that is mostly of a type, as other readers know it; they show it and look at the tensors. */
static const struct {
    ww_quant_type type;
    uint32_t number;
} file_types[] = {{WW_QUANT_F32, 0},   {WW_QUANT_F16, 1},   {WW_QUANT_Q4_0, 2},  {WW_QUANT_Q4_1, 3},  {WW_QUANT_Q8_0, 7},
                  {WW_QUANT_Q5_0, 8},  {WW_QUANT_Q5_1, 9},  {WW_QUANT_Q2_K, 10}, {WW_QUANT_Q3_K, 11}, {WW_QUANT_Q4_K, 14},
                  {WW_QUANT_Q5_K, 16}, {WW_QUANT_Q6_K, 18}, {WW_QUANT_BF16, 32}};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Small matrices that choose experts or stand for places, and narrow convolutions: other programs leave them, too, and some
 * that run models take them no other way. */
static bool is_left(const char *name)
{
    static const char *const left[] = {"ffn_gate_inp.weight", "position_embd.weight",  "token_types.weight",
                                       "ssm_conv1d.weight",   "shortconv.conv.weight", "attn_rel_b.weight"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (ends_with(name, left[i]))
            return true;
    return false;
}

/* What a tensor becomes. */
static int32_t wanted_type(const ww_gguf_tensor *t, ww_quant_type type)
{
    if (!ww_quant_name((ww_quant_type)t->type) || is_left(t->name))
        return t->type;
    if (t->rank == 1 || t->shape[1] * t->shape[2] * t->shape[3] == 1 || ends_with(t->name, ".bias") || strstr(t->name, "norm"))
        return WW_QUANT_F32;
    if (t->shape[0] % ww_quant_block_elements(type) == 0)
        return (int32_t)type;
    return t->shape[0] % ww_quant_block_elements(WW_QUANT_Q8_0) == 0 ? WW_QUANT_Q8_0 : WW_QUANT_F16;
}

/* Says of a tensor whose rows do not fit that it becomes another type than was asked for. */
static void say_if_other(const ww_gguf_tensor *t, ww_quant_type type, int32_t wanted)
{
    const int64_t block = ww_quant_block_elements(type);
    if (wanted == (int32_t)type || wanted == WW_QUANT_F32 || t->shape[0] % block == 0 || wanted == t->type)
        return;
    fprintf(stderr, "warpwave gguf: ");
    print_plain(stderr, t->name);
    fprintf(stderr, ": rows of %lld are no multiple of %s's block of %lld; it becomes %s\n", (long long)t->shape[0],
            ww_quant_name(type), (long long)block, ww_quant_name((ww_quant_type)wanted));
}

/* The same failure with the tensor in it. */
static ww_status failed_at(ww_status status, const ww_gguf_tensor *t)
{
    char why[512];
    text_copy(why, sizeof why, ww_error_message());
    return status == WW_OK || status == WW_CANCELLED ? status : ww_fail(status, "tensor '%s': %s", t->name, why);
}

static ww_status copy_values(const ww_gguf *in, ww_gguf_writer *out, ww_quant_type type)
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
    for (size_t k = 0; status == WW_OK && k < sizeof file_types / sizeof *file_types; k++)
        if (file_types[k].type == type)
            status = ww_gguf_writer_u32(out, "general.file_type", file_types[k].number);
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

/* Some rows: blocks of one type on the host, floats, blocks of another, all through the device. */
typedef struct conversion {
    ww_device *device;
    ww_quant_type from, to;
    int64_t cols, from_row_bytes, to_row_bytes;
    float *floats;
    char *blocks; /* of either type */
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

static ww_status convert_tensor(const ww_gguf *in, int64_t index, const ww_gguf_tensor *t, ww_quant_type to, ww_device *device,
                                ww_gguf_writer *out)
{
    conversion c = {.device = device, .from = (ww_quant_type)t->type, .to = to, .cols = t->shape[0]};
    const int64_t rows = t->shape[1] * t->shape[2] * t->shape[3];
    ww_status status = ww_quant_row_bytes(c.from, c.cols, &c.from_row_bytes);
    if (status == WW_OK)
        status = ww_quant_row_bytes(c.to, c.cols, &c.to_row_bytes);
    if (status != WW_OK)
        return status;
    const int64_t piece = min_i64(PIECE_BYTES / (c.cols * (int64_t)sizeof(float)) + 1, rows);
    const size_t bytes =
        (size_t)(piece * c.cols) * sizeof(float); /* no type has larger blocks than floats are, but q8_1, q8_k */
    c.floats = memory_alloc(bytes);
    c.blocks = memory_alloc(2 * bytes);
    if (!c.floats || !c.blocks)
        status = memory_failed("converting a tensor", 3 * bytes);
    for (int64_t done = 0; status == WW_OK && done < rows; done += piece) {
        const int64_t now = min_i64(rows - done, piece);
        status = ww_gguf_read(in, index, done * c.from_row_bytes, c.blocks, (size_t)(now * c.from_row_bytes));
        if (status == WW_OK)
            status = convert_rows(&c, now);
        if (status == WW_OK)
            status = ww_gguf_writer_data(out, c.blocks, (size_t)(now * c.to_row_bytes));
        if (status == WW_OK)
            status = interrupt_check();
    }
    memory_free(c.floats);
    memory_free(c.blocks);
    return status;
}

static ww_status write_tensors(const ww_gguf *in, ww_gguf_writer *out, ww_quant_type type, ww_device *device, int64_t count,
                               progress *bar)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        status = ww_gguf_tensor_at(in, i, &t);
        if (status != WW_OK)
            return status;
        const int32_t wanted = wanted_type(&t, type);
        status =
            wanted == t.type ? copy_bytes(in, i, t.bytes, out) : convert_tensor(in, i, &t, (ww_quant_type)wanted, device, out);
        status = failed_at(status, &t);
        bar->before += t.bytes;
        if (status == WW_OK && progress_report(0, 0, bar) != 0)
            status = interrupt_check();
    }
    return status;
}

ww_status gguf_quantize(const ww_gguf *in, const char *out_path, ww_quant_type type, ww_device *device)
{
    ww_gguf_info info = ww_gguf_info_default();
    ww_gguf_writer *out = NULL;
    ww_status status = ww_gguf_describe(in, &info);
    if (status == WW_OK)
        status = ww_gguf_writer_create(&out);
    if (status == WW_OK)
        status = copy_values(in, out, type);
    for (int64_t i = 0; status == WW_OK && i < info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        status = ww_gguf_tensor_at(in, i, &t);
        if (status != WW_OK)
            break;
        const int32_t wanted = wanted_type(&t, type);
        say_if_other(&t, type, wanted);
        t.type = wanted;
        status = ww_gguf_writer_tensor(out, &t);
    }
    if (status == WW_OK)
        status = ww_gguf_writer_open(out, out_path);
    if (status == WW_OK) {
        progress bar;
        progress_begin(&bar, "quantizing", info.data_bytes);
        status = write_tensors(in, out, type, device, info.tensors, &bar);
        progress_end(&bar);
    }
    if (status == WW_OK)
        status = ww_gguf_writer_finish(out);
    ww_gguf_writer_destroy(out);
    return status;
}
