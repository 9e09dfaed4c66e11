/* Files of a hub are fetched by curl, one by one, as FILE.part until they are complete; so an interrupted fetch continues. */
#include "warpwave/model/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "warpwave/programs/programs.h"
#include "warpwave/text/lines.h"

enum { CURL_REFUSED = 22, PATH_BYTES = PATH_MAX + 2 * HUB_TEXT, HEADER_BYTES = PATH_BYTES + 16 };

static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

static bool take_name(const char **at, char then)
{
    const size_t length = strspn(*at, LETTERS);
    const bool good =
        length > 0 && (*at)[0] != '.' && (*at)[0] != '-' && ((*at)[length] == then || (then == '\0' && (*at)[length] == ':'));
    *at += length;
    return good;
}

bool hub_parse(const char *text, hub_source *source)
{
    const bool marked = strncmp(text, "hf:", 3) == 0;
    const char *begin = marked ? text + 3 : text, *at = begin;
    if (!take_name(&at, '/') || *at++ != '/' || !take_name(&at, '\0') || (*at == ':' && !marked) || strlen(begin) >= HUB_TEXT)
        return false;
    snprintf(source->model, sizeof source->model, "%.*s", (int)(at - begin), begin);
    text_copy(source->file, sizeof source->file, *at == ':' ? at + 1 : "");
    return *at == '\0' || (source->file[0] && source->file[0] != '/' && !strstr(source->file, ".."));
}

/* Writes the line with the token to a file that only this user reads: arguments of programs are for all to see. */
static ww_status write_header(const char *beside, char path[HEADER_BYTES])
{
    const char *token = getenv("HF_TOKEN");
    path[0] = '\0';
    if (!token || !token[0])
        return WW_OK;
    if (strpbrk(token, "\r\n"))
        return ww_fail(WW_INVALID_ARGUMENT, "HF_TOKEN has more than one line");
    snprintf(path, HEADER_BYTES, "%s.header", beside);
    const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written = to >= 0 && dprintf(to, "Authorization: Bearer %s\n", token) > 0;
    if (to >= 0)
        close(to);
    return written ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be written", path);
}

ww_status hub_file(const hub_source *source, const char *file, const char *path, bool *missing)
{
    char address[PATH_BYTES], part[PATH_BYTES], header[HEADER_BYTES];
    const char *endpoint = getenv("HF_ENDPOINT");
    int code = 0;
    endpoint = endpoint && endpoint[0] ? endpoint : "https://huggingface.co";
    snprintf(address, sizeof address, "%s/%s/resolve/main/%s", endpoint, source->model, file);
    snprintf(part, sizeof part, "%.*s.part", PATH_MAX, path);
    const bool is_large = strstr(file, ".safetensors") != NULL; /* shows its progress */
    ww_status status = write_header(part, header);
    if (status == WW_OK)
        status = program_curl(address, part, header[0] ? header : NULL, missing && !is_large, &code);
    if (header[0])
        unlink(header);
    if (missing)
        *missing = code == CURL_REFUSED;
    if (status != WW_OK || (missing && *missing))
        return status;
    if (code == PROGRAM_NOT_THERE)
        return ww_fail(WW_UNSUPPORTED, "a hub's files are fetched by curl, which is not installed");
    if (code == CURL_REFUSED)
        return ww_fail(WW_NOT_FOUND, "%s: the hub does not have it, or asks for a token (HF_TOKEN)", address);
    if (code != 0)
        return ww_fail(WW_IO_ERROR,
                       "%s: curl failed with code %d; the first part is kept in %s, and fetching again continues it", address,
                       code, part);
    return rename(part, path) == 0 ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be renamed", part);
}

/* Fetches a file into the folder unless it is there. */
static ww_status fetch_into(const hub_source *source, const char *folder, const char *file, bool *missing)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.*s/%s", PATH_MAX, folder, file);
    *missing = false;
    char *slash = strrchr(path, '/');
    *slash = '\0';
    const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
    *slash = '/';
    if (!made)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: its folder cannot be made", path);
    return access(path, R_OK) == 0 ? WW_OK : hub_file(source, file, path, missing);
}

/* Fetches the files that the index of the weights names. */
static ww_status fetch_shards(const hub_source *source, const char *folder)
{
    char path[PATH_BYTES], file[HUB_TEXT];
    char *text = NULL;
    json_fault fault;
    bool missing;
    snprintf(path, sizeof path, "%.*s/model.safetensors.index.json", PATH_MAX, folder);
    ww_status status = whole_file_read(path, &text);
    const bool good = status == WW_OK && json_check(text, strlen(text), &fault) && json_type_of(json_root(text)) == JSON_OBJECT;
    const char *map = good ? json_find(json_root(text), "weight_map", strlen("weight_map")) : NULL;
    if (status == WW_OK && (!map || json_type_of(map) != JSON_OBJECT))
        status = ww_fail(WW_CORRUPT_FILE, "%s: no weight_map", path);
    for (const char *at = map ? json_first(map) : NULL; at && status == WW_OK; at = json_next(at)) {
        const char *value = json_member(at);
        const bool named = json_type_of(value) == JSON_TEXT && json_end(value) - value < HUB_TEXT;
        file[named ? json_text_read(value, file) : 0] = '\0';
        status = file[0] && file[strspn(file, LETTERS)] == '\0' && file[0] != '.'
                     ? fetch_into(source, folder, file, &missing)
                     : ww_fail(WW_CORRUPT_FILE, "%s: weight_map names '%s'", path, file);
        if (status == WW_OK && missing)
            status = ww_fail(WW_NOT_FOUND, "%s of %s is not on the hub", file, source->model);
    }
    memory_free(text);
    return status;
}

/* Fetches a dense layer, if there is one in this folder. */
static ww_status fetch_dense(const hub_source *source, const char *folder, const char *inside)
{
    char file[2 * HUB_TEXT];
    bool missing = false;
    snprintf(file, sizeof file, "%s/config.json", inside);
    ww_status status = fetch_into(source, folder, file, &missing);
    if (status != WW_OK || missing)
        return status;
    snprintf(file, sizeof file, "%s/model.safetensors", inside);
    status = fetch_into(source, folder, file, &missing);
    return status == WW_OK && missing ? ww_fail(WW_NOT_FOUND, "%s of %s is not on the hub", file, source->model) : status;
}

/* Reads a text of a module; "" if it is missing or is not the name of a file or class. */
static void module_text(const char *module, const char *key, char text[HUB_TEXT])
{
    const char *value = json_find(module, key, strlen(key));
    const bool good = value && json_type_of(value) == JSON_TEXT && json_end(value) - value < HUB_TEXT;
    text[good ? json_text_read(value, text) : 0] = '\0';
    if (text[strspn(text, LETTERS)] != '\0' || text[0] == '.')
        text[0] = '\0';
}

/* Fetches the dense layers that modules.json lists, or those with the usual names. */
static ww_status fetch_modules(const hub_source *source, const char *folder)
{
    char path[PATH_BYTES], class[HUB_TEXT], inside[HUB_TEXT];
    char *text = NULL;
    json_fault fault;
    snprintf(path, sizeof path, "%.*s/modules.json", PATH_MAX, folder);
    if (access(path, R_OK) != 0) {
        const ww_status first = fetch_dense(source, folder, "2_Dense");
        return first == WW_OK ? fetch_dense(source, folder, "3_Dense") : first;
    }
    ww_status status = whole_file_read(path, &text);
    const bool good = status == WW_OK && json_check(text, strlen(text), &fault) && json_type_of(json_root(text)) == JSON_LIST;
    if (status == WW_OK && !good)
        status = ww_fail(WW_CORRUPT_FILE, "%s: not a list of modules", path);
    for (const char *at = good ? json_first(json_root(text)) : NULL; at && status == WW_OK; at = json_next(at)) {
        module_text(at, "type", class);
        module_text(at, "path", inside);
        const size_t length = strlen(class);
        if (inside[0] && length > strlen(".Dense") && strcmp(class + length - strlen(".Dense"), ".Dense") == 0)
            status = fetch_dense(source, folder, inside);
    }
    memory_free(text);
    return status;
}

ww_status hub_folder(const hub_source *source, const char *folder)
{
    static const char *const FILES[] = {"config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "tokenizer.model",
                                        "chat_template.jinja",
                                        "sentence_bert_config.json",
                                        "config_sentence_transformers.json",
                                        "README.md",
                                        "1_Pooling/config.json",
                                        "modules.json"};
    bool missing = false;
    ww_status status = mkdir(folder, 0777) == 0 || errno == EEXIST
                           ? WW_OK
                           : ww_fail_errno(WW_IO_ERROR, errno, "%s: the folder cannot be made", folder);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES && status == WW_OK; i++) {
        status = fetch_into(source, folder, FILES[i], &missing);
        if (status == WW_OK && missing && i == 0)
            status = ww_fail(WW_NOT_FOUND,
                             "%s has no config.json on the hub, or asks for a token (HF_TOKEN); hf:%s:FILE fetches a GGUF file",
                             source->model, source->model);
    }
    if (status == WW_OK)
        status = fetch_modules(source, folder);
    if (status == WW_OK)
        status = fetch_into(source, folder, "model.safetensors", &missing);
    if (status != WW_OK || !missing)
        return status;
    status = fetch_into(source, folder, "model.safetensors.index.json", &missing);
    if (status == WW_OK && missing)
        return ww_fail(WW_NOT_FOUND, "%s has no safetensors on the hub", source->model);
    return status == WW_OK ? fetch_shards(source, folder) : status;
}
