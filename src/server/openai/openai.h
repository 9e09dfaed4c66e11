/* OpenAI's API: embeddings, completions and conversations by the models of the server. */
#ifndef WW_SERVER_OPENAI_H
#define WW_SERVER_OPENAI_H

#include "server/route.h"
#include "server/state.h"

/* The model that the body names, whose queue the request gets; NULL after a failure. */
served_model *model_of_request(request *r, const char *body, ww_model_kind kind);

/* ---- embeddings.c */
bool prepare_embeddings(request *r);
bool embeddings_run(queue *q, request *taken);

/* ---- generation.c */
bool prepare_completion(request *r);
bool prepare_chat(request *r);
bool generations_run(queue *q, request *taken);
void generations_free(served_model *m);

#endif
