/* Writing the keys of a GGUF file. The first failure is kept, so that a list of keys needs no checks in between. */
#ifndef WW_MODEL_CONVERT_KEYS_H
#define WW_MODEL_CONVERT_KEYS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <warpwave/gguf.h>

#include "model/convert/names.h"

typedef struct key_writer {
    ww_gguf_writer *out;
    const architecture_names *architecture;
    ww_status status;
} key_writer;

/* A key that begins with a dot gets the architecture's name as prefix. */
void key_u32(key_writer *w, const char *key, int64_t value); /* refuses what does not fit */
void key_f32(key_writer *w, const char *key, double value);
void key_bool(key_writer *w, const char *key, bool value);
void key_text(key_writer *w, const char *key, const char *text);

/* Arrays; a text_list grows until it is written. */
typedef struct text_list {
    char *bytes; /* as in the file: length, text, ... */
    size_t size, capacity;
    int64_t count;
} text_list;
ww_status text_list_add(text_list *list, const char *text, size_t bytes);
void text_list_free(text_list *list);
void key_texts(key_writer *w, const char *key, const text_list *list);
void key_array(key_writer *w, const char *key, ww_gguf_kind element, const void *values, int64_t count);

/* Refuses, by name, settings in config.json that GGUF has no key for or that models of the architecture do not have. */
ww_status config_check(const architecture_names *architecture, const char *folder, const json_t *config);

/* The number of leading rows of learned positions that no token uses; they are not written. */
int64_t positions_skipped(const architecture_names *architecture, const json_t *config);

/* The scaling of rope, an object or NULL, and its type, "" if it has none. */
const json_t *config_scaling(const json_t *config);
const char *scaling_type(const json_t *scaling);

/* Elements of a decoder's head that rope rotates; number of experts, -1 if config.json has none. */
int64_t config_turned(const architecture_names *architecture, const json_t *config);
int64_t config_experts(const json_t *config);

/* Does a token see only those before it? */
bool config_is_causal(const architecture_names *architecture, const json_t *config);

/* Writes config.json as keys. */
void keys_of_config(key_writer *w, const json_t *config);

/* Writes tokenizer.json and the files beside it as keys; `token_count` is the number of tokens of the model. */
void keys_of_tokenizer(key_writer *w, const char *folder, const json_t *config, int64_t token_count);

#endif
