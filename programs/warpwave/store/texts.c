/* Texts in a store: a model embeds them, the collection remembers the model, and text queries find them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/model/place.h"
#include "warpwave/store/documents.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

enum { TEXTS_BATCH = 1024 };

/* ---- the model ------------------------------------------------------------------------------------------------------------
 */

static ww_status explain(const store_call *call, ww_status status)
{
    ww_store_model kept = ww_store_model_default();
    if (status == WW_OK || call->settings.model)
        return status;
    char why[512];
    text_copy(why, sizeof why, ww_error_message());
    const ww_status found = ww_store_get_model(call->store, call->operands[1], &kept);
    if (found == WW_NOT_FOUND && call->collection)
        return ww_fail(
            WW_NOT_FOUND,
            "%s; its rows were not added as texts (`warpwave store add --text`), so no text can be compared with them",
            ww_error_message());
    if (found == WW_NOT_FOUND)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--model M is missing: the model that embeds the texts"));
    if (found == WW_OK && kept.path[0] == '\0')
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--model is missing: the collection's model, '%s', was read from a pipe", kept.name));
    return ww_fail(status, "%s", why);
}

ww_status store_open_text(store_call *call, bool create, ww_text **text)
{
    const store_settings *s = &call->settings;
    ww_text_config config = ww_text_config_default();
    progress bar;
    char path[PATH_MAX];
    config.model = s->model;
    const ww_status placed = model_replace(&config.model, s->yes, path);
    if (placed != WW_OK)
        return placed;
    config.device = call->device;
    config.create = create;
    config.query_prefix = s->query_prefix;
    config.document_prefix = s->document_prefix;
    config.progress = progress_report;
    config.progress_user = &bar;
    progress_begin(&bar, "loading the model", 0);
    const ww_status status = ww_text_open(call->store, call->operands[1], &config, text);
    progress_end(&bar);
    return explain(call, status);
}

/* ---- adding ---------------------------------------------------------------------------------------------------------------
 */

typedef struct text_rows {
    store_call *call;
    ww_text *text;
    bool objects; /* the file has JSON lines */
    bool with_ids;
    int64_t count, added;
    char *texts[TEXTS_BATCH], *ids[TEXTS_BATCH], *payloads[TEXTS_BATCH];
} text_rows;

static void forget_texts(text_rows *r)
{
    for (int64_t i = 0; i < TEXTS_BATCH; i++) {
        memory_free(r->texts[i]);
        memory_free(r->ids[i]);
        memory_free(r->payloads[i]);
        r->texts[i] = r->ids[i] = r->payloads[i] = NULL;
    }
    r->count = 0;
}

static ww_status add_texts(text_rows *r)
{
    ww_text_rows rows = ww_text_rows_default();
    if (r->count == 0)
        return WW_OK;
    rows.count = r->count;
    rows.texts = (const char *const *)r->texts;
    rows.ids = r->with_ids ? (const char *const *)r->ids : NULL;
    rows.payloads = (const char *const *)r->payloads;
    const ww_status status = r->call->settings.upsert ? ww_text_upsert(r->text, &rows) : ww_text_add(r->text, &rows);
    if (status != WW_OK)
        return r->added == 0 ? status
                             : ww_fail(status, "%s (the store has the %lld row%s before this batch)", ww_error_message(),
                                       (long long)r->added, plural(r->added));
    r->added += r->count;
    forget_texts(r);
    return interrupt_check();
}

static ww_status take_text(char **to, const char *text)
{
    *to = memory_copy_text(text, strlen(text));
    return *to ? WW_OK : memory_failed("a text", strlen(text) + 1);
}

/* Converts a JSON value to text. */
static ww_status take_json(char **to, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text)
        return ww_fail(WW_OUT_OF_MEMORY, "no memory for a payload");
    const ww_status status = take_text(to, text);
    free(text);
    return status;
}

static ww_status take_row(text_rows *r, const char *text, const char *id, const json_t *payload)
{
    const int64_t at = r->count++;
    ww_status status = take_text(&r->texts[at], text);
    if (status == WW_OK && id)
        status = take_text(&r->ids[at], id);
    if (status == WW_OK && payload && !json_is_null(payload))
        status = take_json(&r->payloads[at], payload);
    return status;
}

static ww_status take_object(text_rows *r, const line_reader *lines)
{
    json_error_t problem;
    json_t *object = json_loadb(lines->text, lines->length, JSON_REJECT_DUPLICATES, &problem);
    const char *text = json_string_value(json_object_get(object, "text"));
    const json_t *id = json_object_get(object, "id");
    ww_status status = WW_OK;
    if (!object)
        status = ww_fail(WW_CORRUPT_FILE, "%s, line %lld: %s", lines->name, (long long)lines->number, problem.text);
    else if (!text || (id && !json_is_string(id)))
        status = ww_fail(WW_CORRUPT_FILE, "%s, line %lld: it is not an object with a \"text\", or its \"id\" is not a string",
                         lines->name, (long long)lines->number);
    if (status == WW_OK && r->count > 0 && r->with_ids != (id != NULL))
        status = add_texts(r);
    if (status == WW_OK) {
        r->with_ids = id != NULL;
        status = take_row(r, text, json_string_value(id), json_object_get(object, "payload"));
    }
    json_decref(object);
    return status;
}

/* Counts the lines, for the progress bar; 0 if that is not possible. */
static int64_t count_lines(const char *path)
{
    int64_t count = 0;
    FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
    for (int c = file ? getc(file) : EOF; c != EOF; c = getc(file))
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

static ww_status read_texts(text_rows *r, const char *path)
{
    line_reader lines;
    bool end = false;
    progress bar;
    const int64_t total = count_lines(path);
    ww_status status = lines_open(&lines, path);
    progress_begin(&bar, "embedding texts", total);
    while (status == WW_OK && !end) {
        status = lines_next(&lines, &end);
        if (status != WW_OK || end || strspn(lines.text, " \t") == lines.length)
            continue;
        if (!utf8_check(lines.text, lines.length))
            status = ww_fail(WW_CORRUPT_FILE, "%s, line %lld is not UTF-8", lines.name, (long long)lines.number);
        if (status == WW_OK)
            status = r->objects ? take_object(r, &lines) : take_row(r, lines.text, NULL, NULL);
        if (status == WW_OK && r->count == TEXTS_BATCH)
            status = add_texts(r);
        if (progress_report(lines.number, total, &bar) != 0 && status == WW_OK)
            status = interrupt_check();
    }
    if (status == WW_OK)
        status = add_texts(r);
    progress_end(&bar);
    lines_close(&lines);
    return status;
}

static ww_status check_options(const store_settings *s, bool folder)
{
    if (s->vector || s->queries || s->payload || s->id.count > 0 || s->ids || s->payloads || s->id_column)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT,
                    "beside --text only --model, --chunk, --overlap, --query-prefix, --document-prefix, --device, --format, "
                    "--upsert and --synchronous go; ids and payloads are in .jsonl files"));
    if (s->format && strcmp(s->format, "jsonl") != 0 && strcmp(s->format, "text") != 0)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--format '%s': files of texts are text or jsonl", s->format));
    if (folder && s->format)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--format goes with a file, and %s is a folder", s->text));
    if (s->overlap >= 0 && s->chunk == 0 && !folder)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--overlap goes with --chunk"));
    return WW_OK;
}

/* Opens the collection for the report at the end, and counts its rows. */
static ww_status describe(store_call *call, int64_t *before)
{
    ww_status status = call->collection ? WW_OK : ww_store_collection(call->store, call->operands[1], &call->collection);
    if (status == WW_OK)
        status = ww_collection_describe(call->collection, &call->info);
    *before = call->info.rows_live;
    return status;
}

ww_status store_add_texts(store_call *call, int64_t *before)
{
    const store_settings *s = &call->settings;
    struct stat file;
    const bool folder = stat(s->text, &file) == 0 && S_ISDIR(file.st_mode);
    text_rows *r = memory_alloc_zeroed(1, sizeof *r);
    if (!r)
        return memory_failed("texts", sizeof *r);
    r->call = call;
    ww_status status = check_options(s, folder);
    if (status == WW_OK)
        r->objects = s->format ? strcmp(s->format, "jsonl") == 0 : path_ends_in(s->text, ".jsonl");
    if (status == WW_OK && r->objects && s->chunk > 0)
        status = command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--chunk goes with folders and files of plain text"));
    if (status == WW_OK)
        status = store_open_text(call, true, &r->text);
    if (status == WW_OK)
        status = describe(call, before);
    if (status == WW_OK)
        status = folder || s->chunk > 0 ? documents_add(call, r->text, folder) : read_texts(r, s->text);
    forget_texts(r);
    ww_text_close(r->text);
    memory_free(r);
    return status;
}
