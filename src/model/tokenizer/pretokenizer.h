/* Splitting a text before byte-level BPE, by the regular expressions in the published models' tokenizer.json. */
#ifndef WW_MODEL_TOKENIZER_PRETOKENIZER_H
#define WW_MODEL_TOKENIZER_PRETOKENIZER_H

#include <stdbool.h>

#include "model/tokenizer/family.h"

typedef struct pretokenizer pretokenizer;

/* Creates the pre-tokenizer that a model file calls `name`. Refuses an unknown name; the message lists the known ones. */
ww_status pretokenizer_create(const char *name, const char *file, pretokenizer **out);
void pretokenizer_destroy(pretokenizer *p); /* accepts NULL */

/* Its name as a constant, and properties of the models that use it. */
const char *pretokenizer_name(const pretokenizer *p);
bool pretokenizer_composes(const pretokenizer *p);    /* texts are first normalized to NFC */
bool pretokenizer_whole_words(const pretokenizer *p); /* a piece that is a token is not merged */
/* If the file does not say: is BOS added, is EOS added, and a second one between two texts? */
bool pretokenizer_adds_bos(const pretokenizer *p);
bool pretokenizer_adds_ends(const pretokenizer *p);

/* Calls `piece` with each piece of a text that is UTF-8, in order. `match` is kept between calls: NULL at first,
 * pretokenizer_free_match() frees it. */
typedef ww_status (*pretokenizer_piece)(void *context, const char *text, size_t bytes);
ww_status pretokenizer_cut(const pretokenizer *p, const fragment *f, void **match, pretokenizer_piece piece, void *context);
void pretokenizer_free_match(void *match);

#endif
