/* The file of a model that is given by its path or by its name. */
#ifndef CLI_MODEL_PLACE_H
#define CLI_MODEL_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "base/status.h"

/* Writes where the model is. A name of the catalogue or of a hub that does not name a file here is one in the folder of models:
 * WARPWAVE_MODELS, XDG_CACHE_HOME/warpwave or ~/.cache/warpwave. If it is not there either, it is fetched after asking on the
 * terminal, or at once with `yes`. Any other path stays as it is. */
ww_status model_place(const char *given, bool yes, char path[PATH_MAX]);

/* Replaces *given, NULL or a model, by its place, which `path` keeps. */
ww_status model_replace(const char **given, bool yes, char path[PATH_MAX]);

#endif
