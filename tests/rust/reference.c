/* What C computes, for the tests of the Rust crate: searches, tensors, quantized products, embeddings and texts of small
 * models.
 *
 *   rust_reference FOLDER
 * writes the models encoder.gguf, ranker.gguf and decoder.gguf into the folder, and prints a line for each result: its name,
 * and its elements as hexadecimal bits or as integers. rust/warpwave/tests/same_bits.rs computes the same from the same inputs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave.h>
#include <warpwave/model.h>

#include "support/models/tiny.h"

enum { ROWS = 500, QUERIES = 7, DIM = 37, K = 9, SIDE = 64 };

static void need(ww_status status, const char *what)
{
    if (status != WW_OK) {
        fprintf(stderr, "%s: %s\n", what, ww_error_message());
        exit(1);
    }
}

/* The same numbers in both languages: bits of a linear congruential generator, exact as f32. */
static float next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)(*state >> 8) / 8388608.0f - 1.0f;
}

static float *numbers(uint32_t seed, size_t count)
{
    float *list = malloc(count * sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        list[i] = next_number(&seed);
    return list;
}

static void print_floats(const char *name, const float *values, size_t count)
{
    printf("%s", name);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        printf(" %08" PRIx32, bits);
    }
    printf("\n");
}

static void print_integers(const char *name, const int64_t *values, size_t count)
{
    printf("%s", name);
    for (size_t i = 0; i < count; i++)
        printf(" %" PRId64, values[i]);
    printf("\n");
}

static void search(ww_device *device, ww_metric metric)
{
    float *rows = numbers(1, ROWS * DIM), *queries = numbers(2, QUERIES * DIM);
    int64_t found[QUERIES * K];
    float scores[QUERIES * K];
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.metric = metric;
    ww_collection *collection;
    need(ww_collection_create(device, &config, &collection), "collection");
    ww_rows added = ww_rows_default();
    added.count = ROWS;
    added.dim = DIM;
    added.vectors = rows;
    need(ww_collection_add(collection, &added), "add");
    ww_query query = ww_query_default();
    query.queries = queries;
    query.query_count = QUERIES;
    query.dim = DIM;
    query.k = K;
    need(ww_collection_search(collection, &query, found, scores), "search");
    char name[64];
    snprintf(name, sizeof name, "rows_%s", ww_metric_name(metric));
    print_integers(name, found, QUERIES * K);
    snprintf(name, sizeof name, "scores_%s", ww_metric_name(metric));
    print_floats(name, scores, QUERIES * K);
    ww_collection_destroy(collection);
    free(rows);
    free(queries);
}

static void print_tensor(const char *name, ww_tensor *x)
{
    float values[SIDE * SIDE];
    need(ww_tensor_to_host(x, values), name);
    print_floats(name, values, (size_t)ww_layout_elements(&x->layout));
    ww_tensor_release(x);
}

static void tensors(ww_device *device)
{
    float *a = numbers(3, SIDE * SIDE), *b = numbers(4, SIDE * SIDE);
    const int64_t shape[] = {SIDE, SIDE};
    ww_tensor x = {0}, y = {0}, out = {0};
    need(ww_tensor_from_host(device, WW_F32, 2, shape, a, &x), "x");
    need(ww_tensor_from_host(device, WW_F32, 2, shape, b, &y), "y");
    need(ww_tensor_matmul(&x, &y, WW_MATH_CANONICAL, &out), "matmul");
    print_tensor("matmul", &out);
    need(ww_tensor_unary(WW_GELU, &x, &out), "gelu");
    print_tensor("gelu", &out);
    need(ww_tensor_softmax(&x, -1, &out), "softmax");
    print_tensor("softmax", &out);
    const int32_t last = 1;
    need(ww_tensor_reduce(WW_REDUCE_SUM, &y, &last, 1, &out), "sum");
    print_tensor("sum", &out);
    ww_quant *matrix;
    need(ww_quant_from_f32(device, WW_QUANT_Q4_0, b, SIDE, SIDE, 0, &matrix), "quantize");
    need(ww_quant_matmul(matrix, &x, &out), "quantized product");
    print_tensor("quantized", &out);
    ww_quant_destroy(matrix);
    need(ww_device_seed(device, 11), "seed");
    need(ww_tensor_normal(device, WW_F32, 2, shape, 0, 1, &out), "normal");
    print_tensor("normal", &out);
    ww_tensor_release(&x);
    ww_tensor_release(&y);
    free(a);
    free(b);
}

static const char *const TEXTS[] = {"a fox", "dogs dogs dogs", ""};

static void encoder(ww_device *device, const char *path)
{
    ww_model *model;
    ww_model_info info = ww_model_info_default();
    float vectors[3 * 1024];
    tiny_write_words("bert", path);
    need(ww_model_open(path, device, NULL, &model), "encoder");
    need(ww_model_describe(model, &info), "describe");
    need(ww_model_embed(model, TEXTS, NULL, 3, NULL, vectors), "embed");
    print_floats("embed", vectors, 3 * (size_t)info.width);
    ww_model_close(model);
}

static void ranker(ww_device *device, const char *path)
{
    ww_model *model;
    float scores[3];
    tiny_write_ranker(2, path);
    need(ww_model_open(path, device, NULL, &model), "ranker");
    need(ww_model_rerank(model, "a dog", TEXTS, NULL, 3, scores, NULL, NULL), "rerank");
    print_floats("rerank", scores, 3);
    ww_model_close(model);
}

static void decoder(ww_device *device, const char *path)
{
    ww_model *model;
    ww_session *session;
    ww_model_info info = ww_model_info_default();
    int32_t ids[64];
    int64_t wide[64];
    size_t count;
    tiny_write_words("llama", path);
    need(ww_model_open(path, device, NULL, &model), "decoder");
    need(ww_model_describe(model, &info), "describe");
    need(ww_model_tokenize(model, TEXTS[1], strlen(TEXTS[1]), 0, ids, 64, &count), "tokenize");
    need(ww_session_create(model, &session), "session");
    need(ww_session_feed(session, ids, count), "feed");
    float *logits = malloc((size_t)info.vocabulary * sizeof *logits);
    need(ww_session_logits(session, logits), "logits");
    print_floats("logits", logits, (size_t)info.vocabulary);
    free(logits);
    ww_generation generation = ww_generation_default();
    generation.tokens = 12;
    generation.ignore_eos = 1;
    need(ww_session_generate(session, &generation, NULL), "generate");
    count = ww_session_length(session);
    need(ww_session_tokens(session, 0, ids, count), "tokens");
    for (size_t i = 0; i < count; i++)
        wide[i] = ids[i];
    print_integers("generated", wide, count);
    ww_session_destroy(session);
    ww_model_close(model);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: rust_reference FOLDER\n");
        return 2;
    }
    char path[4096];
    ww_device *device;
    need(ww_device_open("cpu", &device), "cpu");
    for (ww_metric metric = WW_COSINE; metric <= WW_DOT; metric++)
        search(device, metric);
    tensors(device);
    snprintf(path, sizeof path, "%s/encoder.gguf", argv[1]);
    encoder(device, path);
    snprintf(path, sizeof path, "%s/ranker.gguf", argv[1]);
    ranker(device, path);
    snprintf(path, sizeof path, "%s/decoder.gguf", argv[1]);
    decoder(device, path);
    ww_device_close(device);
    return 0;
}
