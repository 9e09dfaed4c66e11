/* Converts text to tokens and back, by a model file's own keys.
 *
 * Four families: WordPiece (`bert`), byte-level BPE (`gpt2`, with the pre-tokenizer that `tokenizer.ggml.pre` names), and
 * SentencePiece's BPE (`llama`) and unigram (`t5`). Creating a tokenizer checks everything in the vocabulary, so encoding a
 * text can only fail for lack of memory or by its length. A tokenizer does not change: any number of threads may use it.
 */
#ifndef WW_MODEL_TOKENIZER_TOKENIZER_H
#define WW_MODEL_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/gguf.h>

#include "base/strings/text_buffer.h"

typedef struct ww_tokenizer tokenizer;

typedef struct token_list {
    int32_t *ids;
    int64_t count, capacity;
} token_list;

/* Frees the ids; afterwards the list is empty. */
void token_list_free(token_list *list);

/* Appends an id to a list, which starts zeroed. On failure the list is unchanged. */
ww_status token_list_add(token_list *list, int32_t id);

/* Flags of tokenizer_encode(). */
enum {
    TOKENIZE_PLAIN = 1, /* special tokens in the text are text */
    TOKENIZE_NO_ADD = 2 /* nothing is added at the ends: no BOS, EOS, CLS, SEP */
};

#define TOKENIZER_NONE INT32_C(-1) /* the vocabulary has no such token */

/* Creates a tokenizer from an open file, which may be closed afterwards. Refuses, by name, an unknown tokenizer or
 * pre-tokenizer, arrays of different lengths, merges whose parts or result are not in the vocabulary, special tokens outside
 * it. */
ww_status tokenizer_create(const ww_gguf *gguf, tokenizer **out);

/* Accepts NULL. */
void tokenizer_destroy(tokenizer *t);

/* Appends the tokens of `bytes` bytes of text to `out`, which starts zeroed. Invalid UTF-8 reads as U+FFFD, one for each
 * maximal part of a character. Refuses texts of 1 GiB and more. On failure the list is unchanged. */
ww_status tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, unsigned flags, token_list *out);

/* A text that quotes what others wrote. */
typedef struct quoted_text {
    const char *text;
    size_t bytes;
    const text_span *quotes; /* ascending; in these names of special tokens are text */
    size_t quote_count;
    const char *reserved; /* a chat template: in the quotes, user-defined tokens that it contains are text too */
} quoted_text;

/* The same for such a text: special tokens are read outside of the quotes only, and nothing is added at the ends. A quote
 * without a special token in it gives the same tokens as if it were not a quote. Refuses invalid UTF-8. */
ww_status tokenizer_encode_quotes(const tokenizer *t, const quoted_text *text, token_list *out);

/* Cuts a list that tokenizer_encode() filled with these flags to `tokens_max` tokens, keeping the token that it adds at the
 * end. */
void tokenizer_truncate(const tokenizer *t, unsigned flags, int64_t tokens_max, token_list *list);

/* Gives a token's bytes, for streaming: they may begin or end inside a character. Those of a special token are its name. Valid
 * until the tokenizer is destroyed. Refuses an id outside the vocabulary. */
ww_status tokenizer_piece(const tokenizer *t, int32_t id, const char **bytes, size_t *count);

/* Gives the text of tokens, without the special ones, NUL-terminated; free it with memory_free(). It may not be UTF-8 if tokens
 * end inside a character. Refuses an id outside the vocabulary. */
ww_status tokenizer_decode(const tokenizer *t, const int32_t *ids, int64_t count, char **text, size_t *bytes);

/* The number of tokens, and the ids of special ones: TOKENIZER_NONE if there is none. For WordPiece BOS is CLS and EOS is
 * SEP. */
int32_t tokenizer_size(const tokenizer *t);
int32_t tokenizer_bos(const tokenizer *t);
int32_t tokenizer_eos(const tokenizer *t);
int32_t tokenizer_unknown(const tokenizer *t);
int32_t tokenizer_find(const tokenizer *t, const char *piece); /* as the vocabulary writes it */

/* The tokens between two texts that a model reads together; returns how many, 0 to 2. */
size_t tokenizer_between(const tokenizer *t, int32_t ids[2]);

/* Is it a token without text (control, unknown)? Does it end a text or a turn? False for an invalid id. */
bool tokenizer_is_special(const tokenizer *t, int32_t id);
bool tokenizer_is_end(const tokenizer *t, int32_t id);
bool tokenizer_has_end(const tokenizer *t); /* is there a token that ends a text? */

/* "bert", "gpt2", "llama" or "t5"; and the pre-tokenizer of "gpt2", else "". */
const char *tokenizer_model(const tokenizer *t);
const char *tokenizer_pre(const tokenizer *t);

#endif
