/* The parts of `warpwave model` that have a file of their own. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <warpwave/model.h>

typedef struct model_settings {
    const char *device, *prompt, *query, *system, *in, *out, *field, *grammar, *json_schema, *chat_template, *member, *sha256,
        *prompt_name;
    int64_t tokens; /* -1: not given */
    int64_t dimensions, top, seed, top_k, repetition_window;
    double temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
    int cache; /* index in "f16|f32|q8_0" */
    bool json, quiet, yes, precise, plain, chat, ignore_eos;
    int pooling; /* a ww_pooling */
} model_settings;

/* A running action: its operand, its settings, and what it has open. */
typedef struct model_call {
    const char *path;
    char *input;         /* the text that `--prompt -` read; settings.prompt points to it */
    char *chat_template; /* the text of --chat-template */
    model_settings settings;
    ww_device *device;
    ww_model *model;
    ww_model_info info;
} model_call;

/* Opens the device and the model and shows a progress bar. */
ww_status model_call_open(model_call *call);

/* Chooses where the report goes: to standard error if --out is standard output. Refuses --json with that. */
ww_status model_report_to(const model_settings *s, FILE **report);

/* Prints generated text as it comes. Newlines and tabs stay; other control characters are escaped. */
void model_print_text(const char *text, size_t bytes);

/* The sampling options, without a grammar. */
ww_sampling model_sampling(const model_settings *s);

/* Opens the grammar of --grammar or --json-schema; gives NULL if neither was given. */
ww_status model_open_grammar(const model_call *call, ww_grammar **grammar);

/* The actions. They open what they need; the caller closes it. */
ww_status model_info_run(model_call *call);
ww_status model_tokenize_run(model_call *call);
ww_status model_embed_run(model_call *call);
ww_status model_rerank_run(model_call *call);
ww_status model_logits_run(model_call *call);
ww_status model_generate_run(model_call *call);
ww_status model_chat_run(model_call *call);
ww_status model_fetch_run(model_call *call);
ww_status model_list_run(model_call *call);
ww_status model_path_run(model_call *call);

/* Fetches a model into a file; the report goes to standard error. */
ww_status model_fetch_to(const char *source, const char *out);

#endif
