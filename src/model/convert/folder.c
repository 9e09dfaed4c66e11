/* The files of a model's folder. */
#include "model/convert/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

enum { JSON_FILE_BYTES_MAX = 1 << 28 };

static ww_status path_of(const char *folder, const char *name, char path[FOLDER_PATH_BYTES])
{
    const int length = snprintf(path, FOLDER_PATH_BYTES, "%s/%s", folder, name);
    if (length < 0 || length >= FOLDER_PATH_BYTES)
        return ww_fail(WW_INVALID_ARGUMENT, "%.200s...: the path is too long", folder);
    return WW_OK;
}

static ww_status read_file(FILE *file, const char *path, char **text, size_t *bytes)
{
    size_t capacity = 1 << 16;
    *bytes = 0;
    *text = memory_alloc(capacity);
    if (!*text)
        return memory_failed(path, capacity);
    for (;;) {
        const size_t got = fread(*text + *bytes, 1, capacity - *bytes, file);
        *bytes += got;
        if (*bytes < capacity) /* the end, or a failure */
            break;
        if (capacity >= JSON_FILE_BYTES_MAX)
            return ww_fail(WW_CORRUPT_FILE, "%s: larger than %d bytes", path, JSON_FILE_BYTES_MAX);
        char *larger = memory_resize(*text, 2 * capacity);
        if (!larger)
            return memory_failed(path, 2 * capacity);
        *text = larger;
        capacity *= 2;
    }
    (*text)[*bytes] = '\0';
    return ferror(file) ? ww_fail_errno(WW_IO_ERROR, errno, "%s", path) : WW_OK;
}

/* Reads a file of the folder; the caller frees the text, even after a failure. */
static ww_status read_named(const char *folder, const char *name, char path[FOLDER_PATH_BYTES], char **text, size_t *bytes)
{
    ww_status status = path_of(folder, name, path);
    if (status != WW_OK)
        return status;
    FILE *file = fopen(path, "rbe");
    if (!file)
        return ww_fail_errno(errno == ENOENT || errno == ENOTDIR ? WW_NOT_FOUND : WW_IO_ERROR, errno, "%s", path);
    status = read_file(file, path, text, bytes);
    fclose(file);
    return status;
}

ww_status folder_text(const char *folder, const char *name, char **text)
{
    char path[FOLDER_PATH_BYTES];
    char *read = NULL;
    size_t bytes = 0;
    const ww_status status = read_named(folder, name, path, &read, &bytes);
    if (status == WW_OK)
        *text = read;
    else
        memory_free(read);
    return status;
}

ww_status folder_json(const char *folder, const char *name, json_t **value)
{
    char path[FOLDER_PATH_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    json_error_t error;
    *value = NULL;
    ww_status status = read_named(folder, name, path, &text, &bytes);
    if (status == WW_OK) {
        *value = json_loadb(text, bytes, JSON_ALLOW_NUL, &error);
        if (!*value)
            status = ww_fail(WW_CORRUPT_FILE, "%s: line %d: %s", path, error.line, error.text);
    }
    memory_free(text);
    return status;
}

static bool has_file(const char *folder, const char *name)
{
    char path[FOLDER_PATH_BYTES];
    return path_of(folder, name, path) == WW_OK && access(path, F_OK) == 0;
}

/* ---- folders that are refused -------------------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

/* Copies the first name with the ending, in alphabetical order, to `found`; leaves it empty if the folder has none. */
static void find_file(const char *folder, const char *ending, char found[256])
{
    DIR *directory = opendir(folder);
    found[0] = '\0';
    for (const struct dirent *e = directory ? readdir(directory) : NULL; e; e = readdir(directory))
        if (ends_with(e->d_name, ending) && (found[0] == '\0' || strcmp(e->d_name, found) < 0))
            text_copy(found, 256, e->d_name);
    if (directory)
        closedir(directory);
}

ww_status folder_refuse(const char *folder)
{
    char name[256];
    find_file(folder, ".gguf", name);
    if (name[0])
        return ww_fail(WW_NOT_FOUND, "%s has no config.json; open the GGUF file in it: %s/%s", folder, folder, name);
    find_file(folder, ".onnx", name);
    return ww_fail(WW_NOT_FOUND,
                   "%s has no config.json%s%s; a model is a GGUF file, or a folder with config.json, tokenizer.json and "
                   "*.safetensors",
                   folder, name[0] ? ", and ONNX files are not read: " : "", name);
}

/* Refuses a folder without safetensors. Files of PyTorch are programs that build tensors, so they are not read. */
static ww_status refuse_weights(const char *folder)
{
    char name[256];
    find_file(folder, ".bin", name);
    if (!name[0])
        find_file(folder, ".pt", name);
    if (name[0])
        return ww_fail(WW_NOT_FOUND,
                       "%s has its weights in %s, a pickle of PyTorch, which is not read because it can run programs; write "
                       "safetensors first: python3 -c \"from transformers import AutoModel as M; "
                       "M.from_pretrained('%s').save_pretrained('%s', safe_serialization=True)\"",
                       folder, name, folder, folder);
    return ww_fail(WW_NOT_FOUND, "%s has no model.safetensors and no model.safetensors.index.json", folder);
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

static ww_status open_one(const char *folder, const char *name, folder_tensors *tensors)
{
    char path[FOLDER_PATH_BYTES];
    ww_status status = path_of(folder, name, path);
    if (status == WW_OK)
        status = ww_safetensors_open(path, &tensors->files[tensors->file_count]);
    tensors->file_count += status == WW_OK;
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Opens the files that an index names, each once, in the order of their names. A name must be that of a file in the folder, not
 * a path. */
static ww_status open_indexed(const char *folder, const json_t *index, folder_tensors *tensors)
{
    json_t *map = json_object_get(index, "weight_map");
    const size_t entries = json_object_size(map);
    const char *key;
    json_t *file;
    size_t count = 0;
    const char **names = memory_alloc_zeroed(entries + 1, sizeof *names);
    tensors->files = memory_alloc_zeroed(entries + 1, sizeof(ww_safetensors *));
    ww_status status = names && tensors->files ? WW_OK : memory_failed("files of a model", (entries + 1) * sizeof *names);
    if (status == WW_OK)
        json_object_foreach(map, key, file)
        {
            const char *name = json_string_value(file);
            if (name && !strchr(name, '/'))
                names[count++] = name;
        }
    if (status == WW_OK && (count == 0 || count != entries))
        status =
            ww_fail(WW_CORRUPT_FILE, "%s/model.safetensors.index.json: weight_map does not name files of the folder", folder);
    if (status == WW_OK)
        qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; status == WW_OK && i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            status = open_one(folder, names[i], tensors);
    memory_free(names);
    return status;
}

ww_status folder_open(const char *folder, folder_tensors *tensors)
{
    json_t *index = NULL;
    *tensors = (folder_tensors){0};
    ww_status status = folder_json(folder, "model.safetensors.index.json", &index);
    if (status == WW_OK) {
        status = open_indexed(folder, index, tensors);
    } else if (status == WW_NOT_FOUND && !has_file(folder, "model.safetensors")) {
        status = refuse_weights(folder);
    } else if (status == WW_NOT_FOUND) {
        tensors->files = memory_alloc_zeroed(1, sizeof *tensors->files);
        status = tensors->files ? open_one(folder, "model.safetensors", tensors)
                                : memory_failed("files of a model", sizeof *tensors->files);
    }
    json_decref(index);
    tensors->main_count = tensors->file_count;
    return status;
}

ww_status folder_add(const char *folder, const char *inside, folder_tensors *tensors)
{
    char path[FOLDER_PATH_BYTES];
    const size_t size = (size_t)(tensors->file_count + 1) * sizeof *tensors->files;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, inside);
    if (length < 0 || (size_t)length >= sizeof path)
        return ww_fail(WW_INVALID_ARGUMENT, "the folder's name is too long");
    ww_safetensors **larger = memory_resize(tensors->files, size);
    if (!larger)
        return memory_failed("files of a model", size);
    tensors->files = larger;
    return open_one(path, "model.safetensors", tensors);
}

void folder_close(folder_tensors *tensors)
{
    for (int64_t i = 0; i < tensors->file_count; i++)
        ww_safetensors_close(tensors->files[i]);
    memory_free(tensors->files);
    *tensors = (folder_tensors){0};
}

/* ---- members ------------------------------------------------------------------------------------------------------------- */

int64_t json_member_integer(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

double json_member_real(const json_t *object, const char *key, double otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

const char *json_member_text(const json_t *object, const char *key, const char *otherwise)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : otherwise;
}

bool json_member_bool(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}
