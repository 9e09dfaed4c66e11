/* Imports that go on where they were interrupted. Each batch is committed together with a note that tells how much of the file
 * is in the collection, so --resume adds no row twice and leaves none out, whenever the process ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

#define KEY_BEGIN "import "

static ww_status cannot_resume(const char *path, const char *why)
{
    return command_line_wrong(
        ww_fail(WW_INVALID_ARGUMENT, "--resume: %s %s, so there is no record of where it was interrupted", path, why));
}

ww_status mark_begin(const store_call *call, import_mark *mark)
{
    const char *path = call->operands[2];
    struct stat file;
    *mark = (import_mark){0};
    if (strcmp(path, "-") == 0 || stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return call->settings.resume ? cannot_resume(path, "is not a file") : WW_OK;
    char *whole = realpath(path, NULL);
    const bool fits = whole && strlen(whole) + sizeof KEY_BEGIN <= sizeof mark->key && utf8_check(whole, strlen(whole));
    if (fits)
        snprintf(mark->key, sizeof mark->key, KEY_BEGIN "%s", whole);
    free(whole);
    mark->bytes = file.st_size;
    mark->changed = file.st_mtime;
    return fits || !call->settings.resume ? WW_OK : cannot_resume(path, "has a path that is not UTF-8 or too long");
}

static ww_status read_numbers(const store_call *call, const char *text, import_mark *found)
{
    json_t *object = json_loads(text, 0, NULL);
    const json_t *bytes = json_object_get(object, "bytes"), *changed = json_object_get(object, "changed"),
                 *done = json_object_get(object, "done");
    const bool whole = json_is_integer(bytes) && json_is_integer(changed) && json_is_integer(done);
    *found = (import_mark){
        .bytes = json_integer_value(bytes), .changed = json_integer_value(changed), .done = json_integer_value(done)};
    json_decref(object);
    if (whole && found->done >= 0)
        return WW_OK;
    return ww_fail(WW_CORRUPT_FILE, "collection '%s': its note about the import of %s is damaged: %s", call->operands[1],
                   call->operands[2], text);
}

ww_status mark_read(const store_call *call, import_mark *mark)
{
    char text[WW_NOTE_BYTES];
    import_mark found;
    const char *path = call->operands[2];
    ww_status status = mark->key[0] ? ww_store_get_note(call->store, call->operands[1], mark->key, text) : WW_NOT_FOUND;
    if (status == WW_NOT_FOUND)
        return WW_OK;
    if (status == WW_OK)
        status = read_numbers(call, text, &found);
    if (status != WW_OK || (found.done == 0 && !call->settings.resume))
        return status;
    if (!call->settings.resume) {
        if (terminal_notes())
            fprintf(stderr, "note: '%s' already has the first %lld of the rows or lines of %s; --resume continues after them\n",
                    call->operands[1], (long long)found.done, path);
        return WW_OK;
    }
    if (found.bytes != mark->bytes || found.changed != mark->changed)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "--resume: %s has changed since %lld of its rows or lines were added; leave --resume out to add all of "
                       "it, with --upsert to replace rows by their ids",
                       path, (long long)found.done);
    mark->done = found.done;
    return WW_OK;
}

ww_status mark_write(const store_call *call, const import_mark *mark)
{
    char text[128];
    snprintf(text, sizeof text, "{\"bytes\": %lld, \"changed\": %lld, \"done\": %lld}", (long long)mark->bytes,
             (long long)mark->changed, (long long)mark->done);
    return ww_store_set_note(call->store, call->operands[1], mark->key, text);
}
