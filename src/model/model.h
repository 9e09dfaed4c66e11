/* The inside of a model, for the files of this room. */
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
#include "model/prompts.h"
#include "model/template/template.h"
#include "model/tokenizer/tokenizer.h"
#include "model/weights.h"

struct ww_model {
    atomic_int users; /* opens and sessions; the last one frees it */
    process_mark opened_in;
    ww_device *device; /* retained by the weights */
    const architecture *architecture;
    model_sizes sizes;
    weights weights;
    tokenizer *tokenizer;   /* NULL: the file has none */
    char *chat_template;    /* the options' or the file's; NULL: none */
    template_program *chat; /* also NULL if the file's template cannot be read */
    char *rerank_template;  /* the file's; NULL: none */
    bool rerank_apart;      /* in it, what ends with the query and what follows become tokens apart */
    model_prompts prompts;
    int64_t context; /* of sessions */
    ww_activations activations;
    ww_model_info info;
    atomic_llong texts_cut;

    pthread_mutex_t lock; /* held while anything below is used */
    page_pool pool;
    workspace work;
    token_order *token_order; /* NULL until a grammar needs it; then it does not change */
};

/* WW_OK, or a refusal of NULL and of another process's model. */
ww_status model_check(const ww_model *model, const char *call);

void model_retain(ww_model *model);
void model_release(ww_model *model);

#endif
