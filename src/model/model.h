/* A model from inside: what every file of this room knows of it. */
#ifndef WW_MODEL_MODEL_H
#define WW_MODEL_MODEL_H

#include <pthread.h>
#include <stdatomic.h>

#include <warpwave/model.h>

#include "base/status.h"
#include "base/system/process.h"
#include "model/architecture.h"
#include "model/body/pages.h"
#include "model/body/workspace.h"
#include "model/grammar/grammar.h"
#include "model/template/template.h"
#include "model/tokenizer/tokenizer.h"
#include "model/weights.h"

struct ww_model {
    atomic_int users; /* opens and sessions; the last to go ends it */
    process_mark opened_in;
    ww_device *device; /* the weights hold it */
    const architecture *architecture;
    model_sizes sizes;
    weights weights;
    tokenizer *tokenizer;   /* NULL: the file has none */
    char *chat_template;    /* the options' or the file's; NULL: none */
    template_program *chat; /* NULL, too, if the file's template cannot be read */
    char *rerank_template;  /* the file's; NULL: none */
    int64_t context;        /* of sessions */
    ww_activations activations;
    ww_model_info info;

    pthread_mutex_t lock; /* held while anything below is used */
    page_pool pool;
    workspace work;
    token_order *token_order; /* NULL until a grammar needs it; then it does not change */
};

/* WW_OK, or a refusal of NULL and of another process's model. */
ww_status model_check(const ww_model *model, const char *call);

/* Appends the tokens of a conversation with everything that its template takes, {"messages": [...], "tools": [...]}, and of a
 * text behind it, which may have special tokens; in the JSON's texts their names are text. The list begins as zeros. */
ww_status model_chat_json_tokens(const ww_model *model, const char *json, const char *behind, token_list *list);

void model_retain(ww_model *model);
void model_release(ww_model *model);

#endif
