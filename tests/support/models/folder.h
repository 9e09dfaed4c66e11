/* Small models as folders in the layout of model hubs: safetensors, config.json and a tokenizer, in the scratch folder "folder"
 * or the one named with folder_choose().
 */
#ifndef TESTS_SUPPORT_MODELS_FOLDER_H
#define TESTS_SUPPORT_MODELS_FOLDER_H

#include "support/models/tiny.h"

void folder_choose(const char *name);

/* The path of a file in it, until the next call. */
const char *in_folder(const char *name);
void folder_file(const char *name, const void *bytes, size_t count);
void folder_text_file(const char *name, const char *content);

/* A file of SentencePiece's with a few pieces; the algorithm is 2 for merging pairs. */
typedef struct message {
    unsigned char bytes[4096];
    size_t count;
} message;
message sentencepiece_model(unsigned algorithm);

/* A decoder's config.json: class, layers, hidden size, base of rope, and more members, each with a comma before it. */
extern const char DECODER_CONFIG[];

/* The shape of a model that folder_write() can write as a folder of its architecture. */
tiny_shape folder_shape(const char *architecture);

/* Rounds the weights of experts to numbers of mxfp4. */
void folder_round_experts(tiny_model *m);

/* The properties of a class of encoders besides the names of its architecture. */
typedef struct folder_class {
    const char *prefix;                /* before every name but those of the head */
    const char *dense, *norm, *output; /* of the head; NULL: it embeds */
    int32_t skipped;                   /* rows of positions in front that no token has */
} folder_class;

/* Writes model.safetensors, and 2_Dense and 3_Dense if the model has them. `class` may be NULL. */
void folder_write_tensors(const tiny_model *m, const folder_class *class);

/* Writes all of it; `class` is what config.json calls the model. */
void folder_write(const tiny_model *m, const char *class);

/* A tokenizer.json of WordPiece with six tokens, and its special_tokens_map.json. */
extern const char FOLDER_WORDPIECE[], FOLDER_SPECIAL[];

#endif
