/* Files of tiny models with tokenizers, for tests that need any model. */
#include <string.h>

#include "support/data/vocabulary.h"
#include "support/models/tiny.h"

static void write_shape(tiny_shape shape, const test_vocabulary *v, const char *path)
{
    tiny_model m;
    shape.vocabulary = v->count;
    shape.tokens = v;
    tiny_make(&m, &shape);
    tiny_write(&m, path);
    tiny_free(&m);
}

static void write_words(tiny_shape shape, const char *path)
{
#define WORD "\xE2\x96\x81" /* how vocabularies write a word's beginning */
    static const char *const pieces[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", WORD "a", WORD "fox", WORD "dog", "s"};
    test_vocabulary v = vocabulary_empty("bert");
    for (int i = 0; i < 8; i++)
        vocabulary_add(&v, pieces[i], i < 4 ? 3 : 1, 0);
    v.bos = 2;
    v.eos = 3;
    v.unknown = 1;
    write_shape(shape, &v, path);
}

void tiny_write_words(const char *architecture, const char *path)
{
    write_words(tiny_default(architecture), path);
}

void tiny_write_ranker(int32_t layers, const char *path)
{
    tiny_shape shape = tiny_default("bert");
    shape.layers = layers;
    shape.pooling = WW_POOLING_RANK;
    write_words(shape, path);
}

static void write_bytes(tiny_shape shape, const char *chat_template, const char *path)
{
    test_vocabulary bytes = vocabulary_empty("gpt2");
    bytes.pre = "gpt-2";
    vocabulary_add_alphabet(&bytes);
    bytes.merge_count = 0;
    vocabulary_add(&bytes, "<|im_start|>", 3, 0);
    bytes.eos = vocabulary_add(&bytes, "<|im_end|>", 3, 0);
    if (strcmp(shape.architecture, "qwen3") == 0) {
        vocabulary_add(&bytes, "no", 1, 0);
        vocabulary_add(&bytes, "yes", 1, 0);
    }
    shape.chat_template = chat_template;
    write_shape(shape, &bytes, path);
}

void tiny_write_chat(const char *chat_template, int32_t context, const char *path)
{
    tiny_shape shape = tiny_default("llama");
    shape.context = context > 0 ? context : shape.context;
    write_bytes(shape, chat_template, path);
}

void tiny_write_answers(const char *path)
{
    write_bytes(tiny_default("qwen3"), TINY_CHATML, path);
}
