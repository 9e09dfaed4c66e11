/* A list of model calls that fault tests make fail; each leaves the scene unchanged whether it succeeds or not. Also the files
 * of small models that the model tests open.
 */
#ifndef TESTS_MODEL_MODEL_CALLS_H
#define TESTS_MODEL_MODEL_CALLS_H

#include "support/models/tiny.h"

enum { CALLS_VOCABULARY = 96, CALLS_WIDTH = 64, CALLS_PROMPT = 6 };
extern const int32_t calls_prompt[CALLS_PROMPT];

typedef struct model_call {
    const char *name; /* NULL after the last */
    ww_status (*call)(void);
    bool opens;           /* a model, which takes an emulated device its time */
    void (*before)(void); /* makes the state that the call is about; may be NULL; nothing fails meanwhile */
} model_call;
extern const model_call model_calls[];

/* Writes a model of the default shape into the scratch folder. */
void write_tiny_model(const char *kind, ww_quant_type type, int32_t layers, const char *name);
/* A model of two layers that embeds: an encoder by mean, a decoder by its last token. */
void write_tiny_embedder(const char *kind, ww_quant_type type, const char *name);
/* decoder.gguf and encoder.gguf, of one layer, which the calls use. */
void model_calls_write_files(void);

/* Opens both on a device, with two sessions. */
void model_calls_begin(ww_device *opened);
/* Makes each call once, so that everything that is kept for reuse is allocated. */
void model_calls_warm(void);
/* The session, and what another token makes of it, must be unchanged; with `whole`, embeddings of texts, too. */
void model_calls_check(const char *what, bool whole);
void model_calls_end(void);

#endif
