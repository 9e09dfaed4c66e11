/* Reads all texts of a file into memory: plain lines, or a field of JSON Lines. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "warpwave/text/lines.h"

static ww_status grow(void **list, size_t *capacity, size_t wanted, size_t element_bytes)
{
    if (wanted <= *capacity)
        return WW_OK;
    size_t more = *capacity ? *capacity : 4096;
    while (more < wanted)
        more *= 2;
    void *moved = memory_resize(*list, more * element_bytes);
    if (!moved)
        return memory_failed("texts of a file", more * element_bytes);
    *list = moved;
    *capacity = more;
    return WW_OK;
}

static ww_status add(text_file *file, const char *text, size_t length)
{
    ww_status status = grow((void **)&file->begins, &file->capacity, file->count + 1, sizeof *file->begins);
    if (status == WW_OK)
        status = grow((void **)&file->bytes, &file->room, file->used + length + 1, 1);
    if (status != WW_OK)
        return status;
    memcpy(file->bytes + file->used, text, length);
    file->bytes[file->used + length] = '\0';
    file->begins[file->count++] = file->used;
    file->used += length + 1;
    return WW_OK;
}

static ww_status add_field(text_file *file, const line_reader *lines, const char *field)
{
    json_error_t error;
    json_t *object = json_loadb(lines->text, lines->length, 0, &error);
    const json_t *value = json_object_get(object, field);
    ww_status status;
    if (!object)
        status = ww_fail(WW_CORRUPT_FILE, "%s: line %lld is not JSON: %s", lines->name, (long long)lines->number, error.text);
    else if (!json_is_string(value))
        status =
            ww_fail(WW_CORRUPT_FILE, "%s: line %lld has no text in a field '%s'", lines->name, (long long)lines->number, field);
    else
        status = add(file, json_string_value(value), json_string_length(value));
    json_decref(object);
    return status;
}

static bool ends_in(const char *path, const char *ending)
{
    const size_t length = strlen(path), wanted = strlen(ending);
    return length >= wanted && strcmp(path + length - wanted, ending) == 0;
}

ww_status text_file_read(text_file *file, const char *path, const char *field)
{
    line_reader lines;
    bool end = false;
    ww_status status = lines_open(&lines, path);
    const bool objects = field || ends_in(path, ".jsonl");
    while (status == WW_OK) {
        status = lines_next(&lines, &end);
        if (status != WW_OK || end)
            break;
        status = objects ? add_field(file, &lines, field ? field : "text") : add(file, lines.text, lines.length);
    }
    lines_close(&lines);
    if (status != WW_OK)
        return status;
    file->texts = memory_alloc_zeroed(file->count + 1, sizeof *file->texts);
    if (!file->texts)
        return memory_failed("texts of a file", file->count * sizeof *file->texts);
    for (size_t i = 0; i < file->count; i++)
        file->texts[i] = file->bytes + file->begins[i];
    return WW_OK;
}

void text_file_free(text_file *file)
{
    memory_free(file->bytes);
    memory_free(file->begins);
    memory_free(file->texts);
    *file = (text_file){0};
}

/* Reads a whole stream as one text. */
static ww_status read_stream(FILE *stream, const char *name, char **text, size_t *length)
{
    char *bytes = NULL;
    size_t used = 0, room = 0, got = 1;
    ww_status status = WW_OK;
    while (status == WW_OK && got > 0) {
        status = grow((void **)&bytes, &room, used + 2, 1);
        got = status == WW_OK ? fread(bytes + used, 1, room - used - 1, stream) : 0;
        used += got;
    }
    if (status == WW_OK && ferror(stream))
        status = ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be read", name);
    if (status == WW_OK && memchr(bytes, '\0', used))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: a text has no NUL", name);
    if (status == WW_OK) {
        bytes[used] = '\0';
        *text = bytes;
        *length = used;
        bytes = NULL;
    }
    memory_free(bytes);
    return status;
}

ww_status whole_file_read(const char *path, char **text)
{
    size_t length;
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot be opened", path);
    const ww_status status = read_stream(stream, path, text, &length);
    fclose(stream);
    return status;
}

ww_status standard_input_read(char **text)
{
    size_t length = 0;
    const ww_status status = read_stream(stdin, "standard input", text, &length);
    if (status == WW_OK) {
        length -= length > 0 && (*text)[length - 1] == '\n';
        length -= length > 0 && (*text)[length - 1] == '\r';
        (*text)[length] = '\0';
    }
    return status;
}
