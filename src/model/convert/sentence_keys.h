/* Keys that come from the files beside a sentence encoder's config.json: pooling, context, prompts. */
#ifndef WW_MODEL_CONVERT_SENTENCE_KEYS_H
#define WW_MODEL_CONVERT_SENTENCE_KEYS_H

#include "model/convert/conversion.h"

/* Writes them. A pooling that the job gives replaces the folder's. An encoder whose folder names none gets the mean, as
 * sentence-transformers does, and a key that says so. Refuses a pooling other than mean, cls and last. */
void keys_of_sentences(conversion *c, key_writer *w);

#endif
