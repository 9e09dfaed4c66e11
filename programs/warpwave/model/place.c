/* Models by name: the folder of those that were fetched, and the question before one is. */
#include "warpwave/model/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "warpwave/model/catalogue.h"
#include "warpwave/model/hub.h"
#include "warpwave/model/model.h"
#include "warpwave/terminal.h"

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Is it a name on a hub, and neither a file's nor in a folder that exists? */
static bool is_hub_name(const char *given, hub_source *hub)
{
    char folder[HUB_TEXT];
    if (!hub_parse(given, hub) || (strncmp(given, "hf:", 3) != 0 && ends_with(given, ".gguf")))
        return false;
    text_copy(folder, sizeof folder, hub->model);
    folder[strcspn(folder, "/")] = '\0';
    return strncmp(given, "hf:", 3) == 0 || access(folder, F_OK) != 0;
}

/* The name of a hub's model as a file: owner--name.gguf, owner--name--file. */
static void name_hub_file(const hub_source *hub, char *name, size_t capacity)
{
    snprintf(name, capacity, "%s%s%s", hub->model, hub->file[0] ? "/" : "", hub->file[0] ? hub->file : ".gguf");
    for (char *at = strchr(name, '/'); at && strlen(name) + 1 < capacity; at = strchr(at, '/')) {
        memmove(at + 1, at, strlen(at) + 1);
        at[0] = at[1] = '-';
    }
}

static ww_status find_folder(char folder[PATH_MAX])
{
    const char *own = getenv("WARPWAVE_MODELS"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (own && own[0])
        length = snprintf(folder, PATH_MAX, "%s", own);
    else if (cache && cache[0])
        length = snprintf(folder, PATH_MAX, "%s/warpwave", cache);
    else if (home && home[0])
        length = snprintf(folder, PATH_MAX, "%s/.cache/warpwave", home);
    return length > 0 && length < PATH_MAX
               ? WW_OK
               : ww_fail(WW_INVALID_ARGUMENT, "there is no folder for models; WARPWAVE_MODELS names one");
}

static ww_status make_folders(const char *folder)
{
    char path[PATH_MAX];
    text_copy(path, sizeof path, folder);
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0777); /* the last one says what is wrong */
        *at = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST ? WW_OK
                                                     : ww_fail_errno(WW_IO_ERROR, errno, "%s: the folder cannot be made", path);
}

/* Asks on the terminal; refuses if there is none. */
static ww_status ask(const char *given, const catalogue_model *known, const char *folder)
{
    char size[32], facts[4 * CATALOGUE_TEXT] = "", answer[16] = "";
    if (known)
        snprintf(facts, sizeof facts, " (%.199s; %s, %.199s)", known->purpose, human_bytes(size, known->bytes), known->licence);
    if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        fprintf(stderr, "%s%s is not here. Fetch it into %s? [y/N] ", given, facts, folder);
        if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
            return WW_OK;
        return ww_fail(WW_CANCELLED, "%s was not fetched", given);
    }
    return ww_fail(WW_NOT_FOUND, "%s%s is not here; --yes fetches it into %s", given, facts, folder);
}

ww_status model_place(const char *given, bool yes, char path[PATH_MAX])
{
    catalogue_model known;
    hub_source hub = {.model = ""};
    char folder[PATH_MAX], name[2 * HUB_TEXT + CATALOGUE_TEXT];
    const bool there = access(given, F_OK) == 0, listed = !there && catalogue_find(given, &known);
    if (there || (!listed && !is_hub_name(given, &hub))) {
        text_copy(path, PATH_MAX, given);
        return strlen(given) < PATH_MAX ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "the path of the model is too long");
    }
    ww_status status = find_folder(folder);
    if (status != WW_OK)
        return status;
    if (listed)
        text_copy(name, sizeof name, known.file);
    else
        name_hub_file(&hub, name, sizeof name);
    const int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "the path of the model is too long");
    if (access(path, R_OK) == 0)
        return WW_OK;
    status = yes ? WW_OK : ask(given, listed ? &known : NULL, folder);
    if (status == WW_OK)
        status = make_folders(folder);
    return status == WW_OK ? model_fetch_to(given, path) : status;
}

ww_status model_replace(const char **given, bool yes, char path[PATH_MAX])
{
    const ww_status status = *given ? model_place(*given, yes, path) : WW_OK;
    if (status == WW_OK && *given)
        *given = path;
    return status;
}
