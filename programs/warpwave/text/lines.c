/* Reads text files line by line. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "warpwave/text/lines.h"

enum { ROOM_MIN = 4096 };

static const size_t LINE_BYTES_MAX = (size_t)300 << 20; /* the longest payload with a vector beside it */

ww_status lines_open(line_reader *lines, const char *path)
{
    const bool standard = strcmp(path, "-") == 0;
    *lines = (line_reader){.name = standard ? "standard input" : path, .file = standard ? stdin : fopen(path, "re")};
    return lines->file ? WW_OK : ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be opened", path);
}

static ww_status make_room(line_reader *lines)
{
    if (lines->room - lines->length > 1)
        return WW_OK;
    if (lines->room >= LINE_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: line %lld is longer than %zu bytes", lines->name, (long long)lines->number,
                       LINE_BYTES_MAX);
    const size_t room = lines->room > 0 ? 2 * lines->room : ROOM_MIN;
    char *text = memory_resize(lines->text, room);
    if (!text)
        return memory_failed("a line of a file", room);
    lines->text = text;
    lines->room = room;
    return WW_OK;
}

ww_status lines_next(line_reader *lines, bool *end)
{
    lines->length = 0;
    lines->number++;
    *end = false;
    while (lines->length == 0 || lines->text[lines->length - 1] != '\n') {
        const ww_status status = make_room(lines);
        if (status != WW_OK)
            return status;
        const size_t room = lines->room - lines->length;
        if (!fgets(lines->text + lines->length, room > INT32_MAX ? INT32_MAX : (int)room, lines->file)) {
            if (ferror(lines->file))
                return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be read", lines->name);
            *end = lines->length == 0;
            return WW_OK;
        }
        const size_t more = strlen(lines->text + lines->length);
        if (more == 0)
            return ww_fail(WW_CORRUPT_FILE, "%s: line %lld has a NUL in it", lines->name, (long long)lines->number);
        lines->length += more;
    }
    lines->length--;
    if (lines->length > 0 && lines->text[lines->length - 1] == '\r')
        lines->length--;
    lines->text[lines->length] = '\0';
    return WW_OK;
}

void lines_close(line_reader *lines)
{
    if (lines->file && lines->file != stdin)
        (void)fclose(lines->file);
    memory_free(lines->text);
    *lines = (line_reader){0};
}
