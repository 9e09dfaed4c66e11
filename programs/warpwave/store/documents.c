/* Documents in a folder: each text file is one document, and its path in the folder is its source. They are added in the order
 * of their paths; each is on disk before the next begins. */
#include "warpwave/store/documents.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "warpwave/terminal.h"

enum { DEPTH_MAX = 32, PATH_BYTES = 4096, FILE_BYTES_MAX = 1 << 28 };

static const char *const ENDINGS[] = {".txt", ".text", ".md", ".markdown", ".rst"};

typedef struct document_list {
    char **paths; /* path below the folder */
    int64_t count, room, left_out;
} document_list;

static void list_free(document_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        memory_free(list->paths[i]);
    memory_free(list->paths);
}

static ww_status list_put(document_list *list, const char *path)
{
    const ww_status grown = array_reserve(&list->paths, &list->room, list->count + 1, sizeof *list->paths, "a list of files");
    if (grown != WW_OK)
        return grown;
    char *copy = memory_copy_text(path, strlen(path));
    if (!copy)
        return memory_failed("a path", strlen(path));
    list->paths[list->count++] = copy;
    return WW_OK;
}

static bool is_text_file(const char *name)
{
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++)
        if (path_ends_in(name, ENDINGS[i]))
            return true;
    return false;
}

/* Lists the text files in a folder and in its subfolders. `below` is the path from the top folder, "" at the top. */
static ww_status list_folder(document_list *list, const char *folder, const char *below, int depth)
{
    char path[PATH_BYTES];
    ww_status status = WW_OK;
    snprintf(path, sizeof path, "%s%s%s", folder, below[0] ? "/" : "", below);
    DIR *opened = depth < DEPTH_MAX ? opendir(path) : NULL;
    if (!opened)
        return ww_fail(WW_IO_ERROR, "%s: %s", path, depth < DEPTH_MAX ? strerror(errno) : "the folders are nested too deeply");
    for (const struct dirent *entry = readdir(opened); status == WW_OK && entry; entry = readdir(opened)) {
        char inner[PATH_BYTES];
        struct stat file;
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(inner, sizeof inner, "%s%s%s", below, below[0] ? "/" : "", entry->d_name) >= (int)sizeof inner ||
            snprintf(path, sizeof path, "%s/%s", folder, inner) >= (int)sizeof path)
            status = ww_fail(WW_OUT_OF_RANGE, "%s: a path below it has more than %d bytes", folder, PATH_BYTES - 1);
        else if (lstat(path, &file) != 0)
            status = ww_fail(WW_IO_ERROR, "%s: %s", path, strerror(errno));
        else if (S_ISDIR(file.st_mode))
            status = list_folder(list, folder, inner, depth + 1);
        else if (S_ISREG(file.st_mode) && is_text_file(entry->d_name))
            status = list_put(list, inner);
        else
            list->left_out++;
    }
    closedir(opened);
    return status;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the whole file as a text; the caller frees it with memory_free(). */
static ww_status read_file(const char *path, char **text)
{
    FILE *file = fopen(path, "re");
    size_t bytes = 0;
    ww_status status = file ? WW_OK : ww_fail(WW_IO_ERROR, "%s: %s", path, strerror(errno));
    if (status == WW_OK && (fseek(file, 0, SEEK_END) != 0 || ftell(file) < 0 || ftell(file) > FILE_BYTES_MAX))
        status = ww_fail(WW_OUT_OF_RANGE, "%s: it cannot be read as one document of at most 256 MiB", path);
    if (status == WW_OK) {
        bytes = (size_t)ftell(file);
        *text = memory_alloc(bytes + 1);
        if (!*text)
            status = memory_failed("a document", bytes);
        else if (fseek(file, 0, SEEK_SET) != 0)
            status = ww_fail(WW_IO_ERROR, "%s: %s", path, strerror(errno));
    }
    if (status == WW_OK && fread(*text, 1, bytes, file) != bytes)
        status = ww_fail(WW_IO_ERROR, "%s: it could not be read to its end", path);
    if (status == WW_OK) {
        (*text)[bytes] = '\0';
        if (strlen(*text) != bytes || !utf8_check(*text, bytes))
            status = ww_fail(WW_CORRUPT_FILE, "%s is not UTF-8 text", path);
    }
    if (file)
        fclose(file);
    return status;
}

static ww_status add_one(const store_call *call, ww_text *text, const char *path, const char *source)
{
    const store_settings *s = &call->settings;
    ww_chunking how = ww_chunking_default();
    ww_documents documents = ww_documents_default();
    char *document = NULL;
    ww_status status = read_file(path, &document);
    how.tokens = s->chunk > 0 ? s->chunk : how.tokens;
    how.overlap = s->overlap >= 0 ? s->overlap : how.overlap < how.tokens ? how.overlap : how.tokens / 8;
    documents.count = 1;
    documents.texts = (const char *const *)&document;
    documents.sources = &source;
    documents.chunking = s->chunk > 0 || s->overlap >= 0 ? &how : NULL;
    if (status == WW_OK)
        status = s->upsert ? ww_text_upsert_documents(text, &documents, NULL) : ww_text_add_documents(text, &documents, NULL);
    memory_free(document);
    return status;
}

static ww_status add_folder(const store_call *call, ww_text *text)
{
    const char *folder = call->settings.text;
    document_list list = {0};
    progress bar;
    ww_status status = list_folder(&list, folder, "", 0);
    if (status == WW_OK && list.count == 0)
        status = ww_fail(WW_NOT_FOUND, "%s has no files that end in .txt, .text, .md, .markdown or .rst", folder);
    if (list.count > 1)
        qsort(list.paths, (size_t)list.count, sizeof *list.paths, by_path);
    progress_begin(&bar, "embedding documents", list.count);
    for (int64_t i = 0; status == WW_OK && i < list.count; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, list.paths[i]);
        status = add_one(call, text, path, list.paths[i]);
        if (status != WW_OK && i > 0)
            status = ww_fail(status, "%s (the store has the %lld document%s before it)", ww_error_message(), (long long)i,
                             plural(i));
        if (status == WW_OK && progress_report(i + 1, list.count, &bar) != 0)
            status = interrupt_check();
    }
    progress_end(&bar);
    if (status == WW_OK && list.left_out > 0 && !call->settings.json && terminal_notes())
        printf("left out %lld file%s: documents end in .txt, .text, .md, .markdown or .rst\n", (long long)list.left_out,
               plural(list.left_out));
    list_free(&list);
    return status;
}

ww_status documents_add(store_call *call, ww_text *text, bool folder)
{
    const char *path = call->settings.text, *slash = strrchr(path, '/');
    return folder ? add_folder(call, text) : add_one(call, text, path, slash ? slash + 1 : path);
}
