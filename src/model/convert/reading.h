/* tokenizer.json while it is read: what the files for each algorithm share. */
#ifndef WW_MODEL_CONVERT_READING_H
#define WW_MODEL_CONVERT_READING_H

#include "model/convert/keys.h"

typedef struct vocabulary_text {
    const char *text;
    int32_t kind; /* of token_kind; 0: there is no such id */
} vocabulary_text;

typedef struct reading {
    key_writer *w;
    const char *folder;
    const json_t *config;
    json_t *tokenizer, *settings, *map; /* tokenizer.json, tokenizer_config.json, special_tokens_map.json */
    char *chat;                         /* chat_template.jinja; NULL: none */
    vocabulary_text *tokens;
    int64_t count;
} reading;

/* A refusal that names the file. */
ww_status reading_refuse(const reading *r, const char *what);

/* Store a token by its id; store the tokens that were added to a vocabulary. */
ww_status reading_put(reading *r, const char *text, int64_t id, int32_t kind);
ww_status reading_added(reading *r);
ww_status reading_write_tokens(const reading *r, bool wordpiece);

/* The text of a special token by its use, or NULL; its id, or config.json's (the key may be NULL), or -1. */
const char *reading_special_text(const reading *r, const char *use);
int64_t reading_special_id(const reading *r, const char *use, const char *config_key);
int64_t reading_token_id(const reading *r, const char *text);         /* or -1 */
void reading_write_id(const reading *r, const char *key, int64_t id); /* writes nothing for -1 */

/* Does the file's own post-processing put this token first, or last? Does it put two tokens between two texts? */
const char *reading_last_added(const reading *r); /* or NULL */
bool reading_adds(const reading *r, const char *text, bool first);
bool reading_doubles(const reading *r);

/* Finds a step of this type, alone or in a sequence; NULL: there is none. */
const json_t *reading_find_step(const json_t *step, const char *type);

/* The keys of a unigram vocabulary. */
ww_status write_unigram(reading *r);

#endif
