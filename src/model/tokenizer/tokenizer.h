/* Text to tokens and back, by a model file's own keys.
 *
 * Four families: WordPiece (`bert`), byte-level BPE (`gpt2`, with the pre-tokenizer that `tokenizer.ggml.pre` names), and
 * SentencePiece's BPE (`llama`) and unigram (`t5`). Everything that can be wrong with a vocabulary is refused when the
 * tokenizer is made, so that a text can fail only without memory or by its length. A tokenizer does not change: any number of
 * threads may use it.
 */
#ifndef WW_MODEL_TOKENIZER_TOKENIZER_H
#define WW_MODEL_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/gguf.h>

#include "model/text_buffer.h"

typedef struct tokenizer tokenizer;

typedef struct token_list {
    int32_t *ids;
    int64_t count, capacity;
} token_list;

/* Frees the ids; the list is empty then. */
void token_list_free(token_list *list);

/* Appends an id to a list that begins as zeros. On failure the list is as before. */
ww_status token_list_add(token_list *list, int32_t id);

/* Flags of tokenizer_encode(). */
enum {
    TOKENIZE_PLAIN = 1, /* special tokens in the text are text */
    TOKENIZE_NO_ADD = 2 /* nothing is added at the ends: no BOS, EOS, CLS, SEP */
};

#define TOKENIZER_NONE INT32_C(-1) /* where a vocabulary has no such token */

/* Makes a tokenizer of an open file, which may be closed afterwards. Refuses by name: a tokenizer or pre-tokenizer that is not
 * known, arrays of different lengths, merges whose parts or result are not in the vocabulary, special tokens outside it. */
ww_status tokenizer_create(const ww_gguf *gguf, tokenizer **out);

/* Accepts NULL. */
void tokenizer_destroy(tokenizer *t);

/* Appends the tokens of `bytes` bytes of text to `out`, which begins as zeros. Whatever is no UTF-8 reads as U+FFFD, one for
 * each maximal part of a character. Refuses texts of 1 GiB and more. On failure the list is as before. */
ww_status tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, unsigned flags, token_list *out);

/* A text that says in part what others wrote. */
typedef struct quoted_text {
    const char *text;
    size_t bytes;
    const text_span *quotes; /* ascending; in these names of special tokens are text */
    size_t quote_count;
    const char *reserved; /* in the quotes user-defined tokens that this text, a chat template, has are text, too */
} quoted_text;

/* The same of such a text, with special tokens outside of the quotes, and nothing added at its ends. A quote without a special
 * token in it gives the tokens that it gives without being one. Refuses what is no UTF-8. */
ww_status tokenizer_encode_quotes(const tokenizer *t, const quoted_text *text, token_list *out);

/* Cuts a list that tokenizer_encode() filled with these flags to `tokens_max` tokens, keeping the token that it adds at the
 * end. */
void tokenizer_truncate(const tokenizer *t, unsigned flags, int64_t tokens_max, token_list *list);

/* Gives a token's bytes, for streaming: they may begin or end inside a character. Those of a special token are its name. There
 * until the tokenizer is destroyed. Refuses an id outside the vocabulary. */
ww_status tokenizer_piece(const tokenizer *t, int32_t id, const char **bytes, size_t *count);

/* Gives the text of tokens, without the special ones, with a NUL behind it, in memory that memory_free() frees. It may be no
 * UTF-8 where tokens are cut inside a character. Refuses an id outside the vocabulary. */
ww_status tokenizer_decode(const tokenizer *t, const int32_t *ids, int64_t count, char **text, size_t *bytes);

/* How many tokens there are, and which are which: TOKENIZER_NONE where there is none. For WordPiece BOS is CLS and EOS is SEP.
 */
int32_t tokenizer_size(const tokenizer *t);
int32_t tokenizer_bos(const tokenizer *t);
int32_t tokenizer_eos(const tokenizer *t);
int32_t tokenizer_find(const tokenizer *t, const char *piece); /* as the vocabulary writes it */

/* The tokens between two texts that a model reads together; returns how many, 0 to 2. */
size_t tokenizer_between(const tokenizer *t, int32_t ids[2]);

/* Is it a token that stands for no text (control, unknown)? Does it end a text or a turn? False for an invalid id. */
bool tokenizer_is_special(const tokenizer *t, int32_t id);
bool tokenizer_is_end(const tokenizer *t, int32_t id);
bool tokenizer_has_end(const tokenizer *t); /* is there one that does? */

/* "bert", "gpt2", "llama" or "t5"; and the pre-tokenizer of "gpt2", else "". */
const char *tokenizer_model(const tokenizer *t);
const char *tokenizer_pre(const tokenizer *t);

#endif
