/* The files of a model's folder: JSON by name, and the tensors of one or several .safetensors. */
#ifndef WW_MODEL_CONVERT_FOLDER_H
#define WW_MODEL_CONVERT_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <warpwave/arrays.h>

enum { FOLDER_PATH_BYTES = 4096 };

/* The value of a JSON file of the folder, or NULL, in `value`. WW_NOT_FOUND if there is no such file. json_decref() frees it.
 */
ww_status folder_json(const char *folder, const char *name, json_t **value);

/* The text of a file of the folder, with a NUL, in memory that memory_free() frees. WW_NOT_FOUND as above. */
ww_status folder_text(const char *folder, const char *name, char **text);

/* All tensors of a folder. */
typedef struct folder_tensors {
    ww_safetensors **files;
    int64_t file_count;
    int64_t main_count; /* of the model's own; those of folders inside come behind */
} folder_tensors;

/* Opens model.safetensors, or the files that model.safetensors.index.json names. */
ww_status folder_open(const char *folder, folder_tensors *tensors);
/* Opens model.safetensors of a folder inside, too. */
ww_status folder_add(const char *folder, const char *inside, folder_tensors *tensors);
void folder_close(folder_tensors *tensors);

/* Members of a JSON object: absent, null or of another kind gives `otherwise`. */
int64_t json_member_integer(const json_t *object, const char *key, int64_t otherwise);
double json_member_real(const json_t *object, const char *key, double otherwise);
const char *json_member_text(const json_t *object, const char *key, const char *otherwise);
bool json_member_bool(const json_t *object, const char *key, bool otherwise);

#endif
