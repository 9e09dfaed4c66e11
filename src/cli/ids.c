/* A file of ids. It is read whole and cut in place: ids are short, and the collection needs a pointer to each anyway. */
#include "cli/ids.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <warpwave/vectors.h>

#include "base/memory.h"

enum { FIRST_READ_BYTES = 1 << 16 };

static ww_status read_whole(const char *path, char **text, size_t *bytes)
{
    ww_status status = WW_OK;
    size_t room = 0;
    FILE *file = fopen(path, "rb");
    if (!file)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot open the file of ids", path);
    *bytes = 0;
    while (status == WW_OK && !feof(file)) {
        if (room - *bytes < 2) { /* one more byte, and the final NUL */
            room = room ? 2 * room : FIRST_READ_BYTES;
            char *larger = memory_resize(*text, room);
            if (larger)
                *text = larger;
            else
                status = memory_failed("the file of ids", room);
        }
        if (status == WW_OK) {
            *bytes += fread(*text + *bytes, 1, room - *bytes - 1, file);
            if (ferror(file))
                status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot read the file of ids", path);
        }
    }
    fclose(file);
    if (status == WW_OK)
        (*text)[*bytes] = '\0';
    return status;
}

/* Whether the bytes are UTF-8: no stray or missing continuation, nothing longer than needed, no surrogate, none past 10FFFF. */
static bool is_utf8(const char *text, size_t length)
{
    const unsigned char *byte = (const unsigned char *)text, *end = byte + length;
    while (byte < end) {
        const unsigned lead = *byte++;
        const int more = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;
        if (more < 0 || end - byte < more)
            return false;
        uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
        for (int i = 0; i < more; i++, byte++) {
            if ((*byte & 0xc0) != 0x80)
                return false;
            point = point << 6 | (*byte & 0x3fu);
        }
        if ((more == 2 && point < 0x800) || (more == 3 && point < 0x10000) || (point >= 0xd800 && point < 0xe000) ||
            point > 0x10ffff)
            return false;
    }
    return true;
}

static ww_status check_line(const char *path, int64_t number, const char *line, size_t length)
{
    if (length == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: line %lld is empty; every row needs an id", path, (long long)number);
    if (length > WW_ID_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: line %lld has %zu bytes; the maximum of an id is %d", path, (long long)number,
                       length, WW_ID_BYTES_MAX);
    if (memchr(line, '\0', length) || !is_utf8(line, length))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: line %lld is not UTF-8 text", path, (long long)number);
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
        const ww_status status = check_line(path, list->count + 1, line, (size_t)(last - line));
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

void ids_free(ids *list)
{
    memory_free(list->lines);
    memory_free(list->text);
    *list = (ids){0};
}
