/* OpenAI's API: embeddings, completions and conversations by the models of the server. */
#ifndef WW_SERVER_OPENAI_H
#define WW_SERVER_OPENAI_H

#include "server/route.h"
#include "server/state.h"

typedef enum model_task { TASK_EMBED, TASK_RERANK, TASK_GENERATE, TASK_ANY } model_task;

/* Can the model do it? A decoder that embeds, or has a head that ranks, does not generate. */
bool model_can(const served_model *m, model_task task);

/* Finds the model that the body names and sets the request's queue to its queue. NULL after a failure. If the body names none,
 * as in TEI's API, model_for_task() takes the only model that can do the task; of several, the only one that does not generate.
 */
served_model *model_of_request(request *r, const char *body, model_task task);
served_model *model_for_task(request *r, const char *body, model_task task);

/* ---- embeddings.c */
bool prepare_embeddings(request *r);
bool prepare_embed(request *r); /* TEI's API */
bool embeddings_run(queue *q, request *taken);

/* ---- rerank.c */
bool prepare_rerank(request *r);
bool prepare_rerank_tei(request *r);
request *reranks_run(served_model *m, request *taken); /* answers requests to rerank, and returns the list of the others */

/* ---- tei.c */
bool prepare_tokenize(request *r);
bool prepare_info(request *r);

/* ---- generation.c */
bool prepare_completion(request *r);
bool prepare_chat(request *r);
bool prepare_response(request *r);
bool generations_run(queue *q, request *taken);
void generations_free(served_model *m);

#endif
