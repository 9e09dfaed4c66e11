/* Fetching from a model hub: addresses of files, and the files that make a folder. HF_ENDPOINT names another hub than
 * https://huggingface.co; HF_TOKEN is sent to it.
 */
#ifndef CLI_MODEL_HUB_H
#define CLI_MODEL_HUB_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

enum { HUB_TEXT = 256 };

/* owner/name, and the file after a colon, "" for a folder. */
typedef struct hub_source {
    char model[HUB_TEXT], file[HUB_TEXT];
} hub_source;

/* Reads "hf:owner/name", "hf:owner/name:file" or "owner/name". Returns false for anything else. */
bool hub_parse(const char *text, hub_source *source);

/* Fetches one file of the model to `path`, and goes on with an incomplete one. Sets `missing` if the hub does not have it, and
 * returns WW_OK; if `missing` is NULL that is a failure. */
ww_status hub_file(const hub_source *source, const char *file, const char *path, bool *missing);

/* Fetches the files of a model into a folder, which is made if it does not exist; files that are complete are kept. Refuses a
 * model without config.json or safetensors. */
ww_status hub_folder(const hub_source *source, const char *folder);

#endif
