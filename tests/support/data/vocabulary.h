/* Small model files that contain only a tokenizer's keys, for tests. */
#ifndef TESTS_VOCABULARY_H
#define TESTS_VOCABULARY_H

#include <stdint.h>

#include <warpwave/gguf.h>

enum { TEST_TOKENS_MAX = 3400 };

typedef struct test_vocabulary {
    const char *model, *pre; /* NULL: no such key */
    const char *tokens[TEST_TOKENS_MAX];
    int32_t kinds[TEST_TOKENS_MAX];
    float scores[TEST_TOKENS_MAX];
    int32_t count;
    int32_t kinds_written, scores_written; /* how many elements the arrays get; -1: no such key */
    const char *merges[64];
    int32_t merge_count; /* -1: no such key */
    int32_t bos, eos, unknown;
    int32_t add_bos, add_eos, add_space_prefix, lowercase, removes_spaces; /* -1: not said */
    const void *charsmap;                                                  /* NULL: no such key */
    size_t charsmap_bytes;
} test_vocabulary;

/* A vocabulary without tokens, scores and merges, with all settings missing. */
test_vocabulary vocabulary_empty(const char *model);

/* Adds a token; returns its id. 256 tokens for the bytes, in the alphabet of byte-level BPE; and "<0x00>" to "<0xFF>". */
int32_t vocabulary_add(test_vocabulary *v, const char *token, int32_t kind, float score);
void vocabulary_add_alphabet(test_vocabulary *v);
void vocabulary_add_bytes(test_vocabulary *v);
void vocabulary_add_merge(test_vocabulary *v, const char *merge);

/* Writes the keys to a file that is being written. */
void vocabulary_put(const test_vocabulary *v, ww_gguf_writer *w);

/* Writes the file `vocabulary.gguf` of the scratch directory; returns its path. */
const char *vocabulary_write(const test_vocabulary *v);

#endif
