/* The model of `warpwave bench --parity`: a llama of two layers with weights of q8_0, made here of the same numbers everywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warpwave/gguf.h>
#include <warpwave/model.h>
#include <warpwave/quant.h>

#include "base/memory.h"
#include "warpwave/bench/parity.h"

enum { LAYERS = 2, WIDTH = 128, HIDDEN = 256, HEADS = 4, KEY_HEADS = 2, HEAD = 32, VOCABULARY = 320 };
enum { FED = 24, GENERATED = 8, TENSORS_MAX = 3 + 9 * LAYERS, BLOCK = 32, BLOCK_BYTES = 34 };

typedef struct weight {
    char name[32];
    int64_t rows; /* 0: a norm */
    int64_t cols;
} weight;

static int64_t list_weights(weight *list)
{
    static const struct {
        const char *name;
        int64_t rows, cols;
    } of_layer[] = {{"attn_norm", 0, WIDTH},
                    {"attn_q", (int64_t)HEADS * HEAD, WIDTH},
                    {"attn_k", (int64_t)KEY_HEADS * HEAD, WIDTH},
                    {"attn_v", (int64_t)KEY_HEADS * HEAD, WIDTH},
                    {"attn_output", WIDTH, (int64_t)HEADS * HEAD},
                    {"ffn_norm", 0, WIDTH},
                    {"ffn_gate", HIDDEN, WIDTH},
                    {"ffn_up", HIDDEN, WIDTH},
                    {"ffn_down", WIDTH, HIDDEN}};
    int64_t count = 0;
    list[count++] = (weight){"token_embd.weight", VOCABULARY, WIDTH};
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < sizeof of_layer / sizeof *of_layer; i++) {
            weight *w = &list[count++];
            snprintf(w->name, sizeof w->name, "blk.%d.%s.weight", layer, of_layer[i].name);
            w->rows = of_layer[i].rows;
            w->cols = of_layer[i].cols;
        }
    list[count++] = (weight){"output_norm.weight", 0, WIDTH};
    list[count++] = (weight){"output.weight", VOCABULARY, WIDTH};
    return count;
}

static ww_status put_metadata(ww_gguf_writer *writer)
{
    static const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {{"llama.block_count", LAYERS},
                   {"llama.embedding_length", WIDTH},
                   {"llama.feed_forward_length", HIDDEN},
                   {"llama.attention.head_count", HEADS},
                   {"llama.attention.head_count_kv", KEY_HEADS},
                   {"llama.attention.key_length", HEAD},
                   {"llama.context_length", 256},
                   {"llama.vocab_size", VOCABULARY}};
    const float epsilon = 0x1p-17f, base = 10000.0f;
    ww_gguf_value value = ww_gguf_value_default();
    ww_status status = ww_gguf_writer_string(writer, "general.architecture", "llama");
    if (status == WW_OK)
        status = ww_gguf_writer_string(writer, "tokenizer.ggml.model", "none");
    for (size_t i = 0; status == WW_OK && i < sizeof numbers / sizeof *numbers; i++)
        status = ww_gguf_writer_u32(writer, numbers[i].key, numbers[i].value);
    value.kind = value.element = WW_GGUF_F32;
    value.count = 1;
    value.data_bytes = sizeof epsilon;
    value.key = "llama.attention.layer_norm_rms_epsilon";
    value.data = &epsilon;
    if (status == WW_OK)
        status = ww_gguf_writer_value(writer, &value);
    value.key = "llama.rope.freq_base";
    value.data = &base;
    return status == WW_OK ? ww_gguf_writer_value(writer, &value) : status;
}

static ww_status declare(ww_gguf_writer *writer, const weight *w)
{
    ww_gguf_tensor tensor = ww_gguf_tensor_default();
    tensor.name = w->name;
    tensor.type = w->rows > 0 ? WW_QUANT_Q8_0 : WW_QUANT_F32;
    tensor.rank = w->rows > 0 ? 2 : 1;
    tensor.shape[0] = w->cols;
    tensor.shape[1] = w->rows > 0 ? w->rows : 1;
    tensor.shape[2] = tensor.shape[3] = 1;
    return ww_gguf_writer_tensor(writer, &tensor);
}

/* Norms are about 1; the codes of a block are 32 bytes, and its scale is 2^-10 as f16. */
static ww_status put_weight(ww_gguf_writer *writer, const weight *w, uint64_t *state)
{
    ww_status status = WW_OK;
    if (w->rows == 0) {
        float norm[WIDTH];
        for (int i = 0; i < WIDTH; i++)
            norm[i] = 1.0f + 0.125f * parity_number(state);
        return ww_gguf_writer_data(writer, norm, sizeof norm);
    }
    for (int64_t block = 0; status == WW_OK && block < w->rows * w->cols / BLOCK; block++) {
        unsigned char bytes[BLOCK_BYTES] = {0x00, 0x14};
        for (int i = 0; i < BLOCK; i++) {
            const int8_t code = (int8_t)(parity_number(state) * 127.0f);
            memcpy(&bytes[2 + i], &code, 1);
        }
        status = ww_gguf_writer_data(writer, bytes, sizeof bytes);
    }
    return status;
}

static ww_status write_model(const char *path)
{
    weight list[TENSORS_MAX];
    const int64_t count = list_weights(list);
    uint64_t state = 470;
    ww_gguf_writer *writer = NULL;
    ww_status status = ww_gguf_writer_create(&writer);
    if (status == WW_OK)
        status = put_metadata(writer);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = declare(writer, &list[i]);
    if (status == WW_OK)
        status = ww_gguf_writer_open(writer, path);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = put_weight(writer, &list[i], &state);
    if (status == WW_OK)
        status = ww_gguf_writer_finish(writer);
    ww_gguf_writer_destroy(writer);
    return status;
}

/* Feeds 24 tokens at once, then the most likely one eight times. */
static ww_status run_model(ww_model *model, uint64_t *digest)
{
    int32_t ids[FED], best = 0;
    float logits[VOCABULARY];
    ww_session *session = NULL;
    for (int32_t i = 0; i < FED; i++)
        ids[i] = i * 37 % VOCABULARY;
    ww_status status = ww_session_create(model, &session);
    if (status == WW_OK)
        status = ww_session_feed(session, ids, FED);
    for (int step = 0; status == WW_OK && step <= GENERATED; step++) {
        status = ww_session_logits(session, logits);
        if (status != WW_OK)
            break;
        *digest = parity_add(*digest, logits, sizeof logits);
        best = 0;
        for (int32_t i = 1; i < VOCABULARY; i++)
            best = logits[i] > logits[best] ? i : best;
        status = ww_session_feed(session, &best, 1);
    }
    ww_session_destroy(session);
    return status;
}

ww_status parity_model(ww_device *device, uint64_t *digest)
{
    const char *folder = getenv("TMPDIR");
    char path[512], file[sizeof path + 16];
    ww_model *model = NULL;
    snprintf(path, sizeof path, "%.480s/warpwave-parity-XXXXXX", folder && folder[0] == '/' ? folder : "/tmp");
    if (!mkdtemp(path))
        return ww_fail(WW_IO_ERROR, "%s: no folder for the model's file could be made: %m; TMPDIR names another place", path);
    snprintf(file, sizeof file, "%s/model.gguf", path);
    ww_status status = write_model(file);
    if (status == WW_OK)
        status = ww_model_open(file, device, NULL, &model);
    if (status == WW_OK)
        status = run_model(model, digest);
    ww_model_close(model);
    (void)unlink(file);
    (void)rmdir(path);
    return status;
}
