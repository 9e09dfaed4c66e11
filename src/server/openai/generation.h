/* A text that a model generates for a request. */
#ifndef WW_SERVER_OPENAI_GENERATION_H
#define WW_SERVER_OPENAI_GENERATION_H

#include "model/session/text_stream.h"
#include "server/openai/openai.h"
#include "server/stream.h"

enum { STOPS_MAX = 4 };

/* What was asked for. */
typedef struct generation_plan {
    bool chat, stream, usage; /* usage: also at the end of a stream */
    int32_t *prompt;
    size_t prompt_count;
    int64_t tokens_max;
    ww_sampling sampling;
    char *stops[STOPS_MAX];
    size_t stop_count;
} generation_plan;

void generation_plan_free(void *plan);

typedef struct generation generation;
struct generation {
    generation *next;
    served_model *model;
    generation_plan *plan;
    request *request; /* NULL: the answer is a stream */
    stream *stream;   /* NULL: the answer is sent at the end */
    uint64_t number;  /* of the request */
    int64_t created;
    ww_session *session;
    size_t fed;    /* tokens of the prompt */
    int32_t token; /* the one to feed next, once the prompt is fed */
    int64_t generated;
    text_stream pieces;
    out text;
    size_t sent;        /* bytes of `text` */
    const char *finish; /* why it ended; NULL: it goes on */
    ww_status status;   /* not WW_OK: it failed, with the message */
    char *failure;
};

/* Appends the text of a token, and looks for stops. */
ww_status generation_add(generation *g, int32_t token);

/* Tells what is new, or at the end everything: as events of a stream, or as the answer. */
void generation_tell(generation *g);
void generation_end(generation *g);
void generation_fail(generation *g, ww_status status);

#endif
