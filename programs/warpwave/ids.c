/* A file of ids. It is read at once and split in place: ids are short, and the collection needs a pointer to each anyway. */
#include "warpwave/ids.h"

#include <stdbool.h>
#include <string.h>
#include <warpwave/vectors.h>

#include "base/files/source.h"
#include "base/memory.h"
#include "base/text.h"

/* Reads the whole file and adds a NUL. */
static ww_status read_whole(const char *path, char **text, size_t *bytes)
{
    file_source source;
    ww_status status = source_open_stream(&source, path);
    if (status != WW_OK)
        return status;
    *bytes = (size_t)source.size;
    *text = memory_alloc(*bytes + 1);
    if (*text)
        status = source_read(&source, 0, *text, *bytes);
    else
        status = memory_failed("the file of ids", *bytes + 1);
    if (status == WW_OK)
        (*text)[*bytes] = '\0';
    source_close(&source);
    return status;
}

/* `what` is "line" for a file of ids, or "the id of row" for a table. */
static ww_status check_id(const char *path, const char *what, int64_t number, const char *line, size_t length)
{
    if (length == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s %lld is empty; every row needs an id", path, what, (long long)number);
    if (length > WW_ID_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s %lld has %zu bytes; the maximum of an id is %d", path, what,
                       (long long)number, length, WW_ID_BYTES_MAX);
    if (memchr(line, '\0', length) || !utf8_check(line, length))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s %lld is not UTF-8 text", path, what, (long long)number);
    return WW_OK;
}

static ww_status cut_lines(const char *path, ids *list, size_t bytes)
{
    char *const end = list->text + bytes;
    int64_t newlines = 1;
    for (const char *at = list->text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        newlines++;
    list->lines = memory_alloc_zeroed((size_t)newlines, sizeof *list->lines);
    if (!list->lines)
        return memory_failed("the list of ids", (size_t)newlines * sizeof *list->lines);
    for (char *line = list->text; line < end;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *next = newline ? newline + 1 : end;
        char *last = newline ? newline : end;
        if (last > line && last[-1] == '\r')
            last--;
        const ww_status status = check_id(path, "line", list->count + 1, line, (size_t)(last - line));
        if (status != WW_OK)
            return status;
        *last = '\0';
        list->lines[list->count++] = line;
        line = next;
    }
    return WW_OK;
}

ww_status ids_read(const char *path, ids *list)
{
    size_t bytes = 0;
    *list = (ids){0};
    ww_status status = read_whole(path, &list->text, &bytes);
    if (status == WW_OK)
        status = cut_lines(path, list, bytes);
    if (status != WW_OK)
        ids_free(list);
    return status;
}

ww_status ids_of_matrix(const ww_matrix *matrix, int64_t rows, const char *path, ids *list)
{
    *list = (ids){0};
    list->lines = memory_alloc_zeroed((size_t)rows + 1, sizeof *list->lines);
    if (!list->lines)
        return memory_failed("the list of ids", ((size_t)rows + 1) * sizeof *list->lines);
    ww_status status = WW_OK;
    for (; list->count < rows && status == WW_OK; list->count++) {
        const char *id = ww_matrix_id(matrix, list->count);
        status = check_id(path, "the id of row", list->count, id, strlen(id));
        list->lines[list->count] = id;
    }
    if (status != WW_OK)
        ids_free(list);
    return status;
}

void ids_free(ids *list)
{
    memory_free(list->lines);
    memory_free(list->text);
    *list = (ids){0};
}
