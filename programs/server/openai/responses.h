/* /v1/responses: a conversation in OpenAI's newer form. The request is written as that of a conversation and read like one; the
 * answer has items, and a stream has events of many kinds. Nothing is kept, so a request must have the whole conversation. */
#ifndef WW_SERVER_OPENAI_RESPONSES_H
#define WW_SERVER_OPENAI_RESPONSES_H

#include "server/openai/generation.h"

/* Writes the body of /v1/chat/completions for that of a response, and the members of the request that the answer repeats.
 * False: the request failed. */
bool responses_translate(request *r, const char *body, out *chat, out *echo);

/* Events of a stream: the text up to `end`; the end of the text with its calls; a failure. */
void responses_tell(generation *g, size_t end);
void responses_end(generation *g);
void responses_fail(generation_answer *a, const char *message);

/* The answer that is no stream. */
void responses_put(out *o, const generation *g);

#endif
