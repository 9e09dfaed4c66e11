/* A model that embeds texts, for commands that store and search them. Where the command was built without models, opening one
 * says so. */
#ifndef CLI_TEXT_TEXT_MODEL_H
#define CLI_TEXT_TEXT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>

#include "cli/terminal.h"

typedef struct text_model text_model;

/* Opens the model in the file `path` on a device, with a bar. Refuses one that embeds nothing. */
ww_status text_model_open(const char *path, ww_device *device, text_model **model);
void text_model_close(text_model *model); /* accepts NULL */

const char *text_model_name(const text_model *model);
const char *text_model_fingerprint(const text_model *model);
int32_t text_model_width(const text_model *model); /* numbers in a vector */

/* Gives the vectors of texts; `bar` may be NULL. */
ww_status text_model_embed(text_model *model, const char *const *texts, size_t count, float *vectors, progress *bar);

#endif
