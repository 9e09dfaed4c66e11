/* The inside of a tokenizer, for the files of the four families. */
#ifndef WW_MODEL_TOKENIZER_FAMILY_H
#define WW_MODEL_TOKENIZER_FAMILY_H

#include "base/strings/text_buffer.h"
#include "model/tokenizer/merge.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/vocabulary.h"

#define WORD_START "\xE2\x96\x81" /* U+2581, which marks a space before a piece */
enum { WORD_START_BYTES = 3 };

/* A file's description of its tokenizer. tokenizer_make() keeps no pointers to it. */
typedef struct tokenizer_source {
    const char *name; /* of the file, for messages */
    const char *model, *pre;
    vocabulary_source vocabulary;
    const ww_gguf_span *merges;
    int64_t merge_count;
    int64_t bos, eos, eot, eom, unknown, padding, mask, separator; /* ids; TOKENIZER_NONE: not given */
    int32_t add_bos, add_eos, add_separator;                       /* 0, 1, or -1: not given */
    bool add_space_prefix, lowercase;
    bool removes_spaces; /* unigram: removes repeated spaces and those at the ends */
    const unsigned char *charsmap;
    size_t charsmap_bytes; /* 0: there is none */
} tokenizer_source;

/* An empty source. */
tokenizer_source tokenizer_source_default(void);

/* Creates a tokenizer. */
ww_status tokenizer_make(const tokenizer_source *source, tokenizer **out);

/* State of one call of tokenizer_encode(). */
typedef struct encode_work {
    merge_work merge;
    special_list found;
    text_buffer text, name;
    characters first, second;
    uint32_t *cuts;        /* for each unused piece, by id: bytes of the left of its two parts */
    merge_symbol *waiting; /* later parts of an unused piece */
    size_t waiting_room;
    void *match;        /* of PCRE2 */
    bool after_unknown; /* the last symbol was not a piece */
    text_span *plain;   /* parts of the text in which names of special tokens are text */
    size_t plain_count;
    const char *reserved; /* of a quoted_text; NULL: none */
    token_list *out;
} encode_work;

/* Text between special tokens. */
typedef struct fragment {
    const char *text;
    size_t bytes;
    bool begins; /* at the beginning of the text or after a control token */
    bool ends;   /* at the end of the text or before a control token */
} fragment;

typedef struct tokenizer_family {
    const char *model;
    /* Makes what `t->data` points to; release() frees it, even after a failure. */
    ww_status (*prepare)(tokenizer *t, const tokenizer_source *source);
    void (*release)(void *data);
    /* Appends the tokens of a fragment to work->out. begin() prepares the work of one text, end() undoes it; both may be NULL.
     */
    ww_status (*begin)(const tokenizer *t, encode_work *work);
    ww_status (*encode)(const tokenizer *t, const fragment *f, encode_work *work);
    void (*end)(encode_work *work);
    /* Appends a token's bytes as text. */
    ww_status (*show)(const tokenizer *t, int32_t id, text_buffer *out);
    bool writes_spaces; /* as U+2581 */
    bool strips_space;  /* a text assembled from pieces has an extra leading space, if the prefix is added */
} tokenizer_family;

extern const tokenizer_family FAMILY_WORDPIECE, FAMILY_BYTE_BPE, FAMILY_SENTENCEPIECE, FAMILY_UNIGRAM;

/* Shared by both kinds of SentencePiece: the ids of the byte tokens, all of them or none; and a token as text. */
ww_status sentencepiece_bytes(const vocabulary *v, const char *name, int32_t bytes[256], bool *has_bytes);
ww_status sentencepiece_show(const tokenizer *t, int32_t id, text_buffer *out);

enum { TOKENIZER_ENDS_MAX = 16 };

struct ww_tokenizer {
    const tokenizer_family *family;
    void *data; /* the family's */
    vocabulary vocabulary;
    text_buffer shown; /* the bytes of all tokens, concatenated */
    size_t *shown_at;  /* offset of each token, and the end */
    const char *pre;   /* points to a constant */
    int32_t bos, eos, unknown, separator;
    int32_t ends[TOKENIZER_ENDS_MAX];
    int32_t end_count;
    bool add_bos, add_eos, add_separator, add_space_prefix, lowercase;
};

#endif
