/* Texts that a model generates for a request: one, or several choices that share the prompt. */
#ifndef WW_SERVER_OPENAI_GENERATION_H
#define WW_SERVER_OPENAI_GENERATION_H

#include "base/strings/text_stream.h"
#include "server/openai/openai.h"
#include "server/stream.h"

enum { STOPS_MAX = 4, CHOICES_MAX = 16, TOP_LOGPROBS_MAX = 20 };

/* What was asked for. */
typedef struct generation_plan {
    bool chat, stream, usage; /* usage: also at the end of a stream */
    int32_t *prompt;
    size_t prompt_count;
    int64_t tokens_max;
    ww_sampling sampling; /* choice i uses the seed plus i, and its own grammar */
    ww_grammar *grammars[CHOICES_MAX];
    size_t choices;
    char *stops[STOPS_MAX];
    size_t stop_count;
    int32_t *bias_tokens; /* of logit_bias */
    float *biases;
    bool logprobs;
    int32_t top_logprobs; /* alternatives reported for each token */
    bool tools;           /* the text may contain tool calls */
    bool tool_forced;     /* the grammar forces one call; the tag before it is in the prompt */
    char *echo;           /* of /v1/responses: the members of the request that its answer repeats; NULL: another route */
} generation_plan;

void generation_plan_free(void *plan);

typedef struct generation generation;

/* What the choices of a request share. It is freed with the last one. */
typedef struct generation_answer {
    served_model *model;
    generation_plan *plan;
    request *request; /* NULL: the answer is a stream */
    stream *stream;   /* NULL: the answer is sent at the end */
    uint64_t number;  /* of the request */
    int64_t created;
    size_t begun, ended_count;      /* choices */
    generation *ended[CHOICES_MAX]; /* by number */
    bool failed;                    /* and the client got an error */
    int64_t events;                 /* of /v1/responses, that were sent */
} generation_answer;

/* Tokens with their log probabilities that were not sent yet, as JSON of the two APIs. */
typedef struct logprob_lists {
    out content;                       /* for conversations */
    out tokens, values, tops, offsets; /* for completions */
    bool begun;
} logprob_lists;

struct generation {
    generation *next;
    generation_answer *answer;
    size_t number; /* of the choice */
    ww_session *session;
    size_t fed;    /* number of prompt tokens fed so far */
    int32_t token; /* the one to feed next, once the prompt is fed */
    bool sampled;  /* another thread has chosen it */
    int64_t generated;
    text_stream pieces;
    out text;
    size_t sent; /* bytes of `text` */
    bool told;   /* the first event, with the role, was sent */
    logprob_lists logprobs;
    const char *finish; /* why it ended; NULL: it continues */
};

/* Appends the text of a token, and looks for stops. */
ww_status generation_add(generation *g, int32_t token);

/* Send new text as events of a stream; report that the prompt is still being read. */
void generation_tell(generation *g);
void generation_ping(generation *g);

/* Ends a choice, and the answer with the last one. */
void generation_end(generation *g);

/* Ends all choices of the answer with the calling thread's message. */
void generation_fail(generation *g, ww_status status);

/* Copies the text of a message: a text, or a list of {"type": "text", "text": ...}. NULL: the request failed. */
char *message_text(request *r, const char *content);

/* ---- logprobs.c */
ww_status logprobs_add(generation *g, int32_t token);
void logprobs_put(out *o, generation *g); /* ,"logprobs":{...}, and forgets them */
void logprobs_free(logprob_lists *lists);

/* ---- tools.c */

/* Reads `tools` and `tool_choice`. False: the request failed. */
bool tools_read(request *r, const served_model *m, const char *body);

/* Tokenizes the conversation with its tools, as the template writes it, into the plan's prompt. */
bool tools_tokenize(request *r, const served_model *m, const char *body);

/* The position of the first call in the text; the length of the text if there is none. */
size_t tools_begin(const generation *g);

/* The number of bytes at the end of the text that could begin a call. */
size_t tools_held(const generation *g);

/* Writes [{"id": ..., "function": ...}, ...]. Returns the number of calls; 0: nothing was written. `indexed`: with the index
 * that events need. */
size_t tools_put_calls(out *o, const generation *g, bool indexed);

#endif
