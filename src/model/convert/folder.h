/* The files of a model's folder: JSON by name, and the tensors of one or several .safetensors. */
#ifndef WW_MODEL_CONVERT_FOLDER_H
#define WW_MODEL_CONVERT_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <warpwave/arrays.h>

enum { FOLDER_PATH_BYTES = 4096 };

/* Reads a JSON file of the folder into `value`, NULL on failure; free it with json_decref(). WW_NOT_FOUND if there is no such
 * file. */
ww_status folder_json(const char *folder, const char *name, json_t **value);

/* Refuses a folder that is not a model's: the message lists which models can be read and what the folder has instead. */
ww_status folder_refuse(const char *folder);

/* Reads a file of the folder as NUL-terminated text; free it with memory_free(). WW_NOT_FOUND if there is no such file. */
ww_status folder_text(const char *folder, const char *name, char **text);

/* All tensors of a folder. */
typedef struct folder_tensors {
    ww_safetensors **files;
    int64_t file_count;
    int64_t main_count; /* the model's own files; those of subfolders follow */
} folder_tensors;

/* Opens model.safetensors, or the files that model.safetensors.index.json names. */
ww_status folder_open(const char *folder, folder_tensors *tensors);
/* Also opens model.safetensors of a subfolder. */
ww_status folder_add(const char *folder, const char *inside, folder_tensors *tensors);
void folder_close(folder_tensors *tensors);

/* Members of a JSON object; `otherwise` if the member is absent, null or of another type. */
int64_t json_member_integer(const json_t *object, const char *key, int64_t otherwise);
double json_member_real(const json_t *object, const char *key, double otherwise);
const char *json_member_text(const json_t *object, const char *key, const char *otherwise);
bool json_member_bool(const json_t *object, const char *key, bool otherwise);

#endif
