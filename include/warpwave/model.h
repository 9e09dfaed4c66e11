/* Models: text in, embeddings, scores or text out, from a GGUF file and nothing else.
 *
 * A model is an encoder, which embeds texts, or a decoder, which continues them. What it computes is a function of the text,
 * the weights and the options it was opened with: the same bits on every device, alone or in a batch with others, with a text
 * fed in one piece or in many. docs/guide/models.md lists the supported architectures, and those that were run with real
 * weights.
 *
 * A model may be used from any thread; its computations happen one after the other. Sessions keep the model open: either may be
 * closed first. A library can be built without them (-DWARPWAVE_MODEL=OFF).
 */
#ifndef WARPWAVE_MODEL_H
#define WARPWAVE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/gguf.h>
#include <warpwave/quant.h>
#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ww_model ww_model;
typedef struct ww_session ww_session;

typedef enum ww_model_kind { WW_MODEL_ENCODER = 0, WW_MODEL_DECODER = 1 } ww_model_kind;

/* How the vectors of a text's tokens become one; the numbers are those of GGUF files. */
typedef enum ww_pooling {
    WW_POOLING_NONE = 0,
    WW_POOLING_MEAN = 1,
    WW_POOLING_CLS = 2,  /* the first token's */
    WW_POOLING_LAST = 3, /* the last token's */
    WW_POOLING_RANK = 4  /* a head gives a score; the model reranks */
} ww_pooling;

/* How a model is opened; begin with ww_model_options_default(). */
typedef struct ww_model_options {
    size_t struct_size;
    ww_activations activations; /* float: activations are not rounded to 8 bits; slower, with the accuracy of f32 */
    ww_quant_type cache;        /* of keys and values in sessions: f16, f32 or q8_0 */
    int64_t context;            /* tokens that a session may hold, at most the model's own context; 0: that */
    ww_progress progress;       /* of loading, in bytes; may be NULL */
    void *progress_user;
    const char *chat_template; /* a Jinja template for ww_model_chat() in place of the file's; NULL: the file's */
    ww_pooling pooling;   /* instead of the file's; none: as the file says. A decoder needs mean, cls or last to embed. Rank is
                             for a model with a head whose file names another pooling */
    int32_t copy_weights; /* 0: a CPU uses f32, f16 and bf16 weights where the file has them, so that processes share their
                             memory. Replace such a file by renaming another over it: if its bytes are written while it is
                             open, vectors change, and if it is cut short, the process ends (SIGBUS). 1: copies all */
} ww_model_options;

/* Description of a model. Texts that are longer than their field are cut. */
typedef struct ww_model_info {
    size_t struct_size;
    ww_model_kind kind;
    char architecture[32]; /* "llama", "bert" */
    char name[128];
    char licence[64];
    char tokenizer[32]; /* "gpt2", "llama", "bert"; "none": the model takes tokens only */
    char device[32];
    char fingerprint[40]; /* a hash of metadata, shapes and samples of all weights, in hexadecimal */
    int64_t parameters;
    int64_t weight_bytes; /* on the device */
    int64_t cache_bytes;  /* of 256 tokens of a session */
    int64_t vocabulary;
    int64_t context; /* tokens */
    int32_t layers;
    int32_t width;  /* numbers of an embedding */
    int32_t hidden; /* of the feed-forward network */
    int32_t heads;
    int32_t key_heads;
    int32_t head_size;
    int32_t window; /* the sliding window of attention, or 0 */
    ww_pooling pooling;
    int32_t bos; /* tokens that begin and end a text; -1 if there is none */
    int32_t eos;
    int32_t has_chat;        /* 1: there is a chat template for ww_model_chat(), and it can be read */
    int32_t embeds;          /* 1: ww_model_embed() accepts this model */
    int32_t reranks;         /* 1: ww_model_rerank() accepts this model */
    char prompts[128];       /* names of the file's prompts, "query, document"; "": it has none */
    char default_prompt[64]; /* the one that ww_model_embed() uses; "": none */
    int32_t pooling_assumed; /* 1: the file was made of a folder that names no pooling, and the mean was taken */
    int64_t texts_cut; /* texts that were longer than the context, of all that were embedded or reranked since it was opened */
    int64_t mapped_bytes; /* of weight_bytes: in the file's own pages, which all processes share */
} ww_model_info;

/* All fill in defaults; device.h says how ..._default() and ..._init() differ. Do not block. */
WW_API ww_status ww_model_options_init(void *value, size_t struct_size);
WW_API ww_status ww_model_info_init(void *value, size_t struct_size);
static inline ww_model_options ww_model_options_default(void)
{
    ww_model_options value;
    ww_model_options_init(&value, sizeof value);
    return value;
}
static inline ww_model_info ww_model_info_default(void)
{
    ww_model_info value;
    ww_model_info_init(&value, sizeof value);
    return value;
}

/* Opens the GGUF file at `path`, or the folder with config.json, tokenizer.json and safetensors, on a device. Everything is
 * checked here: refuses an unknown architecture or tokenizer, by name, a tensor that is missing or whose shape contradicts the
 * metadata, weights that are not finite, and an invalid options->chat_template. `options` may be NULL.
 * Blocks. */
WW_API ww_status ww_model_open(const char *path, ww_device *device, const ww_model_options *options, ww_model **model);

/* Closes the model; its memory is freed with its last session. Accepts NULL. */
WW_API void ww_model_close(ww_model *model);

/* Describes a model into `info`. Refuses NULL. Does not block. */
WW_API ww_status ww_model_describe(const ww_model *model, ww_model_info *info);

/* ---- text and tokens ------------------------------------------------------------------------------------------------------
 */

/* How text becomes tokens. PLAIN: names of special tokens ("<|im_end|>") in the text are plain text. NO_ADD: no BOS, EOS, [CLS]
 * or [SEP] is added at its ends. */
typedef enum ww_token_flags { WW_TOKENS_PLAIN = 1, WW_TOKENS_NO_ADD = 2 } ww_token_flags;

/* The tokens of `bytes` bytes of text. `count` gets their number, also if `ids` is NULL and `capacity` 0, and if the capacity
 * is too small (WW_OUT_OF_RANGE). Bytes that are not UTF-8 are read as U+FFFD. Refuses a model without a tokenizer. Does not
 * block. */
WW_API ww_status ww_model_tokenize(const ww_model *model, const char *text, size_t bytes, uint32_t flags, int32_t *ids,
                                   size_t capacity, size_t *count);

/* The text of tokens, without the special ones and without a NUL; `bytes` gets its length as above. It may be invalid UTF-8
 * if the tokens end within a character. Refuses an invalid token. */
WW_API ww_status ww_model_detokenize(const ww_model *model, const int32_t *ids, size_t count, char *text, size_t capacity,
                                     size_t *bytes);

/* A tokenizer alone: it needs a file's keys and none of its weights. Any number of threads may use it. */
typedef struct ww_tokenizer ww_tokenizer;

/* Makes the tokenizer of an open file, which may be closed afterwards. Refuses, by name, an unknown tokenizer, and a vocabulary
 * that contradicts itself. Does not block. */
WW_API ww_status ww_tokenizer_create(const ww_gguf *gguf, ww_tokenizer **tokenizer);

/* Frees it. Accepts NULL. */
WW_API void ww_tokenizer_destroy(ww_tokenizer *tokenizer);

/* The tokenizer of a model, valid as long as the model is open; NULL if it has none. Must not be destroyed. */
WW_API const ww_tokenizer *ww_model_tokenizer(const ww_model *model);

/* The same as ww_model_tokenize(). */
WW_API ww_status ww_tokenizer_encode(const ww_tokenizer *tokenizer, const char *text, size_t bytes, uint32_t flags,
                                     int32_t *ids, size_t capacity, size_t *count);

/* Gives a token's bytes, which may begin or end within a character; those of a special token are its name. Not NUL-terminated,
 * valid as long as the tokenizer. Refuses an invalid token. */
WW_API ww_status ww_tokenizer_piece(const ww_tokenizer *tokenizer, int32_t token, const char **piece, size_t *bytes);

/* Returns 1 for a token without text (control, unknown); otherwise, and for an invalid token, 0. */
WW_API int32_t ww_tokenizer_is_special(const ww_tokenizer *tokenizer, int32_t token);

/* Returns 1 for a token that ends a text or a turn; otherwise, and for an invalid token, 0. */
WW_API int32_t ww_model_token_ends(const ww_model *model, int32_t token);

/* A message of a conversation. Its role is "system", "user", "assistant", or another one that the model's template knows. */
typedef struct ww_chat_message {
    const char *role;
    const char *text;
} ww_chat_message;

/* A conversation as the model's chat template writes it, up to where the assistant begins to speak, without a NUL; `bytes` as
 * above. Tokenize it with WW_TOKENS_NO_ADD. The template runs as in jinja2; a message has "role" and "content".
 * Refuses a model without a template, a template that cannot be read, and what the template refuses, with line and column in
 * it. Does not block. */
WW_API ww_status ww_model_chat(const ww_model *model, const ww_chat_message *messages, size_t count, char *text,
                               size_t capacity, size_t *bytes);

/* The tokens of such a conversation, to be fed to a session; `token_count` as `count` of ww_model_tokenize(). With
 * WW_TOKENS_PLAIN in `flags` names of special tokens in the messages are text, so that a message cannot end its turn;
 * messages without such names give the same tokens. Refuses what ww_model_chat() refuses, and other flags. Does not block. */
WW_API ww_status ww_model_chat_tokens(const ww_model *model, const ww_chat_message *messages, size_t count, uint32_t flags,
                                      int32_t *ids, size_t capacity, size_t *token_count);

/* The same for a JSON object with everything that the template takes, {"messages": [...], "tools": [...]}, followed by the text
 * `behind` ("" for none), in which names of special tokens are read as such; in the JSON's texts they are text. Refuses what
 * is not an object of JSON, too. */
WW_API ww_status ww_model_chat_json_tokens(const ww_model *model, const char *json, const char *behind, int32_t *ids,
                                           size_t capacity, size_t *token_count);

/* Returns the text of the model's chat template, which belongs to the model; NULL if it has none. */
WW_API const char *ww_model_chat_template(const ww_model *model);

/* ---- embeddings -----------------------------------------------------------------------------------------------------------
 */

/* How texts are embedded; begin with ww_embedding_default(). */
typedef struct ww_embedding {
    size_t struct_size;
    const char *prompt;   /* name of the prompt that is put before each text. NULL: the file's default, if it has one; "": none.
                             Every model knows "query" and "document", which are empty if its file does not have them */
    ww_progress progress; /* in texts; may be NULL */
    void *progress_user;
    int64_t *cut; /* gets the number of texts whose tokens beyond the context were cut off; may be NULL */
} ww_embedding;
WW_API ww_status ww_embedding_init(void *value, size_t struct_size);
static inline ww_embedding ww_embedding_default(void)
{
    ww_embedding value;
    ww_embedding_init(&value, sizeof value);
    return value;
}

/* Embeds `count` texts: vectors[i] gets `width` floats of length 1, pooled as the model says. `bytes` may be NULL if texts
 * end with a NUL, and `how` for the defaults. Refuses a model that does not embed (ww_model_info.embeds) and an unknown prompt.
 * Blocks. */
WW_API ww_status ww_model_embed(ww_model *model, const char *const *texts, const size_t *bytes, size_t count,
                                const ww_embedding *how, float *vectors);

/* The text of a prompt, by its name as in ww_embedding; it belongs to the model. Refuses an unknown one. Does not block. */
WW_API ww_status ww_model_prompt(const ww_model *model, const char *name, const char **text);

/* The same for tokens, with [CLS] and [SEP]: `ids` has counts[i] tokens of text i, at most the context, text after text. */
WW_API ww_status ww_model_embed_tokens(ww_model *model, const int32_t *ids, const size_t *counts, size_t count, float *vectors);

/* Keeps the first `dimensions` numbers of each of `count` vectors of `width` numbers, one vector after the other, and makes
 * their length 1 again, in place: embeddings of models that were trained for it (matryoshka) stay useful. Refuses dimensions
 * outside 1 to width. Does not block. */
WW_API ww_status ww_embeddings_shorten(float *vectors, size_t count, int32_t width, int32_t dimensions);

/* ---- reranking ------------------------------------------------------------------------------------------------------------
 */

/* Computes how well each of `count` texts answers a query: scores[i], the larger the better. A score is a logit: 1 / (1 +
 * exp(-x)) of it is a probability. The model reads query and text together, which is slower and better than comparing
 * embeddings: rerank the best results of a search. `bytes` may be NULL if texts end with a NUL; tokens beyond the context are
 * cut off, from the longer of query and text. `progress`, in texts, may be NULL. Refuses a model that does not rerank
 * (ww_model_info.reranks). Blocks. */
WW_API ww_status ww_model_rerank(ww_model *model, const char *query, const char *const *texts, const size_t *bytes,
                                 size_t count, float *scores, ww_progress progress, void *user);

/* ---- sessions -------------------------------------------------------------------------------------------------------------
 */

/* Makes a session without tokens. Refuses an encoder. */
WW_API ww_status ww_session_create(ww_model *model, ww_session **session);

/* Frees the session. Accepts NULL. */
WW_API void ww_session_destroy(ww_session *session);

/* Return how many tokens the session has, and copy them, at most `capacity`, from number `first` on. */
WW_API size_t ww_session_length(const ww_session *session);
WW_API ww_status ww_session_tokens(const ww_session *session, size_t first, int32_t *ids, size_t capacity);

/* Feeds tokens, in pieces of any size. Refuses an invalid token, and more tokens than the context has room for
 * (WW_OUT_OF_RANGE, with the numbers). A call that fails or is cancelled leaves the session as it was. Blocks. */
WW_API ww_status ww_session_feed(ww_session *session, const int32_t *ids, size_t count);

/* The same for several sessions of one model, in one pass over the weights: session i gets counts[i] tokens at ids[i]. A
 * session may appear only once. On failure no session changes. */
WW_API ww_status ww_sessions_feed(ww_session *const *sessions, const int32_t *const *ids, const size_t *counts, size_t count);

/* Copies the logits after the last token: one float per token of the vocabulary. Refuses a session without tokens. */
WW_API ww_status ww_session_logits(const ww_session *session, float *logits);

/* Forgets all but the first `length` tokens. There are no logits until the next feed. Refuses more tokens than there are. */
WW_API ww_status ww_session_truncate(ww_session *session, size_t length);

/* Makes an independent session with the same tokens. Both share the cache until one of them writes to it. */
WW_API ww_status ww_session_fork(ww_session *session, ww_session **fork);

/* Write a session with its cache to a file, and make a session from a file, on any device. Loading refuses a damaged file, and
 * one of another model or other options. Block. */
WW_API ww_status ww_session_save(ww_session *session, const char *path);
WW_API ww_status ww_session_load(ww_model *model, const char *path, ww_session **session);

/* Cancels another thread's running call on the session (feeding, generating): it returns WW_CANCELLED at the next layer. Does
 * nothing if there is none. Does not block. */
WW_API void ww_session_cancel(ww_session *session);

/* ---- grammars -------------------------------------------------------------------------------------------------------------
 */

/* A grammar that a generated text must follow, and the text's position in it: each text needs its own. It keeps the model open;
 * one thread may use it at a time. docs/guide/models.md says what of GBNF and of JSON schemas is supported. */
typedef struct ww_grammar ww_grammar;
typedef enum ww_grammar_kind { WW_GRAMMAR_GBNF = 0, WW_GRAMMAR_JSON_SCHEMA = 1 } ww_grammar_kind;

/* Makes a grammar from `bytes` bytes of GBNF or of a JSON schema, at the beginning of a text. Refuses, with the line or the
 * keyword: invalid text, left recursion, rules that never end, keywords that are not supported, and a model without a
 * tokenizer. Does not block, except for the first grammar of a model, which sorts its tokens. */
WW_API ww_status ww_grammar_create(ww_model *model, ww_grammar_kind kind, const char *text, size_t bytes, ww_grammar **grammar);

/* Frees the grammar. Accepts NULL. */
WW_API void ww_grammar_destroy(ww_grammar *grammar);

/* Advances by a token that ww_session_sample() chose; ww_session_generate() does this by itself. Refuses a token that may not
 * come next, and stays as it was. Does not block. */
WW_API ww_status ww_grammar_accept(ww_grammar *grammar, int32_t token);

/* ---- sampling and generating ----------------------------------------------------------------------------------------------
 */

/* How a token is chosen, in this order. Logits of the last `repetition_window` tokens are divided (negative ones multiplied) by
 * `repetition_penalty`; then each is reduced by `presence_penalty`, and by `frequency_penalty` for each time that the token is
 * in the window. The `top_k` largest logits stay; of equal ones those of smaller tokens come first. Of these the fewest
 * stay that together have the probability `top_p`, and of these the ones with at least `min_p` times the probability of the
 * first. The remaining logits are divided by `temperature`, and one is drawn. The random number depends only on the seed and
 * the position in the text, so the same text with the same seed continues in the same way on every device. */
typedef struct ww_sampling {
    size_t struct_size;
    double temperature;        /* 0: takes the first */
    int32_t top_k;             /* 0: all */
    double top_p;              /* 1: all */
    double min_p;              /* 0: all */
    double repetition_penalty; /* 1: none */
    int32_t repetition_window; /* tokens; -1: all */
    uint64_t seed;
    ww_grammar *grammar;                        /* permits only tokens that can come next; NULL: none */
    double frequency_penalty, presence_penalty; /* 0: none; negative ones make repetitions likelier */
    const int32_t *bias_tokens;                 /* tokens to whose logits `biases`, finite, are added after the penalties */
    const float *biases;
    int64_t bias_count; /* 0: none */
} ww_sampling;

/* The default chooses the largest logit, without a penalty. */
WW_API ww_status ww_sampling_init(void *value, size_t struct_size);
static inline ww_sampling ww_sampling_default(void)
{
    ww_sampling value;
    ww_sampling_init(&value, sizeof value);
    return value;
}

/* Chooses a token from the session's logits; it is not fed. `sampling` may be NULL. Refuses invalid numbers, and a session
 * without logits. With a grammar a token that ends the text is chosen only if the grammar is satisfied. WW_NOT_FOUND: no token
 * of the vocabulary can come next. */
WW_API ww_status ww_session_sample(const ww_session *session, const ww_sampling *sampling, int32_t *token);

/* Receives a piece of text: UTF-8 with whole characters, ended by a NUL. Returning non-zero ends generating. The rules for
 * progress callbacks in status.h hold here, too; ww_session_cancel() may be called. */
typedef int (*ww_text_callback)(const char *text, size_t bytes, void *user);

typedef enum ww_generation_end {
    WW_GENERATION_LENGTH = 0,  /* as many tokens as were asked for */
    WW_GENERATION_EOS = 1,     /* the model ended its text; the token that says so is not fed */
    WW_GENERATION_CONTEXT = 2, /* the context is full */
    WW_GENERATION_STOPPED = 3  /* by the callback */
} ww_generation_end;

typedef struct ww_generation {
    size_t struct_size;
    int64_t tokens;              /* at most this many */
    const ww_sampling *sampling; /* NULL: the default */
    ww_text_callback text;       /* may be NULL */
    void *user;
    int32_t ignore_eos; /* 1: continue after EOS */
} ww_generation;

/* 128 tokens, default sampling. */
WW_API ww_status ww_generation_init(void *value, size_t struct_size);
static inline ww_generation ww_generation_default(void)
{
    ww_generation value;
    ww_generation_init(&value, sizeof value);
    return value;
}

/* Chooses tokens one after the other and feeds each to the session, including the last. `end` may be NULL. If it fails, the
 * tokens generated so far stay in the session. A grammar advances with the tokens; if no token can follow, the text ends as
 * with EOS. Refuses a session without logits, and ignore_eos with a grammar. Blocks. */
WW_API ww_status ww_session_generate(ww_session *session, const ww_generation *generation, ww_generation_end *end);

/* ---- conversion ---------------------------------------------------------------------------------------------------------- */

/* A folder of a model hub (config.json, tokenizer.json, *.safetensors) that becomes one GGUF file. */
typedef struct ww_conversion {
    size_t struct_size;
    const char *folder;
    const char *out_path; /* the file */
    const char *name;     /* of the model; NULL: the folder's */
    const char *type;     /* of matrices: a name for ww_quant_find(); NULL: as in the folder */
    ww_pooling pooling;   /* of an embedder: mean, cls or last; none: as in the folder */
    ww_device *device;    /* that quantizes them */
    ww_progress progress; /* in bytes of the folder's tensors; may be NULL */
    void *progress_user;
} ww_conversion;

typedef struct ww_conversion_report {
    size_t struct_size;
    char architecture[32];
    int64_t tensors, bytes_before, bytes_after;
    int64_t other;           /* matrices whose rows are not a multiple of the type's block, which became q8_0 or f16 */
    int32_t pooling_assumed; /* 1: the folder names no pooling, and the mean was taken */
} ww_conversion_report;

/* All zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_conversion_init(void *value, size_t struct_size);
WW_API ww_status ww_conversion_report_init(void *value, size_t struct_size);
static inline ww_conversion ww_conversion_default(void)
{
    ww_conversion value;
    ww_conversion_init(&value, sizeof value);
    return value;
}
static inline ww_conversion_report ww_conversion_report_default(void)
{
    ww_conversion_report value;
    ww_conversion_report_init(&value, sizeof value);
    return value;
}

/* Converts a folder, with the names, keys and order of rows that other programs use. Replaces an old file only when the new one
 * is complete. Refuses, by name, an unknown architecture (the message lists the known ones), an unknown tokenizer or type, and
 * a tensor that has no name in GGUF or is not of floats. `report` may be NULL. Blocks. */
WW_API ww_status ww_model_convert(const ww_conversion *conversion, ww_conversion_report *report);

#ifdef __cplusplus
}
#endif

#endif
